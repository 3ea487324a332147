import numpy as np
import pytest
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


def test_log_normal_cdf_far_below():
    np.testing.assert_allclose(log_normal_cdf(np.array([-1.0, 2.0])), norm.logcdf([-1.0, 2.0]))
    assert log_normal_cdf(np.array([-100.0]))[0] == pytest.approx(-5005.524, abs=1e-2)
