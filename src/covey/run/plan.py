"""Plan: how much to evaluate, and how."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypedDict

import numpy as np

from covey.errors import StrategyError, did_you_mean
from covey.run.progress import Progress
from covey.run.retries import Retries


class RunOptions(TypedDict, total=False):
    """How to run, beyond how much."""

    asynchronous: bool
    timeout: float | None
    retries: Retries
    watch: Callable[[Progress], None] | None


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to evaluate, and how."""

    batch: int = 8
    rounds: int = 20
    asynchronous: bool = False
    timeout: float | None = None
    retries: Retries = Retries()  # noqa: RUF009 - frozen
    watch: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        for name in ("batch", "rounds"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise StrategyError(f"{name} must be a whole number >= 1; got {value!r}.")
        limit = self.timeout
        if limit is not None and not (isinstance(limit, int | float) and 0.0 < limit < math.inf):
            raise StrategyError(f"timeout must be a number of seconds > 0, or None; got {limit!r}.")
        if not isinstance(self.retries, Retries):
            raise StrategyError(f"retries is a covey.run.Retries(lost=3); got {self.retries!r}.")
        if self.watch is not None and not callable(self.watch):
            raise StrategyError(
                f"watch is a function of a covey.run.Progress, or None; got {self.watch!r}."
            )

    @classmethod
    def of(cls, batch: int, rounds: int, options: Mapping[str, Any]) -> Plan:
        """A plan from what was passed; a name it does not know is an error."""
        known = [field.name for field in fields(cls) if field.name not in ("batch", "rounds")]
        for name in options:
            if name not in known:
                raise StrategyError(
                    f"unknown option {name!r}; there are {', '.join(known)}."
                    f"{did_you_mean(name, known)}"
                )
        return cls(batch, rounds, **options)
