"""The tutorial about plates is run: each command, what it prints, and the code of both requests."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

from covey import Study

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "plates-tutorial.md").read_text()
BENCH = ROOT / "examples" / "made_up_bench.py"


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


def steps():
    """The page as it is followed: what is typed with what is shown, and what goes into the file."""
    for kind, block in re.findall(r"```(console|toml)\n(.*?)```", PAGE, re.DOTALL):
        if kind == "toml":
            yield "toml", block
            continue
        for part in block.removeprefix("$ ").split("\n$ "):
            command, *shown = part.splitlines()
            yield command, [line for line in shown if line != "..."]


def is_shown(line, printed):
    """Whether a line was printed; one that ends in ... need only begin so."""
    if line.endswith(" ..."):
        return any(other.startswith(line.removesuffix("...")) for other in printed)
    return line.rstrip() in printed


def test_a_line_that_was_not_printed_is_noticed():
    assert is_shown("p1: 46 ...", ["p1: 46 trials"])
    assert not is_shown("p1: 47 ...", ["p1: 46 trials"])
    assert not is_shown("p1: 46", ["p1: 46 trials"])


def follow(call, monkeypatch, words):
    """Run one command of the page; the lines that it prints."""
    if words[0] == "python":
        assert words[1] == BENCH.name
        monkeypatch.setattr(sys, "argv", words[1:])
        runpy.run_path(str(BENCH), run_name="__main__")
        return []
    done = call(*words[1:])
    assert done.code == 0, done.err
    return [line.rstrip() for line in (done.out + done.err).splitlines()]


def test_the_page_can_be_followed_and_prints_what_it_shows(call, monkeypatch):
    pytest.importorskip("openpyxl")
    followed = 0
    for command, what in steps():
        if command == "toml":
            with Path("covey.toml").open("a") as file:
                file.write(f"\n{what}")
            continue
        printed = follow(call, monkeypatch, shlex.split(command))
        for line in what:
            assert is_shown(line, printed), (command, line, printed)
        followed += 1
    assert followed == 17
    study = Study.load("covey.jsonl")
    for plate in study.plates:
        assert len(plate.held) == 1
        assert len({well.point["temperature"] for well in plate.wells if well.point}) == 1
        assert not plate.missing
    marked = study.plate("p1").well("C7")
    assert marked.mark == "bubble"
    assert study.history[marked.trial].sem is None  # one well is left of two
    assert study.history[122].value == 16.75
    assert study.plate("p2").well("D5").mark == "a drop on the lid"
    assert [trial.id for trial in study.history.told if trial.excluded] == [110, 111]
    report = Path("covey-report.html").read_text()
    for why in ("ligand bottles mixed up", "peak integrated wrongly", "a drop on the lid"):
        assert why in report


@pytest.mark.parametrize("block", blocks("python"), ids=["plates", "paint"])
def test_the_requests_are_served_in_fifteen_lines(block, capsys):
    assert len([line for line in block.splitlines() if line.strip()]) <= 15
    names: dict[str, object] = {}
    exec(compile(block, "plates-tutorial.md", "exec"), names)
    study, space = names["study"], names["space"]
    assert capsys.readouterr().out
    assert all(trial.status == "told" for trial in study.history.trials)
    if "temperature" in space.names:
        assert [len(plate.trials) for plate in study.plates] == [96, 96]
        levels = [
            {t.point["temperature"] for t in map(study.history.trial, p.trials)}
            for p in study.plates
        ]
        assert [len(level) for level in levels] == [1, 1]
    else:
        assert len(study.outcomes.goals) == 7
        assert all(
            sum(trial.point.values()) == pytest.approx(1.0) for trial in study.history.trials
        )
        assert len(study.plate("p1").used) == 6


def test_the_code_of_the_page_about_plates_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "plates.md").read_text()
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "plates.md", "exec"), names)
    assert capsys.readouterr().out
    made = names["study"].history.corrections
    assert [one.what for one in made] == ["p1 C4 amended to 0.93", "p1 C4 marked", "p1 C4 unmarked"]
