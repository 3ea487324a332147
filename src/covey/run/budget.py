"""`Budget`: when a run is over, by evaluations, hours, cost, a target or a plateau.

Whether a limit is reached is a function of the log and of the time that has passed. Then nothing
more begins; what runs is waited for, and what was queued stays pending.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from covey.errors import StrategyError, is_whole, several
from covey.history import PLAIN, Failed, History, Told
from covey.outcomes import Outcomes

if TYPE_CHECKING:
    from covey.history import Trial
    from covey.study import Study

_HOUR = 3600.0  # seconds


class BudgetOptions(TypedDict, total=False):
    """A budget as keyword arguments of a run."""

    evaluations: int | None
    hours: float | None
    cost: str | Mapping[str, float] | None
    target: float | Mapping[str, float] | None
    plateau: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """When a run is over, beyond its number of batches; None: no such limit.

    Attributes:
        evaluations: in all, told or failed; those of earlier runs count.
        hours: since the run was started, or started again.
        cost: an outcome, or something that is returned beside the value, and how much of it may be
            spent in all: {"dollars": 50}. Only its name: what is spent is shown.
        target: the value that is good enough; of several goals, one for each: {"yield": 90}.
        plateau: evaluations in a row that brought nothing better.
    """

    evaluations: int | None = None
    hours: float | None = None
    cost: str | Mapping[str, float] | None = None
    target: float | Mapping[str, float] | None = None
    plateau: int | None = None

    def __post_init__(self) -> None:
        for name in ("evaluations", "plateau"):
            value = getattr(self, name)
            if value is not None and not is_whole(value, 1):
                raise StrategyError(f"{name} must be a whole number >= 1, or None; got {value!r}.")
        if self.hours is not None and not (_is_number(self.hours) and self.hours > 0.0):
            raise StrategyError(f"hours must be a number > 0, or None; got {self.hours!r}.")
        named = self.target if isinstance(self.target, Mapping) else {"": self.target or 0.0}
        if not named or not all(map(_is_number, named.values())):
            raise StrategyError(
                f"target is a number, or one for each goal, {{'yield': 90}}; got {self.target!r}."
            )
        self._check_cost()

    def _check_cost(self) -> None:
        given = self.cost
        if given is None or (isinstance(given, str) and given.strip()):
            return
        one = isinstance(given, Mapping) and len(given) == 1
        pairs = given.items() if isinstance(given, Mapping) else ()
        if not one or not all(isinstance(k, str) and _is_number(v) and v > 0 for k, v in pairs):
            raise StrategyError(
                "cost is the name of an outcome and how much of it may be spent, {'dollars': 50}, "
                f"or its name alone; got {given!r}."
            )

    @property
    def ends(self) -> bool:
        """Whether it ends a run by itself, without a number of batches; a target may not."""
        return not (self.evaluations is self.hours is self.plateau is None) or math.isfinite(
            self.purse
        )

    @property
    def costly(self) -> str:
        """The name of what is spent; empty if nothing is."""
        return self.cost if isinstance(self.cost, str) else next(iter(self.cost or {}), "")

    @property
    def purse(self) -> float:
        """How much may be spent."""
        return next(iter(self.cost.values())) if isinstance(self.cost, Mapping) else math.inf

    def check(self, outcomes: Outcomes) -> None:
        """Raise StrategyError unless its target fits the goals."""
        if self.target is None:
            return
        goals = outcomes.goals
        if isinstance(self.target, Mapping):
            odd = [name for name in self.target if name not in goals]
            if odd or len(self.target) < len(goals):
                raise StrategyError(
                    f"target names every goal ({', '.join(goals)}) and nothing else; got "
                    f"{dict(self.target)!r}. For one plain value it is a number."
                )
        elif len(goals) > 1:
            form = ", ".join(f"{name!r}: ..." for name in goals)
            raise StrategyError(
                f"there are several goals, so a target is one for each, {{{form}}}; got "
                f"{self.target!r}."
            )

    def reached(self, study: Study, seconds: float) -> str:
        """Which limit is reached, in words; empty if none is."""
        if self.hours is not None and seconds >= self.hours * _HOUR:
            return f"{self.hours:g} hours are over"
        return self._spent_up(study.history) or self._good_enough(study) or self._flat(study)

    def _spent_up(self, history: History) -> str:
        if not math.isfinite(self.purse):
            return ""
        total, known, unknown = spent(history, self.costly)
        if total >= self.purse:
            return f"{total:g} of {self.purse:g} {self.costly} are spent"
        if not known and unknown >= _ENOUGH:
            return (
                f"none of {several(unknown, 'result')} has {self.costly!r}, so what is spent is "
                f"not known; return it beside the value, {{'value': 0.9, {self.costly!r}: 1.5}}"
            )
        return ""

    def _good_enough(self, study: Study) -> str:
        if self.target is None:
            return ""
        goals = study.outcomes.goals
        (first, *_), named = goals, self.target
        wanted = dict(named) if isinstance(named, Mapping) else {first: named}
        for trial in study.front:
            if all(_keeps(trial.values.get(n), wanted[n], goals[n]) for n in wanted):
                said = ", ".join(
                    f"{v:g}" if n == PLAIN else f"{n} {v:g}" for n, v in wanted.items()
                )
                return f"the target {said} is reached by trial {trial.id}"
        return ""

    def _flat(self, study: Study) -> str:
        if self.plateau is None:
            return ""
        ended = ended_in_order(study.history)
        good = {trial.id for trial in study.front}
        if study.outcomes.only:
            best = study.best
            good = set() if best is None else {best.id}
        last = max((place for place, id in enumerate(ended) if id in good), default=None)
        if last is None or len(ended) - 1 - last < self.plateau:
            return ""
        return f"the last {several(len(ended) - 1 - last, 'evaluation')} brought nothing better"


_ENOUGH = 4  # results without a cost after which it is missing, not late


def _is_number(value: Any) -> bool:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return real and math.isfinite(value)


def _keeps(value: float | None, wanted: float, goal: str) -> bool:
    if value is None:
        return False
    return value >= wanted if goal == "max" else value <= wanted


def spent(history: History, name: str) -> tuple[float, int, int]:
    """What evaluations have cost in all; of how many that is known, and of how many it is not.

    >>> from covey.history import Asked, Point
    >>> asked = History().then(Asked((Point(x=0.1), Point(x=0.9)), "random"))
    >>> told = asked.then(Told((0, 1), (2.0, 3.0), (), ({"dollars": 1.5}, None)))
    >>> spent(told, "dollars")
    (1.5, 1, 1)
    """
    found = [_cost(history, trial, name) for trial in history.told if trial.origin != "added"]
    known = [cost for cost in found if cost is not None]
    return math.fsum(known), len(known), len(found) - len(known)


def _cost(history: History, trial: Trial, name: str) -> float | None:
    told: Any = trial.named.get(name)
    cost = history.metrics(trial).get(name) if told is None else told
    return float(cost) if cost is not None and _is_number(cost) and cost >= 0.0 else None


def ended_in_order(history: History) -> list[int]:
    """The trials that were evaluated, told or failed, in the order in which they ended."""
    place: dict[int, int] = {}
    for number, event in enumerate(history.events):
        if isinstance(event, Told | Failed):
            place |= dict.fromkeys(event.ids, number)
    ended = (t.id for t in history.trials if t.status in ("told", "failed") and t.id in place)
    return sorted(ended, key=lambda id: (place[id], id))
