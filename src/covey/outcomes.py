"""Outcomes by name: goals to trade off, limits to keep, and what is only recorded.

`Outcomes` is what a user declares; `best_trial` and `front` answer by what was told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from covey.arrays import Array
from covey.errors import HistoryError, StrategyError, did_you_mean
from covey.history import PLAIN, History, Point, Trial
from covey.hypervolume import chebyshev, nondominated

Sense = Literal["max", "min"]
SENSES = ("max", "min")
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
    """What a study measures: goals, limits and records by name; a plain number is "value".

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
    def of(goal: Any, limits: Any = None, record: Any = None, worst: Any = None) -> Outcomes:
        """What a user declared, checked; "max" or "min" is the goal of a plain number.

        Raises:
            StrategyError: It makes no sense.
        """
        if isinstance(goal, str) and goal in SENSES:
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
    def plain(self) -> bool:
        """Whether results are plain numbers: there is nothing but the goal "value"."""
        return self.single and self.only == PLAIN and not self.record and self.worst is None

    def label(self, name: str) -> str:
        """What hyper-parameters of an outcome are called in a log; a plain number has no name."""
        return "" if self.plain else name

    @property
    def event_goal(self) -> str | None:
        """What events call the only goal: empty if there are several; None for plain numbers."""
        return None if self.plain else self.only

    def goal_in(self, results: Iterable[Mapping[str, float]]) -> str | None:
        """What an event with these results calls the only goal: empty, too, if none has it."""
        return self.event_goal if any(self.only in one for one in results) else ""

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
        if self.plain:
            return {"goal": self.goals[PLAIN]}
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

        Every outcome is named that was not ``told`` before; one that comes later is None. Values
        are numbers: the event that they become sees to that.

        Raises:
            HistoryError: A name is unknown or missing.
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
        beside = {name: given[name] for name in self.record if given.get(name) is not None}
        return Point(values), beside or None


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
    """Raise if an outcome has the name of a parameter; a plain number has no name in this."""
    taken = set() if outcomes.plain else {*names}
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
