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
