"""The five parameters of FastXML, and grids of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """One choice of the parameters; the defaults are the published program's."""

    num_tree: int = 50
    bias: float = 1.0
    log_loss_coeff: float = 1.0
    max_leaf: int = 10
    lbl_per_leaf: int = 100


@dataclass(frozen=True)
class Cuts:
    """Ascending values of the three parameters that only cut a larger forest down."""

    num_tree: tuple[int, ...]
    max_leaf: tuple[int, ...]
    lbl_per_leaf: tuple[int, ...]


@dataclass(frozen=True)
class Grid:
    """Every pair of the two parameters that need a training of their own, times the cuts."""

    bias: tuple[float, ...]
    log_loss_coeff: tuple[float, ...]
    cuts: Cuts

    @property
    def pairs(self) -> list[tuple[float, float]]:
        """(bias, log_loss_coeff), one training each."""
        return [(b, c) for b in self.bias for c in self.log_loss_coeff]


DECADES = (0.1, 0.215, 0.464, 1.0, 2.15, 4.64, 10.0)
"""Three steps a decade about the default, 1."""

GRID = Grid(
    DECADES, DECADES, Cuts((5, 10, 20, 50, 100), (2, 5, 10, 25, 70, 200), (1, 3, 10, 30, 100))
)
"""Our choice, since the paper gives no ranges: 7350 settings, even in logs, defaults included."""
