"""The header of a log: the recipe and the strategy of its study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from covey.errors import JournalError, JournalMismatch, StrategyError
from covey.gp import GP
from covey.learn import Recipe
from covey.outcomes import PLAIN, Outcomes
from covey.space import Pool
from covey.space.description import as_described

_HEADER: dict[str, Any] = {
    "space": dict,
    "fingerprint": str,
    "goal": str | dict,
    "strategy": dict,
    "seed": int,
    "gp": dict,
}


def header_of(recipe: Recipe, strategy: Mapping[str, Any]) -> dict[str, Any]:
    """The header of a new log; a strategy that is an object can only be named in it."""
    named = {} if recipe.outcomes is None else recipe.outcomes.describe()
    header = {
        "space": recipe.space.describe(),
        "fingerprint": recipe.space.fingerprint,
        "goal": recipe.goal,
        **named,
        "strategy": dict(strategy),
        "seed": recipe.seed,
        "gp": recipe.gp.describe(),
    }
    return header if recipe.resolution is None else {**header, "resolution": recipe.resolution}


def require_study(header: Mapping[str, Any], name: str | Path) -> None:
    """Raise JournalError unless the header is that of a study."""
    missing = [field for field in _HEADER if field not in header]
    if missing:
        raise JournalError(
            f"{name} is not the journal of a study: its header lacks {', '.join(missing)}."
        )
    odd = [field for field, kind in _HEADER.items() if not isinstance(header[field], kind)]
    if not odd and not header["strategy"].keys() >= {"name", "object"}:
        odd = ["strategy"]
    if odd:
        raise JournalError(f"{name}: its header makes no sense of {', '.join(odd)}.")
    outcomes_in(header)


def strategy_in(header: Mapping[str, Any]) -> str:
    """The strategy a journal was started with."""
    written = header["strategy"]
    if written["object"]:
        raise StrategyError(
            f"this journal used a strategy object ({written['name']}), which a log cannot hold; "
            "pass it again, as strategy=..."
        )
    return str(written["name"])


def gp_in(header: Mapping[str, Any]) -> GP:
    """The Gaussian process a journal was started with."""
    unknown = set(header["gp"]).difference(field.name for field in fields(GP))
    if unknown:  # ignoring a setting would change the batches
        raise JournalError(
            "this journal was started with a GP that this covey does not know "
            f"({', '.join(sorted(unknown))}); it was written by a newer one, please upgrade."
        )
    return GP(**header["gp"])


def recipe_in(header: Mapping[str, Any], given: Recipe, seed: int | None, gp: GP | None) -> Recipe:
    """The recipe a journal was started with, if it agrees with what is given (None: not given)."""
    given = replace(given, space=as_described(given.space, header["space"]))
    made = Recipe(given.space, given.goal, gp_in(header), header["seed"], header.get("resolution"))
    made = replace(made, outcomes=outcomes_in(header))
    for what, written, now in (
        ("space", header["fingerprint"], given.space.fingerprint),
        *_outcomes(header, given),
        ("seed", header["seed"], header["seed"] if seed is None else seed),
        ("gp", made.gp, made.gp if gp is None else gp),
        ("resolution", made.alike, made.alike if given.resolution is None else given.alike),
    ):
        if written != now:
            then, here = written, now
            if what == "space":
                then, here = _difference(header["space"], given.space.describe())
            path = given.space.path if what == "space" and isinstance(given.space, Pool) else None
            raise JournalMismatch(
                f"the journal belongs to a study with another {what} ({then!r}, not {here!r})."
                + (f" {path} may have changed since, or been read otherwise." if path else "")
                + f" Use the {what} it was started with, or another file."
            )
    return made


def outcomes_in(header: Mapping[str, Any]) -> Outcomes | None:
    """The outcomes of the study of a journal; None if it has one plain value."""
    parts = (header.get(name) for name in ("limits", "record", "worst"))
    try:
        return Outcomes.of(header["goal"], *parts)
    except StrategyError as error:
        raise JournalError(f"the header of this journal makes no sense: {error}") from error


def _outcomes(header: Mapping[str, Any], given: Recipe) -> Iterator[tuple[str, Any, Any]]:
    """Goals, limits and the like, as written and as given; what is not given agrees."""
    now = {"goal": given.goal} if given.outcomes is None else given.outcomes.describe()
    goals = [
        {PLAIN: goal} if isinstance(goal, str) else goal for goal in (header["goal"], now["goal"])
    ]
    same = goals[0] == goals[1]
    yield "goal", header["goal"], header["goal"] if same else now["goal"]
    for name in ("limits", "record", "worst"):
        yield name, header.get(name), now.get(name, header.get(name))


def _difference(written: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Any, Any]:
    """The first part in which two descriptions of a space differ."""
    for name in ("kind", "columns", "inputs", "log", "n", "where"):
        if written.get(name) != now.get(name):
            return written.get(name), now.get(name)
    pairs = zip_longest(written.get("parameters", ()), now.get("parameters", ()))
    return next(((a, b) for a, b in pairs if a != b), ("other contents", "these"))
