"""How many positions of a walk to renew at a time, and from how many proposals."""

from __future__ import annotations

import math

from covey.dpp.state import Progress


class Pace:
    """The size of the next round, from how the last ones went; never from which items they chose.

    Proposals come in blocks of given sizes. When as many as all blocks hold were refused in a row,
    the next round is anchored: its proposals come from a pass over all n items, by conditional
    variance given the items that the round leaves in place; one that renews a single item is
    accepted at once.
    """

    __slots__ = ("_accepted", "_anchor", "_most", "_n", "_refused", "_sizes", "_span", "_tried")

    def __init__(self, sizes: tuple[int, ...], most: int, k: int, n: int) -> None:
        self._sizes, self._most, self._n = sizes, most, n
        self._span, self._anchor = most, max(1, k // 4)
        self._accepted = self._tried = 1.0  # of late
        self._refused = 0  # in a row

    @property
    def anchored(self) -> bool:
        """Whether a pass over all items is due."""
        return self._refused >= sum(self._sizes)

    @property
    def positions(self) -> int:
        """How many to renew, at most."""
        return self._anchor if self.anchored else self._span

    @property
    def proposals(self) -> int:
        """How many to draw: enough, if they fare like those of late."""
        if self.anchored:
            return 4 * self._anchor
        enough = math.ceil(1.1 * self._span * self._tried / self._accepted)
        return min(max(enough, self._sizes[0]), self._sizes[-1])

    def adjust(self, progress: Progress, asked: int, share: float) -> None:
        """After a round that was to renew ``asked`` positions.

        ``share`` is that part of tr L which the weights of the proposals came to.
        """
        if not self.anchored:
            self._span = min(self._most, 2 * progress.steps + 1)
            self._refused = 0 if progress.steps else self._refused + progress.used
            self._accepted = self._accepted / 2.0 + progress.steps
            self._tried = self._tried / 2.0 + progress.used
            return
        if progress.steps < asked:
            self._anchor = max(1, self._anchor // 2)
        # A pass is worth n proposals: would those have brought as much?
        plainly = self._n * share * progress.steps / max(1, progress.used)
        self._refused = 0 if plainly >= progress.steps else self._refused
