import re
import subprocess
import sys
from pathlib import Path

import pytest

from covey.dpp.sampler import METHODS

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "speed.py"
KINDS = (
    "gp fit, n=40, 6-d, from scratch",
    "gp fit, n=40, 6-d, refit after a batch",
    "ask(5), n=20, 6-d",
    "k-dpp, k=9, N=600, SE 6-d, dense",
    "k-dpp, k=9, N=600, I + posterior/noise 2-d, columns",
    "k-dpp, k=9, N=600, I + posterior/noise 6-d, columns",
    "import covey",
    "from covey import Study",
    "covey --help",
)


def table(*options):
    command = [sys.executable, str(SCRIPT), "--quick", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == [
        "| what | covey s | target s | peer | peer s | ratio |",
        "|---|---|---|---|---|---|",
    ]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.fixture(scope="module")
def rows():
    return table()


def test_there_is_one_row_of_each_kind(rows):
    assert [row[0].split("; ")[0] for row in rows] == list(KINDS)
    assert {len(row) for row in rows} == {6}


def test_every_row_has_its_seconds(rows):
    assert all(float(row[1]) > 0.0 for row in rows)


def test_a_peer_comes_with_its_seconds_and_a_ratio(rows):
    for _, ours, _, peer, theirs, ratio in rows:
        assert (peer == "-") == (theirs == "-") == (ratio == "-")
        if peer != "-":
            assert float(ratio.rstrip("x")) == pytest.approx(
                float(theirs) / float(ours), rel=0.02, abs=0.51
            )


def test_k_dpp_rows_say_how_they_were_drawn(rows):
    notes = [row[0].split("; ")[1] for row in rows if row[0].startswith("k-dpp")]
    assert len(notes) == 3
    for note in notes:
        method, size, error = note.split(", ")
        assert method in METHODS
        assert re.fullmatch(r"\d+ steps" if method in ("walk", "swap") else r"rank \d+", size)
        assert float(error.removeprefix("error <= ")) <= 0.01


def test_only_keeps_rows_that_begin_like_this():
    assert [row[0].split(";")[0] for row in table("--only", "import")] == ["import covey"]
