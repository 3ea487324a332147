"""Outcomes by name on the command line: goals and limits as flags, results by name, the front."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from covey.cli.output import ExitCode, Stop
from covey.errors import did_you_mean
from covey.sheets.columns import FAILED
from covey.tables import SheetRow

if TYPE_CHECKING:
    from covey.history import Trial
    from covey.study import Study

_LIMIT = re.compile(r"\s*(.+?)\s*(<=|>=)\s*(\S+)\s*", re.DOTALL)
_PAIR = re.compile(r"(\d+)(?::(.+?))?=(.+)", re.DOTALL)


def goal_in_words(words: Sequence[str]) -> str | dict[str, str]:
    """The goal that flags give: max or min; or several, as NAME=max.

    >>> goal_in_words(["yield=max", "cost=min"])
    {'yield': 'max', 'cost': 'min'}
    """
    if len(words) <= 1 and not any("=" in word for word in words):
        word = words[0] if words else "max"
        if word not in ("max", "min"):
            raise Stop(ExitCode.USAGE, f"--goal is max or min, or NAME=max; got {word!r}.")
        return word
    found: dict[str, str] = {}
    for word in words:
        name, equals, sense = word.rpartition("=")
        if not equals or not name or sense not in ("max", "min"):
            raise Stop(
                ExitCode.USAGE,
                f"several goals are given as --goal NAME=max --goal OTHER=min; got {word!r}.",
            )
        if name in found:
            raise Stop(ExitCode.USAGE, f"the goal {name!r} is given twice; name each goal once.")
        found[name] = sense
    return found


def limits_in_words(words: Sequence[str]) -> dict[str, list[Any]]:
    """Limits that flags give.

    >>> limits_in_words(["impurity<=2", "ph >= 6.5"])
    {'impurity': ['<=', 2.0], 'ph': ['>=', 6.5]}
    """
    found: dict[str, list[Any]] = {}
    for word in words:
        match = _LIMIT.fullmatch(word)
        try:
            bound = None if match is None else float(match[3])
        except ValueError:
            bound = None
        if match is None or bound is None:
            raise Stop(ExitCode.USAGE, f"--limit is such as 'impurity<=2'; got {word!r}.")
        if match[1] in found:
            raise Stop(ExitCode.USAGE, f"the limit on {match[1]!r} is given twice.")
        found[match[1]] = [match[2], bound]
    return found


def worst_in_words(words: Sequence[str]) -> dict[str, float]:
    """The worst values that flags give.

    >>> worst_in_words(["yield=20", "cost=90"])
    {'yield': 20.0, 'cost': 90.0}
    """
    found: dict[str, float] = {}
    for word in words:
        name, _, text = word.rpartition("=")
        try:
            value = float(text)
        except ValueError:
            value = None
        if not name or value is None:
            raise Stop(ExitCode.USAGE, f"--worst is such as cost=90; got {word!r}.")
        if name in found:
            raise Stop(ExitCode.USAGE, f"the worst {name!r} is given twice; give it once.")
        found[name] = value
    return found


def value_columns(study: Study) -> list[str]:
    """The columns of a sheet that are to be filled in: outcomes, then records."""
    return [*study.outcomes.names, *study.outcomes.record]


def in_part(study: Study) -> list[Trial]:
    """The trials that count and whose outcomes are still to come in part."""
    told = (t for t in study.history.told if not t.excluded)
    return [trial for trial in told if study.outcomes.lacks(trial)]


def standing_lines(study: Study) -> Iterator[str]:
    """How the space was extended, the limits, and the trials that are told in part."""
    from covey.log.extension import extensions_in_words

    yield from extensions_in_words(study.history, study.recipe)
    if study.outcomes.limits:
        kept = sum(study.outcomes.keeps(t.values) for t in study.history.told)
        limits = ", ".join(map(str, study.outcomes.limits))
        yield f"limits: {limits}; kept by {kept} of {len(study.history.told)}"
    lacking = [f"trial {t.id} lacks {', '.join(study.outcomes.lacks(t))}" for t in in_part(study)]
    if lacking:
        yield f"told in part: {'; '.join(lacking[:12])}{'; ...' if len(lacking) > 12 else ''}"


def extended_fields(study: Study) -> list[dict[str, Any]]:
    """Every extension of the space: why, after how many batches, and what changed."""
    from covey.log.extension import changes

    return [
        {"reason": event.reason, "batches": rounds, "changes": said}
        for event, rounds, said in changes(study.history, study.recipe)
    ]


def goal_words(study: Study) -> str:
    """The goal in words: max, or yield max, cost min."""
    if study.outcomes.plain:
        return study.recipe.goal
    return ", ".join(f"{name} {sense}" for name, sense in study.outcomes.goals.items())


def named_fields(study: Study) -> dict[str, Any]:
    """What only a study has whose outcomes have names."""
    if study.outcomes.plain:
        return {}
    described = {n: value for n, value in study.outcomes.describe().items() if n != "goal"}
    part = [trial.id for trial in in_part(study)]
    return {**described, "front": [trial.id for trial in study.front], "told_in_part": part}


def best_line(study: Study) -> str:
    """The best so far in a line; empty if there is none."""
    if not study.outcomes.only:
        front = study.front
        ids = ", ".join(str(trial.id) for trial in front[:12]) + (
            ", ..." if len(front) > 12 else ""
        )
        return f"front: {len(front)} (trial {ids})" if front else ""
    best = study.best
    if best is None or best.value is None:
        return ""
    return f"best so far: {best.value:.6g} (trial {best.id})"


def rows_in_words(words: Sequence[str], study: Study) -> list[SheetRow] | None:
    """A row for each trial that ID=VALUE or ID:NAME=VALUE speak of; None if some are neither.

    Raises:
        Stop: Something comes twice, or has a name that no outcome has.
    """
    pairs = [_PAIR.fullmatch(word) for word in words]
    found: dict[str, dict[str, str]] = {}
    said: dict[str, list[str]] = {}
    for word, pair in zip(words, pairs, strict=True):
        if pair is None:
            return None
        id, text = pair[1].lstrip("0") or "0", pair[3]
        name = _outcome_in(word, pair[2], text, study)
        row = found.setdefault(id, {"id": id})
        said.setdefault(id, []).append(word)
        if name in row:
            what = f"trial {id}" if study.outcomes.plain else f"{name} of trial {id}"
            raise SheetRow({}, word).error(f"{what} comes twice.")
        row[name] = text
    return [SheetRow(row, " ".join(said[id])) for id, row in found.items()]


def _outcome_in(word: str, name: str | None, text: str, study: Study) -> str:
    """The outcome that a word speaks of; that a trial failed is said of the first."""
    names = value_columns(study)
    if name is None and text.lower() in FAILED:
        return names[0]
    name = study.outcomes.only if name is None else name
    if name not in names:
        raise SheetRow({}, word).error(
            f"{name!r} is no outcome of this study; they are {', '.join(names)}."
            f"{did_you_mean(name, names)} Write ID:NAME=VALUE."
        )
    return name
