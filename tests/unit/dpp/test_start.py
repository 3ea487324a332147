"""The start of a Markov chain; that its bound holds is a law."""

from __future__ import annotations

import math

import numpy as np
import pytest

from covey.dpp.kernel import adapt
from covey.dpp.start import greedy_start


def test_the_start_is_the_greedy_maximum():
    assert greedy_start(adapt(np.diag([1.0, 3.0, 2.0])), 2).items.tolist() == [1, 2]


def test_the_bound_is_exact_where_all_sets_are_alike():
    start = greedy_start(adapt(5.0 * np.eye(9)), 3)
    assert start.log_inverse_mass == pytest.approx(math.log(84.0))


def test_the_guarantee_of_greedy_takes_over_where_the_trace_says_little():
    L = np.diag([1e9] + [1.0] * 8)
    L[1:, 1:] += 1e-3
    start = greedy_start(adapt(L), 3)
    assert start.log_inverse_mass == pytest.approx(math.log(84.0) + 2 * math.log(6.0))
