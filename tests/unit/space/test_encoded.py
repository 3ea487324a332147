from __future__ import annotations

import numpy as np
import pytest

from covey.errors import SpaceError
from covey.space.pool import Encoded, encode, slices
from covey.space.reading import read_rows
from covey.space.table import OneHot, Scaled


def test_distinct_rows_are_all_kept():
    held = Encoded.of(read_rows(np.array([[0.0], [4.0], [1.0]])), None, ())
    np.testing.assert_array_equal(held.rows, [[0], [1], [0.25]])
    assert not held.rows.flags.writeable
    assert held.repeats == ""
    assert held.original(2) == 2


def test_rows_that_repeat_are_left_out_and_named():
    held = Encoded.of(read_rows(np.array([[0.0, 1.0], [0.0, 2.0], [4.0, 3.0]])), ["x0"], ())
    assert held.table.row(1) == {"x0": 4.0, "x1": 3.0}
    assert not held.rows.flags.writeable
    assert [held.original(i) for i in range(2)] == [0, 2]
    assert held.repeats.startswith("rows 0 and 1 have the same inputs; ")
    assert "(1 in all)" in held.repeats


def test_rows_of_a_file_are_named_by_their_lines(tmp_path):
    file = tmp_path / "pool.csv"
    file.write_text("x\n3\n\n1\n1\n")
    held = Encoded.of(read_rows(file), None, ())
    assert held.repeats.startswith(f"line 4 of {file} and line 5 of {file} have the same inputs")
    file.write_text("x\n3\n\nnan\n")
    with pytest.raises(SpaceError, match=r"line 4 of .*pool.csv has nan in the input 'x'"):
        Encoded.of(read_rows(file), None, ())


def test_inputs_lie_side_by_side():
    features = {"s": OneHot(("a", "b")), "t": Scaled(0.0, 2.0)}
    assert slices(features) == {"s": slice(0, 2), "t": slice(2, 3)}
    rows = encode(features, {"t": [1], "s": ["b"], "other": [0]}, 1)
    np.testing.assert_array_equal(rows, [[0, 1, 0.5]])
