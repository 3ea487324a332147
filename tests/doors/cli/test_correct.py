"""The commands that correct what is known of trials: ids and ranges in, one event or none."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import covey
from covey.cli.correct import ids_in_words
from covey.cli.output import ExitCode, Stop
from covey.errors import several


@pytest.fixture
def told(call):
    """Eight trials: 0 to 4 told, 5 and 6 failed, 7 pending."""
    assert call("init", "--real", "x=0:1", "--batch", "8", "--seed", "3").code == 0
    assert call("ask").code == 0
    values = ["0=1", "1=2", "2=30", "3=4", "4=5"]
    assert call("tell", *values, "5=failed", "6=failed").code == 0
    return call


def history():
    return covey.Study.load("covey.jsonl", read_only=True).history


def test_ids_and_ranges():
    assert ids_in_words(["3,5", "8-10"], 24) == (3, 5, 8, 9, 10)
    assert ids_in_words(["5-7,6", "2"], 24) == (5, 6, 7, 2)  # each once
    assert ids_in_words(["3,", "5"], 24) == (3, 5)  # "3, 5", as a shell splits it
    assert ids_in_words(["4-4"], 5) == (4,)


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (["a"], "got 'a'", ExitCode.USAGE),
        (["-3"], "got '-3'", ExitCode.USAGE),
        (["3-"], "got '3-'", ExitCode.USAGE),
        (["1.5"], "got '1.5'", ExitCode.USAGE),
        (["٣"], "got '٣'", ExitCode.USAGE),
        (["5-2"], r"5-2.*2-5", ExitCode.USAGE),
        ([","], "3,5 or 24-31", ExitCode.USAGE),
        (["0-99999999999999999"], "trial 99999999999999999", ExitCode.INVALID),  # and is not listed
        (["9" * 40], "ids are whole numbers", ExitCode.USAGE),
    ],
)
def test_what_is_no_id_is_named(words, said, code):
    with pytest.raises(Stop, match=said) as caught:
        ids_in_words(words, 8)
    assert caught.value.code == code
    with pytest.raises(Stop, match="nothing was asked for yet"):
        ids_in_words(["0"], 0)


# Each command: what is typed, the trials it is about, what it says is done, what they are then.
COMMANDS = [
    (["exclude", "2-3", "-r", "wet"], [2, 3], "excluded", ("told", True)),
    (["include", "0", "-r", "dry"], [0], "included", ("told", False)),
    (["fail", "7", "-r", "hot"], [7], "failed", ("failed", False)),
    (["fail", "1,4", "--told", "-r", "nan"], [1, 4], "failed", ("failed", False)),
    (["cancel", "7"], [7], "cancelled", ("cancelled", False)),
    (["retry", "5-6"], [5, 6], "pending again", ("pending", False)),
    (["note", "1,4", "cloudy"], [1, 4], "noted", ("told", False)),
    (["amend", "3=-4.5", "1=7", "-r", "typo"], [3, 1], "amended", ("told", False)),
]
EACH = pytest.mark.parametrize(
    ("words", "ids", "said", "then"), COMMANDS, ids=[" ".join(row[0]) for row in COMMANDS]
)


@pytest.fixture
def corrected(told):
    """Those trials, of which 0 is excluded."""
    assert told("exclude", "0", "-r", "wet").code == 0
    return told


@EACH
def test_each_command_says_what_it_has_done_to_which_trials(corrected, words, ids, said, then):
    done = corrected(*words)
    noun = "1 trial is" if len(ids) == 1 else f"{len(ids)} trials are"
    assert (done.code, done.out) == (0, f"{noun} {said}\n")
    assert [(history()[i].status, history()[i].excluded) for i in ids] == [then] * len(ids)


@EACH
def test_each_command_can_be_tried_first(corrected, words, ids, said, then):
    before = Path("covey.jsonl").read_bytes()
    done = corrected(*words, "--dry-run")
    assert done.out == f"{several(len(ids), 'trial')} would be {said}\n"
    fields = corrected(*words, "--dry-run", "--json").json
    assert fields == {
        **{"schema": f"covey.{words[0]}/1", "ids": ids, "dry_run": True},
        **{"pending": 1, "best": None},
    }
    assert Path("covey.jsonl").read_bytes() == before


@EACH
def test_each_command_needs_a_journal_trials_and_if_it_asks_for_one_a_reason(
    call, words, ids, said, then
):
    call("init", "--real", "x=0:1")
    assert call(*words).code == 3
    assert not Path("covey.jsonl").exists()
    call("ask")
    assert call(words[0]).code == 2
    if words[0] in ("exclude", "include", "amend"):
        assert call(*words[:-2]).code == 2


def test_what_is_taken_back_is_as_if_it_had_never_been(told):
    before = history()
    assert "best so far: 5 (trial 4)" in told("exclude", "2", "--reason", "wrong vial").err
    assert history().reason(2) == "wrong vial"
    assert told("include", "2", "--reason", "right vial", "--json").json["best"] == 2
    assert history().trials == before.trials


def test_an_amended_value_that_is_excluded_stays_so_and_is_said_to(told):
    told("exclude", "2-3", "--reason", "wrong vial")
    done = told("amend", "2=3", "0=2", "--reason", "typing error")
    assert done.code == 0
    assert "still excluded: trial 2; `covey include 2" in done.err
    assert history().trial(2).excluded
    assert "excluded" not in told("amend", "1=7", "--reason", "typing error").err


def test_a_retried_trial_has_not_ended(told):
    cells = list(csv.DictReader(io.StringIO(told("export").out)))
    assert cells[5]["ended"]
    told("retry", "5")
    cells = list(csv.DictReader(io.StringIO(told("export").out)))
    assert cells[5]["ended"] == cells[5]["seconds"] == ""
    assert cells[6]["ended"]


def test_values_are_amended_all_or_none(told):
    before = Path("covey.jsonl").read_bytes()
    for wrong in ("3=x", "7=1", "99=1", "3=nan", "3=1e200", "2=1"):
        done = told("amend", "2=3.0", wrong, "--reason", "typing error")
        assert done.code == 5, wrong
    assert told("amend", "2:3.0", "--reason", "typing error").code == 2
    assert told("amend", "2=3.0").code == 2  # why?
    assert Path("covey.jsonl").read_bytes() == before
    done = told("amend", "2=3.0", "3=-4.5", "--reason", "typing error", "--sem", "0.5")
    assert done.out == "2 trials are amended\n"
    assert [(t.value, t.sem) for t in history().trials[2:4]] == [(3.0, 0.5), (-4.5, 0.5)]
    length = len(history().events)
    done = told("amend", "2=3.0", "3=-4", "--reason", "typing error")  # one is known
    assert "1 value known already" in done.err
    assert len(history().events) == length + 1
    assert history().trial(3).sem == 0.5  # it keeps the one it had


def test_notes_are_shown(told):
    assert told("note", "0,7", "cloudy").code == 0
    assert told("note", "0", "and cold").code == 0
    assert told("note", "0", " ").code == 5
    assert "note: cloudy\nnote: and cold\n" in told("logs", "0").out
    assert told("logs", "7", "--json").json["notes"] == ["cloudy"]
    rows = list(csv.DictReader(io.StringIO(told("export").out)))
    assert [row["notes"] for row in rows] == ["cloudy; and cold", *[""] * 6, "cloudy"]
    assert "excluded" not in rows[0]
    assert told("export", "--json").json["trials"][0]["notes"] == ["cloudy", "and cold"]


WRONG = [
    (["exclude", "7", "-r", "x"], "trial 7"),
    (["exclude", "0-8", "-r", "x"], "trial 8"),
    (["exclude", "0,5", "-r", "x"], "trial 5"),
    (["exclude", "0", "-r", ""], "reason"),
    (["include", "0", "-r", "x"], "trial 0"),
    (["retry", "5,0"], "trial 0"),
    (["retry", "7"], "trial 7"),
    (["cancel", "0"], "trial 0"),
    (["fail", "5"], "trial 5"),
    (["note", "99", "hello"], "trial 99"),
]


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["", "dry"])
@pytest.mark.parametrize(("words", "said"), WRONG, ids=lambda given: str(given)[:24])
def test_what_does_not_fit_is_refused_and_nothing_is_recorded(told, words, said, dry):
    before = Path("covey.jsonl").read_bytes()
    done = told(*words, *dry)
    assert (done.code, done.out) == (5, "")
    assert said in done.err
    assert done.err.count("\n") == 1
    assert Path("covey.jsonl").read_bytes() == before


def test_errors_are_json_where_data_is(told):
    done = told("exclude", "7", "--reason", "x", "--json")
    assert json.loads(done.err)["error"] == "invalid"
    assert told("exclude", "7").code == 2  # no reason
    assert told("retry").code == 2


def test_whoever_looks_sees_what_is_excluded(told):
    told("exclude", "2,3", "--reason", "wrong vial")
    status = told("status").out
    assert "trials: 2 failed, 1 pending, 5 told (2 excluded)" in status
    assert "excluded: trial 3 (batch 1): wrong vial\nexcluded: trial 2" in status
    assert told("status", "--json").json["excluded"][0] == {
        **{"id": 2, "batch": 1, "reason": "wrong vial"}
    }
    assert told("best", "--json").json["best"]["id"] == 4
    assert told("logs", "2").out.startswith("trial 2 (batch 1): told 30.0, excluded\nreason: wrong")
    rows = list(csv.DictReader(io.StringIO(told("export").out)))
    assert [row["excluded"] for row in rows] == ["", "", "excluded", "excluded", *[""] * 4]
    assert rows[2]["reason"] == "wrong vial"
    exported = told("export", "--json").json["trials"]
    assert [t["id"] for t in exported if t.get("excluded")] == [2, 3]


def test_an_export_with_an_exclusion_can_be_told(told):
    told("exclude", "2", "--reason", "wrong vial")
    assert told("export", "--out", "all.csv").code == 0
    assert "excluded" in Path("all.csv").read_text().splitlines()[0]
    done = told("tell", "all.csv")
    assert done.code == 0
    assert "not recorded" not in done.err  # its columns are ours


def test_with_all_excluded_the_next_batch_is_a_design(told):
    told("cancel", "7")
    done = told("exclude", "0-4", "--reason", "the reader was off")
    assert "as if nothing was told" in done.err
    best = told("best")
    assert (best.code, best.err) == (7, "covey: every result is excluded, so there is no best.\n")
    done = told("ask")
    assert done.code == 0
    assert "after 0 results" in done.err
    assert told("report").code == 0
    page = Path("covey-report.html").read_text()
    assert "Every result is excluded, so there is no best" in page
    assert "the reader was off" in page


def test_telling_another_value_names_the_way_to_amend_it(told):
    done = told("tell", "2=3")
    assert done.code == 5
    assert "covey amend 2=VALUE --reason WHY" in done.err


def test_a_result_that_is_worth_nothing_fails_by_name_and_for_a_reason(told):
    done = told("fail", "2", "--reason", "nan")
    assert done.code == 5
    assert "already told 30.0" in done.err
    assert "told=True" in done.err
    assert told("fail", "2", "--told").code == 5  # why?
    assert "would be failed" in told("fail", "2", "--told", "-r", "nan", "--dry-run").out
    assert "5 told" in told("status").out
    assert told("fail", "2", "--told", "--reason", "the loss was nan").code == 0
    out = told("status").out
    assert "3 failed, 1 pending, 4 told" in out
    assert "failed: trial 2 (batch 1): the loss was nan" in out
    assert told("retry", "2").code == 0
    assert told("tell", "2=31").code == 0
    assert told("logs", "2").out.startswith("trial 2 (batch 1): told 31.0\n")


def test_a_cancelled_trial_says_why(told):
    pending = told("status", "--json").json["open"][0]
    assert told("cancel", str(pending), "--reason", "no vial").code == 0
    assert (
        f"trial {pending} (batch 1): cancelled\nreason: no vial\n" in told("logs", str(pending)).out
    )
    exported = told("export", "--json").json["trials"][pending]
    assert (exported["status"], exported["reason"]) == ("cancelled", "no vial")
