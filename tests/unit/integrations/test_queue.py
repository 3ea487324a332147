"""The queue that hands out points of a batch, and snapshots of a study."""

from __future__ import annotations

import copy
import logging
import math
import pickle
import threading

import pytest

import covey
from covey import Integer, Pool, Real, Space, Study
from covey.baselines import Random
from covey.errors import ExhaustedError, JournalError, SpaceError, StrategyError
from covey.integrations.queue import TrialQueue, revive, snapshot
from covey.log.journal import Journal
from covey.space import Choice

# Each point goes to one run, and the queue waits for the batch or does not


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


# A study and its snapshot go on alike


MIXED = Space({"x": Real(0, 1), "n": Integer(1, 4), "kind": Choice(["a", "b"])})


def eventful(space: Space | Pool = MIXED, strategy: str = "auto") -> Study:
    """A study to which everything has happened."""
    study = Study(space, "min", strategy, seed=3)
    batch = study.ask(4)
    study.tell(batch[:2], [0.5, 0.25], sem=0.1)
    study.fail(batch[2], "it crashed")
    study.cancel(batch[3])
    study.amend(batch[0], 0.75, "misread")
    study.add([batch[3].point], [1.0])
    study.enqueue([batch[3].point])
    study.ask(2)
    return study


def test_a_revived_study_has_the_process_it_had():
    gp = covey.GP("squared-exponential", noise=0.1)
    study = Study(MIXED, "min", "bucb", seed=3, gp=gp)
    study.tell(study.ask(4), [1.0, 2.0, 0.5, 0.1])
    again, _ = revive(snapshot(study, "bucb", {}), "a file", None, None)
    assert again.recipe.gp == gp
    assert again.ask(3) == study.ask(3)


def test_a_revived_study_goes_on_as_if_nothing_had_happened():
    study = eventful()
    again, header = revive(snapshot(study, "auto", {"host": 1}), "a file", None, None)
    assert again.history.events == study.history.events
    assert (again.space, again.goal, again.seed) == (MIXED, "min", 3)
    assert header["notes"] == {"host": 1}
    assert again.ask(3) == study.ask(3)


def test_the_strategy_is_that_of_the_snapshot_unless_another_is_given():
    data = snapshot(eventful(strategy="thompson"), "thompson", {})
    assert "thompson" in repr(revive(data, "a file", None, None)[0])
    assert "sobol" in repr(revive(data, "a file", None, "sobol")[0])


def test_a_strategy_object_must_be_given_again():
    data = snapshot(eventful(), Random(), {})
    with pytest.raises(StrategyError, match=r"strategy object \(Random\)"):
        revive(data, "a file", None, None)
    assert "Random" in repr(revive(data, "a file", None, Random())[0])


def test_a_snapshot_is_a_journal(tmp_path):
    study = eventful()
    path = tmp_path / "run.jsonl"
    path.write_bytes(snapshot(study, "auto", {}))
    assert Study.load(path).history.events == study.history.events


def test_options_that_are_no_scalars_come_back():
    space = Space({"layers": Choice([[64, 64], [128]]), "x": Real(0, 1)})
    again, _ = revive(snapshot(eventful(space), "auto", {}), "a file", None, None)
    assert again.space == space


class Stubborn:
    """An option with a lock inside, which no pickle takes."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


class Late:
    """An option whose class will be gone."""


def test_what_cannot_be_pickled_must_be_given_again():
    space = Space({"model": Choice([Stubborn(), Stubborn()])})
    study = Study(space, seed=0)
    study.ask(1)
    data = snapshot(study, "auto", {})
    with pytest.raises(SpaceError, match="pass `space=` again"):
        revive(data, "a file", None, None)
    assert revive(data, "a file", space, None)[0].history.events == study.history.events


def test_what_cannot_be_unpickled_must_be_given_again(monkeypatch):
    Late.__module__, Late.__qualname__ = "covey", "Late"
    monkeypatch.setattr(covey, "Late", Late, raising=False)
    space = Space({"model": Choice([Late()])})
    data = snapshot(Study(space, seed=0), "auto", {})
    monkeypatch.delattr(covey, "Late")
    with pytest.raises(SpaceError, match="the space in a file cannot be unpickled"):
        revive(data, "a file", None, None)


def test_a_pool_in_memory_must_be_given_again():
    pool = Pool([{"x": i / 10} for i in range(10)])
    study = Study(pool, seed=0)
    study.tell(study.ask(2), [1.0, 2.0])
    data = snapshot(study, "auto", {})
    with pytest.raises(SpaceError, match="pass `space=` again"):
        revive(data, "a file", None, None)
    assert revive(data, "a file", pool, None)[0].ask(2) == study.ask(2)


def test_another_space_is_refused():
    data = snapshot(eventful(), "auto", {})
    with pytest.raises(JournalError, match="a file belongs to a search of another space"):
        revive(data, "a file", Space({"x": Real(0, 2)}), None)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "a file is empty"),
        (b"\x80\x04pickle", "a file is not a covey journal"),
        (snapshot(eventful(), "auto", {}).replace(b'"seed":3', b'"seed":4'), "line 1 .* damaged"),
        (snapshot(eventful(), "auto", {}).replace(b"0.25", b"0.35"), "line 3 .* damaged"),
    ],
)
def test_a_damaged_snapshot_says_so(data, said):
    with pytest.raises(JournalError, match=said):
        revive(data, "a file", None, None)


def test_the_journal_of_any_study_will_do(tmp_path):
    study = Study(MIXED, seed=0, journal=tmp_path / "run.jsonl")
    study.tell(study.ask(2), [1.0, 2.0])
    again, header = revive((tmp_path / "run.jsonl").read_bytes(), "a file", None, None)
    assert header["notes"] == {}
    assert again.ask(2) == study.ask(2)


def test_another_journal_will_not(tmp_path):
    Journal.create(tmp_path / "run.jsonl", {"of": "something else"}).close()
    with pytest.raises(JournalError, match="a file is not the journal of a study"):
        revive((tmp_path / "run.jsonl").read_bytes(), "a file", MIXED, None)


# Retried trials


@pytest.mark.parametrize("revived", [False, True])
def test_a_retried_trial_goes_to_another_run(revived):
    out = handout()
    first = [out.next(run, batch=2) for run in "ab"]
    out.fail("a", "a typo")
    out.tell("b", 1.0)
    if revived:
        out = pickle.loads(pickle.dumps(out))
    out.study.retry(0)
    if revived:
        out = pickle.loads(pickle.dumps(out))
    again = out.next("c", batch=2)
    assert (again.id, again.point) == (0, first[0].point)
    assert out.next("d", batch=2) is None  # which waits for it
    out.end("a")  # its host ends the first run once more
    assert statuses(out) == ["pending", "told"]
    out.tell("c", 2.0)
    assert statuses(out) == ["told", "told"]
    assert out.next("d", batch=2).id == 2


def test_an_excluded_result_stays_excluded_in_a_snapshot():
    out = handout()
    for run in "ab":
        out.next(run, batch=2)
        out.tell(run, 1.0)
    out.study.exclude(1, "wet")
    study = TrialQueue.revive(out.snapshot(), "here")[0].study
    assert [trial.excluded for trial in study.history.trials] == [False, True]
    assert study.ask(2) == out.study.ask(2)
