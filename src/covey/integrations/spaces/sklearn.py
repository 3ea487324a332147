"""Spaces from the ``param_distributions`` of scikit-learn's RandomizedSearchCV.

It needs SciPy only, whose distributions these are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from covey import Integer, Real, Space
from covey.errors import SpaceError
from covey.integrations.spaces import conditioned
from covey.space import Choice, Parameter
from covey.space.names import plain, same

_KNOWN = "uniform, loguniform, randint, a range, a list, or covey.Real, Integer, Choice"


def space_from_sklearn(distributions: Any) -> Space:
    """The space of a ``param_distributions`` dict; Covey's own parameters may stand among them.

    A list of distinct numbers becomes an ordered Choice, smallest first: 0.1 is nearer to 1 than
    to 10. Any other list becomes a Choice without order. A list of dicts becomes one space with
    conditions, if a list that all of them have, such as that of kernels, tells them apart.

    >>> from scipy.stats import loguniform, randint
    >>> space_from_sklearn({"C": loguniform(0.1, 10), "degree": randint(1, 4), "tol": [1, 0.1]})
    ... # doctest: +NORMALIZE_WHITESPACE
    Space({'C': Real(low=0.1, high=10.0, log=True),
           'degree': Integer(low=1, high=3, log=False, step=1),
           'tol': Choice(options=(0.1, 1), ordered=True)})
    """
    if isinstance(distributions, list | tuple) and distributions:
        return _from_branches([_parameters(branch) for branch in distributions])
    return Space(_parameters(distributions))


def _parameters(distributions: Any) -> dict[str, Parameter]:
    if not isinstance(distributions, Mapping):
        raise SpaceError(
            f"param_distributions is a dict such as {{'C': loguniform(0.1, 10)}}; "
            f"got {distributions!r}."
        )
    parameters = {}
    for name, given in distributions.items():
        try:
            parameters[name] = _parameter(given)
        except SpaceError as error:
            raise SpaceError(f"parameter {name!r}: {error}") from error
    return parameters


def _from_branches(branches: Sequence[Mapping[str, Parameter]]) -> Space:
    """One space of several dicts; the parameter that tells them apart decides what is present."""
    if len(branches) == 1:
        return Space(branches[0])
    names = list(dict.fromkeys(name for branch in branches for name in branch))
    parent = next((name for name in names if _tells_apart(name, branches)), None)
    if parent is None:
        raise SpaceError(
            "a list of dicts is one space only if a name in all of them has lists without a common "
            "option, such as 'kernel': ['linear'] in one and 'kernel': ['rbf'] in the other; "
            "write such a name, or search each dict by itself."
        )
    found: dict[str, Parameter] = {}
    for name in names:
        there = [branch for branch in branches if name in branch]
        options = [o for branch in there for o in _options(branch[parent])]
        if name == parent:
            found[name] = Choice(options)
        elif any(branch[name] != there[0][name] for branch in there):
            raise SpaceError(
                f"parameter {name!r} is not the same in all dicts that have it, and in a Space it "
                "is one; give it one range in all of them, or search each dict by itself."
            )
        else:
            always = len(there) == len(branches)
            found[name] = (
                there[0][name] if always else _under(name, there[0][name], parent, options)
            )
    return Space(found)


def _under(name: str, parameter: Parameter, parent: str, options: list[Any]) -> Parameter:
    if parameter.when is not None:
        raise SpaceError(f"parameter {name!r} has a condition, and its dict is one already.")
    return conditioned(parameter, {parent: options})


def _options(parameter: Parameter) -> tuple[Any, ...]:
    return tuple(parameter.options) if isinstance(parameter, Choice) else ()


def _tells_apart(name: str, branches: Sequence[Mapping[str, Parameter]]) -> bool:
    """Whether a name has options in all dicts, and no option in two of them."""
    if not all(isinstance(branch.get(name), Choice) for branch in branches):
        return False
    options = [option for branch in branches for option in _options(branch[name])]
    return not any(same(a, b) for i, a in enumerate(options) for b in options[:i])


def _parameter(given: Any) -> Parameter:
    from scipy.stats.distributions import rv_frozen

    if isinstance(given, Parameter) and not isinstance(given, type):
        return given
    if isinstance(given, rv_frozen):
        return _from_frozen(given)
    if isinstance(given, range) and given:
        first, last = sorted((given[0], given[-1]))
        return Integer(first, last, step=abs(given.step) if len(given) > 1 else 1)
    if isinstance(given, list | tuple | range | np.ndarray):
        return Choice([plain(option) for option in given])
    raise SpaceError(f"{_called(given)} cannot be expressed; it may be {_KNOWN}.")


def _from_frozen(given: Any) -> Real | Integer:
    """The parameter of a distribution with its arguments, such as ``uniform(0, 2)``."""
    name = given.dist.name
    if name not in ("uniform", "loguniform", "reciprocal", "randint"):
        raise SpaceError(
            f"the distribution {name} is not uniform between two ends, in itself or in logs; "
            f"it may be {_KNOWN}."
        )
    low, high = given.support()
    if np.ndim(low) or np.ndim(high):
        raise SpaceError(f"{name} of several parameters at once; give each a name of its own.")
    if name == "randint":
        return Integer(_whole(low), _whole(high))
    shift = given.kwds.get("loc", given.args[2] if len(given.args) > 2 else 0)
    if name != "uniform" and shift != 0:
        raise SpaceError(f"{name} with loc={shift!r} is not uniform in logs; leave loc out.")
    return Real(low, high, log=name != "uniform")


def _whole(end: Any) -> int:
    if not float(end).is_integer():
        raise SpaceError(f"randint needs whole ends below its high; its support ends at {end!r}.")
    return int(end)


def _called(given: Any) -> str:
    from scipy.stats import rv_continuous, rv_discrete

    if isinstance(given, rv_continuous | rv_discrete):
        return f"the distribution {given.name} without its arguments, as in uniform(0, 1),"
    return repr(given)
