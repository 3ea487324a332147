"""The present set of a walk, and how some of its items are renewed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.arrays import Array, Indices, cholesky, host
from covey.dpp.conditional import Conditional
from covey.dpp.kernel import Blocks
from covey.whitening import Whitening

# Proposals, of those that the fixed items let pass, that are played out in one round, and how many
# of them are judged together. (Our choice.)
_MOST, _TOGETHER = 512, 4


class Stream(NamedTuple):
    """Proposals in order, each accepted if its conditional variance is above its bar."""

    items: Indices  # (N,)
    bars: Array  # (N,)


class Progress(NamedTuple):
    """How far a round went: positions renewed, and proposals used up."""

    steps: int
    used: int


class State:
    """A set S and L_SS, whose entries are all read from the kernel: no rounding gathers."""

    __slots__ = ("_kernel", "_square", "diagonal", "items")

    def __init__(self, kernel: Blocks, items: Indices) -> None:
        self._kernel = kernel
        self.diagonal = host(kernel.diagonal)  # (n,)
        self._square = np.array(host(kernel.block(items, items)), dtype=np.float64)
        self.items = items.copy()

    def without(self, positions: Indices) -> Conditional:
        """Given the items at all other positions. Cost k³."""
        fixed = np.delete(np.arange(len(self.items)), positions)
        factor = cholesky(self._square[fixed[:, None], fixed])
        return Conditional(self._kernel, self.items[fixed], factor)

    def renew(self, positions: Indices, stream: Stream) -> Progress:
        """Renew the items at these positions, one after the other, until the stream is used up.

        The items at all other positions stay; what is conditioned on them once a round, k² for each
        proposal, leaves a small problem for each step. Cost k³ + k² len(stream) + steps · moving³.
        """
        moving = np.unique(positions)
        fixed = np.delete(np.arange(len(self.items)), moving)
        fresh = host(self._kernel.block(self.items, stream.items))
        factor = self.without(moving).factor
        white = Whitening(factor, fresh)(np.hstack([self._square[fixed][:, moving], fresh[fixed]]))
        passed = self._passed(stream, self.items[fixed], white[:, len(moving) :])
        near = self._near(moving, fresh[moving][:, passed], stream.items[passed])
        white = np.hstack([white[:, : len(moving)], white[:, len(moving) + passed]])
        game = _Game(
            np.concatenate([self.items[moving], stream.items[passed]]),
            near - white.T @ white,
            stream.bars[passed],
        )
        steps = game.play(np.searchsorted(moving, positions))
        self._settle(moving, fixed, game, near, fresh[:, passed])
        if steps == len(positions):
            return Progress(steps, int(passed[game.next - 1]) + 1)
        # The stream ended, or what of it was looked at.
        return Progress(steps, int(passed[-1]) + 1 if len(passed) == _MOST else len(stream.items))

    def _passed(self, stream: Stream, fixed: Indices, white: Array) -> Indices:
        """Which proposals the fixed items do not refuse already: v(j|R) <= v(j|F) for F ⊂ R."""
        bounds = self.diagonal[stream.items] - np.einsum("ij,ij->j", white, white)
        bounds[np.isin(stream.items, fixed)] = -np.inf
        return np.flatnonzero(stream.bars < bounds)[:_MOST]

    def _near(self, moving: Indices, cross: Array, items: Indices) -> Array:
        """L on the moving items and on proposals, of which L with the moving ones is known."""
        within = host(self._kernel.block(items, items))
        near = np.empty((len(moving) + len(items),) * 2)
        near[: len(moving), : len(moving)] = self._square[moving[:, None], moving]
        near[: len(moving), len(moving) :] = cross
        near[len(moving) :, : len(moving)] = cross.T
        near[len(moving) :, len(moving) :] = within
        return near

    def _settle(
        self, moving: Indices, fixed: Indices, game: _Game, near: Array, fresh: Array
    ) -> None:
        place = game.place
        new = place >= len(moving)
        changed = moving[new]
        self.items[changed] = game.items[place[new]]
        rows = fresh[fixed][:, place[new] - len(moving)]
        self._square[fixed[:, None], changed] = rows
        self._square[changed[:, None], fixed] = rows.T
        self._square[moving[:, None], moving] = near[place[:, None], place]


class _Game:
    """Steps of the walk on few items, given all others.

    Items may come more than once; ``place`` says which of them is at each moving position.
    """

    def __init__(self, items: Indices, schur: Array, bars: Array) -> None:
        self.items, self._schur, self._bars = items, schur, bars
        self._diagonal = schur.diagonal()
        self._moving = len(items) - len(bars)
        self.place = np.arange(self._moving)
        self.next = 0  # the first proposal not used yet

    def play(self, positions: Indices) -> int:
        """Renew these positions in turn; return how many of them the proposals sufficed for."""
        for done, position in enumerate(positions):
            others = np.concatenate([self.place[:position], self.place[position + 1 :]])
            found = self._accepted(others)
            if found is None:
                return done
            self.place[position] = self._moving + found
            self.next = found + 1
        return len(positions)

    def _accepted(self, rest: Indices) -> int | None:
        """The first proposal above its bar, given the items at the places ``rest``."""
        schur, rows = self._schur, rest[:, None]
        factor = cholesky(schur[rows, rest])
        for low in range(self.next, len(self._bars), _TOGETHER):
            some = slice(self._moving + low, self._moving + low + _TOGETHER)
            white = np.linalg.solve(factor, schur[rest, some])
            variances = self._diagonal[some] - np.einsum("ij,ij->j", white, white)
            variances[(self.items[rows] == self.items[some]).any(axis=0)] = 0.0
            above = np.maximum(variances, 0.0) > self._bars[low : low + _TOGETHER]
            if above.any():
                return low + int(above.argmax())
        return None
