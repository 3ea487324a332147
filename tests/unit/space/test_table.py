from __future__ import annotations

import numpy as np
import pytest

from covey.errors import SpaceError
from covey.space.table import Table, as_column, from_array, from_records


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], np.int64),
        ([1, 2.5], np.float64),
        ([np.float32(1), np.int64(2)], np.float64),
        ([True, np.bool_(False)], np.bool_),
        (["a", "b"], np.object_),
        ([True, 1], np.object_),
        ([1, None], np.object_),
        ([2**70, 1], np.object_),
        ([[1, 2], [3, 4]], np.object_),
        ([], np.object_),
        (np.arange(3, dtype=np.uint8), np.int64),
        (np.array([2**63], dtype=np.uint64), np.object_),
        (np.array([1.5], dtype=np.float32), np.float64),
        (np.array(["a"]), np.object_),
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


def test_rows_come_out_as_python_scalars():
    table = from_records([{"n": np.int64(1), "x": 0.5, "s": "a", "b": True, "any": [1]}])
    row = table.row(0)
    assert row == {"n": 1, "x": 0.5, "s": "a", "b": True, "any": [1]}
    assert [type(value) for value in row.values()] == [int, float, str, bool, list]


def test_take_keeps_some_rows_and_the_path():
    table = Table({"x": np.arange(4)}, path="pool.csv").take(np.array([2, 0]))
    assert table.row(0) == {"x": 2}
    assert len(table) == 2
    assert table.path == "pool.csv"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "at least one row, got an empty list"),
        ([{}], "at least one column"),
        ([[1, 2]], r"row 0 is list; .*Pool\(numpy.array\(rows\)\)"),
        ([{"x": 1}, {"y": 1}], "ragged: row 1 and row 0 do not both have x, y"),
        ([{"x": 1}, {"x": 1, "y": 1}], "ragged: row 1 and row 0 do not both have y"),
        ([{3: 1}], "column names must be non-empty strings, got 3"),
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
        (np.zeros(3), r"2-d, got shape \(3,\); reshape\(-1, 1\)"),
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
