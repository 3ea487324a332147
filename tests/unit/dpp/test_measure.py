"""Determinants, normaliser and entropy; the identities between them are laws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from covey import dpp
from covey.dpp import measure
from covey.errors import NumericsError


def information(n, seed=0, scale=1.0):
    root = np.random.default_rng(seed).normal(size=(n, n))
    return np.eye(n) + scale * root @ root.T


def test_log_determinant_of_some_items():
    L = information(6)
    assert dpp.log_determinant(L, [4, 1]) == pytest.approx(
        math.log(L[1, 1] * L[4, 4] - L[1, 4] ** 2)
    )
    assert dpp.log_determinant(L, []) == 0.0
    assert dpp.log_determinant(L, [2, 2]) == -np.inf


def test_log_determinants_do_not_overflow():
    assert dpp.log_determinant(1e6 * np.eye(100), range(100)) == pytest.approx(600 * math.log(10))


def test_a_normalizer_that_is_nought_or_rounding_is_an_error():
    with pytest.raises(NumericsError, match="kernel of rank 1"):
        dpp.log_normalizer(np.ones((4, 4)), 2)


def test_the_entropy_of_equal_determinants_is_the_log_of_their_number():
    assert dpp.entropy(3.0 * np.eye(12), 5) == pytest.approx(math.log(math.comb(12, 5)))


def test_a_certain_set_has_no_entropy():
    L = np.diag([1.0, 1.0, 0.0, 0.0])
    assert dpp.entropy(L, 2) == pytest.approx(0.0, abs=1e-12)
    assert dpp.entropy(np.eye(4), 4) == pytest.approx(0.0, abs=1e-12)


def test_one_item_needs_no_enumeration_whatever_n():
    class Uniform:
        diagonal = np.ones(300_000)

        def columns(self, indices):
            raise AssertionError("not needed")

    assert dpp.entropy(Uniform(), 1) == pytest.approx(math.log(300_000))


def test_enumeration_in_chunks_is_the_same(monkeypatch):
    L = information(9)
    whole = dpp.entropy(L, 3)
    monkeypatch.setattr(measure, "_CHUNK", 50)
    assert dpp.entropy(L, 3) == pytest.approx(whole, abs=1e-12)


def test_too_many_subsets_need_a_generator():
    with pytest.raises(NumericsError, match=r"rng=np\.random.default_rng"):
        dpp.entropy(np.eye(60), 5)


def test_the_sampled_entropy_is_near_the_enumerated_one(monkeypatch):
    L = information(9, scale=4.0)
    exact = dpp.entropy(L, 3)
    monkeypatch.setattr(measure, "_SUBSETS", 0)
    sampled = dpp.entropy(L, 3, np.random.default_rng(0))
    # Five standard errors; the entropy of the uniform law is further away than that.
    assert abs(sampled - exact) < 0.15 < math.log(math.comb(9, 3)) - exact


def test_a_rank_below_k_has_no_entropy():
    root = np.random.default_rng(0).normal(size=(7, 2))
    with pytest.raises(NumericsError, match="rank 2"):
        dpp.entropy(root @ root.T, 3)
