"""Rebuilding the house moves no point: batches are those of before, bit for bit."""

import json

import pytest
from tests.pins.cases import HERE, cases, machine

PINNED = json.loads((HERE / "batches.json").read_text(encoding="utf-8"))
CASES = dict(cases())


def test_every_case_is_pinned():
    assert sorted(PINNED["batches"]) == sorted(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_batch_is_the_pinned_one(name):
    if PINNED["machine"] != machine():
        pytest.skip(f"the last bits are those of {PINNED['machine']}, and this is {machine()}")
    assert json.loads(json.dumps(CASES[name]())) == PINNED["batches"][name]
