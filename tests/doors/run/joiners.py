"""Runs that join and are killed: `python -m tests.doors.run.joiners --kills 200`.

Three runs share a journal. Runs, and evaluations, are killed by SIGKILL at random, and a killed run
is replaced, until a study is done and the next one begins. Every evaluation holds the lock of its
trial while it lives, so that two at once are noticed. With ``--far`` the runs believe to be on
different machines, and know of each other's death only by silence; then some are also frozen for
longer than that, and wake up. With ``--defect`` they have a fault that must be noticed. Prints what
was counted; status 1 if a value is missing or there twice.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext, suppress
from importlib import import_module
from pathlib import Path

import covey
import covey.run.dispatcher as dispatching
from covey.history import Late, Told
from covey.log.running import Runs
from covey.run import LocalEngine, loop
from covey.run.workdir import Workdir

SPACE = covey.Space({"x": covey.Real(-1.0, 1.0), "y": covey.Real(-1.0, 1.0)})
BATCH, RUNS = 6, 3
PATIENCE = 60.0  # seconds in which nothing is logged


def hesitant() -> None:
    """No fault: runs that wait before they take a trial, so that all want the same."""
    real = dispatching.follows
    dispatching.follows = lambda sent: time.sleep(0.1) or real(sent)


def unfenced() -> None:
    """Runs that take a trial without looking whether another has just taken it."""
    dispatching.follows = lambda sent: None
    hesitant()


def alone() -> None:
    """Runs that take all others for dead, and do not look for what they left."""
    Runs.lives = lambda self, run: run == self.id
    forgetful()


def trusting() -> None:
    """Runs that take all others for alive, for ever."""
    Runs.lives = lambda self, run: True


def forgetful() -> None:
    """Runs that do not look for what a dead one has left running."""
    LocalEngine.adopt = lambda self, tasks: set()


def unnamed() -> None:
    """Runs that do not name the results they tell, so that each tells what it has found."""
    dispatching.Dispatcher._key = lambda self, task: None


def hasty() -> None:
    """Runs that ask without looking whether another has asked before it."""
    loop.Loop._turn = lambda self: nullcontext()


def evaluation(folder: Path, pace: float):
    def f(point, seed):
        trial = os.environ["COVEY_TRIAL"]
        held = os.open(folder / f"trial-{trial}", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            (folder / "clash").open("a").write(f"{trial}\n")
        time.sleep(pace * (1.0 + seed % 5))
        with (folder / "ended").open("a") as ended:
            ended.write(f"{trial}\n")
        return point["x"] ** 2 + point["y"] ** 2

    return f


def run(folder: Path, given: argparse.Namespace) -> None:
    """One run, in a process of its own."""
    if given.far:
        own, registry = os.urandom(8).hex(), import_module("covey.log.running")
        registry.kernel = lambda: own
        registry.BEAT, registry.LEASE, registry.LOOK = 0.1, given.lease, 0.05
    if given.defect:
        globals()[given.defect]()
    study = covey.Study(SPACE, "min", "random", seed=5, journal=folder / "run.jsonl")
    study.run(
        evaluation(folder, given.pace),
        batch=BATCH,
        evaluations=given.total,
        workers=2,
        join=True,
        progress=False,
        asynchronous=given.asynchronous,
        retries=covey.run.Retries(lost=50, killed=50, wait=0.05),
    )


def begin(folder: Path, given: argparse.Namespace) -> int:
    """Fork a run, which costs less than to import everything again; its process id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        sys.stderr = (folder / "said").open("a", buffering=1)
        run(folder, given)
        status = 0
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    finally:
        os._exit(status)


class Count(Counter):
    """What happened, and what went wrong."""

    def wrong(self) -> list[str]:
        names = ("clashes", "late", "twice", "missing", "too many", "again", "unfinished", "ended")
        return [f"{self[name]} {name}" for name in names if self[name]]


def one_study(folder: Path, given: argparse.Namespace, rng: random.Random, kills: int) -> Count:
    """Kill runs and evaluations until the study is done; at most so many times."""
    found, victims = Count(), Counter()
    runs = {begin(folder, given) for _ in range(RUNS)}
    until = time.monotonic() + 10.0 * PATIENCE
    size, seen, journal = 0, 0, folder / "run.jsonl"
    while runs:
        time.sleep(rng.uniform(0.02, 0.2))
        found["ended"] += bury(runs)
        if time.monotonic() > until:
            found["unfinished"] += 1
            [kill(pid) for pid in runs]
            break
        grown = journal.stat().st_size if journal.exists() else 0
        if grown > seen and (folder / "ended").exists():  # a busy machine is slow to begin
            seen, until = grown, time.monotonic() + given.patience
        if runs and found["kills"] < kills and grown > size:  # none is killed before it did a thing
            size = grown
            if given.far and rng.random() < 0.1:
                found.update(kills=1, frozen=1)
                freeze(rng.choice(sorted(runs)), 1.5 * given.lease)
            elif rng.random() < 0.6:
                found.update(kills=1, runs=1)
                replace(rng.choice(sorted(runs)), runs, begin(folder, given))
            elif (trial := kill_evaluation(folder, rng)) is not None:
                found.update(kills=1, evaluations=1)
                victims[trial] += 1
    judge(folder, found, victims, given.total)
    return found


def bury(runs: set[int]) -> int:
    """Take out the runs that have ended; how many of them with an error."""
    wrong = 0
    for pid in list(runs):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            runs.discard(pid)
            wrong += status != 0
    return wrong


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def freeze(pid: int, seconds: float) -> None:
    """Stop a process that wakes up when the others have taken it for dead."""
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)


def replace(pid: int, runs: set[int], by: int) -> None:
    kill(pid)
    runs.discard(pid)
    runs.add(by)


def kill_evaluation(folder: Path, rng: random.Random) -> int | None:
    """Kill the processes of one evaluation that runs; its trial."""
    names = sorted(path for path in (folder / "run.jsonl.work").glob("covey-*") if path.is_dir())
    rng.shuffle(names)
    for path in names:
        with suppress(OSError):
            who = Workdir(path).worker if Workdir(path).locked else None
            if who is not None:
                os.killpg(who["pid"], signal.SIGKILL)
                return int(path.name.split("-")[2])
    return None


def judge(folder: Path, found: Count, victims: Counter, total: int) -> None:
    """Every value once, never two evaluations of a trial at once, and none repeated in vain."""
    history = covey.Study.load(folder / "run.jsonl", read_only=True).history
    told = Counter(id for event in history.events if isinstance(event, Told) for id in event.ids)
    clash = folder / "clash"
    ended = Counter(map(int, (folder / "ended").read_text().split()))
    found.update(
        {
            "studies": 1,
            "values": len(told),
            "twice": sum(times > 1 for times in told.values()),
            "missing": max(0, total - len(told)),
            "too many": max(0, len(told) - total),
            "late": sum(isinstance(event, Late) for event in history.events),
            "clashes": len(clash.read_text().split()) if clash.exists() else 0,
            "again": sum(times > 1 + victims[id] for id, times in ended.items()),
        }
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--far", action="store_true")
    parser.add_argument("--asynchronous", action="store_true")
    parser.add_argument("--defect", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--total", type=int, default=18)  # evaluations of a study
    parser.add_argument("--pace", type=float, default=0.05)
    parser.add_argument("--lease", type=float, default=2.0)
    parser.add_argument("--patience", type=float, default=PATIENCE)
    given = parser.parse_args()
    rng, found = random.Random(given.seed), Count()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root:
        while not found["studies"] or (found["kills"] < given.kills and not found.wrong()):
            folder = Path(root, str(found["studies"]))
            folder.mkdir()
            found += one_study(folder, given, rng, given.kills - found["kills"])
            if found.wrong():
                sys.stdout.write((folder / "said").read_text()[-2000:])
    sys.stdout.write(
        f"{found['kills']} kills ({found['runs']} of runs, {found['evaluations']} of evaluations"
        f"{', and ' + str(found['frozen']) + ' frozen instead' if given.far else ''}) "
        f"in {found['studies']} studies: {found['values']} values, each once"
        f"{'' if not found.wrong() else ', but: ' + ', '.join(found.wrong())}\n"
    )
    return 1 if found.wrong() else 0


if __name__ == "__main__":
    raise SystemExit(main())
