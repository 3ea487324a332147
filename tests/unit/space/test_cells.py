from __future__ import annotations

import numpy as np
import pytest

from covey.space.reading_csv import ColumnBuilder
from covey.space.table import TEXT, TextCells, is_spelled_number


def column(*blocks, as_text=False):
    cells = ColumnBuilder(as_text=as_text)
    for block in blocks:
        cells.add(TextCells(block))
    return None if cells.lost else cells.column()


@pytest.mark.parametrize(
    ("blocks", "dtype", "values"),
    [
        ([["1", " 2 "], ["+3", "-0"]], np.int64, [1, 2, 3, 0]),
        ([["1"], ["2.5"], ["3"]], np.float64, [1.0, 2.5, 3.0]),
        ([[".5", "1e3"], ["inf", "-Infinity"]], np.float64, [0.5, 1000.0, np.inf, -np.inf]),
        ([[str(2**70)], ["1"]], np.object_, [2**70, 1]),
        ([[str(2**70), "9" * 400], ["1.5"]], np.float64, [2.0**70, np.inf, 1.5]),
        ([["1"], ["", "2"]], np.object_, [1, None, 2]),
        ([["", " "], ["1", "2.5"]], np.object_, [None, None, 1.0, 2.5]),
        ([["1", ""], ["2.5"]], np.object_, [1.0, None, 2.5]),
        ([[str(2**70)], [""]], np.object_, [2**70, None]),
        ([["", " "], ["\t"]], np.object_, [None, None, None]),
        ([["a", "1"], ["2", ""]], TEXT, ["a", "1", "2", None]),
        ([["True"], ["False"]], TEXT, ["True", "False"]),
        ([["1_000"], ["2"]], TEXT, ["1_000", "2"]),
        ([["0x1F", "1"]], TEXT, ["0x1F", "1"]),
        ([["٣"]], np.int64, [3]),
    ],
)
def test_numbers_as_long_as_every_cell_is_one(blocks, dtype, values):
    result = column(*blocks)
    assert result.dtype == dtype
    assert result.tolist() == values
    assert [type(v) for v in result.tolist()] == [type(v) for v in values]


def test_text_after_a_block_of_numbers_must_be_read_again():
    assert column(["1", "02"], ["x"], ["3"]) is None
    assert column([""], ["x"]) is None
    assert column(["1", "02"], ["x"], as_text=True).tolist() == ["1", "02", "x"]
    assert column(["1", "x"], ["02"]).tolist() == ["1", "x", "02"]


def test_what_is_spelled_as_a_number():
    yes, no = ("1", " 1.5e3 ", "nan", "-inf"), ("", "1_0", "0x1F", "1,5", "a")
    assert all(map(is_spelled_number, yes))
    assert not any(map(is_spelled_number, no))
