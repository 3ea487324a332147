"""The arithmetic of shares: against brute force, known marginals and quadratic programs."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import beta, chisquare, ks_2samp, kstest

from covey.space.simplex import (
    Simplex,
    count_compositions,
    list_compositions,
    nearest_shares,
    present_parts,
    settled,
    uniform_shares,
    whole_shares,
)


def rows(values, n):
    return np.tile(np.asarray(values, dtype=float), (n, 1))


# Nearest points


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_shares_are_those_of_a_quadratic_program(seed):
    rng = np.random.default_rng(seed)
    x, low, high = rng.normal(0.3, 0.5, 5), rng.uniform(0, 0.1, 5), rng.uniform(0.25, 0.9, 5)
    found = nearest_shares(x[None], low[None], high[None], np.ones(1))[0]
    answer = minimize(
        lambda t: np.square(t - x).sum(),
        np.full(5, 0.2),
        jac=lambda t: 2.0 * (t - x),
        bounds=list(zip(low, high, strict=True)),
        constraints={"type": "eq", "fun": lambda t: t.sum() - 1.0, "jac": lambda t: np.ones(5)},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(found, answer.x, atol=1e-6)
    assert found.sum() == pytest.approx(1.0, abs=4e-16)
    assert ((found >= low) & (found <= high)).all()


def test_what_is_on_the_simplex_stays_where_it_is():
    x = np.random.default_rng(0).dirichlet(np.ones(4), size=50)
    found = nearest_shares(x, rows([0] * 4, 50), rows([1] * 4, 50), np.ones(50))
    np.testing.assert_allclose(found, x, atol=1e-14)


def test_a_rounding_error_goes_where_there_is_room():
    x = np.array([[0.0, 0.5, 0.5 - 1e-13]])
    found = settled(x, np.zeros((1, 3)), rows([1.0, 0.5, 1.0], 1), np.ones(1))
    assert found[0, :2].tolist() == [0.0, 0.5]
    assert found.sum() == 1.0


# Uniform points


@pytest.mark.parametrize("parts", [2, 3, 6, 12, 20])
def test_shares_are_uniform_and_their_marginals_are_beta(parts):
    """A share of a uniform point of the simplex of p parts has the distribution Beta(1, p - 1).

    Broken sticks, and what upper bounds need, here just below those of the simplex.
    """
    rng = np.random.default_rng(parts)
    n, marginal = 2000, beta(1, parts - 1).cdf
    for high in (1.0, 1.0 - 1e-9):
        found = uniform_shares(rows([0] * parts, n), rows([high] * parts, n), np.ones(n), rng)
        assert np.abs(found.sum(axis=1) - 1.0).max() <= 1e-15
        assert min(kstest(share, marginal).pvalue for share in found.T) > 1e-4
    # The control: the points nearest to uniform ones of the cube, as plain clipping would have it.
    if parts > 2:
        cube = nearest_shares(rng.random((n, parts)), found * 0, found * 0 + 1, np.ones(n))
        assert min(kstest(share, marginal).pvalue for share in cube.T) < 1e-6


def test_shares_between_bounds_are_uniform_by_rejection():
    """The referee: uniform points of the simplex, less those outside the bounds."""
    rng, n = np.random.default_rng(1), 3000
    low, high = np.array([0.0, 0.1, 0.0, 0.05]), np.array([0.3, 0.6, 0.5, 0.4])
    found = uniform_shares(rows(low, n), rows(high, n), np.ones(n), rng)
    assert ((found >= low) & (found <= high)).all()
    free = rng.dirichlet(np.ones(4), size=60_000)
    kept = free[((free >= low) & (free <= high)).all(axis=1)]
    assert len(kept) > 2000
    assert min(ks_2samp(found[:, j], kept[:, j]).pvalue for j in range(4)) > 1e-3
    # The control: points of the simplex moved to the bounds.
    moved = nearest_shares(free[:n], rows(low, n), rows(high, n), np.ones(n))
    assert min(ks_2samp(moved[:, j], kept[:, j]).pvalue for j in range(4)) < 1e-6


@pytest.mark.parametrize("high", [0.05, 0.06, 0.2, [0.9] + [0.05] * 19, [0.5, 0.5] + [0.01] * 18])
def test_tight_bounds_of_twenty_parts_are_kept_to(high):
    """Up to where each share is at its bound; two wide shares leave each other no room."""
    high = np.broadcast_to(high, 20)
    found = uniform_shares(
        0.0 * rows(high, 500), rows(high, 500), np.ones(500), np.random.default_rng(0)
    )
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-14)
    assert found.min() >= 0.0
    assert (found <= high + 1e-15).all()


def test_absent_shares_stay_absent_beside_others():
    low, high = np.zeros((2, 4)), np.array([[0.7, 0.7, 0, 0], [0, 0, 0.8, 0.8]])
    found = uniform_shares(low, high, np.ones(2), np.random.default_rng(0))
    assert (found[0, 2:] == 0.0).all()
    assert (found[1, :2] == 0.0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


# Whole steps


def test_largest_remainders_sum_up_and_are_never_a_step_away():
    rng = np.random.default_rng(0)
    x = 97 * rng.dirichlet(np.ones(7), size=500)
    found = whole_shares(x, 97)
    assert (found.sum(axis=1) == 97).all()
    assert (found == np.rint(found)).all()
    assert np.abs(found - x).max() < 1.0


def test_largest_remainder_is_the_nearest_whole_point():
    """The referee: of all compositions, the one at the least distance."""
    every = list_compositions(((False, 0, 6),) * 3, 6, (0, 3))
    for x in 6 * np.random.default_rng(1).dirichlet(np.ones(3), size=40):
        best = every[np.square(every - x).sum(axis=1).argmin()]
        np.testing.assert_array_equal(whole_shares(x[None], 6)[0], best)


def test_what_is_whole_up_to_rounding_is_left_alone():
    x = np.array([[3.0 - 1e-12, 4.0 + 1e-12, 3.0]])
    assert whole_shares(x, 10).tolist() == [[3.0, 4.0, 3.0]]


# The bounds of compositions: free ones, ones that cut corners off, and different ones.
WHOLES = {
    "free": ([0] * 6, [5] * 6, 5),
    "two": ([0, 1], [7, 9], 9),
    "capped": ([0, 1, 0, 0], [3, 6, 5, 4], 8),
    "uneven": ([1, 0, 2], [2, 9, 4], 9),
}


@pytest.mark.parametrize("name", WHOLES)
def test_whole_shares_are_drawn_uniformly_over_all_of_them(name):
    """The referee: every composition listed, each as often as any other by a chi-square test."""
    low, high, total = WHOLES[name]
    every = list_compositions(
        tuple((False, a, b) for a, b in zip(low, high, strict=True)), total, (0, len(low))
    )
    n = max(2000, 40 * len(every))

    def often(found):
        rows_of = {tuple(row): i for i, row in enumerate(every.tolist())}
        return np.bincount([rows_of[tuple(row)] for row in found.tolist()], minlength=len(every))

    bounds = rows(low, n), rows(high, n), np.full(n, float(total))
    found = uniform_shares(*bounds, np.random.default_rng(0), whole=True)
    assert chisquare(often(found)).pvalue > 1e-3
    # The control: uniform shares that are rounded.
    rounded = whole_shares(uniform_shares(*bounds, np.random.default_rng(0)), total)
    assert chisquare(often(rounded)).pvalue < 1e-6


def test_whole_shares_of_many_parts_are_zero_as_often_as_they_should():
    """Of 20 parts in hundredths, 5e21 compositions: a part is 0 in 19 of 119 of them."""
    n, p, total = 2000, 20, 100
    for high in (100, 99):  # without and with a bound that matters
        args = rows([0] * p, n), rows([high] * p, n), np.full(n, float(total))
        found = uniform_shares(*args, np.random.default_rng(1), whole=True)
        assert (found.sum(axis=1) == total).all()
        assert (found == 0.0).mean() == pytest.approx(19 / 119, abs=0.008)
    rounded = whole_shares(uniform_shares(*args, np.random.default_rng(1)), total)
    assert (rounded == 0.0).mean() < 0.12


BOUNDS = (
    (((True, 1, 5), (True, 2, 4), (False, 1, 3)), 5, (1, 2)),
    (((False, 0, 5), (False, 2, 4), (False, 0, 3)), 5, (0, 3)),
    (((True, 2, 8),) * 4, 8, (1, 2)),
    (((False, 1, 3),) * 3, 6, (0, 3)),
    (((True, 5, 3), (True, 1, 4), (True, 1, 4)), 4, (1, 3)),
    (((True, 1, 2),) * 2, 9, (1, 2)),
)


@pytest.mark.parametrize(("bounds", "total", "parts"), BOUNDS)
def test_compositions_are_those_that_trying_all_finds(bounds, total, parts):
    def allowed(row):
        ranges = zip(row, bounds, strict=True)
        inside = all((may and x == 0) or low <= x <= high for x, (may, low, high) in ranges)
        return inside and sum(row) == total

    every = [row for row in product(range(total + 1), repeat=len(bounds)) if allowed(row)]
    counted = [row for row in every if parts[0] <= sum(x > 0 for x in row) <= parts[1]]
    assert count_compositions(bounds, total, parts) == len(counted)
    assert list(map(tuple, list_compositions(bounds, total, parts).tolist())) == counted


# Faces


def simplex(low, high, parts, total=1.0, optional=True):
    p = len(low)
    return Simplex(
        np.array(low, dtype=float),
        np.array(high, dtype=float),
        np.full(p, optional),
        parts,
        total,
        whole=False,
    )


def test_the_largest_shares_are_present():
    x = np.array([[0.5, 0.3, 0.15, 0.05], [0.1, 0.2, 0.3, 0.4], [1.0, 0.0, 0.0, 0.0]])
    low, high = rows([0.05] * 4, 3), rows([0.9] * 4, 3)
    there = present_parts(x, low, high, np.ones(3), (1, 2), np.ones((3, 4), dtype=bool))
    assert there.tolist() == [
        [True, True, False, False],
        [False, False, True, True],
        [True, True, False, False],  # one alone reaches 0.9 only
    ]


def test_a_face_that_cannot_reach_the_total_is_none():
    x = np.array([[0.5, 0.5]])
    args = (rows([0.1] * 2, 1), rows([0.4] * 2, 1), np.ones(1), (1, 2), np.ones((1, 2), dtype=bool))
    assert not present_parts(x, *args).any()


def test_every_number_of_parts_is_drawn_as_often():
    made = simplex([0.05] * 5, [1.0] * 5, (1, 4))
    found = made.draw(4000, np.random.default_rng(0))
    counts = np.bincount((found > 0.0).sum(axis=1), minlength=5)
    assert counts[0] == 0
    assert np.abs(counts[1:] - 1000).max() < 5 * np.sqrt(1000 * 0.75)
    assert found[found > 0.0].min() >= 0.05 - 1e-12
    # Of two parts, each of the ten pairs as often as any other.
    pairs = (found > 0.0)[(found > 0.0).sum(axis=1) == 2]
    _, often = np.unique(pairs, axis=0, return_counts=True)
    assert len(often) == 10
    assert often.min() > 60


def test_faces_reach_the_total_even_where_few_do():
    """One of the parts alone is enough; two of the others are not."""
    made = simplex([0.1] * 8, [0.9] + [0.2] * 7, (2, 2))
    found = made.draw(300, np.random.default_rng(0))
    assert (found[:, 0] >= 0.8).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert made.numbers_of_parts() == [2]


def test_nearness_keeps_to_the_rules_of_faces():
    made = simplex([0.05] * 4, [0.7] * 4, (2, 3))
    found = made.near(np.random.default_rng(0).random((300, 4)) ** 3)
    present = (found > 0.0).sum(axis=1)
    assert set(present.tolist()) == {2, 3}
    assert found[found > 0.0].min() >= 0.05 - 1e-12
    np.testing.assert_allclose(made.near(found), found, atol=1e-12)


def able_sets(high, number, total):
    sets = combinations(range(len(high)), number)
    return {s for s in sets if sum(high[j] for j in s) >= total - 1e-12}


@pytest.mark.parametrize("number", [2, 3])
def test_as_few_parts_as_need_be_give_way_to_wider_ones(number):
    """The referee: of the sets that reach the total, those that keep most of the largest."""
    high, rng = np.array([0.5, 0.4, 0.7, 0.3]), np.random.default_rng(0)
    able = able_sets(high.tolist(), number, 1.0)
    x = rng.random((200, 4))
    there = present_parts(
        x, 0.0 * x, rows(high, 200), np.ones(200), (number, number), np.ones((200, 4), dtype=bool)
    )
    sets = [tuple(np.flatnonzero(row).tolist()) for row in there]
    largest = np.argsort(-x, axis=1)

    def kept(parts, order):
        return next((i for i, j in enumerate(order) if j not in parts), number)

    assert set(sets) == able
    for parts, order in zip(sets, largest.tolist(), strict=True):
        assert kept(parts, order) == max(kept(other, order) for other in able)


def test_nearness_reaches_the_total_where_the_largest_parts_do_not():
    """a and d together are at most 0.8, whatever a point has most of."""
    made = simplex([0.1] * 4, [0.5, 0.4, 0.7, 0.3], (1, 2))
    x = np.random.default_rng(0).random((400, 4))
    found = made.near(x)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    assert set((found > 0.0).sum(axis=1).tolist()) == {2}
    sets = {tuple(np.flatnonzero(row).tolist()) for row in found > 0.0}
    assert sets == able_sets([0.5, 0.4, 0.7, 0.3], 2, 1.0)
    np.testing.assert_allclose(made.near(found), found, atol=1e-12)


def test_rare_faces_are_drawn_at_random():
    """Both wide parts are needed: the third is any of the eighteen narrow ones."""
    made = simplex([0.001] * 20, [0.5, 0.5] + [0.1] * 18, (2, 3))
    found = made.draw(1800, np.random.default_rng(0)) > 0.0
    assert found[:, :2].all()
    thirds = found[found.sum(axis=1) == 3][:, 2:].sum(axis=0)
    assert chisquare(thirds).pvalue > 1e-3
