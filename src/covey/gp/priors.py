"""Priors on hyper-parameters, as densities of t = log θ.

In t, and not in θ: a fit takes the most probable t. The most probable θ would lean towards small
noise and short length-scales, and read noise as signal (decision 7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from covey.arrays import Array


class Prior(Protocol):
    """A density of t = log θ."""

    def log_density(self, t: Array, /) -> tuple[Array, Array]:
        """log p(t) up to a constant, and its slope."""
        ...

    @property
    def start(self) -> float:
        """A sane t to start from: its mode, where it has one."""
        ...


@dataclass(frozen=True, slots=True)
class LogNormal:
    """t ~ N(mu, sigma²)."""

    mu: float
    sigma: float

    def log_density(self, t: Array, /) -> tuple[Array, Array]:
        """-(t - mu)² / 2 sigma²."""
        z = (t - self.mu) / self.sigma
        return -0.5 * z * z, -z / self.sigma

    @property
    def start(self) -> float:
        """The mode."""
        return self.mu


@dataclass(frozen=True, slots=True)
class Gamma:
    """θ = e^t ~ Gamma(shape, rate)."""

    shape: float
    rate: float

    def log_density(self, t: Array, /) -> tuple[Array, Array]:
        """shape t - rate e^t: the density of θ times dθ/dt."""
        scaled = self.rate * np.exp(t)
        return self.shape * t - scaled, self.shape - scaled

    @property
    def start(self) -> float:
        """The mode of t, which is the mean of θ."""
        return math.log(self.shape / self.rate)


@dataclass(frozen=True, slots=True)
class LogUniform:
    """t uniform, within the bounds of the fit."""

    start: float

    def log_density(self, t: Array, /) -> tuple[Array, Array]:
        """Flat."""
        return 0.0 * t, 0.0 * t


@dataclass(frozen=True, slots=True)
class Priors:
    """The priors of one Gaussian process: on each length-scale, the variance and the noise."""

    length: Prior
    variance: Prior
    noise: Prior


def scaled_priors(dimension: int) -> Priors:
    """Length-scales that grow like √d (after Hvarfner et al. 2024): sane from one observation on.

    The constants are ours: lengths about √d/2, the variance about 1, the noise about 2 % of the
    outcome's variance and within a factor of 7 of that two times out of three.
    """
    return Priors(
        length=LogNormal(math.log(0.5) + 0.5 * math.log(dimension), 1.2),
        variance=LogNormal(0.0, 1.0),
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
