import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey import arrays
from covey.kernels import Matern52, SquaredExponential
from covey.large.growing import Factor, empty

KERNEL = Matern52((0.4, 0.9), 1.3)


def looks(n, seed=0, noise=0.01):
    rng = np.random.default_rng(seed)
    return rng.random((n, 2)), noise * rng.uniform(0.5, 2.0, n)


def covariance(at, noise, kernel=KERNEL):
    return kernel(at, at) + np.diag(noise)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 40, 300, 700])
def test_it_is_the_cholesky_factor_with_the_precisions(n):
    """700 rows take three blocks of the real size."""
    at, noise = looks(n)
    made = empty(KERNEL, 2).grown(at, noise)
    matrix = covariance(at, noise)
    np.testing.assert_allclose(made.lower, np.linalg.cholesky(matrix), atol=1e-9)
    np.testing.assert_allclose(made.precision, np.diagonal(np.linalg.inv(matrix)), rtol=1e-9)
    assert np.all(np.triu(made.lower, 1) == 0.0)


@given(seed=st.integers(0, 1000))
def test_grown_is_made_at_once_to_the_last_bit(seed):
    """Through any steps, even back; the whole blocks that are shared are never made again."""
    rng = np.random.default_rng(seed)
    at, noise = looks(70, seed)
    grown = empty(KERNEL, 2, block=8)
    for n in rng.integers(1, 71, size=4):
        grown = grown.grown(at[:n], noise[:n])
        if rng.random() < 0.5:
            assert len(grown.precision) == n
    once = empty(KERNEL, 2, block=8).grown(at, noise)
    grown = grown.grown(at, noise)
    assert np.array_equal(grown.lower, once.lower)
    assert np.array_equal(grown.precision, once.precision)


@pytest.mark.parametrize("what", ["at", "noise"])
def test_rows_that_changed_are_made_anew(what):
    at, noise = looks(50)
    old = empty(KERNEL, 2, block=8).grown(at, noise)
    old.precision  # noqa: B018 - remembered, and to be forgotten from the changed row on
    at, noise = at.copy(), noise.copy()
    (at if what == "at" else noise)[20] *= 1.5
    new = old.grown(at, noise)
    matrix = covariance(at, noise)
    np.testing.assert_allclose(new.lower, np.linalg.cholesky(matrix), atol=1e-9)
    np.testing.assert_allclose(new.precision, np.diagonal(np.linalg.inv(matrix)), rtol=1e-9)
    assert np.array_equal(new.lower[:16], np.pad(old.lower[:16, :16], ((0, 0), (0, 34))))
    # The control: with the old factor the same check fails.
    assert np.abs(old.lower - np.linalg.cholesky(matrix)).max() > 1e-6


def test_only_new_rows_are_made(monkeypatch):
    at, noise = looks(50)
    old = empty(KERNEL, 2, block=8).grown(at[:40], noise[:40])
    assert old.grown(at[:40], noise[:40]) is old
    made = []
    covariances = Factor._covariances
    monkeypatch.setattr(
        Factor, "_covariances", lambda self, rows: (made.append(rows), covariances(self, rows))
    )
    old.grown(at, noise)
    assert sorted(rows.start for rows in made) == [40, 48]


def test_the_number_of_threads_does_not_matter(monkeypatch):
    at, noise = looks(100)
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(arrays, "cores", lambda cores=cores: cores)
        made = empty(KERNEL, 2, block=8).grown(at, noise)
        found.append((made.lower, made.precision))
    assert np.array_equal(found[0][0], found[1][0])
    assert np.array_equal(found[0][1], found[1][1])


def test_a_block_that_rounding_made_indefinite_is_jittered():
    """One point looked at 30 times without noise: rank one."""
    kernel = SquaredExponential((1.0, 1.0))
    made = empty(kernel, 2, block=8).grown(np.full((30, 2), 0.5), np.zeros(30))
    np.testing.assert_allclose(made.lower @ made.lower.T, np.ones((30, 30)), atol=1e-5)
