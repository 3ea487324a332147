"""Call: what is evaluated, a function here; and how it is packed for another process."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from covey.errors import StrategyError
from covey.run.task import Outcome, Task


class Call(Protocol):
    """Evaluates a task, and never raises."""

    def evaluate(self, task: Task, folder: Path, /) -> Outcome:
        """What became of it; files may be left in the folder, which is its own."""
        ...


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function of a point, and of a seed if it has a parameter of that name."""

    f: Callable[..., Any]

    def evaluate(self, task: Task, folder: Path, /) -> Outcome:
        """Call it; what it raises is a failure, and its traceback the log."""
        given = {"seed": task.seed} if _takes_seed(self.f) else {}
        try:
            return Outcome.of(task.name, self.f(dict(task.point), **given))
        except KeyboardInterrupt:  # somebody stopped it: not the point's fault
            return Outcome(task.name, "lost", reason="it was interrupted")
        except BaseException as error:  # SystemExit too: this is where the evaluation ends
            log = "".join(traceback.format_exception(error))
            return Outcome(task.name, "failed", reason=_message(error), log=log)


def _message(error: BaseException) -> str:
    """What was raised; its words are its own code, and may raise too."""
    try:
        return f"{type(error).__name__}: {error}"[:2000]
    except Exception as worse:
        return f"{type(error).__name__}, whose message raised {type(worse).__name__}"


def _takes_seed(f: Callable[..., Any]) -> bool:
    if isinstance(f, partial) and "seed" in f.keywords:
        return False  # it was given one
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
    except Exception as error:  # pickle raises what it likes
        raise StrategyError(
            f"f cannot be sent to another process ({error}). Take what cannot be pickled (locks, "
            "connections, open files) out of it, or use threads: "
            "workers=concurrent.futures.ThreadPoolExecutor(4)."
        ) from error


def python_version() -> str:
    """What has to agree on both sides of a pickle: code does not travel between versions."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"
