"""Beliefs for the contracts of strategies and policies, and a check that none was changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from covey.arrays import Array
from covey.belief import Belief
from covey.gp import Model, condition, observe
from covey.kernels import Matern52


def example_belief(
    candidates: int = 30, *, members: int = 1, copies: int = 1, seed: int = 0
) -> Belief:
    """A belief after six results at random points of the unit square.

    Args:
        candidates: how many there are.
        members: how many Gaussians it averages, as with sampled hyper-parameters.
        copies: how often each candidate is there.
        seed: of the results, the candidates and the hyper-parameters.

    >>> belief = example_belief(8, members=3, copies=2)
    >>> len(belief), len(belief.members), len(np.unique(belief.at, axis=0))
    (8, 3, 4)
    """
    rng = np.random.default_rng(seed)
    seen, at = rng.random((6, 2)), rng.random((-(-candidates // copies), 2))
    values = np.sin(6.0 * seen[:, 0]) + rng.standard_normal(6)
    data = observe(seen, values, np.full(6, np.nan))
    lengths = rng.uniform(0.2, 0.8, (members, 2)).tolist()
    models = [Model(Matern52(tuple(each)), 0.05) for each in lengths]
    return condition(models, data).belief(np.repeat(at, copies, axis=0)[:candidates], round=3)


def usual_beliefs() -> dict[str, Belief]:
    """The kinds of belief that a strategy or a policy meets, by their names in messages."""
    return {
        "thirty candidates": example_belief(),
        "other results": example_belief(seed=1),
        "several members": example_belief(members=3),
        "identical candidates": example_belief(12, copies=4),
        "one candidate": example_belief(1),
        "candidates that may not count": replace(example_belief(), weight=np.linspace(0, 1, 30)),
    }


def contents(belief: Belief) -> dict[str, Array]:
    """A copy of all the numbers in a belief."""
    every = np.arange(len(belief))
    found = {"at": np.array(belief.at), "best": np.array(belief.best)}
    for i, part in enumerate(belief.parts):
        found[f"mean of member {i}"] = np.array(part.mean)
        found[f"variance of member {i}"] = np.array(part.var)
        found[f"covariance of member {i}"] = np.array(part.block(every, every))
    if belief.weight is not None:
        found["weight"] = np.array(belief.weight)
    for i, known in enumerate(belief.told or ()):
        found[f"known values, {('mean', 'deviation')[i]}"] = np.array(known)
    return found


def written_into(belief: Belief, before: dict[str, Array]) -> list[str]:
    """The names of the arrays that differ from ``before``."""
    now = contents(belief)
    return [what for what in before if not np.array_equal(before[what], now[what])]
