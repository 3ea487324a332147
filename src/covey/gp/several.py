"""The posteriors of several outcomes at the same points: goals to trade off, limits to keep.

All values here are to be maximised. Gains are measured on a front whose units `Scale` sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import MEMORY, Array, Mask, log_normal_cdf, to_numpy
from covey.belief import Belief, Beliefs, Goal
from covey.hypervolume import Front, chebyshev, front_of, spread_over

if TYPE_CHECKING:
    from covey.gp.model import Model
    from covey.gp.observations import Observations
    from covey.gp.posterior import Posterior

_LIKELY = 0.5  # probability from which on a known point is taken to keep the limits
_STEP = 1e-5  # of the difference quotients, in standard deviations of an outcome
_DESIGN = 10  # results that are taken for the first design, or 2d + 2
_FENCE = 3.0  # interquartile ranges beyond a quartile from which on a result is far out
_QUARTILE, _TAIL = 25.0, 10.0  # percentiles of a learnt scale: of one goal, and of a front
_SHARE = 0.1  # what a step counts beyond the tail of a front
_TOP = 0.9  # of a scale: where the tail ends at the latest
_LEAST, _FLAT = 1e-6, 0.1  # gain that counts as none in a climb, and a shortfall worth one unit
_DEEP = -300.0  # log of a probability below which the order counts, and no longer its size
_NEVER = 1e-12  # probability of success that counts as none in a climb
_SHORT = 32  # candidates that a start is chosen among, for each start
_PER_GOAL = 4  # ascents at random weightings of the goals, for each goal and width

Objective = Callable[[Array], tuple[Array, Array]]  # points (s, d) -> values (s,), gradients (s, d)


@dataclass(frozen=True)
class Scale:
    """Units in which every goal of a front counts alike: (y - low) / span.

    Below ``tail``, if there is one, a step counts a tenth: the ends of a front are worth finding
    where nobody said how bad a goal may be, but not as much as its middle.
    """

    low: Array  # (m,), the reference point
    span: Array  # (m,), positive
    tail: Array | None = None  # (m,)

    def __call__(self, values: Array) -> Array:
        """Values (n, m) in these units."""
        return np.column_stack([self.of_goal(j, values[:, j]) for j in range(len(self.low))])

    def of_goal(self, j: int, values: Array) -> Array:
        """Values (n,) of one goal in these units."""
        units = np.asarray((values - self.low[j]) / self.span[j])
        if self.tail is None:
            return units
        end = (self.tail[j] - self.low[j]) / self.span[j]
        return _SHARE * units + (1.0 - _SHARE) * np.maximum(units - end, 0.0)


def learnt_scale(results: Array, values: Array, dimension: int) -> Scale:
    """The units of a front where nobody gave the worst values; one goal has no front.

    The reference point is never tighter than the front of the ``results`` (n, m), nor than the
    worst of the first design's, less their range: a front that is still short would keep it at its
    own end, and so would never grow. Results far out in the first design, such as a penalty, count
    as its outer fence (Tukey 1977). The tail is what the worst tenth of the front has. ``values``
    (k, m) are those that the units are for.
    """
    if results.shape[1] == 1:
        return scaled(values, np.percentile(results, _QUARTILE, axis=0))
    front, first = front_of(results), results[: max(_DESIGN, 2 * dimension + 2)]
    low, high = np.percentile(first, (25.0, 75.0), axis=0)
    first = np.clip(first, low - _FENCE * (high - low), high + _FENCE * (high - low))
    worst = np.minimum(front.min(axis=0), first.min(axis=0) - np.ptp(first, axis=0))
    scale = scaled(values, worst)
    tail = np.percentile(front, _TAIL, axis=0)
    return replace(scale, tail=np.minimum(tail, scale.low + _TOP * scale.span))


def scaled(values: Array, worst: Array) -> Scale:
    """The units of a front: from the worst values (m,) to the best of ``values`` (n, m).

    A goal that hardly varies is measured by its size, so that no unit matters.
    """
    reach = np.ptp(values, axis=0)
    size = np.maximum(np.abs(values).max(axis=0), np.abs(worst))
    size = np.where(size > 0.0, size, 1.0)
    span = np.maximum(values.max(axis=0) - worst, 0.1 * reach)
    return Scale(worst, np.where(span > 1e-9 * size, span, size))


@dataclass(frozen=True)
class Bound:
    """A limit on an outcome: its posterior, and the value that is not to be passed."""

    posterior: Posterior
    level: float  # in units of the posterior's belief, warped where that is
    above: bool  # whether values have to be at least the level

    @staticmethod
    def of(posterior: Posterior, value: float, *, above: bool) -> Bound:
        """The limit on values as observed."""
        data = posterior.data
        level = data.warp.transform(np.array([(value - data.shift) / data.scale]))
        return Bound(posterior, float(level[0]), above)

    def log_probability(self, mean: Array, std: Array) -> Array:
        """log of the probability that f keeps it, (n,), for a belief's mean and deviation."""
        z = (mean - self.level) / std
        return log_normal_cdf(z if self.above else -z)


def _product(one: Array | None, other: Array | None) -> Array | None:
    """The product of probabilities (n,), None being 1."""
    if one is None or other is None:
        return other if one is None else one
    return one * other


@dataclass(frozen=True)
class Posteriors:
    """One posterior per goal, the limits, and the front of what is known.

    With one goal it gives a plain `Belief`, whose weight is the probability that the limits are
    kept; with several, `Beliefs`.
    """

    names: tuple[str, ...]  # of the goals
    goals: tuple[Posterior, ...]
    limits: tuple[Bound, ...]
    others: tuple[Posterior, ...]  # of outcomes that have a limit only
    scale: Scale
    front: Front
    front_at: Array  # (f, d): points that may be on the front, to look around
    within: Mask  # (n,): which known points of the first goal may still be proposed

    @property
    def models(self) -> tuple[Model, ...]:
        """The hyper-parameters of all outcomes."""
        return tuple(model for one in (*self.goals, *self.others) for model in one.models)

    @property
    def data(self) -> Observations:
        """The results of the first goal."""
        return self.goals[0].data

    @property
    def seen_at(self) -> Array:
        """The points (n, d) that have a value of some outcome, each once."""
        return np.unique(np.vstack([o.data.at for o in (*self.goals, *self.others)]), axis=0)

    @property
    def size(self) -> int:
        """The number of models."""
        return len(self.models)

    @property
    def rows(self) -> int:
        """The largest number of distinct points that one of them is conditioned on."""
        return max(one.rows for one in (*self.goals, *self.others))

    def belief(self, at: Array, round: int = 1, memory: int = MEMORY) -> Belief:
        """The belief about the goals at the candidates (n, d)."""
        share = memory // (len(self.goals) + 1)
        each = [goal.belief(at, round, share) for goal in self.goals]
        kept = self.kept(at, share)
        first = each[0]
        weight = _product(first.weight, kept)
        if len(each) == 1:
            return self._limited(replace(first, weight=weight))
        return Beliefs(
            first.at,
            tuple(part for belief in each for part in belief.parts),
            np.nan,
            round,
            max(belief.looks for belief in each),
            weight=weight,
            goals=tuple(self._goal(j, belief) for j, belief in enumerate(each)),
            known=len(self.front_at) > 0,
            front=self.front,
        )

    def kept(self, at: Array, memory: int = MEMORY) -> Array | None:
        """The probability that the limits are kept at (n, d), (n,); None if there are none.

        As if outcomes were independent.
        """
        if not self.limits:
            return None
        logs = np.zeros(len(at))
        for limit in self.limits:
            belief = limit.posterior.belief(at, memory=memory)
            logs += limit.log_probability(belief.mean, belief.std)
        # Far from all limits probabilities would underflow, and no direction would be left.
        far = _DEEP - 20.0 * np.log(np.maximum(logs / _DEEP, 1.0))
        return np.asarray(np.exp(np.where(logs < _DEEP, far, logs)))

    def _limited(self, belief: Belief) -> Belief:
        """The belief about the only goal, compared with known points inside that keep the limits.

        Where none does, any point improves on what is known: it is compared with the worst.
        """
        if belief.told is None or not self.limits:
            return belief
        mean, std = belief.told
        chance = self.kept(self.goals[0].data.at)
        keep = self.within if chance is None else (chance >= _LIKELY) & self.within
        if not keep.any():
            keep = np.arange(len(mean)) == int(np.argmin(mean))
        best = float(self.goals[0].data.values[keep].max())
        return replace(belief, told=(mean[keep], std[keep]), best=best)

    def _goal(self, j: int, belief: Belief) -> Goal:
        return Goal(self.names[j], len(belief.parts), self._unit(j), belief.best, belief.told)

    def _unit(self, j: int) -> Callable[[Array], Array]:
        """Values of the belief about goal j in the units of the front."""
        return lambda values: self.scale.of_goal(j, self.goals[j].outcome(values))

    # Where to climb from, and what.

    def anchors(self, count: int) -> Array:
        """Known points (at most ``count``, d) to look around: those of the front, spread out."""
        if not len(self.front_at):
            chance = self.kept(self.data.at)
            return self.data.at[np.argsort(-(chance if chance is not None else 0.0))[:count]]
        means = [goal.belief(self.front_at).mean for goal in self.goals]
        values = np.column_stack([self._unit(j)(mean) for j, mean in enumerate(means)])
        return self.front_at[spread_over(values, count)]

    def climbs(
        self, at: Array, widths: Sequence[float], count: int, rng: np.random.Generator
    ) -> list[tuple[Array, Objective]]:
        """Starts among the candidates (n, d), and what to maximise from them, for each width.

        ``count`` starts climb what the bounds add to the front; others climb the bounds at random
        weightings of the goals, so that every part of the front is climbed to.
        """
        views, m, found = _Views.at(self, at), len(self.goals), []
        success = self.goals[0].success
        likely = np.zeros(len(at)) if success is None else np.log(success.probability(at) + _NEVER)
        for width in widths:
            rows = views.bounds(width)
            if self.front.exact:
                starts = self._starts(rows, likely, count)
                found.append((to_numpy(at)[starts], self._objective(width, None)))
            if m > 1:
                weights = rng.dirichlet(np.ones(m), size=_PER_GOAL * m)
                starts = [int(np.argmax(self._worth(rows, one[None]) + likely)) for one in weights]
                found.append((to_numpy(at)[starts], self._objective(width, weights)))
        return found

    def _starts(self, rows: Array, likely: Array, count: int) -> list[int]:
        """Rows (n, c) whose bounds add the most to the front, each given those before it.

        ``likely`` (n,) is the logarithm of their probability of success.
        """
        # What one adds only falls as the front grows, so the rest of the candidates may wait.
        listed = np.argsort(-self._worth(rows, None) - likely, kind="stable")[: _SHORT * count]
        now, starts = self, list[int]()
        for _ in range(min(count, len(rows))):
            worth = now._worth(rows[listed], None) + likely[listed]
            worth[np.isin(listed, starts)] = -np.inf
            starts.append(int(listed[np.argmax(worth)]))
            now = replace(now, front=now.front.with_values(self._units(rows[starts[-1:]])))
        return starts

    def _units(self, rows: Array) -> Array:
        return np.column_stack([self._unit(j)(rows[:, j]) for j in range(len(self.goals))])

    def _worth(self, rows: Array, weightings: Array | None) -> Array:
        """What rows (n, c) of bounds are worth, (n,), on a scale on which it can be climbed.

        Without weightings (n, m) that is the logarithm of the gain, since gains become tiny.
        """
        units, m = self._units(rows), len(self.goals)
        if weightings is None:
            scores = self.front.scores(units)
            worth = np.log(np.maximum(scores, 0.0) + _LEAST) + np.minimum(scores, 0.0) / _FLAT
        else:
            ideal = self.front.values.max(axis=0, initial=0.0)
            worth = chebyshev(units, weightings, ideal) / _FLAT
        for i, limit in enumerate(self.limits):
            column = m + 2 * i
            worth = worth + limit.log_probability(rows[:, column], rows[:, column + 1])
        return worth

    def _objective(self, width: float, weightings: Array | None) -> Objective:
        """`_worth` at points (s, d) and its gradient, by the chain rule."""

        def objective(at: Array) -> tuple[Array, Array]:
            columns = [goal.upper(at, width) for goal in self.goals]
            for limit in self.limits:
                mean, upper = limit.posterior.upper(at, 0.0), limit.posterior.upper(at, 1.0)
                columns += [mean, (upper[0] - mean[0], upper[1] - mean[1])]
            rows, slope = np.column_stack([column for column, _ in columns]), np.zeros_like(at)
            steps = _STEP * np.eye(rows.shape[1])[:, None, :]
            # All neighbours at once: a call costs more than the arithmetic in it.
            near = np.vstack([rows, *(rows + steps), *(rows - steps)])
            each = None if weightings is None else np.tile(weightings, (len(near) // len(at), 1))
            worth, *sides = self._worth(near, each).reshape(-1, len(at))
            for j, (_, rise) in enumerate(columns):
                change = sides[j] - sides[len(columns) + j]
                slope += (change / (2.0 * _STEP))[:, None] * rise
            success = self.goals[0].success
            if success is None:
                return worth, slope
            chance, rise = success.climbed(np.ones(len(at)), np.zeros_like(at), at)
            return worth + np.log(chance + _NEVER), slope + rise / (chance + _NEVER)[:, None]

        return objective


@dataclass(frozen=True)
class _Views:
    """What candidates look like to all outcomes: (n, m) for goals, (n, 2l) for limits."""

    means: Array
    deviations: Array
    limits: Array  # mean and deviation of each limited outcome in turn

    @staticmethod
    def at(posteriors: Posteriors, at: Array) -> _Views:
        """Of the candidates (n, d)."""
        goals = [goal.belief(at) for goal in posteriors.goals]
        limited = [limit.posterior.belief(at) for limit in posteriors.limits]
        columns = [column for belief in limited for column in (belief.mean, belief.std)]
        return _Views(
            np.column_stack([belief.mean for belief in goals]),
            np.column_stack([belief.std for belief in goals]),
            np.column_stack(columns) if columns else np.zeros((len(at), 0)),
        )

    def bounds(self, width: float) -> Array:
        """μ + width·σ of the goals, then the columns of the limits, (n, c)."""
        return np.column_stack([self.means + width * self.deviations, self.limits])
