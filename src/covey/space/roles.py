"""Which columns of a table the model sees, and which are carried along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from covey.errors import SpaceError
from covey.space.names import listed, unknown

if TYPE_CHECKING:
    from covey.space.features import Feature
    from covey.space.table import Table

# 2 GiB of float64; only one-hot columns of many distinct texts get there.
_MOST_CELLS = 2**28


def chosen_inputs(
    table: Table, inputs: Sequence[str] | None, labels: Sequence[str]
) -> tuple[str, ...]:
    """The inputs, or all columns that are not labels; or an error that names the nearest."""
    names = tuple(table.columns)
    for role, given in (("inputs", inputs), ("labels", labels)):
        if isinstance(given, str):
            raise SpaceError(f"{role} must be a list of columns, got {given!r}; write [{given!r}]")
        for name in given or ():
            if name not in names:
                raise unknown(name, names, "column", table.path or "the table")
    both = set(inputs or ()).intersection(labels)
    if both:
        raise SpaceError(
            f"{listed(sorted(both))} cannot be both an input and a label; "
            "an input is seen by the model, a label is not"
        )
    chosen = tuple(name for name in names if name not in labels) if inputs is None else inputs
    if not chosen:
        raise SpaceError(
            f"no inputs are left for the model; the table has {listed(names)}. "
            "Leave one out of labels, or name some in inputs."
        )
    return tuple(dict.fromkeys(chosen))


def refuse_too_wide(features: Mapping[str, Feature], n: int) -> None:
    """Raise if the inputs of n rows would not fit into memory."""
    if n * sum(feature.width for feature in features.values()) > _MOST_CELLS:
        name = max(features, key=lambda name: features[name].width)
        raise SpaceError(
            f"encoding {n} rows would take more than 2 GiB; the input {name!r} alone needs "
            f"{features[name].width} columns. Carry it unseen with labels=[{name!r}] and give "
            "numbers that describe it as inputs."
        )
