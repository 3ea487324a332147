from __future__ import annotations

import pytest

from covey.space import pool as changes
from covey.space.pool import difference
from covey.space.table import from_records

ROWS = [{"t": i, "s": "abcdefg"[i], "x": float("nan")} for i in range(7)]


@pytest.mark.parametrize("block", [2, 100])
@pytest.mark.parametrize(
    ("now", "found"),
    [
        (ROWS, None),
        (ROWS[:5], "it had 7 rows and has 5"),
        ([{"t": 1}], "its columns were t, s, x and are t"),
        ([*ROWS[:4], {**ROWS[4], "s": "q"}, *ROWS[5:]], (4, "the column 's' had 'e' and has 'q'")),
        (ROWS[1:], (0, "the column 's' had 'a' and has 'b'")),
        ([{**row, "t": float(row["t"])} for row in ROWS], None),
    ],
)
def test_the_first_difference_is_named(monkeypatch, block, now, found):
    monkeypatch.setattr(changes, "_BLOCK", block)
    assert difference(from_records(ROWS), from_records(now)) == found
