"""What greedy maximisation chooses."""

from __future__ import annotations

from typing import NamedTuple

from covey.arrays import Array, Indices, namespace
from covey.dpp.kernel import TOLERANCE, not_psd_error

_UNITS = 4096.0  # of rounding that single precision may leave behind (our choice)


class Choice(NamedTuple):
    """What greedy picked, in order, and the factor by which each pick multiplied det L_S."""

    picks: Indices  # (k,)
    gains: Array  # (k,)
    passes: int  # how often all n items were looked at, a column or a chunk at a time


def check_semidefinite(residual: Array, diagonal: Array, items: Indices | None = None) -> None:
    """Whether conditional variances (of all, or of some items) are those of a covariance.

    A chosen item has residual 0, and a duplicate of it a few units of rounding below; in single
    precision, a few of that.
    """
    xp = namespace(residual)
    worst = int(xp.argmin(residual))
    found = float(residual[worst])
    slack = max(TOLERANCE, _UNITS * float(xp.finfo(residual.dtype).eps))
    if found < -slack * float(diagonal[worst]):
        name = worst if items is None else int(items[worst])
        raise not_psd_error(f"item {name} has conditional variance {found:.3g}")
