"""The page about Optuna tells the truth: its code runs, with fewer trials and epochs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

optuna = pytest.importorskip("optuna", reason="pip install 'covey[optuna]'")
pytest.importorskip("sklearn", reason="pip install 'covey[sklearn]'")

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "integrations" / "optuna.md").read_text()
SHORTER = {"EPOCHS = 27": "EPOCHS = 3", "n_trials=64": "n_trials=12", "n_trials=48": "n_trials=5"}


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the page leaves its database open
def test_the_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    for long, short in SHORTER.items():
        assert code.count(long) == 1
        code = code.replace(long, short)
    names: dict[str, object] = {}
    exec(compile(code, "optuna.md", "exec"), names)
    digits, small = (
        optuna.load_study(study_name=name, storage="sqlite:///study.db")
        for name in ("digits", "small")
    )
    assert len({str(trial.params) for trial in digits.trials}) == 12
    assert {trial.state.name for trial in digits.trials} == {"COMPLETE", "PRUNED"}
    assert [len(trial.values) for trial in small.trials] == [2] * 5


def test_the_pictures_are_small():
    pictures = re.findall(r"\((\.\./pictures/[\w-]+\.png)\)", PAGE)
    assert len(pictures) == 2
    for picture in pictures:
        assert (ROOT / "docs" / "integrations" / picture).stat().st_size < 200_000
