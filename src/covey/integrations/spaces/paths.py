"""Paths: names with slashes, for hosts whose configurations are dicts in dicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from covey.errors import SpaceError


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Values by path, as dicts in dicts.

    >>> nested({"a": 1, "b/c": 2})
    {'a': 1, 'b': {'c': 2}}
    """
    tree: dict[str, Any] = {}
    made: dict[tuple[str, ...], dict[str, Any]] = {(): tree}  # a value may be a dict of its own
    for name, value in flat.items():
        keys = tuple(name.split("/"))
        for depth in range(1, len(keys)):
            above = keys[:depth]
            if above not in made:
                made[above] = {}
                _put(made[above[:-1]], above[-1], made[above], name)
        _put(made[keys[:-1]], keys[-1], value, name)
    return tree


def picked(config: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The values a config has under these paths.

    >>> picked({"a": 1, "b": {"c": 2, "d": 3}}, ["a", "b/c", "e"])
    {'a': 1, 'b/c': 2}
    """
    found = {}
    for name in names:
        inner: Any = config
        *above, leaf = [name] if name in config else name.split("/")
        for key in above:
            inner = inner.get(key) if isinstance(inner, Mapping) else None
        if isinstance(inner, Mapping) and leaf in inner:
            found[name] = inner[leaf]
    return found


def _put(into: dict[str, Any], key: str, value: Any, name: str) -> None:
    if not key or key in into:
        why = "another name is a part of it" if key else "there is nothing beside a slash"
        raise SpaceError(f"parameter {name!r} cannot become a path of dicts: {why}; rename it.")
    into[key] = value
