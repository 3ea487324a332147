import math
from dataclasses import replace

import numpy as np
import pytest

from covey import selection
from covey.arrays import first_largest
from covey.baselines import (
    Hallucinated,
    LocalPenalization,
    Random,
    Sobol,
    Thompson,
)
from covey.belief import Belief
from covey.gp import Model, condition, observe
from covey.kernels import Matern52
from covey.policies import EST, UCB
from covey.selection import sequential_greedy


def test_hallucination_written_the_slow_way(make_belief):
    """BUCB: μ + √β_t σ_{t-1}, t counting evaluations, σ after the picks so far."""
    belief, rng = make_belief(0), np.random.default_rng(0)
    batch, seen = [], belief
    for b in range(4):
        beta = 2 * math.log(40 * math.pi**2 * (belief.looks + b + 1) ** 2 / 0.3)
        scores = belief.mean + math.sqrt(beta) * seen.std
        scores[batch] = -np.inf
        batch.append(int(np.argmax(scores)))
        seen = seen.after_looking_at(batch[-1:])
    assert list(Hallucinated(UCB()).choose(belief, 4, rng).indices) == batch


def test_b_est_written_the_slow_way(make_belief):
    """B-EST: m̂ once per batch, ν anew with the shrunken σ."""
    belief, rng = make_belief(3), np.random.default_rng(0)
    target, batch, seen = EST().maximum(belief), [], belief
    for _ in range(4):
        ratio = (target - belief.mean) / seen.std
        ratio[batch] = np.inf
        batch.append(int(np.argmin(ratio)))
        seen = seen.after_looking_at(batch[-1:])
    assert list(Hallucinated(EST()).choose(belief, 4, rng).indices) == batch


@pytest.mark.parametrize(
    ("values", "width", "ready"),
    [
        ([1.0], 1, False),
        ([1.0, 2.0], 1, True),  # two for each input ...
        ([1.0] * 9 + [2.0], 50, True),  # ... but no more than the design
        ([1.0] * 8 + [2.0], 50, False),
        ([0.0] * 40, 2, False),  # equal results say nothing, however many
        ([5.0, 5.0 * (1.0 + 1e-14)] * 20, 2, False),
        ([-1e308, 1e308] * 5, 2, True),
    ],
)
def test_a_design_waits_for_results_that_differ(values, width, ready):
    assert Hallucinated(UCB(), design=10).ready(np.array(values), width) is ready
    assert Hallucinated(UCB()).ready(np.array(values), width)  # the paper's begins at once


def test_widening_explores_more(make_belief):
    belief, rng = make_belief(1), np.random.default_rng(0)
    wide = Hallucinated(UCB(beta=1.0), widen=50.0).choose(belief, 5, rng).indices
    narrow = Hallucinated(UCB(beta=1.0)).choose(belief, 5, rng).indices
    assert belief.var[list(wide)].sum() > belief.var[list(narrow)].sum()


def test_two_stages(make_belief):
    """Until a batch can learn at most C the picks are by variance; then C' = exp(C)."""
    belief, rng = make_belief(2), np.random.default_rng(0)
    first = Hallucinated(UCB(beta=1.0), budget=0.1).choose(belief, 3, rng).indices
    assert first[0] == int(np.argmax(belief.var))
    calm = replace(belief, parts=tuple(replace(p, noise=1e6) for p in belief.parts))
    second = Hallucinated(UCB(beta=1.0), budget=0.1).choose(calm, 3, rng)
    assert second.width == pytest.approx(math.exp(0.1))


def test_thompson_picks_maximisers_of_draws(make_belief):
    belief = make_belief(0)
    draws = belief.draw(np.random.default_rng(7), 3)
    chosen = Thompson().choose(belief, 3, np.random.default_rng(7)).indices
    assert chosen[0] == int(np.argmax(draws[0]))


def test_local_penalisation_far_below_zero(make_belief):
    """softplus of very negative scores must not underflow into a tie."""
    belief = make_belief(0)
    low = replace(belief, parts=tuple(replace(p, mean=p.mean - 1000.0) for p in belief.parts))
    expected = LocalPenalization().choose(low, 1, np.random.default_rng(0)).indices[0]
    assert expected == int(np.argmax(UCB(beta=4.0).judge(low).scores))


def test_the_model_free(make_belief):
    belief = make_belief(0)
    assert Sobol().choose(belief, 3, np.random.default_rng(0)).indices == (0, 1, 2)
    drawn = Random().choose(belief, 40, np.random.default_rng(0)).indices
    assert sorted(drawn) == list(range(40))
    assert not Random.needs_model
    assert not Sobol.needs_model


# Batches picked one by one, from a shortlist of the candidates


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


def listed(monkeypatch, size):
    """Let at most so many candidates take part in a choice."""
    monkeypatch.setattr(selection, "_LEAST", min(size, selection._LEAST))
    monkeypatch.setattr(selection, "_LISTED", size)


@pytest.mark.parametrize("length", [0.05, 0.3, 3])
@pytest.mark.parametrize("seed", range(5))
def test_a_batch_is_that_of_following_everybody(seed, length):
    belief = belief_of(150, seed, length)
    assert sequential_greedy(belief, 3, 12, upper) == plainly(belief, 3, 12)


@pytest.mark.parametrize("length", [0.3, 3])
@pytest.mark.parametrize("seed", range(5))
def test_the_best_candidates_hold_the_batch(seed, length, monkeypatch):
    belief = belief_of(1500, seed, length)
    listed(monkeypatch, 500)
    assert sequential_greedy(belief, 3, 12, upper) == plainly(belief, 3, 12)


def test_a_list_that_is_too_short_does_not(monkeypatch):
    """The control: the best twenty are neighbours."""
    belief = belief_of(1500, 0)
    listed(monkeypatch, 20)
    chosen = sequential_greedy(belief, 3, 12, upper)
    assert chosen != plainly(belief, 3, 12)
    assert len(set(chosen)) == 12


def grid_belief(side, length):
    """Most rows are as uncertain as each other: the results lie in the middle."""
    axis = np.linspace(0.0, 1.0, side)
    rows = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    at = 0.45 + 0.1 * np.random.default_rng(0).random((15, 2))
    data = observe(at, np.sin(7.0 * at).sum(axis=1), np.full(15, np.nan))
    return condition((Model(Matern52((length, length), 1.0), 1e-2, 0.0),), data).belief(rows)


@pytest.mark.parametrize("size", [100, 400])
def test_of_equal_candidates_the_first_is_taken(size, monkeypatch):
    belief = grid_belief(20, 0.02)
    listed(monkeypatch, size)
    assert sequential_greedy(belief, 3, 25, upper) == plainly(belief, 3, 25)


def test_only_those_on_the_list_are_looked_at(monkeypatch):
    sizes = []
    look = Belief.after_looking_at

    def counted(self, indices, on=None):
        sizes.append(len(self))
        return look(self, indices, on)

    monkeypatch.setattr(Belief, "after_looking_at", counted)
    listed(monkeypatch, 400)
    sequential_greedy(belief_of(3000, 1, 0.05), 0, 20, upper)
    assert len(sizes) == 20
    assert max(sizes) <= 401


def test_where_a_list_has_no_more_there_is_another(monkeypatch):
    belief = replace(belief_of(300, 2), resolution=np.full(2, 0.05))
    listed(monkeypatch, 15)
    chosen = sequential_greedy(belief, 0, 40, upper)
    assert len(set(chosen)) == 40
    at = belief.at[chosen]
    near = (np.abs(at[:, None] - at[None]) <= 0.05).all(axis=2)
    assert near.sum() == 40


@pytest.mark.parametrize(("memory", "length"), [(2**31, 65_536), (2**26, 17_476), (1, 8192)])
def test_fewer_take_part_where_their_covariances_do_not_fit(memory, length):
    """120 points take 8 · 120 bytes for each candidate: a quarter of the memory."""
    rng = np.random.default_rng(0)
    data = observe(rng.random((12, 2)), rng.random(12), np.full(12, np.nan))
    model = Model(Matern52((0.3, 0.3), 1.0), 1e-2, 0.0)
    belief = condition((model,), data).belief(rng.random((20, 2)), memory=memory)
    assert selection._list_length(belief, 120) == length


def test_a_batch_of_one_needs_no_list():
    assert sequential_greedy(belief_of(5, 0), 2, 1, upper) == [2]


def test_a_batch_may_be_everybody():
    assert sorted(sequential_greedy(belief_of(5, 0), 2, 5, upper)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("n", [4, 1000])
def test_the_policy_knows_how_many_there_are_in_all(n, monkeypatch):
    listed(monkeypatch, 10)
    seen = []

    def score(belief):
        seen.append(belief.offered)
        return upper(belief)

    sequential_greedy(belief_of(n, 0), 0, 4, score)
    assert set(seen) == {n}
