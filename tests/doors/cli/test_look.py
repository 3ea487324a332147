import csv
import io
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
    call("init", "--real", "value=0:1", "--choice", "status==cmd,b", "--batch", "4")
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
