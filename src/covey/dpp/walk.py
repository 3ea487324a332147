"""Nearly exact k-DPP samples by the down-up walk, without a pass over all items.

A step takes out a uniform item and puts one back by its conditional variance (Cryan, Guo & Mousa
2019; MATH 6.4). Steps are made in rounds: `State` holds the set and makes a round, `Pace` chooses
its size, `Walk` is the sampler.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from covey.arrays import Array, Indices, Whitening, cholesky, to_numpy
from covey.covariance import Conditional, Covariance, conditional_variances
from covey.dpp import spectral
from covey.dpp.greedy import Start, greedy_start

# The present set of a walk, and a round of steps. Of one round's positions the "moving" items may
# change; the others are "fixed".

# The most proposals of a round that are kept after conditioning on the fixed items, and how many of
# them are evaluated together. (Our choice.)
_MOST, _SCORED_TOGETHER = 512, 4


class Proposals(NamedTuple):
    """Proposals in order, each accepted if its conditional variance is above its bar."""

    items: Indices  # (N,)
    bars: Array  # (N,)


class RoundResult(NamedTuple):
    """How far a round went: positions renewed, and proposals used."""

    steps: int
    used: int


class State:
    """A set S and L_SS, whose entries are read from the kernel, so that no rounding accumulates."""

    __slots__ = ("_kernel", "_most", "_square", "diagonal", "items")

    def __init__(self, kernel: Covariance, items: Indices, most: int = _MOST) -> None:
        self._kernel, self._most = kernel, most  # proposals played out in a round, at most
        self.diagonal = to_numpy(kernel.diagonal)  # (n,)
        self._square = np.array(to_numpy(kernel.block(items, items)), dtype=np.float64)
        self.items = items.copy()

    def without(self, positions: Indices) -> Conditional:
        """Conditional variances given the items at all other positions. Cost k³."""
        fixed = np.delete(np.arange(len(self.items)), positions)
        factor = cholesky(self._square[fixed[:, None], fixed])
        return Conditional(self._kernel, self.items[fixed], factor)

    def renew(self, positions: Indices, stream: Proposals) -> RoundResult:
        """Renew the items at these positions, one after the other, until the stream is used up.

        The items at all other positions are fixed. Proposals are conditioned on them once a round,
        k² each, which leaves a problem of the size of the moving items for each step.
        Cost k³ + k² len(stream) + steps · moving³.
        """
        moving = np.unique(positions)
        fixed = np.delete(np.arange(len(self.items)), moving)
        fresh = to_numpy(self._kernel.block(self.items, stream.items))
        factor = self.without(moving).factor
        white = Whitening(factor, fresh)(np.hstack([self._square[fixed][:, moving], fresh[fixed]]))
        passed = self._passed(stream, self.items[fixed], white[:, len(moving) :])
        near = self._near(moving, fresh[moving][:, passed], stream.items[passed])
        white = np.hstack([white[:, : len(moving)], white[:, len(moving) + passed]])
        few = _FewItems(
            np.concatenate([self.items[moving], stream.items[passed]]),
            near - white.T @ white,  # Schur complement: L given the fixed items
            stream.bars[passed],
        )
        steps = few.play(np.searchsorted(moving, positions))
        self._settle(moving, fixed, few, near, fresh[:, passed])
        if steps == len(positions):
            return RoundResult(steps, int(passed[few.next - 1]) + 1)
        # The stream ended, or the ``most`` proposals that were kept of it.
        return RoundResult(
            steps, int(passed[-1]) + 1 if len(passed) == self._most else len(stream.items)
        )

    def _passed(self, stream: Proposals, fixed: Indices, white: Array) -> Indices:
        """The proposals that the fixed items F do not reject: v(j|R) <= v(j|F) for F ⊂ R."""
        bounds = conditional_variances(self.diagonal[stream.items], white)
        bounds[np.isin(stream.items, fixed)] = -np.inf
        return np.flatnonzero(stream.bars < bounds)[: self._most]

    def _near(self, moving: Indices, cross: Array, items: Indices) -> Array:
        """L on the moving items and the proposals; ``cross`` is the block between the two."""
        within = to_numpy(self._kernel.block(items, items))
        here = self._square[moving[:, None], moving]
        return np.ascontiguousarray(np.block([[here, cross], [cross.T, within]]))

    def _settle(
        self, moving: Indices, fixed: Indices, few: _FewItems, near: Array, fresh: Array
    ) -> None:
        """Put the accepted proposals into the set, and their entries into L_SS."""
        place = few.place
        new = place >= len(moving)
        changed = moving[new]
        self.items[changed] = few.items[place[new]]
        rows = fresh[fixed][:, place[new] - len(moving)]
        self._square[fixed[:, None], changed] = rows
        self._square[changed[:, None], fixed] = rows.T
        self._square[moving[:, None], moving] = near[place[:, None], place]


class _FewItems:
    """Steps of the walk on the moving items and the proposals, given the fixed items.

    An item may occur more than once; ``place`` is the entry at each moving position.
    """

    def __init__(self, items: Indices, schur: Array, bars: Array) -> None:
        self.items, self._schur, self._bars = items, schur, bars
        self._diagonal = schur.diagonal()
        self._moving = len(items) - len(bars)
        self.place = np.arange(self._moving)
        self.next = 0  # the first proposal not used yet

    def play(self, positions: Indices) -> int:
        """Renew these positions in turn; return for how many the proposals sufficed."""
        for done, position in enumerate(positions):
            others = np.concatenate([self.place[:position], self.place[position + 1 :]])
            found = self._accepted(others)
            if found is None:
                return done
            self.place[position] = self._moving + found
            self.next = found + 1
        return len(positions)

    def _accepted(self, rest: Indices) -> int | None:
        """The first proposal with v(j|R) above its bar, R the items at the places ``rest``."""
        schur, rows = self._schur, rest[:, None]
        factor = cholesky(schur[rows, rest])
        for low in range(self.next, len(self._bars), _SCORED_TOGETHER):
            some = slice(self._moving + low, self._moving + low + _SCORED_TOGETHER)
            white = np.asarray(np.linalg.solve(factor, schur[rest, some]), dtype=np.float64)
            # v(j|R), R all items but the one taken out: the weight of the heat bath, MATH 6.4.
            variances = conditional_variances(self._diagonal[some], white)
            # An item that is in R already has none.
            variances[(self.items[rows] == self.items[some]).any(axis=0)] = 0.0
            above = np.maximum(variances, 0.0) > self._bars[low : low + _SCORED_TOGETHER]
            if above.any():
                return low + int(above.argmax())
        return None


class Pace:
    """The size of the next round: how many positions to renew, and from how many proposals.

    It depends on how many steps the last rounds made, and never on which items they chose. Once as
    many proposals as all blocks hold were rejected in a row, the next round is anchored: it draws
    proposals by their conditional variance given its fixed items, which takes a pass over all n
    items; if it renews a single item, the first proposal is accepted.
    """

    __slots__ = ("_accepted", "_anchor", "_most", "_n", "_refused", "_sizes", "_span", "_tried")

    def __init__(self, sizes: tuple[int, ...], most: int, k: int, n: int) -> None:
        self._sizes, self._most, self._n = sizes, most, n
        self._span, self._anchor = most, max(1, k // 4)
        self._accepted = self._tried = 1.0  # steps and proposals, halved after each round
        self._refused = 0  # proposals in a row

    @property
    def anchored(self) -> bool:
        """Whether a pass over all items is due."""
        return self._refused >= sum(self._sizes)

    @property
    def positions(self) -> int:
        """The most positions to renew."""
        return self._anchor if self.anchored else self._span

    @property
    def proposals(self) -> int:
        """The number of proposals to draw: enough at the recent rate of acceptance."""
        if self.anchored:
            return 4 * self._anchor
        enough = math.ceil(1.1 * self._span * self._tried / self._accepted)
        return min(max(enough, self._sizes[0]), self._sizes[-1])

    def adjust(self, progress: RoundResult, asked: int, share: float) -> None:
        """Adapt to a round that was to renew ``asked`` positions.

        ``share`` is the sum of the weights of the proposals as a share of tr L.
        """
        if not self.anchored:
            self._span = min(self._most, 2 * progress.steps + 1)
            self._refused = 0 if progress.steps else self._refused + progress.used
            self._accepted = self._accepted / 2.0 + progress.steps
            self._tried = self._tried / 2.0 + progress.used
            return
        if progress.steps < asked:
            self._anchor = max(1, self._anchor // 2)
        # A pass costs as much as n proposals; go back to those if they would make as many steps.
        plainly = self._n * share * progress.steps / max(1, progress.used)
        self._refused = 0 if plainly >= progress.steps else self._refused


# The sampler.

# Sizes of the blocks of proposals before a pass over all items, which costs as much as n proposals:
# the first has 4, each next one three times all before it, up to 64 in all or a quarter of n. A
# block has at most 8192 proposals, or fewer if with k items they would take more bytes. (Our
# choice.)
_FIRST, _LEAST, _LARGEST, _BYTES = 4, 64, 8192, 2**24
# Positions renewed in one round: 32 + k/16. The fixed items are factored once a round, which costs
# k³; a step costs the cube of the number of moving ones. (Our choice.)
_TOGETHER, _SHARE = 32, 16


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    r"""The down-up walk: take out a uniform item, put one back by conditional variance.

    The up-step is a heat bath by rejection: propose j with probability proportional to L_jj and
    accept with probability v(j|R) / L_jj, which reads k - 1 entries of L and does not depend on n
    (MATH 6.4).
    """

    kernel: Covariance
    cumulative: Array  # (n,), running sum of the diagonal, on the host
    start: Indices  # (k,)
    steps: int
    error: float
    proposals: tuple[int, ...]  # sizes of the blocks of proposals before a pass
    log_inverse_mass: float = math.inf  # upper bound on log 1/μ(S₀)
    together: int = 0  # positions renewed in one round; 0: 32 + k // 16
    most: int = _MOST  # proposals played out in one round, at most

    method: ClassVar[str] = "walk"

    def cut(self, steps: int) -> Walk:
        """The same walk with fewer steps, and the larger bound ``error`` that follows."""
        return replace(
            self, steps=steps, error=walk_error(self.log_inverse_mass, len(self.start), steps)
        )

    def draw(self, rng: np.random.Generator) -> list[int]:
        """Run the walk from the greedy start. Cost about k² a step.

        Neither positions nor proposals depend on the state, so both are drawn ahead, and the
        proposals are evaluated in rounds of many steps.
        """
        k, n = len(self.start), len(self.cumulative)
        state = State(self.kernel, self.start, self.most)
        pace = Pace(self.proposals, self.together or _TOGETHER + k // _SHARE, k, n)
        positions = rng.integers(k, size=self.steps)  # down-steps: i ~ U(S), MATH 6.4
        done = 0
        while done < self.steps:
            done += self._round(state, positions[done : done + pace.positions], pace, rng)
        return sorted(state.items.tolist())

    def _round(self, state: State, positions: Indices, pace: Pace, rng: np.random.Generator) -> int:
        """Renew the items at some positions; return how many steps were made."""
        weights, cumulative = state.diagonal, self.cumulative
        if pace.anchored:
            weights = state.without(positions).all_variances()
            cumulative = np.cumsum(weights)
            if cumulative[-1] <= 0.0:  # by rounding only: the old items have positive variances
                return len(positions)
        # Up-step by rejection (MATH 6.4): j ~ L_jj, accepted if u L_jj < v(j|R).
        tried = spectral.draw_items(cumulative, rng.random(pace.proposals))
        bars = rng.random(len(tried)) * weights[tried]
        if pace.anchored and (positions == positions[0]).all():
            bars[:] = -1.0  # v(j|R) are the weights themselves: accept the first proposal
        progress = state.renew(positions, Proposals(tried, bars))
        pace.adjust(progress, len(positions), float(cumulative[-1] / self.cumulative[-1]))
        return progress.steps


def prepare_walk(
    kernel: Covariance, k: int, *, epsilon: float, max_steps: int | None, start: Start | None = None
) -> Walk:
    """The walk with enough steps for ``epsilon``; 2 <= k < n. Cost at most n k² for the start."""
    start = greedy_start(kernel, k) if start is None else start
    steps, mass = walk_steps(start, k, epsilon), start.log_inverse_mass
    cumulative = np.cumsum(to_numpy(kernel.diagonal))
    sizes = blocks(len(cumulative), k)
    walk = Walk(kernel, cumulative, start.items, steps, epsilon, sizes, mass)
    return walk if max_steps is None or steps <= max_steps else walk.cut(max_steps)


def blocks(n: int, k: int) -> tuple[int, ...]:
    """Sizes of the blocks of proposals before a pass over all items.

    >>> blocks(100, 5), blocks(2000, 5)
    ((4, 12, 48), (4, 12, 48, 192))
    """
    most = max(_LEAST, min(_LARGEST, _BYTES // (8 * k)))
    sizes, total = [_FIRST], _FIRST
    while total < _LEAST or 4 * total <= n // 4:
        sizes.append(min(3 * total, most))
        total += sizes[-1]
    return tuple(sizes)


def walk_steps(start: Start, k: int, epsilon: float) -> int:
    r"""N_du of MATH 6.4: steps to total variation ε (Cryan, Guo & Mousa 2019).

    .. math:: N = \lceil k\,[\log\log(1/\mu(S_0)) + \log(1/(2\epsilon^2))] \rceil
    """
    entropy = max(start.log_inverse_mass, 1.0)
    return max(1, math.ceil(k * (math.log(entropy) - math.log(2.0 * epsilon**2))))  # N_du


def walk_error(log_inverse_mass: float, k: int, steps: int) -> float:
    r"""Bound on the total variation after N steps.

    A step multiplies the relative entropy, at first log 1/μ(S₀), by 1 - 1/k; then Pinsker:

    .. math:: \mathrm{TV} \le \sqrt{\tfrac12 (1 - 1/k)^N \log(1/\mu(S_0))}
    """
    entropy = max(log_inverse_mass, 0.0) * math.exp(steps * math.log1p(-1.0 / k))
    return min(1.0, math.sqrt(entropy / 2.0))  # Pinsker: TV² <= KL / 2
