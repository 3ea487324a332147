import pickle

import numpy as np
import pytest

import covey
from covey.errors import SpaceError
from covey.space import Choice, Integer, Linear, Mixture, Pool, Real, Space
from covey.space.changes import differences, require_compatible
from covey.space.covering import (
    CoveringPool,
    CoveringSpace,
    allows,
    are_alike,
    covering,
    reachable,
    remembering,
    searched,
)


def by_a_line(parameter, values):
    """The referee: coordinates of values inside determine those outside."""
    return np.concatenate([beyond(parameter, value) for value in values])


@pytest.mark.parametrize("parameter", [Real(2, 6), Real(2, 6, step=0.5), Integer(2, 6)])
def test_beyond_a_linear_range_coordinates_go_on_in_a_straight_line(parameter):
    inside = parameter.encode([2, 6])[:, 0]
    slope = (inside[1] - inside[0]) / 4.0
    for x in (-3, 1, 7, 12.3):
        assert beyond(parameter, x)[0] == pytest.approx(inside[0] + slope * (x - 2))


def test_beyond_a_log_range_coordinates_go_on_in_the_logs():
    real = Real(1e-2, 1.0, log=True)
    np.testing.assert_allclose(by_a_line(real, [1e-4, 1e-2, 1.0, 100.0]), [-1, 0, 1, 2], atol=1e-12)
    # An integer's go on in the logs that its ends have, and inside are those of their bins.
    narrow = Integer(4, 16, log=True)
    beyond = by_a_line(narrow, [1, 2, 4, 16, 32, 64])
    np.testing.assert_allclose(np.diff(beyond)[[0, 1, 3, 4]], np.diff(beyond)[2] / 2, atol=1e-9)
    assert (np.diff(by_a_line(narrow, range(1, 65))) > 0.0).all()


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_what_has_no_log_has_no_place_on_a_log_scale(value):
    with pytest.raises(SpaceError, match=r"'p'.* log "):
        beyond(Real(0.1, 1.0, log=True), value)


def test_a_value_off_the_steps_lies_between_its_neighbours():
    steps = Real(0, 10, step=5)
    low, high = steps.encode([0, 5])[:, 0]
    assert low < beyond(steps, 2.0)[0] < high


def test_options_that_are_gone_are_as_far_from_each_other_as_those_that_are_left():
    points = [{"c": option} for option in "abzyz"]
    space = covering(Space({"c": Choice(["a", "b"])}), points)
    at = space.encode(points)
    far = np.linalg.norm(at[:4, None] - at[:4], axis=2)
    np.testing.assert_allclose(far, np.sqrt(2.0) * (1.0 - np.eye(4)))
    assert (at[4] == at[2]).all()
    assert space.condensed(at)[:, 0].tolist() == [0, 1, -1, -1, -1]  # none of those left
    assert reachable(space, at).tolist() == [True, True, False, False, False]


def test_no_candidate_is_an_option_that_is_gone():
    points = [{"c": "z", "x": 0.5, "n": 9}]
    space = Space({"c": Choice(["a", "b"]), "x": Real(0, 1), "n": Choice(["s", "l"], ordered=True)})
    seen = covering(space, points)
    rows = seen.snap(np.random.default_rng(0).random((40, seen.width)))
    assert all(space.check(point) == point for point in seen.decode(rows))
    assert not rows[:, 4:].any()
    assert seen.grid(10, {"x": 0.5}).shape == (4, 6)
    np.testing.assert_array_equal(seen.encode(seen.decode(rows)), rows)


def test_of_very_many_values_that_are_gone_the_last_share_a_column():
    points = [{"c": f"z{i}"} for i in range(50)]
    for space in (Space({"c": Choice(["a", "b"])}), Pool([{"c": "a"}, {"c": "b"}])):
        seen = covering(space, points)
        assert seen.width == 2 + 32
        at = seen.encode(points)
        assert len(np.unique(at, axis=0)) == 32
        assert (at[31:] == at[31]).all()


def test_what_it_covers_is_all_that_coordinates_depend_on():
    space = Space({"c": Choice(["a", "b"]), "x": Real(0, 1)})
    told = [{"c": "z", "x": 2.0}, {"c": "y", "x": 0.5}]
    seen = covering(space, told)
    assert searched(seen) is space
    assert are_alike(covering(seen, [*told, {"c": "a", "x": 3.0}]), seen)
    assert not are_alike(covering(space, told[:1]), seen)
    assert not are_alike(covering(space, told), covering(Space(space.parameters), told))
    again = pickle.loads(pickle.dumps(seen))
    np.testing.assert_array_equal(again.encode(told), seen.encode(told))
    assert again == space
    assert again.fingerprint == space.fingerprint
    assert again.describe() == space.describe()


def test_options_with_features_may_come():
    def described(*options):
        return Choice(
            options,
            features={o: {"size": i, "ph": i * i} for i, o in enumerate("abcd") if o in options},
        )

    three, four = described("a", "b", "c"), described("a", "b", "c", "d")
    points = [{"c": option} for option in "abc"]
    now = covering(remembering(Space({"c": four}), Space({"c": three})), points)
    np.testing.assert_array_equal(now.encode(points), Space({"c": four}).encode(points))
    # What nothing describes lies in the middle of all others, with a direction of its own.
    told = [*points, {"c": "d"}]
    at = covering(Space({"c": three}), told).encode(told)
    np.testing.assert_allclose(at[3], [*three.features.described.mean(axis=0), 0, 0, 0, 0.3])
    assert differences(Space({"c": three}), Space({"c": Choice(["a", "b", "c"])})) == [
        "c: one of 'a', 'b', 'c'"
    ]


def beyond(parameter, value, *others):
    """Coordinates of a value that may be none of the parameter, where others were told, too."""
    points = [{"p": one} for one in (value, *others)]
    return covering(Space({"p": parameter}), points).encode(points[:1])[0]


def described(names, numbers):
    return Choice(names, features=dict(zip(names, numbers.tolist(), strict=True)))


def test_an_option_with_features_that_is_gone_lies_where_its_numbers_are():
    """The referee standardises the numbers of the one gone as those of the options left are."""
    numbers = np.random.default_rng(0).normal(size=(6, 3)) * [1.0, 50.0, 0.01]
    names = list("abcdef")
    then, now = described(names, numbers), described(names[:-1], numbers[:-1])
    points = [{"c": name} for name in names]
    space = covering(remembering(Space({"c": now}), Space({"c": then})), points)
    at = space.encode(points)
    z = (numbers - numbers[:-1].mean(axis=0)) / numbers[:-1].std(axis=0)
    expected = (z - z[:-1].min(axis=0)) / np.ptp(z[:-1], axis=0).max()
    np.testing.assert_allclose(at[:, :3], expected, atol=1e-7)
    assert at[-1, 3:].tolist() == [0.0] * 5 + [0.3]  # a direction of its own
    assert space.condensed(at)[:, 0].tolist() == [0, 1, 2, 3, 4, -1]  # and none of the others
    assert reachable(space, at).tolist() == [True] * 5 + [False]


def placed(then, now, names):
    points = [{"c": name} for name in names]
    return covering(remembering(Space({"c": now}), Space({"c": then})), points).encode(points)


def test_where_an_option_was_is_remembered_over_several_changes():
    numbers = np.random.default_rng(2).normal(size=(8, 3))
    names = list("abcdefgh")
    kinds = [described(names[:n], numbers[:n]) for n in (8, 7, 6)]
    first, second, third = (Space({"c": kind}) for kind in kinds)
    points = [{"c": name} for name in names]
    now = covering(remembering(third, remembering(second, first)), points).encode(points)
    np.testing.assert_allclose(now, covering(remembering(third, first), points).encode(points))
    back = remembering(first, remembering(third, first))
    assert back == first
    np.testing.assert_array_equal(covering(back, points).encode(points), first.encode(points))


@pytest.mark.parametrize("columns", [2, 20])
def test_an_option_that_is_gone_stays_next_to_the_one_that_is_like_it(columns):
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(12, columns))
    numbers[-1] = numbers[4] + 0.01 * rng.normal(size=columns)
    names = [f"m{i}" for i in range(12)]
    then, now = described(names, numbers), described(names[:-1], numbers[:-1])
    at = placed(then, now, names)
    at = at[:, : now.features.described.shape[1]]
    far = np.linalg.norm(at[:-1] - at[-1], axis=1)
    assert np.argmin(far) == 4
    assert far[4] < 0.3 * np.sort(far)[1]


def test_one_option_left_has_those_gone_as_far_away_as_they_were():
    numbers = np.array([[0.0, 5.0], [1.0, 1.0], [9.0, 3.0]])
    then, now = described(list("abc"), numbers), described(["a"], numbers[:1])
    at = placed(then, now, "abc")
    far = np.linalg.norm(then.features.described - then.features.described[0], axis=1)
    np.testing.assert_allclose(at[:, 0], 0.5 + far)


def test_an_ordered_option_that_is_gone_and_no_number_has_a_column_of_its_own():
    points = [{"p": size} for size in ("s", "l", "m", "xl")]
    at = covering(Space({"p": Choice(["s", "l"], ordered=True)}), points).encode(points)
    assert at.tolist() == [[0.25, 0, 0], [0.75, 0, 0], [0.5, 1, 0], [0.5, 0, 1]]


def test_options_that_are_numbers_keep_their_distances():
    now = Choice([1.0, 2.0, 4.0])
    at = [float(beyond(now, x)[0]) * 3 - 0.5 for x in (0.0, 1.0, 1.5, 3.0, 8.0)]
    assert at == pytest.approx([-1.0, 0.0, 0.5, 1.5, 4.0])
    down = Choice([4.0, 2.0, 1.0], ordered=True)
    at = [float(beyond(down, x)[0]) * 3 - 0.5 for x in (8.0, 3.0, 1.5, 0.0)]
    assert at == pytest.approx([-2.0, 0.5, 1.5, 3.0])


def test_a_parameter_of_one_number_tells_others_apart_in_units_of_the_range_told():
    assert beyond(Choice([1.0]), 1.0, 3.0)[0] == 0.5
    assert beyond(Choice([1.0]), 3.0, 2.0)[0] == pytest.approx(1.5)
    assert beyond(Choice([1.0]), 2.0, 3.0, -1.0)[0] == pytest.approx(0.75)


def test_points_inside_have_the_coordinates_of_the_space_itself():
    space = Space({"x": Real(0, 1), "n": Integer(1, 5), "c": Choice(["a", "b"])})
    after = covering(space, [{"x": 9.0, "n": 10, "c": "b"}])
    assert isinstance(after, CoveringSpace)
    rng = np.random.default_rng(0)
    points = space.decode(rng.random((50, space.width)))
    np.testing.assert_array_equal(after.encode(points), space.encode(points))
    assert after == space
    assert after.fingerprint == space.fingerprint
    far = {"x": 9.0, "n": 10, "c": "b"}
    np.testing.assert_allclose(after.encode([far]), [[9.0, 1.9, 0.0, 1.0]])
    with pytest.raises(SpaceError, match=r"'x': 9\.0.*\[0\.0, 1\.0\]"):
        after.check({"x": 9.0, "n": 1, "c": "a"})
    assert after.to_json({"x": 9.0, "n": 10, "gone": "q"}) == {"x": 9.0, "n": 10, "gone": "q"}


def test_which_points_may_still_be_proposed():
    rule = Linear({"x": 1.0}, upper=0.5)
    points = [{"x": x, "n": n} for x, n in ((0.4, 2), (0.8, 2), (3.0, 2), (0.4, 9))]
    now = covering(Space({"x": Real(0, 1), "n": Integer(1, 3)}, [rule]), points)
    assert reachable(now, now.encode(points)).tolist() == [True, False, False, False]
    assert [allows(now, point) for point in points] == [True, False, False, False]
    assert not reachable(now, now.encode(points[1:])).any()
    plain = Space({"x": Real(0, 1)})
    assert reachable(plain, np.array([[0.2], [7.0]])).all()


def test_a_pool_finds_rows_that_are_gone_no_more_and_still_has_a_place_for_them():
    old = Pool([{"t": 10.0, "s": "a"}, {"t": 20.0, "s": "b"}])
    left = Pool([{"s": "b", "t": 20.0, "u": "q"}, {"s": "c", "t": 40.0, "u": "q"}])
    points = [{**old.point(i), "u": "q"} for i in range(2)]
    now = covering(left, points)
    assert isinstance(now, CoveringPool)
    expected = [[0.0, 0.0, -0.5, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0, 0.0]]
    np.testing.assert_allclose(now.encode(points), expected)
    np.testing.assert_array_equal(now.rows, now.encode([now.point(0), now.point(1)]))
    assert now.matching({"s": "c"}).tolist() == [False, True]
    assert now.locate(points).tolist() == [-1, 0]
    assert reachable(now, now.encode(points)).tolist() == [False, True]
    assert now.to_json(points[0]) == points[0]
    for strange in (points[0], {**points[1], "u": True}):
        with pytest.raises(SpaceError, match=r"is not in the pool; this column has '(b|q)'"):
            now.check(strange)
    with pytest.raises(SpaceError, match="'d' is not in the pool"):
        now.encode([{**points[0], "s": "d"}])


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (Space({"x": Real(0, 1)}), Pool([{"x": 1.0}]), "cannot go on in a Pool"),
        (
            Space({"x": Real(0, 1), "y": Real(0, 1)}),
            Space({"x": Real(0, 1)}),
            r"'y'.*'y'.*\[0\.0\]",
        ),
        (Space({"x": Real(0, 1)}), Space({"x": Choice(["a"])}), "another name"),
        (Space({"x": Choice(["a"])}), Space({"x": Real(0, 1)}), "another name"),
        (Pool([{"x": 1.0}]), Pool([{"y": 1.0}]), r"x and .* y.*`inputs`"),
        (Pool([{"x": 1.0}]), Pool([{"x": "a"}]), "'x'"),
        (
            Space({"c": Choice([object, int])}),
            Space({"c": Choice([int, object])}),
            "in their order",
        ),
    ],
)
def test_changes_that_there_may_not_be(before, after, message):
    with pytest.raises(SpaceError, match=message):
        require_compatible(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Real(0, 1), Integer(0, 5)),
        (Integer(0, 5), Real(-1, 1, log=False)),
        (Real(0, 1), Choice([0.5])),
        (Choice([object, int]), Choice([object, int, str])),
    ],
)
def test_changes_that_there_may_be(before, after):
    require_compatible(Space({"x": before}), Space({"x": after}))


def test_differences_are_named_and_nothing_else_is():
    space = Space({"x": Real(0, 1), "c": Choice(["a", "b"])})
    other = Space(
        {"x": Real(0, 1, log=False), "c": Choice(["b", "d"]), "n": Integer(1, 2)},
        where=[Linear({"x": 1.0}, upper=0.5)],
    )
    assert differences(space, space) == []
    assert differences(space, other) == [
        "c: new 'd'; gone 'a'",
        "n: new, integer, 1 to 2",
        "constraint: new, x <= 0.5",
    ]
    assert differences(other, space)[-1] == "constraint: gone, x <= 0.5"
    pools = [covey.Pool([{"x": float(i)} for i in some]) for some in ((1, 2, 3), (2, 3, 4, 5))]
    assert differences(*pools) == ["4 candidates (were 3), 1 gone"]


def small(point):
    return point["a"] < 0.5


def test_constraints_that_changed_are_named():
    parts = {name: Real(0, 2) for name in "abc"}

    def space(*where):
        return Space(parts, where=where)

    mixture, sums = Mixture(["a", "b"]), Linear({"a": 1.0, "c": 1.0}, upper=1.0)
    wider = Mixture(["a", "b", "c"], total=2.0)
    assert differences(space(mixture, sums), space(wider, sums)) == [
        "constraint: a + b + c = 2 (was a + b = 1)"
    ]
    assert differences(space(mixture), space(mixture, small)) == [
        "constraint: new, the function small"
    ]
    assert differences(space(small, mixture), space(sums)) == [
        "constraint: new, a + c <= 1",
        "constraint: gone, the function small",
        "constraint: gone, a + b = 1",
    ]
    assert differences(space(mixture, sums), space(sums, mixture)) == [
        "constraints: in another order or number"
    ]
