"""Workers: what each believes about its shard of the candidates, and how to speak to them.

The methods of a `Shard` run where the rows are; what they take and return is small, or one number
a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from covey.arrays import Array, Indices, Mask, one_thread
from covey.belief import Belief
from covey.gp import Posterior
from covey_dask.coreset import (
    Check,
    Chosen,
    Kernels,
    after_looking_elsewhere,
    check,
    core_set,
    stripped,
)
from covey_dask.scatter import Scattered, Summary

if TYPE_CHECKING:
    from distributed import Client, Future

Bits: TypeAlias = NDArray[np.uint8]
"""A mask, eight rows to the byte."""


def packed(mask: Mask) -> Bits:
    """The mask as it travels.

    >>> unpacked(packed(np.array([True, False, True])), 3)
    array([ True, False,  True])
    """
    return np.packbits(mask)


def unpacked(bits: Bits, count: int) -> Mask:
    """The mask again."""
    return np.unpackbits(bits, count=count).astype(np.bool_)


@dataclass(frozen=True, eq=False)
class Shard:
    """A belief about some of the candidates, and the kernels of its members."""

    belief: Belief
    kernels: Kernels

    @staticmethod
    def of(rows: Array, left: Bits, posterior: Posterior, memory: int) -> Shard:
        """One pass over the rows that are left. Cost n·m²; takes at most so many bytes."""
        at = rows[unpacked(left, len(rows))]
        kernels = tuple(model.kernel for model in posterior.models)
        return Shard(posterior.belief(at, memory=memory), kernels)

    def summary(self) -> Summary:
        """One number a candidate for each mean and variance, and for the weight."""
        moments = [(part.mean, part.explained.squares) for part in self.belief.parts]
        return Summary(moments, self.belief.weight)

    def columns(self, member: int, cols: Indices) -> Array:
        """Columns of V, (m, len(cols))."""
        return self.belief.parts[member].explained.of(cols)

    def product(self, member: int, cols: Indices | None, weights: Array) -> Array:
        """V[:, cols]ᵀ w; None: of every column."""
        explained = self.belief.parts[member].explained
        return explained.product(slice(None) if cols is None else cols, weights)

    def region(self, inside: Bits, seen: Belief) -> Shard:
        """Of some of its candidates, after looking at others, which may be elsewhere."""
        mask = unpacked(inside, len(self.belief))
        some = self.belief if mask.all() else self.belief.on(np.flatnonzero(mask))
        return Shard(after_looking_elsewhere(self.kernels, some, seen), self.kernels)

    def core_set(self, size: int) -> Indices:
        """The few that stand for all of it."""
        return core_set(self.belief, size)

    def check(self, chosen: Chosen, mine: Indices) -> Check:
        """A batch compared with its candidates."""
        return check(self.kernels, self.belief, chosen, mine)


def work(task: Callable[..., Any], *args: Any) -> Any:
    """What a worker runs; on one thread, as every ask (decision 8)."""
    with one_thread():
        return task(*args)


class _Asked(NamedTuple):
    """What one shard is asked about: where the answer goes, and where in the shard it is."""

    shard: Future
    into: Indices
    local: Indices | None  # None: all of it


class Workers:
    """Shards kept by workers; together they hold each candidate once.

    Args:
        client: who carries things to and fro.
        shards: what the workers keep, as futures.
        where: for each shard the indices of its candidates, ascending.
    """

    def __init__(self, client: Client, shards: Sequence[Future], where: Sequence[Indices]) -> None:
        self._client, self._shards, self._where = client, list(shards), list(where)

    @staticmethod
    def of(
        client: Client, scattered: Scattered, left: Indices, posterior: Posterior, memory: int
    ) -> Workers:
        """Have the parts of a pool looked at, as far as they hold rows that are left (ascending).

        ``memory``: bytes that one worker may take.
        """
        mask = np.zeros(scattered.rows, dtype=np.bool_)
        mask[left] = True
        name = np.cumsum(mask) - 1
        each = memory * len(client.nthreads()) // len(scattered.places)
        parts = scattered.futures()  # first: it says at once if there is no worker
        sent = client.scatter(posterior, broadcast=True, hash=False)
        workers = Workers(client, [], [])
        for rows, places in zip(parts, scattered.places, strict=True):
            mine = mask[places]
            if mine.any():
                workers._shards.append(workers._submit(Shard.of, rows, packed(mine), sent, each))
                workers._where.append(name[places[mine]])
        return workers

    def __len__(self) -> int:
        return len(self._shards)

    @property
    def size(self) -> int:
        """Candidates in all."""
        return sum(map(len, self._where))

    def summary(self) -> Summary:
        """The summaries of all shards as one."""
        each = self._gathered(Shard.summary, ((shard,) for shard in self._shards))
        moments = np.empty((len(each[0].moments), 2, self.size))
        weight = None if each[0].weight is None else np.empty(self.size)
        for at, shard in zip(self._where, each, strict=True):
            moments[:, :, at] = shard.moments
            if weight is not None:
                weight[at] = shard.weight
        return Summary([(mean, squares) for mean, squares in moments], weight)

    def columns(self, member: int, cols: Indices) -> Array:
        """V[:, cols], (m, len(cols))."""
        asked = self._places(cols)
        found = self._gathered(Shard.columns, ((one.shard, member, one.local) for one in asked))
        out = np.empty((len(found[0]), len(cols)))
        for one, columns in zip(asked, found, strict=True):
            out[:, one.into] = columns
        return out

    def product(self, member: int, cols: Indices | None, weights: Array) -> Array:
        """V[:, cols]ᵀ w for weights (m, p): (len(cols), p); None: for all."""
        asked, sent = self._places(cols), self._sent(weights)
        found = self._gathered(
            Shard.product, ((one.shard, member, one.local, sent) for one in asked)
        )
        out = np.empty((self.size if cols is None else len(cols), weights.shape[1]))
        for one, product in zip(asked, found, strict=True):
            out[one.into] = product
        return out

    def region(self, inside: Indices, seen: Belief) -> Workers:
        """The workers of some candidates (ascending), after looking at others."""
        mask = np.zeros(self.size, dtype=np.bool_)
        mask[inside] = True
        name = np.cumsum(mask) - 1
        parts = [(shard, at, mask[at]) for shard, at in zip(self._shards, self._where, strict=True)]
        parts = [part for part in parts if part[2].any()]
        sent = self._sent(stripped(seen))
        shards = [self._submit(Shard.region, shard, packed(some), sent) for shard, _, some in parts]
        return Workers(self._client, shards, [name[at[some]] for _, at, some in parts])

    def core_sets(self, size: int) -> Indices:
        """The core-sets of all shards together, ascending."""
        found = self._gathered(Shard.core_set, ((shard, size) for shard in self._shards))
        return np.sort(np.concatenate([at[i] for at, i in zip(self._where, found, strict=True)]))

    def check(self, picks: Indices, chosen: Chosen) -> list[Check]:
        """A batch compared with everybody else, shard by shard."""
        sent = self._sent(chosen)
        mine = [np.flatnonzero(np.isin(at, picks)) for at in self._where]
        found = self._gathered(
            Shard.check,
            ((shard, sent, some) for shard, some in zip(self._shards, mine, strict=True)),
        )
        return [
            Check(one.gains, np.where(one.where >= 0, at[one.where], -1))
            for at, one in zip(self._where, found, strict=True)
        ]

    @cached_property
    def _owner(self) -> tuple[Indices, Indices]:
        """For each candidate its shard, and its place there."""
        owner, place = (np.empty(self.size, dtype=np.intp) for _ in range(2))
        for i, at in enumerate(self._where):
            owner[at], place[at] = i, np.arange(len(at))
        return owner, place

    def _places(self, cols: Indices | None) -> list[_Asked]:
        """Whom to ask about these candidates; None: about all."""
        shards = zip(self._shards, self._where, strict=True)
        if cols is None:
            return [_Asked(shard, at, None) for shard, at in shards]
        owner, place = (one[cols] for one in self._owner)
        into = [np.flatnonzero(owner == i) for i in range(len(self))]
        return [
            _Asked(shard, at, place[at])
            for shard, at in zip(self._shards, into, strict=True)
            if len(at)
        ]

    def _sent(self, thing: Any) -> Future:
        """Something all workers need, sent to each once."""
        return self._client.scatter(thing, broadcast=True, hash=False)

    def _submit(self, task: Callable[..., Any], *args: Any) -> Future:
        # The name shows on Dask's dashboard.
        key = f"covey-{task.__name__}-{uuid4().hex}"
        return self._client.submit(work, task, *args, key=key, pure=False)

    def _gathered(self, task: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> list[Any]:
        found: list[Any] = self._client.gather([self._submit(task, *args) for args in calls])
        return found
