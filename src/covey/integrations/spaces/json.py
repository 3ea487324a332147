"""Spaces as JSON text, in Covey's own description format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from covey import Pool, Space
from covey.errors import SpaceError
from covey.space import space_from_description


def space_to_json(space: Space | Pool) -> str:
    """The text from which :func:`space_from_json` builds an equal space.

    A Pool must come from a file, and the text then holds its path and the hash of its content.

    >>> from covey import Real
    >>> print(space_to_json(Space({"x": Real(0, 1)})))  # doctest: +ELLIPSIS
    {
      "kind": "space",
      "parameters": [
        {
          "name": "x",
          "kind": "real",
    ...
    """
    if not isinstance(space, Space | Pool):
        raise SpaceError(
            f"only a covey.Space or a covey.Pool has a description; got {type(space).__name__}."
        )
    description = space.describe()
    if description["opaque"]:
        raise SpaceError(f"JSON cannot hold {_opaque_part(space)}.")
    return json.dumps(description, indent=2, allow_nan=False)


def space_from_json(text: str) -> Space | Pool:
    """The space a text describes; what has a default in Covey may be left out of it.

    >>> space_from_json('''{"kind": "space", "where": [], "parameters": [
    ...     {"name": "n", "kind": "integer", "low": 1, "high": 8}]}''')
    Space({'n': Integer(low=1, high=8, log=False, step=1)})

    Raises:
        SpaceError: the text is no JSON, or says something that is not understood.
    """
    description = _parsed(text)
    space = space_from_description(description)
    _require_understood(description, space.describe(), "the description")
    return space


def _parsed(text: str) -> Mapping[str, Any]:
    if not isinstance(text, str):
        raise SpaceError(
            f"space_from_json takes a text, got {type(text).__name__}; read the file first: "
            "Path(...).read_text()."
        )
    try:
        description = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpaceError(f"this text is no JSON ({error}), so it describes no space.") from error
    if not isinstance(description, Mapping):
        raise SpaceError(
            f"a space is described by a JSON object, got {type(description).__name__}; "
            "space_to_json shows one."
        )
    return description


def _require_understood(given: Any, built: Any, where: str) -> None:
    """Raise unless the description of the built space has all that was given."""
    if isinstance(given, Mapping) and isinstance(built, Mapping):
        for key, value in given.items():
            if key not in built:
                raise SpaceError(f"{where} says {key!r}, which means nothing here; remove it.")
            _require_understood(value, built[key], f"{key!r} in {where}")
    elif isinstance(given, list) and isinstance(built, list):
        if len(given) != len(built):
            raise SpaceError(
                f"{where} has {len(given)} entries, of which {len(built)} were understood; "
                "give each name once."
            )
        for place, (one, other) in enumerate(zip(given, built, strict=True)):
            _require_understood(one, other, f"entry {place} of {where}")
    elif given != built or isinstance(given, bool) != isinstance(built, bool):
        raise SpaceError(f"{where} is {given!r} but was understood as {built!r}; correct it.")


def _opaque_part(space: Space | Pool) -> str:
    """The part of a space that JSON cannot hold."""
    if isinstance(space, Pool):
        return "a Pool of rows in memory; write them to a CSV file and give its path to Pool"
    for name, parameter in space.parameters.items():
        if parameter.opaque:
            return (
                f"{parameter.opaque} of parameter {name!r}; use texts, numbers, true, false or "
                "null, and look the object up in the objective"
            )
    return (
        "a constraint that is a function of the point; only Linear, Mixture and Implies can be "
        "written down"
    )
