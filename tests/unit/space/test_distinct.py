from __future__ import annotations

import numpy as np

from covey.space import pool as distinct
from covey.space.pool import RowIndex


def first_of_each(rows):
    return RowIndex(rows).first_of_each()


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


def test_rows_are_found_and_no_others():
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 50, (5000, 3)).astype(float)
    rows = rows[first_of_each(rows)[0]]
    others = rows[rng.permutation(len(rows))] + [0.0, 0.0, 0.5]
    both = np.concatenate([rows, others])
    found = RowIndex(rows).find(both)
    np.testing.assert_array_equal(found, [*range(len(rows)), *[-1] * len(others)])
    assert found.dtype == np.intp
    assert RowIndex(rows).find(np.empty((0, 3))).shape == (0,)


def test_a_collision_of_hashes_finds_no_wrong_row(monkeypatch):
    monkeypatch.setattr(distinct, "_hashes", lambda rows: np.full(len(rows), 7, dtype=np.uint64))
    rows = np.arange(20.0).reshape(-1, 1)
    found = RowIndex(rows).find(np.array([[3.0], [19.0], [0.0], [20.0]]))
    np.testing.assert_array_equal(found, [3, 19, 0, -1])


def test_hashes_do_not_depend_on_the_block(monkeypatch):
    rows = np.random.default_rng(3).random((100, 5))
    whole = distinct._hashes(rows)
    monkeypatch.setattr(distinct, "_HASHED", 7)
    np.testing.assert_array_equal(distinct._hashes(rows), whole)
    np.testing.assert_array_equal(distinct._hashes(rows[::3]), whole[::3])


def test_hashes_of_rows_on_a_lattice_rarely_meet():
    """Round numbers share their last bits, and permuted rows their cells."""
    ticks = np.linspace(0.0, 1.0, 17)
    rows = np.stack(np.meshgrid(*[ticks] * 4), axis=-1).reshape(-1, 4)
    assert len(np.unique(distinct._hashes(rows))) == len(rows)
    hot = np.eye(500)
    assert len(np.unique(distinct._hashes(hot))) == 500
