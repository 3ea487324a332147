"""`maximize`, `run`, and what they accept as workers."""

from __future__ import annotations

import inspect
import logging
import math
import multiprocessing
import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.doors.run.scripted import Scripted, nothing, value

import covey
from covey.errors import EvaluationError, JournalConflict, StrategyError
from covey.history import Failed, Told
from covey.log.running import running
from covey.run import Command, LocalEngine, Outcome, api
from covey.run.api import check_workers, engine_for, run, work_folder
from covey.run.remote import FuturesEngine
from covey.run.task import Function, Retries

SPACE = covey.Space({"x": covey.Real(-1.0, 1.0)})


def bowl(point):
    return point["x"] ** 2


@pytest.fixture
def threads():
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_maximize_and_minimize(threads):
    low = covey.minimize(bowl, SPACE, batch=4, rounds=4, seed=0, workers=threads)
    assert low.value < 1e-3
    assert low.value == bowl(low.point)
    high = covey.maximize(bowl, SPACE, batch=4, rounds=4, seed=0, workers=threads)
    assert high.value > 0.99
    assert len(high.study.history.told) == 16


def test_the_number_and_kind_of_workers_do_not_matter(threads, processes):
    def slow(point):
        time.sleep(0.05 * abs(point["x"]))
        return point["x"] ** 2

    runs = [
        covey.minimize(slow, SPACE, batch=3, rounds=3, workers=workers, seed=1)
        for workers in (1, 3, threads, processes)
    ]
    trials = [[(t.point, t.value) for t in run.study.history.trials] for run in runs]
    assert trials[0] == trials[1] == trials[2] == trials[3]


def test_evaluations_run_in_parallel(threads):
    together = threading.Barrier(3, timeout=60.0)

    def f(point):
        together.wait()
        return bowl(point)

    assert covey.minimize(f, SPACE, batch=3, rounds=1, workers=threads, seed=0).value >= 0.0


def test_processes_run_in_parallel(tmp_path):
    def f(point):
        (tmp_path / str(os.getpid())).touch()
        for _ in range(5000):
            if len(list(tmp_path.iterdir())) == 3:
                return 1.0
            time.sleep(0.02)
        return 0.0

    assert covey.minimize(f, SPACE, batch=3, rounds=1, workers=3, seed=0).value == 1.0


def test_an_executor_of_ones_own_stays_open(processes):
    result = covey.minimize(bowl, SPACE, batch=2, rounds=2, workers=processes, seed=0)
    assert processes.submit(abs, -1).result() == 1
    assert len(result.study.history.told) == 4


def test_failures_become_failed_trials(caplog, threads):
    def fragile(point):
        if point["x"] > 0.0:
            raise OSError("no such sample")
        return math.nan if point["x"] > -0.2 else bowl(point)

    with caplog.at_level(logging.WARNING, logger="covey"):
        result = covey.maximize(fragile, SPACE, batch=8, rounds=2, seed=0, workers=threads)
    failed = result.study.history.failed
    assert failed
    assert all(t.point["x"] > -0.2 for t in failed)
    assert "no such sample" in caplog.text
    assert result.study.history.pending == ()


def test_a_batch_that_fails_whole_stops_the_run():
    def broken(point):
        raise KeyError("oops")

    with pytest.raises(EvaluationError, match=r"all 3 evaluations.*oops.*Try f\(") as caught:
        covey.maximize(broken, SPACE, batch=3, rounds=2, seed=0)
    assert "in broken" in caught.value.__notes__[0]  # the traceback, from the other process


def test_what_was_told_is_not_lost_with_a_run_that_stops(threads):
    """Without a journal the error is all that is left of it."""
    count = iter(range(100))

    class Gone(ThreadPoolExecutor):
        def submit(self, *args):
            if next(count) >= 4:
                raise RuntimeError("cannot schedule new futures")
            return super().submit(*args)

    with Gone(1) as pool, pytest.raises(EvaluationError, match="takes nothing more") as caught:
        covey.maximize(bowl, SPACE, batch=4, rounds=3, seed=0, workers=pool)
    assert len(caught.value.study.history.told) == 4
    assert caught.value.result.value == caught.value.study.best.value


def test_ctrl_c_carries_the_study_too(threads):
    def watch(progress):
        if progress.done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        covey.maximize(bowl, SPACE, batch=2, rounds=3, seed=0, workers=threads, watch=watch)
    assert len(caught.value.study.history.told) == 2


def test_a_broken_run_takes_up_what_was_pending(tmp_path, threads):
    path = tmp_path / "run.jsonl"
    covey.Study(SPACE, seed=0, journal=path).ask(3)  # as if the machine had died here
    result = covey.maximize(bowl, SPACE, batch=3, rounds=2, journal=path, workers=threads)
    assert [t.status for t in result.study.history.trials] == ["told"] * 6


def test_a_finished_run_is_not_begun_again(tmp_path, threads):
    path = tmp_path / "run.jsonl"
    first = covey.maximize(bowl, SPACE, batch=3, rounds=1, journal=path, seed=0, workers=threads)
    second = covey.maximize(bowl, SPACE, batch=3, rounds=1, journal=path, workers=threads)
    assert len(second.study.history) == 3
    assert second.value == first.value


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch": 0},
        {"rounds": True},
        {"batch": 2.5},
        {"workers": 0},
        {"workers": "many"},
        {"workers": True},
        {"timeout": 0.0},
        {"timeout": "1h"},
        {"retries": -1},
        {"watch": 5},
    ],
)
def test_bad_sizes_are_named(wrong, tmp_path):
    with pytest.raises(StrategyError, match="got"):
        covey.maximize(bowl, SPACE, **wrong, journal=tmp_path / "run.jsonl")
    assert list(tmp_path.iterdir()) == []  # and leave no file


def test_an_unknown_option_is_named():
    with pytest.raises(StrategyError, match=r"'timeot'.*Did you mean 'timeout'"):
        covey.maximize(bowl, SPACE, timeot=3)


def test_a_small_pool_is_run_to_its_end(threads):
    pool = covey.Pool([{"a": i} for i in range(10)])
    for asynchronous in (False, True):
        result = covey.maximize(
            lambda p: -abs(p["a"] - 7),
            *(pool,),
            batch=4,
            rounds=5,
            seed=0,
            workers=threads,
            asynchronous=asynchronous,
        )
        assert result.point == {"a": 7}
        assert len(result.study.history.told) == 10


@pytest.mark.parametrize("kind", ["local", "pool"])
def test_what_cannot_be_sent_to_other_processes_is_named(kind, processes, tmp_path):
    lock = threading.Lock()

    def f(point):
        with lock:
            return 0.0

    workers = 2 if kind == "local" else processes
    with pytest.raises(StrategyError, match=r"cannot be sent.*ThreadPoolExecutor\(4\)"):
        covey.maximize(f, SPACE, workers=workers, journal=tmp_path / "run.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_an_executor_that_breaks_harms_no_point(tmp_path):
    def dies(point):
        if point["x"] > 0.0:
            os._exit(1)
        return point["x"] ** 2

    path = tmp_path / "run.jsonl"
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(1, context) as pool,
        pytest.raises(EvaluationError, match="executor broke"),
    ):
        covey.maximize(dies, SPACE, batch=6, rounds=2, workers=pool, journal=path, seed=0)
    study = covey.Study.load(path)
    assert study.history.failed == ()
    assert len(study.history.pending) > 0  # and the same call, with better workers, goes on
    covey.maximize(
        bowl, SPACE, batch=6, rounds=1, workers=ThreadPoolExecutor(1), journal=path, seed=0
    )
    assert [t.status for t in covey.Study.load(path).history.trials] == ["told"] * 6


def test_nothing_that_succeeded_is_an_error(threads):
    study = covey.Study(SPACE, seed=0)
    study.cancel(study.ask(3))
    from covey.run.api import run

    with pytest.raises(EvaluationError, match="only evaluation of this batch failed: it returned"):
        run(study, lambda p: None, batch=1, rounds=1, workers=threads)


# `run`


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


def test_a_run_whose_results_are_all_excluded_says_so(study):
    run(study, abs, batch=2, rounds=1, workers=Scripted(value))
    study.exclude([0, 1], "wet")
    with pytest.raises(EvaluationError, match=r"every result is excluded.*include one") as caught:
        run(study, abs, batch=2, rounds=1, workers=Scripted(nothing))
    assert caught.value.study is study
    study.include([1], "dry")
    assert run(study, abs, batch=2, rounds=1, workers=Scripted(nothing)).study.best.id == 1


def test_what_is_excluded_counts_against_the_budget_and_is_not_the_result(study):
    run(study, abs, batch=4, rounds=1, workers=Scripted(value))
    best = study.best
    study.exclude(best, "wet")
    result = run(study, abs, batch=4, rounds=1, workers=Scripted(nothing))
    assert len(study.history) == 4
    assert result.point != best.point


def test_a_retried_trial_is_evaluated_by_the_next_run_and_counts_once(study):
    """With real processes, whose failures lie in their folders."""

    def hot(point):
        raise ValueError("too hot" if point["x"] > 0 else "too cold")

    with pytest.raises(EvaluationError):
        run(study, hot, batch=4, rounds=1, workers=2)
    assert {trial.status for trial in study.history.trials} == {"failed"}
    study.retry(study.history.failed)
    run(study, lambda point: point["x"] ** 2, batch=4, rounds=1, workers=2)
    assert [trial.status for trial in study.history.trials] == ["told"] * 4


@pytest.mark.parametrize("journal", [False, True])
def test_a_program_that_is_not_here_is_refused_before_anything_is_asked(tmp_path, journal):
    path = tmp_path / "run.jsonl" if journal else None
    space = covey.Space({"x": covey.Real(-1.0, 1.0)})
    with pytest.raises(StrategyError, match="there is no program 'no-such-program' here"):
        covey.maximize(Command(["no-such-program", "--x={x.x}"]), space, workers=1, journal=path)
    assert list(tmp_path.iterdir()) == []
    study = covey.Study(space, seed=0)
    with pytest.raises(StrategyError, match="nothing was run"):
        run(study, Command(["no-such-program", "--x={x.x}"]), workers=1)
    assert len(study.history) == 0


# Workers


CALL = Function(abs)


def test_a_number_is_so_many_processes(tmp_path):
    with engine_for(3, tmp_path / "run.jsonl") as engine:
        assert isinstance(engine, LocalEngine)
        assert engine.slots == 3
    assert list(tmp_path.iterdir()) == []  # nothing was run


def test_what_is_given_stays_open():
    given = Scripted(value)
    with engine_for(given, None) as engine:
        assert engine is given
    assert not given.closed
    with ThreadPoolExecutor(1) as pool:
        with engine_for(pool, None) as engine:
            assert isinstance(engine, FuturesEngine)
        assert pool.submit(abs, -1).result() == 1


def test_without_fork_it_is_threads(monkeypatch, caplog):
    """As on Windows."""
    monkeypatch.setattr(api, "find_spec", lambda name: None)
    with caplog.at_level(logging.WARNING, logger="covey"), engine_for(2, None) as engine:
        assert isinstance(engine, FuturesEngine)
        pool = engine._executor
    assert "evaluations run in threads" in caplog.text
    with pytest.raises(RuntimeError):
        pool.submit(abs, -1)  # it was ours


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, "ray", None])
def test_what_cannot_work_is_named(wrong):
    with pytest.raises(StrategyError, match=r"workers .*got"):
        check_workers(wrong, CALL)


def test_the_folder_lies_beside_the_journal(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "run.jsonl").touch()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real" / "run.jsonl")
    assert work_folder(Path(tmp_path / "link.jsonl")) == tmp_path / "real" / "run.jsonl.work"
