"""Nearly exact k-DPP samples by the down-up walk, without a pass over all items."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from covey.arrays import Array, Indices
from covey.dpp import categorical
from covey.dpp.conditional import Conditional, given
from covey.dpp.kernel import Blocks
from covey.dpp.start import Start, greedy_start

# Proposals of an up-step come in blocks, each three times all before it, of which there are at
# least 64 and, in larger n, up to a quarter of n: then one pass over the n items settles it, which
# costs as much as n proposals. (Our choice.)
_FIRST, _LEAST = 4, 64
# Items looked at together, to bound memory by k times this.
_CHUNK = 8192
# Positions renewed in one round, as a share of k: the other items are factored once a round.
_SHARE = 64


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    r"""The down-up walk: take out a uniform item, put one back by conditional variance.

    The up-step is a heat bath by rejection: propose j with probability proportional to L_jj and
    accept with probability v(j|R) / L_jj, which reads k - 1 entries of L and does not depend on n.
    """

    kernel: Blocks
    cumulative: Array  # (n,), running sum of the diagonal
    start: Indices  # (k,)
    steps: int
    error: float
    proposals: tuple[int, ...]

    method: ClassVar[str] = "walk"

    def draw(self, rng: np.random.Generator) -> list[int]:
        """Run the walk from the greedy start. Cost about k³ a step for small k, k² for large."""
        items = self.start.copy()
        positions = rng.integers(len(items), size=self.steps)
        together = 1 + len(items) // _SHARE
        for low in range(0, self.steps, together):
            self._round(items, positions[low : low + together], rng)
        return sorted(items.tolist())

    def _round(self, items: Indices, positions: Indices, rng: np.random.Generator) -> None:
        """Renew the items at ``positions`` one after the other, in place.

        Positions are uniform whatever the state, so they can be known beforehand, and the items
        at all other positions stay for the whole round.
        """
        moving = np.unique(positions)
        fixed = given(self.kernel, np.delete(items, moving))
        for position in positions:
            rest = fixed.also(items[moving[moving != position]])
            found = self._propose(rest, rng)
            items[position] = self._pass(rest, items[position], rng) if found is None else found

    def _propose(self, rest: Conditional, rng: np.random.Generator) -> int | None:
        """The first accepted proposal, if there is one."""
        for size in self.proposals:
            tried = categorical.draw(self.cumulative, rng.random(size))
            bar = rng.random(size) * self.kernel.diagonal[tried]
            accepted = np.flatnonzero(bar < rest.variances(tried))
            if len(accepted):
                return int(tried[accepted[0]])
        return None

    def _pass(self, rest: Conditional, old: int, rng: np.random.Generator) -> int:
        """The heat bath itself, over all n items. Cost n k²."""
        n = len(self.kernel.diagonal)
        chunks = [np.arange(low, min(low + _CHUNK, n)) for low in range(0, n, _CHUNK)]
        cumulative = np.cumsum(np.concatenate([rest.variances(at) for at in chunks]))
        if cumulative[-1] <= 0.0:  # only by rounding: the old item has a variance in exact terms
            return old
        return int(categorical.draw(cumulative, rng.random(1))[0])


def prepare(kernel: Blocks, k: int, *, epsilon: float, max_steps: int | None) -> Walk:
    """Choose the number of steps; 2 <= k < n. Cost n k² for the greedy start."""
    start = greedy_start(kernel, k)
    needed = enough_steps(start, k, epsilon)
    steps, error = needed, epsilon
    if max_steps is not None and needed > max_steps:
        steps, error = max_steps, bound(start, k, max_steps)
    cumulative = np.cumsum(kernel.diagonal)
    return Walk(kernel, cumulative, start.items, steps, error, blocks(len(cumulative)))


def blocks(n: int) -> tuple[int, ...]:
    """Sizes of the blocks of proposals before a full pass.

    >>> blocks(100), blocks(2000)
    ((4, 12, 48), (4, 12, 48, 192))
    """
    sizes, total = [_FIRST], _FIRST
    while total < _LEAST or 4 * total <= n // 4:
        sizes.append(min(3 * total, _CHUNK))
        total += sizes[-1]
    return tuple(sizes)


def enough_steps(start: Start, k: int, epsilon: float) -> int:
    r"""Steps after which the total variation is at most ε (Cryan, Guo & Mousa 2019).

    .. math:: N = \lceil k\,[\log\log(1/\mu(S_0)) + \log(1/(2\epsilon^2))] \rceil
    """
    entropy = max(start.log_inverse_mass, 1.0)
    return max(1, math.ceil(k * (math.log(entropy) - math.log(2.0 * epsilon**2))))


def bound(start: Start, k: int, steps: int) -> float:
    r"""Total variation after any number of steps.

    A step shrinks the relative entropy, at first log 1/μ(S₀), by 1 - 1/k; then Pinsker:

    .. math:: \mathrm{TV} \le \sqrt{\tfrac12 (1 - 1/k)^N \log(1/\mu(S_0))}
    """
    entropy = max(start.log_inverse_mass, 0.0) * math.exp(steps * math.log1p(-1.0 / k))
    return min(1.0, math.sqrt(entropy / 2.0))
