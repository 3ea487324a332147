"""Tables as programs save them: separators, decimal marks, encodings; what is open is refused."""

import csv
import io
import logging
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

import covey
from covey.errors import HistoryError, SpaceError
from covey.sheets import writing
from covey.sheets.points import point_from_text
from covey.tables import Dialect, Expected, lines_in, table_of


def read(data, **expected):
    data = data.encode() if isinstance(data, str) else data
    return table_of(data, "a.csv", Expected(**expected))


def cells(table):
    return [list(row.cells.values()) for row in table.rows]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize(
    ("encoding", "noted"),
    [("utf-8", False), ("utf-8-sig", False), ("utf-16", False), ("cp1252", True)],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_table_reads_alike_however_it_was_saved(separator, encoding, noted, end):
    lines = [["id", "Größe", "value"], ["0", "weiß", "1"], ["1", "x y", "22"]]
    text = end.join(separator.join(line) for line in lines) + end
    table = read(text.encode(encoding))
    assert [table.columns, *cells(table)] == lines
    assert bool(table.dialect.notes) == noted
    assert [row.where for row in table.rows] == ["a.csv:2", "a.csv:3"]


@pytest.mark.parametrize(
    ("text", "decimal", "numbers"),
    [
        ("x;value\n0,5;1\n", ",", [0.5, 1.0]),
        ("x\tvalue\n0,5\t1e-3\n", ",", [0.5, 1e-3]),
        ("x;value\n0.5;1\n", ".", [0.5, 1.0]),
        ("x;value\n1,234;1,5\n", ",", [1.234, 1.5]),  # the second settles the first
        ("x;value\n0,123;-,5E+2\n", ",", [0.123, -50.0]),
        ("x,value\n1.234,2.345\n", ".", [1.234, 2.345]),  # a comma ends a cell here
        ("sep=;\nx;value\n0,5;1\n", ",", [0.5, 1.0]),
    ],
)
def test_separator_and_decimal_mark_are_found_together(text, decimal, numbers):
    table = read(text)
    assert table.dialect.decimal == decimal
    (row,) = table.rows
    assert [row.number(name) for name in ("x", "value")] == numbers


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x;value\n1.5;2,5\n", "a.csv:2: value is '2,5', and a.csv:2: x is '1.5'"),
        ("x;value\n1.234;5\n", "a.csv:2: x is '1.234', which may be a decimal mark or one of"),
        ("x\tvalue\n1\t12,345\n", "a.csv:2: value is '12,345', which may be"),
        ("a,b;c\n1,2;3\n", "a.csv:1: the first line has commas and semicolons"),
    ],
)
def test_what_a_table_leaves_open_is_not_guessed(text, words):
    with pytest.raises(HistoryError, match="Nothing was recorded") as stop:
        read(text)
    assert words in str(stop.value)


def test_what_is_left_open_can_be_said():
    text = "x;value\n1.234;5\n"
    assert read(text, decimal=".").rows[0].number("x") == 1.234
    with pytest.raises(HistoryError, match=r"a\.csv:2"):
        read(text, decimal=",").rows[0].number("x")
    assert read("x;value\n1,234;5\n", decimal=",").rows[0].number("x") == 1.234
    assert read('x,value\n"2,5",1\n', decimal=",").rows[0].number("x") == 2.5
    with pytest.raises(HistoryError, match="with a point"):
        read('x,value\n"2,5",1\n').rows[0].number("x")
    assert read("x;value\n1.5;5\n", decimal=",").rows[0].number("x") == 1.5  # it says so itself
    assert read("x;value\n1.5;2\n", names=["x"]).dialect.decimal == "."


def test_the_other_sign_may_stand_in_a_name_or_a_text():
    table = read("id;x,y;value\n0;1,5;3\n", names=["id", "value"])
    assert table.columns == ["id", "x,y", "value"]
    table = read('"x;y",value\n1,2\n')
    assert table.columns == ["x;y", "value"]
    table = read("x;note;value\n1,5;2.5;3\n", numbers={"x", "value"})  # a note has no mark
    assert table.dialect.decimal == ","


def test_sheets_with_decimal_commas_come_back_as_they_were():
    rows = [
        {"x": 84.9, "n": 7, "c": "1,4-dioxane"},
        {"x": -1e-05, "n": -2, "c": "a;=1"},
        {"x": 0.1, "n": 0, "c": "=x"},
    ]
    text = writing.sheet_text(["x", "n", "c"], rows, ",")
    assert text.splitlines()[1] == '84,9;7;"1,4-dioxane"'
    table = read(text)
    assert [row.number("x") for row in table.rows] == [84.9, -1e-05, 0.1]
    assert [row.cells["c"] for row in table.rows] == [row["c"] for row in rows]


ODD = st.text(st.sampled_from([*"ax1 ',;\"", *"=+-@\t\r\n＝"]), max_size=8)


@given(st.lists(ODD, min_size=2, max_size=3))
def test_odd_text_survives_semicolons_and_no_cell_is_a_formula(texts):
    names = [f"n{i}" for i in range(len(texts))]
    written = writing.sheet_text([*names, "x"], [dict(zip(names, texts, strict=True), x=1.5)], ",")
    (row,) = table_of(written.encode(), "a", Expected([*names, "x"], {"x"})).rows
    assert [row.cells[name] for name in names] == texts
    for separator in ",;\t":  # whatever a program splits at, quotes known or not
        for line in written.replace("\r", "\n").split("\n"):
            for cell in line.split(separator):
                assert not cell.lstrip('"').startswith(tuple("=+-@＝")), (written, cell)
    for line in csv.reader(io.StringIO(written, newline=""), delimiter=";"):
        assert not any(cell.startswith(tuple("=+-@")) for cell in line)


SPACE = covey.Space(
    {
        "x": covey.Real(0, 10),
        "n": covey.Integer(0, 9000),
        "dose": covey.Choice([0.5, 1.0, 2.5]),
        "gene": covey.Choice(["MAR2", "SEPT7", "1,5", "THF"]),
        "hot": covey.Choice([True, False]),
    }
)
GERMAN = Dialect(",", ";")


def point(dialect=GERMAN, **changed):
    given = {"x": "1,5", "n": "3", "dose": "2,5", "gene": "THF", "hot": "WAHR"} | changed
    return point_from_text(SPACE, given, dialect)


def test_points_are_read_as_a_german_spreadsheet_writes_them():
    assert point() == {"x": 1.5, "n": 3, "dose": 2.5, "gene": "THF", "hot": True}
    assert point(gene="1,5", hot="FALSCH", dose="1") == {
        **{"x": 1.5, "n": 3, "dose": 1.0, "gene": "1,5", "hot": False}
    }
    for wrong in ({"x": "1.5"}, {"n": "1.000"}, {"dose": "3,5"}, {"hot": "JA"}):
        with pytest.raises(SpaceError, match=next(iter(wrong))):
            point(**wrong)


@pytest.mark.parametrize(
    "date", ["2-Mar", "02. Mrz", "Mar-02", "2026-03-02", "02.03.2026", "3/2/2026", "2. März 2026"]
)
def test_a_date_that_only_one_option_became_is_that_option(date):
    dialect = Dialect(",", ";")
    assert point(dialect, gene=date)["gene"] == "MAR2"
    assert "the date" in next(dialect.said())


def test_a_date_that_several_options_became_is_refused():
    space = covey.Space({"c": covey.Choice(["MAR2", "2-3", "THF"])})
    with pytest.raises(SpaceError, match=r"'MAR2'.*'2-3'"):
        point_from_text(space, {"c": "2-Mar"})
    with pytest.raises(SpaceError, match="'5-Dec'"):
        point_from_text(space, {"c": "5-Dec"})
    assert point_from_text(space, {"c": "MAR2"})["c"] == "MAR2"  # a name is no date
    with pytest.raises(SpaceError, match=r"'thf'.*'THF'"):
        point_from_text(space, {"c": "thf"})


def test_a_number_that_became_a_date_is_never_guessed():
    with pytest.raises(HistoryError, match=r"a\.csv:2"):
        read("x,value\n1,01. Mai\n").rows[0].number("value")
    assert read("x,value\n1,1.5\n").rows[0].number("value") == 1.5


def test_rows_of_a_pool_are_found_as_a_german_spreadsheet_writes_them():
    pool = covey.Pool(
        [{"a": 1.5, "hot": "True", "wet": True}, {"a": 2.5, "hot": "x", "wet": False}]
    )
    cells = {"a": "1,5", "hot": "WAHR", "wet": "WAHR"}
    assert point_from_text(pool, cells, GERMAN) == {"a": 1.5, "hot": "True", "wet": True}
    cells = {"a": "2,5", "hot": " x ", "wet": "FALSCH"}
    assert point_from_text(pool, cells, GERMAN) == {"a": 2.5, "hot": "x", "wet": False}
    with pytest.raises(SpaceError, match=r"'1\.5'"):
        point_from_text(pool, cells | {"a": "1.5"}, GERMAN)
    with pytest.raises(SpaceError, match="hot"):
        point_from_text(pool, cells | {"hot": "FALSCH"}, GERMAN)


def test_advice_about_a_wrong_number_goes_by_the_marks_of_its_file():
    table = read("x;y\n0,5;6l,2\n")
    with pytest.raises(HistoryError, match=r"a\.csv:2.*'6l,2'"):
        table.rows[0].number("y")
    table = read("x\ty\n0.5\t6l,2\n")
    with pytest.raises(HistoryError, match="with a point"):
        table.rows[0].number("y")


def test_what_is_no_sheet_at_all_is_said(tmp_path, monkeypatch):
    with pytest.raises(HistoryError, match=r"open in Excel; name the workbook itself, p1\.xlsx"):
        table_of(b"\x07Ada", "data/~$p1.xlsx", Expected())
    with pytest.raises(HistoryError, match="it is a folder; name a file in it"):
        lines_in(tmp_path, Expected())

    def locked(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("covey.tables.bounded", locked)
    with pytest.raises(HistoryError, match=r"denied\. If it is open in Excel .* close it there"):
        lines_in(tmp_path / "p1.xlsx", Expected())


def test_a_pipe_that_nobody_writes_into_is_waited_for_with_a_word(tmp_path, monkeypatch):
    monkeypatch.setattr("covey.disk._PATIENCE", 0.05)
    path, said, rows = tmp_path / "sheet", [], []
    os.mkfifo(path)
    warned = threading.Event()

    class Handler(logging.Handler):
        def emit(self, record):
            said.append(record.getMessage())
            warned.set()

    log, handler = logging.getLogger("covey"), Handler()
    log.addHandler(handler)
    reader = threading.Thread(
        target=lambda: rows.extend(lines_in(path, Expected(("id", "value"))).cells), daemon=True
    )
    reader.start()
    try:
        assert warned.wait(60.0)
        path.write_text("id,value\n0,1.5\n")
        reader.join(60.0)
    finally:
        log.removeHandler(handler)
    assert str(path) in said[0]
    assert len(said) == 1
    assert rows
