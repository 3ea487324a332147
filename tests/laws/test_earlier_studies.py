"""What an earlier study is worth: something where it is right, nothing where it is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import covey

SPACE = covey.Space({"x": covey.Real(0, 1), "y": covey.Real(0, 1)})
RUNS, BATCH = 3, 4


def hills(point, shift=0.0):
    """Two hills, the higher at (0.7, 0.3) less the shift."""
    x, y = point["x"] + shift, point["y"] + shift
    high = np.exp(-30.0 * ((x - 0.7) ** 2 + (y - 0.3) ** 2))
    return high + 0.7 * np.exp(-30.0 * ((x - 0.25) ** 2 + (y - 0.8) ** 2))


SOURCES = {
    "shifted": lambda p: 5.0 * hills(p, 0.05) - 2.0,
    "inverted": lambda p: -hills(p),
}


@pytest.fixture(scope="module")
def journals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("earlier")
    for name, f in SOURCES.items():
        study = covey.Study(SPACE, seed=11, journal=folder / f"{name}.jsonl")
        batch = study.ask(30, strategy="sobol")
        study.tell(batch, [f(trial.point) for trial in batch])
    return folder


def run(prior, seed, rounds):
    study = covey.Study(SPACE, seed=seed, prior=prior)
    for _ in range(rounds):
        batch = study.ask(BATCH)
        study.tell(batch, [hills(trial.point) for trial in batch])
    return study


def test_a_shifted_source_helps_and_an_inverted_one_is_found_out(journals):
    """The control: a source counted at full weight, right or wrong, would fail the second."""
    better = 0
    for seed in range(RUNS):
        plain = run(None, seed, 2).best.value
        better += run([journals / "shifted.jsonl"], seed, 2).best.value > plain
        study = run([journals / "inverted.jsonl"], seed, 2)
        study.ask(1)
        assert study.diagnostics.prior == {"inverted.jsonl": 0.0}
    assert better == RUNS


def test_once_it_counts_for_nothing_the_batch_is_as_without_it(journals):
    """Told the same results, both choose the same points, up to the end of the fit's iterations."""
    design = run(None, 0, 4)
    told = [(dict(trial.point), trial.value) for trial in design.history.told]
    batches = []
    for prior in (None, [journals / "inverted.jsonl"]):
        study = covey.Study(SPACE, seed=3, prior=prior)
        study.add([point for point, _ in told], [value for _, value in told])
        batches.append(SPACE.encode([trial.point for trial in study.ask(5)]))
    np.testing.assert_allclose(batches[0], batches[1], atol=1e-3)
