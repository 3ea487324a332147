from __future__ import annotations

import numpy as np
import pytest

from covey.errors import SpaceError
from covey.space import pool
from covey.space.pool import Encoded, RowIndex, chosen_inputs, encode, refuse_too_wide, slices
from covey.space.reading import Source, read_rows
from covey.space.table import OneHot, Scaled, Table, as_column, fit_feature


def fit(name, column):
    return fit_feature(name, column, lambda row: f"row {row} (the first is row 0)")


def test_numbers_are_scaled_by_their_ends():
    feature = fit("t", as_column([20, 40, 30]))
    assert feature == Scaled(20.0, 40.0)
    np.testing.assert_array_equal(feature.encode([20, 30, 40, 60]), [[0], [0.5], [1], [2]])


def test_a_constant_is_in_the_middle_and_other_values_are_not():
    feature = fit("t", as_column([7, 7]))
    np.testing.assert_array_equal(feature.encode([7, 8]), [[0.5], [1.5]])


def test_text_and_booleans_are_one_hot_in_sorted_order():
    text = fit("s", as_column(["b", "a", "b"]))
    assert text == OneHot(("a", "b"))
    np.testing.assert_array_equal(text.encode(["b", "a"]), [[0, 1], [1, 0]])
    assert fit("b", as_column([True, False])) == OneHot((False, True))
    assert fit("b", as_column([True])).width == 1


def test_integers_beyond_int64_are_numbers():
    assert fit("n", as_column([2**70, 0])) == Scaled(0.0, 2.0**70)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, float("nan")], r"row 1.*nan.*'t'"),
        ([float("-inf"), 1.0], r"row 0.*inf.*'t'"),
        ([1, 2, None], r"row 2.*None.*'t'.*\['t'\]"),
        (["a", float("nan")], r"row 1.*nan.*'t'"),
        (["a", 1], r"'t' .*int and str; row 1 "),
        ([1, 2, 3, "n/a", 3.5], r"row 3.*'n/a'"),
        (["a", None], r"row 1.*None"),
        ([True, 1], r"'t'.*bool.*row 1"),
        ([[1], [2]], r"'t'.*row 0.*\[1\]"),
        ([10**400, 1], r"'t'.*got 10000"),
        ([-1.7e308, 1.7e308], r"'t'.*float64"),
    ],
)
def test_an_input_that_cannot_be_seen(values, message):
    with pytest.raises(SpaceError, match=message):
        fit("t", as_column(values))


def test_one_word_among_numbers_is_a_mistake():
    numbers = [str(i) for i in range(9)]
    for odd in ("n/a", "20 C", "1_0"):
        with pytest.raises(SpaceError, match=rf"row 4 .* has {odd!r} in the input 't', where 9 of"):
            fit("t", as_column([*numbers[:4], odd, *numbers[4:]]))
    assert fit("t", as_column([*numbers[:8], "20 C"])).width == 9  # 8 of 9 is less than 9 in 10
    assert fit("t", as_column(numbers)).width == 9  # text, and meant so


def test_a_sign_for_missing_is_a_mistake_among_any_numbers():
    with pytest.raises(SpaceError, match=r"row 1.*'N/A'.*'t'"):
        fit("t", as_column(["1", "N/A", " - "]))
    assert fit("t", as_column(["a", "N/A", "-"])).width == 3


def test_text_of_too_many_values_is_not_an_input():
    names = [f"C{i}" for i in range(1001)]
    assert fit("id", as_column(names[1:])).width == 1000
    with pytest.raises(SpaceError, match=r"'id'.*1001.*row 0"):
        fit("id", as_column(names))


def test_values_are_checked():
    number = Scaled(0.0, 1.0)
    assert [type(number.check(v)) for v in (3, 0.5, np.int8(1), np.float32(1))] == [
        int,
        float,
        int,
        float,
    ]
    for value in ("a", None, True, float("nan")):
        with pytest.raises(SpaceError, match=f"got {value!r}"):
            number.check(value)


def test_an_unknown_category_is_an_error_with_the_nearest():
    text = OneHot(("acetone", "water"))
    assert text.check(np.str_("water")) == "water"
    with pytest.raises(SpaceError, match=r"'watre'.*'acetone', 'water'.*'water'"):
        text.check("watre")
    flags = OneHot((False, True))
    assert flags.check(np.bool_(True)) is True
    with pytest.raises(SpaceError, match="False, True"):
        flags.check(1)


# A whole table, encoded


def test_distinct_rows_are_all_encoded():
    held = Encoded.of(read_rows(np.array([[0.0], [4.0], [1.0]])), None, ())
    np.testing.assert_array_equal(held.rows, [[0], [1], [0.25]])
    assert not held.rows.flags.writeable
    assert held.repeats == ""


def test_rows_that_repeat_are_left_out_and_named():
    held = Encoded.of(read_rows(np.array([[0.0, 1.0], [0.0, 2.0], [4.0, 3.0]])), ["x0"], ())
    assert held.table.row(1) == {"x0": 4.0, "x1": 3.0}
    assert not held.rows.flags.writeable
    assert held.repeats.startswith("rows 0 and 1 have the same inputs; ")
    assert "(1 in all)" in held.repeats


def test_rows_of_a_file_are_named_by_their_lines(tmp_path):
    file = tmp_path / "pool.csv"
    file.write_text("x\n3\n\n1\n1\n")
    held = Encoded.of(read_rows(file), None, ())
    assert held.repeats.startswith(f"line 4 of {file} and line 5 of {file} have the same inputs")
    file.write_text("x\n3\n\nnan\n")
    with pytest.raises(SpaceError, match=r"line 4.*nan.*'x'"):
        Encoded.of(read_rows(file), None, ())


def test_inputs_lie_side_by_side():
    features = {"s": OneHot(("a", "b")), "t": Scaled(0.0, 2.0)}
    assert slices(features) == {"s": slice(0, 2), "t": slice(2, 3)}
    rows = encode(features, {"t": [1], "s": ["b"], "other": [0]}, 1)
    np.testing.assert_array_equal(rows, [[0, 1, 0.5]])


# The columns that are inputs


TABLE = Table({name: np.arange(2) for name in "tsx"}, Source("pool.csv", 1, 1))


def test_all_columns_are_inputs_but_for_labels():
    assert chosen_inputs(TABLE, None, ()) == ("t", "s", "x")
    assert chosen_inputs(TABLE, None, ["s"]) == ("t", "x")
    assert chosen_inputs(TABLE, ["x", "t", "x"], ()) == ("x", "t")


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (["z"], (), r"'z'; pool\.csv"),
        (None, ["T"], r"'T'; pool\.csv.*'t'"),
        ("t", (), r"'t'.*\['t'\]"),
        (["t"], ["t"], r"^t .*input.*label"),
        ([], (), r"t, s, x.*inputs"),
    ],
)
def test_roles_are_checked(inputs, labels, message):
    with pytest.raises(SpaceError, match=message):
        chosen_inputs(TABLE, inputs, labels)


def test_what_does_not_fit_is_refused(monkeypatch):
    features = {"t": Scaled(0.0, 1.0), "s": OneHot(tuple("abcd"))}
    monkeypatch.setattr(pool, "_MOST_CELLS", 50)
    refuse_too_wide(features, 10)
    with pytest.raises(SpaceError, match=r"11.*'s'.*\['s'\]"):
        refuse_too_wide(features, 11)


# Rows that are distinct


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
    monkeypatch.setattr(pool, "_hashes", lambda rows: np.zeros(len(rows), dtype=np.uint64))
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
    monkeypatch.setattr(pool, "_hashes", lambda rows: np.full(len(rows), 7, dtype=np.uint64))
    rows = np.arange(20.0).reshape(-1, 1)
    found = RowIndex(rows).find(np.array([[3.0], [19.0], [0.0], [20.0]]))
    np.testing.assert_array_equal(found, [3, 19, 0, -1])


def test_hashes_do_not_depend_on_the_block(monkeypatch):
    rows = np.random.default_rng(3).random((100, 5))
    whole = pool._hashes(rows)
    monkeypatch.setattr(pool, "_HASHED", 7)
    np.testing.assert_array_equal(pool._hashes(rows), whole)
    np.testing.assert_array_equal(pool._hashes(rows[::3]), whole[::3])


def test_hashes_of_rows_on_a_lattice_rarely_meet():
    """Round numbers share their last bits, and permuted rows their cells."""
    ticks = np.linspace(0.0, 1.0, 17)
    rows = np.stack(np.meshgrid(*[ticks] * 4), axis=-1).reshape(-1, 4)
    assert len(np.unique(pool._hashes(rows))) == len(rows)
    hot = np.eye(500)
    assert len(np.unique(pool._hashes(hot))) == 500
