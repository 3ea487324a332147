"""Team: the workers' shares of the candidates, and how to speak to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np

from covey.arrays import Array, Indices
from covey.belief import Belief
from covey.cluster.apart import light
from covey.cluster.coreset import Check, Chosen
from covey.cluster.deal import Deal
from covey.cluster.share import Share, packed, work
from covey.gp import Posterior

if TYPE_CHECKING:
    from distributed import Client, Future


class _Asked(NamedTuple):
    """What one share is asked about: where the answer goes, and where in the share it is."""

    share: Future
    into: Indices
    local: Indices | None  # None: all of it


class Team:
    """Shares kept by workers; together they hold each candidate once.

    Args:
        client: who carries things to and fro.
        shares: what the workers keep, as futures.
        where: for each share the indices of its candidates, ascending.
    """

    def __init__(self, client: Client, shares: Sequence[Future], where: Sequence[Indices]) -> None:
        self._client, self._shares, self._where = client, list(shares), list(where)

    @staticmethod
    def of(client: Client, deal: Deal, left: Indices, posterior: Posterior, memory: int) -> Team:
        """Have the parts of a pool looked at, as far as they hold rows that are left (ascending).

        ``memory``: bytes that one worker may take.
        """
        mask = np.zeros(deal.rows, dtype=np.bool_)
        mask[left] = True
        name = np.cumsum(mask) - 1
        each = memory * len(client.nthreads()) // len(deal.places)
        parts = deal.futures()  # first: it says at once if there is no worker
        sent = client.scatter(posterior, broadcast=True, hash=False)
        team = Team(client, [], [])
        for rows, places in zip(parts, deal.places, strict=True):
            mine = mask[places]
            if mine.any():
                team._shares.append(team._submit(Share.of, rows, packed(mine), sent, each))
                team._where.append(name[places[mine]])
        return team

    def __len__(self) -> int:
        return len(self._shares)

    @property
    def size(self) -> int:
        """Candidates in all."""
        return sum(map(len, self._where))

    def summary(self) -> list[tuple[Array, Array]]:
        """Of each member the mean (n,) and what was explained of the variance (n,)."""
        said = self._gathered(Share.summary, ((share,) for share in self._shares))
        found = np.empty((len(said[0]), 2, self.size))
        for at, members in zip(self._where, said, strict=True):
            found[:, :, at] = members
        return [(mean, squares) for mean, squares in found]

    def columns(self, member: int, cols: Indices) -> Array:
        """V[:, cols], (m, len(cols))."""
        asked = self._places(cols)
        found = self._gathered(Share.columns, ((one.share, member, one.local) for one in asked))
        out = np.empty((len(found[0]), len(cols)))
        for one, columns in zip(asked, found, strict=True):
            out[:, one.into] = columns
        return out

    def product(self, member: int, cols: Indices | None, weights: Array) -> Array:
        """V[:, cols]ᵀ w for weights (m, p): (len(cols), p); None: for all."""
        asked, sent = self._places(cols), self._sent(weights)
        found = self._gathered(
            Share.product, ((one.share, member, one.local, sent) for one in asked)
        )
        out = np.empty((self.size if cols is None else len(cols), weights.shape[1]))
        for one, product in zip(asked, found, strict=True):
            out[one.into] = product
        return out

    def region(self, inside: Indices, head: Belief) -> Team:
        """The team of some candidates (ascending), once one of all will have been looked at."""
        mask = np.zeros(self.size, dtype=np.bool_)
        mask[inside] = True
        name = np.cumsum(mask) - 1
        parts = [(share, at, mask[at]) for share, at in zip(self._shares, self._where, strict=True)]
        parts = [part for part in parts if part[2].any()]
        sent = self._sent(light(head))
        shares = [self._submit(Share.region, share, packed(some), sent) for share, _, some in parts]
        return Team(self._client, shares, [name[at[some]] for _, at, some in parts])

    def core_sets(self, size: int) -> Indices:
        """The core-sets of all shares together, ascending."""
        found = self._gathered(Share.core_set, ((share, size) for share in self._shares))
        return np.sort(np.concatenate([at[i] for at, i in zip(self._where, found, strict=True)]))

    def check(self, picks: Indices, chosen: Chosen) -> list[Check]:
        """A batch compared with everybody else, share by share."""
        sent = self._sent(chosen)
        mine = [np.flatnonzero(np.isin(at, picks)) for at in self._where]
        found = self._gathered(
            Share.check,
            ((share, sent, some) for share, some in zip(self._shares, mine, strict=True)),
        )
        return [
            Check(one.gains, np.where(one.where >= 0, at[one.where], -1))
            for at, one in zip(self._where, found, strict=True)
        ]

    @cached_property
    def _owner(self) -> tuple[Indices, Indices]:
        """For each candidate its share, and its place there."""
        owner, place = (np.empty(self.size, dtype=np.intp) for _ in range(2))
        for i, at in enumerate(self._where):
            owner[at], place[at] = i, np.arange(len(at))
        return owner, place

    def _places(self, cols: Indices | None) -> list[_Asked]:
        """Whom to ask about these candidates; None: about all."""
        shares = zip(self._shares, self._where, strict=True)
        if cols is None:
            return [_Asked(share, at, None) for share, at in shares]
        owner, place = (one[cols] for one in self._owner)
        into = [np.flatnonzero(owner == i) for i in range(len(self))]
        return [
            _Asked(share, at, place[at])
            for share, at in zip(self._shares, into, strict=True)
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
