"""Plates as tables, files, frames and pages, and what a control may be."""

import csv
import re

import pytest

import covey
from covey.errors import SpaceError
from covey.plates.wells import csv_lines
from covey.spreadsheets import escaped

SPACE = covey.Space({"T": covey.Integer(20, 70, step=10), "x": covey.Real(0, 1)})


def made(plate, **rules):
    study = covey.Study(SPACE, seed=0)
    return study.ask_plates(1, covey.Layout(plate=plate, **rules), strategy="random")[0]


@pytest.mark.parametrize("wells", [6, 96, 384])
def test_a_map_has_a_cell_for_every_well(wells):
    page = made(wells, shared={"T": "plate"}).map()
    assert len(re.findall(r"<td\b", page)) == wells


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
        ({"wells": 2, "at": 3}, "is a dict, or None"),
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
    heads, *lines = csv_lines(plate.table(), "p1.csv")
    assert {line[heads.index("kind")] for line in lines} == {option}
