"""One column of a CSV file as its blocks come in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from covey.space.column import Column, joined, texts

if TYPE_CHECKING:
    from covey.arrays import Mask


_KINDS = ((int, np.int64), (float, np.float64))


class Block(Protocol):
    """Some cells of one column, one below the other."""

    def numbers(self, whole: bool) -> Column | None:
        """All of them as numbers, or None; integers, if ``whole`` and they all are."""
        ...

    def tolist(self) -> list[str]:
        """The cells as they are spelled."""
        ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Spelled:
    """A block of Python strings.

    >>> Spelled(["1", "2"]).numbers(whole=True), Spelled(["1", "2.5"]).numbers(whole=True)
    (array([1, 2]), array([1. , 2.5]))
    """

    cells: Sequence[str]

    def numbers(self, whole: bool) -> Column | None:
        """As Python reads them; but 1_000, a number to Python, is a name in a table."""
        for parse, kind in _KINDS if whole else _KINDS[1:]:
            try:
                numbers = list(map(parse, self.cells))
            except ValueError:
                continue
            if "_" in "".join(self.cells):
                return None
            try:
                return np.array(numbers, dtype=kind)
            except OverflowError:  # beyond int64
                return np.array(numbers, dtype=object)
        return None

    def tolist(self) -> list[str]:
        """The cells as they are spelled."""
        return list(self.cells)

    def __len__(self) -> int:
        return len(self.cells)


def is_spelled_number(cell: str) -> bool:
    """Whether a cell would be a number in a column of numbers."""
    return Spelled([cell]).numbers(whole=False) is not None


class Cells:
    """Numbers as long as every cell is one, else text; an empty cell is missing either way.

    Numbers are kept without their spelling, so a column that turns out to be text after a block
    of numbers is ``lost``: it must be read again, ``as_text`` from the start. In a column that is
    carried along, ``verbatim``, a cell that Python would spell otherwise is text: 007, 1E5, 2.50.
    """

    def __init__(self, *, as_text: bool = False, verbatim: bool = False) -> None:
        self.lost = False
        self._text, self._verbatim = as_text, verbatim
        self._whole = True
        self._parts: list[Column] = []
        self._gaps: list[Mask] = []

    def add(self, block: Block) -> None:
        """The next cells."""
        if self.lost:
            return
        numbers = None if self._text else block.numbers(self._whole)
        if numbers is not None and self._faithful(numbers, block.tolist):
            self._add_numbers(numbers, np.zeros(len(numbers), dtype=np.bool_))
            return
        cells = block.tolist()
        gone = [not cell for cell in map(str.strip, cells)]
        if not self._text:
            filled = [cell for cell, empty in zip(cells, gone, strict=True) if not empty]
            numbers = Spelled(filled).numbers(self._whole)
            if numbers is not None and self._faithful(numbers, lambda: filled):
                self._add_numbers(numbers, np.array(gone, dtype=np.bool_))
                return
            self._text, self.lost = True, bool(self._parts)
        if any(gone):
            self._parts.append(texts([None if e else c for c, e in zip(cells, gone, strict=True)]))
        else:
            self._parts.append(texts(cells))

    def _faithful(self, numbers: Column, cells: Callable[[], list[str]]) -> bool:
        """Whether the numbers tell how the cells are spelled, if that matters."""
        return not self._verbatim or list(map(str, numbers.tolist())) == cells()

    def _add_numbers(self, numbers: Column, gone: Mask) -> None:
        self._whole = self._whole and numbers.dtype != np.float64
        self._parts.append(numbers)
        self._gaps.append(gone)

    def column(self) -> Column:
        """All of them."""
        if self._text:
            return joined(self._parts)
        parts = self._parts if self._whole else list(map(_as_floats, self._parts))
        numbers, gone = joined(parts), np.concatenate(self._gaps)
        if not gone.any():
            return numbers
        column = np.full(len(gone), None, dtype=object)
        column[~gone] = numbers.astype(object)
        return column


def _as_floats(part: Column) -> Column:
    if part.dtype == np.object_:  # integers beyond int64, some beyond float64
        return np.array([float(str(number)) for number in part.tolist()])
    return part.astype(np.float64)
