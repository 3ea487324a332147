from __future__ import annotations

import datetime
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from covey.errors import MissingExtraError, SpaceError
from covey.space.reading import read

ROWS = [{"t": 20, "x": 0.5, "dye": "red"}, {"t": 40, "x": 1.0, "dye": "blue"}]


def written(tmp_path: Path, text: str, encoding: str = "utf-8") -> Path:
    path = tmp_path / "pool.csv"
    path.write_text(text, encoding=encoding, newline="")
    return path


def rows_of(table):
    return [table.row(i) for i in range(len(table))]


@pytest.mark.parametrize(
    "rows",
    [ROWS, tuple(ROWS), iter(ROWS), pd.DataFrame(ROWS), pl.DataFrame(ROWS)],
    ids=["list", "tuple", "iterator", "pandas", "polars"],
)
def test_the_same_rows_from_anywhere(rows):
    table = read(rows)
    assert rows_of(table) == ROWS
    assert [type(value) for value in table.row(0).values()] == [int, float, str]
    assert table.path is None


def test_a_csv_file_gives_the_same_rows_and_its_path(tmp_path):
    path = written(tmp_path, "t,x,dye\n20,0.5,red\n\n40,1.0,blue\n")
    table = read(path)
    assert rows_of(table) == ROWS
    assert [type(value) for value in table.row(0).values()] == [int, float, str]
    assert table.path == str(path)
    assert rows_of(read(str(path))) == ROWS


def test_a_parquet_file_gives_the_same_rows(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{**row, "note": note, "ok": True} for row, note in zip(ROWS, ("a", None), strict=True)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "pool.parquet")
    table = read(tmp_path / "pool.parquet")
    assert rows_of(table) == rows
    assert table.columns["t"].dtype == np.int64
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(SpaceError, match="not a Parquet file that can be read"):
        read(tmp_path / "bad.parquet")


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "pool.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"needs pyarrow: pip install 'covey\[parquet\]'"):
        read(tmp_path / "pool.parquet")


def test_an_array_is_read_by_columns():
    assert rows_of(read(np.array([["a", "b"]]))) == [{"x0": "a", "x1": "b"}]


@pytest.mark.parametrize("rows", [3, None, {"x": [1, 2]}, len])
def test_rows_of_another_kind(rows):
    with pytest.raises(SpaceError, match="rows must be a list of dicts, a 2-d array, a pandas"):
        read(rows)


def test_pandas_missing_values_of_every_kind_become_none():
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None], dtype="Int64"),
            "text": ["a", None],
            "kind": pd.Categorical(["u", None]),
            "day": [pd.Timestamp("2024-01-01"), pd.NaT],
        }
    )
    table = read(frame)
    assert table.row(1) == {"whole": None, "text": None, "kind": None, "day": None}
    assert table.row(0)["whole"] == 1
    assert table.row(0)["kind"] == "u"


def test_pandas_nullable_integers_stay_integers():
    table = read(pd.DataFrame({"n": pd.array([1, 2], dtype="Int64")}))
    assert table.columns["n"].dtype == np.int64


def test_polars_missing_values_become_none():
    frame = pl.DataFrame(
        {"n": [1, None], "s": ["a", None], "b": [True, None], "d": [datetime.date(2024, 1, 1)] * 2}
    )
    table = read(frame)
    assert table.row(1) == {"n": None, "s": None, "b": None, "d": datetime.date(2024, 1, 1)}
    assert read(pl.DataFrame({"b": [True, False]})).columns["b"].dtype == np.bool_


def test_a_subclass_of_a_frame_is_a_frame():
    class Plate(pd.DataFrame):
        pass

    assert rows_of(read(Plate(ROWS))) == ROWS


def test_frames_need_distinct_text_names():
    with pytest.raises(SpaceError, match="the frame has two columns called 'x'"):
        read(pd.DataFrame([[1, 2]], columns=["x", "x"]))
    with pytest.raises(SpaceError, match="column names must be non-empty strings, got 0"):
        read(pd.DataFrame([[1, 2]]))
    with pytest.raises(SpaceError, match="at least one row"):
        read(pd.DataFrame({"x": []}))


def test_cells_are_numbers_only_if_all_are(tmp_path):
    path = written(
        tmp_path, "i,f,s,gap,hole,id,none\n1, 2 ,1,1,a,1_0,\n2,2e3,b,,,2_0, \n3,nan,3,3,c,3_0,\n"
    )
    table = read(path)
    assert {name: table.columns[name].tolist() for name in ("i", "s", "gap", "hole")} == {
        "i": [1, 2, 3],
        "s": ["1", "b", "3"],
        "gap": [1, None, 3],
        "hole": ["a", None, "c"],
    }
    np.testing.assert_array_equal(table.columns["f"], [2.0, 2000.0, np.nan])
    assert table.columns["id"].tolist() == ["1_0", "2_0", "3_0"]
    assert table.columns["none"].tolist() == [None, None, None]


def test_a_byte_order_mark_and_quotes_are_understood(tmp_path):
    path = written(tmp_path, 't,s\n1,"a, b"\n', encoding="utf-8-sig")
    assert rows_of(read(path)) == [{"t": 1, "s": "a, b"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one column"),
        ("x,y\n", "at least one row"),
        ("x,y\n1,2\n3\n", "ragged: row 1 of .* has 1 cells, the header has 2"),
        ("x,x\n1,2\n", "two columns called 'x'"),
        (",x\n1,2\n", "column names must be non-empty strings, got ''"),
        ("x;y\n1;2\n", "single column 'x;y'; separate columns by commas"),
    ],
)
def test_csv_files_are_checked(tmp_path, text, message):
    with pytest.raises(SpaceError, match=message):
        read(written(tmp_path, text))


def test_files_that_are_not_there_or_not_text(tmp_path):
    with pytest.raises(SpaceError, match=r"there is no file '.*nowhere.csv'"):
        read(tmp_path / "nowhere.csv")
    with pytest.raises(SpaceError, match="not CSV text in UTF-8"):
        read(written(tmp_path, "é\n1\n", encoding="latin-1"))
