"""L1-regularised logistic regression by newGLMNET (Yuan, Ho & Lin, JMLR 2012)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from papers.kathuria2016.fastxml.seeds import shuffle
from papers.kathuria2016.fastxml.sparse import Sparse

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

DAMPING = 1e-12  # added to the Hessian's diagonal
FARTHEST = 10.0  # of one coordinate step
DECREASE = 0.01  # Armijo's share of the predicted decrease
HALVINGS = 20


class Limits(NamedTuple):
    """When to stop; the defaults are FastXML's."""

    newton: int = 10
    passes: int = 10  # over the coordinates, in one Newton step
    tolerance: float = 0.01  # of the violation at w = 0


class Local(NamedTuple):
    """Newton's quadratic at w: gradient and diagonal by column, curvature by point."""

    gradient: Floats
    diagonal: Floats
    curvature: Floats


@njit(cache=True)
def columns(features: Sparse, rows: Ints, width: int) -> tuple[Sparse, Ints]:
    """Some rows of a matrix turned on their side, and which columns are not empty there."""
    count = np.zeros(width, dtype=np.int64)
    for row in rows:
        for j in range(features.start[row], features.start[row + 1]):
            count[features.at[j]] += 1
    used = np.flatnonzero(count)
    start = np.zeros(len(used) + 1, dtype=np.int64)
    start[1:] = np.cumsum(count[used])
    place = np.empty(width, dtype=np.int64)
    place[used] = start[:-1]
    index = np.empty(start[-1], dtype=np.int64)
    value = np.empty(start[-1])
    for i, row in enumerate(rows):
        for j in range(features.start[row], features.start[row + 1]):
            at = place[features.at[j]]
            index[at] = i
            value[at] = features.value[j]
            place[features.at[j]] += 1
    return Sparse(start, index, value), used


@njit(cache=True)
def product(x: Sparse, w: Floats, n: int) -> Floats:
    """X w (n,), for X given by its columns."""
    made = np.zeros(n)
    for j in range(len(w)):
        if w[j] != 0.0:
            for k in range(x.start[j], x.start[j + 1]):
                made[x.at[k]] += w[j] * x.value[k]
    return made


@njit(cache=True)
def log_loss(margin: Floats, cost: Floats) -> float:
    """Sum of cost times log(1 + exp(-margin))."""
    total = 0.0
    for i in range(len(margin)):
        m = margin[i]
        total += cost[i] * (math.log1p(math.exp(-abs(m))) + max(-m, 0.0))
    return total


@njit(cache=True)
def quadratic(x: Sparse, score: Floats, sign: Floats, cost: Floats) -> Local:
    """The second-order model of the loss where X w = score."""
    n, width = len(sign), len(x.start) - 1
    slope, curvature = np.empty(n), np.empty(n)
    for i in range(n):
        wrong = 1.0 / (1.0 + math.exp(min(sign[i] * score[i], 500.0)))
        slope[i] = -cost[i] * sign[i] * wrong
        curvature[i] = cost[i] * wrong * (1.0 - wrong)
    gradient, diagonal = np.zeros(width), np.full(width, DAMPING)
    for j in range(width):
        for k in range(x.start[j], x.start[j + 1]):
            gradient[j] += slope[x.at[k]] * x.value[k]
            diagonal[j] += curvature[x.at[k]] * x.value[k] * x.value[k]
    return Local(gradient, diagonal, curvature)


@njit(cache=True)
def violation(gradient: float, w: float) -> float:
    """How far one coordinate is from optimal: the least subgradient of loss + |w|, in size."""
    if w > 0.0:
        return abs(gradient + 1.0)
    if w < 0.0:
        return abs(gradient - 1.0)
    return max(abs(gradient) - 1.0, 0.0)


@njit(cache=True)
def resting(gradient: float, w: float, slack: float) -> bool:
    """Whether a coordinate is nought and will stay there: it is then left out of the passes."""
    return w == 0.0 and abs(gradient) < 1.0 - slack


@njit(cache=True)
def coordinate_step(gradient: float, curvature: float, w: float) -> float:
    """The minimiser z of gradient z + curvature z² / 2 + |w + z|, clipped."""
    if gradient + 1.0 < curvature * w:
        z = -(gradient + 1.0) / curvature
    elif gradient - 1.0 > curvature * w:
        z = -(gradient - 1.0) / curvature
    else:
        z = -w
    return min(max(z, -FARTHEST), FARTHEST)


@njit(cache=True)
def sweep(
    x: Sparse, local: Local, state: tuple[Floats, Floats, Floats], active: Ints, slack: float
) -> tuple[int, float, float]:
    """One pass over the active coordinates: how many stay active, violations (sum, largest).

    The state is (w, w + d, X d), of which the last two are moved.
    """
    w, moved, along = state
    kept, total, largest = 0, 0.0, 0.0
    for a in range(len(active)):
        j = active[a]
        first, last = x.start[j], x.start[j + 1]
        gradient = local.gradient[j] + DAMPING * (moved[j] - w[j])
        for k in range(first, last):
            gradient += x.value[k] * local.curvature[x.at[k]] * along[x.at[k]]
        if resting(gradient, moved[j], slack):
            continue
        active[kept], active[a] = j, active[kept]
        kept += 1
        off = violation(gradient, moved[j])
        total += off
        largest = max(largest, off)
        z = coordinate_step(gradient, local.diagonal[j], moved[j])
        if abs(z) < 1e-12:
            continue
        moved[j] += z
        for k in range(first, last):
            along[x.at[k]] += z * x.value[k]
    return kept, total, largest


@njit(cache=True)
def direction(
    x: Sparse,
    local: Local,
    state: tuple[Floats, Floats, Floats],
    active: Ints,
    stop: tuple[int, float],
    seed: np.uint64,
) -> tuple[int, np.uint64]:
    """Minimise the quadratic + |w + d|_1 by coordinates: passes made, seed to go on with.

    Stops when the violations sum to less than stop[1]; if some coordinates were left to rest,
    all are looked at again first.
    """
    most, enough = stop
    n = len(state[2])
    count, slack = len(active), np.inf
    for made in range(1, most + 1):
        seed = shuffle(active, count, seed)
        kept, total, largest = sweep(x, local, state, active[:count], slack)
        if total <= enough:
            if count == len(active):
                return made, seed
            count, slack = len(active), np.inf
        else:
            count, slack = kept, largest / n
    return most, seed


@njit(cache=True)
def line_search(
    score: Floats, along: Floats, sign: Floats, cost: Floats, norms: tuple[Floats, Floats, float]
) -> float:
    """The first of 1, 1/2, 1/4, ... that decreases the objective enough (Armijo), or 0.

    The norms are w, d, and the slope of the loss along d.
    """
    w, d, slope = norms
    before = np.abs(w).sum()
    predicted = slope + np.abs(w + d).sum() - before
    objective = log_loss(sign * score, cost) + before
    step = 1.0
    for _ in range(HALVINGS):
        there = log_loss(sign * (score + step * along), cost) + np.abs(w + step * d).sum()
        if there - objective <= DECREASE * step * predicted:
            return step
        step *= 0.5
    return 0.0


@njit(cache=True)
def outlook(gradient: Floats, w: Floats, slack: float) -> tuple[Ints, float, float]:
    """The coordinates that are not resting, and their violations: sum and largest."""
    active = np.empty(len(w), dtype=np.int64)
    count, total, largest = 0, 0.0, 0.0
    for j in range(len(w)):
        if resting(gradient[j], w[j], slack):
            continue
        active[count] = j
        count += 1
        off = violation(gradient[j], w[j])
        total += off
        largest = max(largest, off)
    return active[:count], total, largest


@njit(cache=True)
def fit(x: Sparse, sign: Floats, cost: Floats, limits: Limits, seed: np.uint64) -> Floats:
    r"""Weights of the columns of X that minimise, nearly, the regularised loss.

    .. math:: |w|_1 + \sum_i cost_i \log(1 + \exp(-sign_i\, x_i^\top w))

    A Newton step costs O(entries of X) for its model and for each pass over the coordinates.
    """
    n, width = len(sign), len(x.start) - 1
    w, score = np.zeros(width), np.zeros(n)
    first, slack, inner = 0.0, np.inf, 1.0
    for iteration in range(limits.newton):
        local = quadratic(x, score, sign, cost)
        active, total, largest = outlook(local.gradient, w, slack)
        if iteration == 0:
            first = total
        if total <= limits.tolerance * first:
            break
        slack = largest / n
        moved, along = w.copy(), np.zeros(n)
        stop = (limits.passes, inner * first)
        made, seed = direction(x, local, (w, moved, along), active, stop, seed)
        if made == 1:  # the quadratic was solved too coarsely to be of use
            inner *= 0.25
        d = moved - w
        slope = (local.gradient * d).sum()
        step = line_search(score, along, sign, cost, (w, d, slope))
        if step == 0.0:
            break
        w += step * d
        score += step * along
    return w
