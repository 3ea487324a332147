"""A run that is killed at any moment ends as if it had not been."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import covey
from covey.history import Late, Told

STEPS = 3  # that each evaluation reports
SCRIPT = Path(__file__).with_name("survivor.py")
KILLS = int(os.environ.get("COVEY_KILLS", "12"))
MOMENTS = [  # one life each, so that what they leave behind adds up
    "after-ask:1",
    "before-intent:2",
    "after-intent:1",
    "before-process:1",
    "after-process:1",
    "before-tell:1",
    "after-submit:1",
    "after-report:2",
    "after-tell:2",
]


def start(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, SCRIPT, folder / "run.jsonl", folder / "ended", *more]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(folder: Path, *more: str) -> None:
    runner = start(folder, *more)
    said, _ = runner.communicate(timeout=300)
    assert runner.returncode == 0, said.decode()


def trials(folder: Path) -> list[tuple]:
    history = covey.Study.load(folder / "run.jsonl", read_only=True).history
    return [(t.id, dict(t.point), t.status, t.value) for t in history.trials]


def verify(folder: Path, whole: list[tuple]) -> None:
    """Every value once, no finished evaluation again, the same trials and so the same best."""
    assert trials(folder) == whole
    events = covey.Study.load(folder / "run.jsonl", read_only=True).history.events
    told = Counter(id for event in events if isinstance(event, Told) for id in event.ids)
    assert told == Counter(range(len(whole)))
    assert not any(isinstance(event, Late) for event in events)
    ended = Counter(map(int, (folder / "ended").read_text().split()))
    assert ended == Counter(range(len(whole)))
    assert not (folder / "slots" / "clash").exists()  # never two on one slot
    verify_reports(folder)


def verify_reports(folder: Path) -> None:
    """Whatever was reported is in the log, once, and steps rise within each attempt."""
    history = covey.Study.load(folder / "run.jsonl", read_only=True).history
    for trial in history.told:
        curves: dict[int, list[int]] = {}
        for one in history.reports(trial):
            assert one.value == trial.point["x"] + one.step
            curves.setdefault(one.attempt, []).append(one.step)
        for steps in curves.values():
            assert steps == sorted({*steps})
        last = curves.get(max(curves, default=0), [])
        assert last == list(range(1, STEPS + 1))


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> list[tuple]:
    """The trials of a run that nothing happened to."""
    folder = tmp_path_factory.mktemp("whole")
    finish(folder)
    found = trials(folder)
    verify(folder, found)
    return found


def test_killed_at_random(whole, tmp_path):
    rng, kills, runs = random.Random(6), 0, 0
    while kills < KILLS:
        folder = tmp_path / str(runs)
        folder.mkdir()
        runs += 1
        while kills < KILLS:
            runner = start(folder, "--seconds", "0.3")
            time.sleep(rng.uniform(0.3, 1.6))
            ended = runner.poll()
            runner.send_signal(signal.SIGKILL)
            said, _ = runner.communicate()
            if ended is not None:
                assert ended == 0, said.decode()
                break
            kills += 1
        finish(folder)
        verify(folder, whole)


def test_killed_at_the_worst_moments(whole, tmp_path):
    for moment in MOMENTS:
        runner = start(tmp_path, "--die", moment)
        said, _ = runner.communicate(timeout=300)
        assert runner.returncode == -signal.SIGKILL, (moment, said.decode())
    finish(tmp_path)
    verify(tmp_path, whole)


@pytest.mark.parametrize(
    ("defect", "moment", "pace"),
    [
        ("forgets", "after-submit:2", "--seconds=0.1"),
        ("acknowledges_first", "before-tell:4", "--seconds=0.1"),
        ("submits_first", "before-intent:3", "--seconds=0.1"),
        ("forgets_slots", "after-submit:2", "--linger"),  # at work when the next life begins
        ("reports_again", "after-report:1", "--seconds=0.5"),
        ("forgets_reports", "after-submit:2", "--seconds=0.5"),
    ],
)
def test_a_runner_with_a_fault_would_be_caught(whole, tmp_path, defect, moment, pace):
    runner = start(tmp_path, "--defect", defect, "--die", moment, pace)
    runner.communicate(timeout=300)
    assert runner.returncode == -signal.SIGKILL
    finish(tmp_path, "--defect", defect)
    with pytest.raises(AssertionError):
        verify(tmp_path, whole)


@pytest.mark.parametrize("defect", ["", "ignores_strays"])
def test_what_was_told_by_hand_keeps_its_slot_until_it_is_dead(tmp_path, defect):
    """Nobody waits for its result any more, but its process may be on a GPU."""
    runner = start(tmp_path, "--die", "after-submit:2", "--linger")
    runner.communicate(timeout=300)
    assert runner.returncode == -signal.SIGKILL
    study = covey.Study.load(tmp_path / "run.jsonl")
    study.tell([0, 1], [0.5, 0.25])
    began = [*(tmp_path / "slots").iterdir()]
    while len(began) < 2:
        time.sleep(0.01)
        began = [*(tmp_path / "slots").iterdir()]
    finish(tmp_path, *(["--defect", defect] if defect else []))
    assert (tmp_path / "slots" / "clash").exists() == bool(defect)
    if not defect:
        assert not {"0", "1"} & {*(tmp_path / "ended").read_text().split()}
