"""What the model predicted before each value was told, and how that came out."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import covey
from covey.advice import predict
from covey.gp import GP, Model, condition, observe
from covey.history import Batch, History, Point, Trial
from covey.kernels import Matern52
from covey.learn import Recipe, understand
from covey.outcomes import Outcomes
from covey.report.predictions import (
    Forecast,
    PastForecast,
    calibrate,
    error_of,
    forecasts,
    past_forecasts,
)
from covey.space import Real, Space

SPACE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})


def f(trial):
    return float(np.sin(6.0 * trial.point["x"]) + trial.point["y"] ** 2)


def followed(goal, gp, rounds=3):
    """A study, and what it predicted for each batch at the moment it was asked for."""
    study = covey.Study(SPACE, goal=goal, seed=3, gp=gp)
    said = {}
    for _ in range(rounds):
        before = study.history
        batch = study.ask(4)
        if before.told:
            # what `Study.predict` would have said at that moment: a fit of its own
            rng = np.random.default_rng([study.seed, before.asked_count])
            posterior = understand(before, study.recipe, rng, waiting=False)
            told = predict(posterior, study.recipe, tuple(t.point for t in batch))
            said |= zip([t.id for t in batch], zip(*told, strict=True), strict=True)
        study.tell(batch, [f(t) for t in batch])
    return study, said


@pytest.mark.parametrize("goal", ["max", "min"])
def test_hindsight_is_what_the_study_said_then(goal):
    study, said = followed(goal, covey.GP(noise=0.1, warp=False))
    seen = past_forecasts(study.history, study.recipe, study.history.batches)
    assert sorted(seen) == sorted(said) == list(range(4, 12))
    for i, (mean, std) in said.items():
        assert seen[i].forecast.mean == pytest.approx(mean, rel=1e-9, abs=1e-9)
        assert seen[i].forecast.std == pytest.approx(np.hypot(std, 0.1), rel=1e-6)


def test_what_came_later_changes_nothing():
    study, _ = followed("max", covey.GP(), rounds=4)
    batches = study.history.batches
    all_of_it = past_forecasts(study.history, study.recipe, batches)
    third = batches[2]
    part = History(study.history.events[: third.place + 1])
    only = past_forecasts(part, study.recipe, [third])
    assert {i: all_of_it[i] for i in third.ids} == only


def test_an_amended_value_is_believed_only_from_then_on():
    study, _ = followed("max", covey.GP(warp=False), rounds=2)
    batches = study.history.batches
    before = past_forecasts(study.history, study.recipe, batches)
    study.amend(0, -50.0, "a slip of the pen")
    assert past_forecasts(study.history, study.recipe, batches) == before
    batch = study.ask(2)
    after = past_forecasts(study.history, study.recipe, study.history.batches)
    assert after[batch[0].id].forecast.std > 1.0  # the outlier is in the model of the next batch


def test_open_trials_do_not_narrow_the_band():
    study, _ = followed("max", covey.GP(warp=False), rounds=2)
    study.ask(3)
    batches = study.history.batches
    first = past_forecasts(study.history, study.recipe, batches)
    # the same point asked for again while the first is open: the same belief, not a narrower one
    point = study.history.trial(8).point
    event = study.history.events[batches[-1].place]
    again = study.history.then(type(event)((point,), event.strategy, event.models))
    seen = past_forecasts(again, study.recipe, again.batches)
    repeated = seen[len(study.history)].forecast
    assert repeated.mean == pytest.approx(first[8].forecast.mean, rel=1e-9)
    assert repeated.std == pytest.approx(first[8].forecast.std, rel=1e-9)


def test_a_known_error_replaces_the_noise_of_the_model():
    study = covey.Study(SPACE, seed=0)
    batch = study.ask(4)
    study.tell(batch, [f(t) for t in batch], sem=0.01)
    sharp, vague = study.ask(2)
    study.tell([sharp, vague], [1.0, 1.0], sem=[0.0, 10.0])
    seen = past_forecasts(study.history, study.recipe, study.history.batches)
    assert seen[sharp.id].forecast.std < 2.0
    assert seen[vague.id].forecast.std == pytest.approx(10.0, rel=0.05)


@pytest.mark.parametrize("goal", ["max", "min"])
def test_the_chance_is_that_of_a_better_point(goal):
    study, said = followed(goal, covey.GP(noise=0.1, warp=False), rounds=2)
    batches = study.history.batches
    seen = past_forecasts(study.history, study.recipe, batches)
    before = History(study.history.events[: batches[1].place])
    rng = np.random.default_rng([study.seed, before.asked_count])
    posterior = understand(before, study.recipe, rng, waiting=False)
    told = predict(posterior, study.recipe, tuple(t.point for t in before.told)).mean
    best = told.max() if goal == "max" else told.min()
    for i, (mean, std) in said.items():
        better = norm.sf(best, mean, std) if goal == "max" else norm.cdf(best, mean, std)
        assert seen[i].chance == pytest.approx(better, rel=1e-6)


def test_no_look_back_past_very_many_results(line, monkeypatch):
    line.tell(line.ask(3), [1.0, 2.0, 3.0])
    line.tell(line.ask(2), [1.0, 2.0])
    line.ask(2)
    batches = line.history.batches
    assert sorted(past_forecasts(line.history, line.recipe, batches)) == [3, 4, 5, 6]
    monkeypatch.setattr("covey.report.predictions.MOST_TOLD", 3)
    assert sorted(past_forecasts(line.history, line.recipe, batches)) == [3, 4]


def test_without_a_model_there_is_no_hindsight(line):
    line.tell(line.ask(3), [1.0, 2.0, 3.0])
    line.tell(line.ask(3, strategy="random"), [1.0, 2.0, 3.0])
    line.enqueue([{"x": 0.2}])
    assert past_forecasts(line.history, line.recipe, line.history.batches) == {}


def test_sampled_hyperparameters_are_all_used():
    study, _ = followed("max", covey.GP(samples=3), rounds=2)
    seen = past_forecasts(study.history, study.recipe, study.history.batches)
    assert len(seen) == 4
    assert all(np.isfinite(one.forecast.mean) for one in seen.values())


# Forecasts of a posterior


LINE = Space({"x": Real(0.0, 1.0)})


def posterior_of(values, view):
    at = np.linspace(0.0, 1.0, len(values))[:, None]
    data = observe(at, np.asarray(values), np.full(len(values), np.nan), view=view)
    return condition([Model(Matern52((0.3,), 1.0), 0.01)], data)


@pytest.mark.parametrize("goal", ["max", "min"])
@pytest.mark.parametrize("view", ["straight", "warped"])
def test_a_forecast_of_f_is_what_predict_says(goal, view):
    posterior = posterior_of([1.0, 1.1, 1.3, 2.0, 9.0, 30.0], view)
    at = np.array([[0.1], [0.93]])
    recipe = Recipe(LINE, Outcomes.of(goal), GP(), 0)
    mean, std = posterior.predict(at)
    found = forecasts(posterior, recipe, posterior.belief(at))
    assert [f.mean for f in found] == pytest.approx(recipe.sign * mean)
    assert [f.std for f in found] == pytest.approx(std)


@pytest.mark.parametrize("view", ["straight", "warped"])
def test_the_bands_hold_their_share(view):
    """Draws of a measurement fall inside as often as the band says; a wrong share would show."""
    posterior = posterior_of([1.0, 1.1, 1.3, 2.0, 9.0, 30.0], view)
    belief = posterior.belief(np.array([[0.5]]))
    (found,) = forecasts(posterior, Recipe(LINE, Outcomes.of("min"), GP(), 0), belief, 0.3)
    rng = np.random.default_rng(0)
    n = 20_000
    w = belief.mean + np.sqrt(belief.var + 0.3) * rng.standard_normal(n)
    draws = -posterior.outcome(w)
    for (low, high), band in ((found.half, 0.5), (found.most, 0.9)):
        inside = np.count_nonzero((low <= draws) & (draws <= high))
        assert _off(inside, n, band) < 4.0
        assert (
            _off(np.count_nonzero((low <= draws) & (draws <= high + 0.2 * found.std)), n, band)
            > 4.0
        )
    assert found.most[0] <= found.half[0] <= found.half[1] <= found.most[1]
    assert found.mean == pytest.approx(draws.mean(), rel=0.05)
    assert found.std == pytest.approx(draws.std(), rel=0.05)


def _off(count, n, p):
    """Distance from what is expected, in standard deviations of a binomial."""
    return abs(count - p * n) / np.sqrt(n * p * (1.0 - p))


def test_noise_widens():
    posterior = posterior_of([1.0, 2.0, 0.5], False)
    belief = posterior.belief(np.array([[0.25]]))
    recipe = Recipe(LINE, Outcomes.of("max"), GP(), 0)
    (without,) = forecasts(posterior, recipe, belief)
    (with_noise,) = forecasts(posterior, recipe, belief, np.array([1.0]))
    assert with_noise.mean == without.mean
    scale = posterior.data.scale
    assert with_noise.std**2 == pytest.approx(without.std**2 + scale**2)


# Calibration


STANDARD = PastForecast(Forecast(0.0, 1.0, (-0.6745, 0.6745), (-1.6449, 1.6449)), 0.5)


def calibrated(values):
    trials = [
        Trial(i, Point(x=0.0)) if v is None else Trial(i, Point(x=0.0), Point(value=v), "told")
        for i, v in enumerate(values)
    ]
    batch = Batch("asked", 1, 0, tuple(trial.point for trial in trials), 0, "auto", modelled=True)
    return calibrate([batch], trials, dict.fromkeys(range(len(values)), STANDARD))


def test_coverage_is_counted():
    found = calibrated([0.0, 0.6, 1.0, -1.0, 2.0, None])
    assert [(c.band, c.inside, c.of) for c in found.coverage] == [(0.5, 2, 5), (0.9, 4, 5)]
    assert [pair.id for pair in found.pairs] == [0, 1, 2, 3, 4]
    assert "Only 5 results" in found.note


@pytest.mark.parametrize(
    ("width", "words"), [(1.0, "what chance allows"), (3.0, "too sure"), (0.2, "less sure")]
)
def test_a_model_that_is_too_sure_is_found_out(width, words):
    values = width * np.random.default_rng(0).standard_normal(60)
    assert words in calibrated(values.tolist()).note


def test_nothing_to_compare():
    found = calibrated([None, None])
    assert found.pairs == ()
    assert "No result has come in yet" in found.note


def test_an_error_of_a_sure_forecast_is_finite():
    assert error_of(Forecast(1.0, 0.0, (1.0, 1.0), (1.0, 1.0)), 1.0) == 0.0


def test_forecasts_of_hyper_parameters_of_other_coordinates_are_left_out():
    """Versions before this one had no column for an option that is gone."""
    space = covey.Space({"x": covey.Real(0, 1), "c": covey.Choice(["a", "b", "z"])})
    study = covey.Study(space, seed=0)
    study.add(
        [{"x": i / 9, "c": "abz"[i % 3]} for i in range(10)], [float(i % 4) for i in range(10)]
    )
    study.extend(covey.Space({"x": covey.Real(0, 1), "c": covey.Choice(["a", "b"])}), "sold out")
    study.ask(2)
    assert past_forecasts(study.history, study.recipe, study.history.batches).keys() == {10, 11}
    *others, asked = study.history.events
    models = tuple({**model, "lengths": model["lengths"][:-1]} for model in asked.models)
    older = replace(asked, models=models)
    history = History([*others, older])
    assert past_forecasts(history, study.recipe, history.batches) == {}
