import mpmath
import numpy as np
import pytest

from covey import policies
from covey.arrays import log_normal_cdf
from covey.errors import StrategyError
from covey.gp import Model, condition, observe
from covey.kernels import Matern52
from covey.policies import (
    EI,
    EST,
    UCB,
    estimated_maximum,
    judge,
    log_improvement,
    practical_beta,
    theory_beta,
)
from covey.testing import PolicyContract


class TestEveryPolicy(PolicyContract):
    @pytest.fixture(
        autouse=True,
        params=[
            UCB(),
            UCB("practical"),
            UCB(4.0),
            UCB(lambda t: 9.0 / t),  # falls with the round, and does not claim otherwise
            EST(),
            EST(estimate="a", start="observed"),
            EST(target=3.0),
            EI(),
        ],
        ids=lambda policy: repr(policy).split(" at 0x")[0],
    )
    def _one_of_them(self, request):
        self.policy = request.param

    def make_policy(self):
        return self.policy


def test_theory_beta_has_the_values_of_the_literature():
    """MATH section 2, δ = 0.05."""
    table = {(400, 1): 4.36, (400, 10): 5.31, (400, 50): 5.88, (10_000, 1): 5.04}
    for (n, t), width in table.items():
        assert np.sqrt(theory_beta(n, t, 0.05)) == pytest.approx(width, abs=5e-3)


def test_ucb_takes_theory_practice_numbers_and_schedules(make_belief):
    belief = make_belief(0)
    assert UCB().judge(belief).width == pytest.approx(np.sqrt(theory_beta(40, 3, 0.05)))
    assert UCB().judge(belief).next_width == pytest.approx(np.sqrt(theory_beta(40, 4, 0.05)))
    assert UCB("practical").judge(belief).width == pytest.approx(np.sqrt(practical_beta(2, 3)))
    assert UCB(9.0).judge(belief).width == 3.0
    assert UCB(lambda t: 4.0 * t).judge(belief).width == pytest.approx(np.sqrt(12.0))
    np.testing.assert_allclose(UCB(4.0).judge(belief).scores, belief.mean + 2 * belief.std)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UCB("thoery"), "got 'thoery'"),
        (lambda: UCB(-1.0), r"got -1\.0"),
        (lambda: UCB(float("nan")), "got nan"),
        (lambda: UCB(delta=0.0), r"\(0, 1\); got 0\.0"),
        (lambda: EST(estimate="b"), "got 'b'"),
        (lambda: EST(start="here"), "'here'"),
    ],
)
def test_bad_settings_are_named(make, message):
    with pytest.raises(StrategyError, match=message):
        make()


def test_a_policy_averages_over_members():
    rng = np.random.default_rng(0)
    data = observe(rng.random((6, 2)), rng.standard_normal(6), np.full(6, np.nan))
    models = [Model(Matern52((0.3, 0.3)), 0.05), Model(Matern52((0.9, 0.4)), 0.2)]
    belief = condition(models, data).belief(rng.random((30, 2)))
    for policy in (UCB(), EST(), EI()):
        each = [policy.judge(member) for member in belief.members]
        both = judge(policy, belief)
        np.testing.assert_allclose(both.scores, (each[0].scores + each[1].scores) / 2)
        assert both.width == pytest.approx((each[0].width + each[1].width) / 2)


def test_est_frozen_at_a_belief_keeps_its_target(make_belief):
    belief = make_belief(0)
    frozen = EST().frozen_at(belief)
    later = belief.after_looking_at([1, 2])
    assert frozen.maximum(later) == EST().maximum(belief)


def test_the_estimated_maximum_reads_no_level_that_is_certainly_exceeded(monkeypatch):
    """Below a level where 1 - ΠΦ is 1 to the last bit it stays so: the integral is the same."""
    rng = np.random.default_rng(0)
    data = observe(rng.random((5, 4)), rng.standard_normal(5), np.full(5, np.nan))
    model = Model(Matern52((0.05,) * 4, 1.0), 1e-2)
    belief = condition((model,), data).belief(rng.random((20_000, 4)))
    mean, std = belief.mean, belief.std
    read = []
    monkeypatch.setattr(
        policies, "log_normal_cdf", lambda z: read.append(len(z)) or log_normal_cdf(z)
    )
    found = estimated_maximum(belief)
    low, high = max(belief.best, float(mean.max())), float((mean + 8.0 * std).max())
    levels = low + (high - low) * np.square(np.linspace(0.0, 1.0, 201))
    exceeded = -np.expm1([log_normal_cdf((w - mean) / std).sum() for w in levels])
    assert found == low + np.trapezoid(exceeded, levels)
    assert len(read) < 110
    assert len(read) > np.sum(exceeded < 1.0)


def test_log_improvement_against_high_precision():
    z = np.array([-1e5, -1001.0, -999.0, -40.0, -5.0, -1.0001, -0.9999, 0.0, 3.0, 30.0])
    mpmath.mp.dps = 60

    def exact(x):
        x = mpmath.mpf(float(x))
        density = mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)
        tail = mpmath.erfc(-x / mpmath.sqrt(2)) / 2
        return float(mpmath.log(density + x * tail))

    # Far below, φ + zΦ cancels even at 60 digits; the precision is raised with z².
    mpmath.mp.dps = 60
    np.testing.assert_allclose(log_improvement(z), [exact(x) for x in z], rtol=1e-9, atol=1e-12)


def test_ei_prefers_what_may_improve(make_belief):
    belief = make_belief(1)
    scores = EI().judge(belief).scores
    z = (belief.mean - belief.best) / belief.std
    from scipy.stats import norm

    plain = belief.std * (norm.pdf(z) + z * norm.cdf(z))
    np.testing.assert_allclose(np.exp(scores), plain, rtol=1e-8)
