from pathlib import Path

import pytest


@pytest.fixture
def asked(study):
    study("ask", "--out", "batch.csv")
    return study


def filled(values, name="batch.csv", extra=""):
    lines = Path("batch.csv").read_text().splitlines()
    rows = [line + str(value) for line, value in zip(lines[1:], values, strict=True)]
    Path(name).write_text("\n".join([lines[0], *rows]) + "\n" + extra)


def test_a_sheet_is_told_once(asked):
    filled([1.5, "failed", ""])
    first = asked("tell", "batch.csv", "--json").json
    assert (first["told"], first["failed"], first["known"], first["pending"]) == (1, 1, 0, 1)
    before = Path("covey.jsonl").read_bytes()
    again = asked("tell", "batch.csv", "--json").json
    assert (again["told"], again["failed"], again["known"]) == (0, 0, 2)
    assert Path("covey.jsonl").read_bytes() == before


def test_what_is_filled_in_later_is_told_later(asked):
    asked("tell", "0=1.5")
    lines = Path("batch.csv").read_text().splitlines()
    Path("batch.csv").write_text("\n".join([lines[0], *(line + "1.5" for line in lines[1:])]))
    done = asked("tell", "batch.csv", "--json").json
    assert (done["told"], done["known"], done["pending"]) == (2, 1, 0)


def test_stdin_and_standard_errors(asked):
    done = asked("tell", "-", stdin="id,value,sem\n0,1.0,0.1\n1,2.0,\n")
    assert done.code == 0
    trials = asked("export", "--json").json["trials"]
    assert [t["sem"] for t in trials] == [0.1, None, None]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,value\n0,1\n9,2\n", "<sheet>:3: there is no trial 9; ids go to 2."),
        ("id,value\n0,1\n1,abc\n", "<sheet>:3: the value 'abc' is no number"),
        ("id,value\n0,1\n1,nan\n", "<sheet>:3: the value must be finite"),
        ("id,value\n0,failed\n0,2\n", "<sheet>:3: trial 0 failed in another row."),
        ('id,value\n0,1\n1,"2,5"\n', "Write decimal numbers with a point."),
        ("id,value\nx,1\n", "<sheet>:2: an id is a whole number, got 'x'."),
        ("id,valeu\n0,1\n", "no column 'value'; it has id, valeu. Did you mean 'valeu'?"),
        ("id,value\n0,1,2\n", "<sheet>:2: 3 cells, but 2 columns"),
        ("id;value\n0;1.234\n", "<sheet>:2: value is '1.234', which may be a decimal mark"),
        ("id,value,id\n0,1,0\n", "two columns named 'id'"),
        ("", "is empty"),
    ],
)
def test_one_bad_line_and_nothing_is_recorded(asked, text, words):
    Path("sheet.csv").write_text(text)
    before = Path("covey.jsonl").read_bytes()
    done = asked("tell", "sheet.csv")
    assert done.code == 5
    assert words.replace("<sheet>", "sheet.csv") in done.err
    assert Path("covey.jsonl").read_bytes() == before


def test_another_value_for_a_told_trial_is_refused(asked):
    asked("tell", "0=1.5")
    done = asked("tell", "0=2.5")
    assert done.code == 5
    assert "was told 1.5 already" in done.err


def test_a_dry_run_writes_nothing(asked):
    before = Path("covey.jsonl").read_bytes()
    done = asked("tell", "0=1.5", "--dry-run")
    assert "would be recorded" in done.out
    assert Path("covey.jsonl").read_bytes() == before


def test_words_that_are_neither_file_nor_pair(asked, call):
    assert asked("tell", "0=1", "batch.csv").code == 2
    assert asked("tell", "none.csv").code == 3
    Path("covey.jsonl").unlink()
    assert asked("tell", "0=1").code == 3


def test_a_trial_that_was_cancelled_cannot_fail_and_nothing_else_is_recorded(asked):
    import covey

    study = covey.Study.load("covey.jsonl")
    study.cancel(1)
    before = Path("covey.jsonl").read_bytes()
    done = asked("tell", "0=1.0", "1=failed")
    assert done.code == 5
    assert "was cancelled" in done.err
    assert Path("covey.jsonl").read_bytes() == before


def test_a_sheet_sorted_by_some_columns_only_is_refused(asked):
    lines = Path("batch.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines[1:]]
    rows[0][0], rows[1][0] = rows[1][0], rows[0][0]  # the ids change places, the points do not
    Path("batch.csv").write_text("\n".join([lines[0], *(",".join(r) + "1.5" for r in rows)]))
    done = asked("tell", "batch.csv")
    assert done.code == 5
    assert "Was the sheet sorted" in done.err


def test_what_a_spreadsheet_rounds_is_still_the_same_point(asked):
    import csv

    with Path("batch.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row |= {"lr": f"{float(row['lr']):.3g}", "layers": row["layers"] + ".0", "value": "1"}
    text = "\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)])
    Path("batch.csv").write_text(text)
    assert asked("tell", "batch.csv").code == 0


def test_parameters_may_bear_the_names_of_columns(call):
    call("init", "--real", "value=0:1", "--real", "sem=0:1", "--real", "id=0:1", "--batch", "2")
    call("ask", "--out", "batch.csv")
    header = Path("batch.csv").read_text().splitlines()[0]
    assert header == "id,point.value,point.sem,point.id,value"
    filled([1.5, 2.5])
    assert call("tell", "batch.csv").code == 0
    assert [t["sem"] for t in call("export", "--json").json["trials"]] == [None, None]


def test_a_number_with_underscores_is_a_slip_of_the_pen(study):
    study("ask")
    done = study("tell", "0=1_000")
    assert done.code == 5
    assert "'1_000' is no number" in done.err
    Path("r.csv").write_text("lr,layers,opt,value\n0.01,1,adam,1_000\n")
    assert study("next", "--in", "r.csv").code == 5
    Path("r.csv").write_text("lr,layers,opt,value\n0.0_1,1,adam,1\n")
    assert study("next", "--in", "r.csv").code == 5
    assert study("ask", "--new", "--fix", "layers=0_1").code == 5


def test_odd_options_make_the_round_trip_through_a_sheet(call):
    Path("covey.toml").write_text(
        "[study]\nbatch = 6\n[parameters.c]\ntype = 'choice'\n"
        'options = ["=x", "\'=x", " a", "a", "b\\rc", "d;=1"]\n'
    )
    call("ask", "--out", "batch.csv")
    lines = Path("batch.csv").read_bytes().decode().removesuffix("\n").split("\n")
    text = "\n".join([lines[0], *(line + "1.5" for line in lines[1:])])
    Path("batch.csv").write_bytes(text.encode())
    assert call("tell", "batch.csv").code == 0
    done = call("next", "--in", "batch.csv", "--batch", "1")  # all six are known
    assert done.code == 7, done.err


@pytest.mark.parametrize(
    "words",
    [
        ["0=failed", "1=1e200"],
        ["0=1.5", "1=failed", "2=1e200"],
    ],
)
def test_all_of_them_or_none(asked, words):
    before = Path("covey.jsonl").read_bytes()
    for extra in ([], ["--dry-run"]):
        done = asked("tell", *words, *extra)
        assert done.code == 5
        assert "within" in done.err
        assert Path("covey.jsonl").read_bytes() == before


@pytest.mark.parametrize("sem", ["-3", "1e200", "nan", "x"])
def test_a_standard_error_is_checked_before_anything_is_recorded(asked, sem):
    Path("sheet.csv").write_text(f"id,value,sem\n0,failed,\n1,1.5,{sem}\n2,2.5,0.1\n")
    before = Path("covey.jsonl").read_bytes()
    for extra in ([], ["--dry-run"]):
        done = asked("tell", "sheet.csv", *extra)
        assert done.code == 5
        assert "sheet.csv:3:" in done.err
        assert "Nothing was recorded." in done.err
        assert Path("covey.jsonl").read_bytes() == before


def test_failures_wait_for_values_that_cannot_be_recorded(call):
    """The file of a pool has changed: its values are refused, so its failures are not taken."""
    Path("pool.csv").write_text("a,b\n1,2\n3,4\n5,7\n")
    call("init", "--pool", "pool.csv", "--batch", "2")
    call("ask")
    before = Path("covey.jsonl").read_bytes()
    Path("pool.csv").write_text("a,b\n1,2\n3,4\n5,9\n")
    for extra in ([], ["--dry-run"]):
        assert call("tell", "0=failed", "1=1.5", *extra).code == 5
        assert Path("covey.jsonl").read_bytes() == before


def test_a_dry_run_refuses_what_belongs_to_another_study(asked):
    text = Path("covey.toml").read_text()
    Path("covey.toml").write_text(text.replace('goal = "max"', 'goal = "min"'))
    assert asked("tell", "0=1.5").code == 5
    assert asked("tell", "0=1.5", "--dry-run").code == 5


def test_a_standard_error_that_comes_later_is_recorded(asked):
    asked("tell", "0=1.5", "1=2.5")
    Path("sheet.csv").write_text("id,value,sem\n0,1.5,0.2\n1,2.5,\n2,3.5,0.3\n")
    assert "1 standard error" in asked("tell", "sheet.csv", "--dry-run").out
    done = asked("tell", "sheet.csv")
    assert done.out == ("1 result recorded, 1 standard error added, 2 known already\n")
    assert [t["sem"] for t in asked("export", "--json").json["trials"]] == [0.2, None, 0.3]
    before = Path("covey.jsonl").read_bytes()
    assert asked("tell", "sheet.csv", "--json").json["sems"] == 0
    assert Path("covey.jsonl").read_bytes() == before


def test_another_standard_error_for_a_told_trial_is_refused(asked):
    asked("tell", "-", stdin="id,value,sem\n0,1.5,0.2\n")
    done = asked("tell", "-", stdin="id,value,sem\n0,1.5,0.3\n")
    assert done.code == 5
    assert "with the sem 0.2 already" in done.err
    assert asked("tell", "-", stdin="id,value,sem\n0,1.5,\n").code == 0


def test_columns_may_be_spelled_in_capitals(asked):
    assert asked("tell", "-", stdin="ID,Value,SEM\n0,1.5,0.2\n").code == 0
    assert asked("export", "--json").json["trials"][0]["sem"] == 0.2
    done = asked("tell", "-", stdin="id,value,SEM,Sem\n1,1.5,0.2,0.3\n")
    assert done.code == 5
    assert "'SEM' and 'Sem'" in done.err


def test_a_parameter_in_capitals_is_no_standard_error(call):
    call("init", "--real", "SEM=0:1", "--batch", "1")
    call("ask", "--out", "batch.csv")
    filled([1.5])
    assert call("tell", "batch.csv").code == 0
    assert call("export", "--json").json["trials"][0]["sem"] is None


def test_the_value_may_stand_in_a_column_of_another_name(asked):
    Path("sheet.csv").write_text("id,yield\n0,1.5\n1,failed\n")
    assert "--value" in asked("tell", "sheet.csv").err
    assert asked("tell", "sheet.csv", "--value", "yield").code == 0
    assert asked("export", "--json").json["trials"][0]["value"] == 1.5
    done = asked("tell", "batch.csv", "--value", "lr")
    assert done.code == 2
    assert "a parameter" in done.err


def test_columns_that_are_not_recorded_are_named(asked):
    text = "id,value,notes,by-product,empty\n0,1.5,slow,,\n1,2.5,,7,\n"
    done = asked("tell", "-", stdin=text)
    assert done.code == 0
    assert "not recorded: notes, by-product" in done.err
    assert "empty" not in done.err
    assert "not recorded" not in asked("tell", "-", stdin=asked("export").out).err
    done = asked("tell", "-", stdin="id,value,reason\n0,1.5,spilt\n")  # no export of ours
    assert "not recorded: reason" in done.err


def test_booleans_and_numbers_come_back_from_a_spreadsheet(call):
    Path("covey.toml").write_text(
        "[study]\nbatch = 4\n[parameters.hot]\ntype = 'choice'\noptions = [true, false]\n"
        "[parameters.dose]\ntype = 'choice'\noptions = ['1.0', '0.50']\n"
    )
    call("ask", "--out", "batch.csv")
    text = Path("batch.csv").read_text()
    for ours, theirs in (("True", "TRUE"), ("False", "FALSE"), ("1.0", "1"), ("0.50", "0.5")):
        text = text.replace(ours, theirs)
    Path("batch.csv").write_text(text.replace(",\n", ",1.5\n"))
    assert call("tell", "batch.csv").code == 0
    swapped = text.replace(",\n", ",1.5\n").replace("TRUE", "?").replace("FALSE", "TRUE")
    Path("batch.csv").write_text(swapped.replace("?", "FALSE"))
    assert "Was the sheet sorted" in call("tell", "batch.csv").err


@pytest.mark.parametrize("text", ["0=1_000", "9" * 5000 + "=1", "0=१"])
def test_what_only_looks_like_a_number_is_refused(asked, text):
    assert asked("tell", text).code == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,value\n0.5,1\n", "no column 'lr'"),
        ("x,value\n0.5,1\n", "`covey ask --out` writes ids"),
        ("id,value\n0,1\nA7,2\n", "Leave out rows of no trial"),
        ("id,value\n0,1\n24,2\n", "`covey add` takes rows as measurements"),
        ("id,value\n0,cancelled\n", "write failed if it crashed, nothing if it is to come"),
        ("id,value\n0,1\n0;2\n", "1 cell, but 2 columns"),
    ],
)
def test_what_cannot_be_told_names_a_way(asked, text, words):
    done = asked("tell", "-", stdin=text)
    assert done.code == 5
    assert words in done.err


def test_a_result_beyond_belief_is_said_and_included_when_it_is_confirmed(study):
    study("ask", "--batch", "12")
    values = [f"{i}={0.5 + i % 5}" for i in range(11)]
    planned = study("tell", *values, "11=1e6", "--dry-run")
    assert "trial 11" in planned.err
    told = study("tell", *values, "11=1e6", "--json")
    assert told.json["excluded"] == [11]
    assert told.err.count("beyond belief") == 1
    assert "beyond belief" in study("logs", "11").out
    assert study("best", "--json").json["best"]["id"] != 11
    assert "beyond belief" in study("status").out
    assert study("include", "11", "--reason", "measured twice").code == 0
    study("ask", "--batch", "2")
    assert study("tell", "12=0.5", "--json").json["excluded"] == []
    assert study("best", "--json").json["best"]["id"] == 11
