import sys
from pathlib import Path

import pytest

from covey.cli.doctor import demo
from covey.cli.output import Stop


def test_what_an_issue_needs(study):
    assert "nothing was asked yet" in study("doctor").out
    study("ask")
    facts = study("doctor", "--json").json
    assert facts["packages"]["numpy"] != "missing"
    assert facts["fsync_ms"] > 0.0
    assert facts["study"] == "covey.toml is fine, 1 event verifies"
    Path("covey.toml").write_text("[studdy]")
    assert "error: " in study("doctor").out
    Path("empty").mkdir()
    assert "no covey.toml here" in study("doctor", "empty").out


def test_a_folder_that_cannot_be_written(call):
    assert "cannot write here" in call("doctor", "none").out


# `covey demo`


def test_the_demo_talks_on_stderr_and_answers_on_stdout(tmp_path, capsys):
    out = tmp_path / "demo.png"
    demo(batch=3, rounds=2, seed=0, out=out)
    said = capsys.readouterr()
    assert said.out.startswith("best value ")
    assert f"picture saved to {out}" in said.out
    assert "batch 2/2: best" in said.err
    assert out.exists()


def test_without_matplotlib_the_demo_still_answers(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    demo(batch=2, rounds=1, seed=0, out=tmp_path / "demo.png")
    said = capsys.readouterr()
    assert said.out.startswith("best value ")
    assert "covey[plot]" in said.err.replace("\n", "")


@pytest.mark.parametrize("name", ["demo.png", "demo.svg", "demo.pdf"])
def test_the_demo_draws_its_picture_again_if_it_is_forced(tmp_path, name):
    demo(batch=2, rounds=1, seed=0, out=tmp_path / name)
    with pytest.raises(Stop, match=name):
        demo(batch=2, rounds=1, seed=0, out=tmp_path / name)
    demo(batch=2, rounds=1, seed=0, out=tmp_path / name, force=True)
