"""Intermediate values: `report` sends one from an evaluation, `Reports` reads those of a folder.

They travel through a file in the folder of the evaluation, a line for each, and become `reported`
events. A program prints them: a line ``step value``, or a JSON object with these two.
"""

from __future__ import annotations

import json
import math
import os
import re
from contextlib import suppress
from pathlib import Path

from covey.errors import StrategyError, is_whole

VARIABLE = "COVEY_REPORTS"  # the file, in the environment of an evaluation
FILE = "reports"  # its name in the folder of an evaluation
_MANY = 10_000  # reports of one evaluation; later ones are passed over
_MUCH = 65_536  # bytes read at once
_MOST = 1e100  # largest absolute value that the log takes
_LONG = 1000  # characters of a line that may be a report
_PAIR = re.compile(
    r"\s*(\d{1,15})[ \t]+([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf))\s*", re.I
)
_last: dict[str, int] = {}  # the step of the last report, by file


def report(step: int, value: float) -> None:
    """Say how an evaluation stands after a step: its value so far, in your own sign.

    Call it inside f. `covey watch` shows it, and a run with ``stopping`` may end what does badly.
    Outside a run it only checks what it is given.

    Args:
        step: a whole number that grows from one report to the next: an epoch, a size.
        value: what f would return if it ended now.

    Raises:
        StrategyError: The step is no whole number or not above the last, or the value not finite.
    """
    if not is_whole(step, 0):
        raise StrategyError(f"report: a step is a whole number >= 0; got {step!r}.")
    number = _finite(value)
    if number is None:
        raise StrategyError(
            f"report: the value at step {step} must be a finite number; got {value!r}. Raise an "
            "error of your own where a training has diverged: the evaluation then counts as failed."
        )
    path = os.environ.get(VARIABLE, "")
    if step <= _last.get(path, -1):
        raise StrategyError(
            f"report: step {step} after step {_last[path]}; steps grow from one report to the next."
        )
    if path:
        _last[path] = int(step)
        append(Path(path), int(step), number)


def _finite(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]  # tensors and arrays of one element too
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and abs(number) <= _MOST else None


def append(path: Path, step: int, value: float) -> None:
    """Add a report to a file; one that cannot be written is left out, since f matters more."""
    with suppress(OSError):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _FLAGS, 0o600)
        try:
            os.write(fd, f"{json.dumps([step, value])}\n".encode())
        finally:
            os.close(fd)


_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def report_in(line: str) -> tuple[int, float] | None:
    """The step and the value that a line of output reports; None if it is no report, or a bad one.

    >>> report_in("30 0.71"), report_in('{"step": 30, "value": 0.71, "loss": 2}')
    ((30, 0.71), (30, 0.71))
    >>> report_in("30 nan"), report_in("-1 0.5"), report_in("0.71"), report_in("epoch 30: 0.71")
    (None, None, None, None)
    """
    if len(line) > _LONG:
        return None
    if line.lstrip().startswith("{"):
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            return None
        step, value = said.get("step"), said.get("value")
    else:
        match = _PAIR.fullmatch(line)
        if match is None:
            return None
        step, value = int(match[1]), match[2]
    number = None if isinstance(value, bool) else _finite(value)
    return (int(step), number) if is_whole(step, 0) and number is not None else None


class OutputReports:
    """Picks the reports out of what a program prints; those that do not go forward are left out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rest = b""
        self._step = -1
        self._count = 0

    def feed(self, data: bytes) -> None:
        """Take some more of the output."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-_LONG:]
        for line in lines:
            found = report_in(line.decode(errors="replace"))
            if found is not None and found[0] > self._step and self._count < _MANY:
                self._step, self._count = found[0], self._count + 1
                append(self._path, *found)


class Reports:
    """The reports of one evaluation, read as they come."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._at = 0
        self._step = -1

    def new(self) -> list[tuple[int, float]]:
        """Those since the last call, in order."""
        try:
            fd = os.open(self._path, os.O_RDONLY | _FLAGS)
        except OSError:
            return []
        try:
            data = os.pread(fd, _MUCH, self._at)
        finally:
            os.close(fd)
        whole, newline, _ = data.rpartition(b"\n")
        self._at += len(whole) + len(newline)
        found = []
        for line in whole.splitlines():
            with suppress(ValueError, TypeError):  # a file that others wrote to
                step, value = json.loads(line)
                if is_whole(step, 0) and step > self._step and _finite(value) is not None:
                    self._step = step
                    found.append((step, float(value)))
        return found
