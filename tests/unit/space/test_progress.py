from __future__ import annotations

import logging

from covey.space import reading_csv as progress
from covey.space.reading_csv import ReadingProgress


def test_a_long_reading_says_how_far_it_is(monkeypatch, caplog):
    clock = iter([0.0, 1.0, 2.5, 3.0, 5.5])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with caplog.at_level(logging.INFO, logger="covey"):
        tally = ReadingProgress("pool.csv")
        for _ in range(4):
            tally.add(10)
    assert tally.rows == 40
    assert [record.getMessage() for record in caplog.records] == [
        "reading pool.csv: 20 rows so far, in 2 s",
        "reading pool.csv: 40 rows so far, in 6 s",
    ]
