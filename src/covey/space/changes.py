"""What has changed between two readings of a table."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from covey.space.names import listed

if TYPE_CHECKING:
    from covey.space.column import Column
    from covey.space.table import Table

_BLOCK = 2**14


def difference(then: Table, now: Table) -> tuple[int, str] | str | None:
    """The first row that differs and what differs in it; or what differs as a whole; or None."""
    if list(then.columns) != list(now.columns):
        return f"its columns were {listed(then.columns)} and are {listed(now.columns)}"
    rows = {name: _first(then.columns[name], now.columns[name]) for name in then.columns}
    found = [(row, name) for name, row in rows.items() if row is not None]
    if found:
        row, name = min(found)
        was, is_ = then.row(row)[name], now.row(row)[name]
        return row, f"the column {name!r} had {was!r} and has {is_!r}"
    if len(then) != len(now):
        return f"it had {len(then)} rows and has {len(now)}"
    return None


def _first(then: Column, now: Column) -> int | None:
    """The first cell that differs, of as many as both have."""
    for start in range(0, min(len(then), len(now)), _BLOCK):
        cells = slice(start, start + _BLOCK)
        for i, a, b in zip(count(start), then[cells].tolist(), now[cells].tolist(), strict=False):
            if not _same(a, b):
                return i
    return None


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) or (a != a and b != b)  # noqa: PLR0124 - nan, which equals nothing
