"""Weighted draws."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from covey.dpp.spectral import draw_items as draw

weights = st.lists(st.floats(0.0, 10.0), min_size=1, max_size=8).filter(lambda w: sum(w) > 1e-3)


@given(weights, st.floats(0.0, 1.0))
def test_an_item_of_no_weight_is_never_drawn(weights, uniform):
    cumulative = np.cumsum(weights)
    (item,) = draw(cumulative, np.array([uniform]))
    assert weights[item] > 0.0


def test_shares_are_the_weights():
    uniforms = (np.arange(1000) + 0.5) / 1000.0
    counts = np.bincount(draw(np.cumsum([1.0, 0.0, 7.0, 2.0]), uniforms), minlength=4)
    assert counts.tolist() == [100, 0, 700, 200]
