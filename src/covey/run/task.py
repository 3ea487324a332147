"""What a run and its engines exchange: `Task`, `Outcome`, `Call`, the `Engine` protocol, `Retries`.

A task is one attempt at one trial; an outcome is what became of it.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import reprlib
import sys
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from covey.errors import StrategyError, is_whole

if TYPE_CHECKING:  # each evaluation process imports this module and needs little
    import numpy as np

OutcomeStatus: TypeAlias = Literal["succeeded", "failed", "timed-out", "killed", "lost"]

_NAME = re.compile(r"covey-([0-9a-f]{8})-([0-9]+)-a([0-9]+)")  # as `name_of` gives them
_MOST = 1e100  # largest absolute value that the log takes
_MUCH = 10_000  # characters of JSON beside the value of one evaluation
_shown = reprlib.Repr()
_shown.maxother = _shown.maxstring = 80


@dataclass(frozen=True, slots=True)
class Task:
    """One attempt to evaluate one trial."""

    id: int  # of the trial
    attempt: int  # 1 for the first
    name: str  # the same in the engine and in the log
    point: Mapping[str, Any]
    seed: int  # of the evaluation, the same for every attempt
    timeout: float | None  # seconds from its start
    call: Call
    slot: int | None = None  # its place among those that run at once; None if there are none
    gpu: str | None = None  # what it may use, as in CUDA_VISIBLE_DEVICES; None: not said

    @property
    def well_named(self) -> bool:
        """Whether its name has the form that `name_of` gives this attempt of this trial.

        Names are read from logs, which others may have written, and engines look things up by
        them, in folders too: a name of any other form is never used.

        >>> Task(3, 1, name_of("0a1b2c3d", 3, 1), {}, 0, None, None).well_named
        True
        >>> Task(3, 1, "../../home", {}, 0, None, None).well_named
        False
        """
        match = _NAME.fullmatch(self.name) if isinstance(self.name, str) else None
        return match is not None and match.groups()[1:] == (str(self.id), str(self.attempt))


def name_of(run_id: str, trial: int, attempt: int) -> str:
    """The name of an attempt; ``run_id`` is that of the run, eight hexadecimal digits."""
    return f"covey-{run_id}-{trial}-a{attempt}"


def run_of(name: str) -> str:
    """The run whose attempt bears this name; empty if it is no such name.

    >>> run_of(name_of("0a1b2c3d", 3, 1)), run_of("../../home")
    ('0a1b2c3d', '')
    """
    match = _NAME.fullmatch(name)
    return "" if match is None else match[1]


def evaluation_seed(seed: int, trial: int) -> int:
    """The seed of a trial's evaluation, from the study's; below 2^32, as most libraries want it.

    >>> evaluation_seed(0, 3) == evaluation_seed(0, 3) != evaluation_seed(0, 4)
    True
    """
    import numpy as np

    return int(np.random.SeedSequence(seed, spawn_key=(trial,)).generate_state(1)[0])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one attempt.

    ``failed`` and ``timed-out`` are put down to the point. So is ``killed`` if it happens again:
    the evaluation died of a signal that its engine did not send, while its machine went on.
    ``lost`` is put down to the machine: the evaluation was cancelled, never started, or forgotten.
    """

    name: str
    status: OutcomeStatus
    value: float | None = None  # in the user's sign
    reason: str = ""
    log: str = ""  # the end of what it printed, where the engine keeps that
    sem: float | None = None  # standard error of the value, where it is known
    metrics: dict[str, Any] | None = None  # what came beside the value, as plain JSON
    unkept: Sequence[str] = ()  # names of what came beside it and is no plain JSON, or too long
    values: dict[str, float] | None = None  # by name, where outcomes have names

    def __post_init__(self) -> None:
        object.__setattr__(self, "unkept", tuple(self.unkept))  # a list, where it came as JSON

    @property
    def result(self) -> float | dict[str, float] | None:
        """The value, or the values by name; None if there are none."""
        return self.value if self.values is None else self.values

    @classmethod
    def of(cls, name: str, returned: Any, outcomes: Sequence[str] = ()) -> Outcome:
        """The outcome of an evaluation that returned this: a value, or a failure that says why.

        ``outcomes`` are the names of several; then their values are returned by name.

        >>> found = Outcome.of("a", {"value": 2, "sem": 0.5, "latency": 3})
        >>> found.status, found.value, found.sem, found.metrics
        ('succeeded', 2.0, 0.5, {'latency': 3})
        >>> Outcome.of("a", "2").reason
        "it returned '2', not a finite number"
        """
        if outcomes:
            return cls._of_several(name, returned, outcomes)
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

    @classmethod
    def _of_several(cls, name: str, returned: Any, outcomes: Sequence[str]) -> Outcome:
        """Values by name; None for one that comes later."""
        if not isinstance(returned, Mapping) and len(outcomes) == 1:
            returned = {outcomes[0]: returned}
        said = f"it returned {_shown.repr(returned)}"
        if not isinstance(returned, Mapping):
            form = ", ".join(f"{outcome!r}: number" for outcome in outcomes)
            return cls(name, "failed", reason=f"{said}, not {{{form}}}")
        missing = [outcome for outcome in outcomes if outcome not in returned]
        if missing:
            return cls(name, "failed", reason=f"{said}, without {' and '.join(missing)}")
        given = {o: _finite(returned[o]) for o in outcomes if returned[o] is not None}
        values = {outcome: number for outcome, number in given.items() if number is not None}
        if len(values) < len(given) or not values:
            odd = next((outcome for outcome in given if outcome not in values), outcomes[0])
            return cls(name, "failed", reason=f"{said}, in which {odd} is no finite number")
        sem = None if returned.get("sem") is None else _finite(returned["sem"])
        beside = {key: value for key, value in returned.items() if key not in outcomes}
        metrics, unkept = _beside(beside)
        found = cls(name, "succeeded", sem=sem, metrics=metrics, unkept=unkept)
        return replace(found, values=values)


def _finite(value: Any) -> float | None:
    """A float that the log takes, or None; arrays and tensors of one element are numbers."""
    if type(value) is float:  # the usual case, without importing NumPy
        return value if -_MOST <= value <= _MOST else None
    from covey.history.checks import finite_value

    try:
        return finite_value(_only(value), "", "")
    except Exception:  # HistoryError, or whatever another type of number raises
        return None


def _only(value: Any) -> Any:
    """The element of a NumPy array of size one; anything else unchanged."""
    numpy = sys.modules.get("numpy")
    if numpy is None or type(value) is not numpy.ndarray or value.size != 1:
        return value
    return value.reshape(())[()]


def _beside(returned: Mapping[Any, Any]) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """What was returned beside value and sem, as plain JSON; and the names of what is not JSON."""
    kept: dict[str, Any] = {}
    unkept, room = [], _MUCH
    for name, value in returned.items():
        if name in ("value", "sem"):
            continue
        text, size = "", _MUCH + 1
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=_listed)
            size = len(text.encode()) + len(str(name).encode())
        except Exception:  # an object may raise anything
            size = _MUCH + 1  # also if there is a text, but it is not UTF-8
        if size > room:
            unkept.append(_shown.repr(name).strip("'"))
        else:
            kept[str(name)], room = json.loads(text), room - size
    return kept or None, tuple(unkept)


def _listed(value: Any) -> Any:
    """NumPy's numbers and arrays, and tensors, as plain ones."""
    return value.tolist()


# What is evaluated, and how it is pickled for another process.


class Call(Protocol):
    """Evaluates a task, and never raises."""

    def evaluate(self, task: Task, folder: Path, /) -> Outcome:
        """What became of it; files may be left in the folder, which is its own."""
        ...


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function of a point, and of a seed if it has a parameter of that name."""

    f: Callable[..., Any]
    outcomes: tuple[str, ...] = ()  # names of what it returns, if it is not one value

    def evaluate(self, task: Task, folder: Path, /) -> Outcome:
        """Call it; what it raises is a failure, and its traceback the log."""
        given = {"seed": task.seed} if _takes_seed(self.f) else {}
        try:
            returned = self.f(dict(task.point), **given)
            return Outcome.of(task.name, returned, self.outcomes)
        except KeyboardInterrupt:  # it was interrupted: not the point's fault
            return Outcome(task.name, "lost", reason="it was interrupted")
        except BaseException as error:  # SystemExit too: this is where the evaluation ends
            log = "".join(traceback.format_exception(error))
            return Outcome(task.name, "failed", reason=_message(error), log=log)


def _message(error: BaseException) -> str:
    """The message of an exception, whose own ``__str__`` may raise too."""
    try:
        return f"{type(error).__name__}: {error}"[:2000]
    except Exception as worse:
        return f"{type(error).__name__}, whose message raised {type(worse).__name__}"


def _takes_seed(f: Callable[..., Any]) -> bool:
    if isinstance(f, partial) and "seed" in f.keywords:
        return False  # it has a value already
    try:
        _, *others = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature, some functions no point
        return False
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return any(other.name == "seed" and other.kind in named for other in others)


def pack(call: Call) -> bytes:
    """A call as bytes, for a process that runs the same Python.

    Raises:
        StrategyError: It holds something that cannot leave this process.
    """
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(call))
    except Exception as error:  # pickling may raise anything
        raise StrategyError(
            f"f cannot be sent to another process ({error}). Take what cannot be pickled (locks, "
            "connections, open files) out of it, or use threads: "
            "workers=concurrent.futures.ThreadPoolExecutor(4)."
        ) from error


def python_version() -> str:
    """The Python version, which must agree on both sides of a pickle that holds code."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


# The protocol of engines: they evaluate tasks and report outcomes, and decide nothing else.


@runtime_checkable
class Engine(Protocol):
    """Evaluates tasks somewhere.

    A task is in the log before it is submitted. The caller decides whether to try again, and what
    an outcome means.
    """

    @property
    def slots(self) -> int | None:
        """How many tasks to submit at once; None: all of them, the engine has a queue."""
        ...

    def submit(self, task: Task) -> None:
        """Start it, or put it in a queue; a task that cannot be started is lost, not an error."""
        ...

    def poll(self, seconds: float) -> list[Outcome]:
        """Outcomes of tasks that have ended, waiting at most ``seconds`` for the first.

        The caller has logged what a poll returned before it polls again; then the engine may
        forget it.

        A task that runs longer than its ``timeout``, counted from its own start, is timed out. If
        a result of it comes all the same, that is a second outcome of the same name.
        """
        ...

    def cancel(self, names: Collection[str]) -> None:
        """Stop these; asked a second time, kill them at once. They come back as lost, by `poll`."""
        ...

    def adopt(self, tasks: Sequence[Task]) -> set[str]:
        """Look for tasks of an earlier run; `poll` will give an outcome for each name returned."""
        ...

    def close(self) -> None:
        """Release everything; what runs and can be adopted later goes on running."""
        ...


# How often an evaluation is tried again, and after how long.

_LONGEST = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class Retries:
    """How often to try again what was lost (the machine's fault), was killed, timed out, or failed.

    What was killed that often and once more has failed: it may need more memory than there is.

    The n-th retry waits for ``wait`` * 2^(n-1) seconds, at most 60, of which a random half is left
    out so that many evaluations that died together do not come back together.

    >>> Retries(lost=1).left("lost", used=0), Retries(lost=1).left("lost", used=1)
    (True, False)
    """

    lost: int = 3
    timed_out: int = 0
    failed: int = 0
    wait: float = 0.5
    killed: int = 1

    def __post_init__(self) -> None:
        for name in ("lost", "killed", "timed_out", "failed"):
            number = getattr(self, name)
            if not is_whole(number, 0):
                raise StrategyError(f"retries: {name} must be a whole number >= 0; got {number!r}.")
        if not isinstance(self.wait, int | float) or not 0.0 <= self.wait < math.inf:
            raise StrategyError(f"retries: wait must be a number of seconds; got {self.wait!r}.")

    def left(self, status: OutcomeStatus, used: int) -> bool:
        """Whether an attempt with this outcome may be retried, after ``used`` retries."""
        return status != "succeeded" and used < getattr(self, status.replace("-", "_"))

    def delay(self, used: int, rng: np.random.Generator) -> float:
        """Seconds before the next retry."""
        longest = min(_LONGEST, self.wait * 2.0 ** min(used, 32))
        return longest * float(rng.uniform(0.5, 1.0))


def retries_of(retries: int | Retries) -> Retries:
    """Retries as they are, or a number of them for evaluations that are killed.

    >>> retries_of(0) == Retries(killed=0)
    True

    Raises:
        StrategyError: It is neither.
    """
    if isinstance(retries, Retries):
        return retries
    if is_whole(retries, 0):
        return Retries(killed=retries)
    raise StrategyError(
        "retries says how often an evaluation that is killed is tried again, a whole number >= 0, "
        f"or is a covey.run.Retries(killed=1, lost=3); got {retries!r}."
    )
