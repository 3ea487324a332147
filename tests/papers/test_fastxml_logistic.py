"""The logistic step against scikit-learn's liblinear, by the objective both minimise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix

pytest.importorskip("numba", reason="numba is not installed: pip install numba")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from papers.kathuria2016.fastxml.logistic import Limits, columns, fit, log_loss, product
from papers.kathuria2016.fastxml.seeds import root
from papers.kathuria2016.fastxml.sparse import from_scipy, with_constant

EXACT = Limits(200, 500, 1e-6)


def case(seed, n=120, d=25):
    """Binary features with a constant one, signs that depend on a few, and balanced costs."""
    rng = np.random.default_rng(seed)
    x = (rng.random((n, d)) < 0.2).astype(float)
    sign = np.where(x[:, :4].sum(axis=1) + 0.8 * rng.standard_normal(n) > 0.8, 1.0, -1.0)
    share = (sign > 0).mean()
    cost = np.where(sign > 0, 0.7 / share, 0.7 / (1.0 - share))
    return with_constant(csr_matrix(x), 2.0), np.c_[x, np.full(n, 2.0)], sign, cost


def objective(x, w, sign, cost):
    return np.abs(w).sum() + log_loss(sign * (x @ w), cost)


def ours(features, sign, cost, limits, width=26):
    x, used = columns(features, np.arange(len(sign)), width)
    w = np.zeros(width)
    w[used] = fit(x, sign, cost, limits, root(0, 0))
    return w


def liblinear(x, sign, cost):
    from sklearn.linear_model import LogisticRegression

    # Releases differ in how they spell the penalty, and warn of the other spelling.
    l1 = {"penalty": "l1", "l1_ratio": 1.0}
    model = LogisticRegression(
        **l1, solver="liblinear", fit_intercept=False, tol=1e-8, max_iter=5000
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, sign, sample_weight=cost)
    return model.coef_[0]


@pytest.mark.parametrize("seed", range(4))
def test_the_objective_is_liblinears(seed):
    features, x, sign, cost = case(seed)
    best = objective(x, liblinear(x, sign, cost), sign, cost)
    got = objective(x, ours(features, sign, cost, EXACT), sign, cost)
    coarse = objective(x, ours(features, sign, cost, Limits()), sign, cost)
    assert got == pytest.approx(best, rel=1e-3)
    assert coarse == pytest.approx(best, rel=0.02)
    assert objective(x, np.zeros(26), sign, cost) > 1.1 * best


def test_the_optimum_satisfies_the_subgradient_condition():
    features, x, sign, cost = case(7)
    w = ours(features, sign, cost, EXACT)
    slope = -(x * (sign * cost / (1.0 + np.exp(sign * (x @ w))))[:, None]).sum(axis=0)
    assert np.allclose(slope[w != 0], -np.sign(w[w != 0]), atol=1e-3)
    assert np.all(np.abs(slope[w == 0]) <= 1.0 + 1e-3)
    assert 0 < (w != 0).sum() < 26


def test_a_strong_penalty_leaves_nothing():
    features, _, sign, cost = case(1)
    assert not ours(features, sign, 1e-3 * cost, Limits()).any()


def test_columns_are_the_transpose_of_some_rows():
    rng = np.random.default_rng(5)
    dense = rng.random((8, 6)) * (rng.random((8, 6)) < 0.4)
    dense[:, 2] = 0.0
    rows = np.array([0, 3, 4, 7])
    x, used = columns(from_scipy(csr_matrix(dense)), rows, 6)
    assert used.tolist() == np.flatnonzero(dense[rows].any(axis=0)).tolist()
    w = rng.standard_normal(len(used))
    assert np.allclose(product(x, w, 4), dense[rows][:, used] @ w)
