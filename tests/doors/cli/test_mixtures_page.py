"""The code, the file and the commands of docs/mixtures.md."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from covey import Linear, Mixture
from covey.cli.settings import parse_settings

PAGE = (Path(__file__).parents[3] / "docs" / "mixtures.md").read_text()
THREE = Mixture(["water", "ethanol", "glycerol"], 1.0, (1, 2), 0.05, 0.01)


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


def test_the_code_runs_and_says_what_the_page_says(capsys):
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "mixtures.md", "exec"), names)
    assert capsys.readouterr().out.splitlines() == ["0.3", "1.0"]
    assert names["space"].where == (THREE,)


def test_the_file_is_read():
    (text,) = blocks("toml")
    tables = [f"[parameters.{n}]\ntype = 'real'\nlow = 0\nhigh = 1\n" for n in THREE.names]
    space = parse_settings("".join(tables) + text, Path("covey.toml")).space
    assert space.where == (THREE, Linear({"water": 1, "ethanol": -2}, lower=0, upper=0))


@pytest.mark.parametrize("line", blocks("console")[0].splitlines())
def test_the_commands_run(call, line):
    done = call(*shlex.split(line)[1:])
    assert done.code == 0
    assert "  where water + ethanol" in done.err
