"""Numbers and names formatted for people to read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_LONGEST = 80  # of a name or a value on the page; the rest of a longer one is in the JSON


def significant(x: float, digits: int = 4) -> str:
    """A number with this many significant digits, without a power of ten where that is readable.

    >>> significant(84.1234), significant(1234567.0), significant(3e-9), significant(0.25)
    ('84.12', '1234567', '3e-09', '0.25')
    """
    if x == 0.0 or not math.isfinite(x):
        return f"{x + 0.0:g}"
    if not 1e-4 <= abs(x) < 1e7:
        return f"{x:.{digits}g}"
    whole = math.floor(math.log10(abs(x))) + 1
    return np.format_float_positional(
        x, precision=max(digits, whole), fractional=False, trim="-", unique=False
    )


def plus_minus(mean: float, std: float) -> str:
    """A mean and its standard deviation, to about two digits of the latter.

    >>> plus_minus(82.9371, 3.1402), plus_minus(12345.6, 210.0), plus_minus(1e-9, 2e-10)
    ('82.9 ± 3.1', '12346 ± 210', '1e-09 ± 2e-10')
    """
    if std <= 0.0 or not 1e-4 <= max(abs(mean), std) < 1e7:
        return f"{significant(mean)} ± {std:.2g}"
    decimals = min(max(1 - math.floor(math.log10(std)), 0), 8)
    return f"{mean + 0.0:.{decimals}f} ± {std:.{decimals}f}"


def share_of(part: int, whole: int) -> str:
    """A count out of a total, with its percentage.

    >>> share_of(7, 16)
    '7 of 16 (44 %)'
    """
    return f"{part} of {whole} ({100.0 * part / whole:.0f} %)" if whole else "0 of 0"


def shown(value: Any) -> str:
    r"""A value of a parameter as text that is safe to display.

    What does not print (control characters, marks that turn the direction of writing) is spelled
    out, and what is very long is cut; turning ``<`` into ``&lt;`` is the template's work.

    >>> shown(0.1 + 0.2), shown("a\u202eb"), shown(None)
    ('0.3', 'a\\u202eb', 'None')
    """
    if isinstance(value, float):
        return significant(value, 6)
    text = value if isinstance(value, str) else _told(value)
    return plain_text(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


def plain_text(text: str) -> str:
    """The text with unprintable characters spelled out."""
    return "".join(c if c.isprintable() else _spelled(c) for c in text)


def _told(value: object) -> str:
    """Text for any object, the same in every process: without memory addresses."""
    text = repr(value)
    if " at 0x" in text:
        return str(getattr(value, "__qualname__", type(value).__qualname__))
    return text


def _spelled(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
