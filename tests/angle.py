"""A kind of parameter as a stranger writes it: one class in one file.

Not registered, since other tests name all kinds: the fixture ``angle`` does it.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from covey.space import Parameter
from covey.space.names import number


@dataclass(frozen=True)
class Angle(Parameter):
    """Degrees on a circle: 359 is next to 1."""

    kind: ClassVar[str] = "angle"
    width: ClassVar[int] = 2
    scale: ClassVar[str] = "linear"

    def check(self, value):
        return number(value, "an Angle value") % 360.0

    def encode(self, values):
        turn = np.radians([self.check(value) for value in values])
        return (1.0 + np.stack([np.cos(turn), np.sin(turn)], axis=1)) / 2.0

    def decode(self, columns):
        x, y = 2.0 * columns.T - 1.0
        return (np.round(np.degrees(np.arctan2(y, x)), 9) % 360.0).tolist()

    def examples(self, most):
        return np.linspace(0.0, 360.0, most, endpoint=False).tolist()
