"""Runs that share one journal: `Heartbeat` shows that a run lives, `Peers` which others do.

Who evaluates which trial is in the log: its last attempt names a run, and nothing is logged of an
attempt that is out of date (`follows`, `is_last`). Whether a run lives is shown by its file in
``<journal>.runs``, which it locks, and in which it counts on every few seconds. Between runs under
one kernel the lock tells at once. Otherwise the count does: a run is dead if it stood still for a
while, by the observer's own clock. No two clocks are compared.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from covey.disk import BESIDE, Descriptor, is_at, is_locked, now, reporting, take_lock, write_at
from covey.errors import JournalConflict, JournalError, StrategyError, SupersededError
from covey.history import Dispatched, History, Reported
from covey.log.log import Requirement
from covey.log.running import Holder, holder, last_run, note_end, running
from covey.run.task import Task

if TYPE_CHECKING:
    from covey.study import Study

_log = logging.getLogger("covey")

BEAT = 5.0  # seconds between two counts
LEASE = 60.0  # seconds without a count after which a run is dead
LOOK = 0.5  # seconds between two looks at the others
_RUN = re.compile(r"[0-9a-f]{8}")
_MOST = 8192  # bytes of a file
_COUNT = 20  # digits of the count
_START = 2.0  # seconds from the lock of a run that starts to its file
_TRIES = 20  # to make a file in a folder that others remove when they end


def folder_of(journal: Path) -> Path:
    """The folder in which the runs of a journal show that they live."""
    journal = journal.resolve()  # a link and what it leads to share one
    return journal.with_name(f"{journal.name}.runs")


def kernel() -> str:
    """What all processes share among which locks are known to work: the boot of one kernel."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()


class Heartbeat:
    """The file by which a run shows that it lives; a thread counts on in it."""

    def __init__(self, journal: Path, run: str) -> None:
        self._path = folder_of(journal) / run
        self.since = now("seconds")
        self._entry: dict[str, Any] = {"pid": os.getpid(), "host": socket.gethostname()}
        self._entry |= {"since": self.since, "kernel": kernel(), "plan": {}}
        self._count = 0
        self._file: Descriptor | None = None
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="covey-beat", daemon=True)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show that this process runs the journal, until the end of the context."""
        with reporting(f"write {self._path}"):
            self._beat()
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()
            if self._file is not None:
                own = is_at(self._file.fd, self._path)
                self._file.close()  # first: Windows removes no open file
                if own:
                    self._path.unlink(missing_ok=True)
            with suppress(OSError):  # others are there
                self._path.parent.rmdir()

    def note(self, plan: Mapping[str, Any]) -> None:
        """Write down what this run does."""
        self._entry = {**self._entry, "plan": dict(plan)}
        with suppress(OSError):
            self._beat()

    def _go_on(self) -> None:
        while not self._over.wait(BEAT):
            with suppress(OSError):  # a beat is left out; if that lasts, others take over
                self._beat()

    def _beat(self) -> None:
        with self._lock:
            if self._file is None or not is_at(self._file.fd, self._path):
                # Whoever took this run for dead has removed it. What they have not taken over yet
                # is this run's again; what they have is in the log.
                self._file = Descriptor(self._opened())
                take_lock(self._file.fd, self._path)  # first, or it would look like one left behind
            self._count += 1
            data = f"{self._count:0{_COUNT}d}\n".encode() + json.dumps(self._entry).encode()
            write_at(self._file.fd, 0, data)
            os.fsync(self._file.fd)  # or other machines do not see it

    def _opened(self) -> int:
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):  # another run, which ends, has removed the folder
                self._path.parent.mkdir(mode=0o700, exist_ok=True)
                return os.open(self._path, os.O_RDWR | os.O_CREAT | BESIDE, 0o600)
        raise JournalError(f"{self._path.parent} is removed again and again; look who does that.")


@dataclass(slots=True)
class Peer:
    """Another run of the journal, as far as it was observed."""

    run: str
    who: Holder
    said: bytes  # its count
    quiet: float = 0.0  # seconds of looking for which the count stood still
    proven: bool = False  # it counted on while it was observed, or holds its lock here
    here: bool = False  # under the same kernel


class Peers:
    """The other runs of a journal; without a journal there are none.

    Args:
        journal: which.
        join: whether this run shares the journal from the start; else it does as soon as it sees
            another.
    """

    def __init__(self, journal: Path | None = None, *, join: bool = False) -> None:
        self.run = secrets.token_hex(4)  # in the name of every attempt of this run
        self.shared = self._join = join
        self.journal = journal
        self._folder = None if journal is None else folder_of(journal)
        self._kernel = kernel()
        self._found: dict[str, Peer] = {}
        self._looked: float | None = None
        self._heartbeat: Heartbeat | None = None

    def heartbeat(self) -> AbstractContextManager[None]:
        """Show the others that this run lives, until the end of the context."""
        if self.journal is None:
            return nullcontext()
        self._heartbeat = Heartbeat(self.journal, self.run)
        return self._heartbeat.shown()

    def note(self, plan: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write down what this run does, for whoever looks; the plan again."""
        if self._heartbeat is not None:
            self._heartbeat.note(plan)
        return plan

    def note_end(self, journal: Path | None, why: str) -> None:
        """Write beside the journal when this run ended, and why, for whoever looks.

        One that joined has no lock in which it could stand; if nobody has it, it is taken for that.
        """
        if journal is None:
            return
        if not self._join or self._heartbeat is None:
            note_end(journal, why)
            return
        with suppress(JournalError), running(journal, self._heartbeat.since):
            note_end(journal, why)

    def look(self, *, now: bool = False) -> None:
        """See which others live; at most every so often, unless it has to be ``now``."""
        if self._folder is None:
            return
        before, clock = self._looked, time.monotonic()
        if before is not None and not now and clock - before < LOOK:
            return
        self._looked = clock
        # What was not observed does not count: this process may have been asleep itself, or the
        # folder out of reach for all.
        passed = 0.0 if before is None else min(clock - before, 2.0 * BEAT)
        for run in {*self._found, *_names(self._folder)} - {self.run}:
            self._observe(run, passed)

    def lives(self, run: str) -> bool:
        """Whether a run lives: this one, or one that was there when it was last observed."""
        if run != self.run and run not in self._found and self._folder is not None:
            self._observe(run, 0.0)  # it may have begun since
        return run == self.run or run in self._found

    @property
    def living(self) -> list[Peer]:
        """The others that live, the oldest first."""
        return sorted(self._found.values(), key=lambda peer: peer.who.since)

    def refuse_if_any(self) -> None:
        """Refuse to run beside others; of a far one it may take a while to know.

        Raises:
            JournalConflict: Another run lives.
        """
        told = False
        while True:
            self.look()
            sure = [peer for peer in self.living if peer.proven]
            if sure:
                raise JournalConflict(
                    f"{self.journal} is being run by {sure[0].who}. Join it (--join, or "
                    "join=True), wait for it, stop it, or use another journal."
                )
            if not self._found:
                return
            if not told:
                told = True
                who = self.living[0].who
                _log.warning("waiting up to %.0f s to see whether %s still lives", LEASE, who)
            time.sleep(min(LOOK, BEAT))

    def _observe(self, run: str, passed: float) -> None:
        """Look at the file of one run, and forget the run if it is dead."""
        if self._folder is None:
            return
        path = self._folder / run
        seen = _read(path)
        if seen is None:
            self._found.pop(run, None)
            return
        said, entry, locked = seen
        peer = self._found.get(run)
        if peer is None:
            peer = self._found[run] = Peer(run, _holder_in(entry), said)
        elif said != peer.said:
            peer.said, peer.quiet, peer.proven = said, 0.0, True
        else:
            peer.quiet += passed
        if entry:
            peer.who = _holder_in(entry)
            peer.here = entry.get("kernel") == self._kernel
        peer.proven = peer.proven or (peer.here and locked)
        gone = peer.here and not locked
        if gone or peer.quiet > LEASE:
            why = "has ended" if gone else f"was not heard of for {LEASE:.0f} s"
            _log.info("the run of %s %s; what it had is taken over", peer.who, why)
            del self._found[run]
            with suppress(OSError):
                path.unlink()  # if it lives after all, it makes a new one
        self.shared = self.shared or run in self._found


@contextmanager
def entered(study: Study, *, join: bool, joinable: bool) -> Iterator[Peers]:
    """The other runs of the journal, once this one has the right to run beside them, or alone.

    Args:
        study: what is run.
        join: whether to run beside others.
        joinable: whether this run shows that it lives, so that others may join it; not one on an
            executor, which may fork, and wants no threads for that.

    Raises:
        JournalConflict: Another run holds the journal.
        StrategyError: There is no journal to share.
    """
    with ExitStack() as stack:
        peers = Peers(study.journal, join=join)
        # First each shows itself, by the file or by the lock, and then it looks for others: of two
        # that start at once, at least one sees the other.
        if join:
            stack.enter_context(peers.heartbeat())
            require_joinable(study.journal, peers)
            yield peers
            return
        stack.enter_context(study.running())
        peers.refuse_if_any()
        if not joinable:
            peers = Peers()
        stack.enter_context(peers.heartbeat())
        yield peers


def require_joinable(journal: Path | None, peers: Peers) -> None:
    """Refuse to join a study without a journal, and a run that does not know of others.

    Raises:
        StrategyError: There is no journal.
        JournalConflict: The run that holds the journal shows no sign of life to others.
    """
    if journal is None:
        raise StrategyError(
            "join needs a journal that others share; give one: journal='run.jsonl'."
        )
    until = time.monotonic() + _START
    while True:
        who = holder(journal)
        peers.look(now=True)
        known = {(peer.who.pid, peer.who.host) for peer in peers.living}
        if who is None or (who.pid, who.host) in known:
            return
        if time.monotonic() > until and holder(journal) == who:
            break
        time.sleep(_START / 20)
    raise JournalConflict(
        f"{journal} is being run by {who}, which cannot be joined: it is of an older Covey, or "
        "has neither a number of workers nor --join. Wait for it, or start it with --join too."
    )


def runs_of(journal: Path) -> dict[str, Holder]:
    """Which runs seem to live, by their files, for whoever only looks once.

    One on another machine counts if its file is young, by the clocks of both: this is no decision.
    """
    found = {run: who for run, who, _, lives in _seen(folder_of(journal)) if lives}
    return dict(sorted(found.items(), key=lambda item: (item[1].since, item[0])))


def last_of(journal: Path) -> Holder | None:
    """Who ran a journal last: the last to say that it ended, or one whose file was left behind."""
    last = last_run(journal)
    said = "" if last is None else last.ended or last.since
    left = {at: who for _, who, at, lives in _seen(folder_of(journal)) if not lives}
    newest = max(left, default="")
    return left[newest] if newest > said else last


def _seen(folder: Path) -> Iterator[tuple[str, Holder, str, bool]]:
    """The runs that have a file: which, who, when it last counted, and whether it seems to live."""
    own = kernel()
    for run in _names(folder):
        seen = _read(folder / run)
        if seen is None or not seen[1]:
            continue
        _, entry, locked = seen
        with suppress(OSError):
            at = (folder / run).stat().st_mtime
            lives = locked if entry.get("kernel") == own else abs(time.time() - at) < LEASE
            counted = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
            yield run, _holder_in(entry), counted, lives


def _names(folder: Path) -> set[str]:
    try:
        return {name for name in os.listdir(folder) if _RUN.fullmatch(name)}  # noqa: PTH208
    except OSError:
        return set()


def _read(path: Path) -> tuple[bytes, dict[str, Any], bool] | None:
    """Count, entry and whether it is locked; None if there is no such file.

    Opened anew each time, since that is when a network file system asks what is new.
    """
    if not _RUN.fullmatch(path.name):
        return None
    try:
        fd = os.open(path, os.O_RDONLY | BESIDE)
    except FileNotFoundError:
        return None
    except OSError:  # it cannot be read now: it may live
        return b"", {}, True
    try:
        data = os.read(fd, _MOST)
        locked = is_locked(fd)
    except OSError:
        return b"", {}, True
    finally:
        os.close(fd)
    said, _, rest = data.partition(b"\n")
    try:
        entry = json.loads(rest)
    except ValueError:  # it has just begun to write
        entry = {}
    return said, entry if isinstance(entry, dict) else {}, locked


def _holder_in(entry: Mapping[str, Any]) -> Holder:
    try:
        plan = entry.get("plan")
        who = int(entry["pid"]), str(entry["host"]), str(entry["since"])
        return Holder(*who, plan if isinstance(plan, dict) else {})
    except (KeyError, TypeError, ValueError):
        return Holder(0, "", "")


# What is logged of an attempt, provided that it is not out of date.


def follows(sent: Dispatched) -> Requirement:
    """Refuse an attempt unless it is the next one: of two runs that want a trial, one gets it."""

    def require(history: History) -> None:
        if len(history.attempts(sent.id)) != sent.attempt - 1:
            raise SupersededError(f"trial {sent.id} has attempt {sent.attempt} already.")

    return require


def is_last(task: Task) -> Requirement:
    """Refuse what becomes of an attempt unless it is the last one of its trial."""

    def require(history: History) -> None:
        if len(history.attempts(task.id)) > task.attempt:
            raise SupersededError(f"trial {task.id} has an attempt after {task.attempt}.")

    return require


def is_next(said: Reported) -> Requirement:
    """Refuse a report unless it is the next one of an attempt that is awaited.

    Another run may have logged it, if both found the same evaluation; may have stopped the trial,
    whose last report is then the one that it was told; or may have begun the trial again.
    """

    def require(history: History) -> None:
        known = [one.step for one in history.reports(said.id) if one.attempt == said.attempt]
        pending = history.trial(said.id).status == "pending"
        awaited = pending and len(history.attempts(said.id)) <= said.attempt
        if not awaited or said.step <= max(known, default=-1):
            raise SupersededError(f"step {said.step} of trial {said.id} is out of date.")

    return require


def is_newest(said: Reported) -> Requirement:
    """Refuse to stop a trial at a report after which another run has logged one."""

    def require(history: History) -> None:
        if history.reports(said.id)[-1] != said:
            raise SupersededError(f"trial {said.id} has come further than step {said.step}.")

    return require
