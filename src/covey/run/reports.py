"""Intermediate values: `report` sends one from an evaluation, `Reports` reads those of a folder.

They travel through a file in the folder of the evaluation, a line for each, and become `reported`
events. A program prints them: a line ``step value``, or a JSON object with these two.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TypeAlias

from covey.disk import BESIDE
from covey.errors import StrategyError, is_whole

_log = logging.getLogger("covey")
VARIABLE = "COVEY_REPORTS"  # the file, in the environment of an evaluation
FILE = "reports"  # its name in the folder of an evaluation
UNKEPT = (
    "not recorded: %s; the log holds what JSON can, up to 10 kB for an evaluation. The value "
    "itself is recorded. Have the evaluation save the rest to a file."
)
UNSAID = "an intermediate value is a number, or says %s by its name; passed over: %s."
_PASSED = "passed over: "  # before a line of output, in that file
_UNREAD = (
    "trial %s: %s. A report is a step, a whole number that grows, and a finite number: "
    'print "30 0.71", or {"step": 30, "value": 0.71}. Further ones are passed over in silence.'
)
_MANY = 10_000  # reports of one evaluation; later ones are passed over
_MUCH = 65_536  # bytes read at once
_MOST = 1e100  # largest absolute value that the log takes
_LONG = 1000  # characters of a line that may be a report
_PAIR = re.compile(
    r"\s*(\d{1,15})[ \t]+([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf))\s*", re.I
)
Shown: TypeAlias = float | dict[str, float]  # an intermediate value, or several by name
STOP = "stop"  # a file beside it: the evaluation is to end itself, at its next report
_last: dict[str, int] = {}  # the step of the last report, by file
# Threads of an executor share one environment, so an evaluation in one of them has its file here.
_own: ContextVar[str | None] = ContextVar("covey-reports", default=None)


class Stopped(BaseException):  # no error: broad handlers are to let it pass
    """Raised by `report` in a thread or process that no one can end from outside.

    Let it pass, after cleaning up: the value that was reported last is told already.
    """


@contextmanager
def reporting_to(folder: Path) -> Iterator[None]:
    """Evaluate in this thread, with reports in a folder."""
    before = _own.set(str(folder / FILE))
    try:
        yield
    finally:
        _last.pop(str(folder / FILE), None)
        _own.reset(before)


def report(step: int, value: float | Mapping[str, float]) -> None:
    """Say how an evaluation stands after a step: its value so far, in your own sign.

    Call it inside f. `covey watch` shows it, and a run with ``stopping`` may end what does badly.
    Outside a run it only checks what it is given.

    Args:
        step: a whole number that grows from one report to the next: an epoch, a size.
        value: what f would return if it ended now: a number, or numbers by the names of outcomes,
            of which the goal's is taken.

    Raises:
        StrategyError: The step is no whole number or not above the last, or the value not finite.
        Stopped: On an executor, if the evaluation was stopped; elsewhere its process is ended.
    """
    if not is_whole(step, 0):
        raise StrategyError(f"report: a step is a whole number >= 0; got {step!r}.")
    shown = _shown(value)
    if shown is None:
        raise StrategyError(
            f"report: the value at step {step} must be a finite number, or several by the names of "
            f"outcomes; got {value!r}. Raise an error of your own where a training has diverged: "
            "the evaluation then counts as failed."
        )
    path = _own.get() or os.environ.get(VARIABLE, "")
    if path and Path(path).with_name(STOP).exists():
        raise Stopped(f"the evaluation is stopped at step {step}")
    if step <= _last.get(path, -1):
        raise StrategyError(
            f"report: step {step} after step {_last[path]}; steps grow from one report to the next."
        )
    if path:
        _last[path] = int(step)
        append(Path(path), int(step), shown)


def of_goal(
    said: Iterable[tuple[str, int, Shown]], goal: str
) -> tuple[dict[str, list[tuple[int, float]]], set[str]]:
    """Steps and values of a goal by evaluation; and the names in reports that do not say it.

    A plain number is the only goal's.

    >>> said = [("a", 1, 0.5), ("a", 2, {"loss": 0.4, "size": 9.0}), ("b", 1, {"gain": 1.0})]
    >>> of_goal(said, "loss")
    ({'a': [(1, 0.5), (2, 0.4)]}, {'gain'})
    """
    found: dict[str, list[tuple[int, float]]] = {}
    other: set[str] = set()
    for name, step, value in said:
        if isinstance(value, dict) and goal not in value:
            other |= value.keys()
        else:
            number = value[goal] if isinstance(value, dict) else value
            found.setdefault(name, []).append((step, number))
    return found, other


def _shown(value: object) -> Shown | None:
    """A value that can be logged, or values by name; None if one of them is not finite."""
    if not isinstance(value, Mapping):
        return _finite(value)
    found = {str(name): _finite(one) for name, one in value.items()}
    numbers = {name: number for name, number in found.items() if number is not None}
    return numbers if numbers and len(numbers) == len(found) else None


def _finite(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]  # tensors and arrays of one element too
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and abs(number) <= _MOST else None


def append(path: Path, step: int, value: Shown) -> None:
    """Add a report to a file; one that cannot be written is left out, since f matters more."""
    _write(path, json.dumps([step, value]))


def _write(path: Path, line: str) -> None:
    with suppress(OSError):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | BESIDE, 0o600)
        try:
            os.write(fd, f"{line}\n".encode())
        finally:
            os.close(fd)


def report_in(line: str) -> tuple[int, Shown] | None:
    """The step and the value that a line of output reports; None if it is no report, or a bad one.

    >>> report_in("30 0.71"), report_in('{"step": 30, "value": 0.71, "loss": 2}')
    ((30, 0.71), (30, 0.71))
    >>> report_in('{"step": 30, "accuracy": 0.71, "stage": "warm-up"}')
    (30, {'accuracy': 0.71})
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
        step = said.pop("step", None)
        value = said.get("value", {n: x for n, x in said.items() if type(x) in (int, float)})
    else:
        match = _PAIR.fullmatch(line)
        if match is None:
            return None
        step, value = int(match[1]), match[2]
    shown = None if isinstance(value, bool) else _shown(value)
    return (int(step), shown) if is_whole(step, 0) and shown is not None else None


def _is_meant(line: str) -> bool:
    """Whether a line of output, which is no report, was meant as one: it has a step."""
    if len(line) > _LONG:
        return False
    return bool(_PAIR.fullmatch(line)) or (line.lstrip().startswith("{") and '"step"' in line)


class OutputReports:
    """Picks the reports out of what a program prints; those that do not go forward are left out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rest = b""
        self._step = -1
        self._count = 0
        self._has_passed = False  # a line over, which the runner is told of once

    def feed(self, data: bytes) -> None:
        """Take some more of the output."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-_LONG:]
        for line in lines:
            text = line.decode(errors="replace")
            found = report_in(text)
            if found is not None and found[0] > self._step and self._count < _MANY:
                self._step, self._count = found[0], self._count + 1
                append(self._path, *found)
            elif not self._has_passed and _is_meant(text):
                # The same step again is the result of a program that ends so.
                self._has_passed = found is None or found[0] < self._step
                if self._has_passed:
                    _write(self._path, f"{_PASSED}{text}")


_warned: set[Path] = set()  # folders of runs that were warned of a line


class Reports:
    """The reports of one evaluation, read as they come."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._at = 0
        self._step = -1

    def new(self) -> list[tuple[int, Shown]]:
        """Those since the last call, in order."""
        try:
            fd = os.open(self._path, os.O_RDONLY | BESIDE)
        except OSError:
            return []
        try:
            os.lseek(fd, self._at, os.SEEK_SET)  # Windows has no `os.pread`
            data = os.read(fd, _MUCH)
        finally:
            os.close(fd)
        whole, newline, _ = data.rpartition(b"\n")
        self._at += len(whole) + len(newline)
        found = []
        for line in whole.splitlines():
            if line.startswith(_PASSED.encode()) and self._path.parent.parent not in _warned:
                _warned.add(self._path.parent.parent)
                trial = self._path.parent.name.split("-")[-2:][0]
                _log.warning(_UNREAD, trial, line[:_LONG].decode(errors="replace"))
            with suppress(ValueError, TypeError):  # a file that others wrote to
                step, value = json.loads(line)
                shown = _shown(value)
                if is_whole(step, 0) and step > self._step and shown is not None:
                    self._step = step
                    found.append((step, shown))
        return found
