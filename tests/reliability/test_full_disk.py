"""R6: a disk that is full costs nothing but the events it has no room for."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.reliability.alone import alone
from tests.reliability.verdict import SCALE, Broken, demand, stored

import covey
from covey.errors import JournalError
from covey.log.journal import Journal

LIMITS = (700, 4096, 100_000) if SCALE < 10 else tuple(range(500, 100_500, 2000))
SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})
LEFT = "a write without room left something behind"


def fill(journal: Journal, path: Path) -> int:
    """Append until there is no room, and then three times more; how many were acknowledged."""
    count = journal.seq
    for _ in range(9999):
        try:
            count = journal.append({"n": count, "pad": "x" * (count % 9) * 50})
        except JournalError as error:
            demand(str(path) in str(error), "the error does not name the file", error)
            break
    else:
        raise Broken("there was no room, and yet all was acknowledged")
    whole = path.read_bytes()
    for _ in range(3):
        with pytest.raises(JournalError):
            journal.append({"n": -1, "pad": "x" * 5000})
        demand(path.read_bytes() == whole, LEFT)
    return count


def check_full(path: Path, make_room: Callable[[], None]) -> int:
    """Fill it, read it, make room, go on: with the handle that failed, and with a new one."""
    with Journal.create(path, {}) as journal:
        count = fill(journal, path)
        events = stored(path)
        demand(len(events) == count, "not all that was acknowledged is there", count, len(events))
        demand(path.read_bytes().endswith(b"\n"), LEFT)
        make_room()
        demand(journal.append({"n": count}) == count + 1, "the next event has another number")
    with Journal.open(path) as journal:
        journal.append({"n": count + 1})
    demand([e["n"] for e in stored(path)] == list(range(count + 2)), "events are missing")
    demand(not list(path.parent.glob("*.torn-*")), LEFT)
    return count


def check_limits(folder: Path, limits: tuple[int, ...] = LIMITS) -> list[int]:
    """A limit on the size of files; Python ignores SIGXFSZ, so a write says EFBIG."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    counts = []
    for limit in limits:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        counts.append(
            check_full(
                folder / f"run-{limit}",
                lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard)),
            )
        )
    return counts


def test_a_limit_on_the_size_of_a_file_costs_nothing(ram):
    counts = alone(check_limits, ram)
    assert len(counts) == len(LIMITS)
    assert counts == sorted(counts)
    assert counts[-1] > 100


def test_full_disks_would_catch_what_is_not_rolled_back(ram):
    with pytest.raises(Broken, match=LEFT):
        alone(check_limits, ram, defect="no roll back")


# ---------------------------------------------------------------- a disk of 256 kB


@pytest.fixture
def small(tmp_path):
    """Where a disk of 256 kB can be mounted, by a process in a namespace of its own."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare on this system")
    mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(tmp_path)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    return tmp_path


def mounted(folder: Path) -> Path:
    """A disk of 256 kB with a file of 64 kB in it, that can be deleted to make room."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", folder], check=True)
    (folder / "filler").write_bytes(b"x" * 65536)
    return folder


def check_small_disk(folder: Path) -> int:
    return check_full(mounted(folder) / "run", (folder / "filler").unlink)


def check_small_study(folder: Path) -> int:
    """A study does not believe what had no room, and takes it when there is some again."""
    path = mounted(folder) / "run.jsonl"
    study = covey.Study(SPACE, strategy="random", seed=0, journal=path)
    count = 0
    while True:
        before = study.history
        try:
            study.add([{"x": 0.5}], [float(count)], key=f"result {count}")
        except JournalError:
            break
        count += 1
    demand(study.history.trials == before.trials, "a study believes what was not written")
    demand(len(covey.Study.load(path, read_only=True).history) == count, "results are missing")
    (folder / "filler").unlink()
    for n in (count, count, count + 1):  # a message may come twice
        study.add([{"x": 0.5}], [float(n)], key=f"result {n}")
    values = [trial.value for trial in covey.Study.load(path).history.trials]
    demand(values == list(range(count + 2)), "results are missing", values[-3:])
    demand(len(stored(path)) == count + 2, "a result is there twice")
    return count


@pytest.mark.parametrize("check", [check_small_disk, check_small_study])
def test_a_disk_of_256_kb_that_fills_up_costs_nothing(small, check):
    assert alone(check, small, under=("unshare", "-rm")) > 100


@pytest.mark.parametrize(
    ("check", "defect", "verdict"),
    [
        (check_small_disk, "no roll back", LEFT),
        (check_small_disk, "errors swallowed", "yet all was acknowledged"),
        (check_small_study, "believed before it is written", "believes what was not written"),
        (check_small_study, "no keys", "twice|missing"),
    ],
)
def test_a_small_disk_would_catch(small, check, defect, verdict):
    with pytest.raises(Broken, match=verdict):
        alone(check, small, under=("unshare", "-rm"), defect=defect)
