"""A summit that is known leaves the default free to look elsewhere."""

import math

import numpy as np

import covey
from covey.baselines import Hallucinated
from covey.policies import UCB

START = [0.373, 0.948, 0.262, 0.996, 0.183]  # all on the wrong side of the valley


def forrester(x: float) -> float:
    return -((6.0 * x - 2.0) ** 2) * math.sin(12.0 * x - 4.0)


def best_after(strategy, rounds: int) -> float:
    study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), strategy=strategy, seed=0)
    study.add([{"x": x} for x in START], [forrester(x) for x in START])
    for _ in range(rounds):
        batch = study.ask(5)
        study.tell(batch, [forrester(trial.point["x"]) for trial in batch])
    return study.best.value


def test_the_default_leaves_a_lesser_summit_that_it_knows():
    """The global maximum is 6.02; the summit near the start is 0.99."""
    assert best_after("auto", 8) > 6.0


def test_ucb_would_not():
    """The negative control, of width one."""
    assert best_after(Hallucinated(UCB(beta=1.0)), 8) < 1.0


BOX = covey.Space({"x": covey.Real(-5.0, 10.0), "y": covey.Real(0.0, 15.0)})


def branin(x: float, y: float) -> float:
    bowl = y - 5.1 / (4.0 * math.pi**2) * x**2 + 5.0 / math.pi * x - 6.0
    return -(bowl**2) - 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(x) - 10.0


def late_points(strategy) -> np.ndarray:
    """A hundred points on Branin, encoded; the summit is known after some forty."""
    study = covey.Study(BOX, strategy=strategy, seed=0)
    for _ in range(20):
        batch = study.ask(5)
        study.tell(batch, [branin(**trial.point) for trial in batch])
    assert study.best.value > -0.4  # the maximum is -0.398, the range 308
    return BOX.encode([trial.point for trial in study.history.trials])


def looks_again(strategy) -> int:
    """Of the last 25 points, those within 0.001 of an earlier one."""
    at = late_points(strategy)
    gaps = np.linalg.norm(at[-25:, None] - at, axis=2)
    earlier = np.arange(len(at)) < np.arange(len(at) - 25, len(at))[:, None]
    return int((np.where(earlier, gaps, np.inf).min(axis=1) < 1e-3).sum())


def test_a_converged_study_does_not_measure_its_summit_again_and_again():
    assert looks_again("auto") <= 5  # one of each batch may polish


def test_ucb_alone_would():
    """The negative control."""
    assert looks_again(Hallucinated(UCB(beta=4.0))) >= 12


def copies(strategy) -> int:
    """Of the last 50 points, those within 1 % of the range of another of their batch of 5."""
    at = late_points(strategy)[-50:].reshape(10, 5, 2)
    gaps = np.abs(at[:, :, None] - at[:, None]).max(axis=3) + np.eye(5)
    return int((gaps.min(axis=2) < 0.01).sum())


def test_the_points_of_a_late_batch_differ():
    assert copies("auto") <= 5


def test_those_of_ucb_are_copies():
    """The negative control."""
    assert copies(Hallucinated(UCB(beta=4.0))) >= 25
