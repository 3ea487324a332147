from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import pytest
from tests.doors.run.scripted import Scripted, dies_of, nothing, value

import covey
from covey.errors import EvaluationError, ExhaustedError, JournalError, StrategyError
from covey.history import Dispatched
from covey.log.journal import Journal
from covey.run import LocalEngine, Outcome
from covey.run.api import run
from covey.run.plan import Plan, Progress, RunOptions
from covey.run.task import Retries

SPACE = covey.Space({"x": covey.Real(-1.0, 1.0)})
QUICK = Retries(wait=0.0)


@pytest.fixture
def study(tmp_path):
    return covey.Study(SPACE, goal="min", seed=3, journal=tmp_path / "run.jsonl")


def batches(study):
    return [len(event.points) for event in study.history.events if type(event).__name__ == "Asked"]


def test_in_batches_the_next_waits_for_the_last(study):
    seen = []

    def answer(task):
        seen.append(len(study.history.pending))
        return value(task)

    run(study, abs, batch=3, rounds=3, workers=Scripted(answer, slots=1))
    assert batches(study) == [3, 3, 3]
    assert max(seen) == 3


def test_a_run_learns_where_evaluations_are_killed_and_goes_on_to_its_end():
    """Half of the space takes too much memory, and its values would be the best."""
    space = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})
    study = covey.Study(space, seed=0)

    def answer(task):
        x, y = task.point["x"], task.point["y"]
        if x > 0.5:
            return [Outcome(task.name, "killed", reason="by signal 9; perhaps out of memory")]
        return [Outcome(task.name, "succeeded", x - (y - 0.3) ** 2)]

    engine = Scripted(answer)
    result = run(study, abs, batch=8, evaluations=24, workers=engine, retries=QUICK)
    assert len(study.history.told) >= 18
    assert len(study.history.told) + len(study.history.failed) == 24
    assert len(engine.tasks) == 24 + len(study.history.failed)  # each of those twice
    assert result.value > 0.4


def test_asynchronously_all_are_kept_busy(study):
    engine = Scripted(value, slots=3, one_by_one=True)
    run(study, abs, batch=3, rounds=4, workers=engine, asynchronous=True)
    assert len(study.history.told) == 12
    assert engine.most == 3
    assert batches(study)[0] == 3
    assert set(batches(study)[1:]) == {1}


def test_asynchronously_an_engine_that_queues_gets_a_batch(study):
    engine = Scripted(value)
    run(study, abs, batch=4, rounds=2, workers=engine, asynchronous=True)
    assert engine.most == 4
    assert len(study.history.told) == 8


def test_asynchronous_points_keep_away_from_what_is_out(study):
    seen = []
    ask = study.ask

    def asked(k, **options):
        pending = [trial.point["x"] for trial in study.history.pending]
        trials = ask(k, **options)
        seen.extend((trial.point["x"], x) for trial in trials for x in pending)
        return trials

    study.ask = asked
    with ThreadPoolExecutor(3) as pool:
        f = lambda p: time.sleep(0.02) or p["x"] ** 2  # noqa: E731
        run(study, f, batch=3, rounds=4, workers=pool, asynchronous=True)
    assert seen
    assert all(new != out for new, out in seen)


def test_a_batch_that_comes_to_nothing_stops_it(study):
    def answer(task):
        return [Outcome(task.name, "lost", reason="no route to host")]

    with pytest.raises(EvaluationError, match=r"all 3 evaluations.*were lost; .*no route to host"):
        run(study, abs, batch=3, rounds=2, workers=Scripted(answer), retries=QUICK)
    assert {trial.status for trial in study.history.trials} == {"lost"}


@pytest.mark.parametrize("asynchronous", [False, True])
def test_failures_do_not_end_a_run_that_has_values(study, asynchronous, caplog):
    count = iter(range(100))

    def answer(task):
        return value(task) if next(count) < 2 else [Outcome(task.name, "failed", reason="too hot")]

    engine = Scripted(answer, slots=1)
    result = run(study, abs, batch=4, rounds=4, workers=engine, asynchronous=asynchronous)
    assert len(study.history.failed) == 14
    assert result.value == study.best.value
    assert "14 of 16 evaluations failed" in caplog.text


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_machine_that_loses_everything_ends_a_run_that_has_values(study, asynchronous):
    """What is lost counts against no budget: such a run would have no end."""
    study.add([{"x": 0.5}], [1.0])

    def answer(task):
        return [Outcome(task.name, "lost", reason="no route to host")]

    engine = Scripted(answer)
    with pytest.raises(EvaluationError, match=r"were lost; .*no route to host"):
        run(study, abs, batch=3, rounds=9, workers=engine, retries=QUICK, asynchronous=asynchronous)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_typo_ends_a_run_and_is_taken_back_by_a_retry(study, asynchronous):
    """The first four die alike: they have failed, the others are not begun, and all count."""
    engine = Scripted(dies_of("NameError: name 'nump' is not defined (line {})"), slots=2)
    with pytest.raises(EvaluationError, match=r"first 4 evaluations failed alike.*nump") as caught:
        run(study, abs, batch=8, rounds=2, workers=engine, asynchronous=asynchronous)
    assert len(engine.tasks) == 4
    assert [trial.id for trial in study.history.failed] == [0, 1, 2, 3]
    assert "study.retry([0, 1, 2, 3]), or covey retry 0,1,2,3" in str(caught.value)
    assert caught.value.study is study
    assert caught.value.result is None
    study.retry([0, 1, 2, 3])
    run(study, abs, batch=8, rounds=2, workers=Scripted(value))
    assert [trial.status for trial in study.history.trials] == ["told"] * 16


def test_after_a_typo_the_run_is_what_it_would_have_been(study):
    twin = covey.Study(SPACE, goal="min", seed=3)
    with pytest.raises(EvaluationError):
        run(study, abs, batch=8, rounds=2, workers=Scripted(dies_of("oops")))
    study.retry(study.history.failed)
    for one in (study, twin):
        run(one, abs, batch=8, rounds=2, workers=Scripted(value))
    assert [t.point for t in study.history.told] == [t.point for t in twin.history.told]


def test_a_typo_mended_is_not_found_again_in_what_it_left_behind(study, tmp_path):
    """Real processes leave their failure in their folder, which the next run must pass over."""

    def broken(point):
        raise NameError("name 'nump' is not defined")

    with pytest.raises(EvaluationError, match="covey retry 0,1,2,3"):
        run(study, broken, batch=6, rounds=1, workers=2)
    study.retry(study.history.failed)
    run(study, lambda p: p["x"] ** 2, batch=6, rounds=1, workers=2)
    assert [trial.status for trial in study.history.trials] == ["told"] * 6


def test_a_new_typo_ends_a_run_of_a_study_that_has_values_too(study):
    run(study, abs, batch=8, rounds=1, workers=Scripted(value))
    with pytest.raises(EvaluationError, match="first 4 evaluations failed alike"):
        run(study, abs, batch=8, rounds=2, workers=Scripted(dies_of("oops"), slots=1))
    assert [trial.id for trial in study.history.failed] == [8, 9, 10, 11]


def test_a_failure_the_log_knows_is_no_typo(study):
    """Resumed amid failures of a kind seen before, a run goes on."""
    study.add([{"x": 0.5}], [1.0])
    study.fail(study.ask(1), "CUDA out of memory: 12.5 GiB")
    run(study, abs, batch=5, rounds=2, workers=Scripted(dies_of("CUDA out of memory: {} GiB")))
    assert len(study.history.failed) == 10


def test_a_value_clears_f_and_the_failures_before_it_count(study):
    engine = Scripted(
        lambda task: dies_of("too hot")(task) if task.id < 3 else value(task), one_by_one=True
    )
    run(study, abs, batch=8, rounds=1, workers=engine)
    assert [trial.id for trial in study.history.failed] == [0, 1, 2]
    assert len(study.history.told) == 5


def test_those_that_still_run_are_waited_for_before_f_is_blamed(study):
    polls = iter(range(100))

    def answer(task):
        if task.id < 4:
            return dies_of("too hot")(task)
        return value(task) if next(polls) > 3 else []

    run(study, abs, batch=8, rounds=1, workers=Scripted(answer, slots=5))
    assert len(study.history.failed) == 4
    assert len(study.history.told) == 4


@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_is_retried_while_the_run_is_at_work_is_evaluated_by_it(study, asynchronous):
    def answer(task):
        first = task.id == 1 and task.attempt == 1
        return dies_of("the disk was full")(task) if first else value(task)

    def watch(progress):
        if study.history.failed:
            study.retry(study.history.failed)  # as `covey retry` does from another terminal

    engine = Scripted(answer, slots=1)
    run(study, abs, batch=4, rounds=2, workers=engine, watch=watch, asynchronous=asynchronous)
    assert [trial.status for trial in study.history.trials] == ["told"] * 8
    assert [task.attempt for task in engine.tasks if task.id == 1] == [1, 2]


def test_trials_that_each_fail_in_their_own_way_have_failed(study):
    reasons = iter("abc")
    engine = Scripted(lambda task: [Outcome(task.name, "failed", reason=next(reasons))])
    with pytest.raises(EvaluationError, match="all 3 evaluations of this batch failed"):
        run(study, abs, batch=3, rounds=2, workers=engine)
    assert len(study.history.failed) == 3


def test_few_failures_alike_in_small_batches_do_not_hold_up_a_study_with_values(study):
    study.add([{"x": 0.5}], [1.0])
    with pytest.raises(EvaluationError, match="first 4 evaluations failed alike"):
        run(study, abs, batch=1, rounds=9, workers=Scripted(dies_of("oops")))
    # Not retried, so their points are to blame, and the run goes on through such failures.
    run(study, abs, batch=1, rounds=6, workers=Scripted(dies_of("oops")))
    assert len(study.history.failed) == 6


def test_what_fails_last_has_failed(study):
    study.add([{"x": 0.5}], [1.0])
    run(study, abs, batch=2, rounds=1, workers=Scripted(dies_of("too hot")))
    assert len(study.history.failed) == 2


def test_the_end_of_a_batch_that_was_going_well_may_fail(study):
    """Killed when one of three was out; that one fails, and the batch has not failed whole."""
    trials = study.ask(3)
    study.tell(trials[:2], [1.0, 2.0])
    engine = Scripted(lambda task: [Outcome(task.name, "failed")] if task.id == 2 else value(task))
    run(study, abs, batch=3, rounds=2, workers=engine)
    assert [trial.status for trial in study.history.trials] == ["told"] * 2 + ["failed"] + [
        "told"
    ] * 3


def test_an_endless_space_that_is_exhausted_is_an_error(study, monkeypatch):
    def none(k, progress):
        raise ExhaustedError("no point is left", 0)

    monkeypatch.setattr(study, "ask", none)
    with pytest.raises(ExhaustedError):
        run(study, abs, workers=Scripted(value))


def test_whatever_goes_wrong_nothing_runs_on(study, monkeypatch):
    engine = Scripted(nothing)

    def broken(progress):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(study, abs, batch=2, rounds=1, workers=engine, watch=broken)
    assert set(engine.cancelled) == {task.name for task in engine.tasks}
    assert [trial.status for trial in study.history.trials] == ["pending"] * 2


@pytest.mark.parametrize("error", [BrokenPipeError("nobody reads"), RuntimeError("no display")])
def test_a_watch_that_fails_costs_no_evaluation(study, caplog, error):
    def broken(progress):
        raise error

    engine = Scripted(value)
    run(study, abs, batch=2, rounds=3, workers=engine, watch=broken)
    assert len(study.history.told) == 6
    assert engine.cancelled == []
    assert caplog.text.count("the run goes on") == 1


def test_folders_go_at_the_end_of_a_run(study, tmp_path):
    run(study, lambda p: p["x"], batch=2, rounds=1, workers=2)
    assert [path.name for path in (tmp_path / "run.jsonl.work").iterdir() if path.is_dir()] == []


def test_a_log_that_fails_costs_nothing(study, tmp_path, monkeypatch, caplog):
    """The disk fills up: evaluations go on, and the next run has their results."""
    ended = tmp_path / "ended"

    def f(point):
        time.sleep(0.5)
        with ended.open("a") as file:
            file.write("x")
        return point["x"] ** 2

    append = Journal.append

    def full(self, event, after):
        if event["type"] == "told":
            raise JournalError("no space left on device")
        return append(self, event, after)

    monkeypatch.setattr(Journal, "append", full)
    with pytest.raises(JournalError, match="no space left"):
        run(study, f, batch=2, rounds=1, workers=2)
    assert "out when the log, or their folder, failed" in caplog.text
    monkeypatch.undo()
    run(covey.Study.load(study.journal), f, batch=2, rounds=1, workers=2)
    assert len(covey.Study.load(study.journal).history.told) == 2
    assert ended.read_text() == "xx"  # neither was evaluated again


def test_in_another_thread_it_runs_as_well(study):
    thread = threading.Thread(
        target=run, args=(study, abs), kwargs={"batch": 2, "rounds": 1, "workers": Scripted(value)}
    )
    thread.start()
    thread.join()
    assert len(study.history.told) == 2


def test_it_says_what_it_waits_for(study, caplog, monkeypatch):
    monkeypatch.setattr("covey.run.loop._TALK", 0.0)
    polls = iter(range(100))

    def answer(task):
        return value(task) if next(polls) > 12 else []

    with caplog.at_level(logging.INFO, logger="covey"):
        run(study, abs, batch=6, rounds=1, workers=Scripted(answer))
        run(study, abs, batch=4, rounds=2, workers=Scripted(answer), asynchronous=True)
    assert "waiting for 6 of 6 of this batch (trials 0, 1, 2, 3, ...)" in caplog.text
    assert "waiting for nothing more" in caplog.text


def test_kinds_of_engines_agree_after_a_crash(tmp_path, study):
    """Handed out to processes, taken up by threads: no engine is bound to a journal."""
    task_engine = LocalEngine(2, tmp_path / "elsewhere")
    study.ask(3)
    with ThreadPoolExecutor(2) as pool:
        run(study, lambda p: p["x"] ** 2, batch=3, rounds=1, workers=pool)
    task_engine.close()
    assert len(study.history.told) == 3


@pytest.mark.parametrize(
    ("batch", "said"), [(1, "the only evaluation .* failed: oops"), (3, "all 3 .* failed alike")]
)
def test_one_is_not_spoken_of_as_many(study, batch, said):
    with pytest.raises(EvaluationError, match=said):
        run(study, abs, batch=batch, rounds=1, workers=Scripted(dies_of("oops")))


# The plan of a run


def test_a_plan_of_options():
    plan = Plan.of(4, 3, {"timeout": 2, "asynchronous": True})
    assert plan == Plan(4, 3, True, 2, Retries(), None)


def test_every_option_of_a_run_is_a_field_of_its_plan():
    assert {field.name for field in fields(Plan)} == {
        "batch",
        "rounds",
        *RunOptions.__annotations__,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch": 0},
        {"batch": "8"},
        {"rounds": 1.0},
        {"timeout": -1},
        {"timeout": float("inf")},
        {"retries": None},
    ],
)
def test_what_makes_no_plan_is_named(wrong):
    with pytest.raises(StrategyError, match="got"):
        Plan(**wrong)


def test_an_unknown_option_is_named():
    with pytest.raises(StrategyError, match=r"'watched'; there are .*Did you mean 'watch'"):
        Plan.of(4, 3, {"watched": print})


# Progress


def test_a_run_says_how_far_it_is():
    study = covey.Study(SPACE, goal="min", seed=0)
    study.add([{"x": 0.9}], [0.81])  # from elsewhere: not part of the run
    seen: list[Progress] = []

    def f(point):
        time.sleep(0.1)  # so that it is seen at work
        return point["x"] ** 2

    with ThreadPoolExecutor(1) as pool:
        run(study, f, batch=3, rounds=2, workers=pool, watch=seen.append)
    assert {progress.total for progress in seen} == {6}
    done = [progress.done for progress in seen]
    assert done == sorted(done)
    assert done[-1] == 6
    assert seen[-1].best == study.best.value
    assert seen[-1].left == 0.0
    assert seen[-1].waiting_for == "nothing more"
    some = next(progress for progress in seen if progress.running)
    assert "of this batch (trial" in some.waiting_for
    assert some.failed == 0


class Slow(Scripted):
    """Two at a time; each takes ten seconds of a clock that a poll moves on."""

    def __init__(self, monkeypatch, known=()):
        self.now = 1000.0
        self.begun: dict[str, float] = {}
        super().__init__(self.answered, slots=2, known=known)
        monkeypatch.setattr("time.monotonic", lambda: self.now)

    def submit(self, task):
        self.begun[task.name] = self.now
        super().submit(task)

    def poll(self, seconds):
        self.now += 1.0
        return super().poll(seconds)

    def answered(self, task):
        return value(task) if self.now >= self.begun.get(task.name, 0.0) + 10.0 else []


def test_the_time_left_is_what_is_left_by_what_one_takes(monkeypatch):
    """It falls by a second each second, and is not guessed before anything has ended."""
    study = covey.Study(SPACE, goal="min", seed=0)
    seen: list[Progress] = []
    run(study, abs, batch=4, rounds=2, workers=Slow(monkeypatch), watch=seen.append)
    assert {p.left for p in seen if p.done == 0} == {None}
    for done in (2, 4, 6):
        left = [p.left for p in seen if p.done == done]
        assert left == [(8 - done) * 10.0 / 2 - waited for waited in range(10)]
    assert {p.left for p in seen if p.done == 8} == {0.0}


def test_results_that_were_waiting_do_not_make_a_run_look_quick(monkeypatch, tmp_path):
    """After a crash two results are found at once, which does not say what one takes."""
    study = covey.Study(SPACE, goal="min", seed=0, journal=tmp_path / "run.jsonl")
    names = []
    for trial in study.ask(4)[:2]:
        names.append(f"covey-before-{trial.id}-a1")
        study.note(Dispatched(trial.id, 1, names[-1], 0))
    seen: list[Progress] = []
    run(study, abs, batch=4, rounds=2, workers=Slow(monkeypatch, names), watch=seen.append)
    assert {p.left for p in seen if p.done == 2} == {None}
    assert next(p.left for p in seen if p.done == 4) == 20.0
