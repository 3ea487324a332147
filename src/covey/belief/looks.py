"""Looks: candidates that are imagined observed, one after the other, their values unknown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from covey.arrays import Array, Indices, host
from covey.belief.evidence import Evidence
from covey.whitening import Whitening

if TYPE_CHECKING:
    from covey.belief.gaussian import Gaussian


class Look(NamedTuple):
    """Some candidates, given all looks before."""

    names: Indices  # (p,), among the candidates of the Gaussian before all looks
    at: Array  # (p, d)
    corner: Array  # (p, p), lower Cholesky factor of their covariance, noise included


@dataclass(frozen=True, eq=False)
class Looks:
    """All looks since a Gaussian that imagined none; what follows from them is made when asked for.

    A batch imagines its picks one by one and seldom asks; and a factor of ten thousand observations
    takes 800 MB to copy.
    """

    before: Gaussian
    places: Indices  # of the present candidates among those of before
    each: tuple[Look, ...] = ()

    @staticmethod
    def none(before: Gaussian) -> Looks:
        """Before the first."""
        return Looks(before, np.arange(len(before.mean)))

    def also(self, indices: Indices, at: Array, corner: Array) -> Looks:
        """With some of the present candidates."""
        return replace(self, each=(*self.each, Look(self.places[indices], at, corner)))

    def on(self, indices: Indices) -> Looks:
        """For some of the present candidates."""
        return replace(self, places=self.places[indices])

    def __len__(self) -> int:
        return sum(len(look.names) for look in self.each)

    @cached_property
    def names(self) -> Indices:
        """Of all of them, (p,)."""
        return np.concatenate([look.names for look in self.each])

    @cached_property
    def corner(self) -> Array:
        """Lower Cholesky factor (p, p) of their covariance before, noise included."""
        corner = np.zeros((len(self), len(self)))
        done = 0
        for look in self.each:
            end = done + len(look.names)
            if done:
                cross = host(self.before.block(self.names[:done], look.names))
                known = np.ascontiguousarray(corner[:done, :done])
                corner[done:end, :done] = Whitening(known, cross)(cross).T
            corner[done:end, done:end] = look.corner
            done = end
        return corner

    @cached_property
    def evidence(self) -> Evidence | None:
        """What was observed and what is imagined."""
        seen, p = self.before.evidence, len(self)
        if seen is None:
            return None
        m = len(seen.at)
        factor = np.zeros((m + p, m + p))
        factor[:m, :m], factor[m:, m:] = seen.factor, self.corner
        factor[m:, :m] = host(self.before.explained.of(self.names)).T
        # An imagined value equal to the mean carries no weight: μ does not move.
        weights = np.concatenate([seen.weights, np.zeros(p)])
        noise = np.concatenate([seen.noise, np.full(p, self.before.noise)])
        return Evidence(
            np.vstack([seen.at, *(look.at for look in self.each)]), factor, weights, noise
        )
