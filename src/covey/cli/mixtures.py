"""Constraints on the command line and in covey.toml: `--mixture`, and the rows [[constraints]]."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import covey
from covey.cli.output import ExitCode, Stop
from covey.errors import SpaceError, did_you_mean, sentence

if TYPE_CHECKING:
    from covey.space import Linear, Mixture, Parameter

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


def mixtures_from(words: Sequence[str]) -> list[Mixture]:
    """The mixtures of flags, each NAME+NAME=TOTAL with parts=, least= and step= after it."""
    found = []
    for word in words:
        try:
            found.append(_mixture(word))
        except SpaceError as error:
            raise Stop(ExitCode.USAGE, f"{word!r}: {sentence(error)} Write {HOW}.") from error
    return found


def with_parts(
    parameters: Mapping[str, Parameter], mixtures: Sequence[Mixture]
) -> dict[str, Parameter]:
    """The parameters, and those parts of mixtures that are none yet: each from 0 to the total."""
    found = dict(parameters)
    for mixture in mixtures:
        for name in mixture.names:
            found.setdefault(name, covey.Real(0.0, mixture.total))
    return found


def mixture_lines(mixtures: Sequence[Mixture]) -> list[str]:
    """Mixtures as rows of covey.toml."""
    lines = []
    for mixture in mixtures:
        row = mixture.describe()
        row["mixture"] = row.pop("names")
        keys = ("mixture", "total", *_KEYS)
        lines += ["[[constraints]]"]
        lines += [f"{key} = {_in_toml(row[key])}" for key in keys if key in row]
        lines += [""]
    return lines


def _in_toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _mixture(word: str) -> Mixture:
    names, equals, rest = word.partition("=")
    total, *more = rest.split(":")
    if not equals:
        raise SpaceError("a mixture is its parts with + between them, and = what they sum to.")
    given: dict[str, Any] = {"total": _number(total, "the total")}
    for one in more:
        key, _, value = one.partition("=")
        if key not in _KEYS or key in given:
            hint = did_you_mean(key, _KEYS)
            raise SpaceError(f"after the total come parts=, least= and step=, got {one!r}.{hint}")
        given[key] = _parts(value) if key == "parts" else _number(value, key)
    return covey.Mixture([name.strip() for name in names.split("+")], **given)


def _parts(text: str) -> tuple[int, int]:
    match = _PARTS.fullmatch(text)
    if match is None:
        raise SpaceError(f"parts is a number, or two such as 1-2, got {text!r}.")
    return int(match[1]), int(match[2] or match[1])


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
        given = typed(row, _MIXTURE, where)
        parts = given.get("parts")
        if isinstance(parts, list):
            given["parts"] = tuple(parts)
        return covey.Mixture(given.pop("mixture"), **given)
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
