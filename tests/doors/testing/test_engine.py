"""The contract of engines catches each defect it speaks of (sound ones: `doors/run`)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.doors.testing.verdict import failed

from covey.run import FuturesEngine, Outcome
from covey.testing import EngineContract


class Sound(FuturesEngine):
    """Two threads."""

    def __init__(self):
        super().__init__(ThreadPoolExecutor(2), owned=True)


class NoSlots(Sound):
    slots = 0


class Bounded(Sound):
    """Values come back by another name."""

    def poll(self, seconds):
        return [replace(found, name="covey-00000000-0-a1") for found in super().poll(seconds)]


class SaysItTwice(Sound):
    last = ()

    def poll(self, seconds):
        found = super().poll(seconds) or list(self.last)
        self.last = found
        return found


class BlamesThePoint(Sound):
    def poll(self, seconds):
        return [
            replace(found, status="failed") if found.status == "lost" else found
            for found in super().poll(seconds)
        ]


class BlamesTheMachine(Sound):
    def poll(self, seconds):
        return [
            replace(found, status="lost") if found.status == "failed" else found
            for found in super().poll(seconds)
        ]


class KnowsNoLimit(Sound):
    def submit(self, task):
        super().submit(replace(task, timeout=None))


class GivesEveryoneOneSeed(Sound):
    def submit(self, task):
        super().submit(replace(task, seed=0))


class DoesNotCancel(Sound):
    def cancel(self, names):
        pass


class CancelsInSilence(Sound):
    def cancel(self, names):
        super().cancel(names)
        self._ready.clear()


class MindsStrangers(Sound):
    def cancel(self, names):
        known = {ticket.task.name for ticket in self._open.values()}
        assert set(names) <= known
        super().cancel(names)


class WaitsForAsLongAsItTakes(Sound):
    def poll(self, seconds):
        return super().poll(60.0 if self._open else seconds)


class DoesNotWait(Sound):
    def poll(self, seconds):
        return super().poll(0.0)


class AdoptsEverybody(Sound):
    def adopt(self, tasks):
        return {task.name for task in tasks}


class BringsWhatItDidNotAdopt(Sound):
    def adopt(self, tasks):
        self._ready += [Outcome(task.name, "lost") for task in tasks]
        return set()


def contract_of(engine, **promises):
    made = {"make_engine": lambda self, folder: engine(), "patience": 3.0, **promises}
    return type("Contract", (EngineContract,), made)


@pytest.mark.parametrize(
    ("engine", "named"),
    [
        (NoSlots, "test_it_has_what_a_run_asks_for"),
        (Bounded, "test_values_come_back_each_under_its_name_and_once"),
        (SaysItTwice, "test_values_come_back_each_under_its_name_and_once"),
        (BlamesThePoint, "test_a_loss_is_not_the_points_doing"),
        (BlamesTheMachine, "test_a_failure_is_the_points_doing"),
        (KnowsNoLimit, "test_beyond_its_time_limit_it_is_timed_out"),
        (GivesEveryoneOneSeed, "test_points_and_seeds_arrive_as_they_are"),
        (DoesNotCancel, "test_what_is_cancelled_comes_back_as_lost"),
        (CancelsInSilence, "test_what_is_cancelled_comes_back_as_lost"),
        (MindsStrangers, "test_what_is_cancelled_comes_back_as_lost"),
        (WaitsForAsLongAsItTakes, "test_it_waits_no_longer_than_it_was_told"),
        (DoesNotWait, "test_it_waits_no_longer_than_it_was_told"),
        (AdoptsEverybody, "test_the_next_engine_finds_what_this_one_left_or_says_not"),
        (AdoptsEverybody, "test_what_was_never_handed_out_is_not_adopted"),
        (BringsWhatItDidNotAdopt, "test_the_next_engine_finds_what_this_one_left_or_says_not"),
        (GivesEveryoneOneSeed, "test_a_run_is_the_same_as_with_threads"),
    ],
)
def test_a_defect_is_caught(engine, named, tmp_path):
    assert failed(contract_of(engine), tmp_path, only=[named]) == {named}


@pytest.mark.parametrize(
    ("promise", "named"),
    [
        ("own_process", "test_what_is_cancelled_ends"),
        ("own_process", "test_beyond_its_time_limit_it_is_timed_out"),
        ("found_again", "test_the_next_engine_finds_what_this_one_left_or_says_not"),
    ],
)
def test_what_is_promised_and_not_kept_is_caught(promise, named, tmp_path):
    assert failed(contract_of(Sound, **{promise: True}), tmp_path, only=[named]) == {named}
