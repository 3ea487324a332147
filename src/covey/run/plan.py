"""`Plan`: how much to evaluate and how, by the options of a run; `Progress`: how far a run is."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from covey.errors import StrategyError, did_you_mean, is_whole
from covey.run.budget import Budget, BudgetOptions
from covey.run.slots import Gpus
from covey.run.stopping import StoppingRule, rule_of
from covey.run.task import Retries, retries_of

_ROUNDS = 20  # batches of a run, if nothing is said


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is; a function given as ``watch`` is called with one now and then."""

    done: int  # evaluations told or failed
    total: int  # evaluations in all, as far as it is known
    running: int  # submitted to the engine, not ended yet
    failed: int
    best: float | None
    waiting_for: str  # what the run waits for, in words
    left: float | None  # estimated seconds; None before an evaluation has ended
    spent: float | None = None  # what evaluations have cost so far, if the run has a cost
    trouble: str = ""  # what looks wrong, in a sentence: the last few failed alike


class RunOptions(BudgetOptions, total=False):
    """Options of a run, beyond its size; `Plan` has their defaults, covey.toml their types."""

    asynchronous: bool
    timeout: float | None
    retries: int | Retries
    watch: Callable[[Progress], None] | None
    gpus: Gpus | None
    per_gpu: int
    progress: bool | None
    stopping: str | StoppingRule | None
    join: bool


@dataclass(frozen=True, slots=True)
class Plan(Budget):
    """How much to evaluate, and how: the options of a run, and their meaning."""

    batch: int = 8
    rounds: int | None = None  # None: 20, unless the budget ends the run
    asynchronous: bool = False
    timeout: float | None = None
    retries: int | Retries = Retries()  # noqa: RUF009 - frozen
    watch: Callable[[Progress], None] | None = None
    gpus: Gpus | None = None  # as many slots, or which
    per_gpu: int = 1
    progress: bool | None = None  # show a bar; None: on a terminal and in a notebook
    stopping: str | StoppingRule | None = None  # which evaluations to end early
    join: bool = False  # share the journal with other runs

    def __post_init__(self) -> None:
        Budget.__post_init__(self)  # `super()` finds the class before it had slots
        for name, value in (("batch", self.batch), ("rounds", self.rounds or 1)):
            if not is_whole(value, 1) or self.rounds == 0:
                raise StrategyError(
                    f"{name} must be a whole number >= 1; got {getattr(self, name)!r}."
                )
        if self.rounds is not None and self.evaluations is not None:
            raise StrategyError(
                f"rounds={self.rounds} and evaluations={self.evaluations} say the same in "
                "two ways; give one of them."
            )
        rule_of(self.stopping)
        odd = [n for n in ("progress", "join") if getattr(self, n) not in (None, True, False)]
        if odd:
            raise StrategyError(f"{odd[0]} is True, False or None; got {getattr(self, odd[0])!r}.")
        limit = self.timeout
        if limit is not None and not (isinstance(limit, int | float) and 0.0 < limit < math.inf):
            raise StrategyError(f"timeout must be a number of seconds > 0, or None; got {limit!r}.")
        retries_of(self.retries)
        if self.watch is not None and not callable(self.watch):
            raise StrategyError(
                f"watch is a function of a covey.run.Progress, or None; got {self.watch!r}."
            )

    @property
    def total(self) -> int | None:
        """Evaluations in all; None if only something else ends it."""
        if self.evaluations is not None:
            return self.evaluations
        if self.rounds is None and self.ends:
            return None
        return self.batch * (_ROUNDS if self.rounds is None else self.rounds)

    @classmethod
    def of(cls, batch: int, rounds: int | None, options: Mapping[str, Any]) -> Plan:
        """A plan from the options that were passed; an unknown name is an error."""
        require_known(options, RunOptions.__annotations__)
        return cls(batch, rounds, **options)


def require_known(options: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise StrategyError if a keyword argument is no option."""
    for name in options:
        if name not in known:
            raise StrategyError(
                f"unknown option {name!r}; there are {', '.join(known)}.{did_you_mean(name, known)}"
            )
