from __future__ import annotations

import inspect
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.doors.run.scripted import Scripted, nothing, value

import covey
from covey.errors import EvaluationError, JournalConflict, StrategyError
from covey.history import Failed, Told
from covey.log.running import running
from covey.run import Outcome
from covey.run.api import run
from covey.run.task import Retries

SPACE = covey.Space({"x": covey.Real(-1.0, 1.0)})


@pytest.fixture
def study(tmp_path):
    return covey.Study(SPACE, goal="min", seed=3, journal=tmp_path / "run.jsonl")


def test_the_signature_is_what_the_docs_say():
    given = inspect.signature(run).parameters
    assert list(given) == ["study", "f", "batch", "rounds", "workers", "options"]


def test_a_run_to_the_end(study):
    engine = Scripted(value)
    result = run(study, abs, batch=3, rounds=2, workers=engine)
    assert result.study is study
    assert (result.point, result.value) == (study.best.point, study.best.value)
    assert len(study.history.told) == 6
    assert study.history.rounds == 2
    assert not engine.closed


def test_one_run_at_a_time(study):
    with running(study.journal), pytest.raises(JournalConflict, match="is being run by process"):
        run(study, abs, workers=Scripted(value))
    assert len(study.history) == 0


def test_the_lock_is_free_afterwards(study):
    run(study, abs, batch=1, rounds=1, workers=Scripted(value))
    with running(study.journal):
        pass


def test_what_others_wrote_is_read_first(study):
    other = covey.Study.load(study.journal)
    other.enqueue([{"x": 0.5}])
    engine = Scripted(value)
    run(study, abs, batch=2, rounds=1, workers=engine)
    assert engine.tasks[0].point["x"] == 0.5
    assert len(study.history.told) == 3  # an enqueued point is no part of the budget


def test_what_was_lost_or_cancelled_does_not_count(study):
    study.cancel(study.ask(2))
    lost = iter([True, False, False, False, False])

    def answer(task):
        return [Outcome(task.name, "lost")] if next(lost) else value(task)

    run(study, abs, batch=2, rounds=2, workers=Scripted(answer), retries=Retries(lost=0))
    statuses = [trial.status for trial in study.history.trials]
    assert statuses.count("told") == 4
    assert (statuses.count("lost"), statuses.count("cancelled")) == (1, 2)


def test_timed_out_is_failed_and_told_when_it_comes_late(study):
    study.enqueue([{"x": -0.5}, {"x": 0.5}])

    def slow(point):
        time.sleep(0.5 if point["x"] == -0.5 else 0.04)
        return point["x"] ** 2

    with ThreadPoolExecutor(4) as pool:
        run(study, slow, batch=1, rounds=15, workers=pool, timeout=0.2)
    fates = [
        type(event).__name__
        for event in study.history.events
        if isinstance(event, Failed | Told) and event.ids == (0,)
    ]
    assert fates == ["Failed", "Told"]
    assert study.history.trial(0).value == 0.25
    assert len(study.history.told) == 17


@pytest.mark.parametrize("wrong", [3, "f", None])
def test_what_is_no_function_is_named(study, wrong):
    with pytest.raises(StrategyError, match=r"f is a function.*got"):
        run(study, wrong)


def test_a_study_of_failures_only_is_an_error(study):
    study.fail(study.ask(1))
    with pytest.raises(EvaluationError, match="no evaluation succeeded"):
        run(study, abs, batch=1, rounds=1, workers=Scripted(nothing))
