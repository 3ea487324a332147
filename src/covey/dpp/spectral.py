"""Exact k-DPP samples through the eigendecomposition (Kulesza & Taskar 2012, section 5.2).

Also here: e_k in logarithms, and draws from weighted items and from projection DPPs, which the
other samplers use. MATH 6.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from covey.arrays import Array, Indices, like, namespace, to_numpy
from covey.covariance import TOLERANCE, Covariance, PivotedCholesky, not_psd_error, rank_error
from covey.dpp.kernel import densify
from covey.errors import NumericsError


def log_elementary(values: Array, k: int) -> Array:
    r"""log e_j(λ_1, …, λ_m) for j = 0..k and m = 0..n, as a (k + 1, n + 1) table.

    .. math:: e_j(\lambda_{1..m}) = e_j(\lambda_{1..m-1}) + \lambda_m\, e_{j-1}(\lambda_{1..m-1})

    Unrolled over m this is a cumulative sum, in logarithms because e_k overflows for k above about
    60 (Kulesza & Taskar 2012, algorithm 7; MATH 6.1). Cost n k.

    >>> np.exp(log_elementary(np.array([1.0, 2.0, 3.0]), 2))[:, -1].round(9)
    array([ 1.,  6., 11.])
    """
    with np.errstate(divide="ignore"):
        logs = np.log(values)
    table = np.full((k + 1, len(values) + 1), -np.inf)
    table[0] = 0.0
    for j in range(1, k + 1):
        table[j, 1:] = np.logaddexp.accumulate(logs + table[j - 1, :-1])  # Σ_m λ_m e_{j-1}(λ_<m)
    return table


def draw_subset(table: Array, k: int, rng: np.random.Generator) -> Indices:
    r"""Draw J (k,), ascending, with P(J) proportional to the product of its λ (algorithm 8).

    The largest member m of J satisfies P(m <= M) = e_k(λ_{1..M}) / e_k(λ_{1..n}), so every row of
    the table of `log_elementary` is a distribution function, and J is found by k binary searches,
    from the largest member down. Cost k log n.
    """
    chosen = np.empty(k, dtype=np.intp)
    above = table.shape[1] - 1
    for left in range(k, 0, -1):
        target = table[left, above] + math.log1p(-rng.random())  # log(u e_left(λ_{1..above}))
        above = int(np.searchsorted(table[left, : above + 1], target, side="left")) - 1
        chosen[left - 1] = above
    return chosen


def log_binomial(n: int, k: int) -> float:
    """log C(n, k), the number of subsets of size k.

    >>> round(math.exp(log_binomial(9, 3)))
    84
    """
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def draw_items(cumulative: Array, uniforms: Array) -> Indices:
    """For each uniform an item i, with probability proportional to its weight.

    ``cumulative`` (n,) is the running sum of the weights, which need not sum to one; an item of
    weight zero is never drawn. Cost log n each.

    >>> draw_items(np.cumsum([0.0, 1.0, 0.0, 3.0, 0.0]), np.array([0.0, 0.2, 0.3, 1.0]))
    array([1, 1, 3, 3])
    """
    xp, total = namespace(cumulative), cumulative[-1:]
    found = xp.searchsorted(cumulative, like(uniforms, cumulative) * total, side="right")
    # u · total may round up to the total, which is the last item of positive weight.
    last = xp.searchsorted(cumulative, total, side="left")
    return np.minimum(to_numpy(found), to_numpy(last))


def draw_projection(basis: Array, rng: np.random.Generator) -> Indices:
    r"""Draw S with |S| = k and P(S) = det(U_S)² for orthonormal columns U, (n, k).

    By the chain rule the next item is i with probability proportional to its conditional variance
    under UUᵀ given the items so far: greedy maximisation with random pivots (algorithm 1; MATH
    6.1). The variances sum to k minus the number drawn, up to rounding, and are renormalised. Cost
    n k².
    """
    xp, k = namespace(basis), basis.shape[1]
    factor = PivotedCholesky(xp.einsum("ij,ij->i", basis, basis), k)
    chosen = np.empty(k, dtype=np.intp)
    for step in range(k):
        cumulative = xp.cumsum(xp.clip(factor.residual, 0.0, None), axis=0)  # Σ v(i|S)
        chosen[step] = draw_items(cumulative, rng.random(1))[0]
        if step + 1 < k:
            factor.grow(int(chosen[step]), basis @ basis[int(chosen[step])])
    return chosen


# The sampler and its spectrum.

_EPS = float(np.finfo(np.float64).eps)
# Our choices: the smallest eigenvalue of a correlation matrix for which `_graded` is accurate to
# 1e-8; the largest error of a log normaliser; and the smallest total variation that is reported.
_GRADED, _TOLERATED, _REPORTED = 1e-6, 1e-6, 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Spectral:
    """A k-DPP as a mixture of projection DPPs, one for every k eigenvectors (MATH 6.1)."""

    vectors: Array  # (n, rank)
    table: Array  # (k + 1, rank + 1), log e_j of the eigenvalues, see `log_elementary`
    error: float = 0.0  # bound on the total variation due to eigenvalues lost to rounding

    method: ClassVar[str] = "spectral"
    steps: ClassVar[int] = 0

    @property
    def rank(self) -> int:
        """The number of eigenvalues above rounding error."""
        return self.vectors.shape[1]

    @property
    def log_normalizer(self) -> float:
        """log e_k(λ)."""
        return float(self.table[-1, -1])

    def draw(self, rng: np.random.Generator) -> list[int]:
        """Draw k eigenvectors by weight, then k items from the projection DPP. Cost n k²."""
        chosen = draw_subset(self.table, len(self.table) - 1, rng)  # P(J) ∝ Π_J λ
        return sorted(draw_projection(self.vectors[:, chosen], rng).tolist())


def prepare_spectral(kernel: Covariance, k: int) -> Spectral:
    """Decompose the kernel. Cost n³ once, memory n²."""
    spectrum = _decomposed(densify(kernel))
    table = spectrum.table(k)
    missed = -math.expm1(-spectrum.doubt(k))
    return Spectral(spectrum.vectors, table, missed if missed > _REPORTED else 0.0)


def spectral_log_normalizer(kernel: Covariance, k: int) -> float:
    """log e_k(λ) to within 1e-6; an error where rounding leaves it less certain. Cost n³."""
    spectrum = _decomposed(densify(kernel))
    found, doubt = float(spectrum.table(k)[-1, -1]), spectrum.doubt(k)
    if doubt > _TOLERATED:
        raise NumericsError(
            f"the normaliser of {k} points lies between exp({found:.6g}) and "
            f"exp({found + doubt:.6g}): {spectrum.lost} eigenvalues of the kernel are lost in "
            f"rounding, and matter. Use a smaller k, or add a small multiple of the identity."
        )
    return found


class _Spectrum(NamedTuple):
    """Eigenvalues above rounding error and their vectors; a count and a bound of the others."""

    values: Array  # (rank,), ascending
    vectors: Array  # (n, rank)
    lost: int  # number of eigenvalues lost to rounding
    floor: float  # upper bound on each of them

    def table(self, k: int) -> Array:
        """`log_elementary` of the eigenvalues, (k + 1, rank + 1); an error if rank < k."""
        if len(self.values) < k:
            raise rank_error(k, len(self.values))
        return log_elementary(self.values, k)

    def doubt(self, k: int) -> float:
        """A bound on the increase of log e_k by the lost eigenvalues: its increase at `floor`."""
        if self.lost == 0:
            return 0.0
        raised = np.concatenate([np.full(self.lost, self.floor), self.values])
        tables = [log_elementary(values, k) for values in (raised, self.values)]
        return max(0.0, float(tables[0][-1, -1] - tables[1][-1, -1]))


def _decomposed(matrix: Array) -> _Spectrum:
    """The eigendecomposition of L (n, n), by `_graded` where rounding would lose eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    largest = float(np.abs(values).max())
    if values[0] < -TOLERANCE * largest:
        raise not_psd_error(f"its smallest eigenvalue is {values[0]:.3g}")
    floor = 4.0 * len(values) * _EPS * largest
    kept = values > floor
    if kept.all():
        return _Spectrum(values, vectors, 0, 0.0)
    weights = np.diagonal(matrix)
    # An item of weight zero is an eigenvector of eigenvalue zero, and never drawn.
    items = np.flatnonzero(weights > 0.0)
    graded = _graded(matrix[np.ix_(items, items)]) if len(items) else None
    if graded is None:
        return _Spectrum(values[kept], vectors[:, kept], int(np.sum(~kept)), floor)
    vectors = np.zeros((len(matrix), len(items)))
    vectors[items] = graded[1]
    return _Spectrum(graded[0], vectors, 0, 0.0)


def _graded(matrix: Array) -> tuple[Array, Array] | None:
    """Eigenvalues (n,) and vectors (n, n) of D A D, D diagonal and A a correlation matrix.

    Items may differ in weight by any factor, as when weighted by quality, and every eigenvalue
    still has relative accuracy n·eps/λ_min(A): they are the squared singular values of A^½ D, by
    one-sided Jacobi (Demmel & Veselić 1992). None if A is nearly singular.
    """
    from scipy.linalg.lapack import dgejsv

    scale = np.sqrt(np.diagonal(matrix))
    correlation = matrix / scale / scale[:, None]
    if np.linalg.eigvalsh(correlation)[0] < _GRADED:
        return None
    half = np.linalg.cholesky(correlation).T * scale
    singular, _, vectors, scaling, _, failed = dgejsv(half, joba=0, jobu=3, jobv=0, jobr=0, jobp=0)
    if failed:
        return None
    values = np.square(singular * (scaling[0] / scaling[1]))
    order = np.argsort(values)
    return values[order], vectors[:, order]
