"""The method on one page: `propose`, from a history to the next batch.

history -> observations -> fit -> posterior -> candidates -> belief -> strategy -> points
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from covey.arrays import Array, close_to, to_numpy
from covey.baselines import Sobol
from covey.belief import Belief, Beliefs
from covey.candidates import (
    Candidates,
    CandidateSet,
    Exclusions,
    FiniteSet,
    candidate_set,
    excluded,
)
from covey.design import covering, even, most_candidates
from covey.diagnostics import Diagnostics, explain
from covey.earlier import counts_of
from covey.errors import StrategyError
from covey.gp import Model, Posterior, Posteriors, Recall, success
from covey.history import Asked, History, Point
from covey.hypervolume import EXACT
from covey.large.budget import Resources, TimeLimit, thin
from covey.learn import Recipe, understand, understand_several
from covey.plates.choosing import (
    Draft,
    PlateOrder,
    by_spread,
    by_upper_bounds,
    choose,
    drafted,
    filled,
    offer_of,
)
from covey.plates.layout import Layout
from covey.plates.offering import at_each_level, levels_to_try
from covey.policies import counting
from covey.selection import (
    Selection,
    Strategy,
    TimeLimited,
    Waits,
    checked_selection,
    crowded,
    laxer,
)
from covey.space import Pool, Space
from covey.space.covering import reachable

_log = logging.getLogger("covey")
_STANDS = "stands for candidates that no other point is near"
_TOO_FEW = "the results so far are too few for a model, or all equal"


class BeliefMaker(Protocol):
    """Makes the belief of a posterior about candidates; another may do it on other machines."""

    def __call__(
        self,
        posterior: Posterior | Posteriors,
        candidates: Candidates,
        round: int,
        use: Resources,
        /,
    ) -> Belief:
        """The belief in this round, within these resources."""
        ...


def believe(
    posterior: Posterior | Posteriors, candidates: Candidates, round: int, use: Resources
) -> Belief:
    """The belief, worked out in this process, on the device of these resources.

    Its coordinates stay on the host, where a strategy looks for copies.
    """
    belief = posterior.belief(use.place(candidates.at), round, use.bytes)
    return replace(belief, at=candidates.at)


@dataclass(frozen=True)
class Request:
    """One ask: k points by a strategy, with fixed parameters and limits on the machine.

    ``believe`` makes the belief that the strategy chooses from.
    """

    k: int
    strategy: Strategy
    name: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    resources: Resources = field(default_factory=Resources)
    plates: PlateOrder | None = None  # then there are as many points as its plates have room for
    believe: BeliefMaker = believe


@dataclass(frozen=True)
class Proposal:
    """The next batch, the hyper-parameters that it was chosen with, and its diagnostics."""

    points: list[dict[str, Any]]
    models: tuple[Model, ...]
    diagnostics: Diagnostics
    plates: dict[str, Any] | None = None  # which wells they stand in

    def as_event(self, strategy: str, fixed: dict[str, Any] | None = None) -> Asked:
        """The batch as a log holds it; without a model the strategy's name is reason enough."""
        models = tuple(model.describe() for model in self.models) or None
        reasons = self.diagnostics.reasons if models is not None else ()
        nats = self.diagnostics.nats if reasons else ()
        points = tuple(map(Point, self.points))
        made = Asked(points, strategy, models, fixed, reasons=reasons, nats=nats)
        return made if self.plates is None else replace(made, plates=self.plates)


Proposer = Callable[[History, Recipe, Request, Recall | None], Proposal]
"""The type of `propose`; another function may do the same in another process."""


def propose(
    history: History, recipe: Recipe, request: Request, recall: Recall | None = None
) -> Proposal:
    """The next k points: a function of the log, the recipe and the request alone.

    ``recall`` of the last proposal saves time and changes nothing. Without enough results, or for a
    strategy that needs no model, the points are a design. Else: fit, make candidates, form the
    belief about them, choose (MATH 0).
    """
    if request.plates is not None:
        return propose_plates(history, recipe, request, request.plates, recall)
    rng = np.random.default_rng([recipe.seed, history.asked_count])
    still = standing(history, recipe.seed)
    where = candidate_set(recipe.space, request.fixed, excluded(history, recipe.seed))
    if not request.strategy.needs_model or not ready(history, recipe, request.strategy):
        return _without_model(where, history, recipe, request, rng)
    recall, use, k = Recall() if recall is None else recall, request.resources, request.k
    watch, limit = Stopwatch(), TimeLimit(use)
    with watch.timing("fit"):
        posterior = learnt(history, recipe, still, recall)
    with watch.timing("candidates"):
        every = where.promising(k, posterior, still)
        believing = partial(
            belief_about,
            posterior=posterior,
            history=history,
            recipe=recipe,
            request=request,
        )
        climbed = not isinstance(where, FiniteSet)
        rehearsal = partial(_rehearse, believing=believing, strategy=request.strategy, k=k)
        rng = rng if history.pending else still
        candidates = limit.thinned(every, k, rehearsal, rng, climbed=climbed)
    with watch.timing("belief"):
        belief = believing(candidates)
    with watch.timing("choose"):
        chosen = limit.apply(request.strategy).choose(belief, k, rng)
        selection = checked_selection(chosen, k, len(belief))
    _log.info("chose %d points by %s: %s", k, request.name, watch.seconds)
    outcome = None
    if isinstance(posterior, Posterior) and not history.pending and not history.failed:
        outcome = posterior.bound
    account = explain(belief, selection, request.name, outcome, watch.seconds)
    weights, influence = _counted(recipe, history, posterior.models)
    account = replace(
        account,
        left_out=len(every) - len(candidates),
        penalties=posterior.data.penalties,
        reasons=with_neighbours(belief, selection, history, recipe),
        note=noted(recipe),
        prior=weights,
        influence=influence,
    )
    return Proposal(candidates.points(selection.indices), posterior.models, account)


def standing(history: History, seed: int) -> np.random.Generator:
    """Make the random numbers of fit and candidates: they stay until something is told.

    So asks with nothing told in between look at the same candidates, less those pending, and are
    as one ask for all of them.
    """
    pending = sum(trial.origin == "asked" for trial in history.pending)
    return np.random.default_rng([seed, history.asked_count - pending])


def _rehearse(
    candidates: Candidates, believing: Callable[[Candidates], Belief], strategy: Strategy, k: int
) -> None:
    """Form a belief and choose from it, unless the strategy keeps to a time limit by itself."""
    belief = believing(candidates)
    if not isinstance(strategy, TimeLimited):
        strategy.choose(belief, k, np.random.default_rng(0))


def _counted(
    recipe: Recipe, history: History, models: tuple[Model, ...]
) -> tuple[dict[str, float] | None, dict[str, float] | None]:
    """The weight and the influence of each earlier study; None if there are none."""
    if not recipe.earlier:
        return None, None
    counts = counts_of(recipe, history, [model.describe() for model in models])
    weights = {name: count.weight for name, count in counts.items()}
    return weights, {name: count.influence for name, count in counts.items()}


def learnt(
    history: History, recipe: Recipe, rng: np.random.Generator, recall: Recall
) -> Posterior | Posteriors:
    """What the results say: about one outcome, or about each of several."""
    outcomes = recipe.outcomes
    if not outcomes.single:
        return understand_several(history, recipe, rng)
    posterior = understand(history, recipe.of(outcomes.only), rng, recall=recall)
    label = outcomes.label(outcomes.only)
    models = tuple(replace(model, outcome=label) for model in posterior.models)
    return replace(posterior, known=recall.told(posterior), models=models)


def noted(recipe: Recipe) -> str:
    """What a user should know of how several goals are traded off; empty if there is nothing."""
    goals = recipe.outcomes.goals
    if len(goals) <= EXACT:
        return ""
    return (
        f"with {len(goals)} goals each point is chosen at a weighting of them drawn at random; "
        f"what it adds to the front is computed for up to {EXACT}"
    )


def belief_about(
    candidates: Candidates,
    posterior: Posterior | Posteriors,
    history: History,
    recipe: Recipe,
    request: Request,
    shared: Collection[str] = (),
) -> Belief:
    """The belief about candidates as a strategy takes it: made, then `resolved` and `compared`.

    ``shared`` parameters are held like what the request fixes.
    """
    held = {*request.fixed, *shared}
    belief = request.believe(posterior, candidates, history.rounds + 1, request.resources)
    belief = resolved(belief, history, recipe, held, posterior.seen_at)
    if belief.under_way is not None and isinstance(posterior, Posterior):
        belief = replace(belief, awaited=posterior.belief(belief.under_way).mean)
    return compared(belief, posterior, recipe.space)


def resolved(
    belief: Belief,
    history: History,
    recipe: Recipe,
    fixed: Collection[str] = (),
    seen_at: Array | None = None,
) -> Belief:
    """The belief with what it takes to tell copies: the resolution, and points that are not new.

    Its weights become shares of the largest. ``seen_at`` (m, d) are those whose values are known.
    Rows of a pool are not polished, so there they play no part.
    """
    under_way = [t.point for t in history.pending]
    weight = belief.weight
    if weight is not None and not isinstance(belief, Beliefs):
        # Of the largest: if all are as likely to fail, that is no reason to prefer any.
        weight = weight / max(float(weight.max()), 1e-300)
    return replace(
        belief,
        weight=weight,
        resolution=recipe.space.resolution(recipe.alike),
        levels=recipe.space.levels(fixed),
        absent_at=recipe.space.absent_at,
        under_way=recipe.space.encode(under_way) if under_way else None,
        seen_at=None if isinstance(recipe.space, Pool) else seen_at,
    )


def compared(belief: Belief, posterior: Posterior | Posteriors, space: Space | Pool) -> Belief:
    """The belief, its best one among known points that may be proposed; see `reachable`.

    If there is none of them, the best to beat is what the model expects most of a candidate.
    """
    if isinstance(posterior, Posteriors):
        return belief
    kept = reachable(space, posterior.data.at)
    if kept.all():
        return belief
    if not kept.any():
        best = float(belief.mean[counting(belief)].max())
        return replace(belief, best=best, told=None, seen_at=None)
    told = None if belief.told is None else (belief.told[0][kept], belief.told[1][kept])
    seen_at = None if belief.seen_at is None else belief.seen_at[kept]
    return replace(
        belief, best=float(posterior.data.values[kept].max()), told=told, seen_at=seen_at
    )


def with_neighbours(
    belief: Belief, selection: Selection, history: History, recipe: Recipe
) -> tuple[str, ...]:
    """The reasons of a batch, with the trials that its points are copies of, if they are any."""
    if not selection.reasons or belief.resolution is None:
        return selection.reasons
    at = to_numpy(belief.at[list(selection.indices)])
    near = [p for p in (belief.seen_at, belief.under_way) if p is not None]
    known = close_to(at, np.vstack(near), belief.resolution) if near else np.zeros(len(at), bool)
    said = list(selection.reasons)
    if known.any():
        trials = [t for t in history.trials if t.status in ("told", "pending", "failed")]
        places = recipe.space.encode([t.point for t in trials])
        for b in np.flatnonzero(known).tolist():
            beside = np.flatnonzero(close_to(places, at[[b]], belief.resolution))
            if len(beside):
                nearest = np.abs(places[beside] - at[b]).max(axis=1).argmin()
                said[b] += f"; within the resolution of trial {trials[beside[nearest]].id}"
    for b in range(1, len(at)):
        if close_to(at[:b], at[[b]], belief.resolution).any():
            said[b] += "; a copy of a point before it, as few others are left"
    return tuple(said)


def ready(history: History, recipe: Recipe, strategy: Strategy) -> bool:
    """Whether every outcome has results, and one of the goals as many as the strategy waits for.

    Of one goal only, since another may well be the same everywhere so far.
    """
    outcomes, width = recipe.outcomes, recipe.space.width
    each = {name: history.of_outcome(name) for name in outcomes.names}
    whole = any(not trial.excluded and not outcomes.lacks(trial) for trial in history.told)
    some = whole and all(own.counted for own in each.values())
    return some and any(_enough(each[name], width, strategy) for name in outcomes.goals)


def _enough(history: History, width: int, strategy: Strategy) -> bool:
    """Whether there are enough results for a model: any, or what the strategy `Waits` for.

    Failures that are modelled say as much as results, but no more than there are results.
    """
    values = np.array([t.value for t in history.counted], dtype=float)
    if len(history.failed) >= success.ENOUGH:
        values = np.resize(values, len(values) + min(len(values), len(history.failed)))
    if not len(values) or not isinstance(strategy, Waits):
        return len(values) > 0
    return strategy.ready(values, width)


def _counting(history: History) -> bool:
    """Whether there is any result that counts."""
    return any(not trial.excluded for trial in history.told)


def _without_model(
    where: CandidateSet,
    history: History,
    recipe: Recipe,
    request: Request,
    rng: np.random.Generator,
) -> Proposal:
    """A batch by a strategy that needs no model, or an initial design for one that does.

    The design of a continuous space is its Sobol sequence, less copies. In a finite set the first
    batch covers the candidates (`covering`); if its results are not enough, later are random.
    """
    k, left_out = request.k, 0
    if request.strategy.needs_model and isinstance(where, FiniteSet) and _counting(history):
        candidates = _unlike_pending(where.scattered(k, rng), history, recipe, k)
        drawn = rng.choice(len(candidates), size=k, replace=False)
        selection = Selection(tuple(int(i) for i in drawn), reasons=(f"at random: {_TOO_FEW}",) * k)
    elif request.strategy.needs_model and isinstance(where, FiniteSet):
        candidates = where.scattered(k, rng)
        offered = len(candidates)
        candidates = thin(candidates, most_candidates(k), rng)
        candidates = _unlike_pending(candidates, history, recipe, k)
        left_out = offered - len(candidates)
        under_way = recipe.space.encode([trial.point for trial in history.pending])
        picks = covering(candidates.at, k, rng, under_way)
        selection = Selection(tuple(picks), reasons=(f"{_STANDS}: {_TOO_FEW}",) * k)
    elif request.strategy.needs_model:
        candidates, picks = _design(where, history, recipe, k, rng)
        selection = Selection(tuple(picks), reasons=(f"fills the space: {_TOO_FEW}",) * k)
    else:
        ordered = isinstance(request.strategy, Sobol)
        candidates = where.in_order(k) if ordered else where.scattered(k, rng)
        nothing = Belief(candidates.at, (), best=0.0)
        chosen = request.strategy.choose(nothing, k, rng)
        selection = checked_selection(chosen, k, len(candidates))
    _log.info("chose %d points by %s, without a model", k, request.name)
    account = Diagnostics(request.name, k, len(candidates), seconds={}, left_out=left_out)
    account = replace(account, reasons=selection.reasons)
    return Proposal(candidates.points(selection.indices), (), account)


def _design(
    where: CandidateSet, history: History, recipe: Recipe, k: int, rng: np.random.Generator
) -> tuple[Candidates, list[int]]:
    """The next k points of the Sobol sequence, and fresh points in the place of copies."""
    candidates = where.in_order(k)
    picks = _apart(candidates, history, recipe, k)
    if len(picks) == k:
        return candidates, picks
    candidates = candidates.followed_by(where.scattered(k, rng))
    return candidates, _apart(candidates, history, recipe, k, copies=True)


def _apart(
    candidates: Candidates, history: History, recipe: Recipe, k: int, *, copies: bool = False
) -> list[int]:
    """The first candidates, at most k, that are no copies of each other or of known points.

    With ``copies``, k of them: where nothing else is left, as `laxer` allows.
    """
    known = [trial.point for trial in history.told]
    seen_at = recipe.space.encode(known) if known else None
    belief = resolved(Belief(candidates.at, (), best=0.0), history, recipe, seen_at=seen_at)
    picks: list[int] = []
    taken = crowded(belief, picks)
    while len(picks) < k:
        if not taken.all():
            picks.append(int(np.argmin(taken)))
            taken |= belief.copies_of(belief.at[picks[-1:]])
            taken[picks[-1]] = True
        elif copies and belief.resolution is not None:
            belief = laxer(belief)
            taken = crowded(belief, picks)
        else:
            break
    return picks


def _unlike_pending(candidates: Candidates, history: History, recipe: Recipe, k: int) -> Candidates:
    """Those that are no copies of points under way, if k are left."""
    if not history.pending:
        return candidates
    belief = resolved(Belief(candidates.at, (), best=0.0), history, recipe)
    free = np.flatnonzero(~crowded(belief, []))
    return candidates.some(free) if len(free) >= k else candidates


# Plates: a layout says which points may stand together.


def propose_plates(
    history: History,
    recipe: Recipe,
    request: Request,
    order: PlateOrder,
    recall: Recall | None = None,
) -> Proposal:
    """The points of the next plates, and the wells that they stand in.

    Where the layout has no say in the points, they are those of a plain ask for as many.
    """
    layout, space = order.layout.against(recipe.space), recipe.space
    drafts = drafted(order, recipe.seed, len(history.plates.records))
    plain = replace(request, k=sum(draft.points for draft in drafts), plates=None)
    if order.constrained:
        made = _under_layout(history, recipe, replace(plain, plates=order), drafts, recall)
    else:
        made = propose(history, recipe, plain, recall)
    at = space.encode(made.points)
    for name in layout.shared:  # the same all over a plate or block: nothing to balance
        at[:, space.columns_of(name)] = 0.0
    ends = np.cumsum([draft.points for draft in drafts])
    return replace(made, plates=filled(layout, drafts, np.split(at, ends[:-1])))


def _layout(request: Request) -> Layout:
    if request.plates is None:
        raise StrategyError("this request is for no plates.")
    return request.plates.layout


def _under_layout(
    history: History,
    recipe: Recipe,
    request: Request,
    drafts: Sequence[Draft],
    recall: Recall | None,
) -> Proposal:
    """Points that keep what a layout shares and allows, by model or as a design."""
    rng = np.random.default_rng([recipe.seed, history.asked_count])
    layout, strategy = _layout(request), request.strategy
    posterior = None
    if strategy.needs_model and ready(history, recipe, strategy):
        posterior = learnt(history, recipe, rng, Recall() if recall is None else recall)
    most = max(draft.points for draft in drafts)
    seen = _seen(history, recipe.space)
    candidates = _offered(history, recipe, request, most, posterior, rng)
    offer = offer_of(layout, candidates.at, recipe.space.columns_of, candidates.points)
    if posterior is not None:
        belief = belief_about(candidates, posterior, history, recipe, request, layout.shared)
        rank, why = by_spread(offer, seen, rng, by_upper_bounds), f"chosen by {request.name}"
    else:
        belief = resolved(Belief(candidates.at, (), best=0.0), history, recipe)
        rank = by_spread(offer, seen, rng)
        why = f"fills the space: {_TOO_FEW}" if strategy.needs_model else f"by {request.name}"

    def pick(known: Belief, k: int) -> Sequence[int]:
        if posterior is None and strategy.needs_model:
            return _design_plate(recipe.space, known, k, rng, seen)
        if posterior is None:
            known = Belief(known.at, (), best=0.0)
        return checked_selection(strategy.choose(known, k, rng), k, len(known)).indices

    chosen = choose(offer, layout, drafts, belief, pick, rank)
    indices = [i for picks in chosen.picks for i in picks]
    on_plates = zip(chosen.picks, chosen.reasons, strict=True)
    reasons = tuple(f"{why}{', ' * bool(on)}{on}" for picks, on in on_plates for _ in picks)
    account = Diagnostics(
        request.name,
        len(indices),
        len(candidates),
        seconds={},
        reasons=reasons,
        note=noted(recipe),
    )
    models = posterior.models if posterior is not None else ()
    return Proposal(candidates.points(indices), models, account)


def _seen(history: History, space: Space | Pool, *, pending: bool = False) -> Array:
    """The points (m, d) of trials that were told or failed, and those of pending ones."""
    wanted = ("told", "failed", "pending") if pending else ("told", "failed")
    return space.encode([t.point for t in history.trials if t.status in wanted])


def _design_plate(
    space: Space | Pool, known: Belief, k: int, rng: np.random.Generator, seen: Array
) -> list[int]:
    """Choose k candidates without a model: of a pool those that others are near, else an even set.

    ``seen`` (m, d) are points that are there, beside those under way.
    """
    at = np.asarray(to_numpy(known.at))
    if isinstance(space, Pool):
        return covering(at, k, rng, known.under_way)
    there = seen if known.under_way is None else np.vstack([seen, known.under_way])
    every = np.vstack([there, at])
    values = [every[:, space.columns_of(name)] for name in space.names]
    return [i - len(there) for i in even(values, k, rng, len(there))]


def _offered(
    history: History,
    recipe: Recipe,
    request: Request,
    most: int,
    posterior: Posterior | Posteriors | None,
    rng: np.random.Generator,
) -> Candidates:
    """Candidates at every value of what the layout shares that is worth a try."""
    space, fixed, out = recipe.space, request.fixed, excluded(history, recipe.seed)
    where = candidate_set(space, fixed, out)
    if isinstance(where, FiniteSet):
        return where.everything(request.k)
    names = [name for name in _layout(request).shared if name not in fixed]
    if names and isinstance(space, Space):
        held = partial(_held, space, fixed, out)
        seen = _seen(history, space, pending=True)
        levels, tried = levels_to_try(held, space, names, posterior, rng, seen)
        return at_each_level(held, levels, tried, most, posterior, rng)
    if posterior is None:
        return where.scattered(8 * request.k, rng)
    return where.promising(request.k, posterior, rng)


def _held(
    space: Space, fixed: Mapping[str, Any], out: Exclusions, level: Mapping[str, Any]
) -> CandidateSet:
    return candidate_set(space, {**fixed, **level}, out)


class Stopwatch:
    """Measures the seconds spent in each stage."""

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
