import csv
import io
import re
import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("jinja2", reason="pip install 'covey[report]'")


@pytest.fixture
def told(study):
    study("ask")
    study("tell", "0=1.5", "1=failed", "2=2.5")
    return study


def test_status_before_and_after(study):
    assert "nothing was asked yet" in study("status").out
    assert study("status", "--json").json["trials"] == {}
    assert study("best").code == 3
    study("ask")
    assert "next: covey tell" in study("status").out
    assert study("best").code == 7
    study("tell", "0=1.5", "1=failed", "2=2.5")
    found = study("status", "--json").json
    assert found["trials"] == {"told": 2, "failed": 1}
    assert found["best"]["value"] == 2.5
    assert "best: 2.5 (trial 2)" in study("status").out


def test_best_in_words_and_in_json(told):
    assert told("best").out.splitlines()[1].split()[:2] == ["best", "2.5"]
    found = told("best", "--json").json
    assert found["best"]["id"] == 2
    assert set(found["recommended"]) == {"point", "mean", "std"}


def test_export_holds_every_trial_exactly(told):
    rows = list(csv.DictReader(io.StringIO(told("export").out)))
    trials = told("export", "--json").json["trials"]
    assert [float(r["lr"]) for r in rows] == [t["point"]["lr"] for t in trials]
    assert [r["status"] for r in rows] == ["told", "failed", "told"]
    told("export", "--out", "all.csv")
    assert Path("all.csv").read_text() == told("export").out


def test_a_parameter_may_bear_the_name_of_a_column(call):
    call("init", "--real", "value=0:1", "--choice", "status==cmd,b", "--batch", "4", "--seed", "0")
    call("ask")
    text = call("export").out
    assert "id,status,value,sem,origin,point.value,point.status" in text
    assert "'=cmd" in text
    assert ",=cmd" not in text


def test_a_report_is_one_file(told):
    done = told("report", "--out", "page.html")
    assert done.code == 0, done.err
    assert Path("page.html").read_text().lower().startswith("<!doctype html>")
    assert "headline" in told("report", "--json").json


def test_whoever_looks_is_refused_where_whoever_asks_is(told):
    """Another goal or seed in the file than in the journal: nothing said about it would be true."""
    text = Path("covey.toml").read_text()
    commands = (
        ["ask", "--dry-run"],
        ["tell", "--dry-run", "0=1"],
        ["ask"],
        ["status"],
        ["best"],
        ["export"],
        ["report"],
    )
    for other in (text.replace('"max"', '"min"'), text.replace("seed = 1", "seed = 2")):
        assert other != text
        Path("covey.toml").write_text(other)
        said = {told(*words).err.splitlines()[-1] for words in commands}
        assert len(said) == 1
        assert "the journal belongs to a study with another" in said.pop()
        assert {told(*words).code for words in commands} == {5}
    Path("covey.toml").write_text(text)
    assert told("status").code == 0


@pytest.fixture
def failing(call):
    """Six evaluations by a command: trial 1 fails with a message, in the first batch."""
    Path("f.py").write_text(
        "import os, sys\n"
        "print('loading', sys.argv[1])\n"
        "if os.environ['COVEY_TRIAL'] == '1':\n"
        "    print('<b>layers</b>', file=sys.stderr)\n"
        "    sys.exit('CUDA out \\x1b[31mof memory')\n"
        "print(1.0)\n"
    )
    command = ["--", sys.executable, "f.py", "{x.x}"]
    call("init", "--real", "x=0:1", "--batch", "3", "--seed", "0", *command)
    assert call("run", "--rounds", "2").code == 0
    return call


def test_status_says_why_trials_failed(failing):
    out = failing("status").out
    assert re.search(
        r"trial 1 \(batch 1\): the command ended with status 1: .*out .*of memory", out
    )
    assert "covey logs 1" in out
    assert "\x1b" not in out
    (one,) = failing("status", "--json").json["failures"]
    assert (one["id"], one["batch"]) == (1, 1)
    assert one["reason"].endswith("of memory")


def test_status_names_the_latest_of_many_failures_each_in_a_line(call):
    call("init", "--real", "x=0:1", "--batch", "9", "--seed", "0")
    call("ask")
    call("tell", *(f"{i}=failed" for i in range(9)))
    out = call("status").out
    assert [f"trial {i} " in out for i in range(9)] == [False] * 6 + [True] * 3
    assert "9 failed" in out
    assert len(call("status", "--json").json["failures"]) == 9


def test_an_export_says_why_when_and_in_which_batch(failing):
    rows = list(csv.DictReader(io.StringIO(failing("export").out)))
    fates = ["batch", "reason", "asked", "started", "ended", "seconds"]
    assert list(rows[0])[-6:] == fates
    assert [row["batch"] for row in rows] == ["1"] * 3 + ["2"] * 3
    assert [bool(row["reason"]) for row in rows] == [i == 1 for i in range(6)]
    assert "out of memory" in rows[1]["reason"].replace("\x1b[31m", "")
    for row in rows:
        assert row["asked"] <= row["started"] <= row["ended"]
        assert 0.0 < float(row["seconds"]) < 60.0
    described = failing("export", "--json").json["trials"]
    assert [str(t["batch"]) for t in described] == [row["batch"] for row in rows]
    assert [t["asked"] for t in described] == [row["asked"] for row in rows]


def test_a_parameter_keeps_its_column_beside_those_of_the_export(call):
    call("init", "--real", "reason=0:1", "--integer", "batch=1:9", "--batch", "2")
    call("ask")
    rows = list(csv.DictReader(io.StringIO(call("export").out)))
    assert 0.0 <= float(rows[0]["reason"]) <= 1.0
    assert rows[0]["trial.batch"] == "1"
    assert rows[0]["trial.reason"] == rows[0]["ended"] == rows[0]["seconds"] == ""


def test_logs_shows_the_reason_and_what_is_kept(failing):
    done = failing("logs", "1")
    assert done.code == 0
    assert "trial 1 (batch 1): failed" in done.out
    assert "status 1" in done.out
    assert "loading" in done.out  # its stdout
    assert "<b>layers</b>" in done.out  # its stderr
    assert "covey.jsonl.work" in done.out  # where it looked
    assert "\x1b" not in done.out
    shown = failing("logs", "1", "--json").json
    assert (shown["status"], shown["attempts"]) == ("failed", 1)
    assert [Path(log["file"]).name for log in shown["logs"]] == ["stdout", "stderr"]
    assert "loading" in shown["logs"][0]["text"]


def test_logs_says_where_it_looked_when_nothing_is_kept(failing):
    done = failing("logs", "0")
    assert done.code == 0
    assert "trial 0 (batch 1): told 1.0" in done.out
    assert "nothing is kept" in done.err
    assert "covey.jsonl.work" in done.err
    shutil.rmtree("covey.jsonl.work")
    gone = failing("logs", "1")
    assert "status 1" in gone.out
    assert "nothing is kept" in gone.err
    missing = failing("logs", "99")
    assert missing.code == 5
    assert "ids so far are 0 to 5" in missing.err


def test_logs_of_a_trial_that_covey_did_not_run(told):
    done = told("logs", "1")
    assert "trial 1 (batch 1): failed" in done.out
    assert "told as failed" in done.out
    assert "never run by covey" in done.err


def test_the_page_lists_what_failed_and_why(failing):
    failing("report", "--out", "page.html")
    page = Path("page.html").read_text()
    assert "of memory" in page
    assert "batches keep away from where trials failed" in page
    assert "&lt;b&gt;layers&lt;/b&gt;" in page
    assert "<b>layers</b>" not in page
    assert "\x1b" not in page
    (one,) = failing("report", "--json").json["failures"]
    assert (one["id"], one["status"]) == (1, "failed")


def test_advice_says_what_a_batch_would_gain(study):
    assert study("advice").code in (3, 7)
    study("ask")
    study("tell", "0=1.5", "1=2.5", "2=2.0")
    found = study("advice", "--up-to", "4", "--json").json
    assert [gain["size"] for gain in found["gains"]] == [1, 2, 4]
    said = study("advice", "--up-to", "4")
    assert said.code == 0
    assert "of the largest" in said.out
    assert "says the model" in said.err
    assert study("advice", "--up-to", "0").code == 5
    assert study("advice", "--worth", "-1").code == 5


def test_an_export_as_json_writes_the_file_too(study):
    study("ask")
    study("tell", "0=1")
    done = study("export", "--json", "--out", "trials.csv")
    assert len(done.json["trials"]) == 3
    assert len(Path("trials.csv").read_text().splitlines()) == 4


def test_logs_says_when_a_trial_ran_what_it_reported_and_what_was_noted(call):
    lines = ["1 0.25", "2 0.5", '{"value": 0.75, "latency": 3}']
    Path("f.py").write_text("\n".join(f"print({line!r})" for line in lines))
    call("init", "--real", "x=0:1", "--batch", "2", "--seed", "0", "--", sys.executable, "f.py")
    assert call("run", "--rounds", "1").code == 0
    call("note", "1", "cloudy")
    call("amend", "1=0.5", "--reason", "typing error")
    out = call("logs", "1").out
    when = r"asked 20..-..-.. ..:..:.. UTC, started .* UTC, ended .* UTC, took \d+ s\n"
    assert re.search(when, out)
    assert "2 reports, the last 0.5 at step 2\n" in out
    assert "latency: 3\n" in out
    assert "amended: typing error\n" in out
    assert "reason: " not in out  # it would say the same
    assert "note: cloudy\n" in out
    found = call("logs", "1", "--json").json
    assert found["reports"] == [[1, 0.25], [2, 0.5]]
    assert found["metrics"] == {"latency": 3}
    assert found["reason"] == "typing error"
    exported = call("export", "--json").json["trials"][1]
    assert {name: found[name] for name in ("asked", "started", "ended", "seconds")} == {
        name: exported[name] for name in ("asked", "started", "ended", "seconds")
    }
    assert exported["metrics"] == {"latency": 3}
    page = call("report", "--json").json
    assert page["remarks"] == [{"id": 1, "batch": 1, "text": "cloudy"}]
    assert page["rows"][1]["seconds"] == pytest.approx(found["seconds"], abs=1e-3)
    assert page["corrections"][0]["reason"] == "typing error"
