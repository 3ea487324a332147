r"""What a batch of each size is expected to gain, and whether to stop.

Notation: V(A) what points A are worth (`covey.outlook`): the largest f, or the hypervolume of
several goals; D the points told and those under way, S_k the batch that an ask for k points would
choose now. All expectations are over joint draws of the posterior and of its hyper-parameters.

.. math:: g_k = E[V(D \cup S_k)] - E[V(D)]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from covey.candidates import FiniteSet, candidate_set, excluded
from covey.diagnostics import information_gain
from covey.errors import ExhaustedError, several
from covey.history import History
from covey.learn import Recipe, reachable_trials
from covey.outcomes import complete, goal_values
from covey.outlook import Outlook, outlook

if TYPE_CHECKING:
    from covey.propose import Proposer, Request

_DRAWS = 4096  # for the gain of a batch: a standard error of 1.6 % of the gain's deviation
_FEWER_DRAWS = 1024  # of hypervolumes, and for the chance that something better is left
_FEWEST_DRAWS = 256  # for that chance with hypervolumes
_ANYWHERE = 400  # candidates of highest upper bound, apart, that may beat the best
_ENOUGH = 0.85  # share of the largest batch's gain that a smaller one should have
_UNLIKELY = 0.05  # chance of a gain below which to stop
_LATEST = 3  # batches whose improvement is looked at
_WORTH = 0.01  # of the range of the results: a gain that counts, unless said
# How often "stop" was wrong, and said, in `python -m benchmarks.foretold` (docs/advice.md).
_WRONG_STOPS = (0, 15)


@dataclass(frozen=True, slots=True)
class Gain:
    """What one size of batch is expected to bring, in the user's units.

    Attributes:
        size: number of points.
        expected_best: the value expected of the best point after the batch; with several goals the
            hypervolume of the front.
        gain: by how much that is better than what is expected without it; at least 0.
        share: of the gain of the largest size.
        information: nats that the batch tells about f.
    """

    size: int
    expected_best: float
    gain: float
    share: float
    information: float


@dataclass(frozen=True, slots=True)
class Advice:
    """How large the next batch should be, and whether to stop; ``str()`` says it in words.

    Attributes:
        gains: one for each size, ascending.
        size: the smallest with 85 % of the largest one's gain.
        worth: the least gain that counts.
        chance: the probability that some point of the space is better than the best told by more
            than that, keeps the limits and does not fail; points under way are among them. With
            several goals: that it adds more than that to the hypervolume.
        improved: by how much the best, or the hypervolume, got better in the last three batches
            (None: fewer).
        stop: whether the chance is below 5 %, there were more than three batches, and the last
            three improved by less than that.
        goals: the number of goals.
        wrong_stops: how often the advice to stop was wrong in the benchmarks, and was given there.
    """

    gains: tuple[Gain, ...]
    size: int
    worth: float
    chance: float
    improved: float | None
    stop: bool
    goals: int = 1
    wrong_stops: tuple[int, int] = _WRONG_STOPS

    def __str__(self) -> str:
        return "\n".join(self.words())

    def words(self) -> Iterator[str]:
        """Sentences: the size, then whether to stop."""
        most, few = self.gains[-1], next(g for g in self.gains if g.size == self.size)
        of = "" if self.goals == 1 else " of hypervolume"
        if most.gain <= 0.0:
            yield "No batch is expected to gain anything over what is known and under way."
        elif few is most:
            less = "; smaller ones clearly less" if most.size > 1 else ""
            yield (
                f"A batch of {most.size} is expected to gain {most.gain:.3g}{of}, "
                f"to about {most.expected_best:.4g}{less}."
            )
        else:
            yield (
                f"{few.size} of {several(most.size, 'point')} give {few.share:.0%} of what they "
                f"are expected to gain: {few.gain:.3g} of {most.gain:.3g}{of}, "
                f"to about {few.expected_best:.4g}."
            )
        what = "beats the best by" if self.goals == 1 else "adds to the hypervolume"
        yield (
            f"Some point {what} more than {self.worth:.3g} with probability {self.chance:.2f}, "
            "says the model."
        )
        if self.improved is not None:
            what = "the best" if self.goals == 1 else "the hypervolume"
            yield f"The last {_LATEST} batches improved {what} by {self.improved:.3g}."
        if self.stop:
            yield "It is time to stop, or to change the space."
            wrong, times = self.wrong_stops
            yield f"(In the benchmarks it was wrong to stop {wrong} times of {times}.)"
        elif self.chance < _UNLIKELY and self.improved is None:
            yield f"The model expects little more; it has seen no more than {_LATEST} batches."
        elif self.chance < _UNLIKELY:
            yield "The model expects little more, but the last batches still improved: go on."
        elif most.gain < self.worth:
            yield f"No such batch is expected to gain {self.worth:.3g}, but there may be more."
        else:
            yield "Going on is worth it."

    def to_json(self) -> dict[str, Any]:
        """Plain data, for ``covey advice --json``."""
        return {**asdict(self), "gains": [asdict(gain) for gain in self.gains]}


def sizes_up_to(most: int) -> list[int]:
    """1, 2, 4 ... and the largest itself.

    >>> sizes_up_to(24)
    [1, 2, 4, 8, 16, 24]
    """
    return [*(2**i for i in range(most.bit_length()) if 2**i < most), most]


def advise(
    history: History,
    recipe: Recipe,
    request: Request,
    choose: Proposer,
    worth: float | None = None,
) -> Advice:
    """Advice on batches of 1, 2, 4 ... up to ``request.k`` points; ``choose`` proposes each.

    Cost: one proposal for each size.
    """
    ahead = outlook(history, recipe)
    most = left_in(history, recipe, request)
    if most == 0:
        raise ExhaustedError(
            "every point of the space was asked for: there is no batch left.", left=0
        )
    sizes = (replace(request, k=k) for k in sizes_up_to(most))
    batches = [choose(history, recipe, one, None).points for one in sizes]
    gains = expected_gains(ahead, batches)
    enough = next(gain.size for gain in gains if gain.share >= _ENOUGH)
    verdict = verdict_on(ahead, recipe, request.fixed, worth)
    return Advice(gains, enough, *verdict, goals=len(ahead.goals))


class Verdict(NamedTuple):
    """Whether to stop, and why: see `Advice`."""

    worth: float
    chance: float
    improved: float | None
    stop: bool


def verdict_on(
    ahead: Outlook, recipe: Recipe, fixed: Mapping[str, Any], worth: float | None
) -> Verdict:
    """Whether to stop, where a gain of ``worth`` counts (None: 1 % of the range)."""
    least = _worth(ahead) if worth is None else worth
    chance, improved = chance_of_more(ahead, fixed, least), _improvement(ahead, recipe)
    idle = improved is not None and improved < least
    return Verdict(least, chance, improved, chance < _UNLIKELY and idle)


def left_in(history: History, recipe: Recipe, request: Request) -> int:
    """The size of the request, or the number of points that a finite space has left."""
    where = candidate_set(recipe.space, request.fixed, excluded(history, recipe.seed))
    return min(request.k, len(where.rows)) if isinstance(where, FiniteSet) else request.k


def expected_gains(
    ahead: Outlook, batches: Sequence[Sequence[Mapping[str, Any]]]
) -> tuple[Gain, ...]:
    """g_k of each batch, in the user's units.

    A larger batch could hold a smaller one, so a gain is never below that of a smaller size.
    """
    known = ahead.known_at
    alone = len(ahead.goals) == 1
    gains: list[Gain] = []
    without = 0.0
    for points in batches:
        at = np.vstack([known, ahead.recipe.space.encode(points)])
        values = ahead.drawn(at, _DRAWS if alone else _FEWER_DRAWS)
        before = ahead.reached(values[:, : len(known)])
        after = np.maximum(before, ahead.reached(values[:, len(known) :]))
        now = ahead.worth(before)
        without = without if gains else float(now.mean())  # one for all sizes
        more = float((ahead.worth(after) - now).mean())
        gain = max(gains[-1].gain if gains else 0.0, more)
        best = (ahead.sign if alone else 1.0) * (without + gain)
        told = sum(
            information_gain(goal.belief(at), range(len(known), len(at))) for goal in ahead.goals
        )
        gains.append(Gain(len(points), best, gain, 0.0, told))
    most = gains[-1].gain
    return tuple(replace(g, share=g.gain / most if most > 0.0 else 1.0) for g in gains)


def chance_of_more(ahead: Outlook, fixed: Mapping[str, Any], worth: float) -> float:
    """P(some point of the space adds more than ``worth`` to what the told points are worth).

    By joint draws. Points under way are part of the space.
    """
    told = len(ahead.told_at)
    at = np.vstack([ahead.known_at, ahead.candidates(fixed, _ANYWHERE)])
    alone = len(ahead.goals) == 1
    values = ahead.drawn(at, _FEWER_DRAWS if alone else _FEWEST_DRAWS, together=True)
    before = ahead.reached(values[:, :told])
    if alone:
        best = ahead.reached(values[:, told:])
        return float((ahead.worth(best) - ahead.worth(before) > worth).mean())
    more = 0
    for known, draw in zip(before, values[:, told:], strict=True):
        after = np.maximum(known, ahead.reached(draw[:, None]))
        more += bool(ahead.worth(after).max() - ahead.worth(known) > worth)
    return more / len(values)


def _worth(ahead: Outlook) -> float:
    """1 % of the range of the results, after penalties were raised; of several goals' product."""
    if len(ahead.goals) > 1:
        return _WORTH * float(ahead.span.prod())
    (goal,) = ahead.goals
    ends = goal.expected(np.array([goal.data.values.min(), goal.data.values.max()]))
    return _WORTH * float(ends[1] - ends[0])


def _improvement(ahead: Outlook, recipe: Recipe) -> float | None:
    """By how much the best value, or the hypervolume, grew in the last batches with results."""
    history = ahead.history
    batches = [batch for batch in history.batches if any(_told(history, i) for i in batch.ids)]
    if len(batches) <= _LATEST:
        return None
    latest = {i for batch in batches[-_LATEST:] for i in batch.ids}
    trials = reachable_trials(recipe.space, complete(history, recipe.outcomes))
    values = goal_values(trials, recipe.outcomes.in_order)
    old = np.array([trial.id not in latest for trial in trials], dtype=bool)
    if not old.any():
        return None
    return max(0.0, ahead.worth_of(values) - ahead.worth_of(values[old]))


def _told(history: History, i: int) -> bool:
    return bool(history.trials[i].values)
