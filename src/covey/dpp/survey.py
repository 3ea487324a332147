"""One pass over the items, which tells whether a draft of greedy picks is right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.arrays import Array, Indices, beside, host, namespace
from covey.chunks import each_chunk
from covey.dpp.choice import check_semidefinite
from covey.dpp.conditional import share
from covey.dpp.factor import unit
from covey.dpp.kernel import Blocks
from covey.dpp.race import Contenders, Race, contenders
from covey.whitening import Whitening


class Survey(NamedTuple):
    """What a pass over some items found; prefix t is the known picks and t of the draft."""

    winners: Indices  # (d + 1,), the greedy pick after each prefix
    own: Array  # (d + 1,), its conditional variance; -inf where none is left
    gains: Array  # (d + 1,), the largest, which may exceed it by rounding
    before: Array  # (a,), conditional variances after prefix 0
    after: Array  # (a,), and after prefix d
    scores: Array  # (a,), the largest share of a pick's gain that each item reached


class _Seen(NamedTuple):
    """Of one chunk."""

    contenders: Contenders
    before: Array
    after: Array
    scores: Array


def survey(kernel: Blocks, picks: Indices, factor: Array, gains: Array, at: Indices) -> Survey:
    """Look at the items ``at`` (ascending), given ``picks`` and the Cholesky factor of L on them.

    The last len(gains) picks are the draft. Cost len(at) · len(picks)², memory a few chunks.
    """
    glass = _Glass(kernel, picks, factor, gains, at)
    race = Race(len(gains) + 1)
    parts: list[tuple[Array, Array, Array]] = []
    low = 0
    for seen in each_chunk(glass.look, glass.diagonal, share(picks, glass.diagonal)):
        race.see(seen.contenders, low)
        low += len(seen.before)
        parts.append((seen.before, seen.after, seen.scores))
    places, own = zip(*(race.winner(row) for row in range(len(race.most))), strict=True)
    return Survey(
        np.where(np.array(places) >= 0, at[np.array(places)], -1),
        np.array(own),
        race.most,
        *(np.concatenate(some) for some in zip(*parts, strict=True)),
    )


class _Glass:
    """What a chunk of items is looked at with."""

    def __init__(
        self, kernel: Blocks, picks: Indices, factor: Array, gains: Array, at: Indices
    ) -> None:
        self._kernel, self._picks, self._at = kernel, picks, at
        self._known = len(picks) - len(gains)
        self.diagonal = kernel.diagonal[beside(at, kernel.diagonal)]
        self._whiten = Whitening(factor, self.diagonal)
        self._gains = beside(gains, self.diagonal)
        # Where the picks of the draft are among the items.
        own = picks[self._known :]
        self._own = np.where(np.isin(own, at), np.searchsorted(at, own), -1)

    def look(self, part: slice) -> _Seen:
        left = self._left(part)
        xp = namespace(left)
        check_semidefinite(left[-1], self.diagonal[part], self._at[part])
        before = _kept(left[0])
        self._forget(left, part)
        scores = xp.zeros_like(left[0])
        if len(self._gains):
            scores = xp.max(left[:-1] / self._gains[:, None], axis=0)
        return _Seen(contenders(left), before, _kept(left[-1]), host(scores))

    def _left(self, part: slice) -> Array:
        """Conditional variances after every prefix, (d + 1, len(part))."""
        diagonal, known = self.diagonal[part], self._known
        white = self._whiten(self._kernel.block(self._picks, self._at[part]))
        xp = namespace(white)
        white *= white
        explained = xp.sum(white[:known], axis=0)[None]
        left: Array = diagonal - xp.cumsum(xp.concat([explained, white[known:]]), axis=0)
        return left

    def _forget(self, left: Array, part: slice) -> None:
        """Put -inf where an item was picked, or what is left of it is rounding."""
        xp = namespace(left)
        for t, place in enumerate(self._own):
            if part.start <= place < part.stop:
                left[t + 1 :, place - part.start] = -np.inf
        floor = np.array([unit(left, self._known + t) for t in range(len(left))])
        # Floors rise and variances fall, so the last prefix names all items in question.
        (low,) = xp.nonzero(left[-1] <= floor[-1] * self.diagonal[part])
        if len(low):
            some = left[:, low]
            least = beside(floor, left)[:, None] * self.diagonal[part][low]
            left[:, low] = xp.where(some > least, some, -np.inf)


def _kept(row: Array) -> Array:
    """A row on the host, which does not keep the array alive that it comes from."""
    return host(namespace(row).asarray(row, copy=True))
