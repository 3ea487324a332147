from __future__ import annotations

import datetime
import logging
import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from covey.errors import SpaceError
from covey.space import reading, reading_csv
from covey.space.reading import Source, read_rows
from covey.space.reading_csv import (
    ReadingProgress,
    first_record,
    line_of,
    read_csv,
)

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
    with pytest.raises(SpaceError, match=f"got {type(rows).__name__}"):
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
    with pytest.raises(SpaceError, match="'x'"):
        read_rows(pd.DataFrame([[1, 2]], columns=["x", "x"]))
    with pytest.raises(SpaceError, match=r"column.*got 0"):
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
    with pytest.raises(SpaceError, match="'/dev/null'"):
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
        (b"PAR1\x15\x04", r"pool\.csv.*Parquet.*\.parquet"),
        (b"PK\x03\x04", r"pool\.csv.*workbook"),
        (b"\x81PNG,1\n", r"pool\.csv.*UTF-8.*Windows-1252"),
        (b"\x1f\x8b\x08", r"pool\.csv.* gzip"),
        (b"\x89PNG\x00\x00", "byte 5 "),
    ],
)
def test_a_binary_file_with_the_name_of_a_text(tmp_path, data, message):
    path = tmp_path / "pool.csv"
    path.write_bytes(data)
    with pytest.raises(SpaceError, match=message):
        read_rows(path)


def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch):
    path = written(tmp_path, "x\n1\n")

    def late(file: Path, is_carried, names) -> dict[str, np.ndarray]:
        columns = read_csv(file, is_carried, names)
        file.write_text("x\n1\n2\n")
        return columns

    monkeypatch.setattr(reading, "read_csv", late)
    with pytest.raises(SpaceError, match="was written to while it was being read; read it again"):
        read_rows(path)


# Where a table came from


def test_a_source_is_a_file_at_a_moment(tmp_path):
    file = tmp_path / "pool.csv"
    file.write_text("x\n1\n")
    before = Source.of(file)
    assert (before.path, before.size) == (str(file), 4)
    assert Source.of(file) == before
    os.utime(file, ns=(1, 1))
    assert Source.of(file) != before
    file.unlink()
    with pytest.raises(FileNotFoundError):
        Source.of(file)


def test_a_relative_path_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "pool.csv"
    file.write_text("x\n1\n")
    assert Source.of(file.relative_to(tmp_path)).path == str(file)


def test_rows_of_a_csv_file_are_found_by_their_lines(tmp_path):
    file = tmp_path / "pool.csv"
    file.write_text("x\n1\n\n2\n")
    source = Source.of(file)
    assert source.where(1) == f"line 4 of {file}"
    file.unlink()
    assert source.where(1) == "row 1 (the first is row 0)"


@pytest.mark.parametrize("name", ["a.parquet", "a.pq", "a.PARQUET"])
def test_the_name_says_what_a_file_is(name):
    source = Source(name, 0, 0)
    assert source.is_parquet
    assert source.where(1) == f"row 1 (the first is row 0) of {name}"
    assert not Source("a.csv", 0, 0).is_parquet


# The line on which a record begins


def written_bytes(tmp_path, data: bytes):
    file = tmp_path / "pool.csv"
    file.write_bytes(data)
    return file


def test_rows_begin_on_lines_whatever_comes_between(tmp_path):
    file = written_bytes(tmp_path, b'\xef\xbb\xbf\n"a\nb",c\n1,2\n\n\n"3\n\n",4\r\n5,6')
    assert [line_of(file, row) for row in range(4)] == [4, 7, 10, None]


def test_the_first_record_names_the_columns(tmp_path):
    assert first_record(written_bytes(tmp_path, b"\xef\xbb\xbfx,y\n")) == ["x", "y"]
    assert first_record(written_bytes(tmp_path, b"\n\nx\n")) == ["x"]
    assert first_record(written_bytes(tmp_path, b"\n\n")) == []


def test_a_file_that_is_gone_has_no_lines(tmp_path):
    assert line_of(tmp_path / "gone.csv", 0) is None


# Progress of a long reading


def test_a_long_reading_says_how_far_it_is(monkeypatch, caplog):
    clock = iter([0.0, 1.0, 2.5, 3.0, 5.5])
    monkeypatch.setattr(reading_csv.time, "monotonic", lambda: next(clock))
    with caplog.at_level(logging.INFO, logger="covey"):
        tally = ReadingProgress("pool.csv")
        for _ in range(4):
            tally.add(10)
    assert tally.rows == 40
    assert [record.getMessage() for record in caplog.records] == [
        "reading pool.csv: 20 rows so far, in 2 s",
        "reading pool.csv: 40 rows so far, in 6 s",
    ]
