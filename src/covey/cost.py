"""Cost: about how long an ask will take, and how much memory, before it is made."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache

import numpy as np

from covey.arrays import cholesky, one_thread, plus_diagonal
from covey.belief import Streamed
from covey.belief.explained import SHARE
from covey.chunks import CACHE, cores
from covey.gp.subset import MANY
from covey.kernels import Matern52

# In units of one term of a triangular solve: a row of a pass costs m², and _ROW + _KERNEL m for the
# kernel, which the columns that follow take once more; a fit costs _FIT for each result. Read off
# runs with m from 100 to 10,000 (our choice).
_ROW, _KERNEL, _FIT = 66_000.0, 92.0, 8e7
# ... and the search of an open space, for each column of its coordinates; bytes it takes for each.
_COLUMN, _COLUMN_BYTES = 1.2e7, 2e5
_PICKS = 1.5  # for the square of the batch, where greedy looks at the whole pool
_LITTLE, _TYPICAL = 2e10, 5e-11  # terms, and seconds for each
OPEN_CANDIDATES = 3000  # an ask in an open space looks at about so many
_PROBE_ROWS, _PROBE_RESULTS = 4096, 512


@dataclass(frozen=True, slots=True)
class Size:
    """What decides the cost of an ask."""

    candidates: int
    results: int
    batch: int
    members: int = 1  # draws of the hyper-parameters
    searched: int = 0  # columns of the coordinates, where candidates have to be searched for


@dataclass(frozen=True, slots=True)
class Cost:
    """An estimate, good to a factor of two or so on an idle machine.

    >>> print(Cost(83.0, 3 * 2**29))
    about 80 s and 1.5 GiB
    """

    seconds: float
    bytes: float

    def __str__(self) -> str:
        seconds = self.seconds if self.seconds >= 0.1 else 0.1
        digits = max(0, int(np.floor(np.log10(seconds))))
        rounded = round(seconds, -digits) if seconds >= 1.0 else round(seconds, 1)
        return f"about {rounded:g} s and {self.bytes / 2**30:.1f} GiB"


def estimate(size: Size, memory: int) -> Cost:
    """Of an ask on the host that may take ``memory`` bytes."""
    m = max(1, size.results)
    terms = _learning(m, size.members) + size.candidates * _looking(m, size)
    terms += _COLUMN * size.searched
    whole = 8.0 * size.members * m * size.candidates
    # What does not fit is made anew in chunks; a region or a short list of it is held.
    held = whole if whole <= memory / SHARE else min(whole, memory / 8.0)
    held += 8.0 * size.members * m * m
    # What is short in any case is not worth measuring the machine for.
    speed = second_per_term() if terms > _LITTLE else _TYPICAL
    held += 80.0 * size.candidates + _COLUMN_BYTES * size.searched
    return Cost(terms * speed, held)


def affordable(size: Size, seconds: float) -> int:
    """How many candidates an ask can look at in so much time, its model being fitted."""
    return int(seconds / (_looking(max(1, size.results), size) * second_per_term()))


def _looking(m: int, size: Size) -> float:
    """Terms for each candidate: a pass, and columns of the covariance for those that matter."""
    whole = m * m + 2.0 * (_ROW + _KERNEL * m) + _PICKS * size.batch**2
    return size.members * whole / cores()


def _learning(m: int, members: int) -> float:
    """Terms of the fit, and of conditioning on all results where it took a subset."""
    return members * (_FIT * min(m, MANY) + (m**3 / 3.0 if m > MANY else 0.0))


@cache
def second_per_term() -> float:
    """How fast this machine is: a small pass, timed once in a process."""
    rng = np.random.default_rng(0)
    seen, at = rng.random((_PROBE_RESULTS, 4)), rng.random((_PROBE_ROWS, 4))
    kernel = Matern52((0.5,) * 4)
    factor = cholesky(plus_diagonal(kernel(seen, seen), 0.01))
    layer = Streamed(kernel, seen, factor, at, 0)
    times = []
    with one_thread():
        for _ in range(3):
            began = time.perf_counter()
            layer.survey(np.ones(len(seen)))
            times.append(time.perf_counter() - began)
    terms = _PROBE_ROWS * (_PROBE_RESULTS**2 + _ROW + _KERNEL * _PROBE_RESULTS)
    chunks = -(-_PROBE_ROWS * _PROBE_RESULTS // CACHE)
    return min(times) * min(cores(), chunks) / terms
