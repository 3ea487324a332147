"""Early stopping: which evaluations to end, by what they and others have reported so far.

Rules are pure functions of the log: asked again, after a crash or by somebody else, they say the
same. A stopped trial is told the last value that it reported, with the step as ``stopped``; what
the model makes of it is in `covey.curves`.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from covey.errors import StrategyError, did_you_mean, is_whole
from covey.history import PLAIN, Amended, History, Point, Reported, Told
from covey.outcomes import Outcomes
from covey.run.task import Outcome

_ENDED = "its evaluation came to its end, although it was stopped"


@runtime_checkable
class StoppingRule(Protocol):
    """Says which trials to stop."""

    def stopped(self, reports: Iterable[Reported], sign: float) -> dict[int, int]:
        """The trials to stop, each with the step whose report shows it.

        Args:
            reports: all reports of a study, in order.
            sign: 1 if more is better, -1 if less is.
        """
        ...

    def needs(self, before: int, step: int) -> bool:
        """Whether it has to see the report of a step, if the one before it was of that step."""
        ...


@dataclass(frozen=True, slots=True)
class Halving:
    """Asynchronous successive halving (Li et al. 2020): few are left to run for long.

    At the steps ``first``, ``first`` * ``reduction``, ``first`` * ``reduction``^2 ... (the rungs)
    an evaluation goes on only if its value is among the best 1/``reduction`` of those that came to
    that rung before it, and its own. Until as many have come there, all go on.

    >>> values = [0.1, 0.9, 0.5, 0.2]
    >>> Halving(first=1).stopped([Reported(i, 1, 1, v) for i, v in enumerate(values)], 1.0)
    {2: 1, 3: 1}
    """

    first: int = 1
    reduction: int = 3

    def __post_init__(self) -> None:
        if not is_whole(self.first, 1) or not is_whole(self.reduction, 2):
            raise StrategyError(
                "stopping: first is a whole number >= 1 and reduction one >= 2; got "
                f"{self.first!r} and {self.reduction!r}."
            )

    def stopped(self, reports: Iterable[Reported], sign: float) -> dict[int, int]:
        """The trials to stop, each with the step whose report shows it."""
        rungs: dict[int, list[float]] = {}  # the values that came to each, sorted
        reached: dict[int, int] = {}  # trial -> its next rung, which it comes to once
        found: dict[int, int] = {}
        for report in reports:
            rung = reached.get(report.id, self.first)
            while report.step >= rung:
                came, value = rungs.setdefault(rung, []), sign * report.value
                insort(came, value)
                better = len(came) - bisect_right(came, value)
                if len(came) >= self.reduction and better >= -(-len(came) // self.reduction):
                    found.setdefault(report.id, report.step)
                rung *= self.reduction
            reached[report.id] = rung
        return found

    def needs(self, before: int, step: int) -> bool:
        """Whether there is a rung between the two: all are to be compared at the same step."""
        rung = self.first
        while rung <= before:
            rung *= self.reduction
        return rung <= step


class _Shown:
    """What an evaluation reported: its best value, and averages up to a step."""

    def __init__(self) -> None:
        self.best = -math.inf
        self.last = -1  # the step of its last report
        self._steps: list[int] = []
        self._sums: list[float] = []

    def add(self, step: int, value: float) -> None:
        self.best = max(self.best, value)
        self.last = step
        self._steps.append(step)
        self._sums.append(value + (self._sums[-1] if self._sums else 0.0))

    def mean(self, step: int) -> float | None:
        """Of the values up to a step; None if it has not come as far, or has none."""
        count = bisect_right(self._steps, step)
        if self.last < step or not count:
            return None
        return self._sums[count - 1] / count


class _Averages:
    """The averages up to a step of all evaluations that came as far, sorted.

    They are kept for steps that come again: where each evaluation reports at steps of its own,
    keeping them for all would take the product of both.
    """

    def __init__(self) -> None:
        self._shown: dict[int, dict[int, _Shown]] = {}  # by trial and attempt
        self._seen: set[int] = set()
        self._steps: list[int] = []  # those for which averages are kept, sorted
        self._kept: dict[int, list[float]] = {}

    def add(self, id: int, attempt: int, step: int, value: float) -> float:
        """Take a report; the best value of its evaluation so far."""
        own = self._shown.setdefault(id, {}).setdefault(attempt, _Shown())
        begin = bisect_right(self._steps, own.last)
        own.add(step, value)
        for kept in self._steps[begin : bisect_right(self._steps, step)]:
            if (mean := own.mean(kept)) is not None:
                insort(self._kept[kept], mean)
        return own.best

    def median_of_others(self, id: int, step: int, least: int) -> float | None:
        """The median over all trials but one; None if there are not as many."""
        means = self._kept.get(step)
        if means is None:
            means = sorted(m for one in self._shown.values() for m in _means(one, step))
            if step in self._seen:
                insort(self._steps, step)
                self._kept[step] = means
            self._seen.add(step)
        own = _means(self._shown[id], step)
        for mean in own:
            del means[bisect_left(means, mean)]
        middle, odd = divmod(len(means), 2)
        found = None
        if len(means) >= least:
            found = means[middle] if odd else (means[middle - 1] + means[middle]) / 2
        for mean in own:
            insort(means, mean)
        return found


def _means(attempts: Mapping[int, _Shown], step: int) -> list[float]:
    return [m for one in attempts.values() if (m := one.mean(step)) is not None]


@dataclass(frozen=True, slots=True)
class MedianRule:
    """Stop an evaluation that does worse than half of the others did (Golovin et al. 2017).

    From step ``first`` on, its best value so far is compared with the median, over the others
    that came as far, of their average values up to that step; there have to be ``least`` of them.

    >>> given = [Reported(i, 1, 5, v) for i, v in enumerate([0.5, 0.6, 0.7, 0.8, 0.1])]
    >>> MedianRule(first=1).stopped(given, 1.0)
    {4: 5}
    """

    first: int = 1
    least: int = 4

    def __post_init__(self) -> None:
        if not is_whole(self.first, 1) or not is_whole(self.least, 1):
            raise StrategyError(
                "stopping: first and least are whole numbers >= 1; got "
                f"{self.first!r} and {self.least!r}."
            )

    def stopped(self, reports: Iterable[Reported], sign: float) -> dict[int, int]:
        """The trials to stop, each with the step whose report shows it."""
        averages, found = _Averages(), dict[int, int]()
        for report in reports:
            best = averages.add(report.id, report.attempt, report.step, sign * report.value)
            if report.step < self.first or report.id in found:
                continue
            median = averages.median_of_others(report.id, report.step, self.least)
            if median is not None and best < median:
                found[report.id] = report.step
        return found

    def needs(self, before: int, step: int) -> bool:
        """It averages: some will do."""
        return False


_SOME = 4  # reports of one evaluation that are logged at once; of more, some in between are not
_NAMED: dict[str, StoppingRule] = {"asha": Halving(), "median": MedianRule()}


def rule_of(stopping: str | StoppingRule | None) -> StoppingRule | None:
    """A rule by its name, or as it is.

    Raises:
        StrategyError: There is no such rule.
    """
    if stopping is None or (not isinstance(stopping, str) and isinstance(stopping, StoppingRule)):
        return stopping
    if stopping in _NAMED:
        return _NAMED[str(stopping)]
    raise StrategyError(
        f"stopping is {', '.join(map(repr, _NAMED))}, a rule such as covey.run.Halving(first=5), "
        f"or None; got {stopping!r}.{did_you_mean(str(stopping), _NAMED)}"
    )


def worth_logging(
    reports: Sequence[tuple[int, float]], after: int, rule: StoppingRule | None
) -> list[tuple[int, float]]:
    """Of the reports that came at once, those beyond a step: the last, what a rule needs, and some.

    >>> worth_logging([(step, 0.5) for step in range(1, 41)], 2, Halving())
    [(3, 0.5), (9, 0.5), (13, 0.5), (23, 0.5), (27, 0.5), (33, 0.5), (40, 0.5)]
    """
    new = [one for one in reports if one[0] > after]
    apart = -(-len(new) // _SOME) or 1
    found, before = [], after
    for place, (step, value) in enumerate(new):
        needed = rule is not None and rule.needs(before, step)
        if place % apart == 0 or place == len(new) - 1 or needed:
            found.append((step, value))
        before = step
    return found


def to_stop(history: History, rule: StoppingRule, sign: float) -> dict[int, Reported]:
    """The pending trials that a rule stops, each with the last report of its last attempt."""
    reports = [event for event in history.events if isinstance(event, Reported)]
    last = {report.id: report for report in reports}
    stopped = rule.stopped(reports, sign)
    return {id: last[id] for id in stopped if history.trial(id).status == "pending"}


def told_early(report: Reported, outcomes: Outcomes) -> Told:
    """What is told of a trial that is stopped after this report: that value of the only goal."""
    values = (Point({outcomes.only: report.value}),)
    beside = ({"stopped": report.step},)
    return Told((report.id,), values, (), beside, outcomes.goal_in(values))


def values_of(outcome: Outcome) -> Point:
    """The values of an evaluation by name, which is "value" for a plain number."""
    plain = {} if outcome.value is None else {PLAIN: outcome.value}
    return Point(plain if outcome.values is None else outcome.values)


def completion(id: int, outcome: Outcome, known: Mapping[str, float]) -> list[Amended | Told]:
    """What is logged of a stopped trial that came to its end all the same.

    Its value is amended, unless it is the one that it was stopped with, as at its last step; values
    that were not ``known`` are told.
    """
    values = values_of(outcome)
    told = {name: value for name, value in values.items() if name in known}
    rest = {name: value for name, value in values.items() if name not in known}
    found: list[Amended | Told] = []
    if any(known[name] != value for name, value in told.items()):
        found.append(Amended(id, Point(told), _ENDED))
    if rest:
        found.append(Told((id,), (Point(rest),), (), (outcome.metrics,), ""))
    return found
