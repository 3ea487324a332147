"""Constraints on the command line and in covey.toml: `--mixture`, and the rows [[constraints]]."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import covey
from covey.cli.output import ExitCode, Stop
from covey.errors import SpaceError, did_you_mean, sentence

if TYPE_CHECKING:
    from covey.space import Linear, Mixture

HOW = "--mixture 'water+ethanol+glycerol=1:parts=1-2:least=0.05:step=0.01'"
_KEYS = ("parts", "least", "step")
_PARTS = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_NUMBERS = (int, float)
_LINEAR: dict[str, Any] = {
    "weights": dict,
    "lower": _NUMBERS,
    "upper": _NUMBERS,
    "equal": _NUMBERS,
}
_MIXTURE: dict[str, Any] = {
    "mixture": list,
    "total": _NUMBERS,
    "parts": (int, list),
    "least": _NUMBERS,
    "step": _NUMBERS,
}


def mixtures_from(words: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of covey.toml that flags give: NAME+NAME=TOTAL with parts=, least= and step=."""
    found = []
    for word in words:
        try:
            row = _row(word)
            _mixture(row)  # is refused, if it is none
        except SpaceError as error:
            raise Stop(ExitCode.USAGE, f"{word!r}: {sentence(error)} Write {HOW}.") from error
        found.append(row)
    return found


def with_parts(
    parameters: Mapping[str, Mapping[str, Any]], mixtures: Sequence[Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """The tables of parameters, and of the parts of mixtures: each from 0 to the total."""
    found = dict(parameters)
    for row in mixtures:
        for name in row["mixture"]:
            found.setdefault(name, {"type": "real", "low": 0.0, "high": row["total"]})
    return found


def _row(word: str) -> dict[str, Any]:
    names, equals, rest = word.partition("=")
    total, *more = rest.split(":")
    if not equals:
        raise SpaceError("a mixture is its parts with + between them, and = what they sum to.")
    given: dict[str, Any] = {
        "mixture": [name.strip() for name in names.split("+")],
        "total": _number(total, "the total"),
    }
    for one in more:
        key, _, value = one.partition("=")
        if key not in _KEYS or key in given:
            hint = did_you_mean(key, _KEYS)
            raise SpaceError(f"after the total come parts=, least= and step=, got {one!r}.{hint}")
        given[key] = _parts(value) if key == "parts" else _number(value, key)
    return {key: given[key] for key in _MIXTURE if key in given}


def _mixture(row: Mapping[str, Any]) -> Mixture:
    parts = row.get("parts")
    said = {**row, "parts": tuple(parts) if isinstance(parts, list) else parts}
    return covey.Mixture(said.pop("mixture"), **said)


def _parts(text: str) -> list[int]:
    match = _PARTS.fullmatch(text)
    if match is None:
        raise SpaceError(f"parts is a number, or two such as 1-2, got {text!r}.")
    return [int(match[1]), int(match[2] or match[1])]


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise SpaceError(f"{what} is no number: {text!r}.") from error


def constraint_of(row: Any, typed: Any) -> Linear | Mixture:
    """A row [[constraints]]: weights with bounds, or a mixture.

    ``typed`` checks a table against the types of its keys, as for every other table of the file.
    """
    where = "[[constraints]]"
    if isinstance(row, Mapping) and "mixture" in row:
        return _mixture(typed(row, _MIXTURE, where))
    known = _LINEAR if isinstance(row, Mapping) and "weights" in row else {**_LINEAR, **_MIXTURE}
    given = typed(row, known, where)
    if "weights" not in given:
        raise SpaceError(
            "[[constraints]] needs weights, such as weights = {x = 1, y = 1}, or mixture, such as "
            'mixture = ["water", "ethanol"].'
        )
    if "equal" in given:
        if given.keys() & {"lower", "upper"}:
            raise SpaceError("[[constraints]] has equal, or lower and upper, not both.")
        given["lower"] = given["upper"] = given.pop("equal")
    return covey.Linear(given.pop("weights"), **given)
