"""The page about a space that grows tells the truth: its code and its commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from covey.cli.app import app

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()


def test_the_code_runs():
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(block, "extending.md", "exec"), names)
    study = names["study"]
    assert study.history[0].point["pressure"] == 1.0
    assert study.space.names == ("T", "solvent", "pressure")


def test_the_commands_are_understood(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [line for line in PAGE.splitlines() if line.startswith("covey ")]
    assert len(lines) == 3
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        done = CliRunner().invoke(app, words)
        assert "there is no covey.toml" in str(done.exception)  # and no option is unknown
