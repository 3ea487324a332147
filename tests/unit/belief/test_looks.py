"""Candidates that are imagined observed."""

from __future__ import annotations

import numpy as np
import pytest

from covey.gp import Model, condition, observe
from covey.kernels import Matern52
from covey.large.lowrank import ImaginedRows

RNG = np.random.default_rng(0)
AT, NEW = RNG.random((8, 2)), RNG.random((60, 2))
KERNEL, NOISE = Matern52((0.4, 0.5), 1.3), 0.05


def belief(memory=2**30):
    data = observe(AT, np.sin(5.0 * AT).sum(axis=1), np.full(8, np.nan))
    return condition([Model(KERNEL, NOISE)], data).belief(NEW, memory=memory)


def looks(made):
    return made.parts[0].looks


def test_what_is_imagined_makes_the_factor_of_all_looks():
    seen = looks(belief().after_looking_at([1, 3]).after_looking_at([0])).evidence
    at = np.vstack([AT, NEW[[1, 3]], NEW[[0]]])
    np.testing.assert_array_equal(seen.at, at)
    gram = KERNEL(at, at) + np.diag(seen.noise)
    np.testing.assert_allclose(seen.factor @ seen.factor.T, gram, atol=1e-12)
    np.testing.assert_array_equal(np.triu(seen.factor, 1), 0.0)


def test_imagined_looks_carry_no_weight():
    before = belief()
    seen = looks(before.after_looking_at([1, 3])).evidence
    np.testing.assert_array_equal(seen.weights[:8], before.parts[0].evidence.weights)
    np.testing.assert_array_equal(seen.weights[8:], 0.0)
    np.testing.assert_array_equal(seen.noise[8:], NOISE)


def test_looks_are_named_as_before_whatever_is_left():
    made = belief().after_looking_at([7], on=np.arange(10, 50)).on(np.arange(5, 30))
    made = made.after_looking_at([2])
    assert looks(made).names.tolist() == [7, 17]
    np.testing.assert_array_equal(looks(made).evidence.at[-1], NEW[17])
    again = belief().after_looking_at([7, 17]).on(np.arange(15, 40))
    np.testing.assert_allclose(made.std, again.std, atol=1e-12)


@pytest.mark.parametrize("memory", [1, 4 * 8 * 60 * 3, 2**30])
def test_looks_one_by_one_are_those_taken_at_once(memory):
    """HeldRows, held at first, and never held."""
    one_by_one = belief(memory)
    for i in range(12):
        one_by_one = one_by_one.after_looking_at([i])
    together = belief().after_looking_at(list(range(12)))
    np.testing.assert_allclose(one_by_one.std, together.std, atol=1e-11)
    np.testing.assert_allclose(one_by_one.columns([20]), together.columns([20]), atol=1e-11)
    layers = one_by_one.parts[0].explained.layers
    held = sum(len(layer) for layer in layers[1:] if not isinstance(layer, ImaginedRows))
    assert 4 * 8 * 60 * held <= memory
    assert len(layers) <= 6  # one for all looks, or as many as a counter has digits
