"""Search spaces from and to other libraries' own descriptions, one module for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from covey.errors import SpaceError

if TYPE_CHECKING:
    from covey.space import Parameter, Space


def inexpressible(parameter: Parameter, host: str) -> SpaceError:
    """The error for a kind of parameter that the host cannot express."""
    return SpaceError(
        f"{host} cannot express the kind {parameter.kind!r}, only real, integer and choice; "
        "search one of these there, and convert it in the objective."
    )


def refuse_features(parameter: Parameter, host: str) -> None:
    """Raise if options have features: the host would search them as if they had none."""
    if getattr(parameter, "features", None) is not None:
        raise SpaceError(
            f"{host} has no features of options; leave them out, Choice(options), to search the "
            "options there as equally different."
        )


def refuse_conditions(space: Space, host: str, instead: str) -> None:
    """Raise if a parameter has a condition, which the host cannot express."""
    found = [name for name, parameter in space.parameters.items() if parameter.when is not None]
    if found:
        raise SpaceError(
            f"{host} cannot say that {', '.join(map(repr, found))} may be absent (`when`); "
            f"{instead}"
        )


def conditioned(parameter: Parameter, when: Mapping[str, Any]) -> Parameter:
    """The parameter with a condition."""
    return replace(parameter, when=when)  # type: ignore[type-var]
