"""Strategies that were tried for the default, by the name under which results are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from covey import catalog
from covey.baselines import Hallucinated
from covey.policies import UCB, ResolvingUCB, Restless
from covey.spread import Spread
from covey.strategies import Strategy

RESOLUTION = 0.01  # of a range: points closer than this in every coordinate are copies


def copies(at: np.ndarray, share: float = RESOLUTION) -> int:
    """Points of a batch (k, d), encoded, that are copies of another of it."""
    gaps = np.abs(at[:, None] - at).max(axis=2) + np.eye(len(at))
    return int((gaps.min(axis=1) < share).sum())


def framed(mode, made):
    import os

    def make():
        os.environ["FRAMES"] = mode
        return made()

    return make


STRATEGIES: Mapping[str, Callable[[], Strategy]] = {
    "auto-0.1": lambda: Hallucinated(UCB(beta=4.0), scout=Restless()),
    "auto-0.2": lambda: Hallucinated(ResolvingUCB(), scout=Restless(), design=10),
    "width-1.5": lambda: Hallucinated(UCB(beta=2.25), scout=Restless(), design=10),
    "apart-2": lambda: Spread(width=2.0, epsilon=0.0),
    "apart-d": lambda: Spread(epsilon=0.0),
    "resolving-d": lambda: Spread(),
    "half-d": lambda: Spread(drawn=0.5),
    "third-d": lambda: Spread(drawn=0.3),
    "auto": catalog.STRATEGIES["auto"],
}

BASE = dict(STRATEGIES)
STRATEGIES = {name: framed("old", made) for name, made in BASE.items()}
STRATEGIES.update({f"{n}@{m}": framed(m, made) for n, made in BASE.items() for m in ("best", "many")})
