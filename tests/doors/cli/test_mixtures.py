"""Mixtures on the command line and in covey.toml."""

from decimal import Decimal
from pathlib import Path

import pytest

from covey import Integer, Linear, Mixture, Real
from covey.cli.settings import parse_settings, read_settings

FLAG = "water+ethanol+glycerol=1:step=0.01:parts=1-2:least=0.05"
LOTION = Mixture(["water", "ethanol", "glycerol"], 1.0, (1, 2), 0.05, 0.01)


def test_a_flag_becomes_a_file_that_reads_back(call):
    words = ["--real", "glycerol=0:0.4", "--integer", "n=1:8", "--seed", "1"]
    done = call("init", "--mixture", FLAG, *words)
    assert done.code == 0
    assert "  where water + ethanol + glycerol = 1, 1 to 2 parts, each at least 0.05" in done.err
    assert "water:    real, 0.0 to 1.0 in steps of 0.01" in done.err
    space = read_settings(Path("covey.toml")).space
    assert space.where == (LOTION,)
    assert dict(space.parameters) == {
        "glycerol": Real(0, 0.4, step=0.01),
        "n": Integer(1, 8),
        "water": Real(0, 1, step=0.01),
        "ethanol": Real(0, 1, step=0.01),
    }


def test_parts_without_a_range_go_from_nothing_to_all(call):
    assert call("init", "--mixture", "a + b=100:parts=2").code == 0
    space = read_settings(Path("covey.toml")).space
    assert space.where == (Mixture(["a", "b"], total=100, parts=2),)
    assert space.parameters["b"] == Real(0, 100)


def test_two_mixtures_and_exact_decimals_in_a_sheet(call):
    words = ["--mixture", "a+b+c=1:step=0.01", "--mixture", "u+v=0.3:step=0.05", "--real", "T=2:8"]
    done = call("next", *words, "--batch", "5", "--seed", "2")
    head, *rows = done.out.splitlines()
    assert head == "a,b,c,u,v,T,value"
    assert len(rows) == 5
    for row in rows:
        cells = [Decimal(cell) for cell in row.split(",")[:-1]]
        assert sum(cells[:3]) == 1
        assert sum(cells[3:5]) == Decimal("0.3")
        assert max(len(str(cell)) for cell in cells[:5]) <= 4


def test_a_study_is_asked_told_and_shown(call):
    call("init", "--mixture", "a+b=1:step=0.1:least=0.2", "--batch", "3", "--seed", "0")
    assert call("ask", "--out", "batch.csv").code == 0
    text = Path("batch.csv").read_text().splitlines()
    filled = [text[0], *(f"{line}{i}.5" for i, line in enumerate(text[1:]))]
    Path("batch.csv").write_text("\n".join(filled) + "\n")
    assert call("tell", "batch.csv").code == 0
    assert call("best").code == 0
    assert call("report", "--out", "report.html").code == 0
    asked = call("ask", "--batch", "2", "--fix", "a=0.3").out.splitlines()[1:]
    assert asked == []  # one point only, and two were wanted
    (row,) = call("ask", "--batch", "1", "--fix", "a=0.3").out.splitlines()[1:]
    assert row.split(",")[1:3] == ["0.3", "0.7"]


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("a+b", "its parts with + between them, and = what they sum to"),
        ("a+b=x", "the total is no number: 'x'"),
        ("a+b=1:stp=0.1", "got 'stp=0.1'. Did you mean 'step'?"),
        ("a+b=1:step=0.1:step=0.2", "got 'step=0.2'"),
        ("a+b=1:parts=2-", "parts is a number, or two such as 1-2"),
        ("a+b=1:parts=3", "from 1 to 2"),
        ("a=1", "two parts or more"),
        ("a+b=1:step=0.3", "never sums to total=1.0"),
    ],
)
def test_a_mistake_in_the_flag_is_named(call, flag, message):
    done = call("next", "--mixture", flag)
    assert done.code == 2
    assert message in done.err
    assert "Write --mixture 'water+ethanol" in done.err


def test_bounds_that_cannot_be_are_named(call):
    done = call("init", "--mixture", "a+b=1", "--real", "a=0:0.3", "--real", "b=0:0.4")
    assert done.code == 5
    assert "a 0 to 0.3, b 0 to 0.4. Possible: 0 to 0.7 with 2 parts" in done.err
    assert not Path("covey.toml").exists()


def test_a_mixture_is_no_pool(call):
    Path("candidates.csv").write_text("a,b\n1,2\n3,4\n")
    assert call("init", "--mixture", "a+b=1", "--pool", "candidates.csv").code == 2


TWO = "[parameters.x]\ntype = 'real'\nlow = 0\nhigh = 1\n[parameters.y]\n" + (
    "type = 'real'\nlow = 0\nhigh = 1\n[[constraints]]\n"
)


def settings_of(row):
    return parse_settings(TWO + row, Path("covey.toml")).space.where


def test_rows_of_constraints():
    assert settings_of("weights = {x = 1, y = 2}\nequal = 1.5") == (
        Linear({"x": 1, "y": 2}, 1.5, 1.5),
    )
    assert settings_of("weights = {x = 1}\nlower = 1\nupper = 1") == (Linear({"x": 1}, 1, 1),)
    found = settings_of("mixture = ['x', 'y']\nparts = [1, 2]\nleast = 0.1\nstep = 0.05")
    assert found == (Mixture(["x", "y"], 1.0, (1, 2), 0.1, 0.05),)
    assert settings_of("mixture = ['x', 'y']\nparts = 2\ntotal = 1") == (
        Mixture(["x", "y"], parts=2),
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("weights = {x = 1}\nequal = 1\nupper = 2", "equal, or lower and upper, not both"),
        ("mixture = ['x', 'y']\nuper = 1", r"covey\.toml.*'uper'"),
        ("mixture = 'xy'", r"covey\.toml.*'xy'"),
        ("weights = {x = 1}\ntotal = 1", "'total'"),
        ("total = 1", "needs weights, .*, or mixture, such as"),
        ("mixture = ['x', 'z']", r"covey\.toml: Mixture.*'z'"),
        ("mixture = ['x', 'y']\ntotal = 3", "Possible: 0 to 2 with 2 parts"),
    ],
)
def test_a_mistake_in_a_row_is_named(row, message):
    from covey.cli.output import Stop

    with pytest.raises(Stop, match=message):
        settings_of(row)
