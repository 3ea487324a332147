"""Results that are all equal say nothing; the default then looks everywhere, as random would."""

import numpy as np
import pytest

import covey
from covey import dpp
from covey.baselines import Hallucinated
from covey.policies import UCB


def hidden(
    d: int, seed: int, share: float = 0.03
) -> tuple[covey.Pool, dict[tuple[float, ...], float]]:
    """A catalogue of 1000 rows, a few of which near some place are active; the others give 0."""
    rng = np.random.default_rng(seed)
    rows, centre = rng.random((1000, d)), rng.uniform(0.3, 0.7, d)
    far = np.square(rows - centre).sum(axis=1)
    least = np.quantile(far, share)
    values = np.where(far < least, 1.0 - far / least, 0.0)
    return covey.Pool(rows), {tuple(r): float(v) for r, v in zip(rows, values, strict=True)}


def edges(rows, k: int) -> list[int]:
    """The k most different rows, which lie at the edges."""
    gaps = np.square(rows[:, None] - rows).sum(axis=-1)
    return dpp.maximize(np.eye(len(rows)) + 100.0 * np.exp(-gaps), k)


def finds_a_hit(d: int, seed: int, strategy) -> bool:
    """Within 128 looks, in batches of 8, after eight at the edges; random misses all at 0.02."""
    pool, value = hidden(d, seed)
    study = covey.Study(pool, seed=seed, strategy=strategy)
    known = [pool.point(i) for i in edges(np.array(list(value)), 8)]
    study.add(known, [value[tuple(point.values())] for point in known])
    for _ in range(16):
        batch = study.ask(8)
        values = [value[tuple(t.point.values())] for t in batch]
        study.tell(batch, values)
        if max(values) > 0.0:
            return True
    return False


@pytest.mark.parametrize("d", [4, 6])
def test_a_hit_is_found_in_a_catalogue_with_three_per_cent_active(d):
    assert sum(finds_a_hit(d, seed, "auto") for seed in range(6)) >= 5


@pytest.mark.parametrize("d", [4, 6])
def test_a_model_of_equal_results_would_not_find_it(d):
    """The negative control: the same without waiting for a difference."""
    hasty = Hallucinated(UCB(beta=4.0))
    assert sum(finds_a_hit(d, seed, hasty) for seed in range(3)) <= 1


SQUARE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})


def hits_a_disc(seed: int, strategy, radius: float = 0.1) -> bool:
    """Whether one of 80 points, in batches of 5, falls into 3 % of a square that is 0 elsewhere."""
    study = covey.Study(SQUARE, seed=seed, strategy=strategy)
    for _ in range(16):
        batch = study.ask(5)
        inside = [np.hypot(t.point["x"] - 0.73, t.point["y"] - 0.21) < radius for t in batch]
        study.tell(batch, [float(i) for i in inside])
        if any(inside):
            return True
    return False


def test_a_small_disc_is_hit():
    assert sum(hits_a_disc(seed, "auto") for seed in range(8)) == 8


def test_a_model_of_equal_results_would_miss_it():
    hasty = Hallucinated(UCB(beta=4.0))
    assert sum(hits_a_disc(seed, hasty) for seed in range(4)) <= 1


def test_one_at_a_time_the_first_looks_fill_the_space():
    """Two for each input and ten at the most, whatever the values; the same points as Sobol's."""
    auto, sobol = (covey.Study(SQUARE, seed=3, strategy=s) for s in ("auto", "sobol"))
    points = []
    for study in (auto, sobol):
        for i in range(4):
            (trial,) = study.ask(1)
            study.tell(trial, float(i))
        points.append([t.point for t in study.history.trials])
    assert points[0] == points[1]
    assert auto.ask(1)[0].point != sobol.ask(1)[0].point
