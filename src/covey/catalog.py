"""The strategies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from covey.baselines import (
    Hallucinated,
    LocalPenalization,
    Random,
    Sobol,
    Thompson,
)
from covey.errors import StrategyError, did_you_mean
from covey.policies import EST, UCB
from covey.selection import Strategy
from covey.spread import SpreadUCB
from covey.strategies import DPP, DPPThompson

STRATEGIES: Mapping[str, Callable[[], Strategy]] = {
    "auto": SpreadUCB,
    "spread-ucb": SpreadUCB,
    "ucb-dpp-max": lambda: DPP(UCB(), then="max"),
    "ucb-dpp-sample": lambda: DPP(UCB(), then="sample"),
    "est-dpp-max": lambda: DPP(EST(), then="max"),
    "est-dpp-sample": lambda: DPP(EST(), then="sample"),
    "ucb-pe": lambda: DPP(UCB(), then="max"),  # the paper, section 3.2: it is the same choice
    "est-pe": lambda: DPP(EST(), then="max"),
    "bucb": lambda: Hallucinated(UCB()),
    "b-est": lambda: Hallucinated(EST()),
    "lp-ucb": LocalPenalization,
    "dpp-ts": DPPThompson,
    "thompson": Thompson,
    "random": Random,
    "sobol": Sobol,
}
"""Every name `Study(strategy=...)` takes, and the strategy it stands for."""


def strategy_of(given: str | Strategy) -> tuple[str, Strategy]:
    """The name and the strategy meant by a name or an object.

    >>> strategy_of("random")
    ('random', Random())
    """
    if not isinstance(given, str):
        if isinstance(given, type) or not isinstance(given, Strategy):
            raise StrategyError(
                "a strategy is a name, or an object with `needs_model` and "
                f"`choose(belief, k, rng)`; got {given!r}. "
                f"Names are {', '.join(STRATEGIES)}."
            )
        return type(given).__name__, given
    if given not in STRATEGIES:
        raise StrategyError(
            f"unknown strategy {given!r}; there are {', '.join(STRATEGIES)}."
            f"{did_you_mean(given, STRATEGIES)}"
        )
    return given, STRATEGIES[given]()
