"""Every error this library raises on purpose.

Each is also the builtin a caller would reach for, so that a plain ``except ValueError`` works.
Also helpers for messages, such as `did_you_mean` and `several`.

CoveyError
├── SpaceError         (ValueError)    a search space, or a point in it, is malformed
├── ExhaustedError     (ValueError)    fewer points are left than were asked for
├── HistoryError       (ValueError)    a trial was told twice, never asked, or is not finite
│   └── SupersededError                another run has taken a trial over
├── StrategyError      (ValueError)    a strategy is unknown, or cannot do what was asked
├── NumericsError      (ValueError)    a kernel is not positive definite, or k exceeds its rank
├── JournalError       (OSError)       a log cannot be read or written
│   ├── JournalConflict                another process has written to it, or runs it
│   ├── JournalMismatch                it belongs to another study
│   ├── WorkFolderError                the folder of its evaluations is not ours alone
│   └── JournalDamaged                 a line of it does not verify
├── EvaluationError    (RuntimeError)  a run gave no value, or cannot go on
├── ReportError        (OSError)       a picture or a page cannot be written there
└── MissingExtraError  (ImportError)   an optional package is not installed
"""

from __future__ import annotations

from contextlib import contextmanager
from numbers import Integral
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from covey.run.api import Result
    from covey.study import Study


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """A sentence naming the nearest known value, or nothing.

    >>> did_you_mean("Randon", ["random", "sobol"])
    " Did you mean 'random'?"
    """
    from difflib import get_close_matches

    by_text = {str(value).lower(): value for value in known}
    nearest = get_close_matches(str(name).lower(), by_text, n=1)
    return f" Did you mean {by_text[nearest[0]]!r}?" if nearest else ""


def several(count: int, noun: str) -> str:
    """A count and its noun.

    >>> several(1, "batch"), several(3, "batch"), several(2, "point")
    ('1 batch', '3 batches', '2 points')
    """
    ending = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count} {noun}{ending}"


def sentence(text: object) -> str:
    """The text with a full stop, so that another sentence may follow.

    >>> sentence("widen the range"), sentence("Did you mean 'x'?")
    ('widen the range.', "Did you mean 'x'?")
    """
    said = str(text).rstrip()
    return said if said.endswith((".", "?", "!")) else f"{said}."


def is_whole(value: object, least: int) -> TypeGuard[int]:
    """Whether a value is a whole number, Python's or NumPy's, of at least this; True is none.

    >>> is_whole(8, 1), is_whole(0, 1), is_whole(True, 1), is_whole(2.0, 1)
    (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        return False
    return int(value) >= least


def brief(text: str, most: int) -> str:
    r"""A text in one line of ``most`` characters; cut in the middle, as errors end with the cause.

    >>> brief("status 1: Traceback:\n  line 3\n  ^^^^^^^^\nValueError: x", 40)
    'status 1: Traceback: … ValueError: x'
    """
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    lines = text.strip().splitlines()
    if len(lines) > 1:
        line = " ".join(f"{lines[0]} … {lines[-1]}".split())
    if len(line) > most:
        head = most // 3
        line = f"{line[:head]}…{line[len(line) - (most - head - 1) :]}"
    return line


class CoveyError(Exception):
    """The root: ``except CoveyError`` catches whatever Covey raises on purpose."""


class SpaceError(CoveyError, ValueError):
    """A search space, or a point in it, is malformed."""


class ExhaustedError(CoveyError, ValueError):
    """Fewer points are left than were asked for; ``left`` says how many."""

    def __init__(self, message: str, left: int = 0) -> None:
        super().__init__(message)
        self.left = left


class HistoryError(CoveyError, ValueError):
    """A trial was told twice, never asked, or its value is not finite."""


class SupersededError(HistoryError):
    """What was to be logged of an attempt is out of date: another run has taken its trial over."""


class StrategyError(CoveyError, ValueError):
    """A strategy is unknown, or cannot do what was asked of it."""


class NumericsError(CoveyError, ValueError):
    """A kernel is not positive definite, or k exceeds its rank."""


class JournalError(CoveyError, OSError):
    """A log cannot be read or written."""


class JournalConflict(JournalError):  # noqa: N818 - the noun says it
    """Another process has written to the log in the meantime, or is running it now."""


class JournalMismatch(JournalError):  # noqa: N818 - the noun says it
    """The log belongs to another study: another space, goal, seed or model."""


class WorkFolderError(JournalError):
    """The folder in which evaluations keep their files is not ours alone, or cannot be used."""


class JournalDamaged(JournalError):  # noqa: N818 - the adjective says it
    """A line of the log does not verify; ``line`` and ``offset`` say where."""

    def __init__(self, message: str, line: int = 0, offset: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.offset = offset


class EvaluationError(CoveyError, RuntimeError):
    """A run gave no value, or cannot go on.

    Attributes:
        study: with all that was told by then, when it comes from a run.
        result: the best of it; None if nothing was told.
    """

    study: Study | None = None
    result: Result | None = None


class ReportError(CoveyError, OSError):
    """A picture or a page cannot be written there."""


class MissingExtraError(CoveyError, ImportError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        checkout = f"'.[{extra}]' in a checkout"
        super().__init__(f"this needs {package}: pip install 'covey[{extra}]', or {checkout}")


@contextmanager
def installed(package: str, extra: str) -> Iterator[None]:
    """Context for imports of an optional package; a missing one is named with its extra.

    >>> try:
    ...     with installed("auspex", "luck"):
    ...         import auspex
    ... except MissingExtraError as error:
    ...     str(error)
    "this needs auspex: pip install 'covey[luck]', or '.[luck]' in a checkout"
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(package, extra) from error


def duration(seconds: float) -> str:
    """A time in words, as exactly as one cares.

    >>> duration(42), duration(125), duration(7380), duration(200_000)
    ('42 s', '2 min 5 s', '2 h 3 min', '2 d 7 h')
    """
    whole = max(0, round(seconds))
    for unit, size, smaller, part in (("d", 86_400, "h", 3600), ("h", 3600, "min", 60)):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part} {smaller}"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"
