"""Outcomes by name on the command line: goals and limits as flags, results by name, the front."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from covey.cli import sheets
from covey.cli.output import ExitCode, Stop, say
from covey.cli.sheets import SheetRow
from covey.errors import SpaceError, did_you_mean

if TYPE_CHECKING:
    from covey.history import Trial
    from covey.study import Study

FAILED = ("failed", "fail", "error", "crashed")  # words for a trial that gave no result
_LIMIT = re.compile(r"\s*(.+?)\s*(<=|>=)\s*(\S+)\s*", re.DOTALL)
_NAMED = re.compile(r"(\d{1,18}):(.+?)=(.+)", re.ASCII | re.DOTALL)
_PLAIN = re.compile(r"(\d{1,18})=(.+)", re.ASCII | re.DOTALL)


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


def value_columns(study: Study) -> list[str]:
    """The columns of a sheet that are to be filled in: outcomes, then records."""
    named = study.recipe.outcomes
    return ["value"] if named is None else [*named.names, *named.record]


def in_part(study: Study) -> list[Trial]:
    """The trials that count and whose outcomes are still to come in part."""
    told = (t for t in study.history.told if not t.excluded)
    return [trial for trial in told if study.outcomes.lacks(trial)]


def standing_lines(study: Study) -> Iterator[str]:
    """How the space was extended, the limits, and the trials that are told in part."""
    from covey.log.extension import extensions_in_words

    yield from extensions_in_words(study.history, study.space)
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
        for event, rounds, said in changes(study.history, study.space)
    ]


def goal_words(study: Study) -> str:
    """The goal in words: max, or yield max, cost min."""
    named = study.recipe.outcomes
    if named is None:
        return study.recipe.goal
    return ", ".join(f"{name} {sense}" for name, sense in named.goals.items())


def named_fields(study: Study) -> dict[str, Any]:
    """What only a study has whose outcomes have names."""
    named = study.recipe.outcomes
    if named is None:
        return {}
    described = {key: value for key, value in named.describe().items() if key != "goal"}
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


@dataclass
class NamedResult:
    """What became of one trial: values by name, or a failure."""

    id: int
    row: SheetRow
    values: dict[str, float] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    failed: bool = False

    def news(self, study: Study) -> dict[str, Any] | None:
        """What is to be told of the trial; None if all of it is known.

        Raises:
            Stop: A value was told otherwise, or the trial cannot have one.
        """
        trial = _known_trial(self, study)
        if self.failed:
            if trial.status == "told":
                raise self.row.error(f"trial {self.id} was told {trial.values} already.")
            return None
        for name, value in self.values.items():
            if name in trial.values and trial.values[name] != value:
                raise self.row.error(
                    f"trial {self.id} was told {name} {trial.values[name]!r} already; correct a "
                    f"value with `covey amend {self.id}:{name}=VALUE --reason WHY`."
                )
        new = {name: value for name, value in self.values.items() if name not in trial.values}
        if not new:
            self._refuse_other_records(study)
            return None
        later = [name for name in study.outcomes.lacks(trial) if name not in new]
        return {**new, **dict.fromkeys(later), **self.record}

    def _refuse_other_records(self, study: Study) -> None:
        """Raise if a record differs from what was recorded: it comes with a result."""
        recorded = study.history.metrics(self.id)
        for name, text in self.record.items():
            if not _same_text(text, str(recorded.get(name, ""))):
                was = f"was recorded as {recorded[name]!r}" if name in recorded else "has no value"
                raise self.row.error(
                    f"{name} of trial {self.id} {was}, and {name} is recorded together with a new "
                    f"result only; `covey note {self.id} TEXT` keeps what is to be said later."
                )


def _same_text(one: str, other: str) -> bool:
    """Whether two cells say the same; a spreadsheet may have spelt a number otherwise."""
    try:
        return sheets.plain_number(one) == sheets.plain_number(other)
    except SpaceError:
        return one.strip() == other.strip()


def _known_trial(result: NamedResult, study: Study) -> Trial:
    if not 0 <= result.id < len(study.history):
        raise result.row.error(
            f"there is no trial {result.id}; ids go to {len(study.history) - 1}."
        )
    return study.history.trial(result.id)


def named_results(words: Sequence[str], study: Study) -> list[NamedResult]:
    """The results of a sheet with a column for each outcome, or of ID:NAME=VALUE for each value."""
    if words and all(_NAMED.fullmatch(word) or _PLAIN.fullmatch(word) for word in words):
        return _from_words(words, study)
    if len(words) != 1:
        raise Stop(
            ExitCode.USAGE,
            "tell takes one file, - for stdin, or ID:NAME=VALUE for each value of an outcome.",
        )
    return _from_sheet(words[0], study)


def _from_words(words: Sequence[str], study: Study) -> list[NamedResult]:
    found: dict[int, NamedResult] = {}
    names = value_columns(study)
    for word in words:
        match, plain = _NAMED.fullmatch(word), _PLAIN.fullmatch(word)
        only = study.outcomes.only
        id, name, text = (
            (int(match[1]), match[2], match[3])
            if match is not None
            else (int(plain[1]), only, plain[2])  # type: ignore[index]
        )
        row = SheetRow({"id": str(id), name: text}, word)
        result = found.setdefault(id, NamedResult(id, row))
        if match is None and text.lower() in FAILED:
            result.failed = True
            continue
        if name not in names:
            raise row.error(
                f"{name!r} is no outcome of this study; they are {', '.join(names)}."
                f"{did_you_mean(name, names)} Write ID:NAME=VALUE."
            )
        if name in result.values or name in result.record:
            raise row.error(f"{name} of trial {id} comes twice.")
        _fill(result, row, name, study)
    for result in found.values():
        if result.failed:
            _require_all_failed(result.row, f"trial {result.id}", list(result.values))
    return list(found.values())


def _from_sheet(path: str, study: Study) -> list[NamedResult]:
    names, rows = sheets.read_sheet(path)
    wanted = value_columns(study)
    outcomes = study.outcomes.names
    if "id" not in names or not any(name in names for name in outcomes):
        raise Stop(
            ExitCode.INVALID,
            f"{path} needs the columns id and {', '.join(outcomes)}; it has {', '.join(names)}. "
            "`covey ask --out` writes such a sheet. Nothing was recorded.",
        )
    _warn_of_unused(names, rows, study)
    found: dict[int, NamedResult] = {}
    for row in rows:
        if not any(row.text(name) for name in outcomes):
            continue
        result = _from_row(row, wanted, study)
        if result.id in found:
            raise row.error(f"trial {result.id} comes twice.")
        found[result.id] = result
    return list(found.values())


def _warn_of_unused(names: Sequence[str], rows: Sequence[SheetRow], study: Study) -> None:
    """Say which columns hold something that is not recorded."""
    known = {"id", "status", "origin", "value", "sem", *map(sheets.heading, study.space.names)}
    filled_in = value_columns(study)
    known |= {*filled_in, *sheets.exported(names, study.space.names, filled_in)}
    rest = [n for n in names if n not in known and any(row.text(n) for row in rows)]
    if rest:
        say(f"not recorded: {', '.join(rest)}. A study keeps what its record names.")


def _from_row(row: SheetRow, wanted: Sequence[str], study: Study) -> NamedResult:
    id = row.text("id")
    if not id.isdecimal() or len(id) > 18:
        raise row.error(f"an id is a whole number, got {id[:40]!r}.")
    result = NamedResult(int(id), row)
    cells = {name: row.text(name) for name in study.outcomes.names if row.text(name)}
    failed = [name for name, text in cells.items() if text.lower() in FAILED]
    if failed:
        _require_all_failed(row, failed[0], [name for name in cells if name not in failed])
        result.failed = True
        return result
    for name in wanted:
        if row.text(name):
            _fill(result, row, name, study)
    return result


def _require_all_failed(row: SheetRow, failed: str, others: Sequence[str]) -> None:
    """Raise if a trial that failed has values of other outcomes."""
    if others:
        raise row.error(
            f"{failed} failed, but there are values of {' and '.join(others)}; only a whole trial "
            "fails. Leave the cell empty if its value comes later, or take the other values out."
        )


def _fill(result: NamedResult, row: SheetRow, name: str, study: Study) -> None:
    if name in study.outcomes.names:
        result.values[name] = row.number(
            name, "; write failed if it crashed, nothing if it is to come"
        )
    else:
        result.record[name] = row.text(name)


def record_named(results: Sequence[NamedResult], study: Study, *, dry_run: bool) -> dict[str, int]:
    """Record what is new, after all of it was checked; how many of each kind there were."""
    from covey.arguments import results_of
    from covey.history import Failed, Told

    news = {result.id: told for result in results if (told := result.news(study)) is not None}
    failed = [r.id for r in results if r.failed and study.history.trial(r.id).status != "failed"]
    if news:
        found = results_of(list(news.values()), list(news), study.history, study.recipe.outcomes)
        event = Told(tuple(news), found.values, (), found.metrics, found.goal)
        study.history.check(event)
    if failed:
        study.history.check(Failed(tuple(failed), "told as failed"))
    if not dry_run and news:
        study.tell(list(news), list(news.values()))
    if not dry_run and failed:
        study.fail(failed, "told as failed")
    known = len(results) - len(news) - len(failed)
    return {"told": len(news), "failed": len(failed), "known": known}
