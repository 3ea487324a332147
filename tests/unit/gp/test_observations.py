import numpy as np
import pytest

from covey.gp.observations import LEAST_NOISE, observe, reined_in

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
    values = np.array([0.3, -1e6, 0.9, 0.5, 0.1, -2e7, 0.2, 0.8])
    reined = reined_in(values)
    assert reined[[1, 5]] == pytest.approx([-0.7, -0.7])
    assert np.array_equal(np.delete(reined, [1, 5]), np.delete(values, [1, 5]))
    assert reined_in(3.0 * values - 2.0) == pytest.approx(3.0 * reined - 2.0)  # in any unit


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 1.0, 2.0, -8.0, 0.5],  # far, but not ten ranges
        [-1e6, -1e6, 0.0, 1.0, 2.0],  # more than a quarter: that is what f is like
        [-1e6, 2.0, 2.0, 2.0, 2.0],  # the rest has no range
        [-1e6, 1.0, 2.0],  # too few to tell
        [1.0],
    ],
)
def test_what_may_be_meant_is_left_alone(values):
    assert np.array_equal(reined_in(np.array(values)), values)


def test_known_errors_are_believed():
    values, at = np.array([0.0, 1.0, 2.0, -1e6, 0.5]), np.arange(5.0)[:, None]
    assert observe(at, values, np.full(5, 0.1)).scale > 1e5
    assert observe(at, values, np.full(5, np.nan)).scale < 2.0
