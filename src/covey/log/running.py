"""Who runs a journal: `Runs`, each with a file in ``<journal>.runs``; and `asking`, turns to ask.

A run locks its file while it lives. One that others may join counts in it, too, every few seconds.
Between runs under one kernel the lock tells at once who is dead. Otherwise the count does: a run is
dead if it stood still for a while, by the observer's own clock. No two clocks are compared. What a
run is to do, and how it ended, is in the log (`Began`, `Ended`).
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import socket
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from covey.disk import (
    BESIDE,
    Descriptor,
    forget_staged,
    is_at,
    is_locked,
    lock_is_held,
    locked,
    now,
    open_existing,
    reporting,
    take_lock,
    write_at,
)
from covey.errors import JournalConflict, JournalError

_log = logging.getLogger("covey")

BEAT = 5.0  # seconds between two counts
LEASE = 60.0  # seconds without a count after which a run is dead
LOOK = 0.5  # seconds between two looks at the others
_NAME = re.compile(r"[0-9a-f]{8}")  # of a run, and of its file
_MOST = 8192  # bytes of a file
_COUNT = 20  # digits of the count
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


@dataclass(slots=True)
class Run:
    """A run as its file shows it; no process (0) if it has not written there yet."""

    id: str
    pid: int = 0
    host: str = ""
    since: str = ""  # a time in ISO format
    kernel: str = ""
    joinable: bool = True  # whether others may run beside it; then it counts
    count: str = ""  # as it stands there
    locked: bool = True
    quiet: float = 0.0  # seconds for which it was observed not to count
    lives: bool = True
    proven: bool = False  # whether it was seen to live: a file may be of a run that is dead

    def __str__(self) -> str:
        if not self.pid:
            return "another process"
        return f"process {self.pid} on {self.host}, since {self.since}"

    @property
    def by_lock(self) -> bool:
        """Whether its lock says if it lives: under one kernel, and where there is no count."""
        return self.kernel == kernel() or not self.joinable


class Runs:
    """This run and the others of a journal; without a journal there are no others.

    Args:
        journal: which.
        join: whether this run may begin beside others; else it shares the journal as soon as
            others join it.
        joinable: whether others may join it. Then a thread counts, which a run on an executor
            that forks does not want.
    """

    def __init__(
        self, journal: Path | None = None, *, join: bool = False, joinable: bool = True
    ) -> None:
        self.id = secrets.token_hex(4)  # in the name of every attempt of this run
        self.shared = self._join = join
        self.journal = journal
        self._folder = None if journal is None else folder_of(journal)
        self._found: dict[str, Run] = {}
        self._looked: float | None = None
        self._joinable = joinable or join
        self._since, self._kernel, self._count = now("seconds"), kernel(), 0
        self._file: Descriptor | None = None
        self._lock, self._over = threading.Lock(), threading.Event()

    @contextmanager
    def entered(self) -> Iterator[Runs]:
        """Run the journal until the end of the context, alone or beside others.

        Raises:
            JournalConflict: Another run lives, and one of the two does not share the journal.
            JournalError: The file of this run cannot be written safely, or the journal has several
                names (hard links), each of which would have runs of its own.
        """
        if self.journal is None or self._folder is None:
            yield self
            return
        counter = threading.Thread(target=self._count_on, name="covey-beat", daemon=True)
        try:
            self._enter(self.journal, self._folder)
            if self._joinable:
                counter.start()
            yield self
        finally:
            self._over.set()
            if counter.ident is not None:
                counter.join()
            self._leave(self._folder)

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
        for run in {*self._found, *_names(self._folder)} - {self.id}:
            self._observe(run, passed)

    def lives(self, run: str) -> bool:
        """Whether a run lives: this one, or one that was there when it was last observed."""
        if run != self.id and run not in self._found:
            self._observe(run, 0.0)  # it may have begun since
        return run == self.id or run in self._found

    @property
    def living(self) -> list[Run]:
        """The others that live, the oldest first."""
        return sorted(self._found.values(), key=lambda run: run.since)

    def _enter(self, journal: Path, folder: Path) -> None:
        """Show that this run lives, unless others are in its way; of a far one that takes long."""
        warned = False
        while True:
            with reporting(f"write {folder}"), _held(journal):
                _require_one_name(journal)
                _require_ours(folder, journal)
                _require_no_older(journal)
                self.look(now=True)
                # One without an entry was killed as it began: while this lock is held none begins.
                begun = [run for run in self.living if run.pid or run.locked]
                others = [run for run in begun if not (self._join and run.joinable)]
                if not others:
                    self._beat()
                    return
            for other in others:
                if other.proven:
                    raise _conflict(journal, other)
            if not warned:
                warned = True
                _log.warning("waiting up to %.0f s to see whether %s lives", LEASE, others[0])
            time.sleep(min(LOOK, BEAT))

    def _observe(self, id: str, passed: float) -> None:
        """Look at the file of one run, and forget the run if it is dead."""
        if self._folder is None:
            return
        path = self._folder / id
        run = _read(path)
        if run is None:
            self._found.pop(id, None)
            return
        known = self._found.get(id)
        moved = known is not None and run.count != known.count
        run.quiet = 0.0 if known is None or moved else known.quiet + passed
        was_proven = known is not None and known.proven
        run.proven = was_proven or moved or (run.by_lock and run.locked)
        if run.locked if run.by_lock else run.quiet <= LEASE:
            self._found[id] = run
            self.shared = True
            return
        why = "has ended" if run.by_lock else f"was not heard of for {LEASE:.0f} s"
        _log.info("the run of %s %s; what it had is taken over", run, why)
        self._found.pop(id, None)
        with suppress(OSError):
            path.unlink()  # if it lives after all, it makes a new one

    def _count_on(self) -> None:
        while not self._over.wait(BEAT):
            with suppress(OSError):  # a beat is left out; if that lasts, others take over
                self._beat()

    def _beat(self) -> None:
        if self._folder is None:
            return
        path = self._folder / self.id
        with self._lock:
            if self._file is None or not is_at(self._file.fd, path):
                # Whoever took this run for dead has removed it. What they have not taken over yet
                # is this run's again; what they have is in the log.
                self._file = Descriptor(_opened(path))
                take_lock(self._file.fd, path)  # first, or it would look like one left behind
            self._count += 1
            entry = {"pid": os.getpid(), "host": socket.gethostname(), "since": self._since}
            more = {"kernel": self._kernel, "joinable": self._joinable}
            data = f"{self._count:0{_COUNT}d}\n{json.dumps({**entry, **more})}".encode()
            write_at(self._file.fd, 0, data)
            os.fsync(self._file.fd)  # or other machines do not see it

    def _leave(self, folder: Path) -> None:
        if self._file is not None:
            own = is_at(self._file.fd, folder / self.id)
            self._file.close()  # first: Windows removes no open file
            if own:
                (folder / self.id).unlink(missing_ok=True)
        with suppress(OSError):  # others are there
            folder.rmdir()


def running(journal: Path) -> AbstractContextManager[Runs]:
    """Hold the right to run a journal alone; it ends with the process, however that ends."""
    return Runs(journal, joinable=False).entered()


def runs_of(journal: Path) -> dict[str, Run]:
    """The runs that have a file, oldest first, by a single look: whether they seem to live.

    One on another machine does if its file is young, by the clocks of both: this is no decision.
    """
    folder, found = folder_of(journal), []
    for name in _names(folder):
        run = _read(folder / name)
        with suppress(OSError):
            if run is not None and run.pid:
                age = abs(time.time() - (folder / name).stat().st_mtime)
                run.lives = run.locked if run.by_lock else age < LEASE
                found.append(run)
    return {run.id: run for run in sorted(found, key=lambda run: (run.since, run.id))}


@contextmanager
def _held(journal: Path) -> Iterator[None]:
    """Hold the journal's own lock, so that of two runs that begin at once one is first."""
    file = Descriptor(open_existing(journal, os.O_RDWR))
    try:
        with locked(file.fd, journal):
            yield
    finally:
        file.close()


def _opened(path: Path) -> int:
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):  # another run, which ends, has removed the folder
            path.parent.mkdir(exist_ok=True)  # others may look who runs it
            return os.open(path, os.O_RDWR | os.O_CREAT | BESIDE, 0o666)
    raise JournalError(f"{path.parent} is removed again and again; look who does that.")


def _names(folder: Path) -> set[str]:
    try:
        return {name for name in os.listdir(folder) if _NAME.fullmatch(name)}  # noqa: PTH208
    except OSError:
        return set()


def _read(path: Path) -> Run | None:
    """What the file of a run says; None if there is none.

    Opened anew each time, since that is when a network file system asks what is new.
    """
    if not _NAME.fullmatch(path.name):
        return None
    try:
        fd = os.open(path, os.O_RDONLY | BESIDE)
    except FileNotFoundError:
        return None
    except OSError:  # it cannot be read now: it may live
        return Run(path.name)
    try:
        count, _, entry = os.read(fd, _MOST).decode("ascii", "replace").partition("\n")
        is_held = is_locked(fd)
    except OSError:
        return Run(path.name)
    finally:
        os.close(fd)
    try:
        fields = _fields(json.loads(entry))
    except (ValueError, KeyError, TypeError):  # it has just begun to write
        fields = {}
    return Run(path.name, **fields, count=count, locked=is_held)


def _fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    who = {"pid": int(entry["pid"]), "host": str(entry["host"]), "since": str(entry["since"])}
    joinable = entry.get("joinable", True) is not False  # Covey 0.2 does not say
    return {**who, "kernel": str(entry.get("kernel", "")), "joinable": joinable}


def _conflict(journal: Path, other: Run) -> JournalConflict:
    way_out = ". Join it (--join, or join=True)"
    if not other.joinable:
        way_out = ", which has neither workers=4, a number, nor --join. Start it with --join too"
    return JournalConflict(
        f"{journal} is being run by {other}{way_out}, wait for it, stop it, or use another journal."
    )


def _require_no_older(journal: Path) -> None:
    """Refuse to run beside Covey 0.2, which has a lock, and not always a file of its own here."""
    lock, is_held = folder_of(journal).with_suffix(".lock"), None
    with suppress(OSError):  # it is no lock
        is_held = lock_is_held(lock)
    if is_held:
        raise JournalConflict(
            f"{journal} is being run by Covey 0.2. Wait for it, stop it, or use another journal."
        )


def _require_ours(folder: Path, journal: Path) -> None:
    """Refuse a folder that another user may have put there, or a link, which leads elsewhere."""
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return
    trusted = {os.geteuid(), journal.stat().st_uid} if hasattr(os, "geteuid") else {found.st_uid}
    if stat.S_ISLNK(found.st_mode):
        why = "is a link"
    elif not stat.S_ISDIR(found.st_mode):
        why = "is no folder"
    elif found.st_uid not in trusted:
        why = f"belongs to another user (uid {found.st_uid})"
    else:
        return
    raise JournalError(
        f"{folder} {why}, so it is left alone and nothing is run. Runs make this folder "
        "themselves: move what is there away. Delete it if it is of no use."
    )


def _require_one_name(journal: Path) -> None:
    """Refuse hard links: a run by each name would not see those by the other."""
    journal = journal.resolve()
    found = journal.stat()
    if found.st_nlink > 1:
        forget_staged(journal)
        found = journal.stat()
    if found.st_nlink > 1:
        raise JournalError(
            f"{journal} has {found.st_nlink} names (hard links), and two runs by two names would "
            f"not see each other. Delete the others (find / -inum {found.st_ino}), or run a copy."
        )


def turn_path(journal: Path) -> Path:
    """The path of the file whose lock is the turn to ask; it is empty, and may stay behind."""
    journal = journal.resolve()  # a link and what it leads to share one turn
    return journal.with_name(f"{journal.name}.ask")


def is_asked(journal: Path) -> bool:
    """Whether somebody has the turn to choose a batch now."""
    with suppress(OSError):  # there are no turns
        return bool(lock_is_held(turn_path(journal)))
    return False


@contextmanager
def asking(journal: Path) -> Iterator[None]:
    """Wait for a turn to choose a batch, and hold it; writers do not need it.

    The turn is a lock (`turn_path`). The kernel frees it when the process ends. Where there can be
    no such file, there are no turns: of two asks at once the one that writes first is first, and
    the other has to choose again.
    """
    path = turn_path(journal)
    try:
        file = Descriptor(os.open(path, os.O_RDONLY | os.O_CREAT | BESIDE, 0o666))
    except OSError:  # another user's folder, or a link
        yield
        return
    try:
        with reporting(f"wait for {path}"):
            take_lock(file.fd, path)
        yield
    finally:
        file.close()
