import numpy as np
import pytest
from scipy.stats import norm

import covey
from covey.advice import predict
from covey.history import History
from covey.learn import understand
from covey.report.predictions import past_forecasts

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
