"""Nearly exact k-DPP samples by the down-up walk, without a pass over all items."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from covey.arrays import Array, Indices, Whitening, cholesky, to_numpy
from covey.covariance import Conditional, Covariance, conditional_variances
from covey.dpp import spectral
from covey.dpp.greedy import Start, greedy_start

# The present set of a walk, and how some of its items are renewed.

# Proposals, of those that the fixed items let pass, that are played out in one round, and how many
# of them are judged together. (Our choice.)
_MOST, _SCORED_TOGETHER = 512, 4


class Proposals(NamedTuple):
    """Proposals in order, each accepted if its conditional variance is above its bar."""

    items: Indices  # (N,)
    bars: Array  # (N,)


class RoundResult(NamedTuple):
    """How far a round went: positions renewed, and proposals used up."""

    steps: int
    used: int


class State:
    """A set S and L_SS, whose entries are all read from the kernel: no rounding gathers."""

    __slots__ = ("_kernel", "_square", "diagonal", "items")

    def __init__(self, kernel: Covariance, items: Indices) -> None:
        self._kernel = kernel
        self.diagonal = to_numpy(kernel.diagonal)  # (n,)
        self._square = np.array(to_numpy(kernel.block(items, items)), dtype=np.float64)
        self.items = items.copy()

    def without(self, positions: Indices) -> Conditional:
        """Given the items at all other positions. Cost k³."""
        fixed = np.delete(np.arange(len(self.items)), positions)
        factor = cholesky(self._square[fixed[:, None], fixed])
        return Conditional(self._kernel, self.items[fixed], factor)

    def renew(self, positions: Indices, stream: Proposals) -> RoundResult:
        """Renew the items at these positions, one after the other, until the stream is used up.

        The items at all other positions stay; what is conditioned on them once a round, k² for each
        proposal, leaves a small problem for each step. Cost k³ + k² len(stream) + steps · moving³.
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
            near - white.T @ white,
            stream.bars[passed],
        )
        steps = few.play(np.searchsorted(moving, positions))
        self._settle(moving, fixed, few, near, fresh[:, passed])
        if steps == len(positions):
            return RoundResult(steps, int(passed[few.next - 1]) + 1)
        # The stream ended, or what of it was looked at.
        return RoundResult(
            steps, int(passed[-1]) + 1 if len(passed) == _MOST else len(stream.items)
        )

    def _passed(self, stream: Proposals, fixed: Indices, white: Array) -> Indices:
        """Which proposals the fixed items do not refuse already: v(j|R) <= v(j|F) for F ⊂ R."""
        # v(j|F), F the fixed items.
        bounds = conditional_variances(self.diagonal[stream.items], white)
        bounds[np.isin(stream.items, fixed)] = -np.inf
        return np.flatnonzero(stream.bars < bounds)[:_MOST]

    def _near(self, moving: Indices, cross: Array, items: Indices) -> Array:
        """L on the moving items and on proposals, of which L with the moving ones is known."""
        within = to_numpy(self._kernel.block(items, items))
        near = np.empty((len(moving) + len(items),) * 2)
        near[: len(moving), : len(moving)] = self._square[moving[:, None], moving]
        near[: len(moving), len(moving) :] = cross
        near[len(moving) :, : len(moving)] = cross.T
        near[len(moving) :, len(moving) :] = within
        return near

    def _settle(
        self, moving: Indices, fixed: Indices, few: _FewItems, near: Array, fresh: Array
    ) -> None:
        place = few.place
        new = place >= len(moving)
        changed = moving[new]
        self.items[changed] = few.items[place[new]]
        rows = fresh[fixed][:, place[new] - len(moving)]
        self._square[fixed[:, None], changed] = rows
        self._square[changed[:, None], fixed] = rows.T
        self._square[moving[:, None], moving] = near[place[:, None], place]


class _FewItems:
    """Steps of the walk on few items, given all others.

    Items may come more than once; ``place`` says which of them is at each moving position.
    """

    def __init__(self, items: Indices, schur: Array, bars: Array) -> None:
        self.items, self._schur, self._bars = items, schur, bars
        self._diagonal = schur.diagonal()
        self._moving = len(items) - len(bars)
        self.place = np.arange(self._moving)
        self.next = 0  # the first proposal not used yet

    def play(self, positions: Indices) -> int:
        """Renew these positions in turn; return how many of them the proposals sufficed for."""
        for done, position in enumerate(positions):
            others = np.concatenate([self.place[:position], self.place[position + 1 :]])
            found = self._accepted(others)
            if found is None:
                return done
            self.place[position] = self._moving + found
            self.next = found + 1
        return len(positions)

    def _accepted(self, rest: Indices) -> int | None:
        """The first proposal above its bar, given the items at the places ``rest``."""
        schur, rows = self._schur, rest[:, None]
        factor = cholesky(schur[rows, rest])
        for low in range(self.next, len(self._bars), _SCORED_TOGETHER):
            some = slice(self._moving + low, self._moving + low + _SCORED_TOGETHER)
            white = np.asarray(np.linalg.solve(factor, schur[rest, some]), dtype=np.float64)
            # v(j|R), R all items but the one taken out: the heat bath's weight, MATH 6.4.
            variances = conditional_variances(self._diagonal[some], white)
            variances[(self.items[rows] == self.items[some]).any(axis=0)] = 0.0
            above = np.maximum(variances, 0.0) > self._bars[low : low + _SCORED_TOGETHER]
            if above.any():
                return low + int(above.argmax())
        return None


# How many positions of a walk to renew at a time, and from how many proposals.


class Pace:
    """The size of the next round, from how the last ones went; never from which items they chose.

    Proposals come in blocks of given sizes. When as many as all blocks hold were refused in a row,
    the next round is anchored: its proposals come from a pass over all n items, by conditional
    variance given the items that the round leaves in place; one that renews a single item is
    accepted at once.
    """

    __slots__ = ("_accepted", "_anchor", "_most", "_n", "_refused", "_sizes", "_span", "_tried")

    def __init__(self, sizes: tuple[int, ...], most: int, k: int, n: int) -> None:
        self._sizes, self._most, self._n = sizes, most, n
        self._span, self._anchor = most, max(1, k // 4)
        self._accepted = self._tried = 1.0  # of late
        self._refused = 0  # in a row

    @property
    def anchored(self) -> bool:
        """Whether a pass over all items is due."""
        return self._refused >= sum(self._sizes)

    @property
    def positions(self) -> int:
        """How many to renew, at most."""
        return self._anchor if self.anchored else self._span

    @property
    def proposals(self) -> int:
        """How many to draw: enough, if they fare like those of late."""
        if self.anchored:
            return 4 * self._anchor
        enough = math.ceil(1.1 * self._span * self._tried / self._accepted)
        return min(max(enough, self._sizes[0]), self._sizes[-1])

    def adjust(self, progress: RoundResult, asked: int, share: float) -> None:
        """After a round that was to renew ``asked`` positions.

        ``share`` is that part of tr L which the weights of the proposals came to.
        """
        if not self.anchored:
            self._span = min(self._most, 2 * progress.steps + 1)
            self._refused = 0 if progress.steps else self._refused + progress.used
            self._accepted = self._accepted / 2.0 + progress.steps
            self._tried = self._tried / 2.0 + progress.used
            return
        if progress.steps < asked:
            self._anchor = max(1, self._anchor // 2)
        # A pass is worth n proposals: would those have brought as much?
        plainly = self._n * share * progress.steps / max(1, progress.used)
        self._refused = 0 if plainly >= progress.steps else self._refused


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

    kernel: Covariance
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
            self, steps=steps, error=walk_error(self.log_inverse_mass, len(self.start), steps)
        )

    def draw(self, rng: np.random.Generator) -> list[int]:
        """Run the walk from the greedy start. Cost about k² a step.

        Positions are uniform whatever the state, so they can be known beforehand; and proposals
        are alike whatever the state, so they are drawn and judged in rounds of many steps.
        """
        k, n = len(self.start), len(self.cumulative)
        state = State(self.kernel, self.start)
        pace = Pace(self.proposals, _TOGETHER + k // _SHARE, k, n)
        positions = rng.integers(k, size=self.steps)  # down-steps: i ~ U(S), MATH 6.4
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
        # Up-step by rejection (MATH 6.4): j ~ L_jj, kept if u L_jj < v(j|R).
        tried = spectral.draw_items(cumulative, rng.random(pace.proposals))
        bars = rng.random(len(tried)) * weights[tried]
        if pace.anchored and (positions == positions[0]).all():
            bars[:] = -1.0  # its weights are the law itself
        progress = state.renew(positions, Proposals(tried, bars))
        pace.adjust(progress, len(positions), float(cumulative[-1] / self.cumulative[-1]))
        return progress.steps


def prepare_walk(kernel: Covariance, k: int, *, epsilon: float, max_steps: int | None) -> Walk:
    """Choose the number of steps; 2 <= k < n. Cost n k² for the greedy start, or less."""
    start = greedy_start(kernel, k)
    steps, mass = walk_steps(start, k, epsilon), start.log_inverse_mass
    cumulative = np.cumsum(to_numpy(kernel.diagonal))
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


def walk_steps(start: Start, k: int, epsilon: float) -> int:
    r"""Steps after which the total variation is at most ε (Cryan, Guo & Mousa 2019).

    .. math:: N = \lceil k\,[\log\log(1/\mu(S_0)) + \log(1/(2\epsilon^2))] \rceil
    """
    entropy = max(start.log_inverse_mass, 1.0)
    # N_du = ⌈k (log log 1/μ(S₀) + log 1/(2ε²))⌉, MATH 6.4
    return max(1, math.ceil(k * (math.log(entropy) - math.log(2.0 * epsilon**2))))


def walk_error(log_inverse_mass: float, k: int, steps: int) -> float:
    r"""Total variation after any number of steps.

    A step shrinks the relative entropy, at first log 1/μ(S₀), by 1 - 1/k; then Pinsker:

    .. math:: \mathrm{TV} \le \sqrt{\tfrac12 (1 - 1/k)^N \log(1/\mu(S_0))}
    """
    entropy = max(log_inverse_mass, 0.0) * math.exp(steps * math.log1p(-1.0 / k))
    return min(1.0, math.sqrt(entropy / 2.0))  # Pinsker: TV² <= KL / 2
