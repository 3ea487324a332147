"""Draws from finitely many items with given weights."""

from __future__ import annotations

import numpy as np

from covey.arrays import Array, Indices, beside, host, namespace


def draw(cumulative: Array, uniforms: Array) -> Indices:
    """Item i for each uniform, with probability proportional to the i-th step of ``cumulative``.

    The weights need not sum to one, and an item of weight zero is never drawn. Cost log n each.

    >>> draw(np.cumsum([0.0, 1.0, 0.0, 3.0, 0.0]), np.array([0.0, 0.2, 0.3, 1.0]))
    array([1, 1, 3, 3])
    """
    xp, total = namespace(cumulative), cumulative[-1:]
    found = xp.searchsorted(cumulative, beside(uniforms, cumulative) * total, side="right")
    # u · total may round up to the total: that belongs to the last item with a weight.
    last = xp.searchsorted(cumulative, total, side="left")
    return np.minimum(host(found), host(last))
