"""The page about descriptors tells the truth: its code runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from covey.cli.settings import parse_settings

PAGE = (Path(__file__).parents[2] / "docs" / "descriptors.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    plain, molecules = BLOCKS
    exec(compile(plain, "descriptors.md", "exec"), names)
    assert len(names["batch"]) == 4
    (settings,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    space = parse_settings(settings, tmp_path / "covey.toml").space
    inline = re.sub(r"features = .* or (.*)", r"features = \1", settings)
    assert parse_settings(inline, tmp_path / "covey.toml").space == space
    pytest.importorskip("rdkit", reason="pip install 'covey[chem]'")
    exec(compile(molecules, "descriptors.md", "exec"), names)
    assert names["solvent"].size == 3
