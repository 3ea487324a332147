from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey import baselines as shortlist
from covey.arrays import first_largest
from covey.baselines import Hallucinated, PureExploration, sequential_greedy
from covey.belief import Belief
from covey.gp import Model, condition, observe
from covey.kernels import Matern52
from covey.policies import EI, EST, UCB, ResolvingUCB, Restless
from covey.strategies import DPP


def belief_of(n, seed, length=0.3):
    rng = np.random.default_rng(seed)
    at = rng.random((12, 2))
    data = observe(at, np.sin(7.0 * at).sum(axis=1), np.full(12, np.nan))
    model = Model(Matern52((length, length), 1.0), 1e-2, 0.0)
    return condition((model,), data).belief(rng.random((n, 2)))


def upper(belief):
    return belief.mean + (1.0 + 0.01 * belief.round) * belief.std


def plainly(belief, first, k):
    """What it stands for: look at everybody, every time."""
    batch, seen = [first], belief
    for b in range(1, k):
        seen = replace(seen.after_looking_at(batch[-1:]), round=belief.looks + b + 1)
        scores = upper(seen)
        scores[batch] = -np.inf
        batch.append(first_largest(scores))
    return batch


@given(seed=st.integers(0, 10_000), size=st.integers(1, 40), length=st.sampled_from([0.05, 0.3, 3]))
def test_a_short_list_changes_nothing(seed, size, length):
    belief = belief_of(150, seed, length)
    assert sequential_greedy(belief, 3, 12, upper, size) == plainly(belief, 3, 12)


def test_without_the_bound_it_would(monkeypatch):
    """The control: followed blindly, a short list gives another batch."""
    belief = belief_of(300, 0)
    monkeypatch.setattr(shortlist._Rest, "may_win", lambda self, place, score: False)
    assert sequential_greedy(belief, 3, 12, upper, 13) != plainly(belief, 3, 12)


def grid_belief(side, length):
    """Most rows are as uncertain as each other: the results lie in the middle."""
    axis = np.linspace(0.0, 1.0, side)
    rows = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    at = 0.45 + 0.1 * np.random.default_rng(0).random((15, 2))
    data = observe(at, np.sin(7.0 * at).sum(axis=1), np.full(15, np.nan))
    return condition((Model(Matern52((length, length), 1.0), 1e-2, 0.0),), data).belief(rows)


@pytest.mark.parametrize("size", [1, 7, 40, 150])
def test_of_equal_candidates_the_first_is_taken_however_short_the_list(size):
    belief = grid_belief(20, 0.02)
    assert sequential_greedy(belief, 3, 25, upper, size) == plainly(belief, 3, 25)


@pytest.mark.parametrize("first", [UCB(), EST()])
def test_pure_exploration_is_dpp_max_where_many_are_equal(first, monkeypatch):
    monkeypatch.setattr(shortlist, "_LEAST", 30)
    monkeypatch.setattr(shortlist, "_PER_PICK", 1)
    belief, rng = grid_belief(30, 0.02), np.random.default_rng(0)
    explored = PureExploration(first).choose(belief, 20, rng).indices
    assert explored == DPP(first, "max").choose(belief, 20, rng).indices


def test_all_are_seldom_looked_at(monkeypatch):
    passes = []
    look = Belief.after_looking_at

    def counted(self, indices, on=None):
        passes.append(len(self))
        return look(self, indices, on)

    monkeypatch.setattr(Belief, "after_looking_at", counted)
    sequential_greedy(belief_of(3000, 1, 0.05), 0, 20, upper, 400)
    assert passes.count(3000) <= 2
    assert passes.count(400) >= 19


def test_a_batch_of_one_needs_no_list():
    assert sequential_greedy(belief_of(5, 0), 2, 1, upper) == [2]


def test_a_batch_may_be_everybody():
    assert sorted(sequential_greedy(belief_of(5, 0), 2, 5, upper)) == [0, 1, 2, 3, 4]


def decreasing(t):
    return 9.0 / t


@pytest.mark.parametrize(
    ("first", "widen"),
    [
        (UCB(), 1.0),
        (UCB("practical"), 1.7),
        (UCB(decreasing), 1.0),
        (EST(), 1.0),
        (EST(), 1.5),
        (EST("a", "observed"), 1.0),
        (EI(), 1.0),
        (Restless(), 1.0),
        (Restless(), 1.5),
        (ResolvingUCB(resolution=0.3), 1.0),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_policy_a_batch_is_that_of_following_everybody(
    first, widen, seed, monkeypatch
):
    belief, strategy = belief_of(400, seed), Hallucinated(first, widen)
    rng = np.random.default_rng(0)
    monkeypatch.setattr(shortlist, "_LEAST", 1000)
    everybody = strategy.choose(belief, 15, rng).indices
    monkeypatch.setattr(shortlist, "_LEAST", 20)
    monkeypatch.setattr(shortlist, "_PER_PICK", 1)
    assert strategy.choose(belief, 15, rng).indices == everybody


def test_a_policy_of_ones_own_is_not_trusted_unless_it_says_so(monkeypatch):
    sizes = []

    def noting(belief, first, k, score, size=None):
        sizes.append(size)
        return sequential_greedy(belief, first, k, score, size)

    class Own(UCB):
        only_falls = False

    monkeypatch.setattr("covey.baselines.sequential_greedy", noting)
    for first in (Own(), UCB()):
        Hallucinated(first).choose(belief_of(50, 0), 3, np.random.default_rng(0))
    assert sizes == [50, None]


@pytest.mark.parametrize("n", [4, 1000])
def test_the_policy_knows_how_many_there_are_in_all(n):
    seen = []

    def score(belief):
        seen.append(belief.offered)
        return upper(belief)

    sequential_greedy(belief_of(n, 0), 0, 4, score, 10)
    assert set(seen) == {n}
