from __future__ import annotations

import numpy as np
import pytest

from covey.errors import SpaceError
from covey.space import table
from covey.space.reading import Source
from covey.space.table import Table, from_array, from_records


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
