"""Theorems about k-determinantal point processes, against enumeration of all subsets.

Every statistical check is on counts, with a fixed seed, at level 1e-3, and has a twin that must
fail it.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.counting import counts, pvalue

from covey import dpp
from covey.dpp import greedy, mixture, swap, walk
from covey.dpp import spectral as symmetric
from covey.dpp.greedy import greedy_start
from covey.dpp.kernel import adapt

LEVEL = 1e-3
seeds = st.integers(0, 2**32 - 1)


def covariance(seed, n, rank=None, scale=1.0):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(n, rank or n)) * rng.uniform(0.3, 1.7, size=(n, 1))
    return scale * factor @ factor.T


def information(seed, n, rank=None, scale=1.0):
    return np.eye(n) + covariance(seed, n, rank, scale)


def determinants(L, k):
    """Every subset of size k and its determinant, the slow obvious way."""
    subsets = list(combinations(range(len(L)), k))
    return subsets, np.array([max(np.linalg.det(L[np.ix_(s, s)]), 0.0) for s in subsets])


def law_of(L, k):
    subsets, weights = determinants(L, k)
    return dict(zip(subsets, weights / weights.sum(), strict=True))


def distance(p, q):
    """Total variation between two laws on the same subsets."""
    return 0.5 * sum(abs(p[s] - q[s]) for s in p)


def uniform(n, k):
    return lambda rng: rng.choice(n, k, replace=False).tolist()


# Frequencies.

INFORMATION = information(3, 7, scale=4.0)
COVARIANCE = covariance(5, 7, rank=5)
SMALL = information(11, 6, scale=6.0)


@pytest.mark.parametrize("L", [INFORMATION, COVARIANCE], ids=["I + A", "rank 5"])
def test_spectral_samples_follow_the_determinant(L):
    sampler = dpp.prepare(L, 3, "spectral")
    assert pvalue(counts(sampler.draw, 4000), law_of(L, 3)) > LEVEL


@pytest.mark.parametrize("rank", [7, 3, 1, 0])
def test_mixture_samples_follow_the_determinant_at_any_rank_of_the_factor(rank):
    L = information(3, 7, scale=0.5)
    sampler = truncated(L, 3, rank)
    assert sampler.rank == rank
    assert pvalue(counts(sampler.draw, 4000), law_of(L, 3)) > LEVEL


def test_a_truncated_mixture_without_its_correction_would_be_caught():
    L = information(3, 7, scale=0.5)
    sampler = truncated(L, 3, 1)
    assert sampler.truncation.excess > 1.0
    assert pvalue(counts(sampler.propose, 4000), law_of(L, 3)) < LEVEL


def truncated(L, k, rank):
    """A mixture whose factor has exactly this rank, however small the chance of acceptance."""
    kernel, goal = adapt(L), mixture.TruncationGoal(k, rank, enough=-1.0, most=np.inf)
    return mixture.assemble(kernel, k, mixture.truncated(kernel, goal))


def test_walk_samples_follow_the_determinant():
    sampler = dpp.prepare(SMALL, 2, "walk")
    assert sampler.error == 1e-6
    assert pvalue(counts(sampler.draw, 3000), law_of(SMALL, 2)) > LEVEL


def test_swap_samples_follow_the_determinant():
    sampler = dpp.prepare(SMALL, 2, "swap")
    assert sampler.error == 1e-6
    assert pvalue(counts(sampler.draw, 1500), law_of(SMALL, 2)) > LEVEL


@pytest.mark.parametrize(("L", "k"), [(INFORMATION, 3), (COVARIANCE, 3), (SMALL, 2)])
def test_a_uniform_sampler_would_be_caught(L, k):
    draws = 1500 if k == 2 else 4000
    assert pvalue(counts(uniform(len(L), k), draws), law_of(L, k)) < LEVEL


def test_a_walk_of_too_few_steps_would_be_caught():
    sampler = dpp.prepare(SMALL, 2, "walk", max_steps=1)
    assert pvalue(counts(sampler.draw, 4000), law_of(SMALL, 2)) < LEVEL


def test_a_swap_chain_of_too_few_steps_would_be_caught():
    sampler = dpp.prepare(SMALL, 2, "swap", max_steps=5)
    assert pvalue(counts(sampler.draw, 1500), law_of(SMALL, 2)) < LEVEL


def steep():
    """Eigenvalues 1, 1e-2, ..., 1e-14."""
    rng = np.random.default_rng(0)
    rng.normal(size=(8, 3))
    turn, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    L = turn @ np.diag(10.0 ** -np.arange(0.0, 16.0, 2.0)) @ turn.T
    return (L + L.T) / 2.0


def smooth():
    """As a fit of large variance and little noise makes it."""
    at = np.linspace(0.0, 1.0, 8)
    return np.eye(8) + 1e9 * np.exp(-0.5 * (np.subtract.outer(at, at) / 3.0) ** 2)


ILL_CONDITIONED = [(steep(), 6), (steep(), 7), (smooth(), 5)]


@pytest.mark.parametrize(("L", "k"), ILL_CONDITIONED)
def test_swaps_keep_the_law_of_an_ill_conditioned_kernel(L, k):
    """The total variation is the stated error and what 600 draws of 8 to 56 sets scatter."""
    sampler, law = dpp.prepare(L, k, "swap"), law_of(L, k)
    seen = counts(sampler.draw, 600, seed=7)
    assert distance(law, {s: seen[s] / 600 for s in law}) < sampler.error + scatter(law, 600)
    assert pvalue(seen, law) > LEVEL


def scatter(law, draws):
    """Twice the expected total variation between a law and so many draws from it."""
    return float(sum(math.sqrt(p * (1.0 - p) / draws) for p in law.values()))


class ByInverse(swap._State):
    """The chain by an explicit inverse, which cancels."""

    def ratios(self, positions, outside):
        block = self._kernel.block
        inverse = np.linalg.inv(block(self.items, self.items))
        inverse, column = (inverse + inverse.T) / 2.0, block(self.items, outside)
        solved = inverse @ column
        variance = self._diagonal[outside] - np.einsum("ij,ij->j", column, solved)
        here = solved[positions, np.arange(len(positions))]
        return inverse.diagonal()[positions] * variance + here * here


@pytest.mark.parametrize(("L", "k"), ILL_CONDITIONED)
def test_swaps_by_an_explicit_inverse_would_be_caught(L, k, monkeypatch):
    monkeypatch.setattr(swap, "_State", ByInverse)
    sampler, law = dpp.prepare(L, k, "swap"), law_of(L, k)
    seen = counts(sampler.draw, 600, seed=7)
    assert distance(law, {s: seen[s] / 600 for s in law}) > sampler.error + scatter(law, 600)
    assert pvalue(seen, law) < LEVEL


def test_one_pick_follows_the_diagonal():
    L = information(8, 6)
    assert pvalue(counts(dpp.prepare(L, 1).draw, 4000), law_of(L, 1)) > LEVEL
    assert pvalue(counts(uniform(6, 1), 4000), law_of(L, 1)) < LEVEL


# The Markov chains, step by step.


def walk_matrix(L, k):
    """Transition matrix of the down-up walk, from its definition."""
    subsets, weights = determinants(L, k)
    place = {s: i for i, s in enumerate(subsets)}
    matrix = np.zeros((len(subsets),) * 2)
    for s in subsets:
        for out in s:
            rest = tuple(i for i in s if i != out)
            ups = [tuple(sorted((*rest, j))) for j in range(len(L)) if j not in rest]
            mass = np.array([weights[place[u]] for u in ups])
            for u, p in zip(ups, mass / mass.sum(), strict=True):
                matrix[place[s], place[u]] += p / k
    return subsets, matrix


def swap_matrix(L, k):
    """Transition matrix of the lazy swap chain, from its definition."""
    subsets, weights = determinants(L, k)
    place = {s: i for i, s in enumerate(subsets)}
    n, matrix = len(L), np.zeros((len(subsets),) * 2)
    for s in subsets:
        for out in s:
            for new in set(range(n)) - set(s):
                to = tuple(sorted((set(s) - {out}) | {new}))
                ratio = min(1.0, weights[place[to]] / weights[place[s]])
                matrix[place[s], place[to]] += 0.5 * ratio / (k * (n - k))
        matrix[place[s], place[s]] += 1.0 - matrix[place[s]].sum()
    return subsets, matrix


def after(subsets, matrix, start, steps):
    row = np.linalg.matrix_power(matrix, steps)[subsets.index(tuple(sorted(start.tolist())))]
    return dict(zip(subsets, row, strict=True))


@pytest.mark.parametrize("proposals", [(4, 12, 48), (1,), ()], ids=["rejection", "one", "pass"])
def test_a_step_of_the_walk_is_the_heat_bath_with_or_without_rejection(proposals):
    kernel = adapt(COVARIANCE)
    start = greedy_start(kernel, 3).items
    sampler = walk.Walk(kernel, np.cumsum(kernel.diagonal), start, 1, 1.0, proposals)
    law = after(*walk_matrix(COVARIANCE, 3), start, 1)
    assert pvalue(counts(sampler.draw, 5000), law) > LEVEL


def test_a_walk_that_ignores_the_conditional_variance_would_be_caught():
    kernel = adapt(COVARIANCE)
    start = greedy_start(kernel, 3).items
    law = after(*walk_matrix(COVARIANCE, 3), start, 1)

    def naive(rng):
        items = start.copy()
        others = np.setdiff1d(np.arange(7), np.delete(items, place := rng.integers(3)))
        items[place] = rng.choice(others, p=kernel.diagonal[others] / kernel.diagonal[others].sum())
        return items.tolist()

    assert pvalue(counts(naive, 5000), law) < LEVEL


def test_positions_renewed_in_one_round_are_renewed_one_after_the_other():
    kernel = adapt(COVARIANCE)
    start = greedy_start(kernel, 3).items
    sampler = walk.Walk(kernel, np.cumsum(kernel.diagonal), start, 3, 1.0, (2, 4), together=35)
    subsets, matrix = walk_matrix(COVARIANCE, 3)
    seen = counts(sampler.draw, 5000)
    assert pvalue(seen, after(subsets, matrix, start, 3)) > LEVEL
    assert pvalue(seen, after(subsets, matrix, start, 1)) < LEVEL


@pytest.mark.parametrize("steps", [1, 9])
def test_the_swap_chain_moves_by_its_definition(steps):
    kernel = adapt(SMALL)
    start = np.array([0, 1, 2])
    law = after(*swap_matrix(SMALL, 3), start, steps)
    assert pvalue(counts(swap.Swap(kernel, start, steps, 1.0).draw, 4000), law) > LEVEL
    assert pvalue(counts(swap.Swap(kernel, start, 2 * steps, 1.0).draw, 4000), law) < LEVEL


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("cap", [1, 10, 40, 200, 1000])
def test_the_reported_error_bounds_the_total_variation(k, cap):
    for seed in range(3):
        L = information(seed, 6, scale=20.0)
        target = law_of(L, k)
        for method, chain in (("walk", walk_matrix), ("swap", swap_matrix)):
            sampler = dpp.prepare(L, k, method, max_steps=cap)
            found = after(*chain(L, k), sampler.start, sampler.steps)
            assert sampler.steps <= cap
            assert distance(found, target) <= sampler.error <= 1.0


@given(seeds, st.integers(2, 4))
def test_the_start_has_at_least_the_mass_it_claims(seed, k):
    L = covariance(seed, 7)
    start = greedy_start(adapt(L), k)
    mass = law_of(L, k)[tuple(sorted(start.items.tolist()))]
    assert -math.log(mass) <= start.log_inverse_mass + 1e-9


# Identities.

spectra = st.lists(st.floats(0.0, 1e3), min_size=1, max_size=12).map(np.array)


@given(spectra, st.data())
def test_the_normalizer_of_identity_plus_a_counts_repulsive_picks(values, data):
    """e_k(1 + λ) = Σ_j C(n - j, k - j) e_j(λ)."""
    n = len(values)
    k = data.draw(st.integers(1, n))
    table = symmetric.log_elementary(values, k)[:, -1]
    sum_ = np.logaddexp.reduce(
        [symmetric.log_binomial(n - j, k - j) + table[j] for j in range(k + 1)]
    )
    assert symmetric.log_elementary(1.0 + values, k)[-1, -1] == pytest.approx(sum_, abs=1e-9)


@given(seeds, st.integers(1, 6))
def test_the_normalizer_is_the_sum_of_all_determinants(seed, k):
    L = covariance(seed, 6)
    _, weights = determinants(L, k)
    assert dpp.log_normalizer(L, k) == pytest.approx(math.log(weights.sum()), abs=1e-7)


@given(seeds, st.integers(1, 5))
def test_entropy_is_log_normalizer_minus_mean_log_determinant(seed, k):
    """H = log e_k - E log det L_S, and 0 <= H <= log C(n, k)."""
    L = information(seed, 6, scale=3.0)
    law = law_of(L, k)
    by_definition = -sum(p * math.log(p) for p in law.values())
    mean = sum(p * dpp.log_determinant(L, s) for s, p in law.items())
    assert dpp.entropy(L, k) == pytest.approx(by_definition, abs=1e-9)
    assert dpp.log_normalizer(L, k) - mean == pytest.approx(by_definition, abs=1e-9)
    assert 0.0 <= dpp.entropy(L, k) <= math.log(math.comb(6, k)) + 1e-12


@given(seeds, st.integers(1, 6))
def test_the_determinant_is_the_product_of_the_gains(seed, k):
    """det L_S = Π_b v(x_b | x_<b), by Schur complements."""
    L = information(seed, 9, scale=100.0)
    choice = greedy.greedy_picks(adapt(L), k)
    assert dpp.log_determinant(L, choice.picks) == pytest.approx(np.log(choice.gains).sum())


# Greedy.


@given(seeds, st.integers(1, 6))
def test_each_greedy_pick_maximizes_the_determinant(seed, k):
    L = information(seed, 8)
    picks = []
    for _ in range(k):
        left = [j for j in range(8) if j not in picks]
        picks.append(
            max(left, key=lambda j: np.linalg.slogdet(L[np.ix_([*picks, j], [*picks, j])])[1])
        )
    assert dpp.maximize(L, k) == picks


@given(seeds, st.integers(1, 4))
def test_greedy_is_within_one_minus_one_over_e_of_the_best(seed, k):
    """For L = I + A the log-determinant is monotone and submodular (Nemhauser et al. 1978)."""
    L = information(seed, 8, scale=5.0)
    best = math.log(determinants(L, k)[1].max())
    assert dpp.log_determinant(L, dpp.maximize(L, k)) >= (1.0 - 1.0 / math.e) * best - 1e-9


@given(seeds, st.floats(1e-6, 1e6), st.integers(1, 5))
def test_scale_does_not_change_the_greedy_picks(seed, scale, k):
    L = covariance(seed, 9)
    assert dpp.maximize(scale * L, k) == dpp.maximize(L, k)


@given(seeds, st.integers(1, 5))
def test_permuting_the_items_permutes_the_greedy_picks(seed, k):
    L = information(seed, 9)
    order = np.random.default_rng(seed).permutation(9)
    assert order[dpp.maximize(L[np.ix_(order, order)], k)].tolist() == dpp.maximize(L, k)


# Invariances of the law, and kernels that are wrong.


@pytest.mark.parametrize(("method", "scale"), [("spectral", 1e-6), ("walk", 37.0)])
def test_scale_does_not_change_the_law(method, scale):
    """K + σ²I and I + K/σ² are one k-DPP."""
    sampler = dpp.prepare(scale * SMALL, 2, method)
    assert pvalue(counts(sampler.draw, 2000), law_of(SMALL, 2)) > LEVEL


@pytest.mark.parametrize("method", ["spectral", "mixture", "walk"])
def test_permuting_the_items_permutes_the_law(method):
    order = np.random.default_rng(1).permutation(6)
    sampler = dpp.prepare(SMALL[np.ix_(order, order)], 2, method)
    raw = counts(sampler.draw, 2000)
    back = Counter({tuple(sorted(order[list(s)].tolist())): c for s, c in raw.items()})
    assert pvalue(back, law_of(SMALL, 2)) > LEVEL
    assert pvalue(raw, law_of(SMALL, 2)) < LEVEL  # indices not mapped back


WRONG = {
    "variance squared": np.eye(6) + (SMALL - np.eye(6)) * 10.0,
    "noise added twice": np.eye(6) + SMALL,
    "correlation kernel": SMALL @ np.linalg.inv(np.eye(6) + SMALL),
    "only A rescaled": np.eye(6) + (SMALL - np.eye(6)) / 10.0,
}


@pytest.mark.parametrize("name", WRONG)
def test_kernels_seen_wrong_in_the_wild_have_another_law(name):
    """Each mistake moves the law, and the check on counts sees it."""
    sampler = dpp.prepare(WRONG[name], 2)
    assert distance(law_of(WRONG[name], 2), law_of(SMALL, 2)) > 0.02
    seen = counts(sampler.draw, 4000)
    assert pvalue(seen, law_of(WRONG[name], 2)) > LEVEL
    assert pvalue(seen, law_of(SMALL, 2)) < LEVEL


@pytest.mark.parametrize("method", ["spectral", "mixture", "walk", "swap"])
def test_one_seed_one_sample(method):
    sampler = dpp.prepare(INFORMATION, 3, method)
    first = [sampler.draw(np.random.default_rng(s)) for s in range(20)]
    assert first == [sampler.draw(np.random.default_rng(s)) for s in range(20)]
    assert len({tuple(s) for s in first}) > 1
