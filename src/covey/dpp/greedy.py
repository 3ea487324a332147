"""Greedy maximisation of det L_S (Chen, Zhang & Zhou 2018), and the start of the Markov chains."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from covey.arrays import (
    MARGIN,
    TIE,
    Array,
    Indices,
    Whitening,
    each_chunk,
    first_largest,
    like,
    spread,
    to_numpy,
    unit,
)
from covey.covariance import (
    Covariance,
    PivotedCholesky,
    check_semidefinite,
    conditional_variances,
    entries_each,
    gathered,
    rank_error,
)
from covey.dpp import spectral
from covey.dpp.kernel import Checked, KernelLike, adapt, check_count
from covey.errors import NumericsError

# Number of items, or bytes of a factor, above which a short list is followed. (Our choice.)
LARGE = 50_000
_MEMORY = 2**28
_SHORT, _BYTES = 16_384, 2**27  # items on that list, or fewer if their factor takes more bytes


class GreedyPicks(NamedTuple):
    """The picks of greedy in order, and the factor by which each multiplied det L_S."""

    picks: Indices  # (k,)
    gains: Array  # (k,)
    passes: int = 0  # over all items


def maximize(L: KernelLike, k: int) -> list[int]:
    r"""Greedy approximation of argmax det L_S over |S| = k, in order of choice.

    Each pick multiplies the determinant by its conditional variance given the earlier picks,

    .. math:: \det L_{S+j} / \det L_S = L_{jj} - L_{jS} L_{SS}^{-1} L_{Sj},

    so for L = I + Σ/σ² this is pure exploration (Kathuria et al. 2016, section 3). Ties go to the
    lowest index. Reads the diagonal and k - 1 columns; cost n k², memory n k. A kernel on a device
    is read whole if it takes less than 4 GiB. A large kernel with ``block(rows, cols)`` is read in
    a few passes over chunks of its items, in bounded memory, with the same picks.

    >>> maximize(np.diag([1.0, 3.0, 2.0]), 2)
    [1, 2]
    """
    kernel = adapt(L)
    k = check_count(k, len(kernel.diagonal))
    own = getattr(L, "maximize", None)
    return list(own(k)) if own is not None else greedy_picks(kernel, k).picks.tolist()


def greedy_picks(kernel: Covariance, k: int, *, large: int = LARGE) -> GreedyPicks:
    """The greedy picks and their gains, for 1 <= k <= n. Cost n k², or n k² a pass."""
    return listed_picks(kernel, k) if is_large(kernel, k, large) else plain_picks(kernel, k)


def is_large(kernel: Covariance, k: int, large: int = LARGE) -> bool:
    """Whether a kernel can be read by blocks and is large enough to be, by n and k alone."""
    n = len(kernel.diagonal)
    return (
        isinstance(kernel, Checked)
        and kernel.cut is not None
        and (n > large or 8 * n * k > _MEMORY)
    )


def plain_picks(kernel: Covariance, k: int) -> GreedyPicks:
    """Greedy with the whole factor in memory. Cost n k², memory n k."""
    kernel = gathered(kernel)
    factor = PivotedCholesky(kernel.diagonal, k)
    picks, gains = np.empty(k, dtype=np.intp), np.empty(k)
    for step in range(k):
        gains[step], picks[step] = factor.largest()  # j = argmax v(j|S), MATH 5
        if gains[step] == -np.inf:
            raise rank_error(k, step)
        if step + 1 < k:
            factor.grow(int(picks[step]), kernel.columns(picks[step : step + 1])[:, 0])
            check_semidefinite(factor.residual, kernel.diagonal)
    return GreedyPicks(picks, gains, k - 1)


def listed_picks(
    kernel: Covariance, k: int, *, short: int = _SHORT, memory: int = _BYTES
) -> GreedyPicks:
    """The picks of plain greedy, by a few passes over the items, in bounded memory.

    Conditional variances only fall, so those of the last pass bound all later ones (Minoux 1978). A
    short list of the largest is followed for as long as no other item may come first; then there is
    another pass. The list has ``short`` items, or fewer if k rows of them take more than ``memory``
    bytes; neither changes the picks. Cost of a pass n k², each finds at least one pick.
    """
    size, diagonal = min(short, max(memory // (8 * k), 4 * k)), to_numpy(kernel.diagonal)
    bounds = np.where(diagonal > 0.0, diagonal, -np.inf)
    found = GreedyPicks(np.empty(0, dtype=np.intp), np.empty(0))
    while True:
        first = first_largest(bounds)  # bounds are exact after a pass
        if bounds[first] == -np.inf:
            raise rank_error(k, len(found.picks))
        known = np.append(found.picks, first), np.append(found.gains, bounds[first])
        listed = np.union1d(spread(bounds, size), known[0])
        bounds[listed] = -np.inf
        found, factor = _followed(kernel, k, GreedyPicks(*known, found.passes), listed, bounds)
        if len(found.picks) == k:
            return found
        bounds = _left(kernel, found.picks, factor)
        found = found._replace(passes=found.passes + 1)


def _followed(
    kernel: Covariance, k: int, found: GreedyPicks, listed: Indices, others: Array
) -> tuple[GreedyPicks, Array]:
    """More picks from the list, and the Cholesky factor of L on all.

    ``others`` (n,) bound the variances of items that are not on the list; on the list they are
    -inf.
    """
    near = gathered(kernel.on(listed))
    factor, most = PivotedCholesky(near.diagonal, k), float(others.max())
    places, gains = np.searchsorted(listed, found.picks).tolist(), found.gains.tolist()
    columns = near.columns(np.array(places))
    for i, place in enumerate(places):
        factor.grow(place, columns[:, i])
    while len(places) < k:
        check_semidefinite(factor.residual, near.diagonal, listed)
        gain, place = factor.largest()
        if gain == -np.inf or _may_come_before(others, most, gain, int(listed[place])):
            break
        places.append(place)
        gains.append(gain)
        factor.grow(place, near.columns(np.array([place]))[:, 0])
    at = np.array(places, dtype=np.intp)
    corner = np.tril(np.asarray(to_numpy(factor.rows[:, like(at, factor.rows)]), dtype=float).T)
    return GreedyPicks(listed[at], np.array(gains), found.passes), corner


def _may_come_before(others: Array, most: float, gain: float, item: int) -> bool:
    """Whether one of the other items, whose largest bound is ``most``, may beat or precede one."""
    if most > gain + TIE * gain:
        return True
    level = gain - MARGIN * gain
    return most >= level and bool(np.argmax(others >= level) < item)


def _left(kernel: Covariance, picks: Indices, factor: Array) -> Array:
    """Conditional variances (n,) given the picks; -inf where they are rounding errors."""
    diagonal, every = kernel.diagonal, np.arange(len(kernel.diagonal))
    whiten, floor = Whitening(factor, diagonal), unit(diagonal, len(picks))

    def of(part: slice) -> Array:
        left = conditional_variances(diagonal[part], whiten(kernel.block(picks, every[part])))
        check_semidefinite(left, diagonal[part], every[part])
        return to_numpy(left)

    left = np.concatenate(list(each_chunk(of, diagonal, entries_each(picks, diagonal))))
    left[left <= floor * to_numpy(diagonal)] = -np.inf
    left[picks] = -np.inf
    return left


# The start of a Markov chain on k-sets: a greedy maximum, whose mass is bounded below.

_FEW = 8192  # items of a large kernel that greedy chooses among, or 8 k if more (our choice)


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """The first set S₀ of a chain, and an upper bound on log 1/μ(S₀)."""

    items: Indices  # (k,)
    log_inverse_mass: float


def greedy_start(kernel: Covariance, k: int, *, large: int = LARGE, few: int = _FEW) -> Start:
    r"""The greedy maximum S₀ and the smaller of two bounds on log 1/μ(S₀) = log e_k - log det L_S₀.

    .. math::
        \log\tbinom{n}{k} + 2 \log k!
        \qquad\text{and}\qquad
        \log\tbinom{n}{k} + k \log(\operatorname{tr} L / n) - \log\det L_{S_0}

    The first is greedy's guarantee (Çivril & Magdon-Ismail 2009), the second Maclaurin's inequality
    for e_k, usually far smaller. The second holds for any set: where n > ``large``, S₀ is the
    greedy maximum among ``few`` items, so that its cost hardly depends on n. (Our choices.)
    """
    diagonal = to_numpy(kernel.diagonal)
    n = len(diagonal)
    found = _among_few(kernel, k, few) if is_large(kernel, k, large) else None
    choice = greedy_picks(kernel, k, large=large) if found is None else found
    guarantee = 2.0 * math.lgamma(k + 1) if found is None else math.inf  # log (k!)², MATH 6.3
    # Maclaurin: e_k <= C(n, k) (tr L / n)^k; log det L_S₀ is the sum of the log gains.
    maclaurin = k * math.log(float(diagonal.mean())) - float(np.log(choice.gains).sum())
    return Start(choice.picks, spectral.log_binomial(n, k) + min(guarantee, maclaurin))


def _among_few(kernel: Covariance, k: int, few: int) -> GreedyPicks | None:
    """Greedy on a subset of the items, half of it the largest variances; None if its rank < k."""
    items = spread(to_numpy(kernel.diagonal), max(few, 8 * k))
    try:
        found = plain_picks(kernel.on(items), k)
    except NumericsError:
        return None
    return found._replace(picks=items[found.picks])
