r"""Shifts that observations share: those of one plate, row, column or day.

.. math:: y = f(x) + b_g + \varepsilon, \qquad b_g \sim N(0, \tau^2)

`Sharing` says which observations share what, before they are pooled; `Shifts` holds the same for
pooled rows, with the controls: samples outside the space, y = c_j + b_g + ε with
c_j ~ N(0, 4) in standardised units, which tell about shifts and not about f.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from covey.arrays import Array, Indices, cholesky, plus_diagonal, solve_lower

if TYPE_CHECKING:
    from covey.gp.model import Model

_OWN = 4.0  # prior variance of what a control measures, in standardised units


@dataclass(frozen=True)
class Sharing:
    """Which of N observations share a shift, and M readings of controls with theirs.

    Codes number the groups of each effect; -1: none.
    """

    names: tuple[str, ...]  # of the effects
    labels: tuple[tuple[str, ...], ...]  # the groups of each effect
    codes: Indices  # (N, effects)
    controls: Array  # (M,) values as told, with the sign to maximise
    kinds: Indices  # (M,) which control each is
    control_codes: Indices  # (M, effects)

    def telling(self) -> Sharing | None:
        """Without effects that are the same for all observations: these are a constant."""
        keep = [e for e in range(len(self.names)) if len(np.unique(self.codes[:, e])) > 1]
        if not keep:
            return None
        return replace(
            self,
            names=tuple(self.names[e] for e in keep),
            labels=tuple(self.labels[e] for e in keep),
            codes=self.codes[:, keep],
            control_codes=self.control_codes[:, keep],
        )

    def design(self, codes: Indices) -> Array:
        """Z: which of all groups each row (n, effects) belongs to, (n, groups)."""
        blocks = []
        for effect, labels in enumerate(self.labels):
            blocks.append(codes[:, [effect]] == np.arange(len(labels)))
        return np.hstack(blocks).astype(float)

    @property
    def of(self) -> Indices:
        """The effect that each group belongs to, (groups,)."""
        return np.repeat(np.arange(len(self.labels)), [len(labels) for labels in self.labels])


@dataclass(frozen=True)
class Shifts:
    """The shifts of pooled rows, and pooled controls."""

    names: tuple[str, ...]
    labels: tuple[str, ...]  # of all groups
    of: Indices  # (groups,) the effect of each
    design: Array  # Z (n, groups)
    control_design: Array  # (m, groups)
    controls: Array  # (m,) standardised, less the mean of each kind
    kinds: Indices  # (m,)
    counts: Array  # (m,) readings pooled into each
    scatter: float  # sum of squares within replicates of controls

    def rows(self, indices: Indices) -> Shifts:
        """Those of a subset of the rows; controls stay."""
        return replace(self, design=self.design[indices])

    @property
    def spare(self) -> int:
        """Degrees of freedom within replicates of controls."""
        return int((self.counts - 1.0).sum())

    @property
    def log_counts(self) -> float:
        """Σ log m over the controls."""
        return float(np.log(self.counts).sum())

    @property
    def every(self) -> Array:
        """Z of rows and controls, (n + m, groups)."""
        return np.vstack([self.design, self.control_design])

    def variances(self, taus: Array) -> Array:
        """The variance of each group, (groups,), from that of each effect."""
        return np.asarray(taus)[self.of]

    def _own(self, noise: float) -> Array:
        """Covariance (m, m) of controls without shifts, and with noise."""
        same = self.kinds[:, None] == self.kinds
        return plus_diagonal(_OWN * same, noise / self.counts)

    def joint(self, gram: Array, noises: Array, noise: float, taus: Array) -> Array:
        """K + D + Z T Zᵀ of rows and controls, (n + m, n + m)."""
        n, m = len(gram), len(self.controls)
        out = np.zeros((n + m, n + m))
        out[:n, :n] = plus_diagonal(gram, noises)
        out[n:, n:] = self._own(noise)
        design = self.every
        return out + (design * self.variances(taus)) @ design.T

    def after_controls(self, model: Model) -> tuple[Array, Array]:
        """Mean (groups,) and covariance (groups, groups) of the shifts given the controls."""
        prior = self.variances(model.taus(self.names))
        if not len(self.controls):
            return np.zeros(len(prior)), np.diag(prior)
        cross = self.control_design * prior
        factor = cholesky(cross @ self.control_design.T + self._own(model.noise))
        white = solve_lower(factor, np.column_stack([self.controls, cross]))
        return white[:, 1:].T @ white[:, 0], np.diag(prior) - white[:, 1:].T @ white[:, 1:]

    def estimated(self, model: Model, gram: Array, residual: Array) -> Array:
        """The posterior mean of every shift, (groups,), from residuals (n,) and their K + D."""
        mean, spread = self.after_controls(model)
        factor = cholesky(gram + self.design @ spread @ self.design.T)
        residual = residual - self.design @ mean
        alpha = solve_lower(factor, solve_lower(factor, residual), transposed=True)
        return np.asarray(mean + spread @ (self.design.T @ alpha))

    def doubt(self, model: Model, gram: Array) -> Array:
        """The posterior standard deviation of every shift, (groups,), from K + D of the rows."""
        _, spread = self.after_controls(model)
        factor = cholesky(gram + self.design @ spread @ self.design.T)
        white = solve_lower(factor, self.design @ spread)
        left = np.diagonal(spread) - np.einsum("ng,ng->g", white, white)
        return np.sqrt(np.maximum(left, 0.0))


def pooled_shifts(groups: Sharing, codes: Indices, controls: Array) -> Shifts:
    """The shifts of pooled rows with these codes (n, effects), and of standardised controls (M,).

    Only differences between groups matter of a control, so each kind is centred: a blank far below
    all samples says nothing about their level.
    """
    keys = np.column_stack([groups.kinds, groups.control_codes])
    _, first, of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    of = of.reshape(-1)
    counts = np.bincount(of, minlength=len(first)).astype(float)
    means = np.bincount(of, controls, minlength=len(first)) / np.maximum(counts, 1.0)
    kinds = groups.kinds[first]
    scatter = float(np.square(controls - means[of]).sum())
    for kind in np.unique(kinds):
        mine = kinds == kind
        means[mine] -= means[mine] @ counts[mine] / counts[mine].sum()
    return Shifts(
        names=groups.names,
        labels=tuple(label for labels in groups.labels for label in labels),
        of=groups.of,
        design=groups.design(codes),
        control_design=groups.design(groups.control_codes[first]),
        controls=means,
        kinds=kinds,
        counts=counts,
        scatter=scatter,
    )
