import csv
import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from covey import Integer, Pool, Real, Space
from covey.cli.output import Stop
from covey.cli.tell import read_table
from covey.errors import HistoryError, SpaceError
from covey.sheets import writing
from covey.sheets.points import fixed_from_text, point_from_text
from covey.space import Choice
from covey.tables import Expected

STARTS = "=+-@\t\r\n\0＝＋－＠"
ODD = st.text(st.sampled_from([*"ax1 ',;\"", *STARTS]), max_size=8)


def read_back(path, text):
    path.write_text(text, newline="")
    table = read_table(str(path), Expected())
    return table.columns, table.rows


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])) | ODD, min_size=1, max_size=4))
@example(["=x", "'=x", "''=x", "'x"])
@example(["a", " a", "a ", "\r", "a\rb"])
def test_what_is_written_reads_back(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("sheet") / "a.csv"
    names = [f"n{i}" for i in range(len(texts))]
    row = dict(zip(names, texts, strict=True)) | {"x": 1.5}
    found, (back,) = read_back(path, writing.sheet_text([*names, "x"], [row]))
    assert found == [*names, "x"]
    assert [back.cells[n] for n in names] == texts
    assert back.cells["x"] == "1.5"


@given(ODD, ODD)
def test_two_texts_are_never_written_alike(one, other):
    assert (
        writing.sheet_text(["a"], [{"a": one}]) == writing.sheet_text(["a"], [{"a": other}])
    ) == (one == other)


def starts_of_cells(text, separator):
    """Where a program that takes this separator, and knows no quotes, sees cells begin."""
    return [cell for line in re.split(r"[\r\n]", text) for cell in line.split(separator)]


@given(ODD)
@example("a;=1+1")
@example("\n=1+1")
@example("a\t@x")
@example("＝1+1")
@example(';"=1+1"')
@pytest.mark.parametrize("separator", [";", "\t"])
def test_no_cell_is_a_formula_whatever_separates_cells(separator, text):
    written = writing.sheet_text(["x", "a", "b"], [{"x": 1, "a": text}])
    (_, line) = csv.reader(io.StringIO(written, newline=""))
    assert not line[1].startswith(tuple(STARTS))
    for cell in starts_of_cells(written, separator)[1:]:
        assert not cell.lstrip('"').startswith(tuple("=+-@＝＋－＠"))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-x", "@cmd", "=cmd|'/c calc'!A1"])
def test_a_formula_gets_a_quote_and_a_number_none(text):
    assert f"'{text[0]}" in writing.sheet_text(["a"], [{"a": text}])
    assert writing.sheet_text(["a"], [{"a": -1.5}]) == "a\n-1.5\n"


def test_sheets_of_earlier_versions_read_as_they_did(tmp_path):
    """They escaped a formula, and not a quote before it, and quoted only for commas and breaks."""
    old = "n,o,p,q\n'=x, plain ,'tis,\"a;b,c\"\n"
    _, (row,) = read_back(tmp_path / "a.csv", old)
    assert [row.text(name) for name in "nopq"] == ["=x", "plain", "'tis", "a;b,c"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff\xfei\x00d", "begins as UTF-16 and is none.*CSV UTF-8"),
        (b"\xef\xbb\xbfid\xff", "begins as UTF-8 and is none.*CSV UTF-8"),
        (b"id,value\n0,\x81\n", "neither UTF-8 nor Windows-1252.*CSV UTF-8"),
        (b"PK\x03\x04\x14\x00", "begins as a workbook and is none"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "Excel workbook.*CSV UTF-8"),
        (b'a,b\n"1,2', "not CSV"),
        (b"a,b;c\n1,2;3\n", r"a\.csv:1"),
        (b"id,value\n0,1,slow\n", r"a\.csv:2: 3 .* 2 "),
        (b"id,value,,\n0,1,slow,\n", r"a\.csv:2: 4 .* 2 "),
        (b"id,,value\n0,,1\n", "column 2"),
    ],
)
def test_what_is_no_sheet_is_refused_with_the_way_out(tmp_path, data, words):
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    with pytest.raises(HistoryError, match=words):
        read_table(str(path), Expected())
    with pytest.raises(Stop, match="cannot read"):
        read_table(str(tmp_path), Expected())


def test_commas_that_trail_are_no_columns(tmp_path):
    names, rows = read_back(tmp_path / "a.csv", "id,value,,\n0,1,,\n1,2,,,,\n")
    assert names == ["id", "value"]
    assert [row.cells for row in rows] == [{"id": "0", "value": "1"}, {"id": "1", "value": "2"}]


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfid,value\r\n1,2\r\n")
    assert read_table(str(path), Expected()).columns == ["id", "value"]


def test_a_column_that_comes_twice_is_found_among_very_many(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",".join([*(f"c{i}" for i in range(60_000)), "c7"]) + "\n")
    with pytest.raises(HistoryError, match=r"a\.csv.*'c7'"):
        read_table(str(path), Expected())


# Points and fixed values as text


SPACE = Space({"x": Real(0, 1), "n": Integer(1, 9), "c": Choice([True, 2, "2x", None])})


def test_text_becomes_values():
    cells = {"x": "0.5", "n": "3.0", "c": "None", "other": "?"}
    assert point_from_text(SPACE, cells) == {"x": 0.5, "n": 3, "c": None}
    assert point_from_text(SPACE, cells | {"c": "2"})["c"] == 2
    assert fixed_from_text(SPACE, {"c": "True"}) == {"c": True}


def test_mistakes_are_named():
    with pytest.raises(SpaceError, match=r"'n'.*parameter"):
        point_from_text(SPACE, {"x": "0.5"})
    with pytest.raises(SpaceError, match="x: 'a'"):
        point_from_text(SPACE, {"x": "a", "n": "1", "c": "2"})
    with pytest.raises(SpaceError, match="z"):
        fixed_from_text(SPACE, {"z": "1"})


def test_rows_of_a_pool_are_found_by_their_inputs():
    pool = Pool([{"t": 20, "dye": "1", "hot": True}, {"t": 40, "dye": "2", "hot": False}])
    cells = {"t": "40", "dye": "2", "hot": "false"}
    assert point_from_text(pool, cells) == {"t": 40, "dye": "2", "hot": False}
    assert fixed_from_text(pool, {"t": "40", "dye": "x"}) == {"t": 40.0, "dye": "x"}
    with pytest.raises(SpaceError, match=r"'t'.*input"):
        point_from_text(pool, {"dye": "2"})
    with pytest.raises(SpaceError, match="'warm'"):
        point_from_text(pool, cells | {"t": "warm"})


def test_blanks_tell_options_apart_where_they_must_and_are_passed_over_elsewhere():
    space = Space({"c": Choice(["a", " a", "'=x", "=x"]), "d": Choice(["b"])})
    assert point_from_text(space, {"c": " a", "d": " b "}) == {"c": " a", "d": "b"}
    assert point_from_text(space, {"c": "a", "d": "b"})["c"] == "a"
    pool = Pool([{"dye": " red"}, {"dye": "blue"}])
    assert point_from_text(pool, {"dye": " red"}) == {"dye": " red"}
    assert point_from_text(pool, {"dye": " blue "}) == {"dye": "blue"}


def test_an_option_is_found_as_a_spreadsheet_writes_it():
    options = Choice([True, False, 1.0, "2.50", None, "x"])
    space = Space({"c": options})

    def found(text):
        return point_from_text(space, {"c": text})["c"]

    assert [found(t) for t in ("TRUE", "false", "1", "2.5", "", " x ")] == list(options.options)
    with pytest.raises(SpaceError, match=r"'X'.*True"):
        found("X")


def test_options_that_look_alike_are_not_guessed():
    space = Space({"c": Choice([1, "1", True, "True"])})
    for text in ("1", "True"):
        with pytest.raises(SpaceError, match="look alike"):
            point_from_text(space, {"c": text})
    assert point_from_text(Space({"c": Choice([1, 1.0])}), {"c": "1.0"})["c"] == 1.0
