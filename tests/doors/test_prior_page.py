"""The page about earlier studies tells the truth: its code runs."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "prior.md").read_text()


def test_the_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "prior.md", "exec"), names)
    said = re.search(r"print.*# ({'last-year.jsonl': 1\.01)", code)[1]
    assert capsys.readouterr().out.startswith(said)
