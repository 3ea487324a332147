from __future__ import annotations

import pickle

import numpy as np
import pytest

from covey.space.table import TEXT, as_column, equal_to, is_text, joined, texts


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], np.int64),
        ([1, 2.5], np.float64),
        ([np.float32(1), np.int64(2)], np.float64),
        ([True, np.bool_(False)], np.bool_),
        (["a", "b"], TEXT),
        (["a", None], TEXT),
        ([None, None], np.object_),
        (["a", 1], np.object_),
        (["\ud800"], np.object_),
        ([True, 1], np.object_),
        ([1, None], np.object_),
        ([2**70, 1], np.object_),
        ([[1, 2], [3, 4]], np.object_),
        ([], np.object_),
        (np.arange(3, dtype=np.uint8), np.int64),
        (np.array([2**63], dtype=np.uint64), np.object_),
        (np.array([1.5], dtype=np.float32), np.float64),
        (np.array(["a"]), TEXT),
        (np.array([1, 2], dtype=object), np.int64),
        (np.array(["2024-01-01"], dtype="M8[D]"), np.object_),
    ],
)
def test_a_column_has_the_type_all_its_values_have(values, dtype):
    column = as_column(values)
    assert column.dtype == dtype
    assert column.shape == (len(values),)


def test_a_column_is_a_copy():
    values = np.arange(3.0)
    column = as_column(values)
    values[0] = 9.0
    assert column[0] == 0.0


def test_text_comes_back_as_it_was():
    words = ["", "a\0", "é" * 40, "\U0001f9ea", None, " x "]
    column = as_column(words)
    assert is_text(column)
    assert column.tolist() == words
    assert [type(column[i]) for i in (1, 4)] == [str, type(None)]
    assert pickle.loads(pickle.dumps(column)).tolist() == words
    assert column[np.array([4, 2])].tolist() == [None, "é" * 40]


def test_text_takes_little_more_than_its_letters():
    """An object for each cell would take 49 bytes more than the letters."""
    assert texts(["CCO"] * 1000).nbytes <= 16_000


@pytest.mark.parametrize(
    ("parts", "dtype"),
    [
        ([[1], [2, 3]], np.int64),
        ([[1], [2.5]], np.float64),
        ([[1], [None]], np.object_),
        ([[1], [2**70]], np.object_),
        ([["a"], [None, "b"]], TEXT),
        ([["a"], [None]], TEXT),
        ([[True], [None]], np.object_),
        ([[True], [False]], np.bool_),
        ([[[1]], ["a"]], np.object_),
    ],
)
def test_pieces_are_joined_as_if_they_had_come_at_once(parts, dtype):
    values = [value for part in parts for value in part]
    column = joined([as_column(part) for part in parts])
    assert column.dtype == dtype == as_column(values).dtype
    assert column.tolist() == values


def test_equal_to_finds_the_very_value():
    assert equal_to(as_column(["a", None, "b"]), "a").tolist() == [True, False, False]
    assert equal_to(as_column(["a", None]), None).tolist() == [False, True]
    assert equal_to(as_column(["1", "2"]), 1).tolist() == [False, False]
    assert equal_to(as_column([1, 2]), 1.0).tolist() == [True, False]
    assert equal_to(as_column([1, 2]), True).tolist() == [False, False]
    assert equal_to(as_column([[1], 1]), [1]).tolist() == [True, False]
