"""Where to look: the field of points that may be asked for now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from covey.candidates.field import Candidates, Field, Taken
from covey.candidates.listed import Listed, listed_grid, listed_pool
from covey.candidates.open import Open
from covey.space import Pool, Space

__all__ = ["Candidates", "Field", "Listed", "Open", "Taken", "field_of", "listed_pool"]

_GRID = 20_000  # a finite space up to this size is listed outright


def field_of(space: Space | Pool, fixed: Mapping[str, Any], taken: Taken) -> Field:
    """The field of a space: listed when it is finite and small, searched otherwise."""
    if isinstance(space, Pool):
        return listed_pool(space, fixed, taken)
    grid = space.grid(_GRID, fixed)
    if grid is not None:
        return listed_grid(space, grid, fixed, taken)
    return Open(space, fixed, taken)
