"""The low-rank mixture; its law is checked in tests/laws."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from covey.dpp import mixture
from covey.dpp.kernel import adapt
from covey.dpp.mixture import TruncationGoal, truncated
from covey.errors import NumericsError


def low_rank(n, rank, scale=1.0, seed=0):
    root = np.random.default_rng(seed).normal(size=(n, rank)) * np.sqrt(scale / rank)
    return np.eye(n) + root @ root.T


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_the_rank_of_a_is_found(scale):
    sampler = mixture.prepare_mixture(adapt(low_rank(200, 7, scale)), 5)
    assert (sampler.method, sampler.steps, sampler.error) == ("mixture", 0, 0.0)
    assert sampler.rank <= 7
    assert sampler.truncation.excess <= 0.1
    assert len(set(sampler.draw(np.random.default_rng(0)))) == 5


def test_the_factor_stops_where_the_rest_no_longer_matters():
    truncation = mixture.prepare_mixture(adapt(smooth(300, 0.3, 0.01)), 4).truncation
    assert len(truncation.rows) < 20
    assert 0.0 < truncation.excess <= 0.1


def test_the_truncated_determinant_is_below_by_at_most_the_excess():
    L, k = smooth(60, 0.1, 0.1), 4
    goal = TruncationGoal(k, 4, enough=0.1, most=np.inf)
    truncation = truncated(adapt(L), goal)
    rng = np.random.default_rng(0)
    for _ in range(200):
        at = rng.choice(60, k, replace=False)
        part = truncation.rows[:, at]
        gap = (
            np.linalg.slogdet(L[np.ix_(at, at)])[1]
            - np.linalg.slogdet(np.eye(k) + part.T @ part)[1]
        )
        assert -1e-9 <= gap <= truncation.excess


def test_the_identity_is_a_uniform_sample():
    sampler = mixture.prepare_mixture(adapt(np.eye(8)), 3)
    assert sampler.rank == 0
    np.testing.assert_array_equal(sampler.weights, [1.0])
    assert len(set(sampler.draw(np.random.default_rng(0)))) == 3


def test_repulsion_grows_as_the_noise_falls():
    weights = [
        mixture.prepare_mixture(adapt(smooth(100, 0.1, s)), 4).weights for s in (10.0, 0.1, 1e-3)
    ]
    shares = [float(each @ np.arange(len(each))) / 4 for each in weights]
    assert 0.0 < shares[0] < 0.3 < shares[1] < shares[2] <= 1.0


def test_weights_are_the_law_of_the_number_of_repulsive_picks():
    """j repel with weight Σ det A_T over |T| = j, times the C(n - j, k - j) ways to fill up."""
    L, n, k = low_rank(6, 2), 6, 4
    minors = [
        sum(np.linalg.det((L - np.eye(n))[np.ix_(t, t)]) for t in combinations(range(n), j))
        for j in range(3)  # never more than the rank
    ]
    ways = np.array([math.comb(n - j, k - j) * minors[j] for j in range(3)])
    sampler = mixture.prepare_mixture(adapt(L), k)
    np.testing.assert_allclose(sampler.weights, ways / ways.sum(), rtol=1e-9)


@pytest.mark.parametrize(
    "L",
    [
        np.diag([1.0, 0.5, 2.0]),
        np.array([[1.5, 0.9, 0.0], [0.9, 1.5, 0.0], [0.0, 0.0, 1.0]]),
        np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    ],
    ids=["diagonal below one", "pivot leaves a negative variance", "correlations"],
)
def test_without_the_identity_inside_it_says_what_to_use(L):
    with pytest.raises(NumericsError, match=r"L - I to be positive semidefinite.*\"walk\""):
        mixture.prepare_mixture(adapt(L), 2)


def test_a_slow_decay_is_refused_at_the_largest_rank():
    L = np.eye(40) * 101.0
    with pytest.raises(NumericsError, match=r"low rank: with rank 10 one proposal in .*\"walk\""):
        mixture.prepare_mixture(adapt(L), 3, rank=10)


@pytest.mark.parametrize("hidden", [1.0, 0.9999999999])
def test_a_hidden_negative_direction_costs_time_but_not_exactness(hidden):
    L = np.eye(24)
    L[2, 5] = L[5, 2] = hidden  # the witnesses are other columns
    sampler = mixture.prepare_mixture(adapt(L), 2)
    rng = np.random.default_rng(0)
    assert [2, 5] in [sorted(sampler.propose(rng).tolist()) for _ in range(2000)]
    assert [2, 5] not in [sampler.draw(rng) for _ in range(2000)]


def test_a_proposal_above_its_bound_is_an_error():
    sampler = mixture.prepare_mixture(adapt(low_rank(8, 2)), 3)
    wrong = mixture.assemble(
        adapt(4.0 * low_rank(8, 2)), 3, mixture.Truncation(sampler.truncation.rows, 0.01)
    )
    with pytest.raises(NumericsError, match="above its bound"):
        wrong.draw(np.random.default_rng(0))


def test_proposals_that_are_never_accepted_are_an_error():
    sampler = mixture.prepare_mixture(adapt(low_rank(8, 2)), 3)
    wrong = mixture.assemble(
        adapt(1e-6 * low_rank(8, 2)), 3, mixture.Truncation(sampler.truncation.rows, 0.01)
    )
    with pytest.raises(NumericsError, match="almost never accepted"):
        wrong.draw(np.random.default_rng(0))


def test_the_rank_is_kept_within_memory(monkeypatch):
    monkeypatch.setattr(mixture, "_BYTES", 3 * 8 * 200 * 4)
    with pytest.raises(NumericsError, match="with rank 4 one proposal"):
        mixture.prepare_mixture(adapt(low_rank(200, 7, 1e3)), 5)


def test_the_eigenvectors_are_those_of_the_factor():
    sampler = mixture.prepare_mixture(adapt(low_rank(150, 6, 9.0)), 5)
    rows = sampler.truncation.rows
    vectors = rows.T @ sampler.rotation
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(6), atol=1e-10)
    values = np.linalg.eigvalsh(rows @ rows.T)[::-1]
    np.testing.assert_allclose(vectors.T @ (rows.T @ (rows @ vectors)), np.diag(values), atol=1e-8)


# What a few pivots explain of L - I


class ByBlock:
    """A kernel by blocks, which counts passes over all of its items."""

    def __init__(self, matrix):
        self.matrix, self.diagonal, self.passes = matrix, matrix.diagonal().copy(), 0

    def columns(self, cols):
        return self.block(np.arange(len(self.matrix)), cols)

    def block(self, rows, cols):
        self.passes += len(rows) == len(self.matrix)
        return self.matrix[np.ix_(rows, cols)]

    def on(self, items):
        return ByBlock(self.matrix[np.ix_(items, items)])


def smooth(n, length, noise=0.1):
    at = np.random.default_rng(0).random((n, 1))
    return np.eye(n) + np.exp(-0.5 * ((at - at.T) / length) ** 2) / noise


def truncated_by_few(kernel, *goal):
    """The truncation whose pivots are sought among fifty items."""
    return truncated(adapt(kernel), TruncationGoal(*goal), large=100, few=50)


def test_pivots_among_few_explain_all():
    L = smooth(300, 0.2)
    source = ByBlock(L)
    found = truncated_by_few(source, 4, 40, 0.1, 5.0)
    rest = (L - np.eye(300) - found.rows.T @ found.rows).diagonal()
    assert rest.min() > -1e-9
    assert found.excess == pytest.approx(np.log1p(np.sort(rest.clip(min=0.0))[-4:]).sum())
    assert found.excess < 1.0
    assert source.passes == 2  # the rows, and the witnesses


def test_the_rows_are_those_of_a_cholesky_factor_of_all():
    L = smooth(300, 0.2)
    found = truncated_by_few(ByBlock(L), 4, 40, 0.1, 5.0)
    explained = found.rows.T @ found.rows
    pivots = [int(np.argmax(np.isclose(explained.diagonal(), L.diagonal() - 1.0, atol=1e-9)))]
    np.testing.assert_allclose(explained[pivots], (L - np.eye(300))[pivots], atol=1e-6)


def test_a_rank_that_few_show_to_be_high_costs_no_pass():
    source = ByBlock(np.eye(300) * 101.0)
    with pytest.raises(NumericsError, match="low rank: with rank 20"):
        truncated_by_few(source, 4, 20, 0.1, 1.5)
    assert source.passes == 0


def test_what_the_few_do_not_show_is_found_by_the_pass():
    L = np.eye(300)
    L[7, 7] = 1.5  # large enough to be looked at
    L[100:200, 100:200] += 50.0 * np.eye(100)
    with pytest.raises(NumericsError, match="low rank"):
        truncated_by_few(ByBlock(L), 4, 60, 0.1, 1.5)


def test_the_identity_needs_no_pivot():
    assert truncated_by_few(ByBlock(np.eye(300)), 4, 9, 0.1, 1.5).rows.shape == (0, 300)
