"""Outcomes by name on the command line: init, ask, tell, status, best, export, run, amend."""

import csv
import json
import sys
from pathlib import Path

import pytest

import covey
from covey import outcomes
from covey.sheets import writing

INIT = (
    *("init", "--real", "x=0:1", "--batch", "3", "--seed", "0", "--goal", "yield=max"),
    *("--goal", "cost=min", "--limit", "heat<=0.8", "--record", "notes"),
)


def filled(path, **cells):
    """Fill in a sheet: a function of x for each column."""
    rows = list(csv.DictReader(Path(path).read_text().splitlines()))
    for row in rows:
        row.update({name: f(float(row["x"])) for name, f in cells.items()})
    with Path(path).open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def asked(call):
    assert call(*INIT).code == 0
    assert call("ask", "--out", "batch.csv").code == 0
    return call


def test_init_writes_goals_limits_and_records(call):
    call(*INIT)
    text = Path("covey.toml").read_text()
    assert 'goal = {yield = "max", cost = "min"}' in text
    assert 'limits = {heat = ["<=", 0.8]}' in text
    assert 'record = ["notes"]' in text


def test_init_writes_from_where_goals_count(call):
    assert call(*INIT, "--worst", "yield=-1", "--worst", "cost=40").code == 0
    assert "worst = {yield = -1.0, cost = 40.0}" in Path("covey.toml").read_text()
    assert call("ask").code == 0
    study = covey.Study.load("covey.jsonl", read_only=True)
    assert study.outcomes.worst == {"yield": -1.0, "cost": 40.0}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--goal", "yield=max", "--goal", "yield=min"), "the goal 'yield' is given twice"),
        (("--goal", "yield=up"), "--goal NAME=max --goal OTHER=min; got 'yield=up'"),
        (("--goal", "best"), "--goal is max or min, or NAME=max; got 'best'"),
        (("--limit", "heat<2"), "--limit is such as 'impurity<=2'; got 'heat<2'"),
        (("--limit", "a<=1", "--limit", "a>=0"), "the limit on 'a' is given twice"),
        (("--limit", "x<=1"), "the limit x <= 1 is on a parameter"),
        (("--goal", "x=max"), "'x' is a parameter and an outcome"),
        (("--worst", "yield"), "--worst is such as cost=90; got 'yield'"),
        (("--worst", "yield=low"), "--worst is such as cost=90; got 'yield=low'"),
        (("--worst", "yield=1", "--worst", "yield=2"), "the worst 'yield' is given twice"),
        (("--goal", "yield=max", "--goal", "cost=min", "--worst", "cost=9"), "(yield, cost)"),
        (("--goal", "yield=max", "--worst", "yield=inf"), "the worst 'yield' is a finite number"),
    ],
)
def test_init_refuses_nonsense(call, words, said):
    done = call("init", "--real", "x=0:1", *words)
    assert done.code != 0
    assert said in done.err
    assert not Path("covey.toml").exists()


def test_a_sheet_has_a_column_for_each_outcome(asked):
    names = next(csv.reader(Path("batch.csv").read_text().splitlines()))
    assert names == ["id", "x", "yield", "cost", "heat", "notes"]
    filled("batch.csv", **{"yield": lambda x: x, "cost": lambda x: x * x, "heat": lambda x: x})
    done = asked("tell", "batch.csv")
    assert "3 results recorded" in done.out
    assert "3 known already" in asked("tell", "batch.csv").out


def test_values_come_one_after_the_other_on_the_command_line(asked):
    done = asked("tell", "0:yield=0.5", "0:heat=0.1", "1=failed")
    assert "1 result and 1 failure recorded" in done.out
    assert "1 trial told in part" in done.err
    asked("tell", "0:cost=2", "0:notes=clear")
    study = covey.Study.load("covey.jsonl", read_only=True)
    assert study.history[0].values == {"yield": 0.5, "heat": 0.1, "cost": 2.0}
    assert study.history.metrics(0) == {"notes": "clear"}
    assert study.history[1].status == "failed"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["0:colour=1"], "'colour' is no outcome of this study"),
        (["0:cost=nan"], "0:cost=nan: the cost"),
        (["0:cost=1", "0:cost=2"], "cost of trial 0 comes twice"),
        (["9:cost=1"], "there is no trial 9"),
        (["0=3"], "is no outcome of this study"),
    ],
)
def test_a_bad_value_is_refused_and_nothing_is_recorded(asked, words, said):
    before = Path("covey.jsonl").read_bytes()
    done = asked("tell", *words)
    assert done.code != 0
    assert said in done.err
    assert Path("covey.jsonl").read_bytes() == before


def test_status_best_and_export_show_the_front(asked):
    filled("batch.csv", **{"yield": lambda x: x, "cost": lambda x: x * x, "heat": lambda x: x})
    asked("tell", "batch.csv")
    shown = asked("status").out
    assert "goal yield max, cost min" in shown
    assert "limits: heat <= 0.8; kept by" in shown
    status = json.loads(asked("status", "--json").out)
    study = covey.Study.load("covey.jsonl", read_only=True)
    ids = [trial.id for trial in study.front]
    assert status["front"] == ids
    best = json.loads(asked("best", "--json").out)
    assert [trial["id"] for trial in best["front"]] == ids
    assert set(best["recommended"]["expected"]) == {"yield", "cost", "heat"}
    assert "yield" in asked("best").out
    rows = list(csv.DictReader(asked("export").out.splitlines()))
    assert float(rows[0]["cost"]) == study.history[0].values["cost"]


def test_records_called_notes_and_the_notes_of_people_are_two_columns(asked):
    asked("tell", "0:yield=0.5", "0:heat=0.1", "0:cost=1", "0:notes=clear")
    assert next(csv.DictReader(asked("export").out.splitlines()))["notes"] == "clear"
    assert asked("note", "0", "smells of almonds").code == 0
    text = asked("export").out
    assert next(csv.reader(text.splitlines())).count("notes") == 1
    row = next(csv.DictReader(text.splitlines()))
    assert (row["notes"], row["trial.notes"]) == ("clear", "smells of almonds")
    Path("export.csv").write_text(text)
    assert "not recorded" not in asked("tell", "export.csv").err


def test_one_of_several_goals_called_value_is_exported(call):
    call("init", "--real", "x=0:1", "--seed", "0", "--goal", "value=max", "--goal", "cost=min")
    call("ask", "--out", "batch.csv")
    assert call("tell", "0:value=1.5", "0:cost=2.5").code == 0
    row = next(csv.DictReader(call("export").out.splitlines()))
    assert (row["value"], row["cost"]) == ("1.5", "2.5")


def test_no_outcome_has_the_name_of_a_column():
    ours = {*writing.COLUMNS, *writing.EXPORT_ONLY, *writing.EXPORT_RARE}
    assert {*outcomes.COLUMNS} == ours - {"value", "notes"}


def test_only_a_whole_row_fails(asked):
    before = Path("covey.jsonl").read_bytes()
    filled("batch.csv", **{"yield": lambda x: "failed", "cost": lambda x: x, "heat": lambda x: x})
    done = asked("tell", "batch.csv")
    assert done.code != 0
    assert (
        "yield failed, but there are values of cost and heat; only a whole trial fails" in done.err
    )
    assert asked("tell", "0=failed", "0:cost=3").code != 0
    assert Path("covey.jsonl").read_bytes() == before
    filled("batch.csv", **{"cost": lambda x: "", "heat": lambda x: "failed"})
    assert "3 failures recorded" in asked("tell", "batch.csv").out


def test_a_record_that_changes_is_refused_and_one_that_does_not_is_known(asked):
    asked("tell", "0:yield=0.5", "0:heat=0.1", "0:cost=1", "0:notes=3.50")
    before = Path("covey.jsonl").read_bytes()
    done = asked("tell", "0:notes=changed")
    assert done.code != 0
    assert "notes of trial 0 was recorded as '3.50'" in done.err
    assert "covey note 0 TEXT" in done.err
    assert asked("tell", "1:notes=early").code != 0
    assert Path("covey.jsonl").read_bytes() == before
    assert "1 known already" in asked("tell", "0:notes=3.5", "0:cost=1").out


def test_status_lists_what_is_told_in_part(asked):
    assert "told in part" not in asked("status").out
    asked("tell", "0:yield=0.5", "0:heat=0.1", "1:yield=1", "1:heat=1", "1:cost=1")
    assert "told in part: trial 0 lacks cost" in asked("status").out
    assert json.loads(asked("status", "--json").out)["told_in_part"] == [0]
    assert "study.exclude(0, reason)" in asked("fail", "0", "--reason", "broke").err


def test_ask_says_how_many_results_it_chose_from(asked):
    filled("batch.csv", **{"yield": lambda x: x, "cost": lambda x: x * x, "heat": lambda x: x})
    assert asked("tell", "batch.csv").code == 0
    assert "choosing 3 points after 3 results" in asked("ask").err


def test_amend_by_name(asked):
    asked("tell", "0:yield=0.5", "0:heat=0.1", "0:cost=1")
    assert asked("amend", "0:cost=3", "--reason", "typing error").code == 0
    assert covey.Study.load("covey.jsonl", read_only=True).history[0].values["cost"] == 3.0
    shown = asked("logs", "0").out
    assert "cost 3.0" in shown
    assert "amended: typing error" in shown
    assert asked("logs", "0", "--json").json["amended"] == ["typing error"]
    assert asked("logs", "1", "--json").json["amended"] == []


def test_run_reads_several_numbers(call):
    call(*INIT)
    program = "import json, sys; x = float(sys.argv[1]); "
    program += "print(json.dumps({'yield': x, 'cost': x * x, 'heat': 0.5}))"
    done = call("run", "--rounds", "1", "--json", "--", sys.executable, "-c", program, "{x.x}")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["value"] is None
    assert len(found["front"]) == 3
    assert set(found["values"]) == {"yield", "cost", "heat"}


def test_next_says_that_it_knows_one_value(call):
    call(*INIT)
    done = call("next")
    assert "`covey next` knows one value" in done.err
