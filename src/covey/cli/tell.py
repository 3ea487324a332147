"""`covey tell`: results from a sheet, from stdin, or one by one; all of them or none."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from covey.cli import sheets
from covey.cli.exits import ExitCode, Stop
from covey.cli.look import look_at
from covey.cli.points import number_from_text
from covey.cli.settings import Settings
from covey.cli.sheets import Row
from covey.cli.voice import put, put_json, say
from covey.errors import did_you_mean, several
from covey.history import History
from covey.study import Study

FAILED = ("failed", "fail", "error", "crashed")
_DIGITS = 18  # of an id, at most
_PAIR = re.compile(r"(\d+)=(.+)", re.DOTALL)


@dataclass(frozen=True)
class Result:
    """What became of one trial; ``value`` is None if it failed."""

    id: int
    value: float | None
    sem: float | None
    row: Row


def tell(settings: Settings, words: Sequence[str], as_json: bool, dry_run: bool) -> None:
    """Record results; whatever is already recorded with the same value is passed over."""
    if not settings.journal.exists():
        raise Stop(ExitCode.CONFLICT, f"there is no {settings.journal} yet; `covey ask` starts it.")
    study = look_at(settings) if dry_run else settings.study()
    results = _results(words)
    fresh = [result for result in results if _is_new(result, study.history)]
    for result in results:
        _require_same_point(result, study)
    told = [r for r in fresh if r.value is not None]
    failed = [r for r in fresh if r.value is None]
    if not dry_run:
        _record(study, told, failed)
    before = len(results) - len(fresh)
    counts = {"told": len(told), "failed": len(failed), "known": before, "dry_run": dry_run}
    if as_json:
        put_json("covey.tell/1", {**counts, "pending": len(study.history.pending)})
    else:
        verb = "would be recorded" if dry_run else "recorded"
        counted = f"{several(len(told), 'result')} and {several(len(failed), 'failure')}"
        put(f"{counted} {verb}, {before} known already")
    left = len(study.history.pending)
    best = study.best
    if best is not None:
        say(f"best so far: {best.value:.6g} (trial {best.id})")
    still = f"{several(left, 'trial')} {'is' if left == 1 else 'are'} still open"
    say(still if left else "next: covey ask")


def _record(study: Study, told: list[Result], failed: list[Result]) -> None:
    """One event for the failures, then one for the results, taken once by its content.

    All were checked before. Whoever is interrupted in between tells the same again: what is
    recorded is passed over.
    """
    if failed:
        study.fail([r.id for r in failed], "told as failed")
    if told:
        sems = [r.sem for r in told]
        study.tell(
            [r.id for r in told],
            [r.value for r in told if r.value is not None],
            sems if any(s is not None for s in sems) else None,
            key=_key(told),
        )


def _key(results: list[Result]) -> str:
    text = json.dumps(sorted((r.id, r.value, r.sem) for r in results), default=str)
    return f"tell-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _require_same_point(result: Result, study: Study) -> None:
    """A row that shows other parameters than its trial was sorted, or edited, by mistake."""
    point = study.history.trial(result.id).point
    for name, value in point.items():
        said = result.row.cells.get(sheets.heading(name), "")
        if said and not _alike(said, value):
            raise result.row.error(
                f"the row says {name}={said}, but trial {result.id} has {name}={value}. Was the "
                "sheet sorted by some columns only?"
            )


def _alike(said: str, value: Any) -> bool:
    """The same text, or a number that a spreadsheet may have rounded."""
    if said == str(value):
        return True
    try:
        number = float(said)
    except ValueError:
        return not isinstance(value, int | float) and said.lower() == str(value).lower()
    return isinstance(value, int | float) and math.isclose(number, value, rel_tol=6e-3)


def _is_new(result: Result, history: History) -> bool:
    if not 0 <= result.id < len(history):
        raise result.row.error(f"there is no trial {result.id}; ids go to {len(history) - 1}.")
    trial = history.trial(result.id)
    if trial.status == "told" and trial.value != result.value:
        raise result.row.error(
            f"trial {result.id} was told {trial.value!r} already; correct a value in Python, with "
            "study.amend(id, value, reason)."
        )
    if result.value is None and trial.status in ("cancelled", "lost"):
        raise result.row.error(f"trial {result.id} was {trial.status}, so it cannot fail any more.")
    return trial.status != "told" and not (trial.status == "failed" and result.value is None)


def _results(words: Sequence[str]) -> list[Result]:
    pairs = [_PAIR.fullmatch(word) for word in words]
    if words and all(pairs):
        rows = [Row({"id": p[1], "value": p[2]}, f"{p[1]}={p[2]}") for p in pairs if p is not None]
        found = [_result(row) for row in rows]
    elif len(words) == 1:
        found = _from_sheet(words[0])
    else:
        raise Stop(ExitCode.USAGE, "tell takes one file, - for stdin, or ID=VALUE for each result.")
    seen: set[int] = set()
    for result in [r for r in found if r is not None]:
        if result.id in seen:
            raise result.row.error(f"trial {result.id} comes twice.")
        seen.add(result.id)
    return [r for r in found if r is not None]


def _from_sheet(path: str) -> list[Result | None]:
    names, rows = sheets.read(path)
    for needed in ("id", "value"):
        if needed not in names:
            hint = did_you_mean(needed, names)
            raise Stop(
                ExitCode.INVALID,
                f"{path} has no column {needed!r}; it has {', '.join(names)}.{hint} "
                "Nothing was recorded.",
            )
    return [_result(row) for row in rows]


def _result(row: Row) -> Result | None:
    """The result in a row; None where the value is still empty."""
    text = row.cells["value"]
    if not text:
        return None
    if not row.cells["id"].isdecimal() or len(row.cells["id"]) > _DIGITS:
        raise row.error(f"an id is a whole number, got {row.cells['id'][:40]!r}.")
    value = None if text.lower() in FAILED else _number(text, row, "value")
    sem = _number(row.cells["sem"], row, "sem") if row.cells.get("sem") else None
    return Result(int(row.cells["id"]), value, sem, row)


def _number(text: str, row: Row, what: str) -> float:
    try:
        value = number_from_text(text)
    except ValueError as error:
        hint = " Write decimal numbers with a point." if "," in text else ""
        raise row.error(f"the {what} {text!r} is no number (or the word failed).{hint}") from error
    if not math.isfinite(value):
        raise row.error(f"the {what} must be finite, got {text}; write failed if it crashed.")
    return value
