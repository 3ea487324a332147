"""Evidence: where observations were made and what they weigh, for pathwise draws and gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from covey.arrays import Array


@dataclass(frozen=True)
class Evidence:
    """Observations of one Gaussian process."""

    at: Array  # (m, d)
    factor: Array  # (m, m), lower Cholesky factor of K + noise at these points
    weights: Array  # (m,), so that μ(x) = constant + Σ_i w_i k(x, x_i)
    noise: Array  # (m,) variance of each observation

    def also(self, look: Look) -> Imagined:
        """With observations whose values are not known."""
        return Imagined(self, (look,))


class Look(NamedTuple):
    """Some observations that are imagined, after others."""

    at: Array  # (p, d)
    corner: Array  # (p, p), lower Cholesky factor of what is left of K + noise there
    cross: Callable[[], Array]  # makes the rows (p, m) of the factor below those of all before
    noise: float


@dataclass(frozen=True, eq=False)
class Imagined:
    """Evidence with imagined observations, put together when it is asked for.

    A batch imagines its picks one by one and seldom asks; a factor of ten thousand observations
    takes 800 MB to copy.
    """

    before: Evidence
    looks: tuple[Look, ...]

    def also(self, look: Look) -> Imagined:
        """With more of them."""
        return Imagined(self.before, (*self.looks, look))

    @cached_property
    def at(self) -> Array:
        """Where, (m, d)."""
        return np.vstack([self.before.at, *(look.at for look in self.looks)])

    @cached_property
    def factor(self) -> Array:
        """Lower Cholesky factor of K + noise, (m, m)."""
        m = len(self.before.at)
        factor = np.zeros((len(self.at), len(self.at)))
        factor[:m, :m] = self.before.factor
        for look in self.looks:
            end = m + len(look.at)
            factor[m:end, :m], factor[m:end, m:end] = look.cross(), look.corner
            m = end
        return factor

    @cached_property
    def weights(self) -> Array:
        """As before: an imagined value equal to the mean carries no weight, μ does not move."""
        return np.concatenate([self.before.weights, np.zeros(len(self.at) - len(self.before.at))])

    @cached_property
    def noise(self) -> Array:
        """Variance of each observation (m,)."""
        more = [np.full(len(look.at), look.noise) for look in self.looks]
        return np.concatenate([self.before.noise, *more])
