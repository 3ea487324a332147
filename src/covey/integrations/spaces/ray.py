"""Spaces from the domains of a Ray Tune ``param_space``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from covey import Integer, Real, Space
from covey.errors import SpaceError, installed
from covey.space import Choice, Parameter
from covey.space.names import plain

with installed("ray", "ray"):
    from ray.tune.search import sample
    from ray.tune.search.variant_generator import parse_spec_vars


# Names with slashes, for hosts whose configurations are nested dicts.


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Values by path, as nested dicts.

    >>> nested({"a": 1, "b/c": 2})
    {'a': 1, 'b': {'c': 2}}
    """
    tree: dict[str, Any] = {}
    made: dict[tuple[str, ...], dict[str, Any]] = {(): tree}  # a value may be a dict of its own
    for name, value in flat.items():
        keys = tuple(name.split("/"))
        for depth in range(1, len(keys)):
            above = keys[:depth]
            if above not in made:
                made[above] = {}
                _put(made[above[:-1]], above[-1], made[above], name)
        _put(made[keys[:-1]], keys[-1], value, name)
    return tree


def picked(config: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The values a config has under these paths.

    >>> picked({"a": 1, "b": {"c": 2, "d": 3}}, ["a", "b/c", "e"])
    {'a': 1, 'b/c': 2}
    """
    found = {}
    for name in names:
        inner: Any = config
        *above, leaf = [name] if name in config else name.split("/")
        for key in above:
            inner = inner.get(key) if isinstance(inner, Mapping) else None
        if isinstance(inner, Mapping) and leaf in inner:
            found[name] = inner[leaf]
    return found


def _put(into: dict[str, Any], key: str, value: Any, name: str) -> None:
    if not key or key in into:
        why = "another name is a part of it" if key else "there is nothing beside a slash"
        raise SpaceError(f"parameter {name!r} cannot become a path of dicts: {why}; rename it.")
    into[key] = value


def space_from_ray(param_space: Mapping[str, Any]) -> Space:
    """The space of the domains in a ``param_space``; its constants are left to Ray.

    A domain inside dicts is named by its path. A choice among numbers becomes an ordered one,
    smallest first: 16 is nearer to 32 than to 512.

    >>> from ray import tune
    >>> space_from_ray({"opt": {"lr": tune.loguniform(1e-4, 1e-1)}, "epochs": 10})
    Space({'opt/lr': Real(low=0.0001, high=0.1, log=True)})
    """
    parameters = {}
    for name, domain in domains_in(param_space).items():
        try:
            parameters[name] = _parameter(domain)
        except SpaceError as error:
            raise SpaceError(f"parameter {name!r}: {error}") from error
    if not parameters:
        raise SpaceError(
            "param_space has nothing to search: it needs a domain such as tune.uniform(0, 1); "
            f"got {param_space!r}."
        )
    return Space(parameters)


def domains_in(param_space: Mapping[str, Any]) -> dict[str, sample.Domain]:
    """What is to be searched in a ``param_space``, by path."""
    if not isinstance(param_space, Mapping):
        raise SpaceError(
            f"param_space is a dict such as {{'x': tune.uniform(0, 1)}}; got {param_space!r}."
        )
    _, domains, grids = parse_spec_vars(dict(param_space))
    found = {}
    for path, domain in (*domains, *grids):
        if not all(isinstance(key, str) and key and "/" not in key for key in path):
            raise SpaceError(
                f"a domain lies at {' > '.join(map(repr, path))}; Ray can put a suggestion only "
                "where a path of dict keys leads, which are texts without '/'."
            )
        found["/".join(path)] = domain
    return found


def _parameter(domain: Any) -> Parameter:
    if not isinstance(domain, sample.Float | sample.Integer | sample.Categorical):
        raise SpaceError(
            f"{'sample_from' if domain.is_function() else type(domain).__name__} may draw as it "
            "likes; compute the value from the others in the trainable."
        )
    sampler, step = _sampler(domain)
    log = isinstance(sampler, sample.LogUniform)
    if not log and not isinstance(sampler, sample.Uniform):
        raise SpaceError(_refusal(sampler))
    if isinstance(domain, sample.Categorical):
        return _choice(domain.categories)
    if isinstance(domain, sample.Integer):
        return _integer(domain.lower, domain.upper, log, step or 1)
    return Real(domain.lower, domain.upper, log=log) if step is None else _steps(domain, log, step)


def _sampler(domain: Any) -> tuple[Any, Any]:
    """How a domain draws, and in which steps, None for none."""
    sampler = domain.get_sampler()
    quantised = isinstance(sampler, sample.Quantized)
    return (sampler.sampler, sampler.q) if quantised else (sampler, None)


def _refusal(sampler: Any) -> str:
    if isinstance(sampler, sample.Grid):
        return "grid_search tries every value, and a search chooses; use tune.choice."
    if isinstance(sampler, sample.Normal):
        return "a normal distribution has no bounds; use tune.uniform where you expect it to lie."
    return f"the sampler {type(sampler).__name__} is not known; use one of ray.tune's own."


def _choice(options: list[Any]) -> Choice:
    return Choice([plain(option) for option in options])


def _integer(lower: int, upper: int, log: bool, step: int) -> Integer:
    if step == 1:
        return Integer(lower, upper - 1, log=log)  # Ray leaves the upper end out
    # In steps Ray takes the multiples of the step, both ends included.
    return Integer(-(-lower // step) * step, upper // step * step, log=log, step=step)


def _steps(domain: sample.Float, log: bool, step: float) -> Real | Choice:
    """The multiples of the step that Ray rounds to."""
    if log:
        raise SpaceError(
            f"steps of {step} on a logarithmic scale cannot be expressed; use tune.loguniform and "
            "round in the trainable, or tune.qlograndint."
        )
    gap = Decimal(str(step))
    low, high = (float(gap * round(end / step)) for end in (domain.lower, domain.upper))
    return Real(low, high, step=step) if low < high else Choice([low])
