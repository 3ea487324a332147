"""A process as on Windows: `python -m tests.windows FOLDER [locks]`, for `test_windows.py`.

What POSIX has and Windows has not is taken away, open files can be neither removed nor renamed, and
with ``locks`` there is a `msvcrt` whose locks exclude each other as those of Windows do. It is no
Windows: paths, codecs, consoles and signals are those of this system.
"""

from __future__ import annotations

import concurrent.futures.process
import fcntl
import os
import subprocess
import sys
import threading
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import scipy.linalg
import scipy.optimize

from covey.arrays import one_thread

# Looked at for what they were built for when they are imported, so before anything is taken away.
BUILT_FOR_POSIX = (concurrent.futures.process, subprocess, scipy.linalg, scipy.optimize)
MISSING = (
    *("pread", "pwrite", "fork", "uname", "geteuid", "getuid", "killpg", "setsid", "waitid"),
    *("register_at_fork", "fchmod", "fchown", "mkfifo", "getpgid", "posix_fadvise"),
    *("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_SYNC"),
)
BYTE = 2**31 - 2


def take_away() -> None:
    """Remove what Windows does not have, and refuse what it refuses."""
    for name in ("fcntl", "termios", "tty", "pwd", "grp", "resource"):
        sys.modules[name] = None  # type: ignore[assignment]
    for name in MISSING:
        if hasattr(os, name):
            delattr(os, name)
    for name in ("unlink", "remove", "rename", "replace"):
        setattr(os, name, _refusing(getattr(os, name)))


def _refusing(change: Any) -> Any:
    def refuse(path: Any, *others: Any, **options: Any) -> None:
        for fd in Path("/proc/self/fd").iterdir():
            if not options and os.path.realpath(fd) in map(os.path.realpath, (path, *others)):
                raise PermissionError(13, "it is open in this process", str(path))
        change(path, *others, **options)

    return refuse


class Locks(ModuleType):
    """`msvcrt`, as far as it locks: one byte at the place of the file, exclusively, at once."""

    LK_UNLCK, LK_LOCK, LK_NBLCK, LK_RLCK, LK_NBRLCK = range(5)

    def __init__(self) -> None:
        super().__init__("msvcrt")
        self.__spec__ = ModuleSpec("msvcrt", None)
        self.held: set[int] = set()
        self.refused = 0
        close, self._flock = os.close, fcntl.flock

        def forget(fd: int) -> None:
            self.held.discard(fd)
            close(fd)

        os.close = forget

    def locking(self, fd: int, mode: int, count: int) -> None:
        """Lock or unlock; what is locked already, by the same file too, is refused."""
        assert (os.lseek(fd, 0, os.SEEK_CUR), count) == (BYTE, 1)
        assert mode in (self.LK_NBLCK, self.LK_UNLCK)
        wanted = mode == self.LK_NBLCK
        if (fd in self.held) == wanted:
            raise PermissionError(13, "Permission denied")
        try:
            self._flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB if wanted else fcntl.LOCK_UN)
        except BlockingIOError as error:
            self.refused += 1
            raise PermissionError(13, "Permission denied") from error
        (self.held.add if wanted else self.held.discard)(fd)


def use(folder: Path) -> None:
    """Ask, tell, run, look and write files, in Python and by the command line."""
    import covey
    from covey.cli.app import _run
    from covey.run import Command

    space, journal = covey.Space({"x": covey.Real(-1.0, 1.0)}), folder / "run.jsonl"
    study = covey.Study(space, seed=0, journal=journal)
    study.tell(study.ask(2), [1.0, 2.0])
    assert len(covey.Study.load(journal).history.told) == 2
    options: Any = {"batch": 2, "rounds": 2, "workers": 2, "seed": 0, "progress": False}
    result = covey.maximize(lambda p: -(p["x"] ** 2), space, journal=folder / "f.jsonl", **options)
    assert len(result.study.history.told) == 4
    joined = covey.Study(space, seed=0, journal=folder / "joined.jsonl")
    joined.run(lambda p: p["x"], batch=2, rounds=1, workers=2, join=True, progress=False)
    program = [sys.executable, "-c", "print('1 0.5'); print(1.5)"]
    said = covey.Study(space, seed=0)
    said.run(Command(program), batch=2, rounds=1, workers=2, progress=False, stopping="asha")
    assert len(said.history.reports(0)) == 1
    os.chdir(folder)
    for words in (
        ["init", "--real", "x=0:1", "--seed", "1", "--", sys.executable, "-c", "print({x.x})"],
        ["ask", "--batch", "2", "--out", "sheet.csv"],
        ["cancel", "0", "1"],
        ["run", "--rounds", "1", "--batch", "2", "--workers", "2"],
        *(["status"], ["export", "--out", "all.csv"], ["journal", "verify", "covey.jsonl"]),
    ):
        code, text = _run(words)
        assert not code, text
    assert len(covey.Study.load("covey.jsonl").history.told) == 2


def exclude(folder: Path, locks: Locks) -> None:
    """Two open files lock each other out, and who waits has it when it is free."""
    from covey.disk import is_locked, locked, try_lock

    path = folder / "file"
    mine, theirs = (os.open(path, os.O_RDWR | os.O_CREAT) for _ in range(2))
    with locked(mine, path):
        assert is_locked(theirs)
        assert not try_lock(theirs)
        os.lseek(mine, BYTE, os.SEEK_SET)
        free = threading.Timer(0.1, locks.locking, (mine, locks.LK_UNLCK, 1))
        free.start()
        with locked(theirs, path):
            free.join()
            assert is_locked(mine)
    assert not is_locked(mine)
    assert not is_locked(theirs)


def share(folder: Path, locks: Locks) -> None:
    """A second run is refused, whoever looks sees the first, and three writers lose nothing."""
    import covey
    from covey.errors import JournalConflict
    from covey.log.running import running, runs_of

    journal, waits = folder / "run.jsonl", locks.refused
    covey.Study(covey.Space({"x": covey.Real(-1.0, 1.0)}), seed=0, journal=journal)
    with running(journal):
        assert f"process {os.getpid()} " in str(next(iter(runs_of(journal).values())))
        with pytest.raises(JournalConflict, match=str(os.getpid())), running(journal):
            pass
    assert not runs_of(journal)

    def write(number: int) -> None:
        study = covey.Study.load(journal)
        for count in range(10):
            study.add([{"x": number / 10 + count / 100}], [float(count)])

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(covey.Study.load(journal).history.told) == 30
    assert locks.refused > waits


if __name__ == "__main__":
    there = Path(sys.argv[1])
    with one_thread():  # looks for the libraries of this system, and remembers them
        pass
    if sys.argv[2:] == ["locks"]:
        simulated = Locks()
        take_away()
        sys.modules["msvcrt"] = simulated
        exclude(there, simulated)
        share(there, simulated)
    else:
        take_away()
        use(there)
    sys.stdout.write("done\n")
