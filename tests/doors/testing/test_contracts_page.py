"""The examples of docs/contracts.md, run by pytest as a reader would run them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "contracts.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
SOME = "not Executor or values or failure or loss"  # the rest of it waits, and is tried elsewhere


def pytest_run(folder: Path, code: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_mine.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    return subprocess.run(
        [*command, "test_mine.py"], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_examples_pass(tmp_path):
    done = pytest_run(tmp_path, "\n\n".join(BLOCKS), "-k", SOME)
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 20


@pytest.mark.parametrize(
    ("sound", "broken", "test"),
    [
        ('kind="stable")[:k]', 'kind="stable")[:1]', "however_many"),
        ("width=1.0, next", "width=-1.0, next", "width"),
    ],
)
def test_an_example_that_is_broken_does_not(sound, broken, test, tmp_path):
    (block,) = [block for block in BLOCKS if sound in block]
    done = pytest_run(tmp_path, block.replace(sound, broken), "-k", test)
    assert done.returncode == 1, done.stdout


@pytest.mark.parametrize("block", BLOCKS)
def test_an_example_is_about_ten_lines(block):
    assert len([line for line in block.splitlines() if line.strip()]) <= 12


def test_a_contract_can_be_imported_without_pytest():
    code = "import sys; sys.modules['pytest'] = None; import covey.testing"
    subprocess.run([sys.executable, "-c", code], check=True)
