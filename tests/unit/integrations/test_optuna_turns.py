"""One trial at a time has its turn, whoever runs it."""

from __future__ import annotations

import logging
import threading
import time

import pytest

optuna = pytest.importorskip("optuna", reason="pip install 'covey[optuna]'")

from optuna.trial import TrialState

from covey.integrations.optuna_batches import DOWN, FLAG, HALF, UP, Turns, all_trials, set_flag


class Careless(Turns):
    """Does not look at the others' flags."""

    def _others(self, study, trial, trials):
        return {}


@pytest.fixture
def study():
    return optuna.create_study()


def running(study, count):
    numbers = [study.ask().number for _ in range(count)]
    return [all_trials(study)[number] for number in numbers]


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
    start = time.monotonic()
    with turns.take(study, second):
        assert time.monotonic() - start < 0.3


def test_who_died_waiting_is_left_behind_too(study):
    dead, alive = running(study, 2)
    set_flag(study, dead, HALF)
    with Turns(60.0).take(study, alive):  # it enters at once: nobody's flag is up
        pass
    leader, late = running(study, 2)
    set_flag(study, leader, UP)
    threading.Timer(0.3, set_flag, (study, leader, DOWN)).start()
    with Turns(0.5).take(study, late):
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


def test_a_trial_marked_failed_is_not_waited_for(study):
    dead, alive = running(study, 2)
    set_flag(study, dead, UP)
    study.tell(dead.number, state=TrialState.FAIL)
    start = time.monotonic()
    with Turns(60.0).take(study, alive):
        assert time.monotonic() - start < 5.0
