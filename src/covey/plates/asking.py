"""`OnPlates`: the part of a study that is about plates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from covey.errors import HistoryError, SpaceError
from covey.history import Measured, Moved, PlateRecord, Point, Revised, Trial
from covey.plates.choosing import PlateOrder
from covey.plates.mixed_up import require_own_place, turned_back
from covey.plates.reader import Readings, read_readings
from covey.plates.telling import marked_as_well, news, require_as_placed
from covey.plates.wells import Plate, plate_of
from covey.tables import span_of

if TYPE_CHECKING:
    from covey.history import Event, History
    from covey.learn import Recipe
    from covey.outcomes import Outcomes
    from covey.plates.layout import Layout
    from covey.plates.machines import PickList
    from covey.space import Pool, Space


class _Host(Protocol):
    """What the study has that these methods are part of."""

    @property
    def history(self) -> History: ...
    @property
    def space(self) -> Space | Pool: ...
    @property
    def outcomes(self) -> Outcomes: ...
    @property
    def recipe(self) -> Recipe: ...
    def _request(self, k: int, strategy: Any, fixed: Any = None, seconds: Any = None) -> Any: ...
    def _asked(self, request: Any, key: str | None) -> list[Trial]: ...
    def _commit(self, event: Any, key: str | None = None) -> list[Trial]: ...
    def _message_of(self, key: str) -> Any: ...
    def doubt(self) -> list[Trial]: ...
    def predict(self, points: Any) -> Any: ...
    def refresh(self) -> None: ...


class OnPlates:
    """Asks for whole plates and is told what a reader measured."""

    def ask_plates(
        self: _Host,
        count: int,
        layout: Layout,
        *,
        strategy: Any = None,
        fixed: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> list[Plate]:
        """The next plates: points that keep the layout, each in its wells, and the controls.

        Values that a plate, row or column shares are chosen too. All of it is one event: half a
        plate cannot exist.

        Args:
            count: how many plates.
            layout: what a plate has room for; see `covey.Layout`.
            strategy: another strategy, for these plates only.
            fixed: parameters held at these values, for these plates only.
            key: names this request: asked again with the same key, the same plates are returned.
        """
        order = PlateOrder(layout, count)
        _require_free_controls(layout.against(self.space), fixed or {})
        request = replace(self._request(1, strategy, fixed), plates=order)
        trials = self._asked(request, key)
        book = self.history.plates
        names = dict.fromkeys(plate for t in trials for plate, _ in book.wells_of(t.id))
        predicted = _predicted(self, trials)
        return [_plate(self, book.records[name], predicted) for name in names]

    def plate(self: _Host, name: str) -> Plate:
        """One plate as it stands, with what is predicted and measured."""
        record = _record(self, name)
        ids = {use.trial for use in record.uses.values() if use.trial is not None}
        return _plate(self, record, _predicted(self, [self.history.trial(i) for i in sorted(ids)]))

    @property
    def plates(self: _Host) -> list[Plate]:
        """All plates of the study, in order, without predictions."""
        return [_plate(self, record, {}) for record in self.history.plates.records.values()]

    def tell_plate(  # noqa: PLR0913 - each answers another question about the readings
        self: _Host,
        plate: str | Plate,
        readings: Any,
        *,
        marks: Mapping[str, str] | None = None,
        part: bool = False,
        day: str | None = None,
        turned: bool | None = None,
        key: str | None = None,
    ) -> None:
        """Record what a reader measured on a plate, in your own sign: all of it or none.

        A trial is told once all its wells are measured or marked: its value is the mean, its
        standard error that of the mean. The model learns from every well, and a shift of the
        plate with them. What is recorded already is passed over.

        Args:
            plate: its name, or the plate.
            readings: a file, as a long table or a matrix; a dict by well; an array of the
                shape of the plate; or what `covey.plates.reader.read_readings` made of one.
            marks: by well, what went wrong there; its value does not count.
            part: whether wells may be missing that come later.
            day: of the measurement, where the layout has such an effect.
            turned: whether the plate was turned by 180 degrees when it was read, so that each
                reading is of the opposite well (``marks`` name wells as laid out). None: refused
                if controls and copies fit much better on the plate turned, or on another that is
                still to be measured.
            key: names this message: sent again with the same key, it is taken once.
        """
        record = _record(self, plate)
        name = record.name
        if not isinstance(turned, bool | None) or not isinstance(part, bool):
            raise HistoryError(
                f"turned is True, False or None, and part True or False; got turned={turned!r}, "
                f"part={part!r}."
            )
        placed = _plate(self, record, {})
        grid = placed.grid
        found = read_readings(readings, grid, self.outcomes.names, name)
        if found.plate is not None and found.plate != name:
            raise HistoryError(f"the readings are of plate {found.plate}, not of {name}.")
        require_as_placed(found, placed, _spans(self.space))
        found = turned_back(found, grid) if turned else found
        found = marked_as_well(found, marks or {}, record)
        earlier = None if key is None else self._message_of(key)
        if earlier is not None and _repeats(earlier.event, found, record):
            _tell(self, found.of_wells(earlier.event.wells), record, day, key)
            return
        if turned is None:
            require_own_place(found, name, self.history.plates.records)
        _tell(self, news(found, record, part=part), record, day, key)

    def amend_wells(
        self: _Host,
        plate: str | Plate,
        values: Mapping[str, Any],
        reason: str,
        *,
        key: str | None = None,
    ) -> None:
        """Correct readings of wells, {"C4": 0.93}: the log keeps both, and the trials follow.

        Outcomes that have names are corrected by name, those that change. A trial that was amended
        by hand does not follow its wells, and says so.
        """
        self._commit(amendment(self, plate, values, reason), key)

    def mark_wells(
        self: _Host,
        plate: str | Plate,
        wells: str | Iterable[str],
        reason: str,
        *,
        key: str | None = None,
    ) -> None:
        """Leave wells out, measured or not: their readings stay in the log and do not count.

        The value of a trial is then that of its other wells; if all are marked, it is lost.
        """
        self._commit(marking(self, plate, wells, reason), key)

    def unmark_wells(
        self: _Host,
        plate: str | Plate,
        wells: str | Iterable[str],
        reason: str,
        *,
        key: str | None = None,
    ) -> None:
        """Let marked wells count again: batches are as if they had never been marked.

        A well that has no reading is waiting for one again.
        """
        self._commit(marking(self, plate, wells, reason, back=True), key)

    def tell_dispensed(self: _Host, picks: PickList, *, key: str | None = None) -> list[Trial]:
        """Record that wells hold what a machine dispenses, where it rounds volumes: those trials.

        Their points are then the rounded ones, for the model and everything else. The log keeps
        what was asked for, too.

        Raises:
            SpaceError: A rounded value is none that the space has; nothing was recorded.
        """
        points = {}
        for id, values in picks.as_dispensed.items():
            trial = self.history.trial(id)
            now = _as_dispensed(self.space, trial, values)
            if now != trial.point:
                points[id] = now
        if points:
            reason = f"as {picks.profile} dispenses it"
            self._commit(Moved(tuple(points), tuple(points.values()), reason), key)
        return [self.history.trial(id) for id in points]


def _as_dispensed(space: Space | Pool, trial: Trial, values: Mapping[str, float]) -> Point:
    try:
        return Point(space.check({**trial.point, **values}))
    except SpaceError as error:
        raise SpaceError(
            f"trial {trial.id} as dispensed is no point of the space: {error}. Let the parameter "
            "have values that the machine can do (a step of its volumes, a range that ends on "
            "one), or tell results as if nothing was rounded. Nothing was recorded."
        ) from error


def amendment(study: _Host, plate: str | Plate, values: Mapping[str, Any], reason: str) -> Revised:
    """The event that corrects readings of wells."""
    record = _record(study, plate)
    if not isinstance(values, Mapping):
        raise HistoryError(f"right readings are a dict by well, {{'A1': 0.93}}; got {values!r}.")
    given = [(_well(study, record, well), value) for well, value in values.items()]
    if len({well for well, _ in given}) < len(given):
        raise HistoryError(f"a well was given twice; give each once, got {', '.join(values)}.")
    right = {well: _right(study, well, value) for well, value in given}
    return Revised(record.name, reason, right, goal=study.outcomes.event_goal)


def marking(
    study: _Host, plate: str | Plate, wells: str | Iterable[str], reason: str, *, back: bool = False
) -> Revised:
    """The event that marks wells, or takes their marks back."""
    record = _record(study, plate)
    given = (wells,) if isinstance(wells, str) else wells
    if not isinstance(given, Iterable):
        raise HistoryError(f"wells are a name or a list of names, ['A1']; got {wells!r}.")
    names = tuple(_well(study, record, well) for well in given)
    made: dict[str, Any] = {
        "unmarked" if back else "marked": names,
        "goal": study.outcomes.event_goal,
    }
    return Revised(record.name, reason, **made)


def _well(study: _Host, record: PlateRecord, well: object) -> str:
    grid = _plate(study, record, {}).grid
    return grid.name(grid.index(well))


def _right(study: _Host, well: str, value: Any) -> Any:
    """The correction of a reading: a number, or those by name that change."""
    found, beside = study.outcomes.checked(value, f"well {well}", study.outcomes.names)
    if beside:
        raise HistoryError(f"well {well}: {', '.join(beside)} is no outcome; amend outcomes.")
    return found


def _require_free_controls(layout: Layout, fixed: Mapping[str, Any]) -> None:
    """Raise if a control has a value of its own of what wells share, and is not held there.

    One that leaves it out has that of its plate; of rows and columns it is not known in which it
    stands, or whether a sample shares them.
    """
    for name, control in layout.samples_of_controls.items():
        for shared, by in layout.shared.items() if control.at is not None else ():
            own, at = shared in (control.at or {}), (control.at or {}).get(shared)
            if (shared in fixed and (not own or fixed[shared] == at)) or (
                not own and by == "plate"
            ):
                continue
            is_at = f"is at {shared} {at!r}" if own else f"has a point without {shared}"
            held = f"--fix {shared}={at}; in Python fixed={{{shared!r}: {at!r}}}"
            instead = f"Leave {shared} out of its point, and it has the value of its plate"
            if by != "plate":
                instead = f"Leave out the point of the control, share {shared} no longer"
                held = held if own else f"--fix {shared}=VALUE; in Python fixed={{{shared!r}: ...}}"
            raise SpaceError(
                f"control {name!r} {is_at}, but wells share {shared} by {by}, and its value is "
                f"chosen. {instead}, or hold it ({held})."
            )


def _tell(
    study: _Host, found: Readings, record: PlateRecord, day: str | None, key: str | None
) -> None:
    wells = tuple(well for well in record.uses if well in found.values or well in found.marks)
    if not wells:
        return
    values = tuple(found.values.get(well) for well in wells)
    goal = study.outcomes.event_goal
    study._commit(Measured(record.name, wells, values, found.marks, goal, day), key)
    study.doubt()


def _repeats(earlier: Event, found: Readings, record: PlateRecord) -> bool:
    """Whether these readings may be those of an earlier message: nothing in them is news."""
    every = {*found.values, *found.marks} & {*record.uses}
    return (
        isinstance(earlier, Measured)
        and earlier.plate == record.name
        and {*earlier.wells} <= every <= {*record.done}
    )


def _spans(space: Space | Pool) -> dict[str, float]:
    """The lengths of ranges on which differences count; a pool has none."""
    return {name: span_of(one) for name, one in space.parameters.items()}


def _record(study: _Host, plate: str | Plate) -> PlateRecord:
    name = plate.name if isinstance(plate, Plate) else plate
    if not isinstance(name, str):
        raise HistoryError(f"a plate is one Plate or its name, such as 'p1'; got {plate!r:.80}.")
    if name not in study.history.plates.records:
        study.refresh()
    return study.history.plates.record(name)


def _plate(study: _Host, record: PlateRecord, predicted: Mapping[int, float]) -> Plate:
    return plate_of(record, study.history, study.space.names, study.outcomes.names, predicted)


def _predicted(study: _Host, trials: list[Trial]) -> dict[int, float]:
    """What the model expects of trials, by id; nothing while there is no model of one goal."""
    outcomes = study.outcomes
    if not trials or not study.history.counted or not outcomes.single:
        return {}
    found = study.predict([dict(trial.point) for trial in trials])
    if not outcomes.plain:
        found = found[outcomes.only]
    means = zip(trials, found.mean, strict=True)
    return {trial.id: float(mean) for trial, mean in means}
