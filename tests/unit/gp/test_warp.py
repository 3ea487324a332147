import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import skew, yeojohnson

from covey.gp import Sharing, Warp, observe
from covey.gp.warp import fitted_warp, own_frame

Z = np.linspace(-4.0, 4.0, 41)
powers = st.floats(0.0, 3.0)


@given(power=powers)
def test_bending_is_yeo_and_johnsons_and_can_be_undone(power):
    warp = Warp(power, middle=0.3, width=1.7)
    bent = warp.transform(Z)
    np.testing.assert_allclose(bent, (yeojohnson(Z, power) - 0.3) / 1.7, rtol=1e-6, atol=1e-8)
    assert np.all(np.diff(bent) > 0.0)
    np.testing.assert_allclose(warp.untransform(bent), Z, rtol=1e-6, atol=1e-8)


def test_no_warp_changes_nothing():
    assert Warp().transform(Z) is Z
    mean, std = Warp().moments(Z, np.ones(41))
    assert mean is Z
    assert np.all(std == 1.0)


@given(power=powers)
def test_beyond_its_range_it_ends(power):
    far = Warp(power).untransform(np.array([-1e6, 1e3]))
    assert np.all(np.isfinite(far))
    assert far[0] < -1.0
    assert far[1] > 1.0


def test_moments_against_monte_carlo():
    warp = Warp(1.7, 0.1, 0.8)
    draws = warp.untransform(-0.4 + 0.3 * np.random.default_rng(0).standard_normal(400_000))
    mean, std = warp.moments(np.array([-0.4]), np.array([0.3]))
    assert mean[0] == pytest.approx(draws.mean(), abs=3e-3)
    assert std[0] == pytest.approx(draws.std(), rel=1e-2)


def test_skewed_outcomes_are_made_symmetric():
    z = -(np.random.default_rng(0).exponential(size=300) ** 2)
    z = (z - z.mean()) / z.std()
    warp = fitted_warp(z)
    bent = warp.transform(z)
    assert warp.power > 1.2
    assert abs(skew(bent)) < 0.5 * abs(skew(z))
    assert bent.mean() == pytest.approx(0.0, abs=1e-9)
    assert bent.std() == pytest.approx(1.0)


def test_few_or_constant_outcomes_stay_straight():
    assert fitted_warp(np.array([0.0, 1.0, 5.0])) == Warp()
    assert fitted_warp(np.zeros(9)) == Warp()
    rounding = np.array([0.3, 0.1 + 0.2] * 10)
    data = observe(np.arange(20.0)[:, None], rounding, np.full(20, np.nan), view="warped")
    assert np.abs(data.values).max() < 1e-9


def test_a_known_error_is_not_bent():
    rng = np.random.default_rng(0)
    values = -(rng.exponential(size=20) ** 2)
    at = rng.random((20, 2))
    assert observe(at, values, np.full(20, np.nan), view="warped").warp != Warp()
    assert observe(at, values, np.full(20, 0.1), view="warped").warp == Warp()
    assert observe(at, values, np.full(20, np.nan)).warp == Warp()


@given(seed=st.integers(0, 200))
def test_predictions_stay_near_what_was_seen(seed):
    """Heavy tails, any fitted power: moments lie within one range of the data."""
    rng = np.random.default_rng(seed)
    z = -np.exp(rng.uniform(0.5, 2.5) * rng.standard_normal(30))
    z = (z - z.mean()) / z.std()
    warp = fitted_warp(z)
    at = np.linspace(-3.0, 3.0, 25)
    for std in (0.01, 0.5, 1.5):
        mean, spread = warp.moments(at, np.full(25, std))
        assert mean.min() >= z.min() - np.ptp(z) - 1e-9
        assert mean.max() <= z.max() + np.ptp(z) + 1e-9
        assert spread.max() <= 3.0 * np.ptp(z)


def test_the_price_of_a_bend_is_its_slope():
    z = np.array([-2.0, -0.3, 0.0, 0.4, 3.0])
    warp = Warp(0.4, middle=0.1, width=1.7)
    step = 1e-6
    slopes = (warp.transform(z + step) - warp.transform(z - step)) / (2 * step)
    assert warp.log_slopes(z) == pytest.approx(np.log(slopes), abs=1e-5)
    assert np.all(Warp().log_slopes(z) == 0.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_mean_of_a_noisy_look_against_monte_carlo(sign):
    """E[z | w] as a function of w, and its moments over a belief; the median is elsewhere."""
    rng = np.random.default_rng(0)
    z = sign * np.exp(1.2 * rng.standard_normal(80))
    warp = fitted_warp((z - z.mean()) / z.std())
    noise, looks = 0.9, rng.standard_normal(400_000)
    at = np.array([-1.0, 0.0, 1.0])
    found = warp.expected(at, noise)
    true = np.array([warp.untransform(w + noise * looks).mean() for w in at])
    assert found == pytest.approx(true, abs=0.02)
    assert np.all(sign * (found - warp.untransform(at)) > 0.05)
    mean, std = warp.moments(at, np.full(3, 0.5), noise)
    drawn = np.array([warp.expected(w + 0.5 * looks, noise) for w in at])
    assert mean == pytest.approx(drawn.mean(axis=1), abs=0.02)
    assert std == pytest.approx(drawn.std(axis=1), rel=0.02)
    wide = np.hypot(0.5, noise)
    assert mean == pytest.approx(  # E E[z|w] = E z
        [warp.untransform(w + wide * looks).mean() for w in at], abs=0.02
    )


def test_without_noise_or_bend_a_look_is_what_it_looks_at():
    warp = fitted_warp(np.exp(np.random.default_rng(0).standard_normal(30)))
    assert np.array_equal(warp.expected(Z, 0.0), warp.untransform(Z))
    assert np.array_equal(Warp().expected(Z, 0.7), Z)


@pytest.mark.parametrize("power", [0.0, 0.5, 2.0, 3.0])
@pytest.mark.parametrize("noise", [1e-6, 1e-4, 1e-3])
def test_a_steep_bend_is_carried_back_exactly_where_noise_is_small(power, noise):
    # What a run that has converged comes to: nearly all at one end of a strong bend.
    z = np.concatenate([[-5.2, -1.9], np.linspace(-0.6, 0.5, 34)]) * np.sign(power - 1.0)
    bent = Warp(power).transform(z)
    span = np.ptp(z)
    warp = Warp(power, bent.mean(), bent.std(), z.min() - span, z.max() + span)

    steps = np.linspace(-6.0, 6.0, 4001)
    weights = np.exp(-0.5 * np.square(steps))
    looks = warp.untransform(warp.transform(z)[:, None] + noise * steps)
    exact = looks @ (weights / weights.sum())

    np.testing.assert_allclose(warp.expected(warp.transform(z), noise), exact, atol=1e-4)


# A frame of its own


NAN = float("nan")


def decades(seed=0, n=60):
    """Losses over five decades, negated: to be maximised."""
    return -(10.0 ** np.random.default_rng(seed).uniform(-2.0, 3.0, n))


def seen(values, view="framed"):
    return observe(
        np.arange(float(len(values)))[:, None], values, np.full(len(values), NAN), view=view
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_outcomes_over_decades_are_told_apart_in_their_own_frame(seed):
    values = decades(seed)
    best = np.argsort(values)[-15:]
    usual, framed = seen(values, "warped"), seen(values)
    assert (usual.view, framed.view) == ("warped", "framed")
    assert np.ptp(usual.values[best]) < 0.01
    assert np.ptp(framed.values[best]) > 0.3


@pytest.mark.parametrize("seed", range(5))
def test_outcomes_that_span_no_decades_have_no_frame_of_their_own(seed):
    rng = np.random.default_rng(seed)
    for values in (rng.standard_normal(60), rng.random(60), -rng.exponential(size=60)):
        usual = values.mean(), values.std()
        assert own_frame(values, *usual)[:2] == usual
        assert seen(values).view == "warped"


@given(seed=st.integers(0, 200), scale=st.sampled_from([1e-12, 0.3, 7.0, 1e12]))
def test_a_frame_is_the_same_in_any_unit_and_from_any_origin(seed, scale):
    values = decades(seed)
    plain, moved = seen(values), seen(scale * (values + 5000.0))
    assert moved.view == plain.view == "framed"
    assert moved.values == pytest.approx(plain.values, abs=1e-5)
    assert moved.scale == pytest.approx(scale * plain.scale)
    assert moved.log_slope == pytest.approx(plain.log_slope, abs=1e-3)


@given(seed=st.integers(0, 200))
def test_a_frame_keeps_the_order_and_is_undone(seed):
    values = decades(seed)
    data = seen(values)
    assert np.array_equal(np.argsort(data.values), np.argsort(values))
    back = data.shift + data.scale * data.warp.untransform(data.values)
    assert back == pytest.approx(values, rel=1e-6, abs=1e-9)


def test_views_compare_by_the_density_of_what_was_told():
    """The log slope of a view is that of its values by the outcome, in standard deviations."""
    values = decades()
    deviation = values.std()
    for view in ("straight", "warped", "framed"):
        data, step = seen(values, view), 1e-6 * np.abs(values)
        ends = [
            data.warp.transform((v - data.shift) / data.scale)
            for v in (values - step, values + step)
        ]
        slopes = (ends[1] - ends[0]) / (2.0 * step / deviation)
        assert data.log_slope == pytest.approx(np.log(slopes).sum(), rel=1e-4, abs=1e-2)


def test_controls_are_counted_in_the_density_of_a_frame():
    values, own = decades(), np.array([-1.0, -30.0])
    codes, label = np.zeros((60, 1), dtype=int), (("plate 1",),)
    of_controls = Sharing(("plate",), label, codes, own, np.zeros(2, dtype=int), codes[:2])
    at, unknown = np.arange(60.0)[:, None], np.full(60, NAN)
    with_controls = observe(at, values, unknown, of_controls, view="framed")
    z = (own - with_controls.shift) / with_controls.scale
    more = with_controls.warp.log_slopes(z) + np.log(values.std() / with_controls.scale)
    assert with_controls.log_slope == pytest.approx(seen(values).log_slope + more.sum())


def test_predictions_in_a_frame_against_monte_carlo():
    """Moments of a belief, and the mean of a noisy look, over decades."""
    values = decades(n=120)
    warp = seen(values).warp
    looks = np.random.default_rng(1).standard_normal(1_000_000)
    for mean, std in ((-1.0, 0.1), (0.0, 0.1), (0.0, 0.3), (1.0, 0.3), (1.0, 0.05)):
        drawn = warp.untransform(mean + std * looks)
        found, spread = warp.moments(np.array([mean]), np.array([std]))
        assert found[0] == pytest.approx(drawn.mean(), abs=0.02 * drawn.std())
        assert spread[0] == pytest.approx(drawn.std(), rel=0.05)
        noise = 0.2
        expected = warp.expected(np.array([mean]), noise)
        drawn = warp.untransform(mean + noise * looks)
        assert expected[0] == pytest.approx(drawn.mean(), abs=0.02 * drawn.std())


def test_a_belief_that_knows_nothing_over_decades_against_a_fine_sum():
    """Where most of the mean is beyond the reach of draws; the kink at the end counts."""
    warp = seen(decades(n=120)).warp
    steps = np.linspace(-9.0, 9.0, 200_001)
    weights = np.exp(-0.5 * np.square(steps))
    weights /= weights.sum()
    for noise in (0.0, 0.3):
        z = warp.expected(steps, noise)
        centre = z @ weights
        spread = np.sqrt(np.square(z - centre) @ weights)
        found, std = warp.moments(np.zeros(1), np.ones(1), noise)
        assert found[0] == pytest.approx(centre, abs=0.01 * spread)
        assert std[0] == pytest.approx(spread, rel=0.05)
        whole = warp.untransform(np.hypot(1.0, noise) * steps) @ weights  # E E[z|w] = E z
        assert found[0] == pytest.approx(whole, rel=0.02)
