from __future__ import annotations

import pickle

import numpy as np
import pytest

from covey.errors import SpaceError
from covey.space import table
from covey.space.reading import Source
from covey.space.reading_csv import ColumnBuilder
from covey.space.table import (
    TEXT,
    Table,
    as_column,
    equal_to,
    from_array,
    from_records,
    is_spelled_number,
    is_text,
    joined,
    texts,
)


def test_rows_come_out_as_python_scalars():
    table = from_records([{"n": np.int64(1), "x": 0.5, "s": "a", "b": True, "any": [1]}])
    row = table.row(0)
    assert row == {"n": 1, "x": 0.5, "s": "a", "b": True, "any": [1]}
    assert [type(value) for value in row.values()] == [int, float, str, bool, list]


def test_take_keeps_some_rows_and_the_path():
    table = Table({"x": np.arange(4)}, Source("pool.parquet", 1, 2)).take(np.array([2, 0]))
    assert table.row(0) == {"x": 2}
    assert len(table) == 2
    assert table.path == "pool.parquet"
    assert table.where(1) == "row 1 (the first is row 0) of pool.parquet"


def test_rows_in_memory_have_no_path():
    table = from_array(np.eye(2))
    assert table.path is None
    assert table.where(1) == "row 1 (the first is row 0)"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "at least one row, got an empty list"),
        ([{}], "at least one column"),
        ([[1, 2]], r"row 0.*Pool"),
        ([{"x": 1}, {"y": 1}], r"row 1 and row 0 .* x, y"),
        ([{"x": 1}, {"x": 1, "y": 1}], r"row 1 and row 0 .* y"),
        ([{3: 1}], r"column.*got 3"),
    ],
)
def test_records_are_checked(rows, message):
    with pytest.raises(SpaceError, match=message):
        from_records(rows)


def test_columns_of_an_array_are_numbered():
    table = from_array(np.array([[1, 2], [3, 4]]))
    assert table.row(1) == {"x0": 3, "x1": 4}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros(3), r"\(3,\).*\(-1, 1\)"),
        (np.zeros((0, 2)), "at least one row"),
        (np.zeros((2, 0)), "at least one column"),
    ],
)
def test_arrays_are_checked(rows, message):
    with pytest.raises(SpaceError, match=message):
        from_array(rows)


def test_the_digest_sees_names_values_and_order_but_not_the_type_of_numbers():
    base = from_records([{"x": 1, "s": "a"}, {"x": 2, "s": None}])
    same = from_records([{"x": 1.0, "s": "a"}, {"x": 2.0, "s": None}])
    assert base.sha256() == same.sha256()
    others = [
        [{"x": 2, "s": "a"}, {"x": 1, "s": None}],
        [{"x": 1, "s": "a"}, {"x": 2, "s": "b"}],
        [{"y": 1, "s": "a"}, {"y": 2, "s": None}],
        [{"x": 1, "s": "a"}],
    ]
    digests = {from_records(rows).sha256() for rows in others}
    assert len(digests) == 4
    assert base.sha256() not in digests


def test_the_digest_has_one_zero_and_one_nan():
    a = Table({"x": np.array([0.0, np.nan])})
    b = Table({"x": np.array([-0.0, -np.nan])})
    assert a.sha256() == b.sha256()


def test_the_digest_does_not_depend_on_how_much_is_hashed_at_once(monkeypatch):
    rows = [
        {"x": i, "s": None if i == 3 else f"é{i}", "any": [i, 1.5, "a", None]} for i in range(7)
    ]
    whole = from_records(rows).sha256()
    monkeypatch.setattr(table, "_BLOCK", 2)
    assert from_records(rows).sha256() == whole


def test_the_digest_of_0_1_0_stays():
    """It is in journals; and text counts the same as objects and as text."""
    rows = [{"n": 1, "x": -0.0, "s": 'a"é', "b": True, "gap": None, "big": 2**70}]
    rows.append({"n": 2, "x": float("nan"), "s": None, "b": False, "gap": 1, "big": [3]})
    assert from_records(rows).sha256() == (
        "c1e7e644b3010286baeee5892fb87a8e97323144f7a18a33721680bbd5d057fb"
    )


# Cells of text that may be numbers


def column(*blocks, as_text=False):
    cells = ColumnBuilder(as_text=as_text)
    for block in blocks:
        cells.add(block)
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


# Columns


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], np.int64),
        ([1, 2.5], np.float64),
        ([np.float32(1), np.int64(2)], np.float64),
        ([True, np.bool_(False)], np.bool_),
        (["a", "b"], TEXT),
        (["a", None], TEXT),
        ([None, None], np.object_),
        (["a", 1], np.object_),
        (["\ud800"], np.object_),
        ([True, 1], np.object_),
        ([1, None], np.object_),
        ([2**70, 1], np.object_),
        ([[1, 2], [3, 4]], np.object_),
        ([], np.object_),
        (np.arange(3, dtype=np.uint8), np.int64),
        (np.array([2**63], dtype=np.uint64), np.object_),
        (np.array([1.5], dtype=np.float32), np.float64),
        (np.array(["a"]), TEXT),
        (np.array([1, 2], dtype=object), np.int64),
        (np.array(["2024-01-01"], dtype="M8[D]"), np.object_),
    ],
)
def test_a_column_has_the_type_all_its_values_have(values, dtype):
    column = as_column(values)
    assert column.dtype == dtype
    assert column.shape == (len(values),)


def test_a_column_is_a_copy():
    values = np.arange(3.0)
    column = as_column(values)
    values[0] = 9.0
    assert column[0] == 0.0


def test_text_comes_back_as_it_was():
    words = ["", "a\0", "é" * 40, "\U0001f9ea", None, " x "]
    column = as_column(words)
    assert is_text(column)
    assert column.tolist() == words
    assert [type(column[i]) for i in (1, 4)] == [str, type(None)]
    assert pickle.loads(pickle.dumps(column)).tolist() == words
    assert column[np.array([4, 2])].tolist() == [None, "é" * 40]


def test_text_takes_little_more_than_its_letters():
    """An object for each cell would take 49 bytes more than the letters."""
    assert texts(["CCO"] * 1000).nbytes <= 16_000


@pytest.mark.parametrize(
    ("parts", "dtype"),
    [
        ([[1], [2, 3]], np.int64),
        ([[1], [2.5]], np.float64),
        ([[1], [None]], np.object_),
        ([[1], [2**70]], np.object_),
        ([["a"], [None, "b"]], TEXT),
        ([["a"], [None]], TEXT),
        ([[True], [None]], np.object_),
        ([[True], [False]], np.bool_),
        ([[[1]], ["a"]], np.object_),
    ],
)
def test_pieces_are_joined_as_if_they_had_come_at_once(parts, dtype):
    values = [value for part in parts for value in part]
    column = joined([as_column(part) for part in parts])
    assert column.dtype == dtype == as_column(values).dtype
    assert column.tolist() == values


def test_equal_to_finds_the_very_value():
    assert equal_to(as_column(["a", None, "b"]), "a").tolist() == [True, False, False]
    assert equal_to(as_column(["a", None]), None).tolist() == [False, True]
    assert equal_to(as_column(["1", "2"]), 1).tolist() == [False, False]
    assert equal_to(as_column([1, 2]), 1.0).tolist() == [True, False]
    assert equal_to(as_column([1, 2]), True).tolist() == [False, False]
    assert equal_to(as_column([[1], 1]), [1]).tolist() == [True, False]
