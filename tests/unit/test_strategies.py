import itertools
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from covey import dpp
from covey.belief import Belief
from covey.errors import StrategyError
from covey.policies import EST, UCB
from covey.strategies import DPP, DPPThompson


def test_a_batch_starts_at_the_policys_point(make_belief):
    belief = make_belief(0)
    head = int(np.argmax(EST().judge(belief).scores))
    for then in ("max", "sample"):
        chosen = DPP(EST(), then=then).choose(belief, 5, np.random.default_rng(0))
        assert chosen.indices[0] == head
        assert len(set(chosen.indices)) == 5


def test_the_account_of_a_batch(make_belief):
    belief = make_belief(0)
    drawn = DPP(UCB(), method="walk").choose(belief, 5, np.random.default_rng(0))
    assert drawn.sampler.startswith("walk, ")
    assert drawn.error == 1e-6
    coarse = DPP(UCB(), method="walk", epsilon=0.01).choose(belief, 5, np.random.default_rng(0))
    assert coarse.error == 0.01
    assert int(coarse.sampler.split()[1]) < int(drawn.sampler.split()[1])
    assert drawn.width == UCB().judge(belief).width
    greedy = DPP(UCB(), then="max").choose(belief, 5, np.random.default_rng(0))
    assert (greedy.sampler, greedy.error) == ("greedy", 0.0)


@pytest.mark.parametrize("method", ["spectral", "mixture", "walk", "swap"])
def test_every_sampler_serves(make_belief, method):
    chosen = DPP(UCB(), method=method).choose(make_belief(0), 4, np.random.default_rng(0))
    assert len(set(chosen.indices)) == 4


def test_bad_settings_are_named():
    with pytest.raises(StrategyError, match="got 'both'"):
        DPP(UCB(), then="both")
    with pytest.raises(StrategyError, match=r"got 0\.0"):
        DPP(UCB(), factor=0.0)


def test_dpp_thompson_follows_its_law():
    """On 4 points, pairs: Π p_max · det, with p_max estimated by many draws of the same belief."""
    rng = np.random.default_rng(0)
    at = np.linspace(0.0, 1.0, 4)[:, None]
    cov = np.exp(-0.5 * np.square(at - at.T) / 0.3**2)
    belief = Belief.dense(at, [0.0, 0.2, 0.1, 0.0], cov, noise=0.02)
    wins = np.bincount(np.argmax(belief.draw(rng, 200_000), axis=1), minlength=4) / 200_000
    pairs = list(itertools.combinations(range(4), 2))
    weight = np.array(
        [
            wins[i] * wins[j] * np.exp(dpp.log_determinant(belief.information(), [i, j]))
            for i, j in pairs
        ]
    )
    draws = 1000
    strategy = DPPThompson(steps=60)
    seen = Counter(frozenset(strategy.choose(belief, 2, rng).indices) for _ in range(draws))
    counts = [seen[frozenset(p)] for p in pairs]
    assert chisquare(counts, draws * weight / weight.sum()).pvalue > 1e-3
    # The control: plain Thompson pairs (no determinant) have another law.
    plain = np.array([wins[i] * wins[j] for i, j in pairs])
    assert chisquare(counts, draws * plain / plain.sum()).pvalue < 1e-3
