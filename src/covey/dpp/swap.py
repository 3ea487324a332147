"""Nearly exact k-DPP samples by the paper's lazy swap chain (Anari et al. 2016; MATH 6.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from covey.arrays import Array, Indices, cholesky, inverse_lower, to_numpy
from covey.covariance import Covariance, conditional_variances
from covey.dpp.greedy import Start, greedy_start

# Random numbers drawn at a time, and the most proposals judged at a time.
_STREAM, _LOOKAHEAD = 8192, 512


@dataclass(frozen=True, slots=True, eq=False)
class Swap:
    r"""With probability ½ stay; else i ~ U(S), j ~ U(Sᶜ), accept min(1, det L_{S-i+j} / det L_S).

    This is the sampler that Kathuria et al. (2016) ran; `walk` needs far fewer steps.
    """

    kernel: Covariance
    start: Indices  # (k,)
    steps: int
    error: float
    log_inverse_mass: float = math.inf  # upper bound on log 1/μ(S₀)
    lookahead: int = _LOOKAHEAD  # proposals judged at a time, at most

    method: ClassVar[str] = "swap"

    def cut(self, steps: int) -> Swap:
        """The same chain with fewer steps."""
        n, k = len(self.kernel.diagonal), len(self.start)
        return replace(self, steps=steps, error=swap_error(self.log_inverse_mass, n, k, steps))

    def draw(self, rng: np.random.Generator) -> list[int]:
        """Run the chain from the greedy start. Cost k² a step, and k³ for one that moves.

        Only the number of lazy steps matters, which is binomial. The others are evaluated several
        at a time from the present state, up to the first that is accepted; those after it are
        evaluated again from the new state. Each step keeps its own random numbers, so the result
        does not depend on the lookahead.
        """
        state = _State(self.kernel, self.start)
        left, ahead = int(rng.binomial(self.steps, 0.5)), 8.0  # steps that are not lazy, MATH 6.3
        while left > 0:
            size = min(left, _STREAM)
            positions = rng.integers(len(state.items), size=size)  # i ~ U(S)
            others = rng.integers(len(self.kernel.diagonal) - len(state.items), size=size)  # j
            bars = rng.random(size)
            done = 0
            while done < size:
                some = slice(done, done + int(ahead))
                waited = state.advance(positions[some], others[some], bars[some])
                ahead = min(self.lookahead, 0.9 * ahead + 0.1 * (2 * waited + 1))
                done += waited
            left -= size
        return sorted(state.items.tolist())


class _State:
    """The present set S, and the Cholesky factor L_S = C Cᵀ.

    C is computed anew after each accepted step: with an updated inverse L_jj - bᵀL_S⁻¹b would have
    no correct digits once the condition number of L_S exceeds 1e8.
    """

    def __init__(self, kernel: Covariance, items: Indices) -> None:
        self._kernel = kernel
        self._diagonal = to_numpy(kernel.diagonal)
        self.items = items.copy()
        self._square = np.array(to_numpy(kernel.block(items, items)), dtype=np.float64)
        self._settle()

    def advance(self, positions: Indices, others: Indices, bars: Array) -> int:
        """Make these steps up to the first accepted one; return how many were made."""
        outside = others + np.searchsorted(self._gaps, others, side="right")  # others-th item of Sᶜ
        accepted = np.flatnonzero(bars < self.ratios(positions, outside))  # MATH 6.3
        if len(accepted) == 0:
            return len(positions)
        first = int(accepted[0])
        self._exchange(int(positions[first]), int(outside[first]))
        return first + 1

    def ratios(self, positions: Indices, outside: Indices) -> Array:
        r"""det L_{S-i+j} / det L_S = M_ii (L_jj - bᵀMb) + (Mb)_i², M = L_S⁻¹, b = L_Sj: (p,).

        This is v(j|S-i) / v(i|S-i) of MATH 6.3 without a factorisation of S - i. Cost k² each.
        """
        column = to_numpy(self._kernel.block(self.items, outside))
        white = _solved(self._factor, self._root, column)
        variance = conditional_variances(self._diagonal[outside], white)  # L_jj - bᵀMb
        solved = _solved(self._factor.T, self._root.T, white)  # Mb
        here = solved[positions, np.arange(len(positions))]
        return self._precisions[positions] * np.maximum(variance, 0.0) + here * here

    def _exchange(self, position: int, new: int) -> None:
        """Put the item ``new`` at a position."""
        self.items[position] = new
        column = to_numpy(self._kernel.block(self.items, np.array([new])))[:, 0]
        self._square[position] = self._square[:, position] = column
        self._settle()

    def _settle(self) -> None:
        """Factor L_S anew. Cost k³."""
        self._factor = cholesky(self._square)
        self._root = inverse_lower(self._factor)
        self._precisions = np.einsum("ij,ij->j", self._root, self._root)  # M_ii
        self._gaps = _gaps(self.items)


def _solved(factor: Array, inverse: Array, right: Array) -> Array:
    """C⁻¹ b by the inverse of C and one step of refinement.

    By products, as in `Whitening`: at this size a triangular solve waits for other threads.
    """
    first = inverse @ right
    left = right - factor @ first
    solved: Array = first + inverse @ left
    return solved


def _gaps(items: Indices) -> Indices:
    """The number of items outside the set before each of its items, ascending, (k,)."""
    return np.sort(items) - np.arange(len(items))


def prepare_swap(kernel: Covariance, k: int, *, epsilon: float, max_steps: int | None) -> Swap:
    """The chain with enough steps for ``epsilon``; 2 <= k < n. Cost n k² for the greedy start."""
    n = len(kernel.diagonal)
    start = greedy_start(kernel, k)
    steps = swap_steps(start, n, k, epsilon)
    swap = Swap(kernel, start.items, steps, epsilon, start.log_inverse_mass)
    return swap if max_steps is None or steps <= max_steps else swap.cut(max_steps)


def swap_steps(start: Start, n: int, k: int, epsilon: float) -> int:
    r"""N_swap of MATH 6.3: steps to total variation ε, since the spectral gap is 1/(2k(n-k)).

    .. math:: N = \lceil 2k(n - k)\,[\log(1/\epsilon) + \log(1/\mu(S_0))] \rceil
    """
    inverse_gap = 2 * k * (n - k)
    return max(1, math.ceil(inverse_gap * (start.log_inverse_mass - math.log(epsilon))))  # N_swap


def swap_error(log_inverse_mass: float, n: int, k: int, steps: int) -> float:
    r"""Bound on the total variation after N steps, :math:`e^{-N / (2k(n-k))} / \mu(S_0)`."""
    return math.exp(min(0.0, log_inverse_mass - steps / (2 * k * (n - k))))
