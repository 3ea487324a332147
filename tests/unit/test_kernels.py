import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from covey.errors import NumericsError
from covey.kernels import KERNELS, KernelMatrix, Matern52, SquaredExponential, squared_distance

both = pytest.mark.parametrize(
    "kernel", [SquaredExponential((0.3, 0.6), 1.5), Matern52((0.3, 0.6), 1.5)]
)


@given(seed=st.integers(0, 1000))
def test_squared_distance_is_scaled_and_never_negative(seed):
    rng = np.random.default_rng(seed)
    a, b = 100.0 + rng.random((5, 2)), 100.0 + rng.random((4, 2))
    expected = cdist(a / [0.3, 0.6], b / [0.3, 0.6]) ** 2
    np.testing.assert_allclose(squared_distance(a, b, (0.3, 0.6)), expected, atol=1e-9)
    assert squared_distance(a, a, (0.3, 0.6)).min() >= 0.0


def test_a_wrong_number_of_length_scales_is_named():
    with pytest.raises(NumericsError, match="3 coordinates but the kernel has 2 length-scales"):
        SquaredExponential((0.3, 0.6))(np.zeros((1, 3)), np.zeros((1, 3)))


@both
def test_slope_is_the_derivative(kernel):
    r2 = np.array([0.01, 0.5, 2.0, 9.0])
    numeric = (kernel.at_distance(r2 + 1e-6) - kernel.at_distance(r2 - 1e-6)) / 2e-6
    np.testing.assert_allclose(kernel.slope(r2), numeric, rtol=1e-5)
    assert np.isfinite(kernel.slope(np.zeros(1)))


@both
def test_a_bound_kernel_gives_blocks_columns_and_subsets(kernel):
    at = np.random.default_rng(0).random((6, 2))
    bound, full = KernelMatrix(kernel, at), kernel(at, at)
    rows, cols = np.array([0, 3]), np.array([1, 3, 5])
    np.testing.assert_allclose(bound.block(rows, cols), full[np.ix_(rows, cols)], atol=1e-12)
    np.testing.assert_allclose(bound.columns(cols), full[:, cols], atol=1e-12)
    np.testing.assert_allclose(
        bound.on(rows).columns(np.array([1])), full[rows][:, [3]], atol=1e-12
    )
    np.testing.assert_allclose(bound.diagonal, np.diagonal(full))


@both
def test_prior_paths_have_the_kernel_as_covariance(kernel):
    at = np.random.default_rng(0).random((4, 2))
    rng = np.random.default_rng(1)
    draws = []
    for _ in range(20):  # fresh frequencies each time
        here, there = KernelMatrix(kernel, at[:3]).paths(rng, 500, at[3:])
        draws.append(np.hstack([here(slice(None)), there]))
    np.testing.assert_allclose(np.cov(np.vstack(draws).T), kernel(at, at), atol=0.1)


@both
def test_gradient_is_the_derivative(kernel):
    rng = np.random.default_rng(0)
    at, x, w = rng.random((3, 2)), rng.random((5, 2)), rng.standard_normal(5)
    gradient = KernelMatrix(kernel, at).gradient(x, w)
    for axis in range(2):
        step = np.zeros(2)
        step[axis] = 1e-6
        numeric = (kernel(at + step, x) @ w - kernel(at - step, x) @ w) / 2e-6
        np.testing.assert_allclose(gradient[:, axis], numeric, rtol=1e-5, atol=1e-8)


def test_names():
    assert {"squared-exponential": SquaredExponential, "matern52": Matern52} == KERNELS
