"""When a run is over: by evaluations, hours, cost, a target or a plateau."""

from __future__ import annotations

import itertools
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from tests.doors.run.scripted import Scripted

import covey
from covey.errors import StrategyError
from covey.history import Asked, Failed, History, Point, Told
from covey.outcomes import Outcomes
from covey.run import Outcome, Retries, run
from covey.run.budget import Budget, ended_in_order, spent
from covey.run.plan import Plan
from covey.run.standing import Tempo, failing_alike

SPACE = covey.Space({"x": covey.Real(-1.0, 1.0)})
POINTS = tuple(Point(x=i / 10) for i in range(10))


def in_threads(study, f, **options):
    with ThreadPoolExecutor(2) as threads:
        return run(study, f, workers=threads, **options)


def new(**options):
    return covey.Study(SPACE, strategy="random", seed=0, **options)


# ---------------------------------------------------------------- what may be said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"evaluations": 0}, "evaluations must be a whole number >= 1, or None; got 0"),
        ({"evaluations": 2.5}, "evaluations must be"),
        ({"plateau": True}, "plateau must be"),
        ({"hours": 0}, "hours must be a number > 0"),
        ({"hours": float("nan")}, "hours must be a number > 0"),
        ({"hours": "2"}, "hours must be a number > 0"),
        ({"cost": {}}, r"cost is the name of an outcome"),
        ({"cost": ""}, r"cost is the name of an outcome"),
        ({"cost": {"dollars": 0}}, r"got \{'dollars': 0\}"),
        ({"cost": {"dollars": 5, "hours": 2}}, "cost is the name"),
        ({"cost": 50}, "cost is the name"),
        ({"target": "high"}, "target is a number"),
        ({"target": float("inf")}, "target is a number"),
        ({"target": {}}, "target is a number"),
        ({"rounds": 3, "evaluations": 3}, "say the same in two ways"),
        ({"progress": "yes"}, "progress is True, False or None"),
        ({"hour": 2}, "Did you mean 'hours'"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_asked(options, said):
    study = new()
    with pytest.raises(StrategyError, match=said):
        run(study, abs, **options)
    assert len(study.history) == 0


def test_a_target_fits_the_goals():
    two = Outcomes.of({"a": "max", "b": "min"})
    Budget(target={"a": 1, "b": 2}).check(two)
    Budget(target=1.0).check(Outcomes.of("max"))
    with pytest.raises(StrategyError, match=r"several goals, .*'a': ..., 'b': ..."):
        Budget(target=1.0).check(two)
    with pytest.raises(StrategyError, match=r"names every goal \(a, b\)"):
        Budget(target={"a": 1}).check(two)
    with pytest.raises(StrategyError, match=r"names every goal \(value\)"):
        Budget(target={"yield": 1}).check(Outcomes.of("max"))


def test_how_many_evaluations_that_is():
    assert Plan().total == 160
    assert Plan(batch=3, rounds=2).total == 6
    assert Plan(evaluations=10).total == 10
    assert Plan(target=1.0).total == 160  # it may never be reached
    assert Plan(cost="dollars").total == 160  # only shown
    for ends in ({"hours": 1}, {"plateau": 5}, {"cost": {"dollars": 5}}):
        assert Plan(**ends).total is None
        assert Plan(batch=2, rounds=3, **ends).total == 6


# ---------------------------------------------------------------- when it is over


def test_so_many_evaluations_the_last_batch_is_smaller():
    study = new()
    result = in_threads(study, lambda p: p["x"], batch=4, evaluations=10)
    assert [len(batch.ids) for batch in study.history.batches] == [4, 4, 2]
    assert result.ended == ""


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_target_ends_it_and_what_runs_is_waited_for(asynchronous):
    study, options = new(), {"asynchronous": asynchronous, "batch": 4}
    result = in_threads(study, lambda p: p["x"], target=0.5, **options)
    assert result.value >= 0.5
    said, id = result.ended.rsplit(" ", 1)
    assert said == "the target 0.5 is reached by trial"
    assert study.history.trial(int(id)).value >= 0.5
    assert len(study.history) < 160
    before = len(study.history.events)
    again = in_threads(study, lambda p: p["x"], target=0.5, **options)
    assert again.ended.startswith(said)  # perhaps by a better one, which was waited for
    new_values = [t for t in study.history.told if t.value >= 0.5]
    assert len(study.history.events) - before <= 4  # what was pending, if anything
    assert new_values


def test_what_is_lost_when_it_is_over_stays_pending():
    """It would be tried again, if the run went on."""

    def answer(task):
        return [Outcome(task.name, *(("succeeded", 1.0) if task.id == 0 else ("lost",)))]

    study, engine = new(), Scripted(answer, one_by_one=True)
    result = run(study, abs, batch=3, workers=engine, target=0.5, retries=Retries(wait=0.0))
    assert "reached by trial 0" in result.ended
    assert [task.id for task in engine.tasks] == [0, 1, 2]
    assert [trial.status for trial in study.history.trials] == ["told", "pending", "pending"]


def test_a_target_of_a_study_that_minimises_and_of_several_goals():
    study = covey.Study(SPACE, "min", "random", 0)
    assert in_threads(study, lambda p: p["x"], batch=2, target=-0.5).value <= -0.5
    study = covey.Study(SPACE, {"a": "max", "b": "min"}, "random", 0)
    result = in_threads(
        study, lambda p: {"a": p["x"], "b": abs(p["x"])}, batch=2, target={"a": 0.1, "b": 0.6}
    )
    assert any(t.values["a"] >= 0.1 and t.values["b"] <= 0.6 for t in study.front)
    assert "the target a 0.1, b 0.6 is reached" in result.ended


def test_hours_end_it_and_leave_what_is_queued_pending(monkeypatch):
    """Each evaluation takes twenty minutes of the hour."""
    now = [0.0]
    monkeypatch.setattr("covey.run.loop.time", SimpleNamespace(monotonic=lambda: now[0]))

    def answer(task):
        now[0] += 1200.0
        return [Outcome(task.name, "succeeded", 1.0)]

    study = new()
    result = run(study, abs, batch=2, workers=Scripted(answer, 1, one_by_one=True), hours=1.0)
    assert result.ended == "1 hours are over"
    assert [trial.status for trial in study.history.trials] == ["told"] * 3 + ["pending"]


def test_hours_start_nothing_more(tmp_path):
    study = new(journal=tmp_path / "run.jsonl")
    run(study, lambda p: time.sleep(0.6) or 1.0, batch=6, workers=1, hours=0.5 / 3600.0)
    assert 1 <= len(study.history.told) <= 2
    assert len(study.history.pending) == 6 - len(study.history.told)
    run(study, lambda p: 1.0, batch=6, workers=4, rounds=1)
    assert len(study.history.told) == 6


def test_what_is_spent_ends_it():
    study, seen = new(), []
    result = in_threads(
        study,
        lambda p: {"value": p["x"], "dollars": 1.5},
        batch=2,
        cost={"dollars": 7.0},
        watch=seen.append,
    )
    assert spent(study.history, "dollars")[0] == 9.0  # a batch at a time
    assert result.ended.endswith("of 7 dollars are spent")
    assert max(progress.spent for progress in seen) == 9.0


def test_a_cost_may_be_an_outcome_and_failures_have_none():
    study = covey.Study(SPACE, {"value": "max"}, "random", 0, limits={"cost": ("<=", 5.0)})

    def f(point):
        if point["x"] < -0.5:
            raise ValueError("too low")
        return {"value": point["x"], "cost": 2.0}

    result = in_threads(study, f, batch=2, cost={"cost": 8})
    assert result.ended.endswith("of 8 cost are spent")
    told = len(study.history.told)
    assert spent(study.history, "cost") == (2.0 * told, told, 0)


def test_a_cost_that_nobody_returns_is_said_and_does_not_run_for_ever():
    study = new()
    result = in_threads(study, lambda p: {"value": 1.0, "odd": "?"}, batch=2, cost={"odd": 1})
    assert "none of 4 results has 'odd', so what is spent is not known" in result.ended
    assert len(study.history) == 4


def test_a_plateau_ends_it():
    study = new()
    result = in_threads(study, lambda p: -abs(p["x"]), batch=1, plateau=7)
    ended = ended_in_order(study.history)
    assert len(ended) - 1 - ended.index(study.best.id) == 7
    assert result.ended == "the last 7 evaluations brought nothing better"


def test_failures_are_part_of_a_plateau_and_earlier_results_are_not():
    events = [Asked(POINTS, "random"), Told((3,), (5.0,)), Told((1,), (4.0,)), Failed((2,), "no")]
    study = new()
    for event in events:
        study.note(event)
    assert ended_in_order(study.history) == [3, 1, 2]
    assert Budget(plateau=2).reached(study, 0.0)
    assert not Budget(plateau=3).reached(study, 0.0)
    study.tell(0, 6.0)
    assert not Budget(plateau=1).reached(study, 0.0)
    assert not Budget(plateau=1).reached(new(), 0.0)


# ---------------------------------------------------------------- how long the rest takes


def test_the_time_left_never_grows_while_one_waits():
    for batch in (None, 4, 6):
        pace = Tempo(10.0, 4, batch)
        waits = [pace.left([0.5 * i, 0.5 * i + 2.0], 3, 9) for i in range(60)]
        assert all(later <= earlier for earlier, later in itertools.pairwise(waits))
        assert waits[0] > waits[30]


@pytest.mark.parametrize("batch", [None, 3, 5, 8])
@pytest.mark.parametrize("wide", [1, 2, 4, 8])
def test_the_time_left_is_that_of_a_run_played_out(wide, batch):
    """Against a clock that ticks: every second each place works, and a free one takes the next."""
    one, elapsed, queued, later = 4, [3, 1][:wide], 2, 11
    left, seconds = [one - e for e in elapsed], 0
    rest, waiting = later, queued
    while left or waiting or rest:
        if batch is None:
            waiting, rest = waiting + rest, 0
        elif not left and not waiting:
            waiting, rest = min(batch, rest), rest - min(batch, rest)
        while waiting and len(left) < wide:
            left.append(one)
            waiting -= 1
        seconds += 1
        left = [n - 1 for n in left if n > 1]
    assert Tempo(one, wide, batch).left(elapsed, queued, later) == seconds


# ---------------------------------------------------------------- a program that breaks


def failing(*reasons: str | None) -> History:
    history = History().then(Asked(POINTS, "random"))
    for id, reason in enumerate(reasons):
        event = Told((id,), (1.0,)) if reason is None else Failed((id,), reason)
        history = history.then(event)
    return history


@pytest.mark.parametrize(
    ("reasons", "count"),
    [
        ((), 0),
        ((None, "a", "a"), 0),
        ((None, "trial 1 broke", "trial 2 broke", "trial 3 broke"), 3),
        (("a", None, "a", "a", "a", "a"), 4),
        (("b", "a", "a", "a"), 3),
        (("a", "a", "a", None), 0),
        (("a", "a", "b"), 0),
        (("", "", ""), 3),
    ],
)
def test_failing_alike(reasons, count):
    said = failing_alike(failing(*reasons))
    if not count:
        assert said == ""
    else:
        assert said.startswith(f"the last {count} evaluations in a row failed alike: ")
        assert said.endswith(reasons[-1] or "nobody said why")


def test_a_program_that_breaks_half_way_does_not_end_in_silence(caplog):
    study, seen = new(), []

    def f(point):
        if len(study.history.told) >= 3:
            raise RuntimeError("no CUDA-capable device is detected")
        return point["x"]

    with caplog.at_level(logging.WARNING, logger="covey"), ThreadPoolExecutor(1) as threads:
        run(study, f, batch=2, rounds=5, workers=threads, watch=seen.append)
    said = "evaluations in a row failed alike: RuntimeError: no CUDA-capable device is detected"
    assert said in caplog.messages[-1]
    assert said in seen[-1].trouble
    assert seen[0].trouble == ""
