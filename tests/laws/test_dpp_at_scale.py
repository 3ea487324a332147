"""What holds for a handful of items holds for a million: other paths, the same picks and laws.

The paths for many items are forced on few, so that enumeration can judge them. Every statistical
check is on counts, with a fixed seed, at level 1e-3, and has a twin that must fail it.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.counting import counts, pvalue

from covey import arrays, dpp
from covey.dpp import greedy, mixture, walk
from covey.dpp.greedy import Start, greedy_start
from covey.dpp.kernel import adapt
from covey.dpp.mixture import TruncationGoal
from covey.errors import NumericsError

LEVEL = 1e-3
seeds = st.integers(0, 2**32 - 1)


class Entries:
    """A kernel that can be read by blocks and cut down, on NumPy."""

    def __init__(self, matrix):
        self.matrix, self.diagonal = matrix, matrix.diagonal().copy()

    def columns(self, cols):
        return self.matrix[:, cols]

    def block(self, rows, cols):
        return self.matrix[np.ix_(rows, cols)]

    def on(self, items):
        return Entries(self.block(items, items))


class Tensors:
    """The same on torch."""

    def __init__(self, matrix):
        torch = pytest.importorskip("torch", reason="install torch to test tensors")
        self.matrix, self.index = torch.as_tensor(matrix), torch.as_tensor
        self.diagonal = self.matrix.diagonal().clone()

    def columns(self, cols):
        return self.matrix[:, self.index(cols)]

    def block(self, rows, cols):
        return self.matrix[self.index(rows)[:, None], self.index(cols)]

    def on(self, items):
        return Tensors(self.block(items, items))


FEW = {"large": 0, "few": 4}  # anything is large, and four items are looked at first


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of 64 items."""
    monkeypatch.setattr(arrays, "CACHE", 1)


def by_lists(kernel, k):
    """Greedy that follows a short list of a few items."""
    return greedy.listed_picks(kernel, k, short=6, memory=1)


def walk_from_few(kernel, k, max_steps=None):
    """The walk that starts at the greedy maximum of a few items."""
    start = greedy_start(kernel, k, **FEW)
    return walk.prepare_walk(kernel, k, epsilon=0.01, max_steps=max_steps, start=start)


def mixture_by_few(kernel, k, goal):
    """The mixture whose pivots are those of a few items."""
    return mixture.assemble(kernel, k, mixture.truncated(kernel, goal, **FEW))


# Greedy.


def points(rng, kind, n):
    """Coordinates (n, d): anywhere, some of them twice, or on a grid."""
    at = rng.random((n, int(rng.integers(1, 4))))
    if kind == "duplicates":
        return at[rng.integers(n // 3 + 1, size=n)]
    if kind == "grid":
        axis = np.linspace(0.0, 1.0, math.isqrt(n))
        return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return at


def kernel_of(seed, kind):
    """A kernel of one of the kinds that greedy may meet."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 180))
    if kind == "diagonal":
        return np.diag(10.0 ** rng.uniform(-6.0, 6.0, n))
    if kind == "low rank":
        root = rng.normal(size=(n, int(rng.integers(1, 9))))
        return root @ root.T
    at = points(rng, kind, n)
    gap = ((at[:, None] - at) ** 2).sum(axis=2)
    length = {"rough": 0.02, "smooth": 1.0}.get(kind, 0.2)
    return np.eye(len(at)) + np.exp(-0.5 * gap / length**2) / 10.0 ** rng.uniform(-3.0, 1.0)


def outcome(choose, L, k):
    try:
        return choose(adapt(Entries(L)), k)
    except NumericsError as error:
        return str(error)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize(
    "kind", ["smooth", "rough", "medium", "duplicates", "grid", "diagonal", "low rank"]
)
@given(seed=seeds, k=st.integers(1, 25))
def test_greedy_by_short_lists_is_plain_greedy(kind, seed, k):
    """The same picks in the same order, or the same complaint."""
    L = kernel_of(seed, kind)
    k = min(k, len(L))
    found, plainly = outcome(by_lists, L, k), outcome(greedy.plain_picks, L, k)
    if isinstance(plainly, str):
        assert found == plainly
        return
    assert found.picks.tolist() == plainly.picks.tolist()
    np.testing.assert_allclose(found.gains, plainly.gains, rtol=1e-7)
    assert found.passes <= k


@pytest.mark.usefixtures("small_chunks")
def test_a_list_that_is_followed_blindly_would_be_caught(monkeypatch):
    """The control: greedy on a short list alone picks otherwise."""
    monkeypatch.setattr(greedy, "_may_come_before", lambda others, most, gain, item: False)
    L = kernel_of(3, "medium")
    assert (
        outcome(by_lists, L, 8).picks.tolist() != outcome(greedy.plain_picks, L, 8).picks.tolist()
    )


# Laws, against enumeration.


def covariance(seed, n, scale=1.0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n)) * rng.uniform(0.3, 1.7, size=(n, 1))
    return scale * root @ root.T


SMALL = np.eye(6) + covariance(11, 6, scale=6.0)
AXIS = np.linspace(0.0, 1.0, 10)
WIDE = np.eye(10) + 50.0 * np.exp(-0.5 * (np.subtract.outer(AXIS, AXIS) / 0.3) ** 2)


def determinants(L, k):
    subsets = list(combinations(range(len(L)), k))
    return subsets, np.array([np.linalg.det(L[np.ix_(s, s)]) for s in subsets])


def law_of(L, k):
    subsets, weights = determinants(L, k)
    return dict(zip(subsets, weights / weights.sum(), strict=True))


def walked(L, k, first, steps):
    """Law of the down-up walk after some steps, from its definition."""
    subsets, weights = determinants(L, k)
    place = {s: i for i, s in enumerate(subsets)}
    matrix = np.zeros((len(subsets),) * 2)
    for s in subsets:
        for out in s:
            rest = tuple(i for i in s if i != out)
            ups = [place[tuple(sorted((*rest, j)))] for j in range(len(L)) if j not in rest]
            matrix[place[s], ups] += weights[ups] / weights[ups].sum() / k
    row = np.linalg.matrix_power(matrix, steps)[place[tuple(sorted(first.tolist()))]]
    return dict(zip(subsets, row, strict=True))


@pytest.mark.parametrize("proposals", [(), (1,), (16, 64)], ids=["anchored", "both", "plain"])
def test_a_round_of_several_positions_is_so_many_steps_of_the_walk(proposals):
    """k = 8 of 10: an anchored round renews two positions from one pass."""
    first = np.arange(8)
    sampler = walk.Walk(adapt(WIDE), np.cumsum(WIDE.diagonal()), first, 2, 1.0, proposals)
    seen = counts(sampler.draw, 1000)
    assert pvalue(seen, walked(WIDE, 8, first, 2)) > LEVEL
    assert pvalue(seen, walked(WIDE, 8, first, 1)) < LEVEL
    assert pvalue(seen, law_of(WIDE, 8)) < LEVEL


def test_a_round_that_sees_few_of_its_proposals_is_still_the_walk():
    first = np.arange(3)
    sampler = walk.Walk(
        adapt(SMALL), np.cumsum(SMALL.diagonal()), first, 3, 1.0, (8, 16), together=1, most=1
    )
    seen = counts(sampler.draw, 1000)
    assert pvalue(seen, walked(SMALL, 3, first, 3)) > LEVEL
    assert pvalue(seen, walked(SMALL, 3, first, 1)) < LEVEL


def test_anchored_proposals_that_are_not_judged_again_would_be_caught(monkeypatch):
    judged = walk.Proposals
    monkeypatch.setattr(walk, "Proposals", lambda items, bars: judged(items, 1e-9 * bars))
    first = np.arange(8)
    sampler = walk.Walk(adapt(WIDE), np.cumsum(WIDE.diagonal()), first, 2, 1.0, ())
    assert pvalue(counts(sampler.draw, 1000), walked(WIDE, 8, first, 2)) < LEVEL


def test_the_walk_from_a_start_among_few_follows_the_determinant():
    sampler = walk_from_few(adapt(Entries(SMALL)), 2)
    assert sampler.error == 0.01
    assert pvalue(counts(sampler.draw, 2000), law_of(SMALL, 2)) > LEVEL
    hasty = walk_from_few(adapt(Entries(SMALL)), 2, max_steps=1)
    assert pvalue(counts(hasty.draw, 2000), law_of(SMALL, 2)) < LEVEL


@given(seeds, st.integers(2, 4))
def test_a_start_among_few_has_at_least_the_mass_it_claims(seed, k):
    L = np.eye(9) + covariance(seed, 9)
    found = greedy_start(adapt(Entries(L)), k, **FEW)
    mass = law_of(L, k)[tuple(sorted(found.items.tolist()))]
    assert -math.log(mass) <= found.log_inverse_mass + 1e-9


@pytest.mark.parametrize("cap", [1, 5, 20, 60])
def test_the_reported_error_bounds_the_total_variation(cap):
    for seed in range(3):
        L = np.eye(7) + covariance(seed, 7, scale=20.0)
        sampler = walk_from_few(adapt(Entries(L)), 3, max_steps=cap)
        target, found = law_of(L, 3), walked(L, 3, sampler.start, sampler.steps)
        assert 0.5 * sum(abs(found[s] - target[s]) for s in target) <= sampler.error <= 1.0


@pytest.mark.parametrize("rank", [3, 1])
def test_a_mixture_by_the_pivots_of_a_few_follows_the_determinant(rank):
    L = np.eye(7) + covariance(3, 7, scale=0.3)
    goal = TruncationGoal(3, rank, enough=-1.0, most=np.inf)
    sampler = mixture_by_few(adapt(Entries(L)), 3, goal)
    assert sampler.rank == rank
    assert pvalue(counts(sampler.draw, 1000), law_of(L, 3)) > LEVEL
    assert pvalue(counts(sampler.propose, 2500), law_of(L, 3)) < LEVEL


# Two devices, one code.


@pytest.mark.parametrize("seed", range(4))
def test_tensors_are_chosen_from_as_arrays_are(seed):
    L = kernel_of(seed, "medium")
    here, there = (greedy.greedy_picks(adapt(kind(L)), 12) for kind in (Entries, Tensors))
    assert here.picks.tolist() == there.picks.tolist()
    np.testing.assert_allclose(here.gains, there.gains, rtol=1e-8)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("kind", ["smooth", "medium", "duplicates"])
def test_many_tensors_are_chosen_from_as_arrays_are(kind):
    L = kernel_of(5, kind)
    here, there = (by_lists(adapt(of(L)), 15) for of in (Entries, Tensors))
    assert here.picks.tolist() == there.picks.tolist() == dpp.maximize(L, 15)
    np.testing.assert_allclose(here.gains, there.gains, rtol=1e-8)
    assert here.passes == there.passes > 1


@pytest.mark.parametrize("method", ["spectral", "mixture", "walk", "swap"])
def test_tensors_are_drawn_from_as_arrays_are(method):
    L = np.eye(12) + covariance(1, 12, scale=0.2)
    here, there = (dpp.prepare(kind(L), 4, method, max_steps=300) for kind in (Entries, Tensors))
    assert (here.steps, here.error) == (there.steps, there.error)
    for seed in range(25):
        ours, theirs = (s.draw(np.random.default_rng(seed)) for s in (here, there))
        assert ours == theirs


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("method", ["mixture", "walk"])
def test_many_tensors_are_drawn_from_as_arrays_are(method):
    L = np.eye(80) + 1e-3 * covariance(1, 80)

    def prepared(kernel):
        if method == "walk":
            return walk_from_few(kernel, 4)
        return mixture_by_few(kernel, 4, TruncationGoal(4, 80, enough=0.1, most=5.0))

    here, there = (prepared(adapt(kind(L))) for kind in (Entries, Tensors))
    for seed in range(10):
        ours, theirs = (s.draw(np.random.default_rng(seed)) for s in (here, there))
        assert ours == theirs


def test_an_anchored_walk_takes_tensors():
    samplers = [
        walk.Walk(adapt(kind(WIDE)), np.cumsum(WIDE.diagonal()), np.arange(8), 9, 1.0, ())
        for kind in (Entries, Tensors)
    ]
    for seed in range(10):
        ours, theirs = (s.draw(np.random.default_rng(seed)) for s in samplers)
        assert ours == theirs


def test_one_item_of_many_tensors():
    ours, theirs = (dpp.prepare(kind(SMALL), 1) for kind in (Entries, Tensors))
    assert ours.draw(np.random.default_rng(0)) == theirs.draw(np.random.default_rng(0))
    assert dpp.entropy(Entries(SMALL), 1) == pytest.approx(dpp.entropy(Tensors(SMALL), 1))
    assert dpp.entropy(Entries(SMALL), 2) == pytest.approx(dpp.entropy(Tensors(SMALL), 2))
    assert dpp.log_normalizer(Tensors(SMALL), 3) == pytest.approx(dpp.log_normalizer(SMALL, 3))
    assert dpp.log_determinant(Tensors(SMALL), [1, 4]) == dpp.log_determinant(SMALL, [1, 4])
    assert isinstance(greedy_start(adapt(Tensors(SMALL)), 2), Start)
