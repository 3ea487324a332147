"""One column of a table: numbers, booleans, text, or whatever else it holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covey.space.scalars import is_number, plain

if TYPE_CHECKING:
    from covey.arrays import Mask

Column: TypeAlias = NDArray[Any]

# Sixteen bytes a cell and the text itself, where an object takes some sixty; None is missing.
TEXT = np.dtypes.StringDType(na_object=None)


def as_column(values: Sequence[Any] | Column) -> Column:
    """Values of one column as int64, float64, bool or text if they all are, else as objects.

    >>> as_column([1, 2.5])
    array([1. , 2.5])
    >>> as_column(["a", None]).tolist()
    ['a', None]
    """
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "bif":
            kind = {"b": np.bool_, "i": np.int64, "f": np.float64}[values.dtype.kind]
            return values.astype(kind)
        values = values.tolist() if values.dtype.kind in "uU" else list(values)
    if any(issubclass(kind, np.generic) for kind in set(map(type, values))):
        values = [plain(value) for value in values]
    return _of_kind(values, set(map(type, values)))


def _of_kind(values: Sequence[Any], kinds: set[type]) -> Column:
    if kinds == {bool}:
        return np.array(values, dtype=np.bool_)
    if kinds == {int}:
        return _integers(values)
    if kinds in ({float}, {int, float}):
        return np.array(values, dtype=np.float64)
    if kinds in ({str}, {str, type(None)}):
        return texts(values)
    return _objects(values)


def texts(values: Sequence[str | None]) -> Column:
    """Text, None where it is missing."""
    try:
        return np.array(values, dtype=TEXT)
    except UnicodeEncodeError:  # half a surrogate pair, which no file can hold
        return _objects(values)


def is_text(column: Column) -> bool:
    """Whether all of a column is text, or missing."""
    return column.dtype.kind == "T"


def joined(parts: Sequence[Column]) -> Column:
    """The column whose pieces came one after the other, each of its own kind.

    >>> joined([np.array([1, 2]), as_column([None])]).tolist()
    [1, 2, None]
    """
    dtypes = {part.dtype for part in parts}
    if len(dtypes) == 1 and np.object_ not in dtypes:
        return np.concatenate(parts)
    return as_column([value for part in parts for value in part.tolist()])


def equal_to(column: Column, value: Any) -> Mask:
    """Mask (n,) of the cells that are this very value: True is not 1, and 1.0 is."""
    if is_text(column) and isinstance(value, str):
        return np.asarray(column == value, dtype=np.bool_)
    if is_text(column) or column.dtype == np.object_:
        same = [type(v) is type(value) and v == value for v in column.tolist()]
        return np.array(same, dtype=np.bool_)
    alike = isinstance(value, bool) if column.dtype == np.bool_ else is_number(value)
    return column == value if alike else np.zeros(len(column), dtype=np.bool_)


def _integers(values: Sequence[int]) -> Column:
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return _objects(values)


def _objects(values: Sequence[Any]) -> Column:
    return np.fromiter(values, dtype=object, count=len(values))
