"""What each row of a sheet is: a result, a new measurement, a repeat, a control, or a mistake.

`plan` is a function of tables, a study and how rows are to be taken; nothing is recorded here
(`covey.sheets.recording` does that), so the same plan serves a preview. Its rules:

- A row with the id of a trial is its result; a row without one is a measurement of its point. It
  belongs to a pending trial of that very point, if there is one, and else is added.
- Measurements that agree are the same one if they come from two files, or from a file and the
  journal: telling a sheet twice, or a longer one later, adds what is new. Within a file they are
  repeats, and each counts: the model pools them.
- A row whose point is not the one asked for is what was run, if its reader says so.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from covey.errors import HistoryError, SpaceError, several
from covey.sheets.columns import Said, SheetColumns, is_control, said_in
from covey.sheets.deviations import differing, point_as_run, run_instead
from covey.sheets.points import point_from_text
from covey.tables import SheetRow, plain_number

if TYPE_CHECKING:
    from covey.history import Trial
    from covey.study import Study

Kind = Literal[
    "result",  # of a trial
    "failed",
    "added",  # a measurement of a point that was not asked for
    "repeat",  # a further measurement of a point
    "as run",  # instead of what was asked for
    "known",
    "sem",  # the standard error of a known value
    "control",
    "excluded",  # in the study that the sheet is an export of
    "open",  # its result is still to come
    "unknown",  # no trial, and no point
    "deviates",  # not the point asked for, and nobody said that it was run so
    "refused",
]
_LONGEST_ID = 18  # digits
_WHOLE = re.compile(r"\A([0-9]+)[.,]0+\Z")


@dataclass(frozen=True)
class Manner:
    """How rows are to be taken."""

    by_id: bool = True  # else ids mean nothing, and every row is a measurement of its point
    as_run: bool = False  # rows that differ from what was asked are what was run
    again: bool = False  # rows that are in the journal already are further measurements
    pending: bool = False  # rows without a result are points that are being evaluated


@dataclass
class Entry:
    """One row, and what it is."""

    row: SheetRow
    kind: Kind
    trial: int | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    says: str = ""  # why, in words

    def error(self) -> HistoryError:
        """The error for a row that cannot be taken."""
        return self.row.error(self.says)


@dataclass(eq=False)
class Measurement:
    """A result at a point: of a trial, or to be added; ``new`` is what the journal lacks of it."""

    point: Mapping[str, Any]
    trial: int | None
    values: dict[str, float]
    sem: float | None = None
    new: dict[str, float] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    new_sem: bool = False
    spoken: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def agrees(self, said: Said, file: str) -> bool:
        """Whether a row may speak of this: it has some of its values, and no other."""
        shared = [name for name in said.values if name in self.values]
        return (
            bool(shared)
            and all(self.values[name] == said.values[name] for name in shared)
            and (said.sem is None or self.sem is None or said.sem == self.sem)
            and not self.spoken[file] & set(said.values)
        )

    def contradicts(self, said: Said) -> bool:
        """Whether it has another value than a row says."""
        return any(self.values.get(name, value) != value for name, value in said.values.items())

    def take(self, said: Said, file: str) -> bool:
        """Join what a row says; whether there was anything new in it."""
        new = {name: value for name, value in said.values.items() if name not in self.values}
        self.values |= new
        self.new |= new
        if said.sem is not None and self.sem is None:
            self.sem = said.sem
            self.new_sem = not new
        if new:
            self.record |= said.record
        self.spoken[file] |= set(said.values)
        return bool(new)


@dataclass
class Intake:
    """What is to be recorded, and what each row is."""

    entries: list[Entry] = field(default_factory=list)
    told: dict[int, Measurement] = field(default_factory=dict)  # of trials, new in part at least
    added: list[Measurement] = field(default_factory=list)
    failed: dict[int, None] = field(default_factory=dict)  # trials that failed, in order
    failed_points: list[Mapping[str, Any]] = field(default_factory=list)  # of no trial yet
    pending: list[Mapping[str, Any]] = field(default_factory=list)  # of no trial yet
    otherwise: dict[int, list[Measurement]] = field(default_factory=dict)  # trials run otherwise

    def count(self, *kinds: Kind) -> int:
        """How many rows are of these kinds."""
        return sum(entry.kind in kinds for entry in self.entries)

    def of(self, *kinds: Kind) -> list[Entry]:
        """The rows of these kinds."""
        return [entry for entry in self.entries if entry.kind in kinds]

    def require_all(self, *, skip_unknown: bool) -> None:
        """Refuse everything if a row cannot be taken.

        Raises:
            HistoryError: A row was refused; or it is unknown, and such rows are not skipped.
        """
        wrong = self.of("refused", "deviates", *(() if skip_unknown else ("unknown",)))
        if not wrong:
            return
        first = next((entry for entry in wrong if entry.kind == "refused"), wrong[0])
        wrong.remove(first)
        skip = " --skip-unknown (skip_unknown=True) leaves such rows out."
        also = f" {several(len(wrong), 'other row')} cannot be taken either: {_places(wrong)}."
        raise HistoryError(
            f"{first.error()}{skip if first.kind == 'unknown' else ''}{also if wrong else ''}"
        )

    def left_out(self) -> Iterator[str]:
        """Say which rows are not recorded, by their places."""
        for kind, words in _LEFT_OUT.items():
            if entries := self.of(kind):
                yield f"{several(len(entries), 'row')} {words}: {_places(entries)}"


_SHOWN = 5  # rows that a message names
_LEFT_OUT: Mapping[Kind, str] = {
    "control": "left out, as controls",
    "excluded": "left out, as excluded where they come from",
    "unknown": "left out, of no trial and no valid point",
}


def _places(entries: Sequence[Entry]) -> str:
    more = ", ..." if len(entries) > _SHOWN else ""
    return ", ".join(entry.row.where for entry in entries[:_SHOWN]) + more


def plan(rows: Sequence[tuple[SheetColumns, SheetRow]], study: Study, manner: Manner) -> Intake:
    """What each row is, and what is to be recorded."""
    planner = _Planner(study, manner)
    planner.note_agreeing(rows)
    # A row with an id is about its trial; what has none comes after, and gets what is left.
    order = sorted(range(len(rows)), key=lambda i: not planner.id_in(*rows[i]))
    for i in order:
        try:
            planner.take(*rows[i])
        except _Refusal as refusal:
            entry = Entry(rows[i][1], refusal.kind, refusal.trial, {}, str(refusal))
            planner.plan.entries.append(entry)
    by_row = dict(zip(order, planner.plan.entries, strict=True))
    planner.plan.entries = [by_row[i] for i in range(len(rows))]
    return planner.plan


class _Refusal(Exception):  # noqa: N818 - it does not leave this module
    def __init__(self, kind: Kind, why: str, trial: int | None = None) -> None:
        super().__init__(why)
        self.kind, self.trial = kind, trial


class _Planner:
    """The plan as far as rows were taken, and what is known of each trial and point by then."""

    def __init__(self, study: Study, manner: Manner) -> None:
        self.study, self.manner, self.plan = study, manner, Intake()
        self.history, self.space = study.history, study.space
        self.of_trial: dict[int, Measurement] = {}
        self.at: dict[str, list[Measurement]] = defaultdict(list)
        self.open: dict[str, list[int]] = defaultdict(list)  # pending trials by their points
        self.lost: dict[str, list[int]] = defaultdict(list)  # failed trials
        self.agreeing: set[int] = set()  # trials whose value, as told, some row repeats
        self.asked_at: dict[str, int] = {}  # the trial that was asked for at a point
        self.instead = run_instead(self.history)  # of trials that were run otherwise
        self.spoken_failures: set[tuple[str, int]] = set()
        for trial in self.history.trials:
            key = self._key(trial.point)
            measured = Measurement(trial.point, trial.id, dict(trial.values), trial.sem)
            self.of_trial[trial.id] = measured
            if trial.origin == "asked":
                self.asked_at[key] = trial.id
            if trial.status == "told":
                self.at[key].append(measured)
            elif trial.status in ("pending", "failed"):
                (self.open if trial.status == "pending" else self.lost)[key].append(trial.id)

    def _key(self, point: Mapping[str, Any]) -> str:
        try:
            said = self.space.to_json(point)
        except SpaceError:  # of a trial that was there before its space was extended
            said = dict(point)
        return json.dumps(said, sort_keys=True, default=str)

    def id_in(self, columns: SheetColumns, row: SheetRow) -> str:
        """The id that a row has, if ids count; else empty.

        A program that has blanks among whole numbers may write 3.0 for 3.
        """
        text = row.text(columns.id) if self.manner.by_id and columns.id else ""
        return _WHOLE.sub(r"\1", text)

    def note_agreeing(self, rows: Iterable[tuple[SheetColumns, SheetRow]]) -> None:
        """Find the trials of which one row says what was told: other rows of them are repeats."""
        for columns, row in rows:
            id = self.id_in(columns, row)
            if not _is_id(id) or int(id) not in self.of_trial:
                continue
            try:
                said = said_in(row, columns)
            except HistoryError:
                continue
            for known in (self.of_trial[int(id)], *self._run_as(row, int(id))):
                if said is not None and known.values and known.agrees(said, row.file):
                    self.agreeing.add(known.trial or 0)

    def _run_as(self, row: SheetRow, id: int) -> list[Measurement]:
        """What was recorded as run instead of a trial, at the point that a row has."""
        found = [self.of_trial[run] for run in self.instead.get(id, ())]
        try:
            point = point_as_run(row, self.history.trial(id), self.space) if found else {}
        except SpaceError:
            return []
        return [one for one in found if self._key(one.point) == self._key(point)]

    def take(self, columns: SheetColumns, row: SheetRow) -> None:
        """Add a row to the plan."""
        id = self.id_in(columns, row)
        if is_control(id) or any(is_control(row.text(name)) for name in columns.roles):
            self._enter(row, "control")
            return
        if columns.excluded and row.text(columns.excluded):
            self._enter(row, "excluded", says=row.text(columns.excluded))
            return
        try:
            said = said_in(row, columns, status=not id)
        except HistoryError as stop:
            why = str(stop).removeprefix(f"{row.where}: ")
            raise _Refusal("refused", why.removesuffix(" Nothing was recorded.")) from stop
        if said is None:
            self._open(row, int(id) if _is_id(id) else None)
        elif id:
            self._by_id(row, said, id)
        else:
            self._by_point(row, said)

    def _enter(
        self,
        row: SheetRow,
        kind: Kind,
        trial: int | None = None,
        said: Said | None = None,
        says: str = "",
    ) -> None:
        values = {} if said is None else said.values
        self.plan.entries.append(Entry(row, kind, trial, values, says))

    # Rows with an id

    def _by_id(self, row: SheetRow, said: Said, id: str) -> None:
        trial = self._trial(id)
        deviates = bool(differing(row, trial, self.space))
        as_asked = self.plan.told.keys() | self.plan.failed.keys()
        if trial.id in (as_asked if deviates else self.plan.otherwise):
            why = "one row says it was run as asked, and another that it was not"
            raise _Refusal("refused", f"of trial {trial.id} {why}; leave the id of one empty.")
        if deviates:
            self._otherwise(row, said, trial)
        elif said.failed:
            self._failed(row, trial)
        else:
            self._result(row, said, trial)

    def _trial(self, id: str) -> Trial:
        way = "`covey add` takes rows as measurements, whatever their ids (by_id=False)."
        if not _is_id(id):
            raise _Refusal(
                "unknown",
                f"an id is a whole number, got {id[:40]!r}. Leave out rows of no trial; {way}",
            )
        count = len(self.history)
        if int(id) >= count:
            known = f"ids go to {count - 1}" if count else "nothing was asked for yet"
            raise _Refusal("unknown", f"there is no trial {id}; {known}. {way}")
        return self.history.trial(int(id))

    def _result(self, row: SheetRow, said: Said, trial: Trial) -> None:
        known = self.of_trial[trial.id]
        against = [name for name, v in said.values.items() if trial.values.get(name, v) != v]
        if trial.id in self.plan.failed:
            raise _Refusal("refused", f"trial {trial.id} failed in another row.", trial.id)
        if not known.contradicts(said) and not known.spoken[row.file] & set(said.values):
            if None not in (said.sem, known.sem) and said.sem != known.sem:
                raise _Refusal("refused", _other_sem(trial), trial.id)
            self._join(row, said, known)
        elif against and trial.id not in self.agreeing:
            raise _Refusal("refused", self._told_otherwise(trial, against[0]), trial.id)
        else:
            self._measured(row, said, trial.point, "repeat", trial.id)

    def _told_otherwise(self, trial: Trial, name: str) -> str:
        told, which = f"{trial.values[name]!r}", f"{trial.id}"
        if not self.study.outcomes.plain:
            told, which = f"{name} {told}", f"{which}:{name}"
        return (
            f"trial {trial.id} was told {told} already; correct a value with `covey amend "
            f"{which}=VALUE --reason WHY` (study.amend). A further measurement is a row without an "
            "id."
        )

    def _join(self, row: SheetRow, said: Said, known: Measurement) -> None:
        """Let a row speak of a measurement."""
        trial = known.trial
        if not any(name not in known.values for name in said.values) and trial is not None:
            self._require_records(said, trial)
        later_sem = said.sem is not None and known.sem is None and bool(known.values)
        if known.take(said, row.file):
            if trial is not None:
                self.plan.told[trial] = known
                here = self.at[self._key(known.point)]
                if not any(one is known for one in here):
                    here.append(known)
            self._enter(row, "result", trial, said)
        elif later_sem:
            if trial is not None:
                self.plan.told[trial] = known
            self._enter(row, "sem", trial, said, "its standard error is new")
        else:
            where = "" if trial is not None else "in another file as well"
            self._enter(row, "known", trial, said, where)

    def _require_records(self, said: Said, trial: int) -> None:
        """Refuse a record that differs from what was recorded: it comes with a result."""
        if why := _other_record(said.record, trial, self.study):
            raise _Refusal("refused", why, trial)

    def _failed(self, row: SheetRow, trial: Trial) -> None:
        if trial.status == "told" or trial.id in self.plan.told:
            known = self.of_trial[trial.id].values
            shown = known.get("value") if set(known) == {"value"} else dict(known)
            raise _Refusal("refused", f"trial {trial.id} was told {shown!r} already.", trial.id)
        if trial.status in ("cancelled", "lost"):
            why = f"trial {trial.id} was {trial.status}, so it cannot fail any more."
            raise _Refusal("refused", why, trial.id)
        if trial.status == "failed" or trial.id in self.plan.failed:
            self._enter(row, "known", trial.id, says="failed")
        else:
            self.plan.failed[trial.id] = None
            self._enter(row, "failed", trial.id)

    def _otherwise(self, row: SheetRow, said: Said, trial: Trial) -> None:
        """A row whose point is not that of its trial."""
        name, cell = differing(row, trial, self.space)[0]
        asked = trial.point[name]
        differs = f"the row says {name}={cell}, but trial {trial.id} has {name}={asked}."
        try:
            point = point_as_run(row, trial, self.space)
        except SpaceError as error:
            raise _Refusal("unknown", f"{differs} That cannot be recorded: {error}") from error
        key = self._key(point)
        if self.asked_at.get(key, trial.id) != trial.id:
            raise _Refusal(
                "refused",
                f"{differs} Was the sheet sorted by some columns only? It is the point of another "
                "trial: give the row that id, or none.",
                trial.id,
            )
        if trial.status != "pending" and self._agreeing(said, row.file, key) is not None:
            self._measured(row, said, point, "known", trial.id)  # recorded as run before
            return
        if trial.status == "told" and not trial.excluded:
            raise _Refusal(
                "refused",
                f"{differs} It was told already: `covey exclude {trial.id} --reason WHY` "
                "(study.exclude) comes first.",
                trial.id,
            )
        self._require_same_run(trial, said, key)
        if not self.manner.as_run:
            raise _Refusal(
                "deviates",
                f"{differs} If that is what was run, record it with --as-run (as_run=True).",
                trial.id,
            )
        instead = self.plan.otherwise.setdefault(trial.id, []) if trial.status == "pending" else []
        if said.failed:
            self._failed_point(row, point, "as run", trial.id)
        else:
            instead.append(self._measured(row, said, point, "as run", trial.id))

    def _require_same_run(self, trial: Trial, said: Said, key: str) -> None:
        """Refuse another value, or another point, for what was recorded as run before.

        Where each of those measurements is in the sheet still, a further row is a repeat.
        """
        for id in () if self.manner.again else self.instead.get(trial.id, ()):
            run = self.history.trial(id)
            if id in self.agreeing or run.excluded:
                continue
            other = [n for n, v in said.values.items() if run.values.get(n, v) != v]
            if self._key(run.point) == key and other:
                raise _Refusal("refused", self._told_otherwise(run, other[0]), trial.id)
            raise _Refusal(
                "refused",
                f"what was run instead of trial {trial.id} is recorded as trial {id}, otherwise "
                f"than here. If that is wrong, `covey exclude {id} --reason WHY` (study.exclude) "
                "comes first; a further measurement is a row without an id.",
                trial.id,
            )

    def _open(self, row: SheetRow, trial: int | None) -> None:
        """A row whose result is still to come."""
        if self.manner.pending and trial not in self.of_trial:
            point = self._point(row)
            if not self.open[self._key(point)]:
                self.plan.pending.append(point)
        self._enter(row, "open", trial)

    # Rows without an id

    def _point(self, row: SheetRow) -> Mapping[str, Any]:
        cells = dict(row.cells)
        cells |= {n: cells[f"point.{n}"] for n in self.space.names if f"point.{n}" in cells}
        if not any(cells.get(name, "").strip() for name in self.space.names):
            raise _Refusal(
                "unknown",
                "no parameter has a value. If it is a control, say so in a column id, role, type "
                "or control.",
            )
        try:
            return point_from_text(self.space, cells, row.dialect)
        except SpaceError as error:
            raise _Refusal("unknown", str(error)) from error

    def _by_point(self, row: SheetRow, said: Said) -> None:
        point = self._point(row)
        if said.failed:
            self._failed_point(row, point, "failed")
            return
        key = self._key(point)
        same = None if self.manner.again else self._agreeing(said, row.file, key)
        waiting = self._waiting(key)
        if same is None and waiting and self.manner.by_id:
            self._join(row, said, self.of_trial[waiting[0]])
        else:
            self._measured(row, said, point, "added")

    def _waiting(self, key: str) -> list[int]:
        """The pending trials at a point of which no row spoke yet."""
        spoken = self.plan.told.keys() | self.plan.failed.keys() | self.plan.otherwise.keys()
        return [id for id in self.open[key] if id not in spoken]

    def _agreeing(self, said: Said, file: str, key: str) -> Measurement | None:
        return next((one for one in self.at[key] if one.agrees(said, file)), None)

    def _measured(
        self,
        row: SheetRow,
        said: Said,
        point: Mapping[str, Any],
        kind: Kind,
        trial: int | None = None,
    ) -> Measurement:
        """A measurement at a point: one that is known, or a new one."""
        key = self._key(point)
        same = None if self.manner.again else self._agreeing(said, row.file, key)
        if same is not None:
            self._join(row, said, same)
            return same
        if kind == "added" and self.at[key]:
            kind = "repeat"
        made = Measurement(point, None, {})
        made.take(said, row.file)
        made.record = dict(said.record)
        self.at[key].append(made)
        self.plan.added.append(made)
        self._enter(row, kind, trial, said)
        return made

    def _failed_point(
        self, row: SheetRow, point: Mapping[str, Any], kind: Kind, trial: int | None = None
    ) -> None:
        """A failure at a point: of a trial that is pending or failed there, or a new one."""
        key = self._key(point)
        known = [id for id in self.lost[key] if (row.file, id) not in self.spoken_failures]
        if known and not self.manner.again:
            self.spoken_failures.add((row.file, known[0]))
            self._enter(row, "known", known[0], says="failed")
            return
        waiting = self._waiting(key)
        if waiting and self.manner.by_id:
            self.plan.failed[waiting[0]] = None
            self._enter(row, "failed", waiting[0])
            return
        self.plan.failed_points.append(point)
        self._enter(row, kind, trial, says="" if kind == "failed" else "failed")


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_ID


def _other_sem(trial: Trial) -> str:
    return (
        f"trial {trial.id} was told with the sem {trial.sem!r} already; write that, or leave the "
        "cell empty."
    )


def _other_record(record: Mapping[str, Any], id: int, study: Study) -> str:
    """Why a record of a trial cannot be told: it differs, and comes with a result; empty if not."""
    recorded = study.history.metrics(id)
    for name, text in record.items():
        if not _same_text(text, str(recorded.get(name, ""))):
            was = f"was recorded as {recorded[name]!r}" if name in recorded else "has no value"
            return (
                f"{name} of trial {id} {was}, and {name} is recorded together with a new result "
                f"only; `covey note {id} TEXT` (study.note) keeps what is to be said later."
            )
    return ""


def _same_text(one: str, other: str) -> bool:
    """Whether two cells say the same; a spreadsheet may have spelt a number otherwise."""
    try:
        return plain_number(one) == plain_number(other)
    except SpaceError:
        return one.strip() == other.strip()
