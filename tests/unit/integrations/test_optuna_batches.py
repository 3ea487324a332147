"""Batches in the attributes of Optuna trials, and the trials that take turns."""

from __future__ import annotations

import json

import pytest

optuna = pytest.importorskip("optuna", reason="pip install 'covey[optuna]'")
import logging
import math
import threading
import time

from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
    json_to_distribution,
)
from optuna.trial import TrialState

from covey import Space
from covey.errors import SpaceError
from covey.integrations.optuna_batches import (
    DOWN,
    FLAG,
    HALF,
    UP,
    BatchStore,
    Place,
    Turns,
    all_trials,
    point_from_optuna,
    set_flag,
    store_batch,
    store_claim,
)
from covey.integrations.spaces.optuna import space_from_optuna
from covey.space import Choice

X = {"x": FloatDistribution(0.0, 1.0)}
SPACE = space_from_optuna(X)
POINTS = [{"x": 0.25}, {"x": 0.5}, {"x": 0.75}]


@pytest.fixture
def study():
    return optuna.create_study()


def running(study, count):
    numbers = [study.ask().number for _ in range(count)]
    return [all_trials(study)[number] for number in numbers]


def shelf_of(study, space=SPACE):
    return BatchStore(all_trials(study), space)


def test_an_empty_shelf_has_nothing(study):
    running(study, 1)
    store = shelf_of(study)
    assert (store.batches, store.serial, store.next_place(0), store.taken_by(0)) == (
        [],
        0,
        None,
        None,
    )


def test_points_are_taken_in_order_and_once(study):
    trials = running(study, 4)
    store_batch(study, trials[2], SPACE, 0, POINTS)
    for trial, point in zip(trials, POINTS, strict=False):
        place = shelf_of(study).next_place(trial.number)
        store_claim(study, trial, place)
        assert shelf_of(study).taken_by(trial.number) == point
    store = shelf_of(study)
    assert store.claims == {n: Place(2, 0, n) for n in range(3)}
    assert store.next_place(3) is None
    assert store.serial == 1


def test_only_the_newest_batch_is_handed_out(study):
    first, second, third = running(study, 3)
    store_batch(study, first, SPACE, 0, POINTS)
    store_batch(study, second, SPACE, 1, [{"x": 0.9}])
    assert shelf_of(study).next_place(third.number) == Place(1, 1, 0)


def test_a_batch_of_another_space_is_not_seen(study):
    first, second = running(study, 2)
    store_batch(study, first, SPACE, 0, POINTS)
    store_claim(study, first, Place(0, 0, 0))
    wider = space_from_optuna({"x": FloatDistribution(0.0, 2.0)})
    store = shelf_of(study, wider)
    assert store.next_place(second.number) is None
    assert store.taken_by(first.number) is None
    assert store.serial == 1  # serials count the batches of all spaces


def test_where_somebody_is_already_nobody_is_sent(study):
    """A point of the batch was enqueued, run or told by the user in the meantime."""
    study.enqueue_trial({"x": 0.25})
    study.add_trial(optuna.create_trial(params={"x": 0.5}, distributions=X, value=1.0))
    (trial,) = running(study, 1)  # the enqueued one, now running
    (other,) = running(study, 1)
    store_batch(study, trial, SPACE, 0, POINTS)
    assert shelf_of(study).next_place(other.number) == Place(0, 0, 2)


def test_where_a_trial_is(study):
    """What it suggested counts more than what it was fixed to, and that more than what it took."""
    xy = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}
    space = space_from_optuna(xy)
    study.enqueue_trial({"y": 0.125})
    (trial,) = running(study, 1)
    assert shelf_of(study, space).point_of(trial) is None  # x is not known
    store_batch(study, trial, space, 0, [{"x": 0.5, "y": 0.5}])
    store_claim(study, trial, Place(0, 0, 0))
    store = shelf_of(study, space)
    assert store.point_of(store.trials[0]) == {"x": 0.5, "y": 0.125}
    study._storage.set_trial_param(trial._trial_id, "x", 0.75, xy["x"])
    store = shelf_of(study, space)
    assert store.point_of(store.trials[0]) == {"x": 0.75, "y": 0.125}


def test_a_point_taken_twice_is_contested(study):
    first, second, third = running(study, 3)
    store_batch(study, first, SPACE, 0, POINTS)
    store_batch(study, second, SPACE, 0, POINTS)  # a rival batch with the same points
    store_claim(study, first, Place(0, 0, 1))
    store_claim(study, second, Place(1, 0, 1))
    store_claim(study, third, Place(0, 0, 2))
    store = shelf_of(study)
    assert [store.contested(n) for n in range(3)] == [True, True, False]


def test_long_batches_are_cut_to_what_databases_hold(tmp_path):
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    study = optuna.create_study(storage=storage)
    choices = ['"quoted" ' * 40, "ünïcödé " * 60, None, True, 2.5]
    space = space_from_optuna({f"p{i}": CategoricalDistribution(choices) for i in range(20)})
    points = [{name: choices[(i + j) % 5] for j, name in enumerate(space.names)} for i in range(8)]
    (trial,) = running(study, 1)
    store_batch(study, trial, space, 0, points)
    store_claim(study, trial, Place(0, 0, 7))
    attributes = all_trials(study)[0].system_attrs
    assert len(attributes) > 20
    assert all(len(json.dumps(value)) <= 2045 for value in attributes.values())
    assert list(shelf_of(study, space).batches[0].points) == points
    assert shelf_of(study, space).taken_by(0) == points[7]
    storage.engine.dispose()


def test_a_batch_without_its_label_is_not_there(study):
    """The label is written last, so that half a batch is none."""
    (trial,) = running(study, 1)
    store_batch(study, trial, SPACE, 0, POINTS)
    attributes = all_trials(study)[0].system_attrs
    half = {key: value for key, value in attributes.items() if key != "covey:batch:0"}
    assert half
    study.add_trial(optuna.create_trial(value=0.0, system_attrs=half))
    assert [batch.trial for batch in shelf_of(study).batches] == [0]


# One trial at a time has its turn, whoever runs it


class Careless(Turns):
    """Does not look at the others' flags."""

    def _others(self, study, trial, trials):
        return {}


def flag_of(study, number):
    return all_trials(study)[number].system_attrs.get(FLAG)


def together(study, turns, count=2):
    """Whether all of some trials ever were in their turn at the same time."""
    meeting, met = threading.Barrier(count), []

    def work(trial):
        with turns.take(study, trial):
            try:
                meeting.wait(0.3)
                met.append(trial.number)
            except threading.BrokenBarrierError:
                pass

    workers = [threading.Thread(target=work, args=(t,)) for t in running(study, count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return len(met) == count


def test_two_trials_never_have_the_turn_together(study):
    assert not together(study, Turns(60.0))


def test_trials_that_do_not_look_would_be_caught(study):
    assert together(study, Careless(60.0))


def test_everybody_gets_a_turn_and_none_overlaps(study):
    """Twelve threads note down when they come and when they go."""
    turns, log = Turns(60.0), []

    def work(trial):
        with turns.take(study, trial):
            log.append(("in", trial.number))
            time.sleep(0.002)
            log.append(("out", trial.number))

    workers = [threading.Thread(target=work, args=(t,)) for t in running(study, 12)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(log) == 24
    for (came, first), (went, second) in zip(log[::2], log[1::2], strict=True):
        assert (came, went, first) == ("in", "out", second)
    assert {flag_of(study, number) for number in range(12)} == {DOWN}


def test_a_younger_trial_gives_way_until_the_older_is_done(study):
    older, younger = running(study, 2)
    set_flag(study, older, UP)
    entered = threading.Event()

    def work():
        with Turns(60.0).take(study, younger):
            entered.set()

    worker = threading.Thread(target=work)
    worker.start()
    assert not entered.wait(0.2)
    assert flag_of(study, younger.number) == HALF  # so that the older may go on
    set_flag(study, older, DOWN)
    assert entered.wait(5.0)
    worker.join()


def test_an_older_trial_keeps_its_flag_up_while_a_younger_finishes(study):
    older, younger = running(study, 2)
    set_flag(study, younger, UP)
    entered = threading.Event()

    def work():
        with Turns(60.0).take(study, older):
            entered.set()

    worker = threading.Thread(target=work)
    worker.start()
    assert not entered.wait(0.2)
    assert flag_of(study, older.number) == UP
    set_flag(study, younger, DOWN)
    assert entered.wait(5.0)
    worker.join()


def test_an_error_ends_the_turn(study):
    (trial,) = running(study, 1)

    def interrupted():
        with Turns(60.0).take(study, trial):
            assert flag_of(study, 0) == UP
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert flag_of(study, 0) == DOWN


def test_who_died_in_its_turn_is_left_behind_once(study, caplog):
    dead, first, second = running(study, 3)
    set_flag(study, dead, UP)
    turns = Turns(0.3)
    start = time.monotonic()
    with caplog.at_level(logging.WARNING, "covey"), turns.take(study, first):
        assert time.monotonic() - start > 0.3
    assert "trials [0] of study" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "covey"), turns.take(study, second):
        assert not caplog.records  # it has not lost patience: it did not wait


def test_who_died_waiting_is_left_behind_too(study):
    dead, alive = running(study, 2)
    set_flag(study, dead, HALF)
    with Turns(60.0).take(study, alive):  # it enters at once: nobody's flag is up
        pass
    leader, late = running(study, 2)
    set_flag(study, leader, UP)
    threading.Timer(0.3, set_flag, (study, leader, DOWN)).start()
    with Turns(60.0).take(study, late):
        assert flag_of(study, leader.number) == DOWN


def test_a_live_waiter_is_not_left_behind_with_the_dead(study):
    """All lose patience with the dead one together; then they must still take turns."""
    dead, *alive = running(study, 4)
    set_flag(study, dead, UP)
    inside, most = [], []

    def work(trial):
        with Turns(0.3).take(study, trial):
            inside.append(trial.number)
            time.sleep(0.05)
            most.append(len(inside))
            inside.remove(trial.number)

    workers = [threading.Thread(target=work, args=(trial,)) for trial in alive]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert most == [1, 1, 1]


def test_a_trial_marked_failed_is_not_waited_for(study, caplog):
    dead, alive = running(study, 2)
    set_flag(study, dead, UP)
    study.tell(dead.number, state=TrialState.FAIL)
    with caplog.at_level(logging.WARNING, "covey"), Turns(1.0).take(study, alive):
        assert not caplog.records  # it has not lost patience: it did not wait


# Where Optuna's trials are, in Covey's words


def test_values_of_every_kind_are_read():
    distributions = {
        "float": FloatDistribution(1e-3, 1.0, log=True),
        "step": FloatDistribution(0.0, 1.0, step=0.1),
        "int": IntDistribution(0, 12, step=3),
        "choice": CategoricalDistribution([None, True, "a", 2.5]),
    }
    space = space_from_optuna(distributions)
    params = {"float": 0.5, "step": 0.1 + 0.2, "int": 9, "choice": True, "other": 1}
    assert point_from_optuna(space, params) == {"float": 0.5, "step": 0.3, "int": 9, "choice": True}


def test_a_float_of_one_value_is_read():
    space = space_from_optuna({"x": FloatDistribution(1.0, 1.0)})
    assert point_from_optuna(space, {"x": 1.0}) == {"x": 1.0}


@pytest.mark.parametrize("value", [0.25, -0.1, 1.1, math.inf, math.nan, "a", None])
def test_what_is_off_the_grid_is_no_point(value):
    space = space_from_optuna({"x": FloatDistribution(0.0, 1.0, step=0.1)})
    with pytest.raises(SpaceError, match="parameter 'x'"):
        point_from_optuna(space, {"x": value})


def test_uneven_options_are_not_taken_for_a_grid():
    space = Space({"x": Choice([0.1, 1.0, 10.0], ordered=True)})
    assert point_from_optuna(space, {"x": 10.0}) == {"x": 10.0}
    with pytest.raises(SpaceError, match=r"5\.05 is not an option"):
        point_from_optuna(space, {"x": 5.05})


def test_a_stored_nan_is_the_same_choice():
    distribution = CategoricalDistribution([math.nan, 1.0])
    stored = json_to_distribution(distribution_to_json(distribution))
    space = space_from_optuna({"x": distribution})
    point = point_from_optuna(space, {"x": stored.choices[0]})
    assert space.encode([point]).tolist() == [[1.0, 0.0]]
    assert json.dumps(space.to_json(point)) == '{"x": {"option": 0}}'


def test_a_missing_parameter_is_named():
    space = space_from_optuna({"x": FloatDistribution(0, 1), "y": IntDistribution(0, 3)})
    with pytest.raises(SpaceError, match="the point has no 'y'"):
        point_from_optuna(space, {"x": 0.5, "z": 3})
