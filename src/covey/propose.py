"""The method on one page: from a history to the next batch.

history -> observations -> fit -> posterior -> candidates -> belief -> strategy -> points
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from covey import dpp
from covey.arrays import Array
from covey.baselines import Sobol
from covey.belief import Belief, Gaussian
from covey.candidates import Field, Listed, Taken, field_of
from covey.diagnostics import Diagnostics, explain
from covey.errors import HistoryError
from covey.gp import (
    GP,
    PRIORS,
    Failures,
    Model,
    Observations,
    Posterior,
    Recall,
    Warp,
    fit_best,
    observe,
    outgrown,
)
from covey.gp.fit import MANY
from covey.history import Asked, History
from covey.kernels import KERNELS, KernelMatrix
from covey.large.budget import FIRST, Haste, Size, thin
from covey.large.lowrank import held_rows
from covey.large.resources import Resources
from covey.log.header import Recipe
from covey.strategies import Selection, Strategy, Waits, checked_selection

_log = logging.getLogger("covey")

RESOLUTION = 0.01  # of a range: points of a batch closer than this in every coordinate are copies


@dataclass(frozen=True)
class Request:
    """What one ask wants."""

    k: int
    strategy: Strategy
    name: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    resources: Resources = field(default_factory=Resources)


@dataclass(frozen=True)
class Proposal:
    """The next batch, the hyper-parameters behind it, and an account of it."""

    points: list[dict[str, Any]]
    models: tuple[Model, ...]
    diagnostics: Diagnostics


Proposer = Callable[[History, Recipe, Request, Recall | None], Proposal]
"""What `propose` is: another may work it out elsewhere."""


def propose(
    history: History, recipe: Recipe, request: Request, recall: Recall | None = None
) -> Proposal:
    """The next k points: a function of the log, the recipe and the request, nothing else.

    What it can ``recall`` of the last proposal makes the next one quicker, and does not change it.
    """
    rng = np.random.default_rng([recipe.seed, history.asked_count])
    where = field_of(recipe.space, request.fixed, taken(history, recipe))
    if not request.strategy.needs_model or not ready(history, recipe, request.strategy):
        return _without_model(where, recipe, request, rng, told=len(history.counted))
    recall, use, k = Recall() if recall is None else recall, request.resources, request.k
    watch, haste = Stopwatch(), Haste(use)
    with watch.timing("fit"):
        posterior = understand(history, recipe, rng, recall=recall)
        posterior = replace(posterior, known=recall.told(posterior))
    with watch.timing("candidates"):
        every = where.promising(k, posterior, rng)
        candidates = haste.thinned(every, Size(len(every), posterior.rows, k, posterior.size), rng)
    with watch.timing("belief"):
        belief = posterior.belief(use.place(candidates.at), history.rounds + 1, use.bytes)
        belief = _resolved(belief, history, recipe)
    with watch.timing("choose"):
        chosen = haste.quicken(request.strategy).choose(belief, k, rng)
        selection = checked_selection(chosen, k, len(belief))
    _log.info("chose %d points by %s: %s", k, request.name, watch.seconds)
    outcome = None if history.pending or history.failed else posterior.bound
    account = explain(belief, selection, request.name, outcome, watch.seconds)
    left_out, penalties = len(every) - len(candidates), posterior.data.penalties
    account = replace(account, left_out=left_out, penalties=penalties)
    return Proposal(candidates.points(selection.indices), posterior.models, account)


def _resolved(belief: Belief, history: History, recipe: Recipe) -> Belief:
    """The belief with what it takes to tell copies: the resolution, and the points under way.

    Columns are shares of a range, so one number does for all: another option of a choice is 1
    away, and another level of an integer more than a hundredth unless there are hundreds.
    """
    under_way = [t.point for t in history.pending]
    share = RESOLUTION if recipe.resolution is None else recipe.resolution
    return replace(
        belief,
        resolution=np.full(recipe.space.width, share),
        levels=recipe.space.levels,
        under_way=recipe.space.encode(under_way) if under_way else None,
    )


def understand(
    history: History,
    recipe: Recipe,
    rng: np.random.Generator,
    *,
    waiting: bool = True,
    recall: Recall | None = None,
) -> Posterior:
    """The model after all that was told; ``waiting``: as a batch is chosen by.

    Then the covariance is also after what is open, and the mean lowered where trials failed.

    What it can ``recall`` of the last model makes this one quicker, and changes nothing else.
    """
    data, models = _standing(history, recipe) or _fitted(history, recipe, rng)
    if data.penalties:
        _log.info("took %d of %d results for penalties", data.penalties, data.looks)
    # A failed point will not be looked at again: to the covariance it is as good as pending, so
    # that the next batch does not crowd around it.
    looked = [t.point for t in (*history.pending, *history.failed)] if waiting else []
    pending = recipe.space.encode(looked) if looked else None
    posterior = (recall or Recall()).condition(models, data, pending)
    if pending is None or not history.failed:
        return posterior
    failed = pending[len(history.pending) :]
    return replace(posterior, failures=Failures.among(data.at, failed, float(data.values.min())))


def _fitted(
    history: History, recipe: Recipe, rng: np.random.Generator
) -> tuple[Observations, tuple[Model, ...]]:
    data, models = fit_best(_views(history, recipe), recipe.gp, rng, _last(history))
    bent = data.warp != Warp()
    return data, tuple(replace(model, bent=bent) for model in models)


def _last(history: History) -> tuple[Model, ...]:
    """The hyper-parameters of the last ask that had some."""
    try:
        return tuple(Model.from_description(model) for model in history.models or ())
    except HistoryError as error:
        places = enumerate(history.events, start=1)
        at = max(n for n, event in places if isinstance(event, Asked) and event.models)
        raise HistoryError(
            f"event {at} of the log cannot be gone on from: {error} It was not written by covey, "
            "or changed since; restore the journal from a copy."
        ) from error


def _standing(history: History, recipe: Recipe) -> tuple[Observations, tuple[Model, ...]] | None:
    """Of many results, the last hyper-parameters for as long as they stand (`gp.outgrown`)."""
    models, gp = _last(history), recipe.gp
    if len(history.counted) <= MANY or len(models) != max(1, gp.samples):
        return None
    before = History(history.events[: _fitted_at(history)])
    if not before.counted:
        return None
    now, then = (observations(h, recipe, bent=models[0].bent) for h in (history, before))
    stand = len(now) > MANY and all(model.suits(gp, now.at.shape[1]) for model in models)
    return (now, models) if stand and not outgrown(now, then) else None


def _fitted_at(history: History) -> int:
    """Place of the ask whose hyper-parameters all later ones have taken over."""
    place = len(history.events)
    for i, event in reversed(list(enumerate(history.events))):
        if isinstance(event, Asked) and event.models is not None:
            if event.models != history.models:
                break
            place = i
    return place


def _views(history: History, recipe: Recipe) -> list[Observations]:
    """The outcomes straight; and bent, where they may be and it makes a difference."""
    results = _results(history, recipe)
    straight = observe(*results)
    bent = observe(*results, warped=_may_bend(recipe))
    return [straight] if bent.warp == Warp() else [bent, straight]


def observations(history: History, recipe: Recipe, *, bent: bool = False) -> Observations:
    """What counts, encoded and turned to maximising; ``bent`` if the recipe allows it."""
    return observe(*_results(history, recipe), warped=bent and _may_bend(recipe))


def _may_bend(recipe: Recipe) -> bool:
    """A noise that was given is in the units of straight outcomes."""
    return recipe.gp.warp and recipe.gp.noise is None


def _results(history: History, recipe: Recipe) -> tuple[Array, Array, Array]:
    """Encoded points (n, d), values to maximise (n,), standard errors (n,), nan where unknown."""
    told = history.counted
    if not told:
        so_far = "nothing has been told yet" if not history.told else "no result told so far counts"
        raise HistoryError(f"{so_far}, so there is no model. Tell at least one value first.")
    values = np.array([recipe.sign * t.value for t in told if t.value is not None])
    sems = np.array([np.nan if t.sem is None else t.sem for t in told])
    return recipe.space.encode([t.point for t in told]), values, sems


def taken(history: History, recipe: Recipe) -> Taken:
    """Nothing pending, failed or told is proposed again; what was cancelled or lost is free."""
    points = [t.point for t in history.trials if t.status not in ("cancelled", "lost")]
    return Taken(points, recipe.seed, history.asked_count)


def ready(history: History, recipe: Recipe, strategy: Strategy) -> bool:
    """Whether there is enough to learn a model from, in the eyes of the strategy."""
    values = np.array([t.value for t in history.counted], dtype=float)
    if not len(values) or not isinstance(strategy, Waits):
        return len(values) > 0
    return strategy.ready(values, recipe.space.width)


def _without_model(
    where: Field, recipe: Recipe, request: Request, rng: np.random.Generator, *, told: int
) -> Proposal:
    """By strategies that need no model; and for the others, a design to learn one from.

    Rows of a finite space are spread out at first. If that told nothing they come at random: the
    most different ones lie at the edges, and what is sought is where the rows are.
    """
    k, left_out = request.k, 0
    if request.strategy.needs_model and isinstance(where, Listed) and told:
        candidates = where.scattered(k, rng)
        drawn = rng.choice(len(candidates), size=k, replace=False)
        selection = Selection(tuple(int(i) for i in drawn))
    elif request.strategy.needs_model and isinstance(where, Listed):
        candidates = where.scattered(k, rng)
        offered = len(candidates)
        candidates = thin(candidates, max(FIRST, 10 * k), rng)
        left_out = offered - len(candidates)
        selection = _spread_out(candidates.at, recipe.gp, k, rng)
    elif request.strategy.needs_model:
        candidates, selection = where.in_order(k), Selection(tuple(range(k)))
    else:
        ordered = isinstance(request.strategy, Sobol)
        candidates = where.in_order(k) if ordered else where.scattered(k, rng)
        nothing = Belief(candidates.at, (), best=0.0)
        chosen = request.strategy.choose(nothing, k, rng)
        selection = checked_selection(chosen, k, len(candidates))
    _log.info("chose %d points by %s, without a model", k, request.name)
    account = Diagnostics(request.name, k, len(candidates), seconds={}, left_out=left_out)
    return Proposal(candidates.points(selection.indices), (), account)


def _spread_out(at: Array, gp: GP, k: int, rng: np.random.Generator) -> Selection:
    """A first batch in a finite space: one point at random, the rest by greedy DPP on the prior."""
    belief = prior_belief(at, gp)
    head = int(rng.integers(len(at)))
    rest = np.flatnonzero(np.arange(len(at)) != head)
    kernel = belief.after_looking_at([head], on=rest).information()
    tail = dpp.maximize(kernel, k - 1) if k > 1 else []
    return Selection((head, *(int(rest[i]) for i in tail)))


def prior_belief(at: Array, gp: GP) -> Belief:
    """What is believed before anything was told: the kernel at the priors' own suggestion."""
    priors = PRIORS[gp.priors](at.shape[1])
    length = float(np.exp(priors.length.start))
    kernel = KERNELS[gp.kernel]((length,) * at.shape[1], 1.0)
    part = Gaussian(
        KernelMatrix(kernel, at), np.zeros(len(at)), held_rows(np.zeros((0, len(at)))), 1e-2
    )
    return Belief(at, (part,), best=0.0)


class Stopwatch:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def timing(self, stage: str) -> Iterator[None]:
        """Add the time spent inside to a stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent
