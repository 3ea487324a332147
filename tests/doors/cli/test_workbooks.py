"""Excel workbooks, written and read back, and as other hands may have filled them."""

import datetime
import io
import tracemalloc
import zipfile
from pathlib import Path

import pytest

openpyxl = pytest.importorskip("openpyxl", reason="install it: pip install 'covey[excel]'")

from covey import tables
from covey.errors import HistoryError
from covey.sheets import writing
from covey.tables import Expected, table_of
from covey.workbooks import lines_of_workbook


def book(*sheets_, **named):
    made = openpyxl.Workbook()
    made.remove(made.active)
    given = dict(zip(("one", "two"), sheets_, strict=False)) | named
    for title, rows in given.items():
        sheet = made.create_sheet(title)
        for row in rows:
            sheet.append(row)
    return made


def data_of(made):
    stream = io.BytesIO()
    made.save(stream)
    return stream.getvalue()


def read(data, names=("id", "value")):
    return table_of(data, "a.xlsx", Expected(names))


def test_what_is_written_reads_back(tmp_path):
    rows = [
        {"x": 84.9, "n": 3, "c": "=1+1", "b": True},
        {"x": 1e-05, "n": -3, "c": "MAR2", "b": False},
        {"x": 0.1 + 0.2, "n": 10**17, "c": "'a", "b": None},
    ]
    names = ["x", "n", "c", "b"]
    data = writing.sheet_bytes(tmp_path / "a.xlsx", names, rows)
    table = read(data)
    assert table.columns == names
    found = [row.number("x") for row in table.rows]
    assert found == pytest.approx([row["x"] for row in rows], rel=1e-15)  # sixteen digits
    assert found[:2] == [84.9, 1e-05]
    assert [row.cells["n"] for row in table.rows] == ["3", "-3", str(10**17)]
    assert [row.cells["c"] for row in table.rows] == ["=1+1", "MAR2", "'a"]
    assert [row.cells["b"] for row in table.rows] == ["True", "False", ""]


def test_no_cell_is_a_formula_and_text_stays_text(tmp_path):
    rows = [{"c": text} for text in ("=1+1", "+1", "-x", "@cmd", "2-3")]
    data = writing.sheet_bytes(tmp_path / "a.xlsx", ["c"], rows)
    sheet = openpyxl.load_workbook(io.BytesIO(data)).active
    shown = [sheet.cell(row=i, column=1) for i in range(2, 7)]
    assert not any(str(cell.value).startswith(tuple("=+-@")) for cell in shown)
    assert {cell.data_type for cell in shown} == {"s"}
    assert {cell.number_format for cell in shown} == {"@"}


def test_control_characters_are_refused_in_a_sentence(tmp_path):
    with pytest.raises(HistoryError, match=r"'a\\x01'"):
        writing.sheet_bytes(tmp_path / "a.xlsx", ["c"], [{"c": "a\x01"}])


def test_cells_are_read_for_what_they_are():
    made = book([["id", "c", "value"], [0, datetime.date(2026, 3, 2), 0.5], [1, True, 0.73]])
    made.active["C3"].number_format = "0%"
    (first, second) = read(data_of(made)).rows
    assert first.cells == {"id": "0", "c": "2026-03-02", "value": "0.5"}
    assert second.cells == {"id": "1", "c": "True", "value": "73%"}
    with pytest.raises(HistoryError, match=r"a\.xlsx:3.*'73%'"):
        second.number("value")


def with_cached(data, cached):
    """The workbook as a spreadsheet saves it, with the values of its formulas."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            part = old.read(name).decode()
            for formula, value in cached.items():
                part = part.replace(f"<f>{formula}</f><v></v>", f"<f>{formula}</f><v>{value}</v>")
                part = part.replace(f"<f>{formula}</f><v />", f"<f>{formula}</f><v>{value}</v>")
            new.writestr(name, part)
    return out.getvalue()


def test_a_formula_counts_by_the_value_it_was_saved_with():
    data = data_of(book([["id", "value"], [0, "=A2+5"], [1, 2.5]]))
    with pytest.raises(HistoryError, match=r"a\.xlsx.*B2"):
        read(data)
    table = read(with_cached(data, {"A2+5": "7.25"}))
    assert [row.number("value") for row in table.rows] == [7.25, 2.5]
    said = [*table.dialect.said()]
    assert said == ["1 formula, taken by the values they had when it was saved"]


def test_of_several_sheets_the_one_with_known_columns_is_read():
    table = read(data_of(book([["dear diary"]], [["id", "value"], [0, 1]])))
    assert table.columns == ["id", "value"]
    assert "'two' was read" in next(table.dialect.said())
    with pytest.raises(HistoryError, match="'one', 'two'"):
        read(data_of(book([["id", "value"], [0, 1]], [["id", "value"], [0, 2]])))
    assert read(data_of(book([["id", "value"], [0, 1]], []))).dialect.notes == {}


def test_rows_may_be_short_and_blank_lines_do_not_count():
    table = read(data_of(book([["id", "value", "note"], [0, 1], [None, None], [1, 2, "x"]])))
    assert [row.where for row in table.rows] == ["a.xlsx:2", "a.xlsx:4"]
    assert table.rows[0].cells["note"] == ""


def with_stray(*places):
    made = book([["id", "value", "note"], [0, 1.5], [1, 2.5, "x"]])
    for row, column in places:
        made.worksheets[0].cell(row=row, column=column).value = 1
    return data_of(made)


def test_a_stray_cell_far_away_is_named_and_takes_no_memory():
    """Not even where another is far below: lines are as long as what is in them."""
    data = with_stray((5_000, 16_384))
    tracemalloc.start()
    with pytest.raises(HistoryError, match=r"a\.xlsx:one!XFD5000.* 2048 "):
        read(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000  # 5,000 lines of 16,384 cells would take 650 MB


def test_lines_of_a_sheet_are_as_long_as_what_is_in_them():
    cells = lines_of_workbook(with_stray((2_000, 1_000)), "a.xlsx", lambda lines: 0)[0]
    assert [len(line) for _, line in cells] == [3, 2, 3, *[0] * 1996, 1_000]


def test_more_cells_than_a_table_has_are_refused_before_they_are_held(monkeypatch):
    monkeypatch.setattr(tables, "_MOST_CELLS", 8)
    with pytest.raises(HistoryError, match=r"3 columns.*2 rows.* 8 "):
        read(with_stray())


def packed(**parts):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name.replace("__", "/").replace("_xml", ".xml"), content)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (packed(content_xml="x"), "no Excel workbook"),
        (packed(xl__workbook_xml="x"), "cannot be read as an Excel workbook"),
        (packed(xl__workbook_xml=b"0" * 2_000_001), "2 MiB"),
        (b"PK\x03\x04 and so on", "begins as a workbook and is none"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "of the old kind"),
    ],
    ids=["another", "broken", "a bomb", "cut", "old"],
)
def test_what_is_no_workbook_is_refused_in_a_sentence(data, words, monkeypatch):
    monkeypatch.setattr("covey.workbooks._LARGEST", 2_000_000)
    with pytest.raises(HistoryError, match=words):
        read(data)


def test_without_openpyxl_the_way_is_named_before_a_batch_is_recorded(study, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "openpyxl", None)
    done = study("ask", "--out", "plate.xlsx")
    assert done.code == 1
    assert "pip install 'covey[excel]'" in done.err
    assert not Path("covey.jsonl").exists()


def test_a_batch_goes_out_as_a_workbook_and_comes_back(study):
    assert study("ask", "--out", "plate.xlsx").code == 0
    made = openpyxl.load_workbook("plate.xlsx")
    sheet = made.active
    assert [cell.value for cell in sheet[1]] == ["id", "lr", "layers", "opt", "value"]
    for i in range(3):
        sheet.cell(row=i + 2, column=5).value = 1.5 + i
    made.save("plate.xlsx")
    assert study("tell", "plate.xlsx", "--json").json["told"] == 3
    assert study("tell", "plate.xlsx", "--json").json["known"] == 3
    assert study("ask", "--out", "plate.xlsx").code == 3
    assert study("ask", "--out", "plate.xlsx", "--force").code == 0
    assert study("export", "--out", "all.xlsx").code == 0
    done = study("next", "--in", "all.xlsx", "--batch", "2", "--out", "next.xlsx")
    assert done.code == 0, done.err
    assert "3 results, 0 failures and 3 rows without one" in done.err


def test_a_number_with_a_comma_in_a_text_cell_is_to_be_typed_as_the_others_are():
    # A German spreadsheet would make a date of 2.5, so a point is no advice here.
    table = read(data_of(book([["id", "value"], [0, 1.5], [1, "2,5"]])), names=("id", "value"))
    with pytest.raises(HistoryError, match=r"a\.xlsx:3.*'2,5'"):
        table.rows[1].number("value")
