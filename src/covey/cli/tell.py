"""`covey tell`: results from a sheet, from stdin, or one by one; all of them or none."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import covey
from covey.cli import sheets
from covey.cli.options import FILE, Config, DryRun, Json, ValueColumn
from covey.cli.outcomes import FAILED, NamedResult, best_line, in_part, named_results, record_named
from covey.cli.output import ExitCode, Stop, put, put_json, say
from covey.cli.settings import read_settings
from covey.cli.sheets import SheetRow
from covey.cli.show import end, look_at
from covey.errors import did_you_mean, several

if TYPE_CHECKING:
    from covey.history import Amended, Failed, Told, Trial
    from covey.study import Study

_PAIR = re.compile(r"(\d+)=(.+)", re.DOTALL)
_LONGEST_ID = 18  # digits


@dataclass(frozen=True)
class _Result:
    """What became of one trial; ``value`` is None if it failed."""

    id: int
    value: float | None
    sem: float | None
    row: SheetRow


@dataclass(frozen=True)
class _Columns:
    """The columns of a sheet that are recorded; all others are not."""

    id: str = "id"
    value: str = "value"
    sem: str | None = None


@dataclass(frozen=True)
class _NewResults:
    """What is not in the journal yet: values, failures, and standard errors of known values."""

    told: Told | None
    failed: Failed | None
    sems: tuple[Amended, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many of each."""
        return {
            "told": len(self.told.ids) if self.told else 0,
            "failed": len(self.failed.ids) if self.failed else 0,
            "sems": len(self.sems),
        }


def tell(
    results: Annotated[list[str], typer.Argument(help="ID=VALUE ..., a CSV file, or - for stdin")],
    config: Config = FILE,
    value: ValueColumn = "value",
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Record results: all of them or none; what is recorded already is skipped.

    A sheet has the columns id and value, perhaps sem; an empty value is still to come, the word
    failed is a failure. A sem that was not known before is added. Where outcomes have names, a
    sheet has a column for each, and a pair is ID:NAME=VALUE.

    \b
    covey tell 0=0.81 1=failed
    covey tell batch.csv
    covey tell --dry-run batch.csv
    """
    settings = read_settings(config)
    if not settings.journal.exists():
        raise Stop(ExitCode.CONFLICT, f"there is no {settings.journal} yet; `covey ask` starts it.")
    study = look_at(settings, own=True) if dry_run else settings.change()
    if study.recipe.outcomes is not None:
        return _tell_by_name(results, study, as_json=as_json, dry_run=dry_run)
    found = _results(results, study, value)
    for result in found:
        _require_same_point(result, study)
    news = _checked_results(found, study)
    if not dry_run:
        _record(study, news)
    counts = news.counts
    known = len(found) - counts["told"] - counts["failed"]
    if as_json:
        fields = {**counts, "known": known, "dry_run": dry_run}
        put_json("covey.tell/1", {**fields, "pending": len(study.history.pending)})
    else:
        verb = "would be recorded" if dry_run else "recorded"
        told, failed = several(counts["told"], "result"), several(counts["failed"], "failure")
        sems = f", {several(counts['sems'], 'standard error')} added" if news.sems else ""
        put(f"{told} and {failed} {verb}, {known} known already{sems}")
    _say_what_is_left(study)
    return end(study)


def _tell_by_name(results: Sequence[str], study: Study, *, as_json: bool, dry_run: bool) -> None:
    """Record results of a study whose outcomes have names."""
    found = named_results(results, study)
    for result in found:
        _require_same_point(result, study)
    counts = record_named(found, study, dry_run=dry_run)
    if as_json:
        fields = {**counts, "dry_run": dry_run, "pending": len(study.history.pending)}
        put_json("covey.tell/1", {"sems": 0, **fields})
    else:
        verb = "would be recorded" if dry_run else "recorded"
        told, failed = several(counts["told"], "result"), several(counts["failed"], "failure")
        put(f"{told} and {failed} {verb}, {counts['known']} known already")
    part = len(in_part(study))
    if part:
        say(f"{several(part, 'trial')} told in part; the rest of the outcomes is to come")
    _say_what_is_left(study)
    return end(study)


def _say_what_is_left(study: Study) -> None:
    left = len(study.history.pending)
    if best := best_line(study):
        say(best)
    still = f"{several(left, 'trial')} {'is' if left == 1 else 'are'} still open"
    say(still if left else "next: covey ask")


def _checked_results(results: Sequence[_Result], study: Study) -> _NewResults:
    """What is to be recorded, all of it checked before any of it is written."""
    from covey.history import Amended, Failed, Told

    kinds = {result.id: _kind(result, _trial(result, study)) for result in results}
    new = [r for r in results if kinds[r.id] == "new"]
    told = [r for r in new if r.value is not None]
    failed = [r for r in new if r.value is None]
    news = _NewResults(
        Told(
            tuple(r.id for r in told),
            tuple(r.value for r in told if r.value is not None),
            tuple(r.sem for r in told),
        )
        if told
        else None,
        Failed(tuple(r.id for r in failed), "told as failed") if failed else None,
        tuple(
            Amended(r.id, r.value, "its standard error was told later", r.sem)
            for r in results
            if kinds[r.id] == "sem" and r.value is not None
        ),
    )
    for event in (news.told, news.failed, *news.sems):
        if event is not None:
            study.history.check(event)
    if told and isinstance(study.space, covey.Pool):
        study.space.verify_source()
    return news


def _record(study: Study, news: _NewResults) -> None:
    """Record values first, under a key made of their content; then the rest.

    All were checked before. After an interruption the same command can be given again: what is
    recorded already is skipped.
    """
    if news.told is not None:
        told = news.told
        sems = told.sems if any(sem is not None for sem in told.sems) else None
        values = [value for value in told.values if isinstance(value, float)]  # a sheet names none
        study.tell(told.ids, values, sems, key=_key(told))
    for event in (news.failed, *news.sems):
        if event is not None:
            study.note(event)


def _key(told: Told) -> str:
    rows = sorted(zip(told.ids, told.values, told.sems, strict=True))
    text = json.dumps(rows, default=str)
    return f"tell-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _require_same_point(result: _Result | NamedResult, study: Study) -> None:
    """Refuse a row whose parameters are not those of its trial: it was sorted or edited."""
    for name, value in _trial(result, study).point.items():
        said = result.row.cells.get(sheets.heading(name), "")
        if said.strip() and not _alike(said, value):
            raise result.row.error(
                f"the row says {name}={said}, but trial {result.id} has {name}={value}. Was the "
                "sheet sorted by some columns only?"
            )


def _alike(said: str, value: Any) -> bool:
    """The same text, or what a spreadsheet makes of it: TRUE, 1 for 1.0, a rounded number."""
    if said == str(value):
        return True
    said = said.strip()
    same = said.lower() == str(value).strip().lower()
    if isinstance(value, bool):
        return same
    try:
        return math.isclose(sheets.plain_number(said), float(value), rel_tol=6e-3)
    except (TypeError, ValueError, OverflowError):
        return same


def _trial(result: _Result | NamedResult, study: Study) -> Trial:
    history = study.history
    if not 0 <= result.id < len(history):
        raise result.row.error(
            f"there is no trial {result.id}; ids go to {len(history) - 1}. What was never asked "
            "for is added in Python, with study.add(points, values)."
        )
    return history.trial(result.id)


def _kind(result: _Result, trial: Trial) -> Literal["new", "sem", "known"]:
    """Whether a result is new, known, or known but for its standard error."""
    if trial.status == "told" and trial.value != result.value:
        raise result.row.error(
            f"trial {result.id} was told {trial.value!r} already; correct a value with "
            f"`covey amend {result.id}=VALUE --reason WHY`."
        )
    if trial.status == "told":
        if result.sem in (None, trial.sem):
            return "known"
        if trial.sem is None:
            return "sem"
        raise result.row.error(
            f"trial {result.id} was told with the sem {trial.sem!r} already; write that, or leave "
            "the cell empty."
        )
    if result.value is None and trial.status in ("cancelled", "lost"):
        raise result.row.error(f"trial {result.id} was {trial.status}, so it cannot fail any more.")
    return "known" if trial.status == "failed" and result.value is None else "new"


def _results(words: Sequence[str], study: Study, value: str) -> list[_Result]:
    pairs = [_PAIR.fullmatch(word) for word in words]
    if words and all(pairs):
        rows = [
            SheetRow({"id": p[1], "value": p[2]}, f"{p[1]}={p[2]}") for p in pairs if p is not None
        ]
        columns = _Columns()
    elif len(words) == 1:
        names, rows = sheets.read_sheet(words[0])
        columns = _columns(names, words[0], study, value)
        _warn_of_unused(names, rows, columns, study)
    else:
        raise Stop(ExitCode.USAGE, "tell takes one file, - for stdin, or ID=VALUE for each result.")
    found = [r for row in rows if (r := _result(row, columns)) is not None]
    seen: set[int] = set()
    for result in found:
        if result.id in seen:
            raise result.row.error(f"trial {result.id} comes twice.")
        seen.add(result.id)
    return found


def _columns(names: Sequence[str], path: str, study: Study, value: str) -> _Columns:
    parameters = {sheets.heading(name) for name in study.space.names}
    if value in parameters:
        raise Stop(ExitCode.USAGE, f"--value {value}: that is a parameter, not a result.")
    own = [name for name in names if name not in parameters]
    found = {wanted: _column(own, wanted, path) for wanted in ("id", value, "sem")}
    for needed in ("id", value):
        if found[needed] is None:
            hint = did_you_mean(needed, names)
            way = " Name the column of the results with --value."
            if needed == "id":
                way = " `covey ask --out` writes a sheet with ids; `covey next` works without."
            raise Stop(
                ExitCode.INVALID,
                f"{path} has no column {needed!r}; it has {', '.join(names)}.{hint}{way} "
                "Nothing was recorded.",
            )
    return _Columns(found["id"] or "id", found[value] or value, found["sem"])


def _column(names: Sequence[str], wanted: str, path: str) -> str | None:
    """The column of this name, in whatever capitals; None if there is none."""
    if wanted in names:
        return wanted
    alike = [name for name in names if name.lower() == wanted.lower()]
    if len(alike) > 1:
        both = " and ".join(map(repr, alike))
        raise Stop(ExitCode.INVALID, f"{path}: {both} may both be {wanted!r}; rename one.")
    return alike[0] if alike else None


def _warn_of_unused(
    names: Sequence[str], rows: Sequence[SheetRow], columns: _Columns, study: Study
) -> None:
    """Say which columns hold something that is not recorded."""
    known = {columns.id, columns.value, columns.sem, "status", "origin"}
    known |= {sheets.heading(name) for name in study.space.names}
    known |= sheets.exported(names, study.space.names)
    rest = [n for n in names if n not in known and any(row.text(n) for row in rows)]
    if rest:
        say(f"not recorded: {', '.join(rest)}. A journal has no place for it; keep the sheet.")


def _result(row: SheetRow, columns: _Columns) -> _Result | None:
    """The result in a row; None where the value is still empty."""
    text, id, sem = row.text(columns.value), row.text(columns.id), None
    if not text:
        return None
    if not id.isdecimal() or len(id) > _LONGEST_ID:
        raise row.error(f"an id is a whole number, got {id[:40]!r}. Leave out rows of no trial.")
    if text.lower() in FAILED:
        return _Result(int(id), None, None, row)
    value = row.number(columns.value, "; write failed if it crashed, nothing if it is to come")
    if columns.sem is not None and row.text(columns.sem):
        sem = row.number(columns.sem)
        if sem < 0:
            raise row.error(f"the {columns.sem} must not be negative, got {sem:g}.")
    return _Result(int(id), value, sem, row)
