"""The relevance region R⁺ (section 3.2): what it holds, how it grows, how it is indexed."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import covey
from covey.policies import EI, EST, UCB, enough, judge, relevant
from covey.strategies import DPP

seeds = st.integers(0, 10_000)
policies = pytest.mark.parametrize("policy", [UCB(), UCB(beta=1.0), EST(), EI()], ids=repr)


@policies
@given(seed=seeds)
def test_region_holds_the_first_point_and_the_best_lower_bound(make_belief, policy, seed):
    belief = make_belief(seed)
    judged = judge(policy, belief)
    inside = set(relevant(belief, judged, factor=2.0).tolist())
    assert int(np.argmax(belief.mean - judged.width * belief.std)) in inside
    if not isinstance(policy, EI):  # EI's own maximiser is outside the theory
        assert int(np.argmax(judged.scores)) in inside


@given(seed=seeds)
def test_region_grows_with_its_factor(make_belief, seed):
    belief = make_belief(seed)
    judged = judge(UCB(beta=1.0), belief)
    sizes = [set(relevant(belief, judged, c).tolist()) for c in (0.5, 1.0, 2.0, 4.0)]
    assert all(small <= large for small, large in pairwise(sizes))
    assert sizes[0] != sizes[-1]


@given(seed=seeds, at_least=st.integers(1, 40))
def test_region_is_widened_by_the_highest_upper_bounds(make_belief, seed, at_least):
    belief = make_belief(seed, observations=30)
    judged = judge(UCB(beta=0.01), belief)
    plain = relevant(belief, judged, 1.0)
    wide = relevant(belief, judged, 1.0, at_least=at_least)
    assert len(wide) == max(len(plain), at_least)
    assert set(plain.tolist()) <= set(wide.tolist())


def test_region_of_the_paper_written_out(make_belief):
    belief = make_belief(7)
    judged = judge(UCB(delta=0.1), belief)
    beta_t = 2 * np.log(40 * np.pi**2 * 9 / 0.6)
    beta_next = 2 * np.log(40 * np.pi**2 * 16 / 0.6)
    threshold = np.max(belief.mean - np.sqrt(beta_t) * belief.std)
    expected = np.flatnonzero(belief.mean + 2 * np.sqrt(beta_next) * belief.std >= threshold)
    assert np.array_equal(relevant(belief, judged), expected)


@pytest.mark.parametrize("then", ["max", "sample"])
@given(seed=seeds)
def test_the_batch_lies_in_the_region(make_belief, then, seed):
    """The index map region -> candidates (a bug seen in public code, MATH 6.7)."""
    belief = make_belief(seed, n=300, observations=20)
    chosen = DPP(UCB(beta=1.0), then=then).choose(belief, 6, np.random.default_rng(seed))
    judged = judge(UCB(beta=1.0), belief)
    inside = relevant(belief, judged, 2.0, at_least=enough(6, 300))
    assert len(inside) < 300
    assert set(chosen.indices) <= set(inside.tolist())
    assert len(set(chosen.indices)) == 6


def test_the_region_knows_what_was_told_in_a_finite_space():
    """y• is the best lower bound over all of X: told points are no candidates, but they count."""
    x = np.linspace(0.0, 1.0, 60)
    pool = covey.Pool(x[:, None])
    study = covey.Study(pool, strategy=DPP(UCB(beta=4.0), factor=1.0), seed=0)
    best = int(np.argmax(-np.square(x - 0.7)))
    told = sorted({*range(0, 60, 4), best - 1, best, best + 1})
    study.add([pool.point(i) for i in told], list(-np.square(x[told] - 0.7)))
    study.ask(2)
    # Sure that the peak was found: all but the least region (10 per point asked) is ruled out.
    assert study.diagnostics.region == 20
    assert study.diagnostics.certificate >= 0.0


def test_the_certificate_counts_what_was_told():
    x = np.r_[np.linspace(0.0, 0.3, 40), 0.9]
    values = 10.0 * x
    study = covey.Study(covey.Pool(x[:, None]), strategy="bucb", seed=0, gp=covey.GP(noise=0.01))
    told = [*range(0, 40, 2), 40]
    study.add([{"x0": x[i]} for i in told], list(values[told]))
    regrets = [9.0 - 10.0 * t.point["x0"] for t in study.ask(3)]
    assert study.diagnostics.certificate >= max(regrets)


def test_a_region_holds_ten_batches_or_one_percent():
    assert (enough(5, 1000), enough(5, 100_000), enough(5, 20)) == (50, 1000, 20)
