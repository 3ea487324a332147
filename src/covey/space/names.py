"""Names a user may have mistyped, and the nearest ones that exist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from covey.errors import SpaceError, did_you_mean

_SHOWN = 12


def listed(names: Iterable[Any]) -> str:
    """Names in a row, cut short when there are many.

    >>> listed(["lr", "momentum"])
    'lr, momentum'
    """
    every = [str(name) for name in names]
    more = len(every) - _SHOWN
    return ", ".join(every[:_SHOWN]) + (f", ... ({more} more)" if more > 0 else "")


def unknown(name: Any, known: Sequence[str], noun: str, owner: str) -> SpaceError:
    """The error for a name that does not exist.

    >>> print(unknown("momentun", ["lr", "momentum"], "parameter", "this space"))
    unknown parameter 'momentun'; this space has lr, momentum. Did you mean 'momentum'?
    """
    return SpaceError(
        f"unknown {noun} {name!r}; {owner} has {listed(known)}.{did_you_mean(name, known)}"
    )


def missing(names: Sequence[str], needed: Sequence[str], owner: str) -> SpaceError:
    """The error for names a point lacks."""
    return SpaceError(
        f"the point has no {', '.join(map(repr, names))}; a point of {owner} needs {listed(needed)}"
    )


def check_name(name: Any, noun: str) -> None:
    """Raise unless the name is a non-empty string."""
    if not isinstance(name, str) or not name:
        raise SpaceError(f"{noun} names must be non-empty strings, got {name!r}; rename it")


def check_distinct(names: Sequence[Any], owner: str) -> None:
    """Raise if two columns have the same name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SpaceError(f"{owner} has two columns called {twice[0]!r}; rename one of them")
