"""Outcomes that span many decades are seen in their own frame, and nothing else changes."""

import json

import numpy as np
import pytest

import covey
from covey.advice import predict
from covey.learn import observations, understand
from covey.report.predictions import past_forecasts

SPACE = covey.Space({"x": covey.Real(-5.0, 5.0), "y": covey.Real(-5.0, 5.0)})


def diverging(point):
    """A loss over seven decades."""
    return float(10.0 ** (0.08 * ((point["x"] - 1.3) ** 2 + (point["y"] + 2.1) ** 2)))


def hilly(point):
    return float(np.sin(point["x"]) + 0.1 * point["y"] ** 2)


def started(loss, path=None, scale=1.0, rounds=2):
    """A study of a loss, with 16 first results and some batches of four."""
    study = covey.Study(SPACE, goal="min", seed=5, journal=path)
    for k in (16, *[4] * rounds):
        batch = study.ask(k)
        study.tell(batch, [scale * loss(trial.point) for trial in batch])
    return study


def views(study):
    """What the log says of the batches that a model chose."""
    batches = [event.models for event in study.history.events if getattr(event, "models", None)]
    return [(models[0]["bent"], models[0].get("framed", False)) for models in batches]


def test_the_log_says_which_view_was_taken():
    assert views(started(diverging))[-1] == (True, True)
    assert not any(framed for _, framed in views(started(hilly)))


def test_a_resumed_study_goes_on_bit_for_bit(tmp_path):
    live = started(diverging, tmp_path / "live.jsonl")
    text = (tmp_path / "live.jsonl").read_bytes()
    expected = [trial.point for trial in live.ask(4)]
    (tmp_path / "copy.jsonl").write_bytes(text)
    again = covey.Study.load(tmp_path / "copy.jsonl")
    assert [trial.point for trial in again.ask(4)] == expected
    assert again.history.models == live.history.models
    assert again.history.models[0]["framed"] is True


@pytest.mark.usefixtures("few_candidates")
def test_another_unit_gives_the_same_batch():
    plain, scaled = (started(diverging, scale=scale, rounds=1) for scale in (1.0, 2.0**-30))
    assert [t.point for t in plain.ask(4)] == [t.point for t in scaled.ask(4)]
    assert views(plain) == views(scaled)
    assert views(plain)[-1] == (True, True)


def test_the_report_expects_what_the_study_did():
    study = started(diverging)
    before = study.history
    batch = study.ask(4)
    rng = np.random.default_rng([study.seed, before.asked_count])
    posterior = understand(before, study.recipe, rng, waiting=False)
    assert posterior.data.view == "framed"
    mean, _ = predict(posterior, study.recipe, tuple(trial.point for trial in batch))
    seen = past_forecasts(study.history, study.recipe, study.history.batches)
    found = [seen[trial.id].forecast.mean for trial in batch]
    assert found == pytest.approx(mean.tolist(), rel=1e-3)


def test_predictions_are_losses_of_the_size_of_those_nearby():
    study = started(diverging)
    trials = study.history.told
    told = np.array([trial.value for trial in trials])
    mean, std = study.predict([trial.point for trial in trials])
    assert np.corrcoef(np.argsort(np.argsort(mean)), np.argsort(np.argsort(told)))[0, 1] > 0.9
    assert np.isfinite(std).all()
    assert study.recommend().mean < np.median(told)


def test_a_log_without_the_third_view_is_read_as_before():
    """As versions 0.1 and 0.2 wrote it: ``bent`` is a yes or no."""
    study = started(diverging)
    (model,) = study.history.models
    assert json.loads(json.dumps(model)) == model
    for bent, view in ((False, "straight"), (True, "warped")):
        old = {name: value for name, value in model.items() if name != "framed"} | {"bent": bent}
        read = covey.gp.Model.from_description(old)
        assert read.view == view
        assert observations(study.history, study.recipe, view=read.view).view == view
