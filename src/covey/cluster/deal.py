"""Deal: the rows of a pool, dealt out to the workers of a cluster once and for all."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import Array, Indices
from covey.errors import StrategyError

if TYPE_CHECKING:
    from distributed import Client, Future

_log = logging.getLogger("covey")


def dealt(n: int, parts: int) -> list[Indices]:
    """Indices 0 to n - 1 in so many parts of about one size, each ascending.

    At random, but always the same: a pool may be sorted, and no worker should get all the rows
    that matter.

    >>> [part.tolist() for part in dealt(5, 2)]
    [[2, 3, 4], [0, 1]]
    """
    order = np.random.default_rng(0).permutation(n)
    return [np.sort(part) for part in np.array_split(order, min(parts, n))]


class Deal:
    """Parts of the rows, each in the memory of some worker.

    A worker that dies takes its parts with it; they are sent again when they are next needed,
    since the pool has them all.
    """

    def __init__(self, client: Client, rows: Array, parts: int) -> None:
        self._client, self._rows = client, rows
        self.rows = len(rows)
        self.places = dealt(len(rows), parts)
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
