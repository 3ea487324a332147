"""The search space: parameters with known constraints, or a finite pool of candidates."""

from __future__ import annotations

from covey.space.choice import Choice
from covey.space.constraints import Linear
from covey.space.description import space_from_description
from covey.space.mixture import Mixture
from covey.space.parameters import Integer, Parameter, Real, register
from covey.space.pool import Pool
from covey.space.reading import Frame, records_of
from covey.space.rules import Implies, read_rules
from covey.space.space import Space

__all__ = [
    "Choice",
    "Frame",
    "Implies",
    "Integer",
    "Linear",
    "Mixture",
    "Parameter",
    "Pool",
    "Real",
    "Space",
    "read_rules",
    "records_of",
    "register",
    "space_from_description",
]
