"""What Optuna's trials mean to Covey."""

from __future__ import annotations

import math

import pytest

optuna = pytest.importorskip("optuna", reason="pip install 'covey[optuna]'")

from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from covey.integrations.optuna import (
    all_trials,
    history_of,
    outcomes_of,
    point_of,
    status_of,
)
from covey.integrations.spaces.optuna import space_from_optuna
from covey.outcomes import Outcomes

X = {"x": FloatDistribution(0.0, 1.0)}
SPACE = space_from_optuna(X)


NAMED = hasattr(FrozenTrial, "constraints")  # since Optuna 5; before, they are a list


def constrained(values):
    return (
        {"constraints": values} if NAMED else {"system_attrs": {"constraints": [*values.values()]}}
    )


def trial_at(x, value=None, state=TrialState.COMPLETE, **more):
    return create_trial(params={"x": x}, distributions=X, value=value, state=state, **more)


def pruned_at(x, reports, **more):
    return trial_at(x, state=TrialState.PRUNED, intermediate_values=reports, **more)


@pytest.mark.parametrize(
    ("trial", "fate"),
    [
        (trial_at(0.1, 1.5), "told"),
        (trial_at(0.1, -1e100), "told"),
        (trial_at(0.1, math.inf), "failed"),
        (trial_at(0.1, -math.inf), "failed"),
        (trial_at(0.1, 1e200), "failed"),
        (trial_at(0.1, state=TrialState.FAIL), "failed"),
        (trial_at(0.1, state=TrialState.PRUNED), "failed"),
        (pruned_at(0.1, {1: 0.5}), "stopped"),
        (pruned_at(0.1, {1: 0.5, 2: math.nan, 3: 0.4}), "stopped"),
        (pruned_at(0.1, {1: 0.5, 2: math.nan}), "failed"),  # it diverged
        (pruned_at(0.1, {1: 0.5, 2: -math.inf}), "failed"),
        (pruned_at(0.1, {1: 1e200}), "failed"),
        (pruned_at(0.1, {1: 0.5}, **constrained({"a": 0.1})), "stopped"),
        (pruned_at(0.1, {1: 0.5}, **constrained({"a": math.inf})), "failed"),
        (trial_at(0.1, state=TrialState.RUNNING, intermediate_values={1: 0.5}), "pending"),
        (trial_at(0.1, 1.5, intermediate_values={1: math.nan}), "told"),
        (trial_at(0.1, 1.5, **constrained({"a": -1.0, "b": 0.0})), "told"),
        (trial_at(0.1, 1.5, **constrained({"a": -1.0, "b": 0.1})), "told"),
        (trial_at(0.1, 1.5, **constrained({"a": -1.0, "b": math.inf})), "failed"),
        (trial_at(0.1, 1.5, system_attrs={"constraints": [0.5]}), "told"),  # before Optuna 5
        (trial_at(0.1, state=TrialState.RUNNING), "pending"),
        (trial_at(0.1, state=TrialState.WAITING), "pending"),
    ],
)
def test_the_fate_of_a_trial(trial, fate):
    assert status_of(trial) == fate


def test_a_study_as_a_history():
    study = optuna.create_study()
    study.add_trial(trial_at(0.1, 1.5))
    study.add_trial(trial_at(0.2, state=TrialState.FAIL))
    study.add_trial(create_trial(value=3.0))  # without x
    study.add_trial(trial_at(0.3, math.inf))
    study.add_trial(
        create_trial(params={"x": 7}, distributions={"x": IntDistribution(0, 9)}, value=1.0)
    )  # outside the space
    study.add_trial(trial_at(0.1, 2.5))  # a repeat
    study.add_trial(trial_at(0.4, state=TrialState.RUNNING))
    study.enqueue_trial({"x": 0.5})
    study.ask()  # nobody knows yet where it will be
    history = history_of(SPACE, all_trials(study), Outcomes.of("max"))
    assert [(t.point["x"], t.value) for t in history.told] == [(0.1, 1.5), (0.1, 2.5)]
    assert [t.point["x"] for t in history.failed] == [0.2, 0.3]
    assert [t.point["x"] for t in history.pending] == [0.4, 0.5]
    assert history.asked_count == history.rounds == 6  # each is an ask


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_pruned_trial_is_told_as_our_own_runs_tell_what_they_stop(direction):
    """In the user's own sign, whatever the direction: the last value reported, and its step."""
    study = optuna.create_study(direction=direction)
    study.add_trial(trial_at(0.1, 1.5, intermediate_values={0: -2.0, 4: 1.5}))
    study.add_trial(pruned_at(0.2, {4: -0.5, 0: 9.0, 2: math.nan}))
    study.add_trial(pruned_at(0.3, {}))
    study.add_trial(trial_at(0.4, state=TrialState.RUNNING, intermediate_values={0: 1.0}))
    history = history_of(SPACE, all_trials(study), Outcomes.of("max"))
    assert [(t.point["x"], t.value) for t in history.told] == [(0.1, 1.5), (0.2, -0.5)]
    assert [history.metrics(t) for t in history.told] == [{}, {"stopped": 4}]
    reports = [[(r.attempt, r.step, r.value) for r in history.reports(t)] for t in history]
    assert reports[:2] == [[(1, 0, -2.0), (1, 4, 1.5)], [(1, 0, 9.0), (1, 4, -0.5)]]
    assert history.stopped == {1: 4}
    assert [t.point["x"] for t in history.failed] == [0.3]
    assert [t.point["x"] for t in history.pending] == [0.4]


def test_constraints_without_names_have_numbers(monkeypatch):
    """As in Optuna 4, where samplers leave a list."""
    monkeypatch.setattr(FrozenTrial, "constraints", None, raising=False)
    study = optuna.create_study()
    for x, values in ((0.1, [-1.0, 0.5]), (0.2, None), (0.3, [math.inf, 0.0])):
        study.add_trial(trial_at(x, x, system_attrs={"constraints": values}))
    trials = all_trials(study)
    assert [status_of(trial) for trial in trials] == ["told", "told", "failed"]
    outcomes = outcomes_of(study, trials)
    assert list(map(str, outcomes.limits)) == ["constraint 0 <= 0", "constraint 1 <= 0"]
    told = history_of(SPACE, trials, outcomes).told
    assert told[0].values == {"objective 0": 0.1, "constraint 0": -1.0, "constraint 1": 0.5}


@pytest.mark.skipif(not NAMED, reason="constraints have names since Optuna 5")
def test_constraints_are_told_by_name_of_complete_and_of_pruned_trials():
    study = optuna.create_study(direction="maximize")
    study.add_trial(trial_at(0.1, 1.5, **constrained({"a": -1.0, "b": 0.5})))
    study.add_trial(trial_at(0.2, 2.5))  # of which no constraint is known
    study.add_trial(pruned_at(0.3, {3: 0.5}, constraints={"b": -2.0}))
    trials = all_trials(study)
    outcomes = outcomes_of(study, trials)
    assert list(map(str, outcomes.limits)) == ["constraint a <= 0", "constraint b <= 0"]
    history = history_of(SPACE, trials, outcomes)
    assert [trial.values for trial in history.told] == [
        {"objective 0": 1.5, "constraint a": -1.0, "constraint b": 0.5},
        {"objective 0": 2.5},
        {"objective 0": 0.5, "constraint b": -2.0},
    ]
    assert [trial.value for trial in history.told] == [1.5, 2.5, 0.5]
    assert history.stopped == {2: 3}
    assert outcomes_of(study, trials[1:2]).plain


def test_of_many_steps_the_same_ones_of_all_trials_are_kept():
    study = optuna.create_study()
    lengths = (1000, 777, 30)
    for length in lengths:
        reports = {step: 1.0 / (1 + step) for step in range(length)}
        study.add_trial(pruned_at(length / 1000, reports))
    history = history_of(SPACE, all_trials(study), Outcomes.of("max"))
    kept = [[report.step for report in history.reports(trial)] for trial in history]
    assert [steps[-1] for steps in kept] == [length - 1 for length in lengths]
    assert len(kept[0]) == 64
    assert {*kept[1][:-1]} | {*kept[2][:-1]} <= {*kept[0]}
    assert history.stopped == {i: length - 1 for i, length in enumerate(lengths)}


def test_with_several_objectives_nothing_is_pruned_so_what_says_so_failed():
    assert status_of(pruned_at(0.1, {1: 0.5}), several=True) == "failed"
    study = optuna.create_study(directions=["minimize"] * 2)
    with pytest.raises(NotImplementedError):  # if Optuna learns it one day, so should we
        study.ask(X).report(0.5, 1)


def test_where_a_trial_is():
    """What it suggested counts more than what it was fixed to."""
    xy = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}
    space, study = space_from_optuna(xy), optuna.create_study()
    study.enqueue_trial({"y": 0.125})
    trial = study.ask()
    assert point_of(space, all_trials(study)[0]) is None  # x is not known
    study._storage.set_trial_param(trial._trial_id, "x", 0.75, xy["x"])
    assert point_of(space, all_trials(study)[0]) == {"x": 0.75, "y": 0.125}
    study._storage.set_trial_param(trial._trial_id, "y", 0.25, xy["y"])
    assert point_of(space, all_trials(study)[0]) == {"x": 0.75, "y": 0.25}


def test_nothing_is_a_history_too():
    assert len(history_of(SPACE, [], Outcomes.of("max"))) == 0
