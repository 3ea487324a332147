"""k-determinantal point processes: sets S of k items, drawn or chosen by det L_S.

README.md says which file holds which method, its cost and its source.

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
