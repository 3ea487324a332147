r"""What points may turn out to be worth: joint draws of all outcomes, hyper-parameters included.

A set of points A is worth V(A): with one goal the largest f, with m goals the hypervolume of their
values above the reference point r, of points that keep the limits and do not fail. Both are

.. math:: V = c_m E_\lambda \bigl[\max_{x \in A} \min_j (f_j(x) - r_j) / \lambda_j\bigr]^m

for directions λ uniform on the positive part of the unit sphere (Zhang & Golovin 2020), so that a
draw is kept as what it reaches in each direction, and reaches of further points only add to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from covey.arrays import Array
from covey.belief import Belief
from covey.candidates import Exclusions, candidate_set, excluded
from covey.gp import Bound, Posterior, Posteriors
from covey.history import History, Trial
from covey.hypervolume import directions, nondominated, reaches
from covey.learn import (
    Recipe,
    bounds_of,
    reachable_trials,
    understand,
    understand_each,
    understand_several,
)
from covey.outcomes import Outcomes, complete
from covey.policies import counting
from covey.space.covering import reachable

_SAMPLES = 16  # draws of the hyper-parameters: the most probable ones alone are too sure
_FEW = 300  # results up to which they are drawn; from more they are known well, and take long
_TOLD = 32  # told points of highest mean that may be the best: with noise it is not known which
_UNLIKELY = 0.05  # probability of counting below which a candidate is not looked at
_WIDTH = 3.0  # of the upper bounds that candidates are picked by


@dataclass(frozen=True)
class Outlook:
    """The posteriors of all outcomes, what is to be beaten, and where.

    ``told_at`` (t, d) are told points that count and may be the best, ``open_at`` (p, d) those
    under way. Values are in units of ``span`` above ``worst``, (m,) each; with one goal span is 1
    and worst 0.
    """

    recipe: Recipe
    history: History
    goals: tuple[Posterior, ...]
    limits: tuple[Bound, ...]
    worst: Array
    span: Array
    told_at: Array
    open_at: Array
    least: float  # what is reached without any point, in every direction
    search: Posterior | Posteriors  # that candidates are looked for by

    @property
    def known_at(self) -> Array:
        """Told points and points under way, (t + p, d)."""
        return np.vstack([self.told_at, self.open_at])

    @property
    def sign(self) -> float:
        """Turns values of the only goal into something to maximise, and back."""
        return self.recipe.sign

    def rng(self) -> np.random.Generator:
        """The same random numbers for the same log."""
        return np.random.default_rng([self.recipe.seed, self.history.asked_count])

    @cached_property
    def directions(self) -> Array:
        """λ, (l, m)."""
        return directions(len(self.goals))

    def beliefs(self, at: Array) -> tuple[tuple[Belief, ...], tuple[Belief, ...]]:
        """The belief about every goal, and about the outcome of every limit, at (n, d)."""
        goals = tuple(goal.belief(at) for goal in self.goals)
        return goals, tuple(limit.posterior.belief(at) for limit in self.limits)

    def drawn(self, at: Array, draws: int, *, together: bool = False) -> Array:
        """Joint draws (draws, n, m) of the goals at the points; -∞ where a point does not count.

        The first points are those told, whose values are known to count. Whether a trial fails is
        drawn for each point, or ``together`` by one number for all points of a draw: what is not
        known is where trials fail, and of hundreds of points in doubt one would succeed if each
        had a chance of its own.
        """
        rng, (goals, limits) = self.rng(), self.beliefs(at)
        values = np.empty((draws, len(at), len(goals)))
        for j, (goal, belief) in enumerate(zip(self.goals, goals, strict=True)):
            drawn = goal.expected(belief.draw(rng, draws).ravel()).reshape(draws, len(at))
            values[:, :, j] = (drawn - self.worst[j]) / self.span[j]
        out = np.zeros((draws, len(at)), dtype=bool)
        for limit, belief in zip(self.limits, limits, strict=True):
            passed = belief.draw(rng, draws)
            out |= (passed < limit.level) if limit.above else (passed > limit.level)
        weight = goals[0].weight
        if weight is not None:
            out |= rng.random((draws, 1 if together else len(at))) > weight
        out[:, : len(self.told_at)] = False
        values[out] = -np.inf
        return values

    def reached(self, values: Array) -> Array:
        """What draws (draws, n, m) reach in each direction, (draws, l)."""
        return reaches(values, self.directions, self.least)

    def worth(self, reached: Array) -> Array:
        """V of what is reached (..., l), in the units of the outcomes: (...)."""
        m = len(self.goals)
        share = math.pi ** (m / 2) / (2**m * math.gamma(m / 2 + 1)) * float(self.span.prod())
        return np.asarray(share * np.power(reached, m).mean(axis=-1))

    def worth_of(self, values: Array) -> float:
        """V of known values (n, m) of the goals, to maximise, in the units of the outcomes."""
        return float(self.worth(self.reached(self._units(values)[None]))[0])

    def candidates(self, fixed: Mapping[str, Any], most: int) -> Array:
        """Points whose upper bounds add the most to what is known, at most so many, (n, d)."""
        where = candidate_set(self.recipe.space, fixed, excluded(self.history, self.recipe.seed))
        at = where.promising(1, self.search, self.rng()).at
        goals, limits = self.beliefs(at)
        upper = np.column_stack(
            [
                goal.outcome(belief.mean + _WIDTH * belief.std)
                for goal, belief in zip(self.goals, goals, strict=True)
            ]
        )
        likely = np.zeros(len(at))
        for limit, belief in zip(self.limits, limits, strict=True):
            likely += limit.log_probability(belief.mean, belief.std)
        kept = likely > math.log(_UNLIKELY)
        if goals[0].weight is not None:
            kept &= goals[0].weight > _UNLIKELY
        means = np.column_stack([goal.predict(self.known_at)[0] for goal in self.goals])
        before = self.reached(self._units(means)[None])[0]
        reached = reaches(self._units(upper)[:, None], self.directions, self.least)
        more = self.worth(np.maximum(reached, before)) if len(before) > 1 else reached[:, 0]
        order = np.argsort(-np.where(kept, more, -np.inf), kind="stable")
        return np.asarray(self._apart(at[order])[:most])

    def _apart(self, at: Array) -> Array:
        """The first of the points (n, d) in each cell as large as the resolution, in order.

        Candidates crowd around the best known points, where one stands for all.
        """
        cell = self.recipe.space.resolution(self.recipe.alike)
        if not (cell > 0.0).all():
            return at
        first = np.unique(np.floor(at / cell), axis=0, return_index=True)[1]
        return np.asarray(at[np.sort(first)])

    def _units(self, values: Array) -> Array:
        return np.asarray((values - self.worst) / self.span)


def outlook(history: History, recipe: Recipe) -> Outlook:
    """What is known, by hyper-parameters drawn from what is known of them, and is to be beaten."""
    few = len(history.counted) <= _FEW and not recipe.gp.samples
    drawn = replace(recipe, gp=replace(recipe.gp, samples=_SAMPLES)) if few else recipe
    if not recipe.outcomes.single:
        return _of_several(history, recipe, drawn)
    drawn = drawn.of(recipe.outcomes.only)
    rng = np.random.default_rng([recipe.seed, history.asked_count])
    posterior = understand(history, drawn, rng, waiting=False)
    told = posterior.data.at[reachable(recipe.space, posterior.data.at)]
    belief = posterior.belief(posterior.data.at)
    return Outlook(
        drawn,
        history,
        goals=(posterior,),
        limits=(),
        worst=np.zeros(1),
        span=np.ones(1),
        told_at=_leading(told, (posterior,)),
        open_at=_under_way(history, recipe),
        least=-np.inf if len(told) else _most_expected(posterior, recipe),
        search=replace(posterior, known=(belief.mean, belief.std)),
    )


def _of_several(history: History, recipe: Recipe, drawn: Recipe) -> Outlook:
    """With the reference point and the candidates of an ask; one goal is measured as it stands."""
    outcomes = recipe.outcomes.in_order
    drawn = replace(drawn, outcomes=outcomes)
    rng = np.random.default_rng([recipe.seed, history.asked_count])
    search = understand_several(history, recipe, rng)
    each = understand_each(history, drawn, waiting=False)
    goals = tuple(each[name] for name in outcomes.goals)
    trials = reachable_trials(recipe.space, complete(history, outcomes))
    at = recipe.space.encode([trial.point for trial in trials])
    told = at[np.unique(at, axis=0, return_index=True)[1]] if trials else at
    alone = len(goals) == 1
    lowest = float(goals[0].outcome(goals[0].data.values.min(keepdims=True))[0])
    return Outlook(
        drawn,
        history,
        goals=goals,
        limits=bounds_of(each, drawn),
        worst=np.zeros(1) if alone else search.scale.low,
        span=np.ones(1) if alone else search.scale.span,
        told_at=_leading(told, goals),
        open_at=_under_way(history, recipe),
        least=0.0 if not alone else -np.inf if len(told) else lowest,
        search=search,
    )


def _leading(at: Array, goals: Sequence[Posterior]) -> Array:
    """The points that no other beats in all means, then those that only these beat, and so on."""
    if len(goals) == 1 or not len(at):
        order = np.argsort(-goals[0].belief(at).mean, kind="stable") if len(at) else slice(0)
        return np.asarray(at[order][:_TOLD])
    means = np.column_stack([goal.belief(at).mean for goal in goals])
    left, picked = np.arange(len(at)), np.zeros(0, dtype=np.intp)
    while len(left) and len(picked) < _TOLD:
        first = nondominated(means[left])
        picked, left = np.append(picked, left[first]), left[~first]
    return np.asarray(at[picked])


def _under_way(history: History, recipe: Recipe) -> Array:
    """Points that were asked for, or of which an outcome is still to come, (p, d)."""
    points = [trial.point for trial in history.trials if _waits(trial, recipe.outcomes)]
    return recipe.space.encode(points) if points else np.zeros((0, recipe.space.width))


def _waits(trial: Trial, outcomes: Outcomes) -> bool:
    told = trial.status == "told" and not trial.excluded
    return trial.status == "pending" or (told and bool(outcomes.lacks(trial)))


def _most_expected(posterior: Posterior, recipe: Recipe) -> float:
    """The largest mean in the space, in units of the outcome, to maximise.

    If an extension left all told points outside, the point where that is would be the one to use.
    """
    where = candidate_set(recipe.space, {}, Exclusions((), recipe.seed, 0))
    at = where.promising(1, posterior, np.random.default_rng(recipe.seed)).at
    belief = posterior.belief(at)
    mean = posterior.moments(belief.mean, belief.std)[0]
    return float(mean[counting(belief)].max())
