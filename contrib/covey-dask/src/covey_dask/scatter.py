"""Scatter: the rows of a pool with the workers of a cluster, and a belief about all of them here.

Of V, the large part of a belief, only a few columns are ever made here; the rest is where the rows
are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np

from covey.arrays import Array, Indices
from covey.belief import Belief, Gaussian
from covey.covariance import Information
from covey.errors import StrategyError
from covey.gp import Posterior
from covey.kernels import KernelMatrix
from covey.large.lowrank import ExplainedCovariance, HeldRows, Layer, StreamedRows
from covey_dask.coreset import Shards, merge

if TYPE_CHECKING:
    from distributed import Client, Future

_log = logging.getLogger("covey")

# Up to so many candidates, and as long as their columns of V take no more multiplications than
# that, it is quicker to work them out here; more than a short list has. (Our choice.)
LOCAL, _LITTLE = 70_000, 1e10


def shuffled_parts(n: int, parts: int) -> list[Indices]:
    """Indices 0 to n - 1 in so many parts of about one size, each ascending.

    At random, but always the same: a pool may be sorted, and no worker should get all the rows
    that matter.

    >>> [part.tolist() for part in shuffled_parts(5, 2)]
    [[2, 3, 4], [0, 1]]
    """
    order = np.random.default_rng(0).permutation(n)
    return [np.sort(part) for part in np.array_split(order, min(parts, n))]


class Scattered:
    """Parts of the rows, each in the memory of some worker.

    A worker that dies takes its parts with it; they are sent again when they are next needed,
    since the pool has them all.
    """

    def __init__(self, client: Client, rows: Array, parts: int) -> None:
        self._client, self._rows = client, rows
        self.rows = len(rows)
        self.places = shuffled_parts(len(rows), parts)
        self._sent: list[Future | None] = [None] * len(self.places)

    def futures(self) -> list[Future]:
        """The rows of each part, where they are."""
        lost = [i for i, one in enumerate(self._sent) if one is None or one.status != "finished"]
        workers = sorted(self._client.nthreads()) if lost else []
        if lost and not workers:
            raise StrategyError(
                "the cluster has no workers. Start some, wait for them by "
                "client.wait_for_workers(1) and ask again; or ask without a cluster. Nothing was "
                "logged."
            )
        for turn, i in enumerate(lost):
            self._sent[i] = self._client.scatter(
                self._rows[self.places[i]], workers=[workers[turn % len(workers)]], hash=False
            )
        if lost:
            _log.info("dealt out %d of %d parts to workers", len(lost), len(self._sent))
        return [one for one in self._sent if one is not None]

    def forget(self) -> None:
        """Let go of what the workers hold."""
        self._sent = [None] * len(self.places)


class Summary(NamedTuple):
    """What is known of n candidates one by one."""

    moments: Sequence[tuple[Array, Array]]  # of each member the mean (n,) and the squares of V (n,)
    weight: Array | None  # (n,), as `Belief.weight`


class RemoteRows(Protocol):
    """Those who keep V, for candidates that they call 0 to n - 1."""

    def summary(self) -> Summary:
        """Means, variances and weights of all candidates."""
        ...

    def columns(self, member: int, cols: Indices) -> Array:
        """V[:, cols], (m, len(cols))."""
        ...

    def product(self, member: int, cols: Indices | None, weights: Array) -> Array:
        """V[:, cols]ᵀ w for weights (m, p): (len(cols), p); None: for all."""
        ...


class RemoteLayer:
    """Rows of V for n candidates, kept by others; a few columns of it are made here."""

    def __init__(
        self, near: StreamedRows, rows: RemoteRows, member: int, names: Indices | None = None
    ) -> None:
        self._near = near
        self._rows, self._member = rows, member
        self._names = names  # of the candidates, among those that the workers know; None: all

    def __len__(self) -> int:
        return len(self._near)

    def of(self, cols: Indices) -> Array:
        """Cost len(cols) · m², here or afar."""
        if len(cols) * len(self) ** 2 <= _LITTLE:
            return self._near.of(cols)
        return self._rows.columns(self._member, self._known(cols))

    def product(self, cols: Indices | slice, weights: Array) -> Array:
        """Cost len(cols) · m · p, and one number a candidate to carry; few are done here."""
        n, every = len(self._near.at), False
        if isinstance(cols, slice):
            cols = np.arange(n)[cols]
            every = self._names is None and len(cols) == n
        if len(cols) <= LOCAL:
            return self._near.product(cols, weights)
        names = None if every else self._known(cols)
        return self._rows.product(self._member, names, weights)

    def on(self, indices: Indices) -> Layer:
        """Held here if they are few; else as far away as before."""
        near = self._near
        some = StreamedRows(near.kernel, near.seen, near.factor, near.at[indices], near.memory)
        if len(indices) <= LOCAL and some.fits:
            return HeldRows(self.of(indices))
        return RemoteLayer(some, self._rows, self._member, self._known(indices))

    def _known(self, cols: Indices) -> Indices:
        return cols if self._names is None else self._names[cols]


class Team(RemoteRows, Shards, Protocol):
    """Keepers of V who can also look at a part of their candidates, and for the best of them."""

    def region(self, inside: Indices, seen: Belief) -> Team:
        """The keepers of some candidates (ascending), after looking at others."""
        ...


@dataclass(frozen=True)
class Origin:
    """The belief about all candidates of an ask, and those who keep its V."""

    belief: Belief
    team: Team
    checks: int  # most passes in which greedy's picks are compared with all candidates
    unproven: list[str]  # what those passes left open, for a report


@dataclass(frozen=True)
class RemoteBelief(Belief):
    """A belief whose V is kept elsewhere; of a large one determinants are maximised there too.

    It remembers what was looked at, which is all that those who keep V have to be told.
    """

    origin: Origin | None = None  # None: none who could maximise a determinant
    names: Indices | None = None  # (n,), of the candidates among those of the origin; None: all
    batch: tuple[int, ...] = ()  # names of what was looked at since

    @property
    def members(self) -> tuple[Belief, ...]:
        """One belief for each Gaussian."""
        if len(self.parts) == 1:
            return (self,)
        return tuple(replace(self, parts=(part,), origin=None) for part in self.parts)

    def on(self, indices: Sequence[int] | Indices) -> Self:
        """The belief about a subset of the candidates."""
        return replace(super().on(indices), names=self._named(indices))

    def after_looking_at(
        self, indices: Sequence[int] | Indices, on: Sequence[int] | Indices | None = None
    ) -> Self:
        """The belief after future observations of these candidates, whose values are unknown."""
        seen = super().after_looking_at(indices, on)
        names = self.names if on is None else self._named(on)
        return replace(seen, names=names, batch=(*self.batch, *self._named(indices).tolist()))

    def information(self) -> Information:
        """The kernel of the DPP; of many candidates, one that knows who can maximise it."""
        plain = super().information()
        names = np.arange(len(self)) if self.names is None else self.names
        if self.origin is None or len(self) <= LOCAL or not (np.diff(names) > 0).all():
            return plain
        own = partial(_by_core_sets, self, self.origin, names)
        return RemoteInformation(plain.members, plain.noises, own)

    def by(self, team: Team, checks: int, unproven: list[str]) -> Self:
        """This belief, whose determinants are maximised by a team that keeps its V."""
        return replace(self, origin=Origin(_plain(self), team, checks, unproven))

    def _named(self, indices: Sequence[int] | Indices) -> Indices:
        some = np.asarray(indices, dtype=np.intp)
        return some if self.names is None else self.names[some]


@dataclass(frozen=True, eq=False)
class RemoteInformation(Information):
    """The kernel of a belief kept elsewhere; `covey.dpp.maximize` calls its own ``maximize``."""

    maximize: Callable[[int], list[int]] | None = None


def _by_core_sets(seen: RemoteBelief, origin: Origin, names: Indices, k: int) -> list[int]:
    """Greedy's picks among candidates of these names (ascending), by those who keep them."""
    team: Shards = origin.team
    if seen.batch or seen.names is not None:
        team = origin.team.region(names, origin.belief.on(list(seen.batch)))
    merged = merge(_plain(seen), k, team, origin.checks)
    if merged.proven < k:
        origin.unproven.append(f"the first {merged.proven} of {k} picks proven")
    return [int(pick) for pick in merged.picks]


def remote_belief(
    rows: RemoteRows, posterior: Posterior, at: Array, round: int, memory: int
) -> RemoteBelief:
    """What `Posterior.belief` says about the candidates (n, d), without a pass over them here."""
    moments, weight = rows.summary()
    parts = []
    each = zip(posterior.models, posterior.evidence, moments, strict=True)
    for member, (model, seen, (mean, squares)) in enumerate(each):
        near = StreamedRows(model.kernel, seen.at, seen.factor, at, memory // len(posterior.models))
        explained = ExplainedCovariance((RemoteLayer(near, rows, member),), squares, near.memory)
        parts.append(Gaussian(KernelMatrix(model.kernel, at), mean, explained, model.noise, seen))
    rest = _fields(posterior.belief(at[:1], round))
    return RemoteBelief(**{**rest, "at": at, "parts": tuple(parts), "weight": weight})


def _fields(belief: Belief) -> dict[str, Any]:
    """What every belief has."""
    return {field.name: getattr(belief, field.name) for field in fields(Belief)}


def _plain(belief: Belief) -> Belief:
    """The belief without what it knows of workers."""
    return Belief(**_fields(belief))
