"""The page about wrong results tells the truth: its code and its commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import covey
from covey.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "results.md").read_text()


def test_the_code_runs():
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(block, "results.md", "exec"), names)
    study = names["study"]
    assert study.history[2].excluded
    assert study.best.id != 2


def test_the_calls_of_the_table_run():
    study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), seed=0)
    study.ask(40)
    study.tell([3, 5, 9, 20], [1.0, 2.0, 0.0, 7.3])
    study.fail(range(24, 32))
    calls = re.findall(r"\| `(study\.[^`]*)` \|", PAGE)
    assert len(calls) == 8
    for call in calls:
        exec(call, {"study": study, "covey": covey})
    assert [t.id for t in study.history.trials if t.excluded] == [5]
    assert study.history[20].value == 73.0
    assert study.history[24].status == "pending"
    assert (study.history[9].status, study.history[9].reason) == ("failed", "loss was nan")
    assert study.history[8].reason == "no vial"
    assert study.history.notes(7) == ("cloudy",)


def test_the_commands_exist():
    known = {command.name for command in app.registered_commands}
    for page in ("results.md", "cli.md"):
        for line in re.findall(r"(?:`|^)(covey [a-z][^`\n#]*)", (DOCS / page).read_text(), re.M):
            word = shlex.split(line.replace("'", ""))[1]
            assert word in known | {"journal", "ask", "plate"}, line


def test_the_picture_is_there():
    for name in re.findall(r"\]\((pictures/[^)]*)\)", PAGE):
        assert (DOCS / name).is_file()
