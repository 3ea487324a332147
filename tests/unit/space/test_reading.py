from __future__ import annotations

import datetime
import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from covey.errors import SpaceError
from covey.space import reading
from covey.space.reading import read_rows
from covey.space.reading_csv import read_csv

ROWS = [{"t": 20, "x": 0.5, "dye": "red"}, {"t": 40, "x": 1.0, "dye": "blue"}]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "pool.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def rows_of(table):
    return [table.row(i) for i in range(len(table))]


@pytest.mark.parametrize(
    "rows",
    [ROWS, tuple(ROWS), iter(ROWS), pd.DataFrame(ROWS), pl.DataFrame(ROWS)],
    ids=["list", "tuple", "iterator", "pandas", "polars"],
)
def test_the_same_rows_from_anywhere(rows):
    table = read_rows(rows)
    assert rows_of(table) == ROWS
    assert [type(value) for value in table.row(0).values()] == [int, float, str]
    assert table.path is None


def test_a_csv_file_gives_the_same_rows_and_its_path(tmp_path):
    path = written(tmp_path, "t,x,dye\n20,0.5,red\n\n40,1.0,blue\n")
    table = read_rows(path)
    assert rows_of(table) == ROWS
    assert [type(value) for value in table.row(0).values()] == [int, float, str]
    assert table.path == str(path)
    assert rows_of(read_rows(str(path))) == ROWS


def test_an_array_is_read_by_columns():
    assert rows_of(read_rows(np.array([["a", "b"]]))) == [{"x0": "a", "x1": "b"}]


@pytest.mark.parametrize("rows", [3, None, {"x": [1, 2]}, len])
def test_rows_of_another_kind(rows):
    with pytest.raises(SpaceError, match="rows must be a list of dicts, a 2-d array, a pandas"):
        read_rows(rows)


def test_pandas_missing_values_of_every_kind_become_none():
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None], dtype="Int64"),
            "text": ["a", None],
            "kind": pd.Categorical(["u", None]),
            "day": [pd.Timestamp("2024-01-01"), pd.NaT],
        }
    )
    table = read_rows(frame)
    assert table.row(1) == {"whole": None, "text": None, "kind": None, "day": None}
    assert table.row(0)["whole"] == 1
    assert table.row(0)["kind"] == "u"


def test_pandas_nullable_integers_stay_integers():
    table = read_rows(pd.DataFrame({"n": pd.array([1, 2], dtype="Int64")}))
    assert table.columns["n"].dtype == np.int64


def test_polars_missing_values_become_none():
    frame = pl.DataFrame(
        {"n": [1, None], "s": ["a", None], "b": [True, None], "d": [datetime.date(2024, 1, 1)] * 2}
    )
    table = read_rows(frame)
    assert table.row(1) == {"n": None, "s": None, "b": None, "d": datetime.date(2024, 1, 1)}
    assert read_rows(pl.DataFrame({"b": [True, False]})).columns["b"].dtype == np.bool_


def test_a_subclass_of_a_frame_is_a_frame():
    class Plate(pd.DataFrame):
        pass

    assert rows_of(read_rows(Plate(ROWS))) == ROWS


def test_frames_need_distinct_text_names():
    with pytest.raises(SpaceError, match="the frame has two columns called 'x'"):
        read_rows(pd.DataFrame([[1, 2]], columns=["x", "x"]))
    with pytest.raises(SpaceError, match="column names must be non-empty strings, got 0"):
        read_rows(pd.DataFrame([[1, 2]]))
    with pytest.raises(SpaceError, match="at least one row"):
        read_rows(pd.DataFrame({"x": []}))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_that_are_not_files(tmp_path, suffix):
    with pytest.raises(SpaceError, match=rf"there is no file '.*nowhere.{suffix}'.*check the path"):
        read_rows(tmp_path / f"nowhere.{suffix}")
    folder = tmp_path / f"folder.{suffix}"
    folder.mkdir()
    with pytest.raises(SpaceError, match=rf"no file '.*folder.{suffix}' .*but a directory; name a"):
        read_rows(folder)


def test_a_device_is_no_file():
    with pytest.raises(SpaceError, match="but something else than a file"):
        read_rows(os.devnull)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_one_may_not_read(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"pool.{suffix}"
    path.write_text("x\n1\n")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(reading, f"read_{suffix}", refuse)
    with pytest.raises(SpaceError, match=rf"cannot read .*pool.{suffix}: Permission denied; check"):
        read_rows(path)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_one_may_really_not_read(tmp_path):
    path = written(tmp_path, "x\n1\n")
    path.chmod(0)
    with pytest.raises(SpaceError, match=r"cannot read .*pool.csv: Permission denied"):
        read_rows(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PAR1\x15\x04", "is not CSV text but a Parquet file; rename it to end in .parquet"),
        (b"\x1f\x8b\x08", "but compressed by gzip; unpack it first"),
        (b"PK\x03\x04", "but a zip archive, as Excel's are; save the sheet as CSV UTF-8"),
        ("x\n1\n".encode("utf-16"), "but text in UTF-16; save it as UTF-8"),
        (b"\x89PNG\x00\x00", "is not CSV text: byte 5 of it is zero"),
        (b"\x89PNG,1\n", "line 1 of .*pool.csv is not CSV text in UTF-8"),
    ],
)
def test_a_binary_file_with_the_name_of_a_text(tmp_path, data, message):
    path = tmp_path / "pool.csv"
    path.write_bytes(data)
    with pytest.raises(SpaceError, match=message):
        read_rows(path)


def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch):
    path = written(tmp_path, "x\n1\n")

    def late(file: Path, is_carried) -> dict[str, np.ndarray]:
        columns = read_csv(file, is_carried)
        file.write_text("x\n1\n2\n")
        return columns

    monkeypatch.setattr(reading, "read_csv", late)
    with pytest.raises(SpaceError, match="was written to while it was being read; read it again"):
        read_rows(path)
