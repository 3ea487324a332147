"""Rebuilding the house moves no point: batches are those of before, bit for bit.

On another machine the last bits of linear algebra differ, and with them where an ascent ends. There
a batch is the pinned one up to a thousandth: another choice differs by much more.
"""

import json
from numbers import Real
from typing import Any

import pytest
from tests.pins.cases import HERE, cases, machine

PINNED = json.loads((HERE / "batches.json").read_text(encoding="utf-8"))
CASES = dict(cases())
NEAR = 2e-3  # of a value; seen between two kinds of processor: 7e-4


def agree(batch: Any, pinned: Any, tolerance: float) -> bool:
    """Compare what a case returns with its pin, numbers up to a relative tolerance."""
    if isinstance(pinned, dict):
        same = isinstance(batch, dict) and batch.keys() == pinned.keys()
        return same and all(agree(batch[key], pinned[key], tolerance) for key in pinned)
    if isinstance(pinned, list):
        same = isinstance(batch, list) and len(batch) == len(pinned)
        return same and all(agree(*both, tolerance) for both in zip(batch, pinned, strict=True))
    numbers = isinstance(batch, Real) and isinstance(pinned, Real)
    if numbers and not isinstance(pinned, bool | int):
        return bool(batch == pytest.approx(pinned, rel=tolerance, abs=0.1 * tolerance**2))
    return bool(batch == pinned)


def test_every_case_is_pinned():
    assert sorted(PINNED["batches"]) == sorted(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_batch_is_the_pinned_one(name):
    tolerance = 0.0 if PINNED["machine"] == machine() else NEAR
    assert agree(json.loads(json.dumps(CASES[name]())), PINNED["batches"][name], tolerance)


def test_another_choice_is_no_pinned_one():
    pinned = [{"x": 0.5, "n": 3, "kind": "a"}]
    assert agree([{"x": 0.5 + 1e-6, "n": 3, "kind": "a"}], pinned, NEAR)
    for other in ({"x": 0.51}, {"n": 4}, {"kind": "b"}):
        assert not agree([pinned[0] | other], pinned, NEAR)
    assert not agree([{"x": 0.5 + 1e-15, "n": 3, "kind": "a"}], pinned, 0.0)
