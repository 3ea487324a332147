from __future__ import annotations

import itertools
import json
import pickle

import numpy as np
import pytest

from covey.errors import SpaceError
from covey.space import Choice, Integer, Linear, Real, Space


def even(point):
    return point["k"] % 2 == 0


MIXED = Space(
    {
        "lr": Real(1e-4, 1.0, log=True),
        "k": Integer(0, 4),
        "opt": Choice(["adam", "sgd", "lion"]),
        "width": Choice([16, 32], ordered=True),
    }
)
POINT = {"lr": 1e-2, "k": 3, "opt": "sgd", "width": 32}
FINITE = Space(
    {"k": Integer(0, 4), "opt": Choice(["a", "b"]), "w": Choice([1, 2], ordered=True)},
    where=[Linear({"k": 1, "w": 1}, upper=4), even],
)


def test_a_space_knows_its_columns():
    assert MIXED.names == ("lr", "k", "opt", "width")
    assert MIXED.width == 6
    assert MIXED.size is None
    assert FINITE.size == 20
    assert MIXED.continuous.tolist() == [True, False, False, False, False, False]
    assert MIXED.columns_of("opt") == slice(2, 5)
    with pytest.raises(SpaceError, match=r"'oopt'.*'opt'"):
        MIXED.columns_of("oopt")


def test_the_size_of_a_large_space_is_exact():
    assert Space({f"x{i}": Integer(0, 999) for i in range(10)}).size == 10**30


def test_points_are_encoded_side_by_side_and_come_back():
    u = MIXED.encode([POINT])
    np.testing.assert_allclose(u, [[0.5, 0.7, 0, 1, 0, 0.75]])
    assert MIXED.decode(u) == [{**POINT, "lr": pytest.approx(1e-2, rel=1e-12)}]
    assert MIXED.encode([]).shape == (0, 6)
    assert MIXED.decode(np.empty((0, 6))) == []
    np.testing.assert_array_equal(MIXED.snap(u), MIXED.encode(MIXED.decode(u)))


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (POINT, r"got one dict; write encode\(\[point\]\)"),
        ([{"lr": 1e-2}], r"'k'.*opt"),
        ([{**POINT, "k": 9}], r"'k'.*\[0, 4\]"),
    ],
)
def test_encode_says_what_is_wrong(points, message):
    with pytest.raises(SpaceError, match=message):
        MIXED.encode(points)


@pytest.mark.parametrize("method", ["decode", "snap", "feasible"])
def test_coordinates_have_the_right_shape_and_no_nan(method):
    call = getattr(MIXED, method)
    with pytest.raises(SpaceError, match=r"\(6,\).*None"):
        call(np.zeros(6))
    with pytest.raises(SpaceError, match=r"\(2, 5\).*None"):
        call(np.zeros((2, 5)))
    bad = np.zeros((3, 6))
    bad[1, 2] = np.nan
    with pytest.raises(SpaceError, match="encoded point 1 holds nan"):
        call(bad)


def test_check_gives_the_canonical_point_in_order():
    given = {"width": np.int64(32), "opt": np.str_("sgd"), "k": 3.0, "lr": np.float64(1e-2)}
    checked = MIXED.check(given)
    assert checked == POINT
    assert list(checked) == list(MIXED.names)
    assert [type(value) for value in checked.values()] == [float, int, str, int]


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ([1, 2], r"\{'x': 0\.5\}.*\[1, 2\]"),
        ({**POINT, "widht": 1}, r"'widht'.*'width'"),
        ({"lr": 1e-2, "width": 16}, "'k', 'opt'"),
        ({**POINT, "lr": 2.0}, r"'lr': 2\.0.*\[0\.0001, 1\.0\]"),
        ({**POINT, "opt": "adma"}, r"'opt': 'adma'.*'adam', 'sgd', 'lion'.*'adam'"),
        ({**POINT, "lr": float("nan")}, r"'lr'.*got nan"),
    ],
)
def test_check_says_what_is_wrong(point, message):
    with pytest.raises(SpaceError, match=message):
        MIXED.check(point)


def test_check_names_the_constraint_and_its_value():
    assert FINITE.check({"k": 2, "opt": "a", "w": 2}) == {"k": 2, "opt": "a", "w": 2}
    with pytest.raises(SpaceError, match=r"\{'k': 4, 'opt': 'a', 'w': 1\}.*k \+ w <= 4.*5\.0"):
        FINITE.check({"k": 4, "opt": "a", "w": 1})
    with pytest.raises(SpaceError, match=r"\{'k': 1, 'opt': 'a', 'w': 1\}.*'even'"):
        FINITE.check({"k": 1, "opt": "a", "w": 1})


def test_a_partial_point_needs_neither_all_names_nor_the_constraints():
    assert FINITE.check({"k": 1, "w": 2.0}, partial=True) == {"k": 1, "w": 2}
    assert FINITE.check({}, partial=True) == {}
    with pytest.raises(SpaceError, match="unknown parameter 'q'"):
        FINITE.check({"q": 1}, partial=True)


def test_feasible_agrees_with_check():
    everything = Space(dict(FINITE.parameters)).grid(100)
    mask = FINITE.feasible(everything)
    for point, ok in zip(FINITE.decode(everything), mask, strict=True):
        assert ok == (point["k"] + point["w"] <= 4 and point["k"] % 2 == 0)
    assert 0 < mask.sum() < len(mask)


def test_predicates_are_asked_only_where_linear_constraints_hold():
    asked = []

    def spy(point):
        asked.append(point["x"])
        return True

    space = Space({"x": Real(0, 1)}, where=[spy, Linear({"x": 1}, upper=0.5)])
    assert space.feasible(np.array([[0.25], [0.75]])).tolist() == [True, False]
    assert asked == [0.25]


def test_a_failing_predicate_is_reported_with_its_point():
    space = Space({"x": Real(0, 1)}, where=[lambda point: point["y"]])
    with pytest.raises(SpaceError, match=r"\{'x': 0\.25\}"):
        space.feasible(np.array([[0.25]]))


def test_hold_sets_the_columns_of_fixed_parameters():
    u = np.random.default_rng(0).random((3, 6))
    before = u.copy()
    held = MIXED.hold(u, {"opt": "lion", "k": 0})
    np.testing.assert_array_equal(u, before)
    np.testing.assert_array_equal(held[:, 2:5], [[0, 0, 1]] * 3)
    assert [point["k"] for point in MIXED.decode(held)] == [0, 0, 0]
    np.testing.assert_array_equal(held[:, [0, 5]], u[:, [0, 5]])
    with pytest.raises(SpaceError, match="'rmsprop'"):
        MIXED.hold(u, {"opt": "rmsprop"})


def test_the_grid_is_every_feasible_point_once():
    points = FINITE.decode(FINITE.grid(20))
    expected = [
        {"k": k, "opt": opt, "w": w}
        for k, opt, w in itertools.product(range(5), "ab", (1, 2))
        if k + w <= 4 and k % 2 == 0
    ]
    assert points == expected


def test_the_grid_stops_at_its_limit():
    assert FINITE.grid(19) is None
    assert len(FINITE.grid(4, fixed={"k": 0})) == 4
    assert FINITE.grid(3, fixed={"k": 0}) is None


def test_a_held_real_leaves_a_grid():
    assert MIXED.grid(10**6) is None
    grid = MIXED.grid(30, fixed={"lr": 0.1})
    assert len(grid) == 30
    assert all(point["lr"] == pytest.approx(0.1) for point in MIXED.decode(grid))


def test_a_grid_may_have_many_parameters():
    space = Space({f"k{i}": Integer(0, 1) for i in range(100)})
    grid = space.grid(4, fixed={f"k{i}": 1 for i in range(98)})
    assert [(p["k98"], p["k99"]) for p in space.decode(grid)] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_fully_held_grid_is_one_point():
    np.testing.assert_array_equal(MIXED.grid(1, fixed=POINT), MIXED.encode([POINT]))


def test_json_round_trip_keeps_every_bit():
    space = Space({"x": Real(0, 1), "n": Integer(0, 9), "c": Choice(["a", None, [1], 2.5])})
    for option in ("a", None, [1], 2.5):
        point = {"x": 0.1 + 0.2, "n": 3, "c": option}
        text = json.dumps(space.to_json(point), allow_nan=False)
        assert space.from_json(json.loads(text)) == point
    assert space.to_json({"x": 1, "n": 3, "c": [1]}) == {"x": 1.0, "n": 3, "c": {"option": 2}}


def test_json_of_a_part_of_a_point():
    assert MIXED.from_json(MIXED.to_json({"k": 1}), partial=True) == {"k": 1}
    with pytest.raises(SpaceError, match="'lr', 'opt', 'width'"):
        MIXED.from_json({"k": 1})
    with pytest.raises(SpaceError, match="unknown parameter 'q'"):
        MIXED.from_json({"q": 1}, partial=True)
    with pytest.raises(SpaceError, match="must be an object"):
        MIXED.from_json([1])


def test_json_is_not_asked_about_constraints_again():
    assert FINITE.from_json({"k": 1, "opt": "a", "w": 1}) == {"k": 1, "opt": "a", "w": 1}


def test_description_is_json_and_says_when_it_is_opaque():
    assert json.loads(json.dumps(MIXED.describe(), allow_nan=False)) == MIXED.describe()
    assert MIXED.describe()["opaque"] is False
    assert FINITE.describe()["opaque"] is True
    assert FINITE.describe()["where"][1] == {"kind": "predicate", "name": "even"}
    assert Space({"c": Choice([[1], [2]])}).describe()["opaque"] is True


def test_fingerprint_sees_every_part():
    spaces = [
        Space({"x": Real(0, 1), "k": Integer(0, 4)}),
        Space({"k": Integer(0, 4), "x": Real(0, 1)}),
        Space({"x": Real(0, 2), "k": Integer(0, 4)}),
        Space({"y": Real(0, 1), "k": Integer(0, 4)}),
        Space({"x": Real(0, 1), "k": Integer(0, 4, step=2)}),
        Space({"x": Real(0, 1), "k": Integer(0, 4)}, where=[even]),
        Space({"x": Real(0, 1), "k": Integer(0, 4)}, where=[lambda point: True]),
        Space({"x": Real(0, 1), "k": Integer(0, 4)}, where=[Linear({"x": 1, "k": 1}, upper=2)]),
        Space({"x": Real(0, 1), "k": Choice([0, 4])}),
        Space({"x": Real(0, 1), "k": Choice([0, 4.0])}),
        Space({"x": Real(0, 1), "k": Choice([False, 4])}),
    ]
    assert len({space.fingerprint for space in spaces}) == len(spaces)
    assert len(set(spaces)) == len(spaces)


def test_fingerprint_is_the_same_in_every_version():
    """Journals hold it: if this changes, old runs no longer find their space."""
    space = Space({"x": Real(0, 1)})
    assert space.fingerprint == "e14de1b2a7f7044d8112dfbbc2022f67499ac41a728e822b78ceb288f575cad3"


def test_equal_spaces():
    same = Space({"k": Integer(0, 4)}, where=[even])
    assert same == Space({"k": Integer(0, 4)}, where=[even])
    assert hash(same) == hash(Space({"k": Integer(0, 4)}, where=[even]))
    assert same != Space({"k": Integer(0, 4)})
    assert Space({"a": Real(0, 1), "b": Real(0, 1)}) != Space({"b": Real(0, 1), "a": Real(0, 1)})
    assert same != "space"


def test_constraints_are_kept_as_given():
    assert FINITE.where == (*FINITE.linear, *FINITE.predicates)
    assert FINITE.predicates == (even,)


def test_a_space_does_not_change():
    with pytest.raises(TypeError):
        MIXED.parameters["x"] = Real(0, 1)
    with pytest.raises(AttributeError):
        MIXED.names = ()
    with pytest.raises(ValueError, match="read-only"):
        MIXED.continuous[0] = False


def test_a_space_pickles_if_its_parts_do():
    again = pickle.loads(pickle.dumps(FINITE))
    assert again == FINITE
    assert again.fingerprint == FINITE.fingerprint


def test_a_space_prints_as_it_is_written():
    space = Space({"x": Real(0, 1)}, where=[Linear({"x": 1}, upper=1)])
    assert eval(repr(space), {**globals(), "inf": float("inf")}) == space
    assert repr(MIXED).startswith("Space({'lr': Real(low=0.0001, high=1.0, log=True)")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parameters": {}}, "at least one parameter"),
        ({"parameters": {"": Real(0, 1)}}, "non-empty strings"),
        ({"parameters": {"x": Real(0, 1)}, "where": even}, r"write where=\[...\]"),
        (
            {"parameters": {"lr": Real(0, 1)}, "where": [Linear({"rl": 1}, upper=1)]},
            r"Linear.*'rl'",
        ),
    ],
)
def test_a_space_refuses(arguments, message):
    with pytest.raises(SpaceError, match=message):
        Space(**arguments)


def test_condensed_coordinates_have_one_column_for_each_parameter():
    space = Space({"x": Real(0, 2), "c": Choice(list("pabc")), "n": Integer(0, 3)})
    points = [{"x": 1.0, "c": "b", "n": 3}, {"x": 2.0, "c": "p", "n": 0}]
    short = space.condensed(space.encode(points))
    assert short.tolist() == [[0.5, 2.0, 0.875], [1.0, 0.0, 0.125]]
