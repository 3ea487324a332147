"""Scores: what a study is told of cross-validated scores, and what it is spared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covey import Study, Trial
from covey.arrays import Array

_FAR_OUT = 10.0


class Scores:
    """Tells a study mean scores, without standard errors, and disasters as merely bad.

    The spread over folds is mostly how hard each fold is, the same for every candidate: as a
    standard error it overstates by 2.5 to 5 times what separates two candidates on the same folds
    (docs/integrations/sklearn.md), so the model learns the noise itself.

    Scores such as R² have no lower end. One of -1e6 among others between 0 and 1 would leave a
    Gaussian process nothing to tell those apart by, so a score below the fence of `far_out` is
    told as the fence (our choice). It also meets tails without the gap that `covey.gp` looks for:
    the median of 12 searches of benchmarks/hosts.py is 0.494 with it, 0.490 without. The fence
    only ever falls: a search that gathers at the top must not come to see everything else as
    equal.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._fence: float | None = None

    def tell(self, trials: Sequence[Trial], scores: Array) -> None:
        """The batch's scores, the last of all so far; one that is not finite is a failure."""
        fences = [f for f in (self._fence, far_out(scores[np.isfinite(scores)])) if f is not None]
        self._fence = min(fences, default=None)
        for trial, score in zip(trials, scores[-len(trials) :], strict=True):
            if not np.isfinite(score):
                self._study.fail(trial, "its mean test score is not finite")
            elif self._fence is None:
                self._study.tell(trial, float(score))
            else:
                self._study.tell(trial, max(float(score), self._fence))


def far_out(scores: Array) -> float | None:
    """The fence: ten times as far below the median as the best is above it.

    Up to half of the scores may be disasters without moving it much. None where half are the best.

    >>> far_out(np.array([-1e6, -0.2, 0.0, 0.5, 1.0]))
    -10.0
    """
    if len(scores) == 0:
        return None
    middle, best = float(np.median(scores)), float(np.max(scores))
    return middle - _FAR_OUT * (best - middle) if best > middle else None
