"""What Covey needs of POSIX, taken away: `tests/windows.py` says how."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="open files are seen in /proc")
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("what", [[], ["locks"]], ids=["works", "excludes"])
def test_without_posix_it_works_and_with_locks_of_windows_it_excludes(tmp_path, what):
    words = [sys.executable, "-m", "tests.windows", str(tmp_path), *what]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("done\n")
