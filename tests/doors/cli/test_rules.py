"""`--rule`: rules with a category on the command line."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

import covey
from covey.cli.rules import rules_from
from covey.cli.settings import read_settings

FLAGS = [
    "--choice",
    "solvent=THF,DMF,water",
    "--choice",
    "base=KOH,NaOH,Et3N",
    "--real",
    "T=20:120",
]
FIRST, SECOND = "solvent=THF: T<=60", "solvent=DMF|water: base=KOH|NaOH, T>=40"
RULES = (
    covey.Implies({"solvent": "THF"}, {"T": (None, 60)}),
    covey.Implies({"solvent": ["DMF", "water"]}, {"base": ["KOH", "NaOH"], "T": (40, None)}),
)


def test_init_writes_rows_and_says_what_it_understood(call):
    done = call("init", *FLAGS, "--rule", FIRST, "--rule", SECOND)
    assert done.code == 0
    assert "when solvent is 'THF': T <= 60" in done.err
    assert "base is 'KOH' or 'NaOH' and 40 <= T" in done.err
    assert read_settings(Path("covey.toml")).space.where == RULES
    assert 'when = {solvent = "THF"}\nthen = {T = {high = 60.0}}' in Path("covey.toml").read_text()


def test_next_keeps_to_them(call):
    done = call("next", *FLAGS, "--rule", FIRST, "--rule", SECOND, "--batch", "12")
    assert done.code == 0
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert len(rows) == 12
    for row in rows:
        assert float(row["T"]) <= 60 if row["solvent"] == "THF" else float(row["T"]) >= 40
        assert row["solvent"] == "THF" or row["base"] != "Et3N"
    assert {row["solvent"] for row in rows} == {"THF", "DMF", "water"}


PARAMETERS = {
    "solvent": covey.Choice(["THF", "DMF"]),
    "n": covey.Integer(1, 4),
    "T": covey.Real(20, 120),
}


@pytest.mark.parametrize(
    ("word", "when", "then"),
    [
        ("solvent=THF: 30<=T<=60", {"solvent": "THF"}, {"T": (30, 60)}),
        ("solvent=THF: T>=30, T<=60", {"solvent": "THF"}, {"T": (30, 60)}),
        ("solvent=THF,n=2|3:T<=60", {"solvent": "THF", "n": [2, 3]}, {"T": (None, 60)}),
        (" n = 2 : solvent = DMF", {"n": 2}, {"solvent": ["DMF"]}),
    ],
)
def test_other_ways_to_write_one(word, when, then):
    (row,) = rules_from([word], PARAMETERS)
    assert covey.Implies(**row) == covey.Implies(when, then)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("solvent=TFH: T<=60", "Did you mean 'THF'?"),
        ("solvnt=THF: T<=60", "Did you mean 'solvent'?"),
        ("solvent=THF: Temp<=60", "'Temp'"),
        ("solvent=THF: T<60", "'T<60' is no name with =, <= or >= and a value"),
        ("solvent=THF T<=60", "a rule is when it applies, a colon"),
        ("solvent=THF: T<=60, T<=50", "'T' is said twice"),
        ("solvent=THF: T<=warm", "warm"),
        ("solvent=THF: T<=10", "no value of 'T'"),
        ("T=30: solvent=THF", "continuous"),
        ("n<=2: T<=60", "before the colon"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(call, word, said):
    flags = ["--choice", "solvent=THF,DMF", "--integer", "n=1:4", "--real", "T=20:120"]
    done = call("init", *flags, "--rule", word)
    assert done.code == 2
    assert said in done.err
    assert "--rule 'solvent=THF: T<=60'" in done.err  # how to write it
    assert not Path("covey.toml").exists()


def test_a_rule_needs_parameters_beside_it(call):
    Path("pool.csv").write_text("a,b\n1,2\n2,3\n")
    assert "a pool holds only" in call("init", "--pool", "pool.csv", "--rule", FIRST).err
    assert "[[constraints]]" in call("next", "--rule", FIRST).err
