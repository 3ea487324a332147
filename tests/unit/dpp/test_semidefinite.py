"""What is forgiven as rounding, and what is no kernel."""

from __future__ import annotations

import numpy as np
import pytest

from covey.covariance import check_semidefinite
from covey.errors import NumericsError


def test_rounding_below_zero_is_forgiven_and_more_is_not():
    diagonal = np.array([1.0, 100.0])
    check_semidefinite(np.array([0.5, -1e-9]), diagonal)
    with pytest.raises(NumericsError, match=r"item 1 has conditional variance -0\.1"):
        check_semidefinite(np.array([0.5, -0.1]), diagonal)
    with pytest.raises(NumericsError, match="item 40"):
        check_semidefinite(np.array([0.5, -0.1]), diagonal, np.array([7, 40]))


def test_single_precision_is_forgiven_its_own_rounding():
    diagonal = np.array([1.0, 10_000.0], dtype=np.float32)
    found = np.array([0.5, -0.0161], dtype=np.float32)
    check_semidefinite(found, diagonal)
    with pytest.raises(NumericsError, match="item 1"):
        check_semidefinite(found.astype(np.float64), diagonal.astype(np.float64))
    with pytest.raises(NumericsError, match="item 1"):
        check_semidefinite(1000 * found, diagonal)
