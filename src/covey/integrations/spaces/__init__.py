"""Search spaces from and to other libraries' own descriptions, one module for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from covey.errors import SpaceError

if TYPE_CHECKING:
    from covey.space import Parameter


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
