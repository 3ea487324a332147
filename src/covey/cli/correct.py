"""`covey exclude`, `include`, `amend`, `fail`, `cancel`, `retry` and `note`: what became of trials.

And `covey plate mark`, `unmark` and `amend`: the same of single wells.

Each takes ids and ranges of them, checks all before it records any, and says what changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covey.cli.options import FILE, Config, DryRun, Json
from covey.cli.output import ExitCode, Stop, put, put_json, say
from covey.cli.settings import read_settings
from covey.cli.show import end, look_at
from covey.errors import several
from covey.tables import SheetRow

if TYPE_CHECKING:
    from covey.history import Amended, Event, History, Revised, Trial
    from covey.study import Study

_PART = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)
_PAIR = re.compile(r"(\d{1,18})(?::(.+?))?=(.+)", re.ASCII | re.DOTALL)

Ids = Annotated[list[str], typer.Argument(metavar="IDS", help="Ids and ranges: 3,5 or 24-31.")]
Reason = Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="Why, in a few words.")]
MaybeReason = Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="Why, if known.")]


@dataclass(frozen=True)
class _Verb:
    """How a command is called, what it has done to a trial, and how it may be used."""

    name: str
    done: str  # the participle
    as_json: bool
    dry_run: bool


def exclude(
    ids: Ids,
    reason: Reason,
    config: Config = FILE,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Leave results out of the model and of the best; the journal keeps them.

    They are shown as excluded, and their points are not proposed again. `covey include` takes it
    back.

    \b
    covey exclude 0,1 --reason "wrong vial" --dry-run
    covey exclude 0-1 --reason "wrong vial"
    """
    from covey.history import Excluded

    verb = _Verb("exclude", "excluded", as_json, dry_run)
    _change(verb, config, ids, lambda found: Excluded(found, reason))


def include(
    ids: Ids,
    reason: Reason,
    config: Config = FILE,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Let excluded results count again, as if they had never been excluded.

    \b
    covey include 0 --reason "it was the right vial" --dry-run
    covey include 0 --reason "it was the right vial"
    """
    from covey.history import Included

    verb = _Verb("include", "included", as_json, dry_run)
    _change(verb, config, ids, lambda found: Included(found, reason))


def fail(
    ids: Ids,
    reason: MaybeReason = "",
    told: Annotated[
        bool, typer.Option("--told", help="Also trials that have a value, which is worth nothing.")
    ] = False,
    config: Config = FILE,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Say that pending trials failed: batches avoid such points from now on.

    With --told and a reason, trials that were told fail too: their values do not count any more,
    and the journal keeps them. `covey exclude` leaves a value out without calling its point bad,
    `covey cancel` is for trials that were never run, `covey retry` takes a failure back.

    \b
    covey fail 2 --dry-run
    covey fail 2 --reason "the vial broke"
    covey fail 0 --told --reason "the loss was nan, and 0 was printed"
    """
    from covey.history import Failed

    verb = _Verb("fail", "failed", as_json, dry_run)
    _change(verb, config, ids, lambda found: Failed(found, reason, told))


def cancel(
    ids: Ids,
    reason: MaybeReason = "",
    config: Config = FILE,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Withdraw pending trials that will not be run: their points are free again.

    \b
    covey cancel 2 --dry-run
    covey cancel 2 --reason "no time left"
    """
    from covey.history import Cancelled

    verb = _Verb("cancel", "cancelled", as_json, dry_run)
    _change(verb, config, ids, lambda found: Cancelled(found, reason))


def retry(ids: Ids, config: Config = FILE, as_json: Json = False, dry_run: DryRun = False) -> None:
    """Make failed trials pending again: `covey run` evaluates them, `covey tell` takes results.

    For failures that were no fault of their points, such as a typo in the program.

    \b
    covey retry 0-1,2 --dry-run
    covey retry 0-2
    """
    from covey.history import Retried

    _change(_Verb("retry", "pending again", as_json, dry_run), config, ids, Retried)


def note(
    ids: Annotated[str, typer.Argument(metavar="IDS", help="Ids and ranges: 3,5 or 24-31.")],
    text: Annotated[str, typer.Argument(help="A remark.")],
    config: Config = FILE,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Write a remark about trials into the journal; `covey logs ID` and `export` show it.

    \b
    covey note 0,2 "cloudy after an hour"
    """
    from covey.history import Noted

    verb = _Verb("note", "noted", as_json, dry_run)
    _change(verb, config, [ids], lambda found: Noted(found, text))


def amend(
    values: Annotated[list[str], typer.Argument(metavar="ID=VALUE ...", help="Right values.")],
    reason: Reason,
    sem: Annotated[float | None, typer.Option(min=0.0, help="Their standard error.")] = None,
    config: Config = FILE,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Correct values that were told; the journal keeps both.

    Without --sem a value keeps the standard error that it had. An outcome that has a name is given
    as ID:NAME=VALUE.

    \b
    covey amend 0=73.0 --reason "typing error" --dry-run
    covey amend 0=73.0 1=0.8 --reason "typing error"
    """
    verb = _Verb("amend", "amended", as_json, dry_run)
    study = _opened(verb, config)
    given = [_amended(word, reason, sem) for word in values]
    ids = [event.id for event in given]
    if twice := [id for id in ids if ids.count(id) > 1]:
        raise Stop(ExitCode.INVALID, f"trial {twice[0]} comes twice. Nothing was recorded.")
    for event in given:
        study.history.check(event)
    # Given again after an interruption, the same command records what is missing.
    new = [event for event in given if not _is_known(event, study)]
    _record(verb, study, new, [event.id for event in new])
    if len(new) < len(given):
        say(f"{several(len(given) - len(new), 'value')} known already")
    out = [event.id for event in given if study.history.trial(event.id).excluded]
    if out:
        listed = ",".join(map(str, out))
        say(f"still excluded: trial {listed}; `covey include {listed} --reason ...` counts it")


# Wells of plates.

PlateName = Annotated[str, typer.Argument(metavar="PLATE", help="The name of a plate: p1.")]
Wells = Annotated[list[str], typer.Argument(metavar="WELL ...", help="Wells: C4, or C4,C5.")]


def mark_wells(
    plate: PlateName,
    wells: Wells,
    reason: Reason,
    config: Config = FILE,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Leave wells out, measured or not; the journal keeps their readings.

    The value of a trial is then that of its other wells; if all are marked, it is lost.
    `covey plate unmark` takes it back.

    \b
    covey plate mark p1 A1 --reason bubble --dry-run
    covey plate mark p1 A1 --reason bubble
    """
    from covey.plates.asking import marking

    verb = _Verb("plate.mark", "marked", as_json, dry_run)
    study = _opened(verb, config)
    _revise(verb, study, marking(study, plate, _split(wells), reason))


def unmark_wells(
    plate: PlateName,
    wells: Wells,
    reason: Reason,
    config: Config = FILE,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Let marked wells count again, as if they had never been marked.

    A well that was never measured is waiting for its reading again.

    \b
    covey plate unmark p1 A1 --reason "no bubble after all" --dry-run
    covey plate unmark p1 A1 --reason "no bubble after all"
    """
    from covey.plates.asking import marking

    verb = _Verb("plate.unmark", "marked no longer", as_json, dry_run)
    study = _opened(verb, config)
    _revise(verb, study, marking(study, plate, _split(wells), reason, back=True))


def amend_wells(
    plate: PlateName,
    values: Annotated[list[str], typer.Argument(metavar="WELL=VALUE ...", help="Right readings.")],
    reason: Reason,
    config: Config = FILE,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Correct readings of wells; the journal keeps both, and the values of trials follow.

    An outcome that has a name is given as WELL:NAME=VALUE.

    \b
    covey plate amend p1 A1=0.93 --reason "typing error" --dry-run
    covey plate amend p1 A1=0.93 --reason "typing error"
    """
    from covey.plates.asking import amendment

    verb = _Verb("plate.amend", "amended", as_json, dry_run)
    study = _opened(verb, config)
    right: dict[str, Any] = {}
    for word in values:
        well, name, value = _reading(word)
        if name is None and len(study.outcomes.names) > 1:
            raise Stop(
                ExitCode.INVALID,
                f"{word}: this study has the outcomes {', '.join(study.outcomes.names)}; say "
                f"which, such as {well}:{study.outcomes.names[0]}={value:g}. Nothing was recorded.",
            )
        known = right.get(well, {})
        if not isinstance(known, dict) or (name is None and known) or name in known:
            raise Stop(ExitCode.INVALID, f"well {well} comes twice. Nothing was recorded.")
        right[well] = value if name is None else {**known, name: value}
    _revise(verb, study, amendment(study, plate, right, reason))


def _reading(word: str) -> tuple[str, str | None, float]:
    """Well, outcome (if it has a name) and value of a word such as C4=0.93 or C4:yield=61."""
    where, equals, text = word.partition("=")
    well, colon, name = where.partition(":")
    if not (equals and well.strip()) or (colon and not name):
        raise Stop(ExitCode.USAGE, f"amend takes WELL=VALUE for each well, got {word!r}.")
    hint = "; use `covey plate mark` for a reading that is worth nothing"
    value = SheetRow({"value": text}, word).number("value", hint)
    return well.strip(), name or None, value


def _split(words: Sequence[str]) -> list[str]:
    return [part for word in words for part in re.split(r"[,\s]+", word) if part]


def _revise(verb: _Verb, study: Study, event: Revised) -> None:
    """Correct wells of a plate, and say what became of their trials."""
    before = study.history.trials
    study.history.check(event)
    now = study.history.then(event) if verb.dry_run else _noted(study, event)
    ids, wells, plate = now.plates.trials_in(event.plate, event.wells), event.wells, event.plate
    if verb.as_json:
        trials = [{"id": i, "status": now[i].status, "value": now[i].value} for i in ids]
        fields = {"plate": plate, "wells": list(wells), "trials": trials, "dry_run": verb.dry_run}
        put_json(f"covey.{verb.name}/1", fields)
    else:
        be = "would be" if verb.dry_run else "is" if len(wells) == 1 else "are"
        put(f"plate {plate}: {several(len(wells), 'well')} {be} {verb.done}")
    for i in ids:
        say(f"trial {i}: {_result(before[i])} -> {_result(now[i])}")
    end(study)


def _noted(study: Study, event: Event) -> History:
    study.note(event)
    return study.history


def _result(trial: Trial) -> str:
    """What became of a trial, in words."""
    if trial.status != "told":
        return trial.status
    named = len(trial.values) > 1
    told = ", ".join(f"{name} {v:.6g}" if named else f"{v:.6g}" for name, v in trial.values.items())
    return told if trial.sem is None else f"{told} ± {trial.sem:.2g}"


def ids_in_words(words: Sequence[str], count: int) -> tuple[int, ...]:
    """The ids that a command line names, in its order and each once; there are ``count`` trials.

    >>> ids_in_words(["3,5", "8-10"], 24)
    (3, 5, 8, 9, 10)
    """
    parts = [part for word in words for part in re.split(r"[,\s]+", word) if part]
    if not parts:
        raise Stop(ExitCode.USAGE, "name the trials by ids and ranges, such as 3,5 or 24-31.")
    found: dict[int, None] = {}
    for part in parts:
        match = _PART.fullmatch(part)
        if match is None:
            raise Stop(
                ExitCode.USAGE,
                f"ids are whole numbers and ranges of them, such as 3,5 or 24-31; got {part!r}.",
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise Stop(ExitCode.USAGE, f"the range {part} runs backwards; write {last}-{first}.")
        if last >= count:  # before a huge range is listed
            known = f"ids go from 0 to {count - 1}" if count else "nothing was asked for yet"
            raise Stop(
                ExitCode.INVALID, f"there is no trial {last}; {known}. Nothing was recorded."
            )
        found |= dict.fromkeys(range(first, last + 1))
    return tuple(found)


def _opened(verb: _Verb, config: Config) -> Study:
    settings = read_settings(config)
    if verb.dry_run or not settings.journal.exists():
        return look_at(settings, own=True)  # which says that there is none
    return settings.change()


def _change(
    verb: _Verb, config: Config, words: Sequence[str], make: Callable[[tuple[int, ...]], Event]
) -> None:
    """Record one event about these trials, if all of them may have it."""
    study = _opened(verb, config)
    ids = ids_in_words(words, len(study.history))
    event = make(ids)
    study.history.check(event)
    _record(verb, study, [event], ids)


def _record(verb: _Verb, study: Study, events: Sequence[Event], ids: Sequence[int]) -> None:
    """Record events that were checked, and say what changed."""
    if not verb.dry_run:
        for event in events:
            study.note(event)
    history, best = study.history, study.best if study.outcomes.only else None
    if verb.as_json:
        fields = {"ids": list(ids), "dry_run": verb.dry_run, "pending": len(history.pending)}
        put_json(
            f"covey.{verb.name}/1",
            {**fields, "best": None if best is None or verb.dry_run else best.id},
        )
    else:
        be = "is" if len(ids) == 1 else "are"
        put(f"{several(len(ids), 'trial')} {'would be' if verb.dry_run else be} {verb.done}")
    if not verb.dry_run and best is not None and best.value is not None:
        say(f"best so far: {best.value:.6g} (trial {best.id})")
    elif not verb.dry_run and history.told and all(trial.excluded for trial in history.told):
        say("every result is excluded: the next batch is chosen as if nothing was told.")
    end(study)


def _amended(word: str, reason: str, sem: float | None) -> Amended:
    from covey.history import Amended, Point

    pair = _PAIR.fullmatch(word)
    if pair is None:
        raise Stop(ExitCode.USAGE, f"amend takes ID=VALUE for each trial, got {word!r}.")
    row = SheetRow({"id": pair[1], "value": pair[3]}, word)
    hint = "; use `covey exclude` for a result that is worth nothing"
    value = row.number("value", hint)
    return Amended(int(pair[1]), value if pair[2] is None else Point({pair[2]: value}), reason, sem)


def _is_known(event: Amended, study: Study) -> bool:
    trial = study.history.trial(event.id)
    if isinstance(event.value, Mapping):
        return all(trial.values.get(name) == value for name, value in event.value.items())
    return trial.value == event.value and event.sem in (None, trial.sem)
