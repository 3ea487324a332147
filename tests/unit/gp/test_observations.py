import numpy as np
import pytest

from covey.gp import observe
from covey.gp.observations import LEAST_NOISE, clipped_penalties

NAN = float("nan")


def test_outcomes_are_standardised():
    data = observe(np.array([[0.0], [1.0], [2.0]]), np.array([10.0, 20.0, 60.0]), np.full(3, NAN))
    assert data.values.mean() == pytest.approx(0.0)
    assert data.values.std() == pytest.approx(1.0)
    np.testing.assert_allclose(data.shift + data.scale * np.sort(data.values), [10.0, 20.0, 60.0])
    assert data.best == data.values.max()


@pytest.mark.parametrize("values", [[3.0], [0.0, 0.0], [1e9, 1e9, 1e9]])
def test_constant_outcomes_are_their_own_unit(values):
    n = len(values)
    data = observe(np.arange(float(n))[:, None], np.array(values), np.full(n, NAN))
    assert data.scale == (values[0] or 1.0)
    assert np.all(data.values == 0.0)


def test_replicates_are_pooled():
    at = np.array([[0.0], [1.0], [0.0], [0.0]])
    data = observe(at, np.array([1.0, 5.0, 2.0, 3.0]), np.full(4, NAN))
    order = np.argsort(data.at[:, 0])
    assert data.counts[order].tolist() == [3.0, 1.0]
    assert data.looks == 4
    assert data.spare == 2
    assert data.scatter * data.scale**2 == pytest.approx(2.0)  # 1, 2, 3 about 2
    assert data.noise(0.3)[order].tolist() == pytest.approx([0.1, 0.3])


def test_known_errors_pool_by_precision_and_stay_apart_from_unknown_ones():
    at = np.zeros((3, 1))
    data = observe(at, np.array([0.0, 4.0, 10.0]), np.array([1.0, 2.0, NAN]))
    assert len(data.values) == 2
    known = data.values[~data.learnt][0] * data.scale + data.shift
    assert known == pytest.approx((0.0 / 1 + 4.0 / 4) / (1 + 1 / 4))
    assert data.known[~data.learnt][0] * data.scale**2 == pytest.approx(1 / (1 + 1 / 4))
    assert data.spare == 0


def test_a_perfect_measurement_keeps_a_little_noise():
    data = observe(np.array([[0.0], [1.0]]), np.array([0.0, 1.0]), np.zeros(2))
    assert np.all(data.known == LEAST_NOISE)


def test_tiny_outcomes_are_not_constant():
    values = 1e-200 * np.array([1.0, 2.0, 4.0])
    data = observe(np.arange(3.0)[:, None], values, np.full(3, NAN))
    assert data.values.std() == pytest.approx(1.0)


def test_penalties_are_brought_to_just_below_the_rest():
    values = np.array([0.3, -1e6, 0.9, 0.5, 0.1, -1.005e6, 0.2, 0.8])
    reined = clipped_penalties(values)
    assert reined[[1, 5]] == pytest.approx([-0.7, -0.7])
    assert np.array_equal(np.delete(reined, [1, 5]), np.delete(values, [1, 5]))
    assert clipped_penalties(3.0 * values - 2.0) == pytest.approx(3.0 * reined - 2.0)  # in any unit


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 1.0, 2.0, -8.0, 0.5],  # far, but not ten ranges
        [-1e6, -1e6, 0.0, 1.0, 2.0],  # more than a quarter: that is what f is like
        [-1e6, 2.0, 2.0, 2.0, 2.0],  # the rest has no range
        [-1e6, 1.0, 2.0],  # too few to tell
        [-900.0, 0.0, 1.0, 0.5, 0.2],  # alone, and not a thousand ranges off
        [0.3, -1e6, 0.9, 0.5, 0.1, -2e7, 0.2, 0.8],  # not alike
        [1.0],
    ],
)
def test_what_may_be_meant_is_left_alone(values):
    assert np.array_equal(clipped_penalties(np.array(values)), values)


def test_known_errors_are_believed():
    values, at = np.array([0.0, 1.0, 2.0, -1e6, 0.5]), np.arange(5.0)[:, None]
    assert observe(at, values, np.full(5, 0.1)).scale > 1e5
    assert observe(at, values, np.full(5, np.nan)).scale < 2.0


def test_rows_come_in_the_order_of_their_first_look():
    at = np.array([[2.0], [0.0], [1.0], [0.0], [2.0]])
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    data = observe(at, values, np.full(5, NAN))
    assert data.at[:, 0].tolist() == [2.0, 0.0, 1.0]
    assert data.counts.tolist() == [2.0, 2.0, 1.0]
    assert len(data) == 3
    more = observe(np.vstack([at, [[-1.0]]]), np.append(values, 2.0), np.full(6, NAN))
    assert np.array_equal(more.at[:3], data.at)


def test_some_rows_keep_what_belongs_to_them_and_the_units_of_all():
    """Against the sums over their own looks, replicates and known errors among them."""
    rng = np.random.default_rng(0)
    at = rng.integers(0, 8, size=(40, 1)).astype(float)
    values = np.exp(rng.standard_normal(40))
    data = observe(at, values, np.full(40, NAN), view="warped")
    keep = np.array([5, 0, 3])
    some = data.rows(keep)
    looks = [np.flatnonzero(at[:, 0] == x) for x in data.at[keep, 0]]
    z = (values - data.shift) / data.scale
    bent = data.warp.transform(z)
    assert (some.shift, some.scale, some.warp) == (data.shift, data.scale, data.warp)
    assert some.values == pytest.approx([bent[i].mean() for i in looks])
    assert some.looks == sum(map(len, looks))
    assert some.spare == some.looks - 3
    assert some.scatter == pytest.approx(
        sum(np.square(bent[i] - bent[i].mean()).sum() for i in looks)
    )
    assert some.log_slope == pytest.approx(sum(data.warp.log_slopes(z[i]).sum() for i in looks))
    assert some.log_counts == pytest.approx(sum(np.log(len(i)) for i in looks))
    every = data.rows(np.arange(len(data)))
    assert (every.scatter, every.log_slope) == (data.scatter, data.log_slope)
    errors = np.where(rng.random(40) < 0.5, 0.1, NAN)
    mixed = observe(at, values, errors)
    assert mixed.rows(np.flatnonzero(~mixed.learnt)).scatter == 0.0
    assert mixed.scatter > 0.0


@pytest.mark.parametrize("seed", range(200))
def test_outcomes_and_errors_of_any_size_are_standardised(seed):
    rng = np.random.default_rng(seed)
    size, spread, error = 10.0 ** rng.uniform(-320.0, 300.0, 3)
    values = rng.choice([0.0, size]) + spread * rng.uniform(-1.0, 1.0, 6)
    sems = np.where(rng.random(6) < 0.5, error, NAN)
    data = observe(rng.random((6, 1)), values, sems)
    assert np.isfinite(data.values).all()
    assert 0.0 < data.scale < np.inf
    assert np.isfinite(data.known[~data.learnt]).all()
