"""What Optuna's trials mean to Covey."""

from __future__ import annotations

import math

import pytest

optuna = pytest.importorskip("optuna", reason="pip install 'covey[optuna]'")

from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from covey.integrations.optuna import history_of, status_of
from covey.integrations.optuna_batches import (
    BatchStore,
    Place,
    all_trials,
    store_batch,
    store_claim,
)
from covey.integrations.spaces.optuna import space_from_optuna

X = {"x": FloatDistribution(0.0, 1.0)}
SPACE = space_from_optuna(X)


def trial_at(x, value=None, state=TrialState.COMPLETE, **more):
    return create_trial(params={"x": x}, distributions=X, value=value, state=state, **more)


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
        (trial_at(0.1, 0.5, TrialState.PRUNED, intermediate_values={1: 0.5}), "failed"),
        (trial_at(0.1, 1.5, constraints={"a": -1.0, "b": 0.0}), "told"),
        (trial_at(0.1, 1.5, constraints={"a": -1.0, "b": 0.1}), "failed"),
        (trial_at(0.1, 1.5, system_attrs={"constraints": [0.5]}), "failed"),  # before Optuna 5
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
    study.add_trial(trial_at(0.6, state=TrialState.RUNNING))
    history = history_of(BatchStore(all_trials(study), SPACE), but=8)
    assert [(t.point["x"], t.value) for t in history.told] == [(0.1, 1.5), (0.1, 2.5)]
    assert [t.point["x"] for t in history.failed] == [0.2, 0.3]
    assert [t.point["x"] for t in history.pending] == [0.4, 0.5]
    assert (history.asked_count, history.rounds) == (0, 0)


def test_batches_count_as_rounds_and_their_trials_say_what_was_run():
    study = optuna.create_study()
    for _ in range(3):
        study.ask()
    trials = all_trials(study)
    store_batch(study, trials[0], SPACE, 0, [{"x": 0.25}, {"x": 0.5}])
    store_claim(study, trials[0], Place(0, 0, 0))
    store_claim(study, trials[1], Place(0, 0, 1))
    study._storage.set_trial_param(trials[0]._trial_id, "x", 0.25, X["x"])
    study.tell(0, 4.0)
    history = history_of(BatchStore(all_trials(study), SPACE), but=2)
    assert (history.asked_count, history.rounds) == (2, 1)
    assert [(t.point["x"], t.value) for t in history.told] == [(0.25, 4.0)]
    assert [t.point["x"] for t in history.pending] == [0.5]  # taken, not yet suggested


def test_nothing_is_a_history_too():
    history = history_of(BatchStore([], SPACE), but=0)
    assert len(history) == 0
