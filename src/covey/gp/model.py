"""GP, what a user may set about the model, and Model, the hyper-parameters a fit found."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from covey.errors import HistoryError, StrategyError, did_you_mean
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
        warp: whether outcomes may be bent to look Gaussian before they are modelled, which is done
            where it makes them more probable. Not where a noise or a standard error is given, which
            would have to bend along.

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
        if not isinstance(self.samples, int) or self.samples < 0:
            raise StrategyError(f"samples is a whole number, 0 for none; got {self.samples!r}.")

    def describe(self) -> dict[str, Any]:
        """Plain data for a log."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Model:
    """Hyper-parameters of one Gaussian process, in standardised units."""

    kernel: Kernel
    noise: float
    mean: float = 0.0
    bent: bool = False  # whether the outcomes were bent first

    def suits(self, gp: GP, width: int) -> bool:
        """Whether a fit of this process to inputs of this width could have found it."""
        return type(self.kernel) is KERNELS[gp.kernel] and len(self.kernel.lengths) == width

    def describe(self) -> dict[str, Any]:
        """Plain data for a log; floats survive the round trip exactly."""
        name = next(name for name, made in KERNELS.items() if type(self.kernel) is made)
        return {
            "kernel": name,
            "lengths": list(self.kernel.lengths),
            "variance": self.kernel.variance,
            "noise": self.noise,
            "mean": self.mean,
            "bent": self.bent,
        }

    @staticmethod
    def from_description(data: Mapping[str, Any]) -> Model:
        """The inverse of `describe`.

        Raises:
            HistoryError: The data describe no model; a log may come from anywhere.
        """
        lengths, bent = data.get("lengths"), data.get("bent", False)
        numbers = [data.get(name) for name in ("variance", "noise", "mean")]
        sound = (
            data.get("kernel") in tuple(KERNELS)
            and isinstance(lengths, list | tuple)
            and isinstance(bent, bool)
            and all(_is_finite(number) for number in (*lengths, *numbers))
            and all(length > 0.0 for length in lengths)
            and data["variance"] > 0.0
            and data["noise"] >= 0.0
        )
        if not sound or lengths is None:
            raise HistoryError(f"these are no hyper-parameters of a model: {dict(data)!r}.")
        kernel = KERNELS[data["kernel"]](tuple(lengths), data["variance"])
        return Model(kernel, data["noise"], data["mean"], bent)


def _is_finite(number: object) -> bool:
    plain = isinstance(number, int | float) and not isinstance(number, bool)
    return plain and abs(number) <= sys.float_info.max  # type: ignore[arg-type]
