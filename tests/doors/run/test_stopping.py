"""Intermediate values, and ending early what does badly."""

from __future__ import annotations

import os
import random
import sys
import time
from dataclasses import replace
from statistics import mean, median
from types import SimpleNamespace

import pytest
from tests.doors.run.scripted import Scripted

import covey
from covey.errors import EvaluationError, StrategyError
from covey.history import Amended, Asked, History, Point, Reported, Told
from covey.run import Command, Halving, MedianRule, Outcome, Retries, report, run
from covey.run.dispatcher import Dispatcher
from covey.run.reports import FILE, VARIABLE, OutputReports, Reports
from covey.run.stopping import completion, rule_of, to_stop, worth_logging
from covey.run.task import Function

SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})
RULES = [Halving(1, 2), Halving(2, 3), MedianRule(2, 3)]


def curves(seed: int, count: int = 12, steps: int = 20) -> list[Reported]:
    """Evaluations that never cross, a few at a time, so that the order is as in a run."""
    rng = random.Random(seed)
    level = {id: rng.random() for id in range(count)}
    waiting, running, found = list(level), {}, []
    while waiting or running:
        while waiting and len(running) < 4:
            running[waiting.pop(0)] = 0
        id = rng.choice(sorted(running))
        running[id] += 1
        found.append(Reported(id, 1, running[id], level[id] + 0.1 * running[id]))
        if running[id] == steps:
            del running[id]
    return found


# ---------------------------------------------------------------- reporting


@pytest.mark.parametrize(
    ("step", "value", "said"),
    [
        (-1, 1.0, "whole number >= 0; got -1"),
        (1.5, 1.0, "whole number >= 0; got 1.5"),
        (None, 1.0, "got None"),
        (3, float("nan"), "finite number, or several by the names of outcomes; got nan"),
        (3, "high", "got 'high'"),
        (3, {"gain": float("inf")}, "got {'gain': inf}"),
        (3, {}, "got {}"),
        (3, 1e200, "finite number"),
    ],
)
def test_a_report_says_what_is_wrong_with_it(step, value, said):
    with pytest.raises(StrategyError, match=said):
        report(step, value)


def test_a_report_goes_forward(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / FILE))
    report(0, 1)
    report(5, 2.5)
    for step in (5, 4):
        with pytest.raises(StrategyError, match=f"step {step} after step 5"):
            report(step, 3.0)
    reports = Reports(tmp_path)
    assert reports.new() == [(0, 1.0), (5, 2.5)]
    assert reports.new() == []
    report(6, 3.0)
    assert reports.new() == [(6, 3.0)]


def test_outside_a_run_it_only_checks(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    report(3, 1.0)
    report(2, 1.0)


def test_reports_in_the_output_of_a_program(tmp_path):
    found = OutputReports(tmp_path / FILE)
    text = "loading\n1 0.5\n1 0.6\n2 nan\n0 0.9\n" + '{"step": 3, "value": 0.7}\n' + "x" * 5000
    named = '{"step": 5, "gain": 2, "good": true, "stage": "b"}\n{"step": 6}\n'
    named += '{"step": 7, "gain": NaN}\n'
    for piece in (text[:9], text[9:20], text[20:], "\n4 0.8", "\n", named):
        found.feed(piece.encode())
    assert Reports(tmp_path).new() == [(1, 0.5), (3, 0.7), (4, 0.8), (5, {"gain": 2.0})]


def test_a_file_that_somebody_spoilt(tmp_path):
    (tmp_path / FILE).write_text('[1, 0.5]\n[0, 0.1]\n{}\nodd\n[2, "x"]\n[3, NaN]\n[4, 1]\n[5, 2')
    assert Reports(tmp_path).new() == [(1, 0.5), (4, 1.0)]
    assert Reports(tmp_path / "nowhere").new() == []


@pytest.mark.parametrize(
    ("lines", "passed"),
    [
        (["5 0.5", "3 0.6", "2 0.7"], "3 0.6"),
        (["1 0.5", "2 nan"], "2 nan"),
        (["1 0.5", '{"step": 2, "value": "high"}'], '{"step": 2, "value": "high"}'),
        (['{"step": 1.5, "value": 2}'], '{"step": 1.5, "value": 2}'),
        (["1 0.5", '{"value": 0.5, "latency": 3}'], ""),
        (["1 0.5", "2 0.5", "2 0.5"], ""),
        (["epoch 1: 0.5", "{", '{"loss": 3}', "0.5", "[1, 2]"], ""),
    ],
)
def test_a_report_of_a_program_that_is_passed_over_is_named_once(tmp_path, caplog, lines, passed):
    """By a warning of the run; other evaluations that do the same are not named again."""
    for id in (6, 7):
        folder = tmp_path / f"covey-0a1b2c3d-{id}-a1"
        folder.mkdir()
        found = OutputReports(folder / FILE)
        for line in [*lines, "0.5"] if passed else lines:
            found.feed(f"{line}\n".encode())
        Reports(folder).new()
    warned = [record.getMessage() for record in caplog.records]
    if not passed:
        assert not warned
        return
    (warning,) = warned
    assert warning.startswith(f"trial 6: passed over: {passed}. ")


# ---------------------------------------------------------------- rules


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_best_is_never_stopped_and_many_are(rule, sign):
    """Where curves do not cross; the control, a rule with the wrong sign, stops the best."""
    wrong = 0
    for seed in range(8):
        reports = curves(seed)
        final = {r.id: sign * r.value for r in reports if r.step == 20}
        best = max(final, key=final.__getitem__)
        stopped = rule.stopped(reports, sign)
        assert best not in stopped
        assert len(stopped) >= 3
        wrong += best in rule.stopped(reports, -sign)
    assert wrong >= 6


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_what_is_stopped_stays_stopped(rule):
    """A function of the log: more of it never takes a decision back."""
    reports = curves(3)
    whole = rule.stopped(reports, 1.0)
    for length in range(0, len(reports), 17):
        part = rule.stopped(reports[:length], 1.0)
        assert part == {id: step for id, step in whole.items() if id in part}


def test_halving_by_a_referee():
    """The rungs played out one by one, from the definition."""
    reports, rule = curves(5), Halving(2, 3)
    expected: dict[int, int] = {}
    for rung in (2, 6, 18):
        came: list[Reported] = []
        for one in reports:
            if one.step == rung:
                came.append(one)
                order = sorted(came, key=lambda r: -r.value)
                kept = -(-len(came) // 3)
                if len(came) >= 3 and one not in order[:kept]:
                    expected[one.id] = min(rung, expected.get(one.id, rung))
    assert rule.stopped(reports, 1.0) == expected


def test_the_median_rule_by_a_referee():
    """Every comparison made anew, from the definition; with a control, who knows no best value."""
    rng = random.Random(2)
    reports = [replace(one, value=one.value + rng.gauss(0.0, 0.3)) for one in curves(6)]
    expected: dict[int, int] = {}
    last_only: set[int] = set()
    for place, now in enumerate(reports):
        seen = reports[: place + 1]
        mine = [r.value for r in seen if r.id == now.id]
        others = [[r for r in seen if r.id == id] for id in {r.id for r in seen} - {now.id}]
        means = [
            mean(r.value for r in curve if r.step <= now.step)
            for curve in others
            if curve[-1].step >= now.step
        ]
        if now.step >= 2 and len(means) >= 3 and max(mine) < median(means):
            expected.setdefault(now.id, now.step)
        if now.step >= 2 and len(means) >= 3 and now.value < median(means):
            last_only.add(now.id)
    assert MedianRule(2, 3).stopped(reports, 1.0) == expected
    assert {*expected} < last_only


def slow_halving(rule, reports, sign):
    """The rule as it was before values were kept sorted: every report looks at all values."""
    rungs, reached, found = {}, {}, {}
    for now in reports:
        rung = reached.get(now.id, rule.first)
        while now.step >= rung:
            came = rungs.setdefault(rung, [])
            came.append(sign * now.value)
            better = sum(value > sign * now.value for value in came)
            if len(came) >= rule.reduction and better >= -(-len(came) // rule.reduction):
                found.setdefault(now.id, now.step)
            rung *= rule.reduction
        reached[now.id] = rung
    return found


def slow_median(rule, reports, sign):
    """The same for the median rule: every report looks at all evaluations."""
    shown, found = {}, {}
    for now in reports:
        own = shown.setdefault((now.id, now.attempt), [])
        own.append((now.step, sign * now.value))
        if now.step < rule.first or now.id in found:
            continue
        means = []
        for (id, _), curve in shown.items():
            some = [value for step, value in curve if step <= now.step]
            if id != now.id and curve[-1][0] >= now.step and some:
                means.append(sum(some[1:], some[0]) / len(some))
        if len(means) >= rule.least and max(v for _, v in own) < median(means):
            found[now.id] = now.step
    return found


def any_log(rng):
    """Reports that skip steps, begin anew, tie, and come in any order."""
    count, scale = rng.randint(1, 25), rng.choice([1, 7, 100])
    ends = {id: rng.randint(1, 12) for id in range(count)}
    at, reports = {id: (1, 0) for id in ends}, []
    while ends:
        id = rng.choice(sorted(ends))
        attempt, step = at[id]
        if step and rng.random() < 0.05:
            attempt, step = attempt + 1, 0
        step += rng.randint(1, scale)
        at[id] = attempt, step
        value = rng.choice([rng.gauss(0.0, 1.0), float(rng.randint(-2, 2))])
        reports.append(Reported(id, attempt, step, value))
        ends[id] -= 1
        if not ends[id]:
            del ends[id]
    return reports


@pytest.mark.parametrize("seed", range(3))
def test_sorted_values_stop_what_a_look_at_all_of_them_stops(seed):
    rng, stopped = random.Random(seed), 0
    for _ in range(60):
        reports, sign = any_log(rng), rng.choice([1.0, -1.0])
        halving = Halving(rng.randint(1, 3), rng.randint(2, 4))
        assert halving.stopped(reports, sign) == slow_halving(halving, reports, sign)
        rule = MedianRule(rng.randint(1, 5), rng.randint(1, 5))
        assert rule.stopped(reports, sign) == slow_median(rule, reports, sign)
        stopped += len(rule.stopped(reports, sign)) + len(halving.stopped(reports, sign))
    assert stopped > 300


class Counted(float):
    """A number that counts how often it, or what is computed of it, is compared."""

    compared = 0

    def __lt__(self, other):
        Counted.compared += 1
        return float(self) < float(other)

    def __gt__(self, other):
        Counted.compared += 1
        return float(self) > float(other)

    def __rmul__(self, other):
        return Counted(float(self) * other)

    def __add__(self, other):
        return Counted(float(self) + other)

    def __truediv__(self, other):
        return Counted(float(self) / other)


@pytest.mark.parametrize("rule", [Halving(), MedianRule()], ids=str)
def test_comparisons_grow_with_the_reports_and_not_with_their_square(rule):
    """Twice the trials: little more than twice the comparisons; the control, four times."""
    slow = slow_halving if isinstance(rule, Halving) else slow_median

    def compared(count, stopped):
        rng, before = random.Random(0), Counted.compared
        steps = [(id, step) for id in range(count) for step in (1, 3, 9)]
        reports = [  # a Reported makes a plain number of its value
            SimpleNamespace(id=id, attempt=1, step=step, value=Counted(rng.random()))
            for id, step in steps
        ]
        stopped(reports)
        return Counted.compared - before

    few, many = (compared(count, lambda r: rule.stopped(r, 1.0)) for count in (100, 200))
    assert 0 < many < 2.6 * few
    few, many = (compared(count, lambda r: slow(rule, r, 1.0)) for count in (100, 200))
    assert many > 3.4 * few


@pytest.mark.parametrize(
    "make",
    [
        lambda: Halving(0),
        lambda: Halving(1, 1),
        lambda: Halving(1.5),
        lambda: MedianRule(0),
        lambda: MedianRule(1, 0),
        lambda: rule_of("ashe"),
        lambda: rule_of(3),
    ],
)
def test_rules_that_make_no_sense(make):
    with pytest.raises(StrategyError, match="stopping"):
        make()


@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_out_changes_no_decision_of_halving(seed):
    """Reports that come many at a time are thinned; all are compared at the same steps still."""
    rng, rule, whole = random.Random(seed), Halving(1, 2), curves(seed)
    logged, came = [], []
    seen = dict.fromkeys(range(12), -1)
    for one in whole:
        came.append(one)
        if rng.random() < 0.05 or one is whole[-1]:
            for id in seen:
                mine = [(r.step, r.value) for r in came if r.id == id]
                logged += [Reported(id, 1, *r) for r in worth_logging(mine, seen[id], rule)]
                seen[id] = max([seen[id], *(step for step, _ in mine)])
            came.clear()
    assert len(logged) < len(whole)
    at = {(r.id, r.step) for r in logged}
    assert {(r.id, r.step) for r in whole if r.step in (1, 2, 4, 8, 16)} <= at


def test_only_what_is_pending_is_stopped():
    history = History().then(Asked(tuple(Point(x=i / 9) for i in range(9)), "random"))
    for id, value in enumerate([0.8, 0.9, 0.1, 0.2]):
        history = history.then(Reported(id, 1, 1, value))
    assert {*to_stop(history, Halving(1, 2), 1.0)} == {2, 3}
    history = history.then(Told((2,), (0.1,)))
    assert to_stop(history, Halving(1, 2), 1.0) == {3: Reported(3, 1, 1, 0.2)}


# ---------------------------------------------------------------- runs


def trains(point):
    """Sixteen steps of a tenth of a second towards x."""
    for step in range(1, 17):
        time.sleep(0.1)
        report(step, point["x"] * step / 16)
    return point["x"]


def test_a_run_stops_what_does_badly(tmp_path):
    study = covey.Study(SPACE, seed=0, journal=tmp_path / "run.jsonl")
    study.enqueue([{"x": x} for x in (0.9, 0.8, 0.1, 0.95)])
    result = run(study, trains, batch=1, rounds=1, workers=2, stopping=Halving(1, 2))
    stopped = study.history.stopped
    assert 2 in stopped
    assert not {0, 3} & {*stopped}
    assert result.value >= 0.95
    for id, step in stopped.items():
        trial, reports = study.history.trial(id), study.history.reports(id)
        assert (trial.status, trial.value) == ("told", reports[-1].value)
        assert (reports[-1].step, step < 16) == (step, True)
    whole = study.history.reports(0)
    assert [r.step for r in whole] == sorted({r.step for r in whole})
    assert {1, 2, 4, 8, 16} <= {r.step for r in whole}  # every rung


def test_one_that_ends_all_the_same_has_its_value():
    """It was told what it had shown when it was stopped; its own end says more."""

    def answer(task):
        return [Outcome(task.name, "succeeded", 0.4)] if study.history.trial(0).value else []

    study = covey.Study(SPACE, seed=0)
    engine = Scripted(answer, slots=2)
    engine.reports = lambda: [(t.name, 1, 0.3 - 0.1 * t.id) for t in engine.tasks]
    engine.cancel = engine.cancelled.extend  # it is at its end already
    dispatcher = Dispatcher(study, engine, Function(abs), None, Retries())
    dispatcher.rule = Stubborn()
    dispatcher.admit(study.ask(1))
    for _ in range(3):
        dispatcher.work(0.0)
    assert (study.history.trial(0).value, study.history.stopped) == (0.4, {})
    assert "although it was stopped" in study.history.events[-1].reason


class Stubborn:
    """Stops whoever reports."""

    def stopped(self, reports, sign):
        return {report.id: report.step for report in reports}

    def needs(self, before, step):
        return True


def test_one_that_ends_with_the_value_it_was_stopped_with_is_not_corrected():
    """Stopped at its last step, it is told what it would have returned."""
    plain, more = Outcome("a", "succeeded", 0.5), Outcome("a", "succeeded", 0.75)
    assert completion(3, plain, {"value": 0.5}) == []
    assert [event.value for event in completion(3, more, {"value": 0.5})] == [{"value": 0.75}]
    named = Outcome("a", "succeeded", values={"gain": 0.5, "size": 3.0})
    assert [type(event) for event in completion(3, named, {"gain": 0.5})] == [Told]
    assert [type(event) for event in completion(3, named, {"gain": 0.25})] == [Amended, Told]


def test_without_a_rule_reports_are_only_logged(tmp_path):
    study = covey.Study(SPACE, seed=0, journal=tmp_path / "run.jsonl")
    run(study, trains, batch=2, rounds=1, workers=2)
    assert not study.history.stopped
    assert all(study.history.reports(trial)[-1].step == 16 for trial in study.history.told)


def test_a_decision_that_a_killed_run_left_is_carried_out(tmp_path):
    """The log says enough: the next run tells it, though nothing is reported any more."""
    study = covey.Study(SPACE, seed=0, journal=tmp_path / "run.jsonl")
    study.enqueue([{"x": x} for x in (0.9, 0.8, 0.1)])
    for id, value in enumerate([0.9, 0.8, 0.1]):
        study.note(Reported(id, 1, 1, value))
    run(study, trains, batch=1, rounds=1, workers=2, stopping=Halving(1, 2))
    assert (study.history.trial(2).value, study.history.stopped[2]) == (0.1, 1)
    assert not study.history.attempts(2)


def test_a_program_reports_by_its_output(tmp_path):
    code = (
        "import sys, time\nx = float(sys.argv[1])\n"
        "for step in range(1, 17):\n    time.sleep(0.1)\n    print(step, x * step, flush=True)\n"
    )
    study = covey.Study(SPACE, "min", seed=0, journal=tmp_path / "run.jsonl")
    study.enqueue([{"x": x} for x in (0.1, 0.2, 0.9, 0.8)])
    command = Command([sys.executable, "-c", code, "{x.x}"])
    run(study, command, batch=1, rounds=1, workers=2, stopping=Halving(1, 2))
    assert {2, 3} <= {*study.history.stopped}
    assert study.history.trial(0).value == pytest.approx(1.6)  # its last line, "16 1.6"


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (lambda p: report(5, 1.0) or report(3, 1.0), "step 3 after step 5"),
        (lambda p: report(1, float("nan")), "by the names of outcomes; got nan"),
        (lambda p: report(value=1.0), "missing 1 required positional argument: 'step'"),
        (Command([sys.executable, "-c", "pass"]), "it printed nothing; its last line has to be"),
    ],
)
def test_bad_reports_fail_an_evaluation_with_the_reason(tmp_path, f, said):
    study = covey.Study(SPACE, seed=0, journal=tmp_path / "run.jsonl")
    with pytest.raises(EvaluationError, match=said):
        run(study, f, batch=1, rounds=1, workers=1)


class Mute(Scripted):
    """An engine of a stranger, which brings no reports."""


def test_where_it_cannot_work_it_is_refused():
    with pytest.raises(StrategyError, match="no method `reports`"):
        run(covey.Study(SPACE), abs, workers=Mute(lambda task: [], slots=2), stopping="asha")
    several = covey.Study(SPACE, {"a": "max", "b": "min"})
    with pytest.raises(StrategyError, match="one goal, and this study has 2: a, b"):
        run(several, abs, stopping="median")
    with pytest.raises(StrategyError, match="Did you mean 'asha'"):
        run(covey.Study(SPACE), abs, stopping="asah")
    assert os.environ.get(VARIABLE) is None


# ---------------------------------------------------------------- outcomes that have names


def named_study(tmp_path, sense="max"):
    study = covey.Study(
        SPACE,
        {"accuracy": sense},
        limits={"size": ("<=", 5.0)},
        seed=0,
        journal=tmp_path / "run.jsonl",
    )
    study.enqueue([{"x": x} for x in (0.9, 0.8, 0.1)])
    return study


@pytest.mark.parametrize(("sense", "sign"), [("max", 1.0), ("min", -1.0)])
@pytest.mark.parametrize("plain", [True, False])
def test_the_only_goal_of_several_outcomes_is_compared(tmp_path, plain, sense, sign):
    def train(point):
        for step in range(1, 17):
            time.sleep(0.1)
            value = sign * point["x"] * step / 16
            report(step, value if plain else {"accuracy": value, "size": 3.0})
        return {"accuracy": sign * point["x"], "size": 3.0}

    study = named_study(tmp_path, sense)
    run(study, train, batch=1, rounds=1, workers=2, stopping=Halving(1, 2))
    history = study.history
    assert 2 in history.stopped
    assert 0 not in history.stopped
    trial, last = history.trial(2), history.reports(2)[-1]
    assert (trial.values, trial.value) == ({"accuracy": last.value}, last.value)
    assert history.metrics(2) == {"stopped": last.step}
    assert history.trial(0).values == {"accuracy": sign * 0.9, "size": 3.0}
    again = covey.Study.load(tmp_path / "run.jsonl", SPACE)  # the journal holds it
    assert again.history.trial(2) == trial


def test_one_with_names_that_ends_all_the_same_has_all_its_values(tmp_path):
    def answer(task):
        values = {"accuracy": 0.4, "size": 3.0}
        told = study.history.trial(0).values
        return [Outcome(task.name, "succeeded", values=values)] if told else []

    study = named_study(tmp_path)
    engine = Scripted(answer, slots=1)
    engine.reports = lambda: [(t.name, 1, {"accuracy": 0.3}) for t in engine.tasks]
    engine.cancel = engine.cancelled.extend  # it is at its end already
    dispatcher = Dispatcher(study, engine, Function(abs), None, Retries())
    dispatcher.rule = Stubborn()
    dispatcher.admit([study.history.trial(0)])
    for _ in range(3):
        dispatcher.work(0.0)
    assert study.history.trial(0).values == {"accuracy": 0.4, "size": 3.0}
    assert study.history.stopped == {}


def test_reports_without_the_goal_are_passed_over_and_named_once(tmp_path, caplog):
    study = named_study(tmp_path)
    engine = Scripted(lambda task: [], slots=1)
    engine.reports = lambda: [(t.name, 1, {"loss": 0.3, "rate": 1.0}) for t in engine.tasks]
    dispatcher = Dispatcher(study, engine, Function(abs), None, Retries())
    dispatcher.admit([study.history.trial(0)])
    for _ in range(3):
        dispatcher.work(0.0)
    assert study.history.reports(0) == ()
    assert caplog.text.count("says accuracy by its name; passed over: loss, rate") == 1
