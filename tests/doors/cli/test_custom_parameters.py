"""A kind of parameter of one's own in covey.toml, in sheets and on the command line."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import tests.angle

import covey

TOML = """
[study]
seed = 1
batch = 3

[parameters.turn]
type = "angle"

[parameters.x]
type = "real"
low = 0.0
high = 1.0
"""


def test_a_batch_of_angles_is_asked_told_and_reported(call, angle):
    Path("covey.toml").write_text(TOML)
    asked = call("ask")
    assert asked.code == 0, asked.err
    rows = list(csv.DictReader(io.StringIO(asked.out)))
    assert all(0.0 <= float(row["turn"]) < 360.0 for row in rows)
    sheet = asked.out.splitlines()
    filled = [f"{line}{i}" for i, line in enumerate(sheet[1:])]
    told = call("tell", "-", stdin="\n".join([sheet[0], *filled]) + "\n")
    assert told.code == 0, told.err
    trials = covey.Study.load("covey.jsonl").history.trials
    assert [trial.value for trial in trials] == [0.0, 1.0, 2.0]
    assert [str(trial.point["turn"]) for trial in trials] == [row["turn"] for row in rows]
    held = call("ask", "--fix", "turn=-90", "--json")
    assert held.code == 0, held.err
    assert held.out.count('"turn": 270.0') == 3
    assert call("report", "--out", "page.html").code == 0
    assert "turn" in Path("page.html").read_text(encoding="utf-8")


def test_a_cell_that_is_no_angle_is_named(call, angle):
    Path("covey.toml").write_text(TOML)
    refused = call("ask", "--fix", "turn=north")
    assert refused.code == 5
    assert "turn: 'north' is not a number" in refused.err


def test_an_unknown_type_or_key_is_named(call, angle):
    Path("covey.toml").write_text(TOML.replace('"angle"', '"angel"'))
    assert "or \"angle\", got 'angel'. Did you mean 'angle'?" in call("ask").err
    Path("covey.toml").write_text(TOML.replace('"angle"', '"angle"\nlow = 1'))
    said = call("ask").err
    assert "[parameters.turn]" in said
    assert "no key 'low'" in said


def test_an_installed_package_brings_its_kind_without_an_import(tmp_path):
    (tmp_path / "angles.py").write_text(Path(tests.angle.__file__).read_text())
    package = tmp_path / "angles-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: angles\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[covey.parameters]\nangle = angles:Angle\n")
    (tmp_path / "covey.toml").write_text(TOML)
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "covey", "ask"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("id,turn,x,value")
