"""Parameters that are present only under values of others: spaces, points and what is refused."""

import itertools
import json
import pickle

import numpy as np
import pytest

import covey
from covey import Choice, Integer, Linear, Real, Space
from covey.errors import SpaceError
from covey.space import space_from_description
from covey.space.conditions import Condition


def nested() -> Space:
    """Equality, membership, a chain and two parents; the children come before their parents."""
    return Space(
        {
            "mu": Real(0, 1, when={"opt": ["sgd", "rms"]}),
            "model": Choice(["tree", "net", "line"]),
            "depth": Integer(1, 12, when={"model": "tree"}),
            "opt": Choice(["sgd", "adam", "rms"], when={"model": "net"}),
            "lr": Real(1e-5, 1, log=True, when={"model": "net"}),
            "pruned": Choice([True, False], ordered=False, when={"model": "tree"}),
            "alpha": Real(0, 1, step=0.1, when={"pruned": True, "model": "tree"}),
        }
    )


def finite() -> Space:
    return Space(
        {
            "a": Integer(0, 3),
            "b": Integer(1, 4, when={"a": [1, 2]}),
            "c": Choice(["x", "y", "z"], when={"b": [2, 3]}),
            "d": Choice(["on", "off"]),
            "e": Integer(1, 3, when={"d": "on"}),
        }
    )


def every_point_of(space: Space) -> list[dict]:
    """By brute force: all combinations of values, without what is absent, each once."""
    found = []
    values = [[None, *p.examples(99)] for p in space.parameters.values()]
    for row in itertools.product(*values):
        point = {n: v for n, v in zip(space.names, row, strict=True) if v is not None}
        try:
            found.append(space.check(point))
        except SpaceError:
            continue
    return found


def rows(space: Space, n: int = 400) -> np.ndarray:
    u = 3.0 * np.random.default_rng(0).random((n, space.width)) - 1.0
    u[: n // 2] = np.random.default_rng(1).random((n // 2, space.width))
    return u


@pytest.mark.parametrize("space", [nested(), finite()], ids=["nested", "finite"])
def test_snap_is_encode_of_decode_to_the_last_bit_and_idempotent(space):
    u = rows(space)
    snapped = space.snap(u)
    np.testing.assert_array_equal(snapped, space.encode(space.decode(u)))
    np.testing.assert_array_equal(space.snap(snapped), snapped)
    points = [space.check(point) for point in space.decode(u)]
    again = space.decode(space.encode(points))
    assert [list(point) for point in again] == [list(point) for point in points]
    np.testing.assert_allclose(space.encode(again), snapped, rtol=0.0, atol=1e-12)
    distinct = len(np.unique(snapped, axis=0))
    assert len(np.unique(space.condensed(snapped), axis=0)) == distinct > 5


def test_a_parameter_is_present_exactly_where_its_conditions_hold():
    for point in nested().decode(rows(nested())):
        assert ("depth" in point) == (point["model"] == "tree")
        assert ("lr" in point) == ("opt" in point) == (point["model"] == "net")
        assert ("mu" in point) == (point.get("opt") in ("sgd", "rms"))
        assert ("alpha" in point) == (point.get("pruned") is True)


def test_two_points_that_lack_a_parameter_are_equal_in_it_and_differ_in_its_parent():
    space = nested()
    u = space.encode([{"model": "line"}, {"model": "tree", "depth": 6, "pruned": False}])
    lr, opt = space.columns_of("lr"), space.columns_of("opt")
    assert u[:, lr].tolist() == [[0.5], [0.5]]
    np.testing.assert_array_equal(u[:, opt], np.full((2, 3), 1 / 3))
    parent = space.columns_of("model")
    assert (u[0, parent] != u[1, parent]).any()
    assert space.present(u)[:, lr].tolist() == [[False], [False]]
    assert space.present(u)[:, space.columns_of("depth")].tolist() == [[False], [True]]


def test_a_finite_space_has_each_point_once():
    space = finite()
    every = every_point_of(space)
    assert space.size == len(every) == (2 + 2 * (2 + 2 * 3)) * (1 + 3)
    listed = space.decode(space.grid(10_000))
    assert sorted(map(str, listed)) == sorted(map(str, every))
    assert space.grid(space.size - 1) is None
    for fixed in ({"c": "x"}, {"a": 0}, {"b": 2, "d": "off"}):
        kept = [p for p in every if fixed.items() <= p.items()]
        listed = space.decode(space.grid(10_000, fixed))
        assert sorted(map(str, listed)) == sorted(map(str, kept)), fixed


def test_many_switches_and_large_parents_are_counted_without_listing():
    switches = {f"s{i}": Choice(["no", "yes"]) for i in range(20)}
    children = {f"c{i}": Integer(1, 9, when={f"s{i}": "yes"}) for i in range(20)}
    assert Space({**switches, **children}).size == 10**20
    n = Integer(1, 10**6)
    assert Space({"n": n, "m": Integer(1, 5, when={"n": [7, 8]})}).size == 10**6 - 2 + 10
    assert nested().size is None
    assert nested().presence.size({"model": "tree", "depth": 3, "pruned": False}) == 1


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"a": Real(0, 1, when={"modle": 1}), "model": Integer(1, 2)}, r"'modle'.*'model'"),
        (
            {"a": Real(0, 1, when={"model": "tre"}), "model": Choice(["tree", "net"])},
            r"'a'.*'model': 'tre'.*'tree', 'net'.*'tree'",
        ),
        (
            {"a": Integer(1, 2, when={"b": 1}), "b": Integer(1, 2, when={"a": 1})},
            "'a' -> 'b' -> 'a'",
        ),
        ({"a": Integer(1, 2, when={"a": 1})}, "'a' -> 'a'"),
        ({"a": Real(0, 1, when={"b": 0.5}), "b": Real(0, 1)}, r"'a': 'b'.*Choice"),
        (
            {
                "m": Choice(["a", "b"]),
                "x": Choice([1, 2], when={"m": "a"}),
                "y": Real(0, 1, when={"m": "b", "x": 1}),
            },
            r"'y'.*'b'.*'m'",
        ),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(parameters, words):
    with pytest.raises(SpaceError, match=words):
        Space(parameters)


@pytest.mark.parametrize("when", ["tree", [("model", "tree")], {"model": []}, {3: "tree"}])
def test_when_has_a_form(when):
    with pytest.raises(SpaceError, match=r"when|names must be"):
        Real(0, 1, when=when)


def test_a_point_is_refused_for_what_is_absent_and_for_what_is_missing():
    space = nested()
    with pytest.raises(SpaceError, match=r"'depth'.*'tree'"):
        space.check({"model": "line", "depth": 3})
    with pytest.raises(SpaceError, match=r"'depth', 'pruned'.*model = 'tree'"):
        space.check({"model": "tree"})
    with pytest.raises(SpaceError, match=r"'mu'.*opt"):
        space.encode([{"model": "line", "mu": 0.5}])
    with pytest.raises(SpaceError, match=r"'lr'.*model = 'net'"):
        space.from_json({"model": "net", "opt": "adam"})


def test_a_fixed_parameter_implies_its_condition():
    space = nested()
    assert space.implied({"mu": 0.5}) == (
        {"mu": 0.5, "model": "net"},
        {"opt": ("sgd", "rms")},
    )
    held = space.decode(space.hold(rows(space), {"mu": 0.5}))
    assert {point["opt"] for point in held} == {"sgd", "rms"}
    assert {point["mu"] for point in held} == {0.5}
    for fixed, names in (
        ({"model": "net", "depth": 3}, "'depth'.*model = 'net'"),
        ({"depth": 3, "lr": 0.1}, "'lr'.*model is 'net'"),
        ({"mu": 0.1, "opt": "adam"}, "'mu'.*opt = 'adam'"),
    ):
        with pytest.raises(SpaceError, match=names):
            space.check(fixed, partial=True)


def test_it_is_described_only_if_given_and_comes_back():
    plain = Space({"x": Real(0, 1), "n": Integer(1, 3), "c": Choice(["a", "b"])})
    assert "when" not in json.dumps(plain.describe())
    for space in (nested(), finite()):
        again = space_from_description(json.loads(json.dumps(space.describe())))
        assert again == space == pickle.loads(pickle.dumps(space))
        assert again.fingerprint == space.fingerprint
        assert eval(repr(space)) == space
        for point in space.decode(rows(space, 40)):
            assert space.from_json(json.loads(json.dumps(space.to_json(point)))) == point
    assert nested().describe()["parameters"][2]["when"] == {"model": "tree"}


def test_conditions_are_equal_whatever_the_order_and_told_apart_by_type():
    a, b = Condition.of({"m": ["x", "y"], "n": 1}), Condition.of({"n": [1], "m": ("y", "x", "y")})
    assert a == b
    assert hash(a) == hash(b)
    assert Condition.of({"n": 1}) != Condition.of({"n": True})
    assert Condition.of({}) is None
    assert Integer(1, 2, when={"m": "x"}) != Integer(1, 2)
    assert Choice(["a"], when={"m": "x"}) != Choice(["a"])


def test_a_constraint_says_nothing_where_one_of_its_parameters_is_absent():
    space = Space(
        {
            "m": Choice(["one", "two"]),
            "x": Real(0, 1),
            "y": Real(0, 1, when={"m": "two"}),
        },
        where=[Linear({"x": 1, "y": 1}, upper=0.5)],
    )
    points = [{"m": "one", "x": 0.9}, {"m": "two", "x": 0.9, "y": 0.1}]
    assert space.feasible(space.encode(points)).tolist() == [True, False]
    assert space.check(points[0]) == points[0]
    with pytest.raises(SpaceError, match=r"\{'m': 'two', 'x': 0\.9, 'y': 0\.1\}"):
        space.check(points[1])


def test_an_absent_parameter_leaves_a_blank_in_a_frame():
    pytest.importorskip("pandas")
    study = covey.Study(nested(), seed=0)
    study.add([{"model": "line"}, {"model": "tree", "depth": 2, "pruned": False}], [1.0, 2.0])
    frame = study.history.to_frame()
    assert frame["depth"].isna().tolist() == [True, False]
    assert frame["depth"][1] == 2
