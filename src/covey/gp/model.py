"""`GP`, the user's settings; `Model`, hyper-parameters that a fit found; and the priors on them."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from covey.errors import HistoryError, StrategyError, did_you_mean, is_whole
from covey.kernels import KERNELS, Kernel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from covey.arrays import Array
    from covey.gp.observations import View

_MOST_SAMPLES = 1000  # each takes some hundred likelihoods

# Priors on hyper-parameters θ, as densities of t = log θ.
#
# A fit takes the most probable t. The most probable θ would lean towards small noise and short
# length-scales, and read noise as signal (decision 7).


class Prior(Protocol):
    """A density of t = log θ."""

    def log_density(self, t: Array, /) -> tuple[Array, Array]:
        """log p(t) up to a constant, and its derivative; the shape of t."""
        ...

    @property
    def start(self) -> float:
        """The t that a fit starts from: the mode, where there is one."""
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
        """Zero everywhere."""
        return 0.0 * t, 0.0 * t


@dataclass(frozen=True, slots=True)
class Priors:
    """The priors of one Gaussian process: on each length-scale, the variance and the noise."""

    length: Prior
    variance: Prior
    noise: Prior


def scaled_priors(dimension: int) -> Priors:
    """Length-scales that grow like √d (Hvarfner et al. 2024), which work from one observation on.

    The constants are ours: lengths about √d/2, the variance about 1, the noise about 2 % of the
    outcome's variance and within a factor of 7 of that two times out of three.
    """
    return Priors(
        length=LogNormal(math.log(0.5) + 0.5 * math.log(dimension), 1.2),
        variance=LogNormal(0.0, 1.0),
        noise=LogNormal(-4.0, 2.0),
    )


def paper_priors(dimension: int) -> Priors:
    """Our reading of the paper (MATH 1): Gamma(5/2, 5) length-scales, the rest log-uniform."""
    del dimension  # the paper's priors do not depend on it
    return Priors(
        length=Gamma(2.5, 5.0), variance=LogUniform(0.0), noise=LogUniform(math.log(1e-2))
    )


PRIORS = {"scaled": scaled_priors, "paper": paper_priors}
"""Families of priors by name; each takes the number of encoded inputs."""


@dataclass(frozen=True, slots=True)
class GP:
    """The Gaussian process to use, as plain data a log can hold.

    Attributes:
        kernel: "matern52" or "squared-exponential" (the paper's).
        mean: "constant" (learnt) or "zero" (the paper's), of standardised outcomes.
        noise: standard deviation of one observation in the user's units; None learns it.
        samples: 0 takes the most probable hyper-parameters; m > 0 draws m of them by slice
            sampling and averages over them (the paper's mode uses 10); at most 1000.
        priors: "scaled" (length-scales grow with dimension) or "paper".
        warp: whether outcomes may be warped to look Gaussian before they are modelled, which is
            done where it makes them more probable. They are not where a noise or a standard error
            is given, since that is in unwarped units.

    >>> paper = GP("squared-exponential", mean="zero", samples=10, priors="paper", warp=False)
    >>> paper.samples
    10
    """

    kernel: str = "matern52"
    mean: Literal["constant", "zero"] = "constant"
    noise: float | None = None
    samples: int = 0
    priors: str = "scaled"
    warp: bool = True

    def __post_init__(self) -> None:
        for what, value, allowed in (
            ("kernel", self.kernel, tuple(KERNELS)),
            ("mean", self.mean, ("constant", "zero")),
            ("priors", self.priors, tuple(PRIORS)),
        ):
            if value not in allowed:
                raise StrategyError(
                    f"the {what} of a GP is one of {', '.join(allowed)}; got {value!r}."
                    f"{did_you_mean(value, allowed)}"
                )
        number = isinstance(self.noise, int | float | np.number)
        if self.noise is not None and not (number and 0.0 <= self.noise < np.inf):
            raise StrategyError(
                f"noise must be a standard deviation >= 0, or None to learn it; got {self.noise!r}."
            )
        if not is_whole(self.samples, 0) or self.samples > _MOST_SAMPLES:
            raise StrategyError(
                f"samples is a whole number from 0, for none, to {_MOST_SAMPLES}; got "
                f"{self.samples!r}."
            )

    def describe(self) -> dict[str, Any]:
        """Plain data for a log."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Model:
    """Hyper-parameters of one Gaussian process, in standardised units."""

    kernel: Kernel
    noise: float  # σ², the variance of one observation
    mean: float = 0.0  # m, the constant prior mean
    view: View = "straight"  # of the outcomes that it was fitted to
    outcome: str = ""  # the name of the outcome, where they have names
    earlier: tuple[float, ...] = ()  # a_s, the weights of earlier studies in the prior mean
    shifts: tuple[tuple[str, float], ...] = ()  # τ² of each effect, such as that of plates

    def suits(self, gp: GP, width: int) -> bool:
        """Whether it has the kernel of this process and this number of encoded inputs."""
        return type(self.kernel) is KERNELS[gp.kernel] and len(self.kernel.lengths) == width

    def taus(self, names: Sequence[str]) -> Array:
        """τ² of effects of these names; 0 where none was learnt."""
        return np.array([dict(self.shifts).get(name, 0.0) for name in names], dtype=float)

    def describe(self) -> dict[str, Any]:
        """Plain data for a log; floats survive the round trip exactly."""
        name = next(name for name, made in KERNELS.items() if type(self.kernel) is made)
        named: dict[str, Any] = {"outcome": self.outcome} if self.outcome else {}
        if self.view == "framed":
            named["framed"] = True
        if self.earlier:
            named["earlier"] = list(self.earlier)
        if self.shifts:
            named["shifts"] = dict(self.shifts)
        return {
            "kernel": name,
            "lengths": list(self.kernel.lengths),
            "variance": self.kernel.variance,
            "noise": self.noise,
            "mean": self.mean,
            "bent": self.view != "straight",
            **named,
        }

    @staticmethod
    def from_description(data: Mapping[str, Any]) -> Model:
        """The inverse of `describe`.

        Raises:
            HistoryError: The data describe no model; a log may come from anywhere.
        """
        lengths, bent = data.get("lengths"), data.get("bent", False)
        framed = data.get("framed", False)
        earlier, shifts = data.get("earlier", []), data.get("shifts", {})
        shifts = shifts if isinstance(shifts, dict) else {"": None}
        numbers = [*(data.get(name) for name in ("variance", "noise", "mean")), *shifts.values()]
        sound = (
            data.get("kernel") in tuple(KERNELS)
            and isinstance(lengths, list | tuple)
            and isinstance(bent, bool)
            and isinstance(framed, bool)
            and isinstance(earlier, list | tuple)
            and all(_is_finite(number) for number in (*lengths, *numbers, *earlier))
            and all(length > 0.0 for length in lengths)
            and data["variance"] > 0.0
            and data["noise"] >= 0.0
            and all(variance >= 0.0 for variance in shifts.values())
        )
        if not sound or lengths is None:
            raise HistoryError(f"these are no hyper-parameters of a model: {dict(data)!r}.")
        kernel = KERNELS[data["kernel"]](tuple(lengths), data["variance"])
        view: View = "framed" if framed else "warped" if bent else "straight"
        made = Model(kernel, data["noise"], data["mean"], view, earlier=tuple(earlier))
        return replace(made, shifts=tuple(shifts.items()))


def _is_finite(number: object) -> bool:
    plain = isinstance(number, int | float) and not isinstance(number, bool)
    return plain and abs(number) <= sys.float_info.max  # type: ignore[arg-type]
