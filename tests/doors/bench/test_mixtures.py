"""The mixtures of the benchmark: their coefficients, extremes and rows."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.mixtures import PROBLEMS, Run, evaluate, flare, looks, table, yarn

# Cornell 2002: elongation of yarn at the corners and the middles of the edges, repeated.
YARN = {
    (1.0, 0.0, 0.0): (11.0, 12.4),
    (0.5, 0.5, 0.0): (15.0, 14.8, 16.1),
    (0.0, 1.0, 0.0): (8.8, 10.0),
    (0.0, 0.5, 0.5): (10.0, 9.7, 11.8),
    (0.0, 0.0, 1.0): (16.8, 16.0),
    (0.5, 0.0, 0.5): (17.7, 16.4, 16.6),
}


def test_the_yarn_is_what_was_measured():
    """Six coefficients and six blends: the surface passes through their means."""
    at = np.array(list(YARN))
    np.testing.assert_allclose(yarn(at), [np.mean(y) for y in YARN.values()], atol=1e-12)


def test_the_flare_is_brightest_where_it_was_said_to_be():
    said = np.array([[0.5233, 0.2299, 0.1668, 0.08]])
    assert flare(said)[0] == pytest.approx(397.47, abs=0.01)
    assert flare(said)[0] == pytest.approx(PROBLEMS["flare"].top, abs=1e-3)


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_point_is_beyond_the_extremes(name):
    problem = PROBLEMS[name]
    values = problem.f(problem.uniform(4000, np.random.default_rng(0)))
    assert values.max() <= problem.top
    assert values.min() >= problem.bottom


def test_a_run_is_a_row_and_rows_are_a_table():
    run = Run("covey", "yarn", 3, 0, 2)
    row = evaluate(run)
    assert len(row["regrets"]) == 12
    assert row["regrets"] == sorted(row["regrets"], reverse=True)
    assert row["off"] <= 1e-12
    lazy = evaluate(run._replace(peer="uniform"))
    assert lazy["regrets"][:6] == row["regrets"][:6]
    assert looks({"regrets": [0.1, 1e-3, 0.0]}) == 2.0
    head, _, line = table([row, lazy])
    assert head == "| problem | covey | uniform |"
    assert line.startswith("| yarn, 2 batches of 3 |")
