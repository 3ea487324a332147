import numpy as np
import pytest
from scipy.linalg import solve_triangular
from scipy.stats import norm

from covey.arrays import cholesky, log_normal_cdf, solve_lower
from covey.errors import NumericsError


def test_cholesky_adds_jitter_only_where_it_must():
    good = np.array([[2.0, 1.0], [1.0, 2.0]])
    assert np.array_equal(cholesky(good), np.linalg.cholesky(good))
    singular = np.ones((3, 3))
    factor = cholesky(singular)
    np.testing.assert_allclose(factor @ factor.T, singular, atol=1e-5)


def test_cholesky_refuses_what_jitter_cannot_mend():
    with pytest.raises(NumericsError, match="2 x 2 covariance is not positive definite"):
        cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_solve_lower_both_ways_and_empty():
    factor = np.array([[2.0, 0.0], [1.0, 3.0]])
    right = np.array([2.0, 7.0])
    np.testing.assert_allclose(factor @ solve_lower(factor, right), right)
    np.testing.assert_allclose(factor.T @ solve_lower(factor, right, transposed=True), right)
    assert solve_lower(np.zeros((0, 0)), np.zeros((0, 3))).shape == (0, 3)
    assert solve_lower(factor, np.zeros((2, 0))).shape == (2, 0)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("order", ["C", "F", "slice"])
def test_solve_lower_agrees_with_scipy_in_every_layout(order, transposed):
    rng = np.random.default_rng(0)
    whole = np.tril(rng.standard_normal((7, 7))) + 7.0 * np.eye(7)
    factor = whole[:5, :5] if order == "slice" else np.array(whole, order=order)
    right = rng.standard_normal((len(factor), 3))
    expected = solve_triangular(factor, right, lower=True, trans="T" if transposed else "N")
    np.testing.assert_allclose(solve_lower(factor, right, transposed=transposed), expected)


def test_solve_lower_refuses_a_factor_with_a_zero_on_its_diagonal():
    with pytest.raises(NumericsError, match="zero at place 2"):
        solve_lower(np.array([[1.0, 0.0], [1.0, 0.0]]), np.ones(2))


def test_log_normal_cdf_far_below():
    np.testing.assert_allclose(log_normal_cdf(np.array([-1.0, 2.0])), norm.logcdf([-1.0, 2.0]))
    assert log_normal_cdf(np.array([-100.0]))[0] == pytest.approx(-5005.524, abs=1e-2)
