from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

from covey.run import Outcome


@pytest.mark.parametrize(
    "number",
    [2, 2.0, np.float32(2), np.int64(2), np.array(2.0), np.array([2.0]), Fraction(2), {"value": 2}],
    ids=lambda x: type(x).__name__,
)
def test_whatever_is_a_number(number):
    assert Outcome.of("a", number) == Outcome("a", "succeeded", 2.0)


NOT_REAL = [
    np.complex128(1 + 2j),
    np.array(1 + 2j),
    np.array([1 + 2j]),
    np.True_,
    np.str_("2.5"),
    np.bytes_(b"2.5"),
    b"2.5",
    np.array([1.0, 2.0]),
]


# In a process of its own NumPy's warning that it drops an imaginary part is no error.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("other", NOT_REAL, ids=repr)
def test_what_the_log_would_refuse_is_refused(other):
    """Where it ran, with a reason; not told as its real part, or as the number it spells."""
    found = Outcome.of("a", other)
    assert (found.status, found.value) == ("failed", None)
    assert "not a finite number" in found.reason
    found = Outcome.of("a", {"value": 1.0, "sem": other})
    assert (found.status, found.sem) == ("failed", None)
    assert "standard error" in found.reason


def test_what_comes_beside_the_value_is_kept_as_plain_data():
    found = Outcome.of("a", {"value": 2, "latency": np.float32(0.5), "per fold": (1, 2), 3: "x"})
    assert found.metrics == {"latency": 0.5, "per fold": [1, 2], "3": "x"}
    assert found.unkept == ()


@pytest.mark.parametrize(
    "odd", [object(), float("nan"), "\ud800", "x" * 20_000, Fraction(1, 2)], ids=type
)
def test_what_a_log_cannot_hold_is_named_and_the_value_stays(odd):
    found = Outcome.of("a", {"value": 2, "loss": 3, "odd": odd})
    assert (found.status, found.value, found.metrics) == ("succeeded", 2.0, {"loss": 3})
    assert found.unkept == ("odd",)


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
