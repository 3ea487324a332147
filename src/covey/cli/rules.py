"""Rules on the command line, `--rule 'solvent=THF: T<=60'`, and the rows of covey.toml they make.

Also names and values as TOML writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import covey
from covey.cli.output import ExitCode, Stop
from covey.errors import SpaceError, sentence

if TYPE_CHECKING:
    from covey.space import Parameter

HOW = "--rule 'solvent=THF: T<=60' or --rule 'solvent=DMF|water: base=KOH|NaOH, T>=40'"
_BETWEEN = re.compile(r"(?P<low>[^<>=]+)<=(?P<name>[^<>=]+)<=(?P<high>[^<>=]+)")
_TERM = re.compile(r"(?P<name>[^<>=]+)(?P<sign><=|>=|=)(?P<value>[^<>]+)")


def _require_parameters(
    words: Sequence[str], parameters: Mapping[str, Parameter], pool: Path | None
) -> None:
    """Refuse rules about a pool, whose rows say what there is, or about a file's parameters."""
    if words and pool is not None:
        raise Stop(
            ExitCode.USAGE,
            "--rule is about parameters, and a pool holds only what may be tried; leave out the "
            "rows that break it.",
        )
    if words and not parameters:
        raise Stop(
            ExitCode.USAGE,
            "--rule is about parameters given beside it, such as --real T=20:120; in covey.toml "
            "it is a row [[constraints]] with when and then.",
        )


def rules_from(
    words: Sequence[str], parameters: Mapping[str, Parameter], pool: Path | None = None
) -> list[dict[str, Any]]:
    """The rows of covey.toml that flags give; checked against the parameters.

    >>> solvent = covey.Choice(["THF", "DMF"])
    >>> rules_from(["solvent=THF: T<=60"], {"solvent": solvent, "T": covey.Real(20, 120)})
    [{'when': {'solvent': 'THF'}, 'then': {'T': {'high': 60.0}}}]
    """
    _require_parameters(words, parameters, pool)
    found = []
    for word in words:
        try:
            row = _row(word, parameters)
            covey.Implies(**row).validate(parameters)
        except SpaceError as error:
            raise Stop(ExitCode.USAGE, f"{word!r}: {sentence(error)} Write {HOW}.") from error
        found.append(row)
    return found


def _row(word: str, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    before, colon, after = word.partition(":")
    if not colon or not before.strip() or not after.strip():
        raise SpaceError("a rule is when it applies, a colon, and what holds then.")
    when: dict[str, list[Any]] = {}
    for term in before.split(","):
        name, sign, value = _parted(term)
        if sign != "=" or name in when:
            raise SpaceError(f"before the colon each name has = and its values, got {term!r}.")
        when[name] = _values(name, value, parameters)
    then: dict[str, Any] = {}
    for term in after.split(","):
        name, given = _consequence(term, parameters)
        said = then.setdefault(name, {})
        if isinstance(given, list) and not said:
            then[name] = given
        elif isinstance(given, list) or isinstance(said, list) or said.keys() & given.keys():
            raise SpaceError(f"{name!r} is said twice after the colon.")
        else:
            said.update(given)
    plain = {name: values[0] if len(values) == 1 else values for name, values in when.items()}
    return {"when": plain, "then": then}


def _consequence(
    term: str, parameters: Mapping[str, Parameter]
) -> tuple[str, list[Any] | dict[str, float]]:
    """A name, and the options or the ends of the range that are left of it."""
    if between := _BETWEEN.fullmatch(term):
        name = _known(between["name"].strip(), parameters)
        return name, {"low": _number(between["low"]), "high": _number(between["high"])}
    name, sign, value = _parted(term)
    if sign == "=":
        return name, _values(name, value, parameters)
    return _known(name, parameters), {"high" if sign == "<=" else "low": _number(value)}


def _parted(term: str) -> tuple[str, str, str]:
    match = _TERM.fullmatch(term)
    if match is None:
        raise SpaceError(f"{term.strip()!r} is no name with =, <= or >= and a value.")
    return match["name"].strip(), match["sign"], match["value"].strip()


def _known(name: str, parameters: Mapping[str, Parameter]) -> str:
    from covey.space.names import unknown

    if name not in parameters:
        raise unknown(name, list(parameters), "parameter", "this space")
    return name


def _values(name: str, text: str, parameters: Mapping[str, Parameter]) -> list[Any]:
    parameter = parameters[_known(name, parameters)]
    try:
        return [parameter.parse(part.strip()) for part in text.split("|")]
    except SpaceError as error:
        raise SpaceError(f"{name}: {error}") from error


def _number(text: str) -> float:
    from covey.spreadsheets import number_from_text

    return number_from_text(text.strip())


def toml_lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Rows [[constraints]] of covey.toml."""
    lines = []
    for row in rows:
        lines += ["[[constraints]]", *(f"{key} = {toml_value(row[key])}" for key in row), ""]
    return lines


def toml_value(value: object) -> str:
    """A string, number, boolean, list or table in TOML: as in JSON, but DEL is escaped."""
    if isinstance(value, Mapping):
        parts = (f"{toml_key(key)} = {toml_value(one)}" for key, one in value.items())
        return f"{{{', '.join(parts)}}}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_key(name: str) -> str:
    """A name as a TOML key, without quotes where TOML allows it."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)
