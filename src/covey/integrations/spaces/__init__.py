"""Search spaces from other libraries' own descriptions, one module for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from covey.space import Parameter


def conditioned(parameter: Parameter, when: Mapping[str, Any]) -> Parameter:
    """Return the parameter with a condition."""
    return replace(parameter, when=when)  # type: ignore[type-var]
