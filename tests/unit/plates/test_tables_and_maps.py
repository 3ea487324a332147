"""Plates as tables, files, frames and pages, and what a control may be."""

import csv
import re

import pytest

import covey
from covey.errors import SpaceError
from covey.plates.wells import csv_text
from covey.spreadsheets import escaped
from covey.tables import Expected, table_of

SPACE = covey.Space({"T": covey.Integer(20, 70, step=10), "x": covey.Real(0, 1)})


def made(plate, **rules):
    study = covey.Study(SPACE, seed=0)
    return study.ask_plates(1, covey.Layout(plate=plate, **rules), strategy="random")[0]


@pytest.mark.parametrize("wells", [6, 96, 384])
def test_a_map_has_a_cell_for_every_well(wells):
    page = made(wells, shared={"T": "plate"}).map()
    assert len(re.findall(r"<td\b", page)) == wells


def test_a_map_says_what_goes_into_controls_that_are_points():
    reference = covey.Control(wells=2, at={"T": 40, "x": 0.25})
    page = made(24, controls={"blank": 2, "ref": reference}).map(",")
    assert page.split("<footer>")[1].count("<p>ref: T 40, x 0,25.</p>") == 1
    assert "<p>blank:" not in page


def test_wells_are_the_same_in_a_table_a_file_and_a_frame(tmp_path):
    plate = made(24, controls={"blank": 2})
    plate.write(tmp_path / "p1.csv")
    with (tmp_path / "p1.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    frame = plate.to_frame()
    assert [row["well"] for row in rows] == frame["well"].tolist()
    assert len(rows) == 24
    assert sum(row["role"] == "control:blank" for row in rows) == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"wells": 0}, "a number of at least 1"),
        ({"wells": "A1"}, "or a list such as"),
        ({"wells": []}, "its list is empty"),
        ({"wells": 2, "at": 3}, "None; got 3"),
    ],
)
def test_a_control_says_what_it_may_be(given, said):
    with pytest.raises(SpaceError, match=said):
        covey.Control(**given)


@pytest.mark.parametrize("option", ["=1+1", "＝x", "a;@x", "'-b"])
def test_an_option_that_looks_like_a_formula_is_inert_and_comes_back(option):
    space = covey.Space({"x": covey.Real(0, 1), "kind": covey.Choice([option])})
    study = covey.Study(space, seed=0)
    (plate,) = study.ask_plates(1, covey.Layout(plate=6), strategy="random")
    assert escaped(option) in plate.table()
    table = table_of(plate.table().encode(), "p1.csv", Expected())
    assert {row.text("kind") for row in table.rows} == {option}


def test_readings_go_by_the_names_of_wells_and_not_by_the_order_of_rows(tmp_path):
    """A filled table may be sorted by anything: each well has the number of its own row."""
    study = covey.Study(SPACE, seed=0)
    layout = covey.Layout(plate=24, shared={"T": "column"}, controls={"blank": 2})
    (plate,) = study.ask_plates(1, layout, strategy="random")
    rows = plate.rows()
    for place, row in enumerate(rows):
        row["value"] = None if row["role"] == "empty" else 10.0 + place
    for key in ("run_order", "T", "well"):
        path = tmp_path / f"by-{key}.csv"
        path.write_text(csv_text(plate.columns, sorted(rows, key=lambda row: str(row[key]))))
        fresh = covey.Study(SPACE, seed=0)
        fresh.ask_plates(1, layout, strategy="random")
        fresh.tell_plate("p1", path)
        told = {row["trial"]: row["value"] for row in rows if row["trial"] is not None}
        assert {trial.id: trial.value for trial in fresh.history.told} == told
        assert [w.value for w in fresh.plate("p1").wells] == [row["value"] for row in rows]


def test_a_table_with_decimal_commas_is_read_back(tmp_path):
    study = covey.Study(SPACE, seed=0)
    (plate,) = study.ask_plates(1, covey.Layout(plate=12, controls={"blank": 2}))
    plate.write(tmp_path / "p1.csv", decimal=",")
    heads, *lines = (tmp_path / "p1.csv").read_text().splitlines()
    assert heads == ";".join(plate.columns)
    filled = [heads]
    for place, line in enumerate(lines):
        cells = line.split(";")
        cells[plate.columns.index("value")] = f"{place},25"
        filled.append(";".join(cells))
    assert all("." not in line for line in lines)
    (tmp_path / "p1.csv").write_text("\n".join(filled) + "\n")
    study.tell_plate("p1", tmp_path / "p1.csv")
    assert [w.value for w in study.plate("p1").wells] == [place + 0.25 for place in range(12)]
    with pytest.raises(SpaceError, match="decimal mark"):
        plate.table(decimal="comma")


LONG = [
    "tris(2-methylphenyl)phosphine hydrochloride",
    "tris(2-methylphenyl)phosphine",
    "XPhos",
    "K1",
]


def test_a_map_has_marks_for_names_that_are_too_long_and_says_which_is_which():
    space = covey.Space(
        {
            "kit": covey.Choice(LONG),
            "base": covey.Choice(["K2CO3", "x" * 60]),
            "x": covey.Real(0, 1),
        }
    )
    study = covey.Study(space, seed=0)
    layout = covey.Layout(plate=96, controls={"a_control_with_a_long_name": 2})
    (plate,) = study.ask_plates(1, layout, strategy="random")
    page = plate.map(decimal=",")
    cells = re.findall(r"<td\b.*?</td>", page)
    assert len(cells) == 96
    texts = {text for cell in cells for text in re.findall(r"<i>([^<#]*)</i>", cell)}
    marks = {"KI1", "KI2", "B1", "K2"} & texts
    assert not any(name in texts for name in LONG[:2])
    assert "XPhos" in texts
    assert "K1" in texts  # an option, and so no mark
    for mark, name in re.findall(
        r"(\w+\*?) = ([^;<]*?)(?=[;.]\s|\.</p>)", page.split("<footer>")[1]
    ):
        assert mark in texts, (mark, name)
        assert name in (*LONG[:2], "x" * 60)
        marks.discard(mark)
    assert not marks
    assert "a_<wbr>control_<wbr>with_<wbr>a_<wbr>long_<wbr>name" in page
    numbers = [text for text in texts if re.fullmatch(r"[0-9][0-9.,e-]*", text)]
    assert numbers
    assert all("." not in text for text in numbers)


def test_a_map_strikes_out_marked_wells_and_says_why():
    study = covey.Study(SPACE, seed=0)
    (plate,) = study.ask_plates(1, covey.Layout(plate=12, controls={"blank": 2}))
    assert "Struck out" not in plate.map()
    study.mark_wells("p1", ["A1", "B2"], "a <bubble>")
    page = study.plate("p1").map()
    assert len(re.findall(r"<td class='[^']*marked'", page)) == 2
    assert "Struck out, and not counted: A1: a &lt;bubble&gt;; B2: a &lt;bubble&gt;." in page
