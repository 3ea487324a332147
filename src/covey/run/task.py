"""Task and Outcome: what goes to an engine, and what comes back."""

from __future__ import annotations

import json
import re
import reprlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from covey.run.call import Call

OutcomeStatus: TypeAlias = Literal["succeeded", "failed", "timed-out", "lost"]

_NAME = re.compile(r"covey-[0-9a-f]{8}-([0-9]+)-a([0-9]+)")  # as `name_of` gives them
_MOST = 1e100  # in size, as the log takes it
_MUCH = 10_000  # characters of what comes beside the value of one evaluation
_shown = reprlib.Repr()
_shown.maxother = _shown.maxstring = 80


@dataclass(frozen=True, slots=True)
class Task:
    """One attempt to evaluate one trial."""

    id: int  # of the trial
    attempt: int  # 1 for the first
    name: str  # what the engine and the log know it by
    point: Mapping[str, Any]
    seed: int  # of the evaluation, the same for every attempt
    timeout: float | None  # seconds from its start
    call: Call

    @property
    def well_named(self) -> bool:
        """Whether its name is one that we give to this attempt of this trial.

        Names come back from logs, which others may have written, and engines look things up by
        them, in folders too: a name of any other form is never used.

        >>> Task(3, 1, name_of("0a1b2c3d", 3, 1), {}, 0, None, None).well_named
        True
        >>> Task(3, 1, "../../home", {}, 0, None, None).well_named
        False
        """
        match = _NAME.fullmatch(self.name) if isinstance(self.name, str) else None
        return match is not None and match.groups() == (str(self.id), str(self.attempt))


def name_of(life: str, trial: int, attempt: int) -> str:
    """The name of an attempt; ``life`` says which run began it, in eight hexadecimal digits."""
    return f"covey-{life}-{trial}-a{attempt}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one attempt.

    ``failed`` and ``timed-out`` are the point's doing, ``lost`` is the machine's: the evaluation
    was killed, cancelled, never started, or forgotten.
    """

    name: str
    status: OutcomeStatus
    value: float | None = None  # in the user's sign
    reason: str = ""
    log: str = ""  # the last of what it printed, where the engine keeps that
    sem: float | None = None  # standard error of the value, where it is known
    metrics: dict[str, Any] | None = None  # what came beside the value, as plain JSON
    unkept: Sequence[str] = ()  # names of what came beside it and is no plain JSON, or too long

    def __post_init__(self) -> None:
        object.__setattr__(self, "unkept", tuple(self.unkept))  # a list, where it came as JSON

    @classmethod
    def of(cls, name: str, returned: Any) -> Outcome:
        """What an evaluation that returned this comes to: a value, or a failure that says why.

        >>> found = Outcome.of("a", {"value": 2, "sem": 0.5, "latency": 3})
        >>> found.status, found.value, found.sem, found.metrics
        ('succeeded', 2.0, 0.5, {'latency': 3})
        >>> Outcome.of("a", "2").reason
        "it returned '2', not a finite number"
        """
        if isinstance(returned, Mapping):
            value, sem = returned.get("value"), returned.get("sem")
        else:
            value, sem = returned, None
        number = _finite(value)
        if number is None:
            said = f"it returned {_shown.repr(returned)}, not a finite number"
            return cls(name, "failed", reason=said)
        error = None if sem is None else _finite(sem)
        if sem is not None and (error is None or error < 0.0):
            said = f"it returned the standard error {_shown.repr(sem)}, not a number >= 0"
            return cls(name, "failed", reason=said)
        metrics, unkept = _beside(returned) if isinstance(returned, Mapping) else (None, ())
        return cls(name, "succeeded", number, sem=error, metrics=metrics, unkept=unkept)


def _finite(value: Any) -> float | None:
    """A float that the log takes, or None; arrays and tensors of one element are numbers."""
    if type(value) is float:  # nearly always, and then NumPy need not be imported
        return value if -_MOST <= value <= _MOST else None
    from covey.history.fields import finite_value

    try:
        return finite_value(_only(value), "", "")
    except Exception:  # HistoryError, or whatever a foreign number may raise
        return None


def _only(value: Any) -> Any:
    """The one element of a NumPy array of one, which people return who mean it; else itself."""
    numpy = sys.modules.get("numpy")
    if numpy is None or type(value) is not numpy.ndarray or value.size != 1:
        return value
    return value.reshape(())[()]


def _beside(returned: Mapping[Any, Any]) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """What was returned beside value and sem, as plain JSON; and the names of what is none."""
    kept: dict[str, Any] = {}
    unkept, room = [], _MUCH
    for name, value in returned.items():
        if name in ("value", "sem"):
            continue
        text, size = "", _MUCH + 1
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=_listed)
            size = len(text.encode()) + len(str(name).encode())
        except Exception:  # whatever a foreign object may raise
            size = _MUCH + 1  # the text may have been made, and not be UTF-8
        if size > room:
            unkept.append(_shown.repr(name).strip("'"))
        else:
            kept[str(name)], room = json.loads(text), room - size
    return kept or None, tuple(unkept)


def _listed(value: Any) -> Any:
    """NumPy's numbers and arrays, and tensors, as plain ones."""
    return value.tolist()
