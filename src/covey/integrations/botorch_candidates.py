"""Candidates inside bounds: a Sobol set, points near the best ones, and local maxima of a UCB.

The search is that of `covey.candidates`, but does not call it, for two things that a `Space` cannot
express. Constraints hold during gradient ascent (BoTorch's SLSQP; `covey.ascent.ascend` ignores
them and drops what ends outside: the best mean within x + y <= 0 is then lower by a twentieth of
the spread of all means). And the results of a `post_processing_func` come back unchanged, where
encoding into the unit cube and back would round them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from covey.ascent import nearby_steps
from covey.errors import ExhaustedError, StrategyError, installed
from covey.integrations.botorch_covariance import View, units_of

with installed("botorch", "botorch"):
    import torch
    from botorch.acquisition.acquisition import AcquisitionFunction
    from botorch.generation.gen import gen_candidates_scipy
    from botorch.utils.sampling import draw_sobol_samples, get_polytope_samples
    from botorch.utils.transforms import t_batch_mode_transform
    from torch import Tensor


Constraint = tuple[Tensor, Tensor, float]

_WIDE = 2048  # Sobol points of a search
_TRIES = 8  # times as many are drawn where some may be infeasible
_NEAR = 400  # points around each anchor
_ANCHORS = 5
_ASCENTS = 8  # gradient ascents per width
_WIDTHS = (0.5, 2.0)  # of the confidence bounds that are climbed: almost the mean, and a UCB
_CELLS = 1e4  # along each side: of the candidates in one cell only the first is kept
_SAME_SUMMIT = 1e-3  # of each side: ascents that end closer than this are one
_SLACK = 1e-8  # by which rounding may violate a constraint


@dataclass(frozen=True, eq=False)
class Region:
    """The feasible region: a box, with the restrictions that `optimize_acqf` takes.

    Attributes:
        bounds: (2, d), lower and upper.
        constraints: (indices, coefficients, rhs) for Σ coefficient · x >= rhs.
        equalities: the same for Σ coefficient · x = rhs.
        fixed: values of some columns.
        post: what every candidate goes through before it is considered, such as rounding.
    """

    bounds: Tensor
    constraints: Sequence[Constraint] = ()
    fixed: Mapping[int, float] = field(default_factory=dict)
    post: Callable[[Tensor], Tensor] | None = None
    equalities: Sequence[Constraint] = ()

    def __post_init__(self) -> None:
        bounds = self.bounds
        if not isinstance(bounds, Tensor) or bounds.ndim != 2 or len(bounds) != 2:
            shape = tuple(bounds.shape) if isinstance(bounds, Tensor) else type(bounds).__name__
            raise StrategyError(f"bounds is a 2 x d tensor, lower then upper; got {shape}.")
        if not bool(torch.isfinite(bounds).all() & (bounds[0] <= bounds[1]).all()):
            raise StrategyError(f"bounds are finite, the lower ones first; got {bounds.tolist()}.")
        if any(row[0].ndim != 1 for row in (*self.constraints, *self.equalities)):
            raise StrategyError(
                "constraints between the points of a batch (2-d indices) are not supported; give "
                "1-d indices, for each point by itself."
            )

        width = bounds.shape[1]
        if any(not -width <= column < width for column in self.fixed):
            raise StrategyError(
                f"fixed_features names columns {sorted(self.fixed)}; there are {width}, from 0."
            )
        fixed = {column % width: float(value) for column, value in self.fixed.items()}
        object.__setattr__(self, "fixed", fixed)

    @property
    def span(self) -> Tensor:
        """Upper minus lower; 1 where they are equal."""
        span = self.bounds[1] - self.bounds[0]
        return torch.where(span > 0.0, span, torch.ones_like(span))

    def admit(self, X: Tensor) -> Tensor:
        """Points clipped to the box, with fixed columns set, post-processed; only feasible ones."""
        X = X.clamp(self.bounds[0], self.bounds[1])
        for column, value in self.fixed.items():
            X[:, column] = value
        X = X if self.post is None else self.post(X)
        return X[feasible(X, self.constraints, self.equalities)]

    def scattered(self, count: int, rng: np.random.Generator) -> Tensor:
        """About ``count`` feasible points of a scrambled Sobol sequence, in its order.

        Where a constraint leaves few of them, hit-and-run adds more.
        """
        seed = int(rng.integers(2**31))
        tries = count * _TRIES if self.constraints else count
        found = self.bounds[:0]
        if not self.equalities:  # which no Sobol point satisfies
            found = self.admit(draw_sobol_samples(self.bounds, n=tries, q=1, seed=seed).squeeze(1))
            if len(found) >= count // 2 or not self.constraints:
                return found[:count]
        held = [
            (torch.tensor([column]), torch.ones(1).to(self.bounds), value)
            for column, value in self.fixed.items()
        ]
        inside = get_polytope_samples(
            count,
            self.bounds,
            list(self.constraints) or None,
            [*self.equalities, *held] or None,
            seed=seed,
            n_burnin=1000,
            n_thinning=8,
        )
        return torch.cat([found, self.admit(inside.to(found))])


def feasible(
    X: Tensor, constraints: Sequence[Constraint], equalities: Sequence[Constraint] = ()
) -> Tensor:
    """Whether each of n points satisfies every constraint."""
    inside = torch.ones(len(X), dtype=torch.bool, device=X.device)
    for indices, coefficients, rhs in constraints:
        inside &= (X[:, indices] * coefficients.to(X)).sum(dim=-1) >= rhs - _SLACK
    for indices, coefficients, rhs in equalities:
        inside &= ((X[:, indices] * coefficients.to(X)).sum(dim=-1) - rhs).abs() <= _SLACK
    return inside


class Upper(AcquisitionFunction):
    """The bound that is climbed: μ + width · σ of a view, averaged over members, in ``unit``s."""

    def __init__(self, view: View, width: float, unit: float) -> None:
        super().__init__(model=view.model)
        self.view, self.width, self.unit = view, width, unit

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: Tensor) -> Tensor:
        """Values (b,) at X (b, 1, d)."""
        mean, variance = self.view.each(X)
        std = (variance / self.unit**2).clamp_min(1e-12).sqrt()
        return (mean / self.unit + self.width * std).mean(dim=-1)


def promising(
    view: View, region: Region, q: int, taken: Tensor, rng: np.random.Generator
) -> Tensor:
    """Candidates, denser where the model expects high values; none of those in ``taken``."""
    wide = region.scattered(max(_WIDE, 16 * q), rng)
    if len(wide) == 0:
        raise ExhaustedError(
            "no point within the bounds satisfies the constraints. Check them together with "
            "fixed_features and post_processing_func.",
        )
    anchors = region.admit(view.seen) if len(view.seen) else wide
    anchors = anchors if len(anchors) else wide
    unit = units_of(view, anchors).one
    near = _around(_best(view, anchors, 0.0, _ANCHORS), wide, region, rng)
    at = torch.cat([wide, region.admit(near)])
    climbed = [_climb(region, Upper(view, w, unit), _best(view, at, w, _ASCENTS)) for w in _WIDTHS]
    return apart(torch.cat([_merged(torch.cat(climbed), region), at]), taken, region, q)


def apart(X: Tensor, taken: Tensor, region: Region, q: int) -> Tensor:
    """Rows of X that differ clearly from ``taken`` and from the rows before them.

    If that leaves fewer than q, all rows that differ at all.
    """
    cells = (torch.round((rows - region.bounds[0]) / region.span * _CELLS) for rows in (X, taken))
    left = X[new_rows(*cells)]
    return left if len(left) >= q else X[new_rows(X, taken)]


def new_rows(X: Tensor, taken: Tensor) -> Tensor:
    """Indices of the rows of X that are neither in ``taken`` nor repeat an earlier row."""
    both = torch.cat([taken.to(X), X]).cpu().numpy() + 0.0  # -0.0 is 0.0
    _, first = np.unique(both, axis=0, return_index=True)
    return torch.from_numpy(np.sort(first[first >= len(taken)]) - len(taken))


def _merged(X: Tensor, region: Region) -> Tensor:
    """Local maxima without those that ended where an earlier one did.

    EST counts candidates as independent, and would count copies several times.
    """
    place, kept = X / region.span, list[int]()
    for i in range(len(X)):
        if not kept or bool(((place[kept] - place[i]).abs().amax(dim=1) > _SAME_SUMMIT).all()):
            kept.append(i)
    return X[kept]


def _best(view: View, X: Tensor, width: float, count: int) -> Tensor:
    mean, variance = (part.mean(dim=0) for part in view.moments(X))
    order = torch.argsort(mean + width * variance.sqrt(), descending=True, stable=True)
    return X[order[:count]]


def _around(anchors: Tensor, wide: Tensor, region: Region, rng: np.random.Generator) -> Tensor:
    """Points near the anchors: steps of all sizes, in some of the columns.

    With equalities the steps lead towards points of the region, between which they hold.
    """
    at = anchors.repeat_interleave(_NEAR, dim=0)
    if region.equalities:
        share = torch.from_numpy(10.0 ** rng.uniform(-3.0, -0.5, size=(len(at), 1))).to(at)
        return at + share * (wide[rng.integers(len(wide), size=len(at))] - at)
    steps = nearby_steps(len(at), at.shape[1], rng)
    return at + torch.from_numpy(steps).to(at) * region.span


def _climb(region: Region, upper: Upper, starts: Tensor) -> Tensor:
    """The local maxima that L-BFGS-B (with constraints, SLSQP) reaches from these starts."""
    summits, _ = gen_candidates_scipy(
        starts.unsqueeze(-2),
        upper,
        lower_bounds=region.bounds[0],
        upper_bounds=region.bounds[1],
        inequality_constraints=list(region.constraints) or None,
        equality_constraints=list(region.equalities) or None,
        fixed_features=dict(region.fixed) or None,
        options={"maxiter": 50},
    )
    return region.admit(summits.detach().squeeze(-2))
