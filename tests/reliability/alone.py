"""Run a check in an interpreter of its own: with one thread, so that it may fork.

Under pytest-xdist a test shares its process with a thread, and a fork of that is no fair test of
anything. One interpreter runs one check, however many children that forks.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.reliability.mutants import planted
from tests.reliability.verdict import SCALE, Broken

ROOT = Path(__file__).parents[2]
_BOOT = "import sys; sys.path.insert(0, '.'); from tests.reliability.alone import main; main()"


def alone(
    check: Callable[..., Any],
    *args: Any,
    defect: str | None = None,
    under: Sequence[str] = (),
    **options: Any,
) -> Any:
    """What the check returns; a verdict of Broken is raised here too.

    Args:
        check: a function of a module of these tests.
        args: for it; they travel by pickle.
        defect: the mutant to run it against.
        under: a command to start the interpreter with, such as ``unshare -rm``.
        options: for it.
    """
    job = (check.__module__, check.__name__, args, options, defect)
    process = subprocess.Popen(
        [*under, sys.executable, "-c", _BOOT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        start_new_session=True,
    )
    try:
        out, err = process.communicate(pickle.dumps(job), timeout=300 * max(1.0, SCALE))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"the check itself failed:\n{err.decode()}")
    verdict, result = pickle.loads(out)
    if verdict == "broken":
        raise Broken(result)
    return result


def main() -> None:
    """The other side of `alone`."""
    module, name, args, options, defect = pickle.load(sys.stdin.buffer)
    check = getattr(importlib.import_module(module), name)
    with planted(defect):
        try:
            said = ("kept", check(*args, **options))
        except Broken as verdict:
            said = ("broken", str(verdict))
    sys.stdout.buffer.write(pickle.dumps(said))


class Child:
    """A forked process that does some work and reports lines through a pipe."""

    def __init__(self, work: Callable[..., None], *args: Any) -> None:
        self._pipe, end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._live(end, work, args)
        os.close(end)
        self._said = b""

    def _live(self, end: int, work: Callable[..., None], args: tuple[Any, ...]) -> None:
        code = 1
        try:
            os.close(self._pipe)
            work(end, *args)
            code = 0
        except BaseException:
            os.write(end, b"!" + traceback.format_exc().replace("\n", " | ").encode() + b"\n")
        finally:
            os._exit(code)

    def heard(self, lines: int = 1) -> None:
        """Wait until it has said so many lines, or is gone."""
        while self._said.count(b"\n") < lines and (part := os.read(self._pipe, 65536)):
            self._said += part

    def kill(self) -> None:
        """End it, as the kernel does when memory runs out."""
        os.kill(self.pid, signal.SIGKILL)

    def reports(self) -> list[str]:
        """Every whole line it said, once it is gone; half a line was not said."""
        while part := os.read(self._pipe, 65536):
            self._said += part
        os.close(self._pipe)
        os.waitpid(self.pid, 0)
        said = self._said[: self._said.rfind(b"\n") + 1].decode().splitlines()
        for line in said:
            if line.startswith("!"):
                raise Broken(f"a writer failed: {line[1:]}")
        return said


@contextmanager
def patience(seconds: float, promise: str) -> Iterator[None]:
    """Raise Broken if this takes longer: whoever waits for a dead process waits for ever."""

    def give_up(*_: object) -> None:
        raise Broken(promise)

    old = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
