from __future__ import annotations

import csv
import logging

import numpy as np
import pytest

from covey.errors import SpaceError
from covey.space import reading_csv
from covey.space.reading_csv import read_csv
from covey.space.table import TEXT


@pytest.fixture(params=[1, 2, 2000])
def rows_at_a_time(request, monkeypatch):
    monkeypatch.setattr(reading_csv, "_ROWS", request.param)
    return request.param


def written(tmp_path, data: str | bytes):
    path = tmp_path / "pool.csv"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


@pytest.mark.usefixtures("rows_at_a_time")
def test_cells_are_numbers_only_if_all_are(tmp_path):
    path = written(
        tmp_path, "i,f,s,gap,hole,id,none\n1, 2 ,1,1,a,1_0,\n2,2e3,b,,,2_0, \n3,nan,3,3,c,3_0,\n"
    )
    table = read_csv(path)
    assert list(table) == ["i", "f", "s", "gap", "hole", "id", "none"]
    assert {name: table[name].tolist() for name in ("i", "s", "gap", "hole")} == {
        "i": [1, 2, 3],
        "s": ["1", "b", "3"],
        "gap": [1, None, 3],
        "hole": ["a", None, "c"],
    }
    np.testing.assert_array_equal(table["f"], [2.0, 2000.0, np.nan])
    assert table["id"].tolist() == ["1_0", "2_0", "3_0"]
    assert table["id"].dtype == TEXT
    assert table["none"].tolist() == [None, None, None]


@pytest.mark.usefixtures("rows_at_a_time")
def test_text_that_comes_late_keeps_the_spelling_of_all(tmp_path):
    path = written(tmp_path, "a,b,c\n01,1,1\n 2,2,2.50\n3,3,3\n4,x,4\n1_0,5,5\n")
    table = read_csv(path)
    assert table["a"].tolist() == ["01", " 2", "3", "4", "1_0"]
    assert table["b"].tolist() == ["1", "2", "3", "x", "5"]
    assert table["c"].tolist() == [1.0, 2.5, 3.0, 4.0, 5.0]


@pytest.mark.usefixtures("rows_at_a_time")
def test_marks_quotes_and_ends_of_lines_are_understood(tmp_path):
    path = written(tmp_path, '\ufefft,s\r\n1,"a, ""b"""\r\n\r\n2,"c\nd"\r3,é')
    table = read_csv(path)
    assert table["t"].tolist() == [1, 2, 3]
    assert table["s"].tolist() == ['a, "b"', "c\nd", "é"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "pool.csv is empty; .*at least one column"),
        ("\n\n", "pool.csv is empty"),
        ("x,y\n", "pool.csv has a header and no rows"),
        ("x,y\n1,2\n\n3\n", r"ragged: line 4 of .*pool.csv has 1 cells, the header has 2; quote"),
        ('x,y\n"1\n1",2\n3,4,5\n', "ragged: line 4 of .*pool.csv has 3 cells, the header has 2"),
        ("x,x\n1,2\n", "pool.csv has two columns called 'x'"),
        ("y,,x\n1,2,3\n", "column 2 of .*pool.csv has no name; .* must be non-empty strings"),
        ("x;y\n1;2\n", "single column 'x;y'; separate columns by commas"),
    ],
)
@pytest.mark.usefixtures("rows_at_a_time")
def test_files_are_checked(tmp_path, text, message):
    with pytest.raises(SpaceError, match=message):
        read_csv(written(tmp_path, text))


def test_a_file_that_is_not_utf_8(tmp_path):
    with pytest.raises(SpaceError, match=r"line 2 of .*pool.csv is not CSV text in UTF-8"):
        read_csv(written(tmp_path, "x\né\n".encode("latin-1")))


def test_an_interrupt_leaves_nothing_open(tmp_path, monkeypatch):
    """An open file would be a ResourceWarning, and so an error."""
    monkeypatch.setattr(reading_csv, "_ROWS", 2)
    path = written(tmp_path, "x\n" + "1\n" * 10)
    seen = []

    class Interrupted(reading_csv.ReadingProgress):
        def add(self, rows: int) -> None:
            seen.append(rows)
            if len(seen) == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(reading_csv, "ReadingProgress", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        read_csv(path)
    assert seen == [2, 2, 2]
    assert [file.name for file in tmp_path.iterdir()] == ["pool.csv"]


def test_progress_is_noted(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(reading_csv, "_ROWS", 2)
    monkeypatch.setattr("covey.space.reading_csv.time.monotonic", iter(range(0, 100, 3)).__next__)
    with caplog.at_level(logging.INFO, logger="covey"):
        read_csv(written(tmp_path, "x\n" + "1\n" * 5))
    assert caplog.messages[0].endswith("pool.csv: 2 rows so far, in 3 s")


def test_a_cell_beyond_the_limit_of_csv(tmp_path):
    path = written(tmp_path, "x\n" + "a" * (csv.field_size_limit() + 1))
    with pytest.raises(SpaceError, match=r"pool.csv is not CSV text: field larger"):
        read_csv(path)
