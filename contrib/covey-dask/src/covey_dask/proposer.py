"""Proposer: a study whose batches are worked out by a Dask cluster."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import distributed
import numpy as np
from distributed.scheduler import KilledWorker

from covey import dpp
from covey.arrays import Array, Indices, close_to, to_numpy
from covey.baselines import PureExploration
from covey.belief import Belief
from covey.candidates import Candidates, excluded, remaining_pool
from covey.diagnostics import explain
from covey.errors import CoveyError, SpaceError, StrategyError
from covey.gp import Posterior, Recall
from covey.history import History
from covey.learn import Recipe, understand
from covey.policies import Judgement, enough, in_words, judge, relevant, without_unlikely
from covey.propose import Proposal, Request, Stopwatch, propose, ready, resolved
from covey.selection import Selection, Strategy, checked_selection, is_copy
from covey.space import Pool
from covey.strategies import DPP, Method
from covey_dask import scatter
from covey_dask.coreset import merge
from covey_dask.scatter import Scattered, remote_belief
from covey_dask.workers import Workers

if TYPE_CHECKING:
    from types import TracebackType

    from covey.study import Study

_FEW = 4096  # rows of a region that tell whether its kernel is of low rank (our choice)
_TRIES = 4  # of an ask while workers die under it
_PATIENCE = 60  # seconds to wait for a worker where there is none

# Dask's `FutureCancelledError` is the first of these, its errors of the connection the second.
_LOST = (CancelledError, OSError, TimeoutError)

_log = logging.getLogger("covey")


class DaskProposer:
    """Inside it, a study asks with the help of a cluster; its batches are the same.

    The pool's rows are dealt out to the workers once. For an ask the posterior goes to each worker,
    and 16 bytes a row come back: mean and variance, by which the policy judges. What else takes a
    pass over all rows is done where they are. The log and its journal are as without a cluster.

    The pool itself stays here, and the workers need covey-dask installed.

    Args:
        study: of a `Pool`.
        client: a `distributed.Client`; stays open.
        parts: of the pool; None: one for each worker.
        checks: how often a batch that greedy chose from core-sets is compared with all rows and
            mended. One to four times make it the batch of one machine, as a rule; 0 takes what the
            core-sets give.
    """

    def __init__(
        self,
        study: Study,
        client: distributed.Client,
        *,
        parts: int | None = None,
        checks: int = 16,
    ) -> None:
        if not isinstance(study.space, Pool):
            raise SpaceError(
                "only the rows of a Pool can be dealt out to workers; this study looks in a "
                f"{type(study.space).__name__}. Ask without a cluster: its candidates are few."
            )
        if (parts is not None and parts < 1) or checks < 0:
            raise StrategyError(
                f"parts must be at least 1 and checks at least 0; got {parts} and {checks}."
            )
        self._client, self._checks = _connected(client), checks
        self._study, self._pool = study, study.space
        self._scattered = Scattered(
            client, self._pool.rows, parts or max(1, len(client.nthreads()))
        )
        self._before = study.proposer

    def __enter__(self) -> Self:
        self._before, self._study.proposer = self._study.proposer, self.propose
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._study.proposer = self._before
        self._scattered.forget()

    def propose(
        self, history: History, recipe: Recipe, request: Request, recall: Recall | None = None
    ) -> Proposal:
        """As `covey.propose.propose`: the same points, and the same account of them.

        What needs no model, or has nothing to make one from, is done here; so are batches for
        several outcomes, whose beliefs are not sent to workers.
        """
        plain = recipe.outcomes is None
        modelled = request.strategy.needs_model and ready(history, recipe, request.strategy)
        if not plain or not modelled:
            return propose(history, recipe, request, recall)
        _require_plain(request)
        _connected(self._client)
        recall = Recall() if recall is None else recall
        rng = np.random.default_rng([recipe.seed, history.asked_count])
        watch = Stopwatch()
        listed = remaining_pool(self._pool, request.fixed, excluded(history, recipe.seed))
        candidates = listed.everything(request.k)
        with watch.timing("fit"):
            posterior = understand(history, recipe, rng, recall=recall)
            told = recall.told(posterior)
        task = _Task(history, recipe, request, posterior, told, listed.places, candidates, watch)
        return self._persist(lambda: self._proposal(task, copy.deepcopy(rng)))

    def _persist(self, attempt: Callable[[], Proposal]) -> Proposal:
        """The same from the beginning, while workers die under it."""
        tries = 0
        while True:
            tries += 1
            workers = set(self._client.nthreads())
            try:
                return attempt()
            except CoveyError:
                raise
            except Exception as error:
                self._require_loss(error, workers)
                if tries == _TRIES:
                    raise StrategyError(
                        f"the cluster lost workers {_TRIES} times during one ask, the last time by "
                        f"{error!r}. Nothing was logged. Ask again, or without a cluster."
                    ) from error
                self._recover(error)

    def _proposal(self, task: _Task, rng: np.random.Generator) -> Proposal:
        history, request, posterior, watch = task.history, task.request, task.posterior, task.watch
        use, at = request.resources, task.candidates.at
        with watch.timing("belief"):
            workers = Workers.of(self._client, self._scattered, task.left, posterior, use.bytes)
            belief = remote_belief(workers, posterior, at, history.rounds + 1, use.bytes)
            belief = replace(belief, told=task.told)
            belief = resolved(belief, history, task.recipe, request.fixed)
        with watch.timing("choose"):
            chosen = choose(request.strategy, belief, request.k, rng, workers, self._checks)
            selection = checked_selection(chosen, request.k, len(belief))
        _log.info("chose %d points by %s: %s", request.k, request.name, watch.seconds)
        outcome = None if history.pending or history.failed else posterior.bound
        account = explain(belief, selection, request.name, outcome, watch.seconds)
        account = replace(account, penalties=posterior.data.penalties)
        return Proposal(task.candidates.points(selection.indices), posterior.models, account)

    def _require_loss(self, error: Exception, workers: set[str]) -> None:
        """Raise, unless workers are gone; which Dask says in many ways."""
        if isinstance(error, KilledWorker):
            raise StrategyError(
                f"workers die of this ask, perhaps for want of memory: {error} Nothing was logged. "
                "Give the study less memory (memory=), or the DaskProposer more parts."
            ) from error
        _connected(self._client)
        if not isinstance(error, _LOST) and workers <= set(self._client.nthreads()):
            raise error

    def _recover(self, error: Exception) -> None:
        """Wait for a worker, if there is hope of one."""
        _log.warning("workers were lost: %r; trying again with those there are", error)
        try:
            self._client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError as late:
            raise StrategyError(
                f"the cluster has lost all its workers, and had none for {_PATIENCE} seconds. "
                "Nothing was logged. Ask again when there are some, or without a cluster."
            ) from late


@dataclass(frozen=True, eq=False)
class _Task:
    """All that an attempt at a proposal starts from."""

    history: History
    recipe: Recipe
    request: Request
    posterior: Posterior
    told: tuple[Array, Array]
    left: Indices
    candidates: Candidates
    watch: Stopwatch


def _connected(client: distributed.Client) -> distributed.Client:
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise StrategyError(
            f"a DaskProposer takes a distributed.Client that is not asynchronous; got {client!r}."
        )
    if client.status != "running":
        raise StrategyError(
            f"the Dask client is {client.status}. Nothing was logged. Ask within a "
            "DaskProposer of a client that is connected, or without a cluster."
        )
    return client


def _require_plain(request: Request) -> None:
    use = request.resources
    if not use.on_host or use.seconds is not None:
        raise StrategyError(
            "an ask within a DaskProposer takes no device, no precision and no time_budget: the "
            "workers look at their rows on their processors, and at all of them. Leave these out, "
            "or ask without a cluster."
        )


def choose(
    strategy: Strategy,
    belief: Belief,
    k: int,
    rng: np.random.Generator,
    workers: Workers,
    checks: int,
) -> Selection | Sequence[int]:
    """The batch that the strategy would choose by itself, or one of the same law.

    Most strategies do choose by themselves: what they ask of the belief is worked out by those who
    keep it. Only a DPP on a large region would have columns of the covariance brought here one by
    one, and goes other ways.
    """
    if not isinstance(strategy, DPP | PureExploration) or k <= 2:
        return strategy.choose(belief, k, rng)
    if len(belief.parts) == 1:  # what the policy estimates, it need not estimate twice
        strategy = replace(strategy, first=strategy.first.frozen_at(belief))
    judgement = judge(strategy.first, belief)
    region = relevant(belief, judgement, strategy.factor, at_least=enough(k, len(belief)))
    region = without_unlikely(belief, region, k)
    if len(region) <= scatter.LOCAL:
        return strategy.choose(belief, k, rng)
    if isinstance(strategy, DPP) and strategy.then == "sample":
        method = _method(strategy.method, belief, region, k)
        return replace(strategy, method=method).choose(belief, k, rng)
    if isinstance(strategy, PureExploration) and len(belief.parts) > 1:
        return strategy.choose(belief, k, rng)  # it averages variances, and no kernel has those
    found = _greedy(belief, judgement, region, k, workers, checks)
    first = f"first: {in_words(strategy.first, judgement.width)}"
    rest = f"picked for the largest determinant from {len(region)} relevant candidates"
    found = replace(found, reasons=(first, *(rest,) * (k - 1)))
    if isinstance(strategy, DPP) and _holds_copies(belief, found.indices):
        return strategy.choose(belief, k, rng)  # it puts them back, one after the other
    # Pure exploration gives no name to what it does.
    explores = isinstance(strategy, PureExploration) and found.sampler == "greedy"
    return replace(found, sampler="") if explores else found


def _holds_copies(belief: Belief, batch: tuple[int, ...]) -> bool:
    """Whether one of a batch is a copy of another, or of a point under way."""
    if belief.resolution is None:
        return False
    if belief.under_way is not None:
        at = to_numpy(belief.at[list(batch)])
        if close_to(at, belief.under_way, belief.resolution).any():
            return True
    return any(is_copy(belief, one, batch[:place]) for place, one in enumerate(batch))


def _greedy(
    belief: Belief, judgement: Judgement, region: Indices, k: int, workers: Workers, checks: int
) -> Selection:
    """DPP-MAX, which is pure exploration too, by core-sets."""
    head = int(np.argmax(judgement.scores))
    inside = region[region != head]
    seen = belief.after_looking_at([head], on=inside)  # K_{t,1}
    found = merge(seen, k - 1, workers.region(inside, belief.on([head])), checks)
    sampler = "greedy"
    if found.proven < k - 1:
        sampler = f"greedy on core-sets, the first {found.proven} of {k - 1} picks proven"
    batch = (head, *inside[found.picks].tolist())
    return Selection(batch, judgement.width, region, sampler)


def _method(method: Method, belief: Belief, region: Indices, k: int) -> Method:
    """How to draw from a large region: by the walk at once, if that is what it will come to.

    To try the mixture takes hundreds of columns. Where it fails on a few rows, it fails on all.
    """
    if method != "auto":
        return method
    some = np.linspace(0, len(region) - 1, max(_FEW, 4 * k)).astype(np.intp)
    drawn = dpp.prepare(belief.on(region[some]).information(), k - 1)
    return "walk" if drawn.method == "walk" else "auto"
