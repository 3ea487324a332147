"""The method on one page: from a history to the next batch.

history -> observations -> fit -> posterior -> candidates -> belief -> strategy -> points
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from covey import dpp
from covey.arrays import Array
from covey.baselines import Sobol
from covey.belief import Belief, Gaussian
from covey.candidates import Candidates, Field, Listed, Taken, field_of
from covey.diagnostics import Diagnostics, explain
from covey.errors import HistoryError
from covey.gp import (
    GP,
    PRIORS,
    Model,
    Observations,
    Posterior,
    Warp,
    condition,
    fit_best,
    observe,
)
from covey.history import History
from covey.kernels import KERNELS, KernelMatrix
from covey.selection import Selection, checked_selection
from covey.space import Pool, Space
from covey.strategies import Strategy

Goal = Literal["max", "min"]


@dataclass(frozen=True)
class Recipe:
    """Everything about a study that its history does not say."""

    space: Space | Pool
    goal: Goal
    gp: GP
    seed: int

    @property
    def sign(self) -> float:
        """Turns the user's values into something to maximise, and back."""
        return 1.0 if self.goal == "max" else -1.0


@dataclass(frozen=True)
class Request:
    """What one ask wants."""

    k: int
    strategy: Strategy
    name: str
    fixed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Proposal:
    """The next batch, the hyper-parameters behind it, and an account of it."""

    points: list[dict[str, Any]]
    models: tuple[Model, ...]
    diagnostics: Diagnostics


def propose(history: History, recipe: Recipe, request: Request) -> Proposal:
    """The next k points: a function of the log, the recipe and the request, nothing else."""
    rng = np.random.default_rng([recipe.seed, history.asked_count])
    watch = Stopwatch()
    k, strategy, space = request.k, request.strategy, recipe.space
    where = field_of(space, request.fixed, _taken(history, recipe))
    models: tuple[Model, ...] = ()
    outcome: Callable[[Array], Array] | None = None
    if not strategy.needs_model or not history.told:
        candidates, belief, selection = _without_model(where, recipe, request, rng)
    else:
        with watch.timing("fit"):
            posterior = understand(history, recipe, rng)
            models = posterior.models
            outcome = None if history.pending or history.failed else posterior.outcome
        with watch.timing("candidates"):
            candidates = where.promising(k, posterior, rng)
        with watch.timing("belief"):
            told = posterior.belief(posterior.data.at)
            belief = posterior.belief(candidates.at, round=history.rounds + 1)
            belief = replace(belief, told=(told.mean, told.std))
        with watch.timing("choose"):
            selection = checked_selection(strategy.choose(belief, k, rng), k, len(belief))
    points = candidates.points(selection.indices)
    account = explain(belief, selection, request.name, outcome, watch.seconds) if models else None
    bare = Diagnostics(request.name, k, len(candidates), seconds=watch.seconds)
    return Proposal(points, models, account or bare)


def understand(
    history: History, recipe: Recipe, rng: np.random.Generator, *, waiting: bool = True
) -> Posterior:
    """The model after all that was told; ``waiting``: its covariance also after what is open."""
    last = [Model.from_description(model) for model in history.models or ()]
    data, models = fit_best(_views(history, recipe), recipe.gp, rng, last)
    bent = data.warp != Warp()
    models = tuple(replace(model, bent=bent) for model in models)
    # A failed point will not be looked at again, and tells the mean nothing: to the covariance it
    # is as good as pending, so that the next batch does not crowd around it.
    looked = [t.point for t in (*history.pending, *history.failed)] if waiting else []
    return condition(models, data, recipe.space.encode(looked) if looked else None)


def _views(history: History, recipe: Recipe) -> list[Observations]:
    """The outcomes straight; and bent, where they may be and it makes a difference."""
    straight = observations(history, recipe)
    bent = observations(history, recipe, bent=True)
    return [straight] if bent.warp == Warp() else [bent, straight]


def observations(history: History, recipe: Recipe, *, bent: bool = False) -> Observations:
    """What was told, encoded and turned to maximising; ``bent`` if the recipe allows it."""
    told = history.told
    if not told:
        raise HistoryError(
            "nothing has been told yet, so there is no model. Tell at least one value first."
        )
    values = np.array([recipe.sign * t.value for t in told if t.value is not None])
    sems = np.array([np.nan if t.sem is None else t.sem for t in told])
    at = recipe.space.encode([t.point for t in told])
    allowed = recipe.gp.warp and recipe.gp.noise is None
    return observe(at, values, sems, warped=bent and allowed)


def _taken(history: History, recipe: Recipe) -> Taken:
    """Nothing pending, failed or told is proposed again; what was cancelled or lost is free."""
    points = [t.point for t in history.trials if t.status not in ("cancelled", "lost")]
    return Taken(points, recipe.seed, history.asked_count)


def _without_model(
    where: Field, recipe: Recipe, request: Request, rng: np.random.Generator
) -> tuple[Candidates, Belief, Selection]:
    """Strategies that need no model; and for the others, a design to learn one from."""
    k = request.k
    if request.strategy.needs_model and isinstance(where, Listed):
        candidates = where.scattered(k, rng)
        return candidates, _blank(candidates.at), _spread_out(candidates.at, recipe.gp, k, rng)
    if request.strategy.needs_model:
        candidates = where.in_order(k)
        return candidates, _blank(candidates.at), Selection(tuple(range(k)))
    ordered = isinstance(request.strategy, Sobol)
    candidates = where.in_order(k) if ordered else where.scattered(k, rng)
    belief = _blank(candidates.at)
    chosen = request.strategy.choose(belief, k, rng)
    return candidates, belief, checked_selection(chosen, k, len(belief))


def _spread_out(at: Array, gp: GP, k: int, rng: np.random.Generator) -> Selection:
    """A first batch in a finite space: one point at random, the rest by greedy DPP on the prior."""
    belief = prior_belief(at, gp)
    head = int(rng.integers(len(at)))
    rest = np.flatnonzero(np.arange(len(at)) != head)
    kernel = belief.after_looking_at([head]).on(rest).information()
    tail = dpp.maximize(kernel, k - 1) if k > 1 else []
    return Selection((head, *(int(rest[i]) for i in tail)))


def prior_belief(at: Array, gp: GP) -> Belief:
    """What is believed before anything was told: the kernel at the priors' own suggestion."""
    priors = PRIORS[gp.priors](at.shape[1])
    length = float(np.exp(priors.length.start))
    kernel = KERNELS[gp.kernel]((length,) * at.shape[1], 1.0)
    part = Gaussian(KernelMatrix(kernel, at), np.zeros(len(at)), np.zeros((0, len(at))), 1e-2)
    return Belief(at, (part,), best=0.0)


def _blank(at: Array) -> Belief:
    """Candidates about which nothing is believed."""
    return Belief(at, (), best=0.0)


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
