from __future__ import annotations

import numpy as np

from covey.space import distinct
from covey.space.distinct import first_of_each


def test_distinct_rows_are_all_kept():
    rows = np.random.default_rng(0).random((200, 3))
    kept, pair = first_of_each(rows)
    np.testing.assert_array_equal(kept, np.arange(200))
    assert pair is None


def test_the_first_of_each_is_kept_in_order():
    rows = np.array([[3.0, 1.0], [2.0, 1.0], [3.0, 1.0], [0.0, 0.0], [2.0, 1.0], [3.0, 1.0]])
    kept, pair = first_of_each(rows)
    np.testing.assert_array_equal(kept, [0, 1, 3])
    assert pair == (0, 2)


def test_the_answer_is_that_of_a_dict():
    rows = np.random.default_rng(1).integers(0, 4, (500, 4)).astype(float)
    first: dict[bytes, int] = {}
    for i, row in enumerate(rows):
        first.setdefault(row.tobytes(), i)
    kept, pair = first_of_each(rows)
    np.testing.assert_array_equal(kept, sorted(first.values()))
    assert pair is not None
    assert (rows[pair[0]] == rows[pair[1]]).all()
    assert pair[1] == min(set(range(500)) - set(first.values()))


def test_a_collision_of_hashes_loses_no_row(monkeypatch):
    monkeypatch.setattr(distinct, "_hashes", lambda rows: np.zeros(len(rows), dtype=np.uint64))
    kept, pair = first_of_each(np.array([[1.0], [2.0], [3.0]]))
    np.testing.assert_array_equal(kept, [0, 1, 2])
    assert pair is None
    kept, pair = first_of_each(np.array([[1.0], [2.0], [1.0]]))
    np.testing.assert_array_equal(kept, [0, 1])
    assert pair == (0, 2)
