"""What grows with pool and batch stays within the memory that a study is given."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from covey import Pool, Study

ROWS = np.random.default_rng(0).random((60_000, 3))
RESULTS, BATCH, MIB = 150, 40, 2**20


def peak(strategy, memory):
    """Bytes that an ask took at most."""
    study = Study(Pool(ROWS), seed=0, strategy=strategy, memory=memory)
    study.add(
        [study.space.point(i) for i in range(RESULTS)], np.cos(40 * ROWS[:RESULTS]).sum(axis=1)
    )
    small = Study(Pool(ROWS[:300]), seed=0, strategy=strategy)  # what is imported lazily
    small.add([{"x0": 0.1, "x1": 0.2, "x2": x} for x in (0.1, 0.5, 0.7)], [1.0, 2.0, 1.5])
    small.ask(2)
    tracemalloc.start()
    try:
        study.ask(BATCH)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "strategy", ["auto", "b-est", "lp-ucb", "ucb-dpp-max", "ucb-dpp-sample", "ucb-pe", "thompson"]
)
def test_an_ask_keeps_to_its_memory(strategy):
    """The pool would take 72 MB for V and 19 for the batch's rows; a row has 100 bytes beside."""
    assert peak(strategy, "64 MiB") < 64 * MIB + 100 * len(ROWS)


def test_with_more_memory_it_takes_more():
    """The control: V is held, and would have failed the law above."""
    assert peak("ucb-dpp-max", "1 GiB") > 64 * MIB + 100 * len(ROWS)
