from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

from covey.run import Outcome


@pytest.mark.parametrize(
    "number",
    [2, 2.0, np.float32(2), np.int64(2), np.array(2.0), Fraction(2), {"value": 2}],
    ids=lambda x: type(x).__name__,
)
def test_whatever_is_a_number(number):
    assert Outcome.of("a", number) == Outcome("a", "succeeded", 2.0)


class Odd:
    def __float__(self):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "other",
    [None, True, "2", 2j, [2.0], float("nan"), 10**400, -1e101, {}, {"Value": 2}, Odd()],
    ids=lambda x: type(x).__name__,
)
def test_whatever_is_none(other):
    found = Outcome.of("a", other)
    assert (found.status, found.value) == ("failed", None)
    assert "not a finite number" in found.reason


@pytest.mark.parametrize("sem", [-0.1, float("inf"), "small"])
def test_a_standard_error_must_be_one(sem):
    assert "standard error" in Outcome.of("a", {"value": 2, "sem": sem}).reason


def test_an_outcome_travels():
    found = Outcome.of("a", {"value": 2, "sem": 0.0})
    assert pickle.loads(pickle.dumps(found)) == found
