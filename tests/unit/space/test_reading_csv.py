from __future__ import annotations

import csv
import logging

import numpy as np
import pytest

from covey.errors import SpaceError
from covey.space import reading_csv
from covey.space.reading_csv import line_of, read_csv
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
        ("x,y\n1,2\n\n3\n", r"line 4 of .*pool\.csv .* 1 cells.* 2;"),
        ('x,y\n"1\n1",2\n3,4,5\n', r"line 4 of .*pool\.csv .* 3 cells.* 2"),
        ("x,x\n1,2\n", r"pool\.csv.*'x'"),
        ("y,,x\n1,2,3\n", "column 2"),
        ("x,y\n1,2\n3\t4,5,6\n", r"line 3.*pool\.csv"),
    ],
)
@pytest.mark.usefixtures("rows_at_a_time")
def test_files_are_checked(tmp_path, text, message):
    with pytest.raises(SpaceError, match=message):
        read_csv(written(tmp_path, text))


GERMAN = "Säure;T;x;Charge\nHCl;20;4,5;007\nÄpfel;30;5,25;2,50\n"
ENGLISH = {"Säure": ["HCl", "Äpfel"], "T": [20, 30], "x": [4.5, 5.25], "Charge": ["007", "2,50"]}


@pytest.mark.usefixtures("rows_at_a_time")
@pytest.mark.parametrize(
    "data",
    [
        GERMAN.encode(),
        GERMAN.encode("utf-8-sig"),
        GERMAN.encode("utf-16"),
        GERMAN.encode("utf-16-le"),
        GERMAN.encode("cp1252"),
        GERMAN.replace(";", "\t").encode(),
        ("sep=;\r\n" + GERMAN).encode(),
        ("Candidates of May\n\n" + GERMAN).encode(),
        GERMAN.replace("4,5;", '"4,5";').encode(),
    ],
    ids=["utf8", "marked", "utf16", "bare", "latin1", "tabs", "hint", "title", "quotes"],
)
def test_every_dialect_gives_the_same_columns(tmp_path, data):
    names = ("T", "Charge")
    table = read_csv(written(tmp_path, data), {"Charge"}.__contains__, names)
    assert {name: column.tolist() for name, column in table.items()} == ENGLISH
    line = {"sep=": 3, "Cand": 4}.get(data[:4].decode("latin-1"), 2)
    assert line_of(tmp_path / "pool.csv", 0, names) == line


def test_a_guess_about_letters_is_said(tmp_path, caplog):
    read_csv(written(tmp_path, GERMAN.encode("cp1252")), {"Charge"}.__contains__)
    assert any("Windows-1252" in message for message in caplog.messages)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a;b\n1,5;2.5\n", r"pool\.csv:2.*'1,5'.*pool\.csv:2.*'2\.5'"),
        ("a;b\n1.234;2.345\n", r"pool\.csv:2.*'1\.234'"),
        ("a;b\n1,5;1.234\n", r"'1\.234'.*commas"),
        ("a;b,c\n1;2,3\n", r"pool\.csv:1"),
    ],
)
def test_what_a_dialect_leaves_open_is_never_guessed(tmp_path, text, message):
    with pytest.raises(SpaceError, match=message) as caught:
        read_csv(written(tmp_path, text))
    assert "--decimal" not in str(caught.value)


def test_one_column_may_hold_any_mark(tmp_path):
    assert read_csv(written(tmp_path, "x\na;b\n"))["x"].tolist() == ["a;b"]


def test_a_workbook_gives_the_same_columns(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="pip install 'covey[excel]'")
    book = openpyxl.Workbook()
    for row in ([*ENGLISH, "note"], ["HCl", 20, 4.5, "007", "a"], [], ["Äpfel", 30, 5.25, "2,50"]):
        book.active.append(row)
    path = tmp_path / "pool.xlsx"
    book.save(path)
    table = read_csv(path, {"Charge"}.__contains__)
    expected = ENGLISH | {"note": ["a", None]}
    assert {name: column.tolist() for name, column in table.items()} == expected
    assert [line_of(path, row) for row in (0, 1, 2)] == [2, 4, None]


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
    with pytest.raises(SpaceError, match=r"pool\.csv:2"):
        read_csv(path)
