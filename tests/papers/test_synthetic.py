"""The synthetic functions: their values, their ranges, their optima."""

from __future__ import annotations

import math

import numpy as np
import pytest
from papers.kathuria2016.problems import ABOUT, PROBLEMS, problem
from scipy.optimize import minimize

SUMMITS = {
    "branin": [(-math.pi, 12.275), (math.pi, 2.275), (3 * math.pi, 2.475)],
    "cosines": [(0.3125, 0.3125)],
    "hartmann6": [(0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573)],
}


@pytest.mark.parametrize("name", SUMMITS)
def test_the_optimum_is_had_at_the_known_summits(name):
    task = problem(name)
    for summit in SUMMITS[name]:
        point = task.space.check({f"x{i}": x for i, x in enumerate(summit)})
        assert task.evaluate(point) == pytest.approx(task.optimum, abs=1e-5)
    assert task.noise == 0.0


@pytest.mark.parametrize("name", SUMMITS)
def test_nothing_is_above_the_optimum(name):
    task = problem(name)
    starts = np.random.default_rng(0).random((200, task.space.width))
    values = [task.evaluate(point) for point in task.space.decode(starts)]
    for i in np.argsort(values)[-8:]:
        found = minimize(
            lambda u: -task.evaluate(task.space.decode(np.clip(u, 0.0, 1.0)[None])[0]),
            starts[i],
            method="Nelder-Mead",
            options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 4000, "maxfev": 4000},
        )
        assert -found.fun <= task.optimum + 1e-9
    assert max(values) < task.optimum


def test_branin_by_hand():
    task = problem("branin")
    assert task.evaluate({"x0": 0.0, "x1": 0.0}) == pytest.approx(-55.602113, abs=1e-6)
    assert {n: (p.low, p.high) for n, p in task.space.parameters.items()} == {
        "x0": (-5.0, 10.0),
        "x1": (0.0, 15.0),
    }


def test_every_problem_is_described():
    assert list(ABOUT) == list(PROBLEMS)
    assert len(PROBLEMS) == 7
