"""Names and plain scalars: errors for unknown names, and checks of numbers and JSON values.

Also `digest`, the fingerprint of a description.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import Any, TypeGuard

import numpy as np

from covey.errors import SpaceError, did_you_mean

_SHOWN = 12


def listed(names: Iterable[Any]) -> str:
    """Names separated by commas, cut short when there are many.

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


# Plain Python scalars, which points are made of and JSON can hold.

_NUMPY = (np.bool_, np.integer, np.floating, np.str_)
_JSON = (str, bool, int, type(None))


def plain(value: Any) -> Any:
    """The Python scalar behind a NumPy one; anything else as it is.

    >>> plain(np.int64(3)), plain("a")
    (3, 'a')
    """
    return value.item() if isinstance(value, _NUMPY) else value


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a plain value is a number; True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_scalar(value: Any) -> bool:
    """Whether a value survives JSON unchanged.

    The type must match exactly: a ``str`` subclass would come back as a bare string, and
    JSON has no nan.
    """
    return type(value) in _JSON or (type(value) is float and math.isfinite(value))


def same(a: Any, b: Any) -> bool:
    """Whether two options are one: of the same type, and equal."""
    if type(a) is not type(b):
        return False
    if a is b:
        return True
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    try:
        return bool(a == b)
    except Exception:  # a comparison may raise anything; then only identity counts
        return False


def outline(option: Any) -> str:
    """Text for the fingerprint, the same in every process: no addresses, no order of sets."""
    text = repr(option)
    if isinstance(option, Set) or " at 0x" in text:
        return str(getattr(option, "__qualname__", type(option).__qualname__))
    return text


def is_finite(value: Any) -> TypeGuard[int | float]:
    """Whether a plain value is a number that fits a float64."""
    return is_number(value) and abs(value) <= sys.float_info.max


def number(value: Any, what: str) -> float:
    """A finite float (never -0.0, which prints unlike 0.0), or an error that names ``what``."""
    value = plain(value)
    if not is_finite(value):
        raise SpaceError(f"{what} must be a finite number, got {value!r}")
    return float(value) + 0.0


_WHOLE = re.compile(r"[+-]?[0-9]{1,300}")  # Python does not read more than some thousand digits


def is_whole_text(text: str) -> bool:
    """Whether a text is a number written without a point or an exponent."""
    return _WHOLE.fullmatch(text.strip()) is not None


def digest(description: dict[str, Any]) -> str:
    """The sha256 of a description in canonical JSON, in hex."""
    text = json.dumps(description, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
