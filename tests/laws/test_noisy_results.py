"""Noise, errors of its own size everywhere, six decades, failures: the default gives batches."""

import math

import numpy as np
import pytest

import covey
from covey import Integer, Real, Space
from covey.errors import ExhaustedError

SPACE = Space({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)})
TOP = {"x": 0.3, "y": 0.7}


def bowl(point) -> float:
    """Between 0 and 1, with the largest value at TOP."""
    return 1.0 - sum((point[name] - TOP[name]) ** 2 for name in TOP)


def plain(point, rng):
    return bowl(point), None


def noisy(point, rng):
    """A standard deviation of 0.05, and no word of it."""
    return bowl(point) + 0.05 * rng.standard_normal(), None


def with_errors(point, rng):
    """Each the mean of some replicates, with the standard error of that mean."""
    values = bowl(point) + 0.1 * rng.standard_normal(int(rng.integers(2, 9)))
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def uneven(point, rng):
    """Noise that grows tenfold along an axis."""
    return bowl(point) + 0.01 * 10.0 ** point["x"] * rng.standard_normal(), None


def decades(point, rng):
    """Values from 1 to 1e6."""
    return 10.0 ** (6.0 * (bowl(point) - 0.02) / 0.98), None


def crashing(point, rng):
    """No result in a corner, a fifth of the square."""
    return (None if point["x"] + point["y"] < 0.6 else bowl(point)), None


KINDS = {f.__name__: f for f in (plain, noisy, with_errors, uneven, decades, crashing)}


def run(measure, strategy="auto", rounds: int = 6, k: int = 6) -> tuple[covey.Study, list]:
    study, batches = covey.Study(SPACE, seed=4, strategy=strategy), []
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        batch = study.ask(k)
        batches.append(SPACE.encode([trial.point for trial in batch]))
        for trial in batch:
            value, sem = measure(trial.point, rng)
            if value is None:
                study.fail(trial, "no result")
            else:
                study.tell(trial, value, sem=sem)
    return study, batches


@pytest.mark.parametrize("kind", KINDS)
def test_the_default_gives_batches_that_differ_and_finds_the_top(kind):
    study, batches = run(KINDS[kind])
    for at in batches:
        gaps = np.abs(at[:, None] - at).max(axis=2) + np.eye(len(at))
        assert np.isfinite(at).all()
        assert gaps.min() >= 0.01
    assert bowl(study.recommend().point) > 0.98


def test_random_points_do_not_find_it():
    """The negative control, for the last line above: most of the square lies below."""
    corner = np.random.default_rng(1).random((2000, 2))
    high = np.mean([bowl({"x": x, "y": y}) > 0.98 for x, y in corner])
    assert high < 0.07


# Replicates: where other points are left nothing is asked for again, and what is said to be so.


def test_a_space_that_is_used_up_takes_replicates_by_hand_and_they_are_said_to_be_some():
    study = covey.Study(Space({"n": Integer(1, 4)}), seed=0)
    rng = np.random.default_rng(0)
    batch = study.ask(4)
    study.tell(batch, [trial.point["n"] + rng.normal() for trial in batch])
    with pytest.raises(ExhaustedError, match=r"repeat points with study\.enqueue"):
        study.ask(1)
    again = study.enqueue([batch[2].point, batch[0].point])
    rows = covey.report.card(study).rows
    assert [row.why for row in rows] == ["replicate of trial 2", "replicate of trial 0"]
    study.tell(again, [2.0, 3.0])
    assert math.isfinite(study.recommend().mean)


def test_a_point_beside_a_known_one_names_it():
    """Points are known a fortieth apart: whatever is asked for lies beside some of them."""
    study, x = (
        covey.Study(Space({"x": Real(0.0, 1.0)}), seed=0, resolution=0.05),
        np.arange(41) / 40,
    )
    study.add([{"x": float(v)} for v in x], np.sin(9.0 * x) + 0.3 * x)
    for trial, why in zip(study.ask(3), study.diagnostics.reasons, strict=True):
        words, _, beside = why.rpartition("; within the resolution of trial ")
        assert words
        assert abs(study.history[int(beside)].point["x"] - trial.point["x"]) < 0.05


def test_a_point_by_itself_names_none():
    """The negative control."""
    study = covey.Study(SPACE, seed=0)
    study.add([{"x": v, "y": v} for v in (0.0, 0.1, 0.9, 1.0)], [0.0, 0.1, 0.4, 0.2])
    study.ask(4, strategy="ucb-dpp-max")
    assert not any("resolution" in why for why in study.diagnostics.reasons)


def test_copies_within_a_batch_are_said_to_be_some():
    study = covey.Study(Space({"x": Real(0.0, 1.0)}), seed=0, resolution=0.3)
    study.add([{"x": v} for v in (0.1, 0.5, 0.8)], [0.1, 0.5, 0.2])
    study.ask(12)
    said = sum("a copy of a point before it" in why for why in study.diagnostics.reasons)
    assert 6 <= said <= 11
