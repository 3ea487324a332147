r"""What a batch of each size is expected to gain, and whether to stop.

Notation: f the objective, to be maximised; D the points told and those under way, S_k the batch
that an ask for k points would choose now. All expectations are over joint draws of the posterior.

.. math:: g_k = E[\max_{D \cup S_k} f] - E[\max_D f]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.arrays import Array
from covey.belief import Belief
from covey.candidates import Exclusions, FiniteSet, candidate_set, excluded
from covey.diagnostics import information_gain
from covey.errors import ExhaustedError, StrategyError, several
from covey.gp import Posterior
from covey.history import History
from covey.learn import Recipe, reachable_trials, understand
from covey.outcomes import history_of_outcome
from covey.policies import counting
from covey.space.extending import reachable

if TYPE_CHECKING:
    from covey.propose import Proposer, Request

_DRAWS = 4096  # for the gain of a batch: a standard error of 1.6 % of the gain's deviation
_TOLD = 32  # told points of highest mean that may be the best: with noise it is not known which
_ANYWHERE = 800  # candidates of highest upper bound that may beat the best
_ENOUGH = 0.85  # share of the largest batch's gain that a smaller one should have
_UNLIKELY = 0.05  # chance of a gain below which to stop
_LATEST = 3  # batches whose improvement is looked at
_WORTH = 0.01  # of the range of the results: a gain that counts, unless said


@dataclass(frozen=True, slots=True)
class Gain:
    """What one size of batch is expected to bring, in the user's units.

    Attributes:
        size: number of points.
        expected_best: the value expected of the best point after the batch.
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
            than that and does not fail; points under way are among them.
        improved: by how much the best got better in the last three batches (None: fewer).
        stop: whether the chance is below 5 %, there were more than three batches, and the last
            three improved by less than that.
    """

    gains: tuple[Gain, ...]
    size: int
    worth: float
    chance: float
    improved: float | None
    stop: bool

    def __str__(self) -> str:
        return "\n".join(self.words())

    def words(self) -> Iterator[str]:
        """Sentences: the size, then whether to stop."""
        most, few = self.gains[-1], next(g for g in self.gains if g.size == self.size)
        if most.gain <= 0.0:
            yield "No batch is expected to gain anything over what is known and under way."
        elif few is most:
            less = "; smaller ones clearly less" if most.size > 1 else ""
            yield (
                f"A batch of {most.size} is expected to gain {most.gain:.3g}, "
                f"to {_about(most)}{less}."
            )
        else:
            yield (
                f"{few.size} of {several(most.size, 'point')} give {few.share:.0%} of what they "
                f"are expected to gain: {few.gain:.3g} of {most.gain:.3g}, to {_about(few)}."
            )
        likely = f"Some point beats the best by more than {self.worth:.3g} with probability"
        yield f"{likely} {self.chance:.2f}, says the model."
        if self.improved is not None:
            yield f"The last {_LATEST} batches improved the best by {self.improved:.3g}."
        if self.stop:
            yield "It is time to stop, or to change the space."
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


def _about(gain: Gain) -> str:
    return f"about {gain.expected_best:.4g}"


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

    Raises:
        StrategyError: There are several goals or limits: gains are foretold for one goal.
    """
    named = recipe.outcomes
    if named is not None and not named.single:
        raise StrategyError(
            "advice is about one goal without limits, and this study has more; study.front and the "
            "report card show what each batch has added."
        )
    if named is not None:  # the batches are those of a study whose goal has no name
        history, recipe = history_of_outcome(history, named.only), recipe.of(named.only)
    posterior = understand(history, recipe, _rng(history, recipe), waiting=False)
    most = left_in(history, recipe, request)
    if most == 0:
        raise ExhaustedError(
            "every point of the space was asked for: there is no batch left.", left=0
        )
    sizes = (replace(request, k=k) for k in sizes_up_to(most))
    batches = [choose(history, recipe, one, None).points for one in sizes]
    gains = expected_gains(posterior, history, recipe, batches)
    least = _worth(posterior) if worth is None else worth
    chance = chance_of_more(posterior, history, recipe, request, least)
    improved = _improvement(history, recipe)
    enough = next(gain.size for gain in gains if gain.share >= _ENOUGH)
    idle = improved is not None and improved < least
    return Advice(gains, enough, least, chance, improved, chance < _UNLIKELY and idle)


def left_in(history: History, recipe: Recipe, request: Request) -> int:
    """The size of the request, or the number of points that a finite space has left."""
    where = candidate_set(recipe.space, request.fixed, excluded(history, recipe.seed))
    return min(request.k, len(where.rows)) if isinstance(where, FiniteSet) else request.k


def expected_gains(
    posterior: Posterior,
    history: History,
    recipe: Recipe,
    batches: Sequence[Sequence[Mapping[str, Any]]],
) -> tuple[Gain, ...]:
    """g_k of each batch, in the user's units.

    A larger batch could hold a smaller one, so a gain is never below that of a smaller size.
    """
    known = _known(posterior, history, recipe)
    told = len(known) - len(history.pending)
    least = _least_known(posterior, recipe, told)
    gains: list[Gain] = []
    without = 0.0
    for points in batches:
        at = np.vstack([known, recipe.space.encode(points)])
        belief, new = posterior.belief(at), range(len(known), len(at))
        values = _drawn(posterior, belief, _rng(history, recipe), _DRAWS)
        if belief.weight is not None:  # a trial that fails gains nothing
            fails = _rng(history, recipe).random(values.shape) > belief.weight
            fails[:, :told] = False
            values[fails] = -np.inf
        before = values[:, : len(known)].max(axis=1, initial=least)
        after = np.maximum(before, values.max(axis=1))
        without = without if gains else float(before.mean())  # one for all sizes
        gain = max(gains[-1].gain if gains else 0.0, float((after - before).mean()))
        best = recipe.sign * (without + gain)
        gains.append(Gain(len(points), best, gain, 0.0, information_gain(belief, new)))
    most = gains[-1].gain
    return tuple(replace(g, share=g.gain / most if most > 0.0 else 1.0) for g in gains)


def _drawn(posterior: Posterior, belief: Belief, rng: np.random.Generator, draws: int) -> Array:
    """Joint draws (draws, n) in outcome units."""
    drawn = belief.draw(rng, draws)
    return posterior.expected(drawn.ravel()).reshape(drawn.shape)


def chance_of_more(
    posterior: Posterior, history: History, recipe: Recipe, request: Request, worth: float
) -> float:
    """P(max f over the space > max f over the told points + worth), by joint draws.

    Points under way are part of the space; where trials may fail, those that do are not.
    """
    rng = _rng(history, recipe)
    where = candidate_set(recipe.space, request.fixed, excluded(history, recipe.seed))
    there = posterior.belief(posterior.data.at)
    found = where.promising(1, replace(posterior, known=(there.mean, there.std)), rng).at
    belief = posterior.belief(found)
    upper = belief.mean + 3.0 * belief.std
    if belief.weight is not None:
        upper = np.where(belief.weight > _UNLIKELY, upper, -np.inf)
    best = np.argsort(-upper, kind="stable")[:_ANYWHERE]
    known = _known(posterior, history, recipe)
    told = len(known) - len(history.pending)
    at = np.vstack([known, found[best]])
    there = posterior.belief(at)
    values = _drawn(posterior, there, rng, _DRAWS // 4)
    if there.weight is not None:
        # One number for all points of a draw: what is not known is where trials fail, and of
        # hundreds of points in doubt one would succeed if each had a chance of its own.
        fails = rng.random((len(values), 1)) > there.weight
        fails[:, :told] = False
        values[fails] = -np.inf
    least = _least_known(posterior, recipe, told)
    more = values[:, told:].max(axis=1) - values[:, :told].max(axis=1, initial=least)
    return float((more > worth).mean())


def _rng(history: History, recipe: Recipe) -> np.random.Generator:
    return np.random.default_rng([recipe.seed, history.asked_count])


def _known(posterior: Posterior, history: History, recipe: Recipe) -> Array:
    """The told points that may be the best, then the points under way, (n, d)."""
    at = posterior.data.at
    told = at[reachable(recipe.space, at)]
    if len(told):
        mean = posterior.belief(told).mean
        told = told[np.argsort(-mean, kind="stable")[:_TOLD]]
    if not history.pending:
        return told
    return np.vstack([told, recipe.space.encode([t.point for t in history.pending])])


def _least_known(posterior: Posterior, recipe: Recipe, told: int) -> float:
    """What is to beat beside the told points that may be proposed, to maximise: nothing.

    If an extension left all of them outside, the largest mean in the space: without a batch the
    point where that is would be the one to use.
    """
    if told:
        return -np.inf
    where = candidate_set(recipe.space, {}, Exclusions((), recipe.seed, 0))
    at = where.promising(1, posterior, np.random.default_rng(recipe.seed)).at
    belief = posterior.belief(at)
    mean = posterior.moments(belief.mean, belief.std)[0]
    return float(mean[counting(belief)].max())


def _worth(posterior: Posterior) -> float:
    """1 % of the range of the results, after penalties were raised."""
    ends = posterior.expected(np.array([posterior.data.values.min(), posterior.data.values.max()]))
    return _WORTH * float(ends[1] - ends[0])


def _improvement(history: History, recipe: Recipe) -> float | None:
    """By how much the best value got better in the last batches that have results."""
    batches = [batch for batch in history.batches if any(_told(history, i) for i in batch.ids)]
    if len(batches) <= _LATEST:
        return None
    latest = {i for batch in batches[-_LATEST:] for i in batch.ids}
    inside = reachable_trials(recipe.space, history.ended)
    values = {t.id: recipe.sign * float(t.value) for t in inside if t.value is not None}
    before = [value for i, value in values.items() if i not in latest]
    return max(0.0, max(values.values()) - max(before)) if before else None


def _told(history: History, i: int) -> bool:
    return history.trials[i].value is not None
