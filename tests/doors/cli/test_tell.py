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
        ("id,value\n0,1\n0,2\n", "<sheet>:3: trial 0 comes twice."),
        ('id,value\n0,1\n1,"2,5"\n', "Write decimal numbers with a point."),
        ("id,value\nx,1\n", "<sheet>:2: an id is a whole number, got 'x'."),
        ("id,valeu\n0,1\n", "no column 'value'; it has id, valeu. Did you mean 'valeu'?"),
        ("id,value\n0,1,2\n", "<sheet>:2: 3 cells, but 2 columns"),
        ("id;value\n0;1\n", "semicolons"),
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
