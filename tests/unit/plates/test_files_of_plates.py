"""Files about plates as programs save them: tables of readings, matrices, wells and stocks."""

import io

import pytest

from covey import Choice, Layout, Real, Space, Study
from covey.errors import HistoryError, SpaceError
from covey.plates.layout import Grid
from covey.plates.picking import Dispense, pick_list, read_stocks
from covey.plates.reader import plate_named_in, read_readings
from covey.spreadsheets import escaped

GRID = Grid(2, 3)
VALUES = {"A1": 0.5, "A2": 1.25, "A3": 2.0, "B1": 3.5, "B2": 4.0, "B3": 5.75}
LONG = [["Well", "Value"], *([well, value] for well, value in VALUES.items())]
FRAMED = [["", 1, 2, 3], ["A", 0.5, 1.25, 2.0], ["B", 3.5, 4.0, 5.75]]
BARE = [[0.5, 1.25, 2.0], [3.5, 4.0, 5.75]]
TITLE = [["Reader 7, top; 600 nm"], ["Größe", "x"], []]
FORMS = {
    "long": LONG,
    "matrix": FRAMED,
    "bare": BARE,
    "long below a title": TITLE + LONG,
    "matrix below a title": TITLE + FRAMED,
    "matrix one column in": [["Plate 1"], *(["", *line] for line in FRAMED)],
    "rows and columns apart": [
        ["Well Row", "Well Col", "Value"],
        *([well[0], well[1:], value] for well, value in VALUES.items()),
    ],
}


def by_name(numbers):
    return {well: {"value": number} for well, number in numbers.items()}


def text_of(lines, separator, mark):
    """Lines as a program writes them, with its separator and its decimal mark."""
    cells = [[str(c).replace(".", mark) if isinstance(c, float) else str(c) for c in line]
             for line in lines]  # fmt: skip
    quoted = [[f'"{c}"' if separator in c else c for c in line] for line in cells]
    return "\n".join(separator.join(line) for line in quoted) + "\n"


def saved(lines, way, folder):
    """A file as it is saved in this way."""
    if way == "xlsx":
        openpyxl = pytest.importorskip("openpyxl")
        book, out = openpyxl.Workbook(), io.BytesIO()
        for line in lines:
            book.active.append([escaped(cell) if isinstance(cell, str) else cell for cell in line])
        book.save(out)
        data = out.getvalue()
    else:
        separator, mark, encoding = WAYS[way]
        data = text_of(lines, separator, mark).encode(encoding)
    path = folder / f"file.{'xlsx' if way == 'xlsx' else 'csv'}"
    path.write_bytes(data)
    return path


WAYS = {
    "comma": (",", ".", "utf-8"),
    "semicolon": (";", ",", "utf-8"),
    "tab": ("\t", ",", "utf-8-sig"),
    "UTF-16": ("\t", ".", "utf-16"),
    "UTF-16 without a mark": ("\t", ".", "utf-16-le"),
    "Latin-1": (";", ",", "latin-1"),
    "xlsx": None,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", WAYS)
def test_readings_are_the_same_however_they_were_saved(form, way, tmp_path):
    path = saved(FORMS[form], way, tmp_path)
    found = read_readings(path, GRID)
    assert found.values == by_name(VALUES)
    wrong = [[7.5 if cell == 1.25 else cell for cell in line] for line in FORMS[form]]
    assert read_readings(saved(wrong, way, tmp_path), GRID).values["A2"] == {"value": 7.5}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        # A title may have the word of a column in it.
        ("Location,Lab 3\n" + text_of(FRAMED, ",", "."), VALUES),
        ("Position,3\n\n" + text_of(LONG, ",", "."), VALUES),
        ("Week 12\n" + text_of(FORMS["rows and columns apart"], ";", ","), VALUES),
        # A last row of empty wells is a row: above it are readings, and not the column numbers.
        ("1,2,3\n0.5,1.25,2.5\n,,\n", {"A1": 0.5, "A2": 1.25, "A3": 2.5}),
        ("0.5,1.25,2.5\n,,\n\n", {"A1": 0.5, "A2": 1.25, "A3": 2.5}),
        (",,\n0.5,1.25,2.5\n", {"B1": 0.5, "B2": 1.25, "B3": 2.5}),
    ],
)
def test_readings_begin_where_wells_are(text, values):
    assert read_readings(text, GRID).values == by_name(values)


@pytest.mark.parametrize(
    "text",
    [
        "1,2,3\n0.5,1.25,2.5\n",  # a row is missing, or the numbers of columns are readings
        "a,b,c\n0.5,1.25,2.5\n1,2,3\n",
        "0.5,1.25,2.5\n1,2,3\nMean,,\n",
        "A,0.5,1.25,2\n,B,3.5,4,5.75\n",  # letters that are not below one another
    ],
)
def test_what_may_be_no_matrix_is_refused(text):
    with pytest.raises(HistoryError, match=r"neither a table .* nor a matrix .*Nothing was rec"):
        read_readings(text, GRID)


def test_a_matrix_names_no_plate(tmp_path):
    assert plate_named_in(saved(FORMS["matrix below a title"], "semicolon", tmp_path)) is None


def test_what_stands_above_is_said(tmp_path):
    found = read_readings(saved(FORMS["long below a title"], "Latin-1", tmp_path), GRID)
    said = " / ".join(found.notes)
    assert "line 1 (Reader 7, top; 600 nm) and 1 line below it" in said
    assert "Windows-1252" in said


@pytest.mark.parametrize(
    "heading", ["Well", "WELL", "Well ID", "well_id", "Position", "Well Position", "Pos.", "Wells"]
)
@pytest.mark.parametrize("column", ["OD600", "Absorbance", "RFU (485/520)"])
def test_the_only_column_of_numbers_is_taken_and_named(heading, column):
    text = f"{heading},{column},Content\nA1,0.5,Sample X1\nA2,OVRFLW,Blank B\n"
    found = read_readings(text, GRID)
    assert found.values == {"A1": {"value": 0.5}}
    assert found.marks == {"A2": "OVRFLW"}
    assert found.notes == (f"the column {column!r} was read as the value",)


def test_of_several_columns_one_has_to_be_named():
    text = "Well;OD600;OD450;row\nA1;0,5;0,25;1\nB3;1,5;1,25;2\n"
    with pytest.raises(HistoryError, match=r"several that may be meant: OD600, OD450.*--value 'OD"):
        read_readings(text, GRID)
    assert read_readings(text, GRID, value="od450").values == by_name({"A1": 0.25, "B3": 1.25})
    with pytest.raises(HistoryError, match=r"'OD405'.*'OD450'"):
        read_readings(text, GRID, value="OD405")
    with pytest.raises(HistoryError, match="value='OD450'"):
        read_readings(text, GRID, ("a", "b"), value="OD450")


def test_a_name_is_worth_more_than_what_a_column_holds():
    """A column called value is the value, whatever else has numbers; so is that of the outcome."""
    text = "Well,OD600,Value\nA1,0.5,0.25\n"
    assert read_readings(text, GRID).values == {"A1": {"value": 0.25}}
    assert read_readings(text, GRID, ("od600",)).values == {"A1": {"od600": 0.5}}


def test_the_value_can_be_named_in_python(tmp_path):
    study = Study(Space({"x": Real(0, 1)}), seed=0)
    (plate,) = study.ask_plates(1, Layout(plate=6), strategy="random")
    lines = [["Well", "OD600", "OD450"], *([w, v, 2.0 * v] for w, v in VALUES.items())]
    path = saved(lines, "xlsx", tmp_path)
    study.tell_plate(plate, plate.readings(path, value="OD450"))
    told = {w.name: study.history[w.trial].value for w in plate.used}
    assert told == {well: 2.0 * value for well, value in VALUES.items()}


@pytest.mark.parametrize("way", WAYS)
def test_a_filled_table_of_wells_is_told_however_it_was_saved(way, tmp_path):
    options = ["MAR2", "=x", "1,4-dioxane", True]
    study = Study(Space({"x": Real(0, 1), "kind": Choice(options)}), seed=0)
    plates = study.ask_plates(2, Layout(plate=6, controls={"blank": 1}), strategy="random")
    for plate in plates:
        rows = plate.rows()
        filled = [{**r, "value": None if r["role"] == "empty" else 0.25} for r in rows]
        lines = [["Week 12"], list(plate.columns)]
        lines += [["" if r[c] is None else r[c] for c in plate.columns] for r in filled]
        path = saved([[str(c) if isinstance(c, bool) else c for c in one] for one in lines], way,
                     tmp_path)  # fmt: skip
        assert plate_named_in(path) == plate.name
        study.tell_plate(plate.name, path)
    assert {t.value for t in study.history.trials} == {0.25}
    with pytest.raises(HistoryError, match=r"file.*, well A1: plate|are of plate p2, not of p1"):
        study.tell_plate("p1", path)


def test_a_table_of_wells_says_truths_and_dates_in_german():
    study = Study(Space({"hot": Choice([True]), "gene": Choice(["MAR2"])}), seed=0)
    study.ask_plates(1, Layout(plate=(1, 1)), strategy="random")
    text = "plate;well;role;trial;hot;gene;value\np1;A1;sample;0;{};{};0,5\n"
    for hot, gene in (("WAHR", "APR2"), ("FALSCH", "MAR2")):
        with pytest.raises(HistoryError, match=r"the table:2, well A1: .* p1 "):
            study.tell_plate("p1", text.format(hot, gene))
    study.tell_plate("p1", text.format("WAHR", "02. Mrz"))
    assert study.history[0].value == 0.5


STOCKS = [
    ["Material", "plate", "plate_type", "well", "volume_ul", "dead_ul"],
    ["DMSO", "S1", "96_wellplate", "A1", 60.5, 15.25],
    ["Wäßrig", "S1", "96_wellplate", "H12", 100.5, ""],
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("title", [[], [["Stocks of week 12"], []]])
def test_stocks_are_the_same_however_they_were_saved(way, title, tmp_path):
    shelf, _ = read_stocks(saved(title + STOCKS, way, tmp_path))
    assert shelf["DMSO"][0].left == 45.25
    assert shelf["Wäßrig"][0].left == 100.5
    assert shelf["Wäßrig"][0].place == "S1 H12"


def test_a_wrong_stock_is_refused_by_its_line(tmp_path):
    path = saved([["Stocks of week 12"], *STOCKS, ["A", "S1", "", "A2", "many", ""]], "comma",
                 tmp_path)  # fmt: skip
    with pytest.raises(SpaceError, match=r"file\.csv:5: .*'many'.*\.$"):
        read_stocks(path)
    with pytest.raises(SpaceError, match=r"none\.csv"):
        read_stocks(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("kind", "well", "fits"),
    [
        ("384PP_DMSO2", "P24", True),
        ("384PP_DMSO2", "Q1", False),
        ("corning_96_wellplate_360ul_flat", "H12", True),
        ("corning_96_wellplate_360ul_flat", "A13", False),
        ("nest_12_reservoir_15ml", "A12", True),  # in one row
        ("", "AF48", True),
        ("", "Z99", False),
        ("myplate", "Z99", False),
        ("", "trough 1", True),
    ],
)
def test_a_source_well_has_to_be_on_its_plate(kind, well, fits):
    row = {"material": "D", "plate": "S", "well": well, "plate_type": kind, "volume_ul": 10}
    if fits:
        assert read_stocks([row])[0]["D"][0].well == well
    else:
        with pytest.raises(SpaceError, match=f"stocks:2: there is no well '{well}' on a.* plate"):
            read_stocks([row])


def test_all_stocks_that_run_dry_are_named():
    study = Study(Space({"x": Real(0, 1)}), seed=0)
    (plate,) = study.ask_plates(1, Layout(plate=6), strategy="random")
    stocks = [{"material": m, "plate": "S", "well": w, "volume_ul": v}
              for m, w, v in (("A", "A1", 5), ("B", "A2", 100), ("C", "A3", 6))]  # fmt: skip
    rules = [Dispense(m, volume=2.0) for m in "ABC"]
    with pytest.raises(
        SpaceError, match=r"stock of A runs dry: .*7 µL are.*stock of C runs dry"
    ) as e:
        pick_list(plate, "generic", stocks, rules)
    assert "of B" not in str(e.value)
