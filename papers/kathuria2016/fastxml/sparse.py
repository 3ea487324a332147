"""Sparse matrices as numba sees them: rows one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class Sparse(NamedTuple):
    """Row i holds ``value`` at the columns ``at``, both from ``start[i]`` to ``start[i + 1]``.

    Within a row the columns ascend, so that two ways to add up a row agree to the last bit.
    """

    start: np.ndarray[Any, np.dtype[np.int64]]
    at: np.ndarray[Any, np.dtype[np.int64]]
    value: np.ndarray[Any, np.dtype[np.float64]]


def from_scipy(matrix: csr_matrix) -> Sparse:
    """The same matrix, its columns sorted."""
    rows = matrix.tocsr().sorted_indices()
    return Sparse(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data.astype(np.float64)
    )


def with_constant(matrix: csr_matrix, value: float) -> Sparse:
    """The same matrix with one more column, everywhere ``value``: FastXML's bias."""
    rows = from_scipy(matrix)
    ends, width = rows.start[1:], matrix.shape[1]
    return Sparse(
        rows.start + np.arange(len(rows.start)),
        np.insert(rows.at, ends, width),
        np.insert(rows.value, ends, value),
    )
