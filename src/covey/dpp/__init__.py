"""k-determinantal point processes: sets of k items drawn, or chosen, by the determinant of L_S.

Which file is which method, at what cost and from where: README.md beside this file.

>>> import numpy as np
>>> L = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
>>> maximize(L, 2)
[0, 2]
>>> sampler = prepare(L, 2)
>>> sampler.method, sampler.error, len(sampler.draw(np.random.default_rng(0)))
('spectral', 0.0, 2)
"""

from covey.dpp.greedy import maximize
from covey.dpp.kernel import Blocks, Columns
from covey.dpp.measure import entropy, log_determinant, log_normalizer
from covey.dpp.sampler import Sampler, hurried, prepare, sample

__all__ = [
    "Blocks",
    "Columns",
    "Sampler",
    "entropy",
    "hurried",
    "log_determinant",
    "log_normalizer",
    "maximize",
    "prepare",
    "sample",
]
