"""R4: what was acknowledged survives the loss of power, whatever of the rest does."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.reliability.mutants import planted
from tests.reliability.platter import Died, Platter
from tests.reliability.verdict import Broken, demand, stored, times

import covey
from covey.errors import JournalDamaged, JournalError
from covey.log.journal import Journal, read, repair

LOST = "an acknowledged event was lost"
ARRIVED = ("nothing", "all", "the size only", "the first half", "the second half")
SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})


def judge_boot(folder: Path, acked: list[int], arrived: str) -> None:
    """What the next boot finds holds all that was acknowledged, and can be gone on with."""
    path = folder / "run"
    if not path.exists():
        demand(not acked, LOST, "the file is gone")
        return
    found = [event["n"] for event in read(path, prefix=True).events]
    demand(found[: len(acked)] == acked, LOST, arrived, found)
    demand(len(found) <= len(acked) + 1, "more is there than was sent", arrived, found)
    try:
        journal = Journal.open(path)
    except JournalDamaged as error:
        # Pages reach a disk in any order. A line with a hole and a newline may be such a line, or
        # one that rotted: to cut it off could lose an event, so a person decides.
        demand(arrived == "the second half", "a line that was never acknowledged blocks", error)
        repair(path, folder / "mended")
        path = folder / "mended"
        journal = Journal.open(path)
    with journal:
        journal.append({"n": -1})
    demand([event["n"] for event in stored(path)] == [*found, -1], "the next event is gone")


def session(path: Path, acked: list[int], look: Callable[[], None], appends: int) -> None:
    """Create, append, reopen, take turns with another writer, repair what one of them left."""
    mine = Journal.create(path, {})
    look()
    for n in range(appends):
        if n % 7 == 6:
            mine.close()
            mine = Journal.open(path)
        if n % 7 == 4:
            with path.open("ab") as file:
                file.write(b'{"seq":%d,"torn' % (n + 1))
        writer = Journal.open(path) if n % 7 == 2 else mine
        writer.append({"n": n, "pad": "x" * 100 * (n % 20)})
        acked.append(n)
        look()
        if writer is not mine:
            writer.close()
            mine.read(mine.seq)
    mine.close()


def check_power(folder: Path, appends: int) -> int:
    """Pull the plug after every call that touches the disk, and after every acknowledgement."""
    boots, acked, live = itertools.count(), [], folder / "live"
    live.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        platter = Platter(patch, live)

        def look() -> None:
            with platter.paused():
                for arrived in ARRIVED:
                    boot = folder / f"boot-{next(boots)}"
                    platter.pull_the_plug(boot, arrived)
                    judge_boot(boot, acked, arrived)
                    shutil.rmtree(boot)

        platter.after = look
        session(live / "run", acked, look, appends)
    demand(acked == list(range(appends)), "not all was acknowledged", acked)
    return next(boots)


def test_the_loss_of_power_at_any_call_loses_nothing_that_was_acknowledged(ram):
    """R4: 20 appends, every point, with five guesses at what the disk did unasked."""
    assert check_power(ram, appends=times(20)) > 5 * 2 * times(20)


@pytest.mark.parametrize("defect", ["no fsync", "no directory fsync"])
def test_the_loss_of_power_would_catch(ram, defect):
    with pytest.raises(Broken, match=LOST), planted(defect):
        check_power(ram, appends=20)


# ---------------------------------------------------------------- first the writer, then the power


def send(path: Path, message: int) -> None:
    """A client's message, by a key: repeated until it was acknowledged."""
    study = covey.Study(SPACE, strategy="random", seed=0, journal=path)
    try:
        study.add([{"x": message / 10}], [float(message)], key=f"message {message}")
    finally:
        study._log.log.close()


def check_death_then_power(folder: Path, wait: bool) -> int:
    """The first writer dies at a call; a second one repeats its message; then the power goes.

    What the first had written may be in the cache only. The second finds it there, by its key,
    and writes nothing; its acknowledgement must hold all the same. With ``wait`` the second was
    there all along, and reads it when told to.
    """
    for at in itertools.count(1):
        live, boot = folder / f"live-{at}", folder / f"boot-{at}"
        live.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            platter = Platter(patch, live)
            second = None
            if wait:
                send(live / "run", 0)
                second = covey.Study.load(live / "run")
            first = len(platter.calls)
            platter.before = lambda _, p=platter, end=first + at: (
                p.die() if len(p.calls) == end else None
            )
            try:
                send(live / "run", 1)
                return at - 1  # it made fewer calls than that, and lived
            except Died:
                platter.revive()
            if second is None:
                send(live / "run", 1)
            else:
                second.add([{"x": 0.1}], [1.0], key="message 1")
            platter.pull_the_plug(boot)
        judge_message(boot / "run", [0, 1] if wait else [1])
    return 0


def judge_message(path: Path, sent: list[int]) -> None:
    demand(path.exists(), LOST, "the file is gone")
    try:
        told = covey.Study.load(path).history.trials
    except JournalError as error:
        raise Broken(f"{LOST}: {error}") from error
    demand([trial.value for trial in told] == sent, LOST, told)


@pytest.mark.parametrize("wait", [False, True])
def test_what_a_dead_writer_left_in_the_cache_is_flushed_before_it_is_believed(ram, wait):
    assert check_death_then_power(ram, wait) >= 4


@pytest.mark.parametrize(
    ("defect", "wait"),
    [
        ("no fsync of what is read", False),
        ("no directory fsync of what is read", False),
        ("no fsync of what others wrote", True),
    ],
)
def test_a_dead_writer_and_the_loss_of_power_would_catch(ram, defect, wait):
    with pytest.raises(Broken, match=LOST), planted(defect):
        check_death_then_power(ram, wait)
