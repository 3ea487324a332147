"""Conditions and rules through the doors: sheets, commands, settings, the report, their page."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import covey
from covey import Choice, Implies, Integer, Real, Space
from covey.cli.app import main
from covey.cli.settings import read_settings
from covey.errors import SpaceError, StrategyError
from covey.learn import understand
from covey.report.predictions import forecasts
from covey.report.slices import edges, model_slices
from covey.run import Command
from covey.run.api import as_call
from covey.sheets.points import point_from_text

PAGE = (Path(__file__).parents[2] / "docs" / "conditions.md").read_text()
SPACE = Space(
    {
        "model": Choice(["tree", "net"]),
        "depth": Integer(1, 12, when={"model": "tree"}),
        "lr": Real(1e-5, 1, log=True, when={"model": "net"}),
    }
)


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run `covey WORDS...` in an empty folder: the exit status, and what it wrote."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["covey", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        with pytest.raises(SystemExit) as end:
            main()
        caught = capsys.readouterr()
        return int(end.value.code or 0), caught.out, caught.err

    return run


def test_the_code_of_the_page_runs():
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "conditions.md", "exec"), names)
    assert all(t.point["model"] == "net" and t.point["layers"] > 1 for t in names["nets"])
    assert all(t.point["T"] <= 60 for t in names["batch"] if t.point["solvent"] == "THF")


def test_the_settings_of_the_page_are_read(tmp_path):
    first, second = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (table,) = re.findall(r"```csv\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "rules.csv").write_text(table)
    text = '[parameters.model]\ntype = "choice"\noptions = ["tree", "net"]\n' + first
    for name, options in (("solvent", ["THF", "DMF"]), ("base", ["KOH", "NaOH", "none"])):
        text += f'[parameters.{name}]\ntype = "choice"\noptions = {options!r}\n'
    text += '[parameters.T]\ntype = "real"\nlow = 20\nhigh = 120\n' + second
    (tmp_path / "covey.toml").write_text(text)
    settings = read_settings(tmp_path / "covey.toml")
    assert settings.space.parameters["depth"] == Integer(1, 12, when={"model": "tree"})
    assert settings.space.rules == (
        Implies({"solvent": "THF"}, {"T": (None, 60), "base": ["KOH", "NaOH"]}),
        Implies({"solvent": "THF"}, {"T": (None, 60)}),
        Implies({"solvent": "DMF"}, {"base": ["KOH", "NaOH"]}),
    )
    assert tmp_path / "rules.csv" in settings.files


def test_flags_sheets_and_report_of_a_conditional_study(call):
    flags = ["--choice", "model=tree,net", "--integer", "depth=1:12:when=model=tree"]
    code, _, said = call("init", "--seed", "1", *flags, "--real", "lr=1e-5:1:log:when=model=net")
    assert code == 0
    assert "only when model is 'tree'" in said
    assert dict(read_settings(Path("covey.toml")).space.parameters) == dict(SPACE.parameters)
    assert call("ask", "-b", "4", "--out", "batch.csv")[0] == 0
    header, *lines = Path("batch.csv").read_text().splitlines()
    columns = header.split(",")
    filled = []
    for i, line in enumerate(lines):
        cells = dict(zip(columns, line.split(","), strict=True))
        assert bool(cells["depth"]) == (cells["model"] == "tree") != bool(cells["lr"])
        filled.append(f"{line}{i}")
    Path("batch.csv").write_text("\n".join([header, *filled]) + "\n")
    assert call("tell", "batch.csv")[0] == 0
    code, out, _ = call("best")
    assert (code, "model" in out) == (0, True)
    assert call("report", "--out", "page.html")[0] == 0
    assert call("export")[1].count("\n") == 5


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("depth=1:12:when=modle=tree", "Did you mean 'model'"),
        ("depth=1:12:when=model=tre", "Did you mean 'tree'"),
        ("depth=1:12:when=model", "a condition is OTHER=VALUE"),
    ],
)
def test_a_wrong_condition_on_the_command_line_is_named(call, word, words):
    code, _, said = call("init", "--choice", "model=tree,net", "--integer", word)
    assert code == 2
    assert words in said
    assert not Path("covey.toml").exists()


def test_an_empty_cell_is_an_absent_parameter():
    assert point_from_text(SPACE, {"model": "tree", "depth": "3", "lr": " "}) == {
        "model": "tree",
        "depth": 3,
    }
    assert point_from_text(SPACE, {"model": "net", "lr": "0.1"}) == {"model": "net", "lr": 0.1}
    for cells, words in (
        ({"model": "net", "depth": "3", "lr": "0.1"}, "'depth' is present only when"),
        ({"model": "tree", "depth": "", "lr": ""}, "depth: it is empty; give a number"),
        ({"model": "tree", "lr": ""}, "no column 'depth'"),
    ):
        with pytest.raises(SpaceError, match=words):
            point_from_text(SPACE, cells)


def test_an_option_of_a_command_is_left_out_with_its_parameter():
    command = Command(["train", "--model={x.model}", "--depth={x.depth}", "-l={x.lr}", "{id}"])
    as_call(command, SPACE)
    assert command.words({"model": "net", "lr": 0.5}, trial=1, seed=0) == [
        *("train", "--model=net", "-l=0.5", "1")
    ]
    for argv in (["train", "{x.depth}"], ["train", "--depth", "{x.depth}"]):
        with pytest.raises(StrategyError, match=r"--depth=\{x.depth\}, which is then left out"):
            as_call(Command(argv), SPACE)


def test_slices_and_edges_of_a_point_that_lacks_a_parameter():
    study = covey.Study(SPACE, seed=0)
    points = [{"model": "tree", "depth": d} for d in (1, 4, 8, 12)]
    points += [{"model": "net", "lr": lr} for lr in (1e-4, 1e-2, 0.3)]
    study.add(points, [0.1, 0.2, 0.3, 0.9, 0.2, 0.4, 0.1])
    posterior = understand(study.history, study.recipe, np.random.default_rng(0), waiting=False)
    found = {one.name: one for one in model_slices(posterior, study.recipe, points[3])}
    assert set(found) == {"model", "depth"}
    (middle,) = SPACE.decode(SPACE.placed([{"model": "net"}]))
    belief = posterior.belief(SPACE.encode([middle]))
    (expected,) = forecasts(posterior, study.recipe, belief)
    assert found["model"].at == ("tree", "net")
    assert found["model"].expected[1].mean == pytest.approx(expected.mean)
    assert [edge.name for edge in edges(SPACE, points[3], points)] == ["depth"]
