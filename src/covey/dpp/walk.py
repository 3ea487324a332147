"""Nearly exact k-DPP samples by the down-up walk, without a pass over all items."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from covey.arrays import Array, Indices, host
from covey.dpp import categorical
from covey.dpp.kernel import Blocks, Divisible
from covey.dpp.pace import Pace
from covey.dpp.start import Start, greedy_start
from covey.dpp.state import State, Stream

# Proposals come in blocks, each three times all before it, of which there are at least 64 and, in
# larger n, up to a quarter of n: then a pass over the n items settles it, which costs as much as n
# proposals. A block is cut where with k items it would take more bytes. (Our choice.)
_FIRST, _LEAST, _LARGEST, _BYTES = 4, 64, 8192, 2**24
# Positions renewed in one round: so many, and a share of k. The other items are factored once a
# round, which costs k³; a step costs the cube of these. (Our choice.)
_TOGETHER, _SHARE = 32, 16


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    r"""The down-up walk: take out a uniform item, put one back by conditional variance.

    The up-step is a heat bath by rejection: propose j with probability proportional to L_jj and
    accept with probability v(j|R) / L_jj, which reads k - 1 entries of L and does not depend on n.
    """

    kernel: Blocks
    cumulative: Array  # (n,), running sum of the diagonal, on the host
    start: Indices  # (k,)
    steps: int
    error: float
    proposals: tuple[int, ...]  # sizes of the blocks of proposals before a pass
    log_inverse_mass: float = math.inf  # of the start, at most

    method: ClassVar[str] = "walk"

    def cut(self, steps: int) -> Walk:
        """The same walk with fewer steps."""
        return replace(
            self, steps=steps, error=bound(self.log_inverse_mass, len(self.start), steps)
        )

    def draw(self, rng: np.random.Generator) -> list[int]:
        """Run the walk from the greedy start. Cost about k² a step.

        Positions are uniform whatever the state, so they can be known beforehand; and proposals
        are alike whatever the state, so they are drawn and judged in rounds of many steps.
        """
        k, n = len(self.start), len(self.cumulative)
        state = State(self.kernel, self.start)
        pace = Pace(self.proposals, _TOGETHER + k // _SHARE, k, n)
        positions = rng.integers(k, size=self.steps)
        done = 0
        while done < self.steps:
            done += self._round(state, positions[done : done + pace.positions], pace, rng)
        return sorted(state.items.tolist())

    def _round(self, state: State, positions: Indices, pace: Pace, rng: np.random.Generator) -> int:
        """Renew the items at some positions; return how many steps were taken."""
        weights, cumulative = state.diagonal, self.cumulative
        if pace.anchored:
            weights = state.without(positions).all_variances()
            cumulative = np.cumsum(weights)
            if cumulative[-1] <= 0.0:  # only by rounding: an old item has a variance in exact terms
                return len(positions)
        tried = categorical.draw(cumulative, rng.random(pace.proposals))
        bars = rng.random(len(tried)) * weights[tried]
        if pace.anchored and (positions == positions[0]).all():
            bars[:] = -1.0  # its weights are the law itself
        progress = state.renew(positions, Stream(tried, bars))
        pace.adjust(progress, len(positions), float(cumulative[-1] / self.cumulative[-1]))
        return progress.steps


def prepare(kernel: Divisible, k: int, *, epsilon: float, max_steps: int | None) -> Walk:
    """Choose the number of steps; 2 <= k < n. Cost n k² for the greedy start, or less."""
    start = greedy_start(kernel, k)
    steps, mass = enough_steps(start, k, epsilon), start.log_inverse_mass
    cumulative = np.cumsum(host(kernel.diagonal))
    sizes = blocks(len(cumulative), k)
    walk = Walk(kernel, cumulative, start.items, steps, epsilon, sizes, mass)
    return walk if max_steps is None or steps <= max_steps else walk.cut(max_steps)


def blocks(n: int, k: int) -> tuple[int, ...]:
    """Sizes of the blocks of proposals before a full pass.

    >>> blocks(100, 5), blocks(2000, 5)
    ((4, 12, 48), (4, 12, 48, 192))
    """
    most = max(_LEAST, min(_LARGEST, _BYTES // (8 * k)))
    sizes, total = [_FIRST], _FIRST
    while total < _LEAST or 4 * total <= n // 4:
        sizes.append(min(3 * total, most))
        total += sizes[-1]
    return tuple(sizes)


def enough_steps(start: Start, k: int, epsilon: float) -> int:
    r"""Steps after which the total variation is at most ε (Cryan, Guo & Mousa 2019).

    .. math:: N = \lceil k\,[\log\log(1/\mu(S_0)) + \log(1/(2\epsilon^2))] \rceil
    """
    entropy = max(start.log_inverse_mass, 1.0)
    return max(1, math.ceil(k * (math.log(entropy) - math.log(2.0 * epsilon**2))))


def bound(log_inverse_mass: float, k: int, steps: int) -> float:
    r"""Total variation after any number of steps.

    A step shrinks the relative entropy, at first log 1/μ(S₀), by 1 - 1/k; then Pinsker:

    .. math:: \mathrm{TV} \le \sqrt{\tfrac12 (1 - 1/k)^N \log(1/\mu(S_0))}
    """
    entropy = max(log_inverse_mass, 0.0) * math.exp(steps * math.log1p(-1.0 / k))
    return min(1.0, math.sqrt(entropy / 2.0))
