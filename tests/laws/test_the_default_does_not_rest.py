"""A summit that is known leaves the default free to look elsewhere."""

import math

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


def test_without_its_scout_it_would_not():
    """The negative control: why the scout is there."""
    assert best_after(Hallucinated(UCB(beta=4.0)), 8) < 1.0
