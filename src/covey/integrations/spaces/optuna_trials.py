"""The conditional space behind a define-by-run objective, learnt from the trials of its study.

An objective shows its conditions only by what it suggests. A parameter that some trials lack is
explained by others that always come with it: by the values of theirs that it was seen with.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from covey import Space
from covey.errors import SpaceError, installed
from covey.integrations.spaces.optuna import space_from_optuna
from covey.space.names import same

with installed("optuna", "optuna"):
    from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
    from optuna.trial import FrozenTrial

_FEW = 64  # values of an integer that may decide what is present
Conditions = dict[str, dict[str, list[Any]]]


def space_from_trials(trials: Sequence[FrozenTrial]) -> Space:
    """The conditional space of a study's completed trials, such as ``study.trials``.

    A parameter whose distribution changes, or whose absence nothing explains, is left out. Values
    that no trial has had yet are taken not to allow a parameter, unless they lie beyond values of
    an integer that do: then the next trial shows.

    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     if trial.suggest_categorical("model", ["tree", "net"]) == "tree":
    ...         return trial.suggest_int("depth", 1, 9)
    ...     return trial.suggest_float("lr", 0, 1)
    >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    >>> study.optimize(objective, n_trials=8)
    >>> print(space_from_trials(study.trials).parameters["depth"])
    Integer(low=1, high=9, log=False, step=1, when={'model': 'tree'})
    """
    if not returned(trials):
        raise SpaceError("no trial is complete, so nothing is known of the space; run some first.")
    found = union_of(trials)
    when = conditions_of(trials, found)
    return space_from_optuna({n: d for n, d in found.items() if when.get(n) != {}}, when)


def returned(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """The trials whose objective has returned, and so has suggested all that it would."""
    return [trial for trial in trials if trial.state.name == "COMPLETE"]


def union_of(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """All that completed trials suggested, by name, less what changed its distribution."""
    found: dict[str, BaseDistribution] = {}
    changed = set()
    for trial in returned(trials):
        for name, distribution in trial.distributions.items():
            if found.setdefault(name, distribution) != distribution:
                changed.add(name)
    return {name: d for name, d in found.items() if name not in changed}


def conditions_of(
    trials: Sequence[FrozenTrial], distributions: Mapping[str, BaseDistribution]
) -> Conditions:
    """The conditions of those parameters that some trials lack; ``{}`` if nothing explains it."""
    seen = [trial.params for trial in returned(trials)]
    having = {n: {i for i, params in enumerate(seen) if n in params} for n in distributions}
    found: Conditions = {}
    for name in sorted(distributions, key=lambda n: -len(having[n])):  # what decides comes first
        if len(having[name]) < len(seen):
            able = [
                other
                for other in distributions
                if having[other] > having[name]
                and found.get(other) != {}
                and _may_decide(distributions[other])
            ]
            found[name] = _explained(name, able, seen, having, distributions)
    return {name: found[name] for name in distributions if name in found}


def _may_decide(distribution: BaseDistribution) -> bool:
    if isinstance(distribution, IntDistribution):
        return (distribution.high - distribution.low) // distribution.step < _FEW
    return isinstance(distribution, CategoricalDistribution)


def _explained(
    name: str,
    able: Sequence[str],
    seen: Sequence[Mapping[str, Any]],
    having: Mapping[str, Collection[int]],
    distributions: Mapping[str, BaseDistribution],
) -> dict[str, list[Any]]:
    """The fewest parents, one by one, whose values tell the trials that have it from the others."""
    left = set(range(len(seen))) - set(having[name])
    allowed = {
        other: _values(
            distributions[other],
            [seen[i][other] for i in having[name]],
            [seen[i][other] for i in having[other] if i in left],
        )
        for other in able
    }
    told = {
        other: {i for i in left if other not in seen[i] or not _in(seen[i][other], values)}
        for other, values in allowed.items()
    }
    # Categories before numbers: few trials are told apart by some number or other.
    order = sorted(able, key=lambda n: isinstance(distributions[n], IntDistribution))
    found: dict[str, list[Any]] = {}
    while left:
        best = max(order, key=lambda n: len(told[n] & left), default=None)
        if best is None or not told[best] & left:
            return {}
        found[best] = allowed[best]
        left -= told[best]
    return found


def _values(
    distribution: BaseDistribution, present: Sequence[Any], absent: Sequence[Any]
) -> list[Any]:
    """The values that allow a parameter; of an integer all on its side of those that do not."""
    if not isinstance(distribution, IntDistribution):
        choices = getattr(distribution, "choices", ())
        return [choice for choice in choices if _in(choice, present)]
    every = range(distribution.low, distribution.high + 1, distribution.step)
    if absent and max(absent) < min(present):
        return [value for value in every if value >= min(present)]
    if absent and min(absent) > max(present):
        return [value for value in every if value <= max(present)]
    return sorted(set(present))


def _in(value: Any, values: Sequence[Any]) -> bool:
    return any(same(value, other) or value == other for other in values)
