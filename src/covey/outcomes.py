"""Outcomes by name: goals to trade off, limits to keep, and what is only recorded.

`Outcomes` is what a user declares. `history_of_outcome` is the history of one outcome, as of a
study that knows no other; `best_trial` and `front` answer by what was told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from covey.arrays import Array
from covey.errors import HistoryError, StrategyError, did_you_mean
from covey.history import History, Measured, Point, Revised, Trial, checks, events
from covey.hypervolume import chebyshev, nondominated

Sense = Literal["max", "min"]
SENSES = ("max", "min")
PLAIN = "value"  # the outcome of a study that names none
_SIGNS = ("<=", ">=")
COLUMNS = (
    *("id", "status", "sem", "origin", "batch", "reason", "asked", "ended", "seconds"),
    *("started", "excluded"),
)
"""Columns of sheets and tables about a trial, whose names no outcome may have."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound that an outcome has to keep."""

    name: str
    sign: str  # "<=" or ">="
    bound: float

    def keeps(self, value: float) -> bool:
        """Whether a value keeps it."""
        return value <= self.bound if self.sign == "<=" else value >= self.bound

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.bound:g}"


@dataclass(frozen=True)
class Outcomes:
    """What a study measures: goals, limits and records by name.

    ``worst`` is the reference point of several goals: values no better than these are worth
    nothing. None: it is learnt.

    >>> wanted = Outcomes.of({"yield": "max", "cost": "min"}, limits={"impurity": ("<=", 2.0)})
    >>> wanted.names, wanted.keeps({"impurity": 3.0})
    (('yield', 'cost', 'impurity'), False)
    """

    goals: Mapping[str, Sense]
    limits: tuple[Limit, ...] = ()
    record: tuple[str, ...] = ()
    worst: Mapping[str, float] | None = field(default=None)

    @staticmethod
    def of(goal: Any, limits: Any = None, record: Any = None, worst: Any = None) -> Outcomes | None:
        """What a user declared, checked; None for one plain goal, "max" or "min".

        Raises:
            StrategyError: It makes no sense.
        """
        if isinstance(goal, str) and goal in SENSES:
            if not limits and not record and worst is None:
                return None
            goal = {PLAIN: goal}
        made = Outcomes(_goals(goal), _limits(limits), _record(record))
        made = replace(made, worst=_worst(worst, made.goals))
        _refuse_columns(made)
        _refuse_twice(made)
        return made

    @property
    def names(self) -> tuple[str, ...]:
        """Every outcome that is modelled: goals, then limits on others."""
        return tuple(dict.fromkeys([*self.goals, *(limit.name for limit in self.limits)]))

    @property
    def only(self) -> str:
        """The name of the only goal; empty if there are several."""
        return next(iter(self.goals)) if len(self.goals) == 1 else ""

    @property
    def single(self) -> bool:
        """Whether it is one goal without limits: then batches are those of a plain study."""
        return len(self.goals) == 1 and not self.limits

    @property
    def in_order(self) -> Outcomes:
        """The same in the order of names: what is computed does not depend on that of the user."""
        goals = {name: self.goals[name] for name in sorted(self.goals)}
        limits = tuple(sorted(self.limits, key=lambda limit: limit.name))
        return replace(self, goals=goals, limits=limits)

    def sense(self, name: str) -> Sense:
        """Which way is better; for an outcome that has a limit only, the way that keeps it."""
        if name in self.goals:
            return self.goals[name]
        return next(
            "min" if limit.sign == "<=" else "max" for limit in self.limits if limit.name == name
        )

    def signs(self) -> Array:
        """Turns values of the goals into something to maximise, and back, (m,)."""
        return np.array([1.0 if sense == "max" else -1.0 for sense in self.goals.values()])

    def worst_values(self) -> Array | None:
        """The reference point to maximise from, (m,); None if it is learnt."""
        if self.worst is None:
            return None
        return self.signs() * np.array([self.worst[name] for name in self.goals])

    def keeps(self, values: Mapping[str, float]) -> bool:
        """Whether all limits are known to be kept."""
        return all(a.name in values and a.keeps(values[a.name]) for a in self.limits)

    def lacks(self, trial: Trial) -> tuple[str, ...]:
        """The outcomes of a trial that have not been told."""
        return tuple(name for name in self.names if name not in trial.values)

    def describe(self) -> dict[str, Any]:
        """Fields of the header of a log."""
        found: dict[str, Any] = {"goal": dict(self.goals)}
        if self.limits:
            found["limits"] = {limit.name: [limit.sign, limit.bound] for limit in self.limits}
        if self.record:
            found["record"] = list(self.record)
        return found if self.worst is None else {**found, "worst": dict(self.worst)}

    def checked(
        self, given: Any, whose: str, told: Iterable[str] = ()
    ) -> tuple[Point, dict[str, Any] | None]:
        """The values of a result and what is to be recorded beside them.

        Every outcome is named that was not ``told`` before; one that comes later is None.

        Raises:
            HistoryError: A name is unknown or missing, or a value is no finite number.
        """
        if not isinstance(given, Mapping):
            if self.names != (self.only,):
                form = ", ".join(f"{name!r}: ..." for name in self.names)
                raise HistoryError(
                    f"{whose}: this study has several outcomes; tell them by name, {{{form}}}. "
                    f"Got {given!r}."
                )
            given = {self.only: given}
        known = (*self.names, *self.record)
        for name in given:
            if name not in known:
                raise HistoryError(
                    f"{whose}: {name!r} was not declared; the outcomes are {', '.join(known)}. "
                    "Leave it out, or start the study with it in goal, limits or record."
                    f"{did_you_mean(name, known)}"
                )
        missing = [name for name in self.names if name not in given and name not in told]
        if missing:
            raise HistoryError(
                f"{whose}: no value for {' and '.join(missing)}; write "
                f"{', '.join(f'{name!r}: None' for name in missing)} if it comes later."
            )
        values = {name: given[name] for name in self.names if given.get(name) is not None}
        if not values:
            raise HistoryError(f"{whose}: every outcome is None; tell it once one is known.")
        hint = "Use None if it comes later, or study.fail if the run crashed."
        checked = {n: checks.finite_value(v, f"{whose}, {n!r}", hint) for n, v in values.items()}
        beside = {name: given[name] for name in self.record if given.get(name) is not None}
        return Point(checked), beside or None


# Checks of what a user declares.


def _name(name: Any, what: str) -> str:
    if not isinstance(name, str) or not name.strip() or name != name.strip():
        raise StrategyError(
            f"the name of a {what} is a text without blanks around it; got {name!r}."
        )
    return name


def _number(value: Any, what: str) -> float:
    number = isinstance(value, int | float | np.integer | np.floating)
    if not number or isinstance(value, bool) or not np.isfinite(value):
        raise StrategyError(f"{what} is a finite number; got {value!r}.")
    return float(value)


def _goals(goal: Any) -> dict[str, Sense]:
    if not isinstance(goal, Mapping) or not goal:
        raise StrategyError(
            'goal must be "max" or "min", or name several, {"yield": "max", "cost": "min"}; got '
            f"{goal!r}."
        )
    for name, sense in goal.items():
        if sense not in SENSES:
            raise StrategyError(f'the goal {name!r} must be "max" or "min"; got {sense!r}.')
    return {_name(name, "goal"): sense for name, sense in goal.items()}


def _limits(limits: Any) -> tuple[Limit, ...]:
    if limits is None:
        return ()
    form = '{"impurity": ("<=", 2.0)}'
    if not isinstance(limits, Mapping):
        raise StrategyError(f"limits is such as {form}; got {limits!r}.")
    made = []
    for name, limit in limits.items():
        pair = isinstance(limit, Sequence) and not isinstance(limit, str) and len(limit) == 2
        if not pair or limit[0] not in _SIGNS:
            raise StrategyError(f"the limit on {name!r} is such as {form}; got {limit!r}.")
        bound = _number(limit[1], f"the limit on {name!r}")
        made.append(Limit(_name(name, "limit"), limit[0], bound))
    return tuple(made)


def _record(record: Any) -> tuple[str, ...]:
    if record is None:
        return ()
    if isinstance(record, str | Mapping) or not isinstance(record, Iterable):
        raise StrategyError(f'record is a list of names, such as ["notes"]; got {record!r}.')
    return tuple(_name(name, "record") for name in record)


def _worst(worst: Any, goals: Mapping[str, Sense]) -> dict[str, float] | None:
    if worst is None:
        return None
    if not isinstance(worst, Mapping) or worst.keys() != goals.keys():
        raise StrategyError(
            f"worst has one value for each goal ({', '.join(goals)}), or is None; got {worst!r}."
        )
    return {name: _number(worst[name], f"the worst {name!r}") for name in goals}


def _refuse_columns(outcomes: Outcomes) -> None:
    """Raise if a name is that of another column in sheets and tables."""
    for name in (*outcomes.names, *outcomes.record):
        if name in COLUMNS:
            raise StrategyError(
                f"an outcome cannot be called {name!r}, which is a column of sheets and tables; so "
                f"are {', '.join(other for other in COLUMNS if other != name)}. Give it another "
                "name."
            )
        if name == PLAIN and name not in outcomes.goals:
            raise StrategyError(
                f"only a goal may be called {PLAIN!r}, the column of the only goal's value in "
                "sheets and tables; give the limit or record another name."
            )


def _refuse_twice(outcomes: Outcomes) -> None:
    """Raise if a name means two things, or two names differ in their case only."""
    for name in outcomes.record:
        if name in outcomes.names:
            what = "a goal" if name in outcomes.goals else "limited, so it has to be modelled"
            raise StrategyError(f"{name!r} is {what}; take it out of record.")
    if len(set(outcomes.record)) < len(outcomes.record):
        raise StrategyError(f"a name occurs twice in record: {list(outcomes.record)}.")
    seen: dict[str, str] = {}
    for name in (*outcomes.names, *outcomes.record):
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            raise StrategyError(
                f"{other!r} and {name!r} differ in their case only; call one outcome by one name."
            )


def refuse_parameters(outcomes: Outcomes, names: Iterable[str]) -> None:
    """Raise if an outcome has the name of a parameter."""
    taken = {*names}
    for limit in outcomes.limits:
        if limit.name in taken:
            raise StrategyError(
                f"the limit {limit} is on a parameter, which no measurement tells; put it in the "
                "space, as a bound or in where=[covey.Linear(...)]."
            )
    for name in (*outcomes.names, *outcomes.record):
        if name in taken:
            raise StrategyError(
                f"{name!r} is a parameter and an outcome; give one of them another name."
            )


# The history of one outcome, as of a study that knows no other.


def history_of_outcome(history: History, name: str) -> History:
    """The history with this outcome as the only value: trials that lack it are still pending.

    Hyper-parameters are those that were logged for this outcome. Cost O(its length).
    """
    projection = _Projection(name, history)
    for event in history.events:
        projection.take(event)
    return History(projection.events)


class _Projection:
    """Rewrites the events of a log, one after the other, for one of its outcomes."""

    def __init__(self, name: str, history: History) -> None:
        self._trials, self._plates = history.trials, history.plates.records
        # Of a late result in part the rest is to come, though the trial once failed or the like.
        late = (t.id for t in history.trials if t.status == "told" and name not in t.values)
        self._late = frozenset(late)
        self.events: list[events.Event] = []
        self._name = name
        self._count = 0  # trials so far
        self._told: set[int] = set()  # those that have this outcome
        self._excluded: set[int] = set()  # those that were excluded before they had it
        self._places = [0]  # how many of the first events of the log are left

    def take(self, event: events.Event) -> None:
        """Append what an event means for this outcome, which may be nothing."""
        self.events += self._rewritten(event)
        if isinstance(event, events.Asked | events.Enqueued | events.Added):
            self._count += len(event.points)
        self._places.append(len(self.events))

    def _rewritten(self, event: events.Event) -> list[events.Event]:
        match event:
            case events.Told():
                return self._told_too(event)
            case events.Asked(models=models):
                after = _at(event, self._places)
                return [replace(event, models=_of(models, self._name), after=after)]
            case events.Added():
                ids = range(self._count, self._count + len(event.points))
                return _added(event, self._name, ids, self._told)
            case events.Amended():
                return _amended(event, self._name, self._trials[event.id].goal)
            case events.Excluded() | events.Included():
                return self._counted_or_not(event)
            case _:
                return self._ended_or_else(event)

    def _measured(self, event: Measured | Revised) -> list[events.Event]:
        """Readings of this outcome; the trials that have it then are told."""
        uses = self._plates[event.plate].uses
        done = (uses[well].trial for well in event.wells)
        told = (i for i in done if i is not None)
        self._told.update(i for i in told if self._name in self._trials[i].values)
        if isinstance(event, Revised):
            given = (event.values or {}).items()
            right: dict[str, float | Point] = {
                well: _value(v, self._name) for well, v in given if _has(v, self._name)
            }
            if not (right or event.marked or event.unmarked):
                return []
            return [replace(event, values=right or None, goal=None)]
        values = tuple(None if v is None else _value(v, self._name) for v in event.values)
        return [replace(event, values=values, goal=None)]

    def _told_too(self, event: events.Told) -> list[events.Event]:
        found: list[events.Event] = list(_told(event, self._name, self._told))
        again = tuple(i for i in event.ids if i in self._excluded and i in self._told)
        self._excluded.difference_update(again)
        return [*found, events.Excluded(again, "as a whole")] if again else found

    def _ended_or_else(self, event: events.Event) -> list[events.Event]:
        if isinstance(event, Measured | Revised):
            return self._measured(event)
        if isinstance(event, events.Failed) and event.told:
            return self._worthless(event)
        if isinstance(event, events.Failed | events.Cancelled | events.Lost | events.Retried):
            ids = tuple(i for i in event.ids if i not in self._late)
            return [replace(event, ids=ids)] if ids else []
        return [] if isinstance(event, events.Late) else [event]

    def _worthless(self, event: events.Failed) -> list[events.Event]:
        """Failures of what was told; a late result in part leaves the rest to come again."""
        kept = tuple(i for i in event.ids if i not in self._late or i in self._told)
        again = tuple(i for i in kept if i in self._late)
        self._told.difference_update(event.ids)
        self._excluded.difference_update(event.ids)
        found: list[events.Event] = [replace(event, ids=kept)] if kept else []
        return [*found, events.Retried(again)] if again else found

    def _counted_or_not(self, event: events.Excluded | events.Included) -> list[events.Event]:
        if isinstance(event, events.Excluded):
            self._excluded.update(i for i in event.ids if i not in self._told)
        else:
            self._excluded.difference_update(event.ids)
        ids = tuple(i for i in event.ids if i in self._told)
        return [replace(event, ids=ids)] if ids else []


def _at(asked: events.Asked, places: list[int]) -> int | None:
    """The number of events that a batch was chosen from, among those that are left."""
    return None if asked.after is None else places[min(asked.after, len(places) - 1)]


def _of(models: tuple[dict[str, Any], ...] | None, name: str) -> tuple[dict[str, Any], ...] | None:
    return tuple(m for m in models or () if m.get("outcome") == name) or None


def _told(event: events.Told, name: str, told: set[int]) -> list[events.Told]:
    """The results that have this outcome; their standard errors, if it is the only goal."""
    has = [i for i, value in enumerate(event.values) if _has(value, name)]
    if not has:
        return []
    ids = tuple(event.ids[i] for i in has)
    told.update(ids)
    return [events.Told(ids, *_results(event, name, has))]


def _added(event: events.Added, name: str, ids: range, told: set[int]) -> list[events.Event]:
    """Results from elsewhere: those that lack this outcome are pending."""
    has = [i for i, value in enumerate(event.values) if _has(value, name)]
    told.update(ids[i] for i in has)
    if len(has) == len(event.points):
        return [events.Added(event.points, *_results(event, name, has))]
    pending = events.Enqueued(event.points)
    if not has:
        return [pending]
    return [pending, events.Told(tuple(ids[i] for i in has), *_results(event, name, has))]


def _results(
    event: events.Told | events.Added, name: str, places: Sequence[int]
) -> tuple[tuple[float, ...], tuple[float | None, ...], tuple[dict[str, Any] | None, ...]]:
    """Values of an outcome; where it is the only goal, their errors and what is beside them."""
    values = tuple(_value(event.values[i], name) for i in places)
    mine = event.goal == name or not isinstance(event.values[0], Point)
    sems = tuple(event.sems[i] if mine else None for i in places)
    return values, sems, tuple(event.metrics[i] if mine else None for i in places)


def _amended(event: events.Amended, name: str, goal: str) -> list[events.Event]:
    """A correction of this outcome; a plain number corrects the only goal of the trial."""
    if not (_has(event.value, name) if isinstance(event.value, Point) else name == goal):
        return []
    sem = None if isinstance(event.value, Point) else event.sem
    return [events.Amended(event.id, _value(event.value, name), event.reason, sem)]


def _has(value: float | Point, name: str) -> bool:
    return name in value if isinstance(value, Point) else name == PLAIN


def _value(value: float | Point, name: str) -> float:
    return float(value[name]) if isinstance(value, Point) else value


# Answers by what was told.


def complete(history: History, outcomes: Outcomes) -> tuple[Trial, ...]:
    """The told trials that count, have every goal and keep the limits: those that ended, if any."""
    told = (t for t in history.told if not t.excluded and outcomes.goals.keys() <= t.values.keys())
    kept, stopped = tuple(t for t in told if outcomes.keeps(t.values)), history.stopped
    return tuple(t for t in kept if t.id not in stopped) or kept


def goal_values(trials: Sequence[Trial], outcomes: Outcomes) -> Array:
    """Values of the goals to maximise, (n, m)."""
    rows = [[trial.values[name] for name in outcomes.goals] for trial in trials]
    return outcomes.signs() * np.array(rows, dtype=float).reshape(len(trials), len(outcomes.goals))


def front(history: History, outcomes: Outcomes) -> tuple[Trial, ...]:
    """The told trials that keep the limits and that no other such trial dominates."""
    trials = complete(history, outcomes)
    if not trials:
        return ()
    keep = nondominated(goal_values(trials, outcomes))
    return tuple(trial for trial, kept in zip(trials, keep, strict=True) if kept)


def best_trial(history: History, outcomes: Outcomes) -> Trial | None:
    """The best told trial that keeps the limits; the first of equals.

    Raises:
        StrategyError: There are several goals, and so no one best trial.
    """
    if not outcomes.only:
        raise StrategyError(
            f"there are several goals ({', '.join(outcomes.goals)}), so no one trial is the best; "
            "study.front has those that no other beats in all of them, and "
            "study.recommend(weights={...}) picks one."
        )
    trials = complete(history, outcomes)
    return trials[int(np.argmax(goal_values(trials, outcomes)[:, 0]))] if trials else None


def middle(history: History, outcomes: Outcomes) -> Trial | None:
    """The trial of the front that comes closest to the best of every goal at once; None if empty.

    Shortfalls are shares of the front's range.
    """
    trials = front(history, outcomes)
    if not trials:
        return None
    values = goal_values(trials, outcomes.in_order)
    span = np.ptp(values, axis=0)
    alike = 1.0 / np.where(span > 0.0, span, 1.0)
    return trials[int(np.argmax(chebyshev(values, alike, values.max(axis=0))))]
