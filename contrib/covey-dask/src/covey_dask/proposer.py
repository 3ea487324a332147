"""Proposer: a study whose batches are worked out by a Dask cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Self

import distributed
from distributed.scheduler import KilledWorker

from covey.belief import Belief
from covey.candidates import Candidates
from covey.errors import CoveyError, SpaceError, StrategyError
from covey.gp import Posterior, Posteriors, Recall
from covey.history import History
from covey.large.budget import Resources
from covey.learn import Recipe
from covey.propose import Proposal, Request, believe, propose
from covey.space import Pool, Space
from covey_dask.scatter import Scattered, remote_belief
from covey_dask.workers import Workers

if TYPE_CHECKING:
    from types import TracebackType

    from covey.study import Study

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
        self._client, self._study = _connected(client), study
        self._parts, self._checks = parts, checks
        self._pool, self._scattered = study.space, self._deal(study.space)
        self._workers: set[str] | None = None  # those that an ask began with, once they have begun
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
        """As `covey.propose.propose`, which it calls; the cluster only makes the belief."""
        unproven: list[str] = []
        request = replace(request, believe=partial(self._belief, recipe.space, unproven))
        proposal = self._persist(lambda: propose(history, recipe, request, recall))
        account = proposal.diagnostics
        if unproven and account.sampler == "greedy":
            account = replace(account, sampler=f"greedy on core-sets, {unproven[-1]}")
        return replace(proposal, diagnostics=account)

    def _belief(
        self,
        space: Space | Pool,
        unproven: list[str],
        posterior: Posterior | Posteriors,
        candidates: Candidates,
        round: int,
        use: Resources,
    ) -> Belief:
        """The belief about rows of a pool, by those who have them; of several outcomes, made here.

        ``unproven`` takes what checks of batches left open.
        """
        places = candidates.places
        if isinstance(posterior, Posteriors) or not isinstance(space, Pool) or places is None:
            return believe(posterior, candidates, round, use)
        _require_plain(use)
        self._workers = set(_connected(self._client).nthreads())
        if space is not self._pool:  # the study was extended
            self._pool, self._scattered = space, self._deal(space)
        team = Workers.of(self._client, self._scattered, places, posterior, use.bytes)
        far = remote_belief(team, posterior, candidates.at, round, use.bytes)
        return far.by(team, self._checks, unproven)

    def _deal(self, pool: Pool) -> Scattered:
        """The rows of a pool in parts, sent to the workers when they are first needed."""
        parts = self._parts or max(1, len(self._client.nthreads()))
        return Scattered(self._client, pool.rows, parts)

    def _persist(self, attempt: Callable[[], Proposal]) -> Proposal:
        """The same from the beginning, while workers die under it."""
        tries = 0
        while True:
            tries, self._workers = tries + 1, None
            try:
                return attempt()
            except CoveyError:
                raise
            except Exception as error:
                self._require_loss(error)
                if tries == _TRIES:
                    raise StrategyError(
                        f"the cluster lost workers {_TRIES} times during one ask, the last time by "
                        f"{error!r}. Nothing was logged. Ask again, or without a cluster."
                    ) from error
                self._recover(error)

    def _require_loss(self, error: Exception) -> None:
        """Raise, unless workers are gone; which Dask says in many ways."""
        if self._workers is None:  # they had not begun
            raise error
        if isinstance(error, KilledWorker):
            raise StrategyError(
                f"workers die of this ask, perhaps for want of memory: {error} Nothing was logged. "
                "Give the study less memory (memory=), or the DaskProposer more parts."
            ) from error
        _connected(self._client)
        if not isinstance(error, _LOST) and self._workers <= set(self._client.nthreads()):
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


def _require_plain(use: Resources) -> None:
    if not use.on_host or use.seconds is not None:
        raise StrategyError(
            "an ask within a DaskProposer takes no device, no precision and no time_budget: the "
            "workers look at their rows on their processors, and at all of them. Leave these out, "
            "or ask without a cluster."
        )
