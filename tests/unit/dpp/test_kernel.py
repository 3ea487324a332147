"""Kernels: what is accepted, how it is read, what is refused."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from covey import dpp
from covey.covariance import Dense, Subset, gathered, rank_error
from covey.dpp.kernel import Blocks, Checked, Columns, adapt, check_count, densify
from covey.errors import NumericsError

MATRIX = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 4.0]])


@dataclass
class OnlyColumns:
    """A kernel by columns, which counts those it was asked for."""

    matrix: np.ndarray
    asked: list[int] = field(default_factory=list)

    @property
    def diagonal(self):
        return self.matrix.diagonal()

    def columns(self, indices):
        self.asked.append(len(indices))
        return self.matrix[:, indices]


class AlsoBlocks(OnlyColumns):
    def block(self, rows, cols):
        return self.matrix[np.ix_(rows, cols)]


class AlsoParts(AlsoBlocks):
    def on(self, items):
        return AlsoParts(self.block(items, items))


KERNELS = [MATRIX, OnlyColumns(MATRIX), AlsoBlocks(MATRIX), AlsoParts(MATRIX)]
NAMES = ["dense", "columns", "blocks", "parts"]


@pytest.mark.parametrize("L", KERNELS, ids=NAMES)
def test_every_accepted_kernel_tells_the_same_entries(L):
    kernel = adapt(L)
    rows, cols = np.array([2, 0]), np.array([1])
    assert kernel.diagonal.tolist() == [2.0, 3.0, 4.0]
    assert kernel.columns(rows).tolist() == MATRIX[:, rows].tolist()
    assert kernel.block(rows, cols).tolist() == [[0.2], [1.0]]
    assert kernel.block(cols, rows).tolist() == [[0.2, 1.0]]
    assert densify(kernel).tolist() == MATRIX.tolist()
    assert adapt(kernel) is kernel


def test_the_protocols_know_their_own():
    assert isinstance(OnlyColumns(MATRIX), Columns)
    assert not isinstance(OnlyColumns(MATRIX), Blocks)
    assert isinstance(AlsoBlocks(MATRIX), Blocks)
    assert not isinstance(MATRIX, Columns)
    assert [type(adapt(L)) for L in KERNELS] == [Dense, Checked, Checked, Checked]


@pytest.mark.parametrize("L", KERNELS, ids=NAMES)
def test_every_kernel_can_be_cut_down(L):
    items = np.array([2, 0])
    part = adapt(L).on(items)
    assert part.diagonal.tolist() == [4.0, 2.0]
    assert part.columns(np.array([1])).tolist() == [[0.5], [2.0]]
    assert part.block(np.array([0]), np.array([1, 0])).tolist() == [[0.5, 4.0]]
    assert densify(part.on(np.array([1]))).tolist() == [[2.0]]
    assert adapt(part) is part


def test_a_part_is_cut_by_the_source_if_that_can():
    kinds = [type(adapt(L).on(np.array([1]))) for L in KERNELS]
    assert kinds == [Dense, Subset, Subset, Checked]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tensors_stay_where_they_are(dtype):
    torch = pytest.importorskip("torch", reason="install torch to test tensors")
    matrix = torch.as_tensor(MATRIX, dtype=getattr(torch, dtype))
    kernel = adapt(AlsoBlocks(matrix))
    assert kernel.diagonal.dtype == kernel.columns(np.array([0])).dtype == matrix.dtype
    assert dpp.maximize(AlsoBlocks(matrix), 2) == dpp.maximize(MATRIX, 2)
    with pytest.raises(NumericsError, match=r"got nan at row 2, column 2"):
        adapt(AlsoBlocks(torch.as_tensor(spoiled(2, 2, np.nan))))
    with pytest.raises(NumericsError, match="nan or infinite"):
        dpp.maximize(AlsoBlocks(torch.as_tensor(spoiled(1, 2, np.nan))), 2)
    with pytest.raises(NumericsError, match="diagonal holds -4 at index 2"):
        adapt(AlsoBlocks(torch.as_tensor(spoiled(2, 2, -4.0))))


def test_a_dense_kernel_is_not_copied():
    assert np.shares_memory(adapt(MATRIX).columns(np.array([0])), MATRIX) is False
    assert densify(adapt(MATRIX)) is MATRIX


def test_lists_and_whole_numbers_are_kernels_too():
    assert densify(adapt([[2, 1], [1, 2]])).dtype == np.float64


def test_a_block_costs_the_shorter_side_in_columns():
    source = OnlyColumns(np.eye(9))
    adapt(source).block(np.arange(2), np.arange(9))
    adapt(source).block(np.arange(9), np.arange(3))
    assert source.asked == [2, 3]


def spoiled(row, col, value):
    matrix = MATRIX.copy()
    matrix[row, col] = value
    return matrix


@pytest.mark.parametrize(
    ("L", "words"),
    [
        (np.ones((2, 3)), r"must be square, \(n, n\); got shape \(2, 3\)"),
        (np.ones(3), "must be square"),
        (np.zeros((0, 0)), "n >= 1"),
        ([[1.0], [1.0, 2.0]], "an .n, n. array or an object"),
        ("kernel", "got str"),
        (spoiled(0, 1, np.nan), "got nan at row 0, column 1"),
        (spoiled(2, 2, np.inf), "got inf at row 2, column 2"),
        (spoiled(0, 1, 1.1), "must be symmetric.*about 0.1"),
        (spoiled(2, 2, -4.0), "diagonal holds -4 at index 2"),
    ],
)
def test_a_matrix_that_is_no_kernel_is_refused(L, words):
    with pytest.raises(NumericsError, match=words):
        adapt(L)


@pytest.mark.parametrize("where", [(0, 299), (150, 7), (299, 298)])
def test_a_single_asymmetric_entry_is_found(where):
    matrix = np.eye(300)
    matrix[where] = 1e-3
    with pytest.raises(NumericsError, match="symmetric"):
        adapt(matrix)


def test_asymmetry_at_the_level_of_rounding_is_not():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(300, 300))
    matrix = factor @ factor.T
    adapt(matrix + 1e-9 * rng.normal(size=matrix.shape))


@pytest.mark.parametrize("kind", [OnlyColumns, AlsoBlocks])
def test_nan_in_a_column_is_found_when_it_comes(kind):
    with pytest.raises(NumericsError, match="nan or infinite"):
        dpp.maximize(kind(spoiled(1, 2, np.nan)), 2)


def test_columns_of_the_wrong_shape_are_refused():
    class Short(OnlyColumns):
        def columns(self, indices):
            return self.matrix[:2, indices]

    with pytest.raises(NumericsError, match=r"shape \(2, 1\), expected \(3, 1\)"):
        dpp.maximize(Short(MATRIX), 2)


@pytest.mark.parametrize(
    ("k", "words"), [(0, "at least 1, got 0"), (-2, "at least 1"), (4, "from 3")]
)
def test_a_count_out_of_range_is_refused(k, words):
    for call in (dpp.maximize, dpp.prepare, dpp.log_normalizer, dpp.entropy):
        with pytest.raises(NumericsError, match=words):
            call(MATRIX, k)


def test_a_count_is_a_whole_number():
    assert check_count(np.int64(2), 3) == 2
    with pytest.raises(NumericsError, match=r"whole number, got 2\.0"):
        check_count(2.0, 3)


def test_the_rank_error_says_what_to_do():
    assert "kernel of rank 5; use k <= 5" in str(rank_error(8, 5))
    assert "zero everywhere" in str(rank_error(8, 0))


def test_on_a_device_a_kernel_of_few_items_is_gathered(monkeypatch):
    torch = pytest.importorskip("torch", reason="install torch to test tensors")
    root = np.random.default_rng(0).random((6, 4))
    here = adapt(AlsoBlocks(root @ root.T))
    there = adapt(AlsoBlocks(torch.as_tensor(root @ root.T)))
    assert gathered(here) is here
    assert isinstance(gathered(there), Dense)
    np.testing.assert_allclose(
        gathered(there).columns(np.array([4])), here.columns(np.array([4])), atol=1e-12
    )
    assert gathered(there, most=8 * 35) is there
