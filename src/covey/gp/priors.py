"""Priors on hyper-parameters, as densities of θ together with their slope in log θ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from covey.arrays import Array


class Prior(Protocol):
    """A density on θ > 0, handled through t = log θ."""

    def log_density(self, t: Array, /) -> tuple[Array, Array]:
        """log p(θ) up to a constant, and its slope in t (the Jacobian is the sampler's affair)."""
        ...

    @property
    def start(self) -> float:
        """A sane t to start from."""
        ...


@dataclass(frozen=True, slots=True)
class LogNormal:
    """log θ ~ N(mu, sigma²)."""

    mu: float
    sigma: float

    def log_density(self, t: Array, /) -> tuple[Array, Array]:
        """-t - (t - mu)² / 2 sigma²."""
        z = (t - self.mu) / self.sigma
        return -t - 0.5 * z * z, -1.0 - z / self.sigma

    @property
    def start(self) -> float:
        """The mode of θ."""
        return self.mu - self.sigma**2


@dataclass(frozen=True, slots=True)
class Gamma:
    """θ ~ Gamma(shape, rate)."""

    shape: float
    rate: float

    def log_density(self, t: Array, /) -> tuple[Array, Array]:
        """(shape - 1) t - rate e^t."""
        scaled = self.rate * np.exp(t)
        return (self.shape - 1.0) * t - scaled, self.shape - 1.0 - scaled

    @property
    def start(self) -> float:
        """The mean of θ."""
        return math.log(self.shape / self.rate)


@dataclass(frozen=True, slots=True)
class LogUniform:
    """log θ uniform (within the bounds of the fit)."""

    start: float

    def log_density(self, t: Array, /) -> tuple[Array, Array]:
        """-t: flat in log θ once the Jacobian is added."""
        return -t, np.full_like(t, -1.0)


@dataclass(frozen=True, slots=True)
class Priors:
    """The priors of one Gaussian process: on each length-scale, the variance and the noise."""

    length: Prior
    variance: Prior
    noise: Prior


def scaled_priors(dimension: int) -> Priors:
    """Length-scales that grow like √d (Hvarfner et al. 2024): sane from one observation on.

    Variance and noise priors are ours: broad, with modes 1 and 3e-4 of the outcome's variance.
    """
    return Priors(
        length=LogNormal(math.sqrt(2.0) + 0.5 * math.log(dimension), math.sqrt(3.0)),
        variance=LogNormal(1.0, 1.0),
        noise=LogNormal(-4.0, 2.0),
    )


def paper_priors(dimension: int) -> Priors:
    """What is read into the paper (MATH section 1): Gamma(5/2, 5) lengths, the rest log-uniform."""
    del dimension  # the paper's priors do not depend on it
    return Priors(
        length=Gamma(2.5, 5.0), variance=LogUniform(0.0), noise=LogUniform(math.log(1e-2))
    )


PRIORS = {"scaled": scaled_priors, "paper": paper_priors}
"""Families of priors by name; each takes the number of encoded inputs."""
