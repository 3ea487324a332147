"""`covey extend`: the file is edited, the journal goes on."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

import covey


@pytest.fixture
def told(call):
    """Four trials told of five, the last pending at x about 0.9."""
    flags = ["--real", "x=0:1", "--choice", "s=water,thf", "--batch", "5", "--seed", "3"]
    assert call("init", *flags).code == 0
    assert call("ask").code == 0
    assert call("tell", "0=1", "1=2", "2=3", "3=4").code == 0
    return call


def edit(*changes):
    text = Path("covey.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    Path("covey.toml").write_text(text)


def study():
    return covey.Study.load("covey.jsonl", read_only=True)


WIDER = ("high = 1.0", "high = 2.0")


def test_an_edited_file_is_refused_with_the_command_that_goes_on(told):
    edit(WIDER)
    for words in (["ask"], ["ask", "--dry-run"], ["advice"]):
        done = told(*words)
        assert done.code == 5
        assert "`covey extend --reason ...`" in done.err
        assert "x: real, 0.0 to 2.0 (was real, 0.0 to 1.0)." in done.err
        assert "{" not in done.err  # no internals


def test_the_refusal_names_all_that_differs(told):
    edit(WIDER, ('["water", "thf"]', '["water", "dmf"]'))
    done = told("ask")
    assert "x: real, 0.0 to 2.0 (was real, 0.0 to 1.0); s: new 'dmf'; gone 'thf'." in done.err


def test_commands_that_only_show_go_by_the_journal_and_say_so(told):
    before = told("best", "--json").json, told("export").out
    edit(WIDER)
    for words in (["status"], ["best"], ["report"], ["export"], ["logs", "0"]):
        done = told(*words)
        assert done.code == 0
        assert done.err.count("`covey extend --reason ...`") == 1
        assert "x: real, 0.0 to 2.0 (was real, 0.0 to 1.0)" in done.err
    assert (told("best", "--json").json, told("export").out) == before
    edit(WIDER[::-1])
    assert "covey extend" not in told("best").err  # the control


def test_what_differs_is_shown_and_then_written(told):
    edit(WIDER, ('["water", "thf"]', '["water", "thf", "dmf"]'))
    before = Path("covey.jsonl").read_bytes()
    dry = told("extend", "--reason", "the best is at the edge", "--dry-run")
    assert dry.code == 0
    assert dry.out == "x: real, 0.0 to 2.0 (was real, 0.0 to 1.0)\ns: new 'dmf'\n"
    assert Path("covey.jsonl").read_bytes() == before
    done = told("extend", "--reason", "the best is at the edge")
    assert (done.code, done.out) == (0, dry.out)
    assert Path("covey.jsonl").read_bytes().count(b"\n") == before.count(b"\n") + 1
    shown = told("status").out
    assert "the space was extended after 1 batch: x: real, 0.0 to 2.0" in shown
    assert "Reason: the best is at the edge" in shown
    assert told("status", "--json").json["extended"] == [
        {
            "reason": "the best is at the edge",
            "batches": 1,
            "changes": dry.out.splitlines(),
        }
    ]
    assert told("tell", "4=2").code == 0
    assert told("ask", "--batch", "6").code == 0
    assert max(t.point["x"] for t in study().history) > 1.0
    again = told("extend", "--reason", "the same")
    assert again.code == 7
    assert "nothing to extend" in again.err


def test_pending_trials_outside_are_named_and_can_be_told_with_the_edited_file(told):
    pending = study().history[4].point["x"]
    edit(("high = 1.0", f"high = {pending / 2}"))
    refused = told("extend", "--reason", "it boils")
    assert refused.code == 5
    assert "1 pending trial (4) would be outside" in refused.err
    assert told("extend", "--reason", "it boils", "--dry-run").code == 5
    assert told("tell", "4=0.5", "--dry-run").code == 0
    assert told("tell", "4=0.5").code == 0
    done = told("extend", "--reason", "it boils", "--json")
    assert done.code == 0
    outside = [t.id for t in study().history if t.point["x"] > pending / 2]
    assert done.json == {
        **{"schema": "covey.extend/1", "dry_run": False, "pending": 0, "outside": outside},
        "differences": [f"x: real, 0.0 to {pending / 2} (was real, 0.0 to 1.0)"],
    }
    # All that looks at trials still does, with old points outside.
    rows = list(csv.DictReader(io.StringIO(told("export").out)))
    assert max(float(row["x"]) for row in rows) > pending / 2
    for words in (
        ["best"],
        ["report"],
        ["ask", "--batch", "3"],
        ["logs", "4"],
        ["export", "--json"],
    ):
        assert told(*words).code == 0, words
    assert "The space was extended after 1 batch" in Path("covey-report.html").read_text()
    assert "it boils" in Path("covey-report.html").read_text()
    assert told("amend", "4=0.7", "--reason", "typing error").code == 0
    assert told("exclude", "4", "--reason", "wet").code == 0


def test_a_new_parameter_needs_the_value_that_old_trials_had(told):
    with Path("covey.toml").open("a") as file:
        file.write('[parameters.p]\ntype = "real"\nlow = 0.5\nhigh = 2.0\n')
    done = told("extend", "--reason", "a pump")
    assert done.code == 5
    assert "--set p=" in done.err
    assert told("extend", "--reason", "a pump", "--set", "p").code == 2
    assert told("extend", "--reason", "a pump", "--set", "p=9").code == 5
    assert told("extend", "--reason", "a pump", "--set", "q=9").code == 5
    assert len(study().history.events) == 2
    assert told("extend", "--reason", "a pump", "--set", "p=1.0").code == 0
    assert {t.point["p"] for t in study().history} == {1.0}
    sheet = told("ask").out  # the pending trial, which has it too
    assert sheet.splitlines()[0] == "id,x,s,p,value"


def test_a_catalogue_grows(call):
    rows = [f"m{i},{i / 10},{'ab'[i % 2]}" for i in range(12)]
    Path("c.csv").write_text("\n".join(["name,x,s", *rows]) + "\n")
    assert (
        call("init", "--pool", "c.csv", "--label", "name", "--batch", "4", "--seed", "1").code == 0
    )
    assert call("ask").code == 0
    assert call("tell", "0=1", "1=2", "2=3").code == 0
    more = [f"n{i},{2 + i / 10},c" for i in range(6)]
    Path("c.csv").write_text("\n".join(["name,x,s", *rows, *more]) + "\n")
    assert call("ask").code == 5
    assert call("status").code == call("export").code == 0
    for words in (["best"], ["report"]):  # their model needs the candidates, which are gone
        refused = call(*words)
        assert refused.code == 5
        assert "18 candidates (were 12)" in refused.err
        assert "`covey extend --reason ...`" in refused.err
    done = call("extend", "--reason", "a new delivery")
    assert (done.code, done.out) == (0, "18 candidates (were 12)\n")
    assert call("tell", "3=4").code == 0
    assert call("ask", "--batch", "14").code == 0  # all that are left
    assert call("report").code == 0
    assert {t.point["name"] for t in study().history} >= {f"n{i}" for i in range(6)}
    # Rows that vanish stay in the model as results.
    assert call("cancel", "4-17").code == 0
    Path("c.csv").write_text("\n".join(["name,x,s", *more]) + "\n")
    done = call("extend", "--reason", "sold out")
    assert done.code == 0
    assert "4 results are outside and stay in the model" in done.err
    assert call("ask", "--batch", "6").code == 0
    assert len(study().history.told) == 4


def test_without_a_journal_there_is_nothing_to_extend(call):
    assert call("init", "--real", "x=0:1").code == 0
    done = call("extend", "--reason", "wider")
    assert done.code == 3
    assert "nothing to extend" in done.err
    assert call("extend").code == 2


def test_a_new_branch_and_a_new_parameter_in_an_old_one(call):
    flags = ["--choice", "s=water,thf", "--real", "x=0:1:when=s=thf", "--batch", "4", "--seed", "3"]
    assert call("init", *flags).code == 0
    assert call("ask").code == 0
    assert call("tell", "0=1", "1=2", "2=3", "3=4").code == 0
    text = Path("covey.toml").read_text().replace('["water", "thf"]', '["water", "thf", "dmf"]')
    more = '[parameters.p]\ntype = "real"\nlow = 0\nhigh = 2\nwhen = {s = ["thf", "dmf"]}\n\n'
    Path("covey.toml").write_text(text.replace("[parameters.x]", f"{more}[parameters.x]"))
    short = call("extend", "--reason", "a pump")
    assert short.code == 5
    assert "'p' is present now in 3 trials of before that lack it" in short.err
    done = call("extend", "--reason", "a pump", "--set", "p=1")
    assert done.code == 0
    assert "p: new, real, 0.0 to 2.0, when s is 'thf' or 'dmf'" in done.out
    assert all((t.point.get("p") == 1.0) == (t.point["s"] == "thf") for t in study().history)
    assert call("ask").code == 0
    assert call("report").code == 0
    assert call("export").code == 0
