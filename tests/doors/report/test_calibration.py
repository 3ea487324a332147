import numpy as np
import pytest

from covey.history import Batch, Point, Trial
from covey.report.predictions import Forecast, PastForecast, calibrate, error_of

STANDARD = PastForecast(Forecast(0.0, 1.0, (-0.6745, 0.6745), (-1.6449, 1.6449)), 0.5)


def calibrated(values):
    trials = [
        Trial(i, Point(x=0.0), v, "pending" if v is None else "told") for i, v in enumerate(values)
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
