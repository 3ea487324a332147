"""R5: a call that fails, whichever it is and however, gives no false acknowledgement."""

from __future__ import annotations

import errno
import itertools
from pathlib import Path

import pytest
from tests.reliability.mutants import planted
from tests.reliability.platter import CALLS, Platter
from tests.reliability.verdict import Broken, demand, stored

from covey.errors import JournalError
from covey.log.journal import Journal, read

KINDS = (errno.ENOSPC, errno.EIO, errno.EINTR, errno.EFBIG, errno.EDQUOT, "short")
LOST = "an acknowledged event was lost"
LEFT = "a failed append left something behind"
FALSE = "an acknowledged event was not on disk"


class Client:
    """Appends; what is refused is sent once more, after opening the journal again if it must."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.acked: list[int] = []
        self.journal = Journal.create(path, {})

    def send(self, n: int) -> None:
        before = self.path.read_bytes()
        try:
            self.journal.append({"n": n})
            self.acked.append(n)
        except JournalError:
            clean = before[: before.rfind(b"\n") + 1]  # without a torn line it may have cut
            undone = self.path.read_bytes() in (before, clean)
            try:
                self.journal.append({"n": n})
                demand(undone, LEFT)
                self.acked.append(n)
            except JournalError:
                self.journal.close()
                self.journal = Journal.open(self.path)

    def tear(self) -> None:
        with self.path.open("ab") as file:
            file.write(b'{"seq":9,"torn')

    def work(self) -> None:
        """Every kind of call is made."""
        for n in range(4):
            if n == 2:
                self.tear()
            self.send(n)
        self.journal.close()
        self.journal = Journal.open(self.path)
        self.send(4)
        self.journal.close()


def run_with_fault(live: Path, at: int, kind: int | str, links: bool) -> tuple[list[str], bool]:
    """Let the call number ``at`` fail; the calls that failed, and whether it came so far."""
    failed: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        platter, client = Platter(patch, live), None

        def before(name: str) -> int | str | None:
            if name == "link" and not links:
                return errno.EPERM
            if len(platter.calls) != at:
                return None
            failed.append(name)
            return kind

        platter.before = before
        try:
            client = Client(live / "run")
            client.work()
        except JournalError:
            demand(failed, "a call failed that was not made to")
        platter.pull_the_plug(live.with_name(f"{live.name}-boot"))
    judge(live, client.acked if client else [], created=client is not None)
    return failed, len(platter.calls) >= at


def judge(live: Path, acked: list[int], created: bool) -> None:
    path, boot = live / "run", live.with_name(f"{live.name}-boot") / "run"
    if not created:  # it is not there; or whole, where only the cleaning up had failed
        empty = not path.exists() or read(path).events == []
        demand(empty, "half a journal was created")
        return
    found = [event["n"] for event in stored(path)]
    demand(found == acked, LOST if set(acked) - set(found) else LEFT, found, acked)
    demand(boot.exists() or not acked, FALSE, "no file")
    kept = [e["n"] for e in read(boot, prefix=True).events] if boot.exists() else []
    demand(kept[: len(acked)] == acked, FALSE, kept, acked)
    with Journal.open(path) as journal:
        journal.append({"n": 99})
    demand([event["n"] for event in stored(path)] == [*acked, 99], LOST)


def check_faults(folder: Path, kinds: tuple[int | str, ...] = KINDS) -> tuple[int, set[str]]:
    """A fault of each kind at the k-th call, for every k; with and without hard links."""
    runs, seen = 0, set()
    for kind, links in itertools.product(kinds, (True, False)):
        for at in itertools.count(1):
            live = folder / f"{kind}-{links}-{at}"
            live.mkdir()
            failed, reached = run_with_fault(live, at, kind, links)
            if not reached:
                break
            runs += 1
            seen |= set(failed)
    return runs, seen


def test_a_fault_at_any_call_gives_no_false_acknowledgement(ram):
    """R5: valid journal or poisoned handle, for every k and kind."""
    runs, seen = check_faults(ram)
    assert runs > 300
    assert seen == set(CALLS)


@pytest.mark.parametrize(
    ("defect", "verdict"),
    [
        ("fsync again after it failed", FALSE),
        ("no fsync", FALSE),
        ("no roll back", LEFT),
        ("errors swallowed", f"{LOST}|{LEFT}"),
        ("short write believed", f"{LOST}|{LEFT}|{FALSE}"),
    ],
)
def test_faults_would_catch(ram, defect, verdict):
    with pytest.raises(Broken, match=verdict), planted(defect):
        check_faults(ram, (errno.EIO, "short"))


def check_double_fault(folder: Path) -> None:
    """The write fails, and to undo it fails too: the handle is good for nothing any more."""
    path = folder / "run"
    with Journal.create(path, {}) as journal:
        journal.append({"n": 0})
        with pytest.MonkeyPatch.context() as patch:
            platter = Platter(patch, folder)
            platter.before = lambda name: errno.EIO if name in ("write", "ftruncate") else None
            for _ in range(2):
                with pytest.raises(JournalError):
                    journal.append({"n": 1})
        try:
            journal.append({"n": 1})
        except JournalError as error:
            demand("Open the journal again" in str(error), "it does not say what to do", error)
        else:
            raise Broken("a handle was used that does not know its file")
    with Journal.open(path) as journal:
        journal.append({"n": 2})
    demand([event["n"] for event in stored(path)] == [0, 2], LOST)


def test_a_fault_while_a_fault_is_undone_poisons_the_handle(ram):
    check_double_fault(ram)


def test_a_double_fault_would_catch_a_handle_that_goes_on(ram):
    with (
        pytest.raises(Broken, match="does not know its file"),
        planted("a failed roll back forgotten"),
    ):
        check_double_fault(ram)
