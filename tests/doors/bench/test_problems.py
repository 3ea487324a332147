import numpy as np
import pytest
from scipy.optimize import minimize

from covey.bench import hartmann6


def test_hartmann6_has_its_known_maximum():
    problem = hartmann6()

    def down(x):
        return -problem.f({f"x{i}": v for i, v in enumerate(x)})

    start = [0.2, 0.15, 0.48, 0.28, 0.31, 0.66]
    found = minimize(down, start, bounds=[(0, 1)] * 6)
    assert -found.fun == pytest.approx(problem.optimum, abs=1e-7)
    assert problem.regret(problem.optimum) == 0.0
    rng = np.random.default_rng(0)
    values = [problem.f(p) for p in problem.space.decode(rng.random((200, 6)))]
    assert max(values) < problem.optimum
