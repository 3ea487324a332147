"""The page about running tells the truth: its code runs, and its names exist."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

import covey.run
from covey.run.plan import Progress
from covey.run.task import Retries

PAGE = (Path(__file__).parents[3] / "docs" / "running.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
CLUSTER = re.compile(r"^(?:from|import) (?:dask|ray|submitit)", re.MULTILINE)


def test_the_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    ran = 0
    for block in BLOCKS:
        code = compile(block, "running.md", "exec")
        if not CLUSTER.search(block):  # those are run by the tests of their engines
            exec(code, names)
            ran += 1
    assert (ran, len(BLOCKS)) == (8, 12)
    assert (tmp_path / "run.jsonl").exists()


def test_the_recipe_for_submitit_joins(tmp_path, monkeypatch):
    """By an executor of that name which evaluates here, and takes no option it does not know."""

    class Executor:
        def __init__(self, folder: str) -> None:
            self.folder = folder

        def update_parameters(self, *, timeout_min: int, cpus_per_task: int) -> None:
            self.parameters = timeout_min, cpus_per_task

        def map_array(self, f, numbers):
            return [SimpleNamespace(result=partial(f, number)) for number in numbers][:2]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "submitit", SimpleNamespace(AutoExecutor=Executor))
    (block,) = [block for block in BLOCKS if "submitit" in block]
    space = covey.Space({"x": covey.Real(0.0, 1.0)})
    joined = partial(covey.maximize, strategy="random", progress=False)
    options = {"batch": 2, "rounds": 1, "workers": 1, "journal": "run.jsonl"}

    def maximize(f, space, *, join, **given):
        assert given.keys() == options.keys()
        return joined(f, space, join=join, **options)

    names = {"covey": SimpleNamespace(maximize=maximize), "space": space, "f": lambda p: p["x"]}
    exec(compile(block, "running.md", "exec"), names)
    assert len(covey.Study.load("run.jsonl").history.told) == 2


def test_the_recipes_for_clusters_are_well_formed():
    yaml = pytest.importorskip("yaml")
    (job,) = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
    assert (job["kind"], job["spec"]["parallelism"]) == ("Job", 8)
    assert "completions" not in job["spec"]
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["command"][:3] == ["covey", "run", "--join"]
    assert all(isinstance(word, str) for word in container["command"])
    assert [mount["name"] for mount in container["volumeMounts"]] == [pod["volumes"][0]["name"]]
    (script,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    assert "#SBATCH --array=" in script
    assert "covey run --join" in script


def test_the_names_exist():
    for name in re.findall(r"`covey\.run\.(\w+)", PAGE):
        assert getattr(covey.run, name) is not None
    said = re.search(r"`covey.run.Progress` \((.*?)\)", PAGE)[1]
    assert said.split(", ") == [field.name for field in fields(Progress)]
    assert f"up to {Retries().lost} times" in PAGE
    assert Retries().killed == 1
    assert "`covey run --retries 1`" in PAGE
    assert set(covey.run.__all__) <= set(dir(covey.run))
