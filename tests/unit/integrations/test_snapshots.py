"""Snapshots of a study."""

from __future__ import annotations

import threading

import pytest

import covey
from covey import Integer, Pool, Real, Space, Study
from covey.baselines import Random
from covey.errors import JournalError, SpaceError, StrategyError
from covey.integrations.snapshots import revive, snapshot
from covey.log.journal import Journal
from covey.space import Choice

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


def test_an_excluded_result_stays_excluded_in_a_snapshot():
    study = eventful()
    study.exclude(1, "wet")
    again, _ = revive(snapshot(study, "auto", {}), "here", None, None)
    assert [trial.id for trial in again.history.trials if trial.excluded] == [1]
    assert again.ask(2) == study.ask(2)
