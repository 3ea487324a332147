from __future__ import annotations

import logging
import time
from dataclasses import replace

import pytest
from tests.doors.run.scripted import Scripted, nothing, value

import covey
from covey.errors import HistoryError
from covey.history import Dispatched, Late, Lost, Told
from covey.run import Outcome
from covey.run.dispatcher import Dispatcher, evaluation_seed, last_attempts
from covey.run.task import Function, Retries

SPACE = covey.Space({"x": covey.Real(-1.0, 1.0)})
CALL = Function(abs)
QUICK = Retries(wait=0.0)


@pytest.fixture
def study(tmp_path):
    return covey.Study(SPACE, seed=3, journal=tmp_path / "run.jsonl")


def dispatcher_of(study, answer, retries=QUICK, **options):
    engine = Scripted(answer, **options)
    return Dispatcher(study, engine, CALL, 60.0, retries), engine


def events(study, kind):
    return [event for event in study.history.events if isinstance(event, kind)]


def say(status, reason="because"):
    return lambda task: [Outcome(task.name, status, reason=reason)]


def test_the_log_knows_first(study):
    dispatcher, engine = dispatcher_of(study, value)
    real = engine.submit

    def submit(task):
        logged = covey.Study.load(study.journal, read_only=True).history
        assert [sent.name for sent in logged.attempts(task.id)] == [task.name]
        real(task)

    engine.submit = submit
    dispatcher.admit(study.ask(2))
    dispatcher.work(0.0)
    assert [trial.status for trial in study.history.trials] == ["told", "told"]
    assert dispatcher.awaited == []
    assert dispatcher.settled == 2


def test_a_task_says_all_there_is_to_know(study):
    dispatcher, engine = dispatcher_of(study, value)
    trials = study.ask(2)
    dispatcher.admit(trials)
    dispatcher.work(0.0)
    sent = events(study, Dispatched)
    for task, trial, event in zip(engine.tasks, trials, sent, strict=True):
        assert (task.id, task.attempt, task.point) == (trial.id, 1, trial.point)
        assert (task.seed, task.timeout, task.call) == (event.seed, 60.0, CALL)
        assert task.seed == evaluation_seed(3, trial.id)
    assert len({task.name for task in engine.tasks}) == 2
    other, others = dispatcher_of(study, value)
    other.admit(study.ask(1))
    other.work(0.0)
    assert others.tasks[0].name.split("-")[1] != engine.tasks[0].name.split("-")[1]  # another life


def test_no_more_than_the_slots(study):
    dispatcher, engine = dispatcher_of(study, nothing, slots=2)
    dispatcher.admit(study.ask(5))
    dispatcher.work(0.0)
    assert dispatcher.running == 2
    assert dispatcher.awaited == [0, 1, 2, 3, 4]
    engine._answer = value
    for _ in range(3):
        dispatcher.work(0.0)
    assert engine.most == 2
    assert len(study.history.told) == 5


def test_lost_is_tried_again_with_the_same_seed_and_then_lost(study, caplog):
    dispatcher, engine = dispatcher_of(study, say("lost", "node 7 died"), Retries(lost=2, wait=0.0))
    dispatcher.admit(study.ask(1))
    with caplog.at_level(logging.WARNING, logger="covey"):
        for _ in range(3):
            dispatcher.work(0.0)
    assert [task.attempt for task in engine.tasks] == [1, 2, 3]
    assert len({task.seed for task in engine.tasks}) == 1
    assert len({task.name for task in engine.tasks}) == 3
    assert events(study, Lost) == [Lost((0,), "node 7 died")]
    assert study.history.trial(0).status == "lost"
    assert dispatcher.awaited == []
    assert dispatcher.streak == 1
    assert caplog.text.count("node 7 died") == 3


@pytest.mark.parametrize("retries", [0, 1, 2])
def test_killed_is_tried_again_and_then_failed(study, retries):
    """Unlike what the machine lost: the point may need more memory than there is."""
    limits = Retries(killed=retries, lost=0, wait=0.0)
    dispatcher, engine = dispatcher_of(study, say("killed", "by signal 9"), limits)
    dispatcher.admit(study.ask(1))
    for _ in range(5):
        dispatcher.work(0.0)
    assert [task.attempt for task in engine.tasks] == list(range(1, retries + 2))
    assert len({task.seed for task in engine.tasks}) == 1
    trial = study.history.trial(0)
    assert (trial.status, trial.reason) == ("failed", "by signal 9")


def test_what_is_killed_while_the_run_is_stopped_stays_pending(study):
    """Whoever ends a job signals all of its processes."""
    dispatcher, engine = dispatcher_of(study, say("killed"), Retries(killed=0))
    dispatcher.is_stopping = lambda: True
    dispatcher.admit(study.ask(2))
    dispatcher.work(0.0)
    assert len(engine.tasks) == 2
    assert [trial.status for trial in study.history.trials] == ["pending"] * 2


@pytest.mark.parametrize("status", ["failed", "timed-out"])
def test_failed_is_not_tried_again(study, status):
    dispatcher, engine = dispatcher_of(study, say(status, "\ud800 odd"))
    dispatcher.admit(study.ask(1))
    dispatcher.work(0.0)
    assert len(engine.tasks) == 1
    assert study.history.trial(0).status == "failed"
    assert dispatcher.last[0].status == status


def test_failed_is_tried_again_if_that_is_wanted(study):
    answers = iter(["failed", "timed-out", "succeeded"])
    dispatcher, engine = dispatcher_of(
        study,
        lambda task: [Outcome(task.name, next(answers), 1.0)],
        Retries(failed=1, timed_out=1, wait=0.0),
    )
    dispatcher.admit(study.ask(1))
    for _ in range(3):
        dispatcher.work(0.0)
    assert [task.attempt for task in engine.tasks] == [1, 2, 3]
    assert study.history.trial(0).value == 1.0
    assert dispatcher.streak == 0


def test_a_retry_waits(study):
    dispatcher, engine = dispatcher_of(study, say("lost"), Retries(wait=0.2))
    dispatcher.admit(study.ask(1))
    dispatcher.work(0.0)
    assert (dispatcher.running, dispatcher.awaited) == (0, [0])
    dispatcher.work(0.0)
    assert len(engine.tasks) == 1
    time.sleep(0.21)
    dispatcher.work(0.0)
    assert len(engine.tasks) == 2


def test_a_result_said_twice_is_told_once(study):
    dispatcher, _ = dispatcher_of(study, lambda task: value(task) * 2)
    dispatcher.admit(study.ask(1))
    dispatcher.work(0.0)
    assert study.history.trial(0).status == "told"
    assert events(study, Late) == []
    assert dispatcher.settled == 1


def test_a_result_for_a_wrong_attempt_or_study_is_fenced_off(study):
    dispatcher, engine = dispatcher_of(study, nothing)
    dispatcher.admit(study.ask(1))
    dispatcher.work(0.0)
    engine.ready.append(Outcome("covey-00-0-a1", "succeeded", 5.0))
    dispatcher.work(0.0)
    assert study.history.trial(0).status == "pending"


def test_a_late_result_of_a_trial_that_failed_is_told(study):
    dispatcher, engine = dispatcher_of(study, say("timed-out"))
    dispatcher.admit(study.ask(1))
    dispatcher.work(0.0)
    assert study.history.trial(0).status == "failed"
    engine.ready.append(Outcome(engine.tasks[0].name, "succeeded", 5.0, sem=0.5))
    dispatcher.work(0.0)
    assert (study.history.trial(0).value, study.history.trial(0).sem) == (5.0, 0.5)
    assert dispatcher.settled == 1  # not twice


def test_the_first_result_counts_and_a_further_one_is_kept(study):
    answers = iter(["lost", "succeeded"])
    dispatcher, engine = dispatcher_of(study, lambda task: [Outcome(task.name, next(answers), 1.0)])
    dispatcher.admit(study.ask(1))
    dispatcher.work(0.0)
    dispatcher.work(0.0)
    engine.ready.append(Outcome(engine.tasks[0].name, "succeeded", 2.0))  # it was not lost at all
    dispatcher.work(0.0)
    assert study.history.trial(0).value == 1.0
    assert events(study, Late) == [Late(0, 1, 2.0)]


def test_a_late_result_makes_a_retry_needless(study):
    dispatcher, engine = dispatcher_of(study, say("lost"), Retries(wait=30.0))
    dispatcher.admit(study.ask(1))
    dispatcher.work(0.0)
    engine.ready.append(Outcome(engine.tasks[0].name, "succeeded", 2.0))
    dispatcher.work(0.0)
    assert dispatcher.awaited == []
    assert len(engine.tasks) == 1


def test_a_value_the_log_refuses_is_a_failure(study):
    dispatcher, _ = dispatcher_of(
        study, lambda task: [Outcome(task.name, "succeeded", float("nan"))]
    )
    dispatcher.admit(study.ask(1))
    dispatcher.work(0.0)
    assert study.history.trial(0).status == "failed"


def test_what_comes_beside_a_value_is_in_the_log(study):
    answer = Outcome.of("", {"value": 1.0, "sem": 0.5, "latency": 3})
    dispatcher, _ = dispatcher_of(study, lambda task: [replace(answer, name=task.name)])
    dispatcher.admit(study.ask(1))
    dispatcher.work(0.0)
    (told,) = events(covey.Study.load(study.journal), Told)
    assert (told.values, told.sems, told.metrics) == (({"value": 1.0},), (0.5,), ({"latency": 3},))
    assert study.history.trial(0).sem == 0.5


def test_what_the_log_cannot_hold_is_said_once_and_the_value_told(study, caplog):
    answer = Outcome.of("", {"value": 1.0, "net": object()})
    dispatcher, _ = dispatcher_of(study, lambda task: [replace(answer, name=task.name)])
    dispatcher.admit(study.ask(2))
    dispatcher.work(0.0)
    assert [trial.status for trial in study.history.trials] == ["told", "told"]
    assert caplog.text.count("not recorded: net;") == 1


def test_what_somebody_else_settled_is_let_go(study):
    dispatcher, engine = dispatcher_of(study, nothing, slots=2)
    dispatcher.admit(study.ask(4))
    dispatcher.work(0.0)
    other = covey.Study.load(study.journal)
    other.tell(0, 5.0)
    other.cancel(1)
    other.cancel(3)
    dispatcher.work(0.0)
    assert engine.cancelled == [task.name for task in engine.tasks]
    assert dispatcher.awaited == [2]
    engine.ready.append(Outcome(engine.tasks[0].name, "succeeded", 6.0))
    engine.ready.append(Outcome(engine.tasks[1].name, "succeeded", 7.0))
    dispatcher.work(0.0)
    assert [study.history.trial(id).value for id in (0, 1)] == [5.0, 7.0]
    assert events(study, Late) == [Late(0, 1, 6.0)]


def test_what_is_settled_this_very_moment_is_let_go_too(study):
    other = covey.Study.load(study.journal)

    def answer(task):
        other.refresh()
        other.tell(task.id, 9.0)  # and our study has not heard of it
        return [Outcome(task.name, "failed")]

    dispatcher, engine = dispatcher_of(study, answer, slots=1)
    dispatcher.admit(study.ask(2))
    dispatcher.work(0.0)
    other.cancel(1)
    dispatcher.work(0.0)
    assert [trial.status for trial in study.history.trials] == ["told", "cancelled"]
    assert len(engine.tasks) == 1
    assert dispatcher.awaited == []


def test_a_log_that_refuses_a_pending_trial_is_an_error(study, monkeypatch):
    def refuse(event, **_):
        raise HistoryError("no")

    dispatcher, _ = dispatcher_of(study, value)
    dispatcher.admit(study.ask(1))
    monkeypatch.setattr(study, "note", refuse)
    with pytest.raises(HistoryError):
        dispatcher.work(0.0)


class Unfenced(Dispatcher):
    """The deliberate defect: takes any outcome for the trial whose number is in its name."""

    def _settle(self, outcome):
        trial = int(outcome.name.split("-")[2])
        task = next(task for task in self._engine.tasks if task.id == trial)
        self._open.pop(outcome.name, None)
        self._sent[task.name] = task
        self._tell(task, outcome)


def test_a_dispatcher_without_fencing_would_be_caught(study):
    engine = Scripted(lambda task: value(task) * 2)
    dispatcher = Unfenced(study, engine, CALL, None, QUICK)
    dispatcher.admit(study.ask(1))
    dispatcher.work(0.0)
    assert events(study, Late) != []  # what the test of a result said twice forbids
    engine = Scripted(nothing)
    dispatcher = Unfenced(study, engine, CALL, None, QUICK)
    dispatcher.admit(study.ask(1))
    dispatcher.work(0.0)
    engine.ready.append(Outcome("covey-00-1-a1", "succeeded", 5.0))
    dispatcher.work(0.0)
    assert study.history.trial(1).status == "told"  # and that of a wrong attempt


def test_what_an_earlier_life_handed_out_is_looked_for(study, caplog):
    dispatcher, before = dispatcher_of(study, nothing, slots=2)
    dispatcher.admit(study.ask(3))
    dispatcher.work(0.0)  # two are out, one is not, when the runner is killed
    study = covey.Study.load(study.journal)
    dispatcher, engine = dispatcher_of(study, value, known={before.tasks[0].name})
    with caplog.at_level(logging.INFO, logger="covey"):
        dispatcher.adopt(study.history.pending)
    assert "of 2 evaluations that were out, 1 are found again and 1 begin again" in caplog.text
    assert dispatcher.running == 1
    dispatcher.work(0.0)
    assert [(task.id, task.attempt) for task in engine.tasks] == [(1, 2), (2, 1)]
    assert len(study.history.told) == 3


def test_deaths_of_the_runner_do_not_use_up_retries(study):
    dispatcher, engine = dispatcher_of(study, nothing, Retries(lost=1, wait=0.0))
    dispatcher.admit(study.ask(1))
    dispatcher.work(0.0)
    for _ in range(4):
        dispatcher, engine = dispatcher_of(study, nothing, Retries(lost=1, wait=0.0))
        dispatcher.adopt(study.history.pending)
        dispatcher.work(0.0)
    assert engine.tasks[0].attempt == 5
    assert study.history.trial(0).status == "pending"


def test_stopped_it_keeps_what_comes_and_leaves_the_rest_pending(study):
    dispatcher, engine = dispatcher_of(study, nothing, slots=2)
    dispatcher.admit(study.ask(3))
    dispatcher.work(0.0)
    engine.ready.append(Outcome(engine.tasks[0].name, "succeeded", 4.0))
    engine._out.remove(engine.tasks[0])
    dispatcher.stop()
    assert [trial.status for trial in study.history.trials] == ["told", "pending", "pending"]
    assert len(engine.tasks) == 2


def test_an_engine_that_does_not_stop_is_not_waited_for_forever(study, monkeypatch):
    monkeypatch.setattr("covey.run.dispatcher._PATIENCE", 0.05)
    dispatcher, engine = dispatcher_of(study, nothing)
    engine.cancel = lambda names: None
    dispatcher.admit(study.ask(1))
    dispatcher.work(0.0)
    dispatcher.stop()
    assert study.history.trial(0).status == "pending"


def test_seeds_differ_by_study_and_trial():
    seeds = {evaluation_seed(study, trial) for study in range(20) for trial in range(20)}
    assert len(seeds) == 400
    assert max(seeds) < 2**32


def failed_once(study):
    """A study whose only trial was run, and failed."""
    dispatcher, engine = dispatcher_of(study, say("failed", "oops"))
    dispatcher.admit(study.ask(1))
    dispatcher.work(0.0)
    return dispatcher, engine


def test_a_retried_trial_begins_again_and_its_failure_is_not_found_again(study):
    _, engine = failed_once(study)
    study.retry(0)
    # The engine would still find the attempt that failed, if it was asked for it.
    other, others = dispatcher_of(study, value, known=[engine.tasks[0].name])
    other.adopt(study.history.pending)
    other.work(0.0)
    assert [(task.attempt, task.seed) for task in others.tasks] == [(2, engine.tasks[0].seed)]
    assert study.history.trial(0).status == "told"


def test_an_attempt_after_the_retry_is_found_again(study):
    failed_once(study)
    study.retry(0)
    other, others = dispatcher_of(study, nothing)
    other.adopt(study.history.pending)
    other.work(0.0)
    assert last_attempts(study.history)[0].attempt == 2
    third, _ = dispatcher_of(study, value, known=[others.tasks[0].name])
    third.adopt(study.history.pending)
    assert third.running == 1


def test_a_trial_retried_by_another_process_joins_the_run(study):
    dispatcher, engine = failed_once(study)
    dispatcher.work(0.0)
    assert dispatcher.awaited == []
    covey.Study.load(study.journal).retry(0)
    engine._answer = value
    dispatcher.work(0.0)  # sees that it is pending again
    dispatcher.work(0.0)
    assert study.history.trial(0).status == "told"
    assert [task.attempt for task in engine.tasks] == [1, 2]


def test_the_reason_of_a_retried_failure_does_not_vouch_for_f(study):
    """The typo was mended badly: after the same failures again nothing more begins."""
    study.fail(study.ask(4), "NameError: nump")
    study.retry(range(4))
    dispatcher, _ = dispatcher_of(study, say("failed", "NameError: nump"))
    dispatcher.adopt(study.history.pending)
    dispatcher.work(0.0)
    assert dispatcher.alike == [0, 1, 2, 3]
    assert dispatcher.doubtful
    again = covey.Study(SPACE, seed=3)  # the control: had they not been retried
    again.fail(again.ask(4), "NameError: nump")
    other, _ = dispatcher_of(again, say("failed", "NameError: nump"))
    other.admit(again.ask(4))
    other.work(0.0)
    assert not other.doubtful
