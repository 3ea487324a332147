"""GP, what a user may set about the model, and Model, the hyper-parameters a fit found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from covey.errors import StrategyError
from covey.gp.priors import PRIORS
from covey.kernels import KERNELS, Kernel

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class GP:
    """The Gaussian process to use, as plain data a log can hold.

    Attributes:
        kernel: "matern52" or "squared-exponential" (the paper's).
        mean: "constant" (learnt) or "zero" (the paper's), of standardised outcomes.
        noise: standard deviation of one observation in the user's units; None learns it.
        samples: 0 takes the most probable hyper-parameters; m > 0 draws m of them by slice
            sampling and averages over them (the paper's mode uses 10).
        priors: "scaled" (length-scales grow with dimension) or "paper".

    >>> GP(kernel="squared-exponential", mean="zero", samples=10, priors="paper").samples
    10
    """

    kernel: str = "matern52"
    mean: Literal["constant", "zero"] = "constant"
    noise: float | None = None
    samples: int = 0
    priors: str = "scaled"

    def __post_init__(self) -> None:
        for value, allowed in (
            (self.kernel, tuple(KERNELS)),
            (self.mean, ("constant", "zero")),
            (self.priors, tuple(PRIORS)),
        ):
            if value not in allowed:
                raise StrategyError(f"a GP knows {', '.join(allowed)}; got {value!r}.")
        if self.noise is not None and not (np.isfinite(self.noise) and self.noise >= 0.0):
            raise StrategyError(
                f"noise must be a standard deviation >= 0, or None to learn it; got {self.noise!r}."
            )
        if self.samples < 0:
            raise StrategyError(f"samples must be 0 (no sampling) or more; got {self.samples}.")

    def describe(self) -> dict[str, Any]:
        """Plain data for a log."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Model:
    """Hyper-parameters of one Gaussian process, in standardised units."""

    kernel: Kernel
    noise: float
    mean: float = 0.0

    def describe(self) -> dict[str, Any]:
        """Plain data for a log; floats survive the round trip exactly."""
        name = next(name for name, made in KERNELS.items() if type(self.kernel) is made)
        return {
            "kernel": name,
            "lengths": list(self.kernel.lengths),
            "variance": self.kernel.variance,
            "noise": self.noise,
            "mean": self.mean,
        }

    @staticmethod
    def from_description(data: Mapping[str, Any]) -> Model:
        """The inverse of `describe`."""
        kernel = KERNELS[data["kernel"]](tuple(data["lengths"]), data["variance"])
        return Model(kernel, data["noise"], data["mean"])
