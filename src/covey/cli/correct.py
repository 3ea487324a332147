"""`covey exclude`, `include`, `amend`, `fail`, `cancel`, `retry` and `note`: what became of trials.

And `covey plate mark`, `unmark` and `amend`: the same of single wells.

Each is a function that makes events of what was typed; `correction` makes a command of it, which
checks all before it records any, and says what changes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

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

    Command: TypeAlias = Callable[..., None]
    Events: TypeAlias = Sequence[Event]

_PART = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)
_PAIR = re.compile(r"(\d{1,18})(?::(.+?))?=(.+)", re.ASCII | re.DOTALL)

Ids = Annotated[list[str], typer.Argument(metavar="IDS", help="Ids and ranges: 3,5 or 24-31.")]
OneWord = Annotated[str, typer.Argument(metavar="IDS", help="Ids and ranges: 3,5 or 24-31.")]
Text = Annotated[str, typer.Argument(help="A remark.")]
Reason = Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="Why, in a few words.")]
MaybeReason = Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="Why, if known.")]
Told = Annotated[
    bool, typer.Option("--told", help="Also trials that have a value, which is worth nothing.")
]
Values = Annotated[list[str], typer.Argument(metavar="ID=VALUE ...", help="Right values.")]
Sem = Annotated[float | None, typer.Option(min=0.0, help="Their standard error.")]
PlateName = Annotated[str, typer.Argument(metavar="PLATE", help="The name of a plate: p1.")]
Wells = Annotated[list[str], typer.Argument(metavar="WELL ...", help="Wells: C4, or C4,C5.")]
Readings = Annotated[list[str], typer.Argument(metavar="WELL=VALUE ...", help="Right readings.")]


@dataclass(frozen=True)
class _Verb:
    """How a command is called, what it has done to trials or wells, and how it is used."""

    name: str
    done: str  # the participle
    as_json: bool
    dry_run: bool


def correction(name: str, done: str) -> Callable[[Callable[..., Events]], Command]:
    """A command of a function from a study and the words of its command line to events.

    It has the options of the function and those that all corrections share; ``done`` is the
    participle that says what the trials, or wells, are afterwards.
    """

    def command_of(make: Callable[..., Events]) -> Command:
        def command(
            *, config: Config = FILE, as_json: Json = False, dry_run: DryRun = False, **words: Any
        ) -> None:
            from covey.history import Revised

            study = _opened(config, dry_run)
            events = make(study, **words)
            for event in events:
                study.history.check(event)
            before = study.history
            # Given again after an interruption, the same command records what is missing.
            new = [event for event in events if not _is_known(event, before)]
            if not dry_run:
                for event in new:
                    study.note(event)
            verb = _Verb(name, done, as_json, dry_run)
            if isinstance(events[0], Revised):
                _say_wells(verb, events[0], before, study)
            else:
                _say_trials(verb, new, study)
                _say_amended(events, new, study)
            end(study)

        # What typer reads. The study is no option, and is loaded when it is first used.
        later = {"Study": Any, "Events": Any}
        types = get_type_hints(make, localns=later, include_extras=True)
        types |= get_type_hints(command, include_extras=True)
        _, *own = inspect.signature(make).parameters.values()
        *shared, _ = inspect.signature(command).parameters.values()
        takes = [
            one.replace(kind=one.KEYWORD_ONLY, annotation=types[one.name]) for one in own + shared
        ]
        command.__name__, command.__doc__ = make.__name__, make.__doc__
        command.__signature__ = inspect.Signature(takes)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in takes}
        return command

    return command_of


# The corrections of trials.


@correction("exclude", "excluded")
def exclude(study: Study, ids: Ids, reason: Reason) -> Events:
    """Leave results out of the model and of the best; the journal keeps them.

    They are shown as excluded, and their points are not proposed again. `covey include` takes it
    back.

    \b
    covey exclude 0,1 --reason "wrong vial" --dry-run
    covey exclude 0-1 --reason "wrong vial"
    """
    from covey.history import Excluded

    return [Excluded(ids_in_words(ids, len(study.history)), reason)]


@correction("include", "included")
def include(study: Study, ids: Ids, reason: Reason) -> Events:
    """Let excluded results count again, as if they had never been excluded.

    \b
    covey include 0 --reason "it was the right vial" --dry-run
    covey include 0 --reason "it was the right vial"
    """
    from covey.history import Included

    return [Included(ids_in_words(ids, len(study.history)), reason)]


@correction("fail", "failed")
def fail(study: Study, ids: Ids, reason: MaybeReason = "", told: Told = False) -> Events:
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

    return [Failed(ids_in_words(ids, len(study.history)), reason, told)]


@correction("cancel", "cancelled")
def cancel(study: Study, ids: Ids, reason: MaybeReason = "") -> Events:
    """Withdraw pending trials that will not be run: their points are free again.

    \b
    covey cancel 2 --dry-run
    covey cancel 2 --reason "no time left"
    """
    from covey.history import Cancelled

    return [Cancelled(ids_in_words(ids, len(study.history)), reason)]


@correction("retry", "pending again")
def retry(study: Study, ids: Ids) -> Events:
    """Make failed trials pending again: `covey run` evaluates them, `covey tell` takes results.

    For failures that were no fault of their points, such as a typo in the program.

    \b
    covey retry 0-1,2 --dry-run
    covey retry 0-2
    """
    from covey.history import Retried

    return [Retried(ids_in_words(ids, len(study.history)))]


@correction("note", "noted")
def note(study: Study, ids: OneWord, text: Text) -> Events:
    """Write a remark about trials into the journal; `covey logs ID` and `export` show it.

    \b
    covey note 0,2 "cloudy after an hour"
    """
    from covey.history import Noted

    return [Noted(ids_in_words([ids], len(study.history)), text)]


@correction("amend", "amended")
def amend(study: Study, values: Values, reason: Reason, sem: Sem = None) -> Events:
    """Correct values that were told; the journal keeps both.

    Without --sem a value keeps the standard error that it had. An outcome that has a name is given
    as ID:NAME=VALUE.

    \b
    covey amend 0=73.0 --reason "typing error" --dry-run
    covey amend 0=73.0 1=0.8 --reason "typing error"
    """
    events = [_amended(word, reason, sem) for word in values]
    ids = [event.id for event in events]
    if twice := [id for id in ids if ids.count(id) > 1]:
        raise Stop(ExitCode.INVALID, f"trial {twice[0]} comes twice. Nothing was recorded.")
    return events


# The corrections of wells.


@correction("plate.mark", "marked")
def mark_wells(study: Study, plate: PlateName, wells: Wells, reason: Reason) -> Events:
    """Leave wells out, measured or not; the journal keeps their readings.

    The value of a trial is then that of its other wells; if all are marked, it is lost.
    `covey plate unmark` takes it back.

    \b
    covey plate mark p1 A1 --reason bubble --dry-run
    covey plate mark p1 A1 --reason bubble
    """
    from covey.plates.asking import marking

    return [marking(study, plate, _parts(wells), reason)]


@correction("plate.unmark", "marked no longer")
def unmark_wells(study: Study, plate: PlateName, wells: Wells, reason: Reason) -> Events:
    """Let marked wells count again, as if they had never been marked.

    A well that was never measured is waiting for its reading again.

    \b
    covey plate unmark p1 A1 --reason "no bubble after all" --dry-run
    covey plate unmark p1 A1 --reason "no bubble after all"
    """
    from covey.plates.asking import marking

    return [marking(study, plate, _parts(wells), reason, back=True)]


@correction("plate.amend", "amended")
def amend_wells(study: Study, plate: PlateName, values: Readings, reason: Reason) -> Events:
    """Correct readings of wells; the journal keeps both, and the values of trials follow.

    An outcome that has a name is given as WELL:NAME=VALUE.

    \b
    covey plate amend p1 A1=0.93 --reason "typing error" --dry-run
    covey plate amend p1 A1=0.93 --reason "typing error"
    """
    from covey.plates.asking import amendment

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
    return [amendment(study, plate, right, reason)]


# What was typed.


def ids_in_words(words: Sequence[str], count: int) -> tuple[int, ...]:
    """The ids that a command line names, in its order and each once; there are ``count`` trials.

    >>> ids_in_words(["3,5", "8-10"], 24)
    (3, 5, 8, 9, 10)
    """
    parts = _parts(words)
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


def _parts(words: Sequence[str]) -> list[str]:
    return [part for word in words for part in re.split(r"[,\s]+", word) if part]


def _amended(word: str, reason: str, sem: float | None) -> Amended:
    from covey.history import PLAIN, Amended, Point

    pair = _PAIR.fullmatch(word)
    if pair is None:
        raise Stop(ExitCode.USAGE, f"amend takes ID=VALUE for each trial, got {word!r}.")
    row = SheetRow({"id": pair[1], "value": pair[3]}, word)
    hint = "; use `covey exclude` for a result that is worth nothing"
    value = row.number("value", hint)
    return Amended(int(pair[1]), Point({pair[2] or PLAIN: value}), reason, sem)


def _reading(word: str) -> tuple[str, str | None, float]:
    """Well, outcome (if it has a name) and value of a word such as C4=0.93 or C4:yield=61."""
    where, equals, text = word.partition("=")
    well, colon, name = where.partition(":")
    if not (equals and well.strip()) or (colon and not name):
        raise Stop(ExitCode.USAGE, f"amend takes WELL=VALUE for each well, got {word!r}.")
    hint = "; use `covey plate mark` for a reading that is worth nothing"
    value = SheetRow({"value": text}, word).number("value", hint)
    return well.strip(), name or None, value


def _opened(config: Config, dry_run: bool) -> Study:
    settings = read_settings(config)
    if dry_run or not settings.journal.exists():
        return look_at(settings, own=True)  # which says that there is none
    return settings.change()


def _is_known(event: Event, history: History) -> bool:
    """Whether an amendment has been made already."""
    from covey.history import Amended

    if not isinstance(event, Amended):
        return False
    trial = history.trial(event.id)
    same = trial.called(event.value).items() <= trial.values.items()
    return same and event.sem in (None, trial.sem)


# What changed.


def _say_trials(verb: _Verb, events: Events, study: Study) -> None:
    """Say which trials have changed, and which is the best now."""
    from covey.history.events import ids_in

    ids = [id for event in events for id in ids_in(event)]
    history, best = study.history, study.best if study.outcomes.only else None
    if verb.as_json:
        fields = {"ids": ids, "dry_run": verb.dry_run, "pending": len(history.pending)}
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


def _say_amended(events: Events, new: Events, study: Study) -> None:
    """Say which amendments were made before, and which values do not count all the same."""
    from covey.history import Amended

    if len(new) < len(events):
        say(f"{several(len(events) - len(new), 'value')} known already")
    amended = [event.id for event in events if isinstance(event, Amended)]
    out = ",".join(str(id) for id in amended if study.history.trial(id).excluded)
    if out:
        say(f"still excluded: trial {out}; `covey include {out} --reason ...` counts it")


def _say_wells(verb: _Verb, event: Revised, before: History, study: Study) -> None:
    """Say which wells have changed, and what became of their trials."""
    now = before.then(event) if verb.dry_run else study.history
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


def _result(trial: Trial) -> str:
    """What became of a trial, in words."""
    if trial.status != "told":
        return trial.status
    named = len(trial.values) > 1
    told = ", ".join(f"{name} {v:.6g}" if named else f"{v:.6g}" for name, v in trial.values.items())
    return told if trial.sem is None else f"{told} ± {trial.sem:.2g}"
