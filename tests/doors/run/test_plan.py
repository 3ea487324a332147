from __future__ import annotations

import pytest

from covey.errors import StrategyError
from covey.run.loop import Plan
from covey.run.task import Retries


def test_a_plan_of_options():
    plan = Plan.of(4, 3, {"timeout": 2, "asynchronous": True})
    assert plan == Plan(4, 3, True, 2, Retries(), None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch": 0},
        {"batch": "8"},
        {"rounds": 1.0},
        {"timeout": -1},
        {"timeout": float("inf")},
        {"retries": None},
    ],
)
def test_what_makes_no_plan_is_named(wrong):
    with pytest.raises(StrategyError, match="got"):
        Plan(**wrong)


def test_an_unknown_option_is_named():
    with pytest.raises(StrategyError, match=r"'watched'; there are .*Did you mean 'watch'"):
        Plan.of(4, 3, {"watched": print})
