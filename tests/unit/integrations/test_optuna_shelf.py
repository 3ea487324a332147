"""Batches in the attributes of trials, and the points taken from them."""

from __future__ import annotations

import json

import pytest

optuna = pytest.importorskip("optuna", reason="pip install 'covey[optuna]'")

from optuna.distributions import CategoricalDistribution, FloatDistribution

from covey.integrations.optuna_batches import (
    BatchStore,
    Place,
    all_trials,
    store_batch,
    store_claim,
)
from covey.integrations.spaces.optuna import space_from_optuna

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
