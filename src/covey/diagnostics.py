r"""Diagnostics of an ask: information gained, and a valid certificate of regret.

All is in units of the belief (standardised outcomes), and assumes its hyper-parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from covey import dpp
from covey.arrays import Array, cholesky, to_numpy
from covey.belief import Belief
from covey.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_AFFORDABLE = 20_000  # largest region in which the greedy choice is made to compare with


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """The last ask, explained.

    Attributes:
        strategy: the strategy's name.
        batch: number of points asked for.
        candidates: number of points it chose among.
        left_out: candidates dropped at random: a `time_budget` was too short for them, or this is
            the first batch of a large pool.
        region: size of the relevance region (None: the strategy has none).
        width: √β, the policy's confidence width (None: no policy).
        repulsive: expected share of the DPP's picks that repel; the rest are uniform in the region.
        log_determinant: log det of the chosen set in the DPP's kernel.
        greedy_log_determinant: the same for the greedy choice (None: not computed, the region
            being too large).
        information: nats the whole batch tells about f, ½ log det(I + Σ/σ²).
        certificate: largest regret of any point of the batch, against the candidates and the
            observed points, if f lies in the band μ ± width·σ; in outcome units, infinite where a
            warp leaves the band unbounded in them. None while trials are pending or where some
            failed: the band then counts on values that are not known. The width of the theory
            makes the band likely; EST's makes no such claim.
        sampler: how the batch was drawn; with `error`, a bound on its total variation.
        seconds: time spent, by stage.
        penalties: results that were treated as penalties, such as -1e6 for a crash, and raised to
            just below the rest (`covey.gp.observations.clipped_penalties`).
        prior: the weight of each earlier study in the prior mean, by the name of its file; 0 where
            the results contradict it.
        influence: by how much each moves what is expected: its weight times the standard deviation
            of its mean at the points told, in standard deviations of the results.
        note: what to know of how several goals were traded off; empty if there is nothing.
        reasons: why each point is in the batch, in the order of its trials, in words; empty where
            the strategy does not say.
        nats: what each point tells about f beyond those before it, which is half the logarithm of
            what it multiplies the determinant of the batch by; empty without a model.
    """

    strategy: str
    batch: int
    candidates: int
    region: int | None = None
    width: float | None = None
    repulsive: float | None = None
    log_determinant: float | None = None
    greedy_log_determinant: float | None = None
    information: float | None = None
    certificate: float | None = None
    sampler: str = ""
    error: float = 0.0
    seconds: Mapping[str, float] | None = None
    left_out: int = 0
    penalties: int = 0
    reasons: tuple[str, ...] = ()
    nats: tuple[float, ...] = ()
    note: str = ""
    prior: Mapping[str, float] | None = None
    influence: Mapping[str, float] | None = None


def information_gain(belief: Belief, indices: Sequence[int]) -> float:
    r"""I(f; y_S) = ½ log det(I + Σ_S/σ²), nats gained by observing these candidates (MATH 8.1).

    >>> belief = Belief.dense(np.zeros((2, 1)), [0, 0], np.eye(2), noise=1.0)
    >>> round(information_gain(belief, [0, 1]) / float(np.log(2)), 6)
    1.0
    """
    at = np.asarray(indices, dtype=np.intp)
    return 0.5 * float(np.linalg.slogdet(to_numpy(belief.information().block(at, at)))[1])


def information_in_turn(belief: Belief, indices: Sequence[int]) -> Array:
    r"""I(f; y_b | y_1 ... y_{b-1}) of each of these candidates: (len(indices),), nats (MATH 8.1).

    .. math:: \tfrac12 \log (\det L_{1..b} / \det L_{1..b-1}), \qquad L = I + \Sigma/\sigma^2

    >>> belief = Belief.dense(np.zeros((2, 1)), [0, 0], np.ones((2, 2)), noise=1.0)
    >>> information_in_turn(belief, [0, 1]).round(2)
    array([0.35, 0.2 ])
    """
    at = np.asarray(indices, dtype=np.intp)
    return np.log(np.diagonal(cholesky(to_numpy(belief.information().block(at, at)))))


def repulsive_share(belief: Belief, indices: Sequence[int]) -> float:
    """Expected share of these picks that belong to the repulsive part of I + A (MATH 6.2).

    Given the set S, that part is a DPP with kernel A_S, of expected size k - tr((I + A_S)⁻¹).
    """
    every = np.asarray(indices, dtype=np.intp)
    kernel = to_numpy(belief.information().block(every, every))
    return 1.0 - float(np.trace(np.linalg.inv(kernel))) / len(every)


def certificate(belief: Belief, width: float, indices: Sequence[int]) -> Array:
    """Largest regret of each chosen candidate if |f - μ| ≤ width·σ (MATH 8.3): (len(indices),).

    max_x (μ + wσ) - (μ(x_b) - wσ(x_b)), valid however the point was chosen.
    """
    chosen = np.asarray(indices, dtype=np.intp)
    return belief.highest_upper(width) - (belief.mean[chosen] - width * belief.std[chosen])


def _greedy(belief: Belief, selection: Selection) -> float | None:
    """log det of the greedy choice in the same region; None where that is too large."""
    if selection.region is None or len(selection.region) > _AFFORDABLE:
        return None
    head, count = selection.indices[0], len(selection.indices) - 1
    inside = selection.region[selection.region != head]
    kernel = belief.after_looking_at([head], on=inside).information()
    return dpp.log_determinant(kernel, dpp.maximize(kernel, count))


def explain(
    belief: Belief,
    selection: Selection,
    strategy: str,
    outcome: Callable[[Array], Array] | None,
    seconds: Mapping[str, float],
) -> Diagnostics:
    """The diagnostics of one selection.

    ``outcome`` turns values of the belief into outcome units; None: no certificate.
    """
    head, tail = selection.indices[0], list(selection.indices[1:])
    chosen = list(selection.indices)
    promised = None
    if selection.width is not None and outcome is not None:
        ceiling = belief.highest_upper(selection.width)
        floors = ceiling - certificate(belief, selection.width, chosen)
        promised = float((outcome(np.array([ceiling])) - outcome(floors)).max())
    repulsive = value = greedy = None
    if tail and selection.region is not None:
        seen, every = belief.after_looking_at([head], on=tail), range(len(tail))
        repulsive = repulsive_share(seen, every)
        value = dpp.log_determinant(seen.information(), every)
        greedy = value if selection.sampler == "greedy" else _greedy(belief, selection)
    return Diagnostics(
        strategy=strategy,
        batch=len(chosen),
        candidates=len(belief),
        region=None if selection.region is None else len(selection.region),
        width=selection.width,
        repulsive=repulsive,
        log_determinant=value,
        greedy_log_determinant=greedy,
        information=information_gain(belief, chosen),
        certificate=promised,
        sampler=selection.sampler,
        error=selection.error,
        reasons=selection.reasons,
        nats=tuple(information_in_turn(belief, chosen).tolist()),
        seconds=dict(seconds),
    )
