"""The page about running tells the truth: its code runs, and its names exist."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import covey.run
from covey.run.loop import Progress
from covey.run.task import Retries

PAGE = (Path(__file__).parents[3] / "docs" / "running.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
CLUSTER = re.compile(r"^(?:from|import) (?:dask|ray)", re.MULTILINE)


def test_the_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    ran = 0
    for block in BLOCKS:
        code = compile(block, "running.md", "exec")
        if not CLUSTER.search(block):  # those are run by the tests of their engines
            exec(code, names)
            ran += 1
    assert (ran, len(BLOCKS)) == (7, 10)
    assert (tmp_path / "run.jsonl").exists()


def test_the_names_exist():
    for name in re.findall(r"`covey\.run\.(\w+)", PAGE):
        assert getattr(covey.run, name) is not None
    said = re.search(r"`covey.run.Progress` \((.*?)\)", PAGE)[1]
    assert said.split(", ") == [field.name for field in fields(Progress)]
    assert f"up to {Retries().lost} times" in PAGE
    assert set(covey.run.__all__) <= set(dir(covey.run))
