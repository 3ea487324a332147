"""CoveySampler beside Optuna's pruners: what a pruned trial showed is learnt from."""

from __future__ import annotations

import numpy as np
import pytest

optuna = pytest.importorskip("optuna", reason="pip install 'covey[optuna]'")

from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from covey.integrations.optuna import CoveySampler, all_trials, history_of
from covey.integrations.spaces.optuna import space_from_optuna
from covey.outcomes import Outcomes

SQUARE = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}
PRUNERS = {
    "median": lambda: optuna.pruners.MedianPruner(n_startup_trials=3),
    "hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9),
    "halving": lambda: optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3),
}


def trained(sign):
    """A training of nine steps whose loss falls towards a bowl; ``sign`` -1 is a score."""

    def objective(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        loss = (x - 0.3) ** 2 + (y - 0.6) ** 2
        for step in range(9):
            trial.report(sign * (loss + 0.5**step), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return sign * loss

    return objective


@pytest.mark.parametrize(("direction", "sign"), [("minimize", 1.0), ("maximize", -1.0)])
@pytest.mark.parametrize("pruner", PRUNERS)
def test_pruners_end_some_trials_and_the_search_goes_on(pruner, direction, sign):
    study = optuna.create_study(
        direction=direction, sampler=CoveySampler(seed=0), pruner=PRUNERS[pruner]()
    )
    study.optimize(trained(sign), n_trials=24)
    assert {trial.state for trial in study.trials} == {TrialState.COMPLETE, TrialState.PRUNED}
    assert len({tuple(trial.params.items()) for trial in study.trials}) == 24
    assert abs(study.best_value) < 0.02
    history = history_of(space_from_optuna(SQUARE), all_trials(study), Outcomes.of("max"))
    pruned = [trial for trial in study.trials if trial.state == TrialState.PRUNED]
    assert not history.failed
    assert list(history.stopped.values()) == [trial.last_step for trial in pruned]
    told = [trial.value for trial in history.told]
    assert told == [trial.value for trial in study.trials]  # in the user's sign


@pytest.mark.parametrize(("direction", "sign"), [("minimize", 1.0), ("maximize", -1.0)])
def test_values_of_pruned_trials_lead_to_the_best_region(direction, sign):
    """Nearly all that is known comes from pruned trials; without their values the points differ."""

    def asked(values_known):
        study = optuna.create_study(
            direction=direction, sampler=CoveySampler(seed=0, search_space=SQUARE)
        )
        for i, point in enumerate(np.random.default_rng(0).random((24, 2))):
            x, y = map(float, point)
            loss = (x - 0.3) ** 2 + (y - 0.6) ** 2
            reports = {0: sign * (loss + 1.0), 8: sign * loss}
            state = TrialState.COMPLETE if i < 2 else TrialState.PRUNED
            study.add_trial(
                create_trial(
                    params={"x": x, "y": y},
                    distributions=SQUARE,
                    value=sign * loss if state == TrialState.COMPLETE else None,
                    state=state,
                    intermediate_values=reports if values_known else {},
                )
            )
        found = [study.ask(SQUARE).params for _ in range(6)]
        return np.median([(p["x"] - 0.3) ** 2 + (p["y"] - 0.6) ** 2 for p in found])

    assert asked(True) < 0.02
    assert asked(False) > 0.05  # the control: as failures they say only where not to look


def test_a_point_that_the_objective_refuses_is_not_proposed_again():
    """TrialPruned before any report is how objectives reject a point; it must not come back."""
    space = {"n": optuna.distributions.IntDistribution(0, 9)}
    study = optuna.create_study(sampler=CoveySampler(seed=0, search_space=space))

    def objective(trial):
        n = trial.suggest_int("n", 0, 9)
        if n % 2:
            raise optuna.TrialPruned
        return n

    study.optimize(objective, n_trials=10)
    assert sorted(trial.params["n"] for trial in study.trials) == [*range(10)]


def test_a_trial_that_is_tried_again_keeps_what_it_showed():
    """Optuna's retries begin as a copy, reports and all; the first attempt stays a failure."""
    study = optuna.create_study(sampler=CoveySampler(seed=0, search_space=SQUARE))
    first = study.ask(SQUARE)
    first.report(0.5, 0)
    study.tell(first, state=TrialState.FAIL)
    study.add_trial(
        create_trial(
            state=TrialState.WAITING,
            params=first.params,
            distributions=SQUARE,
            system_attrs={"failed_trial": 0, "fixed_params": first.params},
            intermediate_values={0: 0.5},
        )
    )
    again = study.ask(SQUARE)
    assert (again.number, again.params) == (1, first.params)
    again.report(0.25, 3)
    study.tell(again, state=TrialState.PRUNED)
    history = history_of(space_from_optuna(SQUARE), all_trials(study), Outcomes.of("max"))
    (told,) = history.told
    assert (told.value, history.metrics(told)) == (0.25, {"stopped": 3})
    assert [(report.step, report.value) for report in history.reports(told)] == [
        (0, 0.5),
        (3, 0.25),
    ]
    assert len(history.failed) == 1
    assert study.ask(SQUARE).params != first.params
