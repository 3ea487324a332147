"""A handout gives each point to one run, and waits for the batch or does not."""

from __future__ import annotations

import copy
import logging
import math
import pickle

import pytest

from covey import Integer, Real, Space, Study
from covey.errors import ExhaustedError
from covey.integrations.queue import TrialQueue

SPACE = Space({"x": Real(0, 1)})


def handout(space: Space = SPACE) -> TrialQueue:
    return TrialQueue(Study(space, seed=0))


def statuses(out: TrialQueue) -> list[str]:
    return [trial.status for trial in out.study.history.trials]


def test_a_batch_goes_out_one_by_one_and_is_waited_for():
    out, alone = handout(), Study(SPACE, seed=0)
    for _ in range(3):
        batch = alone.ask(3)
        given = [out.next(f"run {trial.id}", batch=3) for trial in batch]
        assert given == batch
        for trial in given[::-1]:
            assert out.next("another", batch=3) is None
            out.tell(f"run {trial.id}", trial.point["x"])
        alone.tell(batch, [trial.point["x"] for trial in batch])


def test_without_waiting_the_next_batch_knows_what_is_running():
    out, alone = handout(), Study(SPACE, seed=0)
    first = alone.ask(2)
    assert [out.next(run, 2, wait=False) for run in "ab"] == first
    out.tell("a", 1.0)
    alone.tell(first[0], 1.0)
    assert [out.next(run, 2, wait=False) for run in "cd"] == alone.ask(2)
    assert statuses(out) == ["told", "pending", "pending", "pending"]


def test_a_run_that_asks_again_gets_the_same():
    out = handout()
    assert out.next("a", 2) == out.next("a", 2)
    assert "a" in out
    assert "b" not in out


def test_points_of_ones_own_go_first():
    out = handout()
    out.study.enqueue([{"x": 0.5}, {"x": 0.25}])
    assert [out.next(run, 2).point["x"] for run in "ab"] == [0.5, 0.25]
    assert out.next("c", 2) is None


@pytest.mark.parametrize("value", [math.nan, math.inf, None, "0.5", True, [1.0], 1e200])
def test_what_is_no_finite_number_is_a_failure(value, caplog):
    out = handout()
    out.next("a", 1)
    with caplog.at_level(logging.WARNING, logger="covey"):
        out.tell("a", value)
    assert statuses(out) == ["failed"]
    assert "run a at {'x':" in caplog.text


def test_a_result_is_taken_once_and_late_is_better_than_never():
    out = handout()
    for run in "abc":
        out.next(run, 3)
    out.tell("a", 1.0)
    out.tell("a", 2.0)
    out.fail("a", "too late")
    out.fail("b", "it crashed")
    out.fail("b", "again")
    out.tell("b", 3.0)
    out.end("c")
    out.end("c")
    out.tell("c", math.nan)
    assert [trial.value for trial in out.study.history.trials] == [1.0, 3.0, None]
    assert statuses(out) == ["told", "told", "cancelled"]


def test_a_run_that_is_ended_counts_with_what_was_heard_last():
    out = handout()
    for run in "abcd":
        out.next(run, 4)
    for value in (3.0, 2.0, math.nan, None, "high"):
        out.report("a", value)
    out.report("b", 1.0)
    out.fail("b", "it crashed")
    out.report("d", 4.0)
    out.tell("d", 5.0)
    for run in "abcd":
        out.end(run)
    assert statuses(out) == ["told", "failed", "cancelled", "told"]
    assert [t.value for t in out.study.history.trials] == [2.0, None, None, 5.0]


def test_when_the_host_is_gone_its_runs_are_free_again():
    out = handout()
    for run in "abc":
        out.next(run, 4)
    out.tell("a", 1.0)
    out.report("b", 0.5)
    out.cancel_all()
    assert statuses(out) == ["told", "cancelled", "cancelled", "pending"]
    assert out.next("d", 4).id == 3  # what was never given out is still good


def test_the_last_points_of_a_finite_space_and_then_no_more():
    out = handout(Space({"n": Integer(1, 5)}))
    seen = set()
    for i in range(5):
        seen.add(out.next(f"{i}", 3).point["n"])
        out.tell(f"{i}", 0.0)
    assert seen == {1, 2, 3, 4, 5}
    with pytest.raises(ExhaustedError):
        out.next("more", 3)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda out: pickle.loads(pickle.dumps(out))])
def test_a_copy_goes_on_alike_and_apart(copied):
    out = handout()
    for run in "abc":
        out.next(run, 4)
    out.tell("a", 1.0)
    out.report("b", 0.5)
    again = copied(out)
    for one in (out, again):
        one.end("b")
        one.fail("c", "it crashed")
        assert one.next("d", 4).id == 3
        one.tell("d", 0.25)
    assert again.study.history.events == out.study.history.events
    assert again.next("e", 4) == out.next("e", 4)
