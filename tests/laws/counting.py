"""How often each subset was drawn, and whether that agrees with a law."""

from __future__ import annotations

from collections import Counter

import numpy as np
from scipy.stats import chisquare


def counts(draw, draws, seed=0):
    """How often ``draw(rng)`` gave each subset."""
    rng = np.random.default_rng(seed)
    return Counter(tuple(sorted(draw(rng))) for _ in range(draws))


def pvalue(seen, law):
    """Chi-square of the counts; subsets expected fewer than five times are one cell."""
    draws = seen.total()
    if any(law[s] < 1e-12 for s in seen):
        return 0.0  # the impossible happened
    rare = {s for s in law if draws * law[s] < 5.0}
    cells = [(seen[s], law[s]) for s in law if s not in rare]
    cells.append((sum(seen[s] for s in rare), sum(law[s] for s in rare)))
    found, expected = zip(*[c for c in cells if c[1] > 1e-12], strict=True)
    return chisquare(found, draws * np.array(expected) / sum(expected)).pvalue
