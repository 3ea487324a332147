"""Elementary symmetric polynomials in logarithms: the normalising constants of k-DPPs."""

from __future__ import annotations

import math

import numpy as np

from covey.arrays import Array, Indices


def log_elementary(values: Array, k: int) -> Array:
    r"""log e_j(λ_1, …, λ_m) for j = 0..k and m = 0..n, as a (k + 1, n + 1) table.

    .. math:: e_j(\lambda_{1..m}) = e_j(\lambda_{1..m-1}) + \lambda_m\, e_{j-1}(\lambda_{1..m-1})

    Unrolled over m this is a running sum, taken in logarithms because e_k overflows for k above
    about 60 (Kulesza & Taskar 2012, algorithm 7). Cost n k.

    >>> np.exp(log_elementary(np.array([1.0, 2.0, 3.0]), 2))[:, -1].round(9)
    array([ 1.,  6., 11.])
    """
    with np.errstate(divide="ignore"):
        logs = np.log(values)
    table = np.full((k + 1, len(values) + 1), -np.inf)
    table[0] = 0.0
    for j in range(1, k + 1):
        table[j, 1:] = np.logaddexp.accumulate(logs + table[j - 1, :-1])
    return table


def draw_subset(table: Array, k: int, rng: np.random.Generator) -> Indices:
    r"""Draw J with |J| = k and P(J) proportional to the product of its λ (algorithm 8).

    The largest member m of J satisfies P(m <= M) = e_k(λ_{1..M}) / e_k(λ_{1..n}), so every row of
    the table is a distribution function, and J is found by k binary searches from the top down.
    """
    chosen = np.empty(k, dtype=np.intp)
    above = table.shape[1] - 1
    for left in range(k, 0, -1):
        target = table[left, above] + math.log1p(-rng.random())
        above = int(np.searchsorted(table[left, : above + 1], target, side="left")) - 1
        chosen[left - 1] = above
    return chosen


def log_binomial(n: int, k: int) -> float:
    """log of the number of subsets of size k.

    >>> round(math.exp(log_binomial(9, 3)))
    84
    """
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
