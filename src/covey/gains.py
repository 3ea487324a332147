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
from covey.candidates import FiniteSet, candidate_set, excluded
from covey.diagnostics import information_gain
from covey.errors import StrategyError, several
from covey.gp import Posterior
from covey.history import History
from covey.learn import Recipe, understand

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
            than that.
        improved: by how much the best got better in the last three batches (None: fewer).
        stop: whether the chance is below 5 % and the last three batches improved by less than that.
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
            yield (
                f"A batch of {most.size} is expected to gain {most.gain:.3g}, to {_about(most)}; "
                "smaller ones clearly less."
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
        yield (
            "It is time to stop, or to change the space."
            if self.stop
            else "Going on is worth it."
            if self.chance >= _UNLIKELY
            else "The model expects little more, but the last batches still improved: go on."
        )

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
        StrategyError: Outcomes have names: gains are foretold for one plain value.
    """
    if recipe.outcomes is not None:
        raise StrategyError(
            "advice is about one plain value, and this study has outcomes by name; study.front and "
            "the report card show what each batch has added."
        )
    posterior = understand(history, recipe, _rng(history, recipe), waiting=False)
    most = left_in(history, recipe, request)
    sizes = (replace(request, k=k) for k in sizes_up_to(most))
    batches = [choose(history, recipe, one, None).points for one in sizes]
    gains = expected_gains(posterior, history, recipe, batches)
    least = _worth(posterior) if worth is None else worth
    chance = chance_of_more(posterior, history, recipe, request, least)
    improved = _improvement(history, recipe)
    enough = next(gain.size for gain in gains if gain.share >= _ENOUGH)
    still = improved is not None and improved >= least
    return Advice(gains, enough, least, chance, improved, chance < _UNLIKELY and not still)


def checked_worth(worth: object) -> float | None:
    """A gain that counts, in the user's units, or None."""
    if worth is None:
        return None
    number = isinstance(worth, int | float | np.number) and not isinstance(worth, bool)
    if not number or not 0.0 < float(worth) < np.inf:  # type: ignore[arg-type]
        raise StrategyError(
            f"worth is the least gain that counts, a number > 0 in the units of your results, or "
            f"None for 1 % of their range; got {worth!r}."
        )
    return float(worth)  # type: ignore[arg-type]


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
    gains: list[Gain] = []
    for points in batches:
        at = np.vstack([known, recipe.space.encode(points)])
        belief, new = posterior.belief(at), np.arange(len(known), len(at))
        draws = posterior.expected(belief.draw(_rng(history, recipe), _DRAWS).ravel())
        values = draws.reshape(_DRAWS, len(at))
        if belief.weight is not None:  # a trial that fails gains nothing
            fails = _rng(history, recipe).random((_DRAWS, len(new))) > belief.weight[new]
            values[:, len(known) :][fails] = -np.inf
        before, after = values[:, : len(known)].max(axis=1), values.max(axis=1)
        least = gains[-1].gain if gains else 0.0
        gain = max(least, float((after - before).mean()))
        best = recipe.sign * (float(before.mean()) + gain)
        gains.append(Gain(len(points), best, gain, 0.0, information_gain(belief, new.tolist())))
    most = gains[-1].gain
    return tuple(replace(g, share=g.gain / most if most > 0.0 else 1.0) for g in gains)


def chance_of_more(
    posterior: Posterior, history: History, recipe: Recipe, request: Request, worth: float
) -> float:
    """P(max f over the space > max f over the told points + worth), by joint draws."""
    rng = _rng(history, recipe)
    where = candidate_set(recipe.space, request.fixed, excluded(history, recipe.seed))
    known = posterior.belief(posterior.data.at)
    found = where.promising(1, replace(posterior, known=(known.mean, known.std)), rng).at
    belief = posterior.belief(found)
    upper = belief.mean + 3.0 * belief.std
    best = np.argsort(-upper, kind="stable")[:_ANYWHERE]
    told = _known(posterior, history, recipe, pending=False)
    at = np.vstack([told, found[best]])
    draws = posterior.belief(at).draw(rng, _DRAWS // 4)
    values = posterior.expected(draws.ravel()).reshape(draws.shape)
    more = values[:, len(told) :].max(axis=1) - values[:, : len(told)].max(axis=1)
    return float((more > worth).mean())


def _rng(history: History, recipe: Recipe) -> np.random.Generator:
    return np.random.default_rng([recipe.seed, history.asked_count])


def _known(
    posterior: Posterior, history: History, recipe: Recipe, *, pending: bool = True
) -> Array:
    """The told points that may be the best, and the points under way, (n, d)."""
    at = posterior.data.at
    mean = posterior.belief(at).mean
    told = at[np.argsort(-mean, kind="stable")[:_TOLD]]
    if not (pending and history.pending):
        return told
    return np.vstack([told, recipe.space.encode([t.point for t in history.pending])])


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
    values = {t.id: recipe.sign * float(t.value) for t in history.counted if t.value is not None}
    before = [value for i, value in values.items() if i not in latest]
    return max(0.0, max(values.values()) - max(before)) if before else None


def _told(history: History, i: int) -> bool:
    return history.trials[i].value is not None
