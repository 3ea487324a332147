"""Evidence, and what is imagined beside it."""

from __future__ import annotations

import numpy as np

from covey.belief import Evidence
from covey.gp import Model, condition, observe
from covey.kernels import Matern52

RNG = np.random.default_rng(0)
AT, NEW = RNG.random((8, 2)), RNG.random((5, 2))
KERNEL, NOISE = Matern52((0.4, 0.5), 1.3), 0.05


def belief():
    data = observe(AT, np.sin(5.0 * AT).sum(axis=1), np.full(8, np.nan))
    return condition([Model(KERNEL, NOISE)], data).belief(NEW)


def test_what_is_imagined_makes_the_factor_of_all_looks():
    seen = belief().after_looking_at([1, 3]).after_looking_at([0]).parts[0].evidence
    at = np.vstack([AT, NEW[[1, 3]], NEW[[0]]])
    np.testing.assert_array_equal(seen.at, at)
    gram = KERNEL(at, at) + np.diag(seen.noise)
    np.testing.assert_allclose(seen.factor @ seen.factor.T, gram, atol=1e-12)
    np.testing.assert_array_equal(np.triu(seen.factor, 1), 0.0)


def test_imagined_looks_carry_no_weight():
    before = belief()
    seen = before.after_looking_at([1, 3]).parts[0].evidence
    np.testing.assert_array_equal(seen.weights[:8], before.parts[0].evidence.weights)
    np.testing.assert_array_equal(seen.weights[8:], 0.0)
    np.testing.assert_array_equal(seen.noise[8:], NOISE)


def test_it_is_put_together_only_when_asked_for():
    before = belief().parts[0].evidence
    asked = []
    look = belief().after_looking_at([2]).parts[0].evidence.looks[0]

    def cross():
        asked.append(1)
        return look.cross()

    seen = before.also(look._replace(cross=cross))
    assert isinstance(before, Evidence)
    assert len(seen.at) == 9
    assert asked == []
    assert seen.factor is seen.factor
    assert asked == [1]
