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
from covey.learn import NAMES
from covey.policies import EST, UCB
from covey.selection import Strategy
from covey.strategies import DPP, DPPThompson
from covey.two_roles import TwoRoles

# A constant width of 2, as GPyOpt has it and `lp-ucb` does. With that of the theorem,
# which is 4 and more and grows, batches explore on and on. The practical schedule of `UCB` grows
# with the encoded inputs: on a pool of 2,048 descriptors its width is 17 and more.
_BETA = 4.0

STRATEGIES: Mapping[str, Callable[[], Strategy]] = {
    "auto": TwoRoles,
    "spread-ucb": TwoRoles,
    "ucb-dpp-max": lambda: DPP(UCB(_BETA), then="max"),
    "ucb-dpp-sample": lambda: DPP(UCB(_BETA), then="sample"),
    "est-dpp-max": lambda: DPP(EST(), then="max"),
    "est-dpp-sample": lambda: DPP(EST(), then="sample"),
    "ucb-pe": lambda: DPP(UCB(_BETA), then="max"),  # section 3.2 of the paper: the same choice
    "est-pe": lambda: DPP(EST(), then="max"),
    "bucb": lambda: Hallucinated(UCB(_BETA)),
    "b-est": lambda: Hallucinated(EST()),
    "lp-ucb": LocalPenalization,
    "dpp-ts": DPPThompson,
    "thompson": Thompson,
    "random": Random,
    "sobol": Sobol,
}
"""Every name `Study(strategy=...)` takes, and the strategy it stands for."""

_BEFORE_0_3: Mapping[str, Callable[[], Strategy]] = {
    "ucb-dpp-max": lambda: DPP(UCB(), then="max"),
    "ucb-dpp-sample": lambda: DPP(UCB(), then="sample"),
    "ucb-pe": lambda: DPP(UCB(), then="max"),
    "bucb": lambda: Hallucinated(UCB()),
}
"""Strategies that names stood for in a journal that was started before 0.3: the theorem's width."""


def strategy_of(given: str | Strategy, names: str = NAMES) -> tuple[str, Strategy]:
    """The name and the strategy meant by a name or an object.

    ``names`` is the version whose strategies the names stand for (see `covey.learn.Recipe`).

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
    known = STRATEGIES if names == NAMES else {**STRATEGIES, **_BEFORE_0_3}
    return given, known[given]()
