import pickle

import numpy as np
import pytest

import covey
from covey.errors import SpaceError
from covey.space import Choice, Integer, Linear, Mixture, Pool, Real, Space
from covey.space.changes import differences, require_compatible
from covey.space.extending import (
    GrownPool,
    GrownSpace,
    allows,
    as_given,
    former_spaces,
    grown,
    reachable,
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
    # An integer's are those of a wider one, up to a line.
    narrow, wide = Integer(4, 8, log=True), Integer(2, 20, log=True)
    a, b = by_a_line(narrow, range(2, 21)), by_a_line(wide, range(2, 21))
    line = np.polyfit(b, a, 1)
    np.testing.assert_allclose(np.polyval(line, b), a, atol=1e-9)


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_what_has_no_log_has_no_place_on_a_log_scale(value):
    with pytest.raises(SpaceError, match=r"'p'.* log "):
        beyond(Real(0.1, 1.0, log=True), value)


def test_a_value_off_the_steps_lies_between_its_neighbours():
    steps = Real(0, 10, step=5)
    low, high = steps.encode([0, 5])[:, 0]
    assert low < beyond(steps, 2.0)[0] < high


def test_an_option_that_is_gone_is_as_far_from_each_that_is_left():
    space = GrownSpace.of(
        Space({"c": Choice(["a", "b"])}), Space({"c": Choice(["a", "b", "z"])}), {}
    )
    at = space.encode([{"c": "a"}, {"c": "b"}, {"c": "z"}])
    assert np.linalg.norm(at[2] - at[0]) == np.linalg.norm(at[2] - at[1]) == 1.0
    assert space.condensed(at)[:, 0].tolist() == [0, 1, -1]  # and is taken for none of them


def test_options_with_features_may_come():
    def described(*options):
        return Choice(
            options,
            features={o: {"size": i, "ph": i * i} for i, o in enumerate("abcd") if o in options},
        )

    three, four = described("a", "b", "c"), described("a", "b", "c", "d")
    now = grown(Space({"c": four}), Space({"c": three}), {})
    points = [{"c": option} for option in "abc"]
    np.testing.assert_array_equal(now.encode(points), Space({"c": four}).encode(points))
    plain = Space({"c": Choice(["a", "b", "c", "d"])})
    with pytest.raises(SpaceError, match=r"'c': 'd'.*`where`"):
        grown(Space({"c": three}), plain, {}).encode([{"c": "d"}])
    assert differences(Space({"c": three}), Space({"c": Choice(["a", "b", "c"])})) == [
        "c: one of 'a', 'b', 'c'"
    ]


def beyond(parameter, value, older=()):
    """Coordinates of a value that may be none of the parameter, the oldest of ``older`` last."""
    space = Space({"p": older[-1] if older else parameter})
    for one in (*reversed(older[:-1]), parameter):
        space = grown(Space({"p": one}), space, {})
    return space.encode([{"p": value}])[0]


def described(names, numbers):
    return Choice(names, features=dict(zip(names, numbers.tolist(), strict=True)))


def test_an_option_with_features_that_is_gone_lies_where_its_numbers_are():
    """The referee standardises the numbers of the one gone as those of the options left are."""
    numbers = np.random.default_rng(0).normal(size=(6, 3)) * [1.0, 50.0, 0.01]
    names = list("abcdef")
    then, now = described(names, numbers), described(names[:-1], numbers[:-1])
    space = grown(Space({"c": now}), Space({"c": then}), {})
    at = space.encode([{"c": name} for name in names])
    z = (numbers - numbers[:-1].mean(axis=0)) / numbers[:-1].std(axis=0)
    expected = (z - z[:-1].min(axis=0)) / np.ptp(z[:-1], axis=0).max()
    np.testing.assert_allclose(at[:, :3], expected, atol=1e-7)
    assert not at[-1, 3:].any()  # no direction of its own
    assert space.condensed(at)[:, 0].tolist() == [0, 1, 2, 3, 4, -1]  # and none of the others
    assert reachable(space, at).tolist() == [True] * 5 + [False]


@pytest.mark.parametrize("columns", [2, 20])
def test_an_option_that_is_gone_stays_next_to_the_one_that_is_like_it(columns):
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(12, columns))
    numbers[-1] = numbers[4] + 0.01 * rng.normal(size=columns)
    names = [f"m{i}" for i in range(12)]
    then, now = described(names, numbers), described(names[:-1], numbers[:-1])
    at = grown(Space({"c": now}), Space({"c": then}), {}).encode([{"c": n} for n in names])
    at = at[:, : now.features.described.shape[1]]
    far = np.linalg.norm(at[:-1] - at[-1], axis=1)
    assert np.argmin(far) == 4
    assert far[4] < 0.3 * np.sort(far)[1]


def test_one_option_left_has_those_gone_as_far_away_as_they_were():
    numbers = np.array([[0.0, 5.0], [1.0, 1.0], [9.0, 3.0]])
    then, now = described(list("abc"), numbers), described(["a"], numbers[:1])
    at = grown(Space({"c": now}), Space({"c": then}), {}).encode([{"c": n} for n in "abc"])
    far = np.linalg.norm(then.features.described - then.features.described[0], axis=1)
    np.testing.assert_allclose(at[:, 0], 0.5 + far)


def test_an_ordered_option_that_is_gone_lies_between_those_that_were_its_neighbours():
    then = Choice(["xs", "s", "m", "n", "l", "xl"], ordered=True)
    now = Choice(["s", "l"], ordered=True)
    at = [float(beyond(now, size, [then])[0]) for size in then.options]
    assert at == sorted(at)
    assert len(set(at)) == 6
    assert at[1:5:3] == now.encode(["s", "l"])[:, 0].tolist()


def test_options_that_are_numbers_keep_their_distances():
    now = Choice([1.0, 2.0, 4.0])
    at = [float(beyond(now, x)[0]) * 3 - 0.5 for x in (0.0, 1.0, 1.5, 3.0, 8.0)]
    assert at == pytest.approx([-1.0, 0.0, 0.5, 1.5, 4.0])


def test_a_parameter_of_one_number_tells_others_apart_in_units_of_the_range_it_had():
    now, then = Choice([1.0]), Real(0, 4)
    assert beyond(now, 1.0, [then])[0] == 0.5
    assert beyond(now, 3.0, [then])[0] == pytest.approx(1.0)


def test_points_inside_have_the_coordinates_of_the_space_itself():
    space = Space({"x": Real(0, 1), "n": Integer(1, 5), "c": Choice(["a", "b"])})
    after = GrownSpace.of(space, Space({"x": Real(0, 9), "n": Integer(1, 50)}), {"c": "b"})
    rng = np.random.default_rng(0)
    points = space.decode(rng.random((50, space.width)))
    np.testing.assert_array_equal(after.encode(points), space.encode(points))
    assert after == space
    assert after.fingerprint == space.fingerprint
    np.testing.assert_allclose(after.encode([{"x": 9.0, "n": 10}]), [[9.0, 1.9, 0.0, 1.0]])
    with pytest.raises(SpaceError, match=r"'x': 9\.0.*\[0\.0, 1\.0\]"):
        after.check({"x": 9.0, "n": 1, "c": "a"})
    assert after.to_json({"x": 9.0, "n": 10}) == {"x": 9.0, "n": 10}


def test_a_grown_space_survives_pickling_and_knows_what_it_was():
    first, second, third = (Space({"x": Real(0, high)}) for high in (1, 2, 3))
    now = grown(third, grown(second, first, {}), {})
    again = pickle.loads(pickle.dumps(now))
    assert list(former_spaces(again)) == [first, second]
    assert type(as_given(again)) is Space
    at = [float(then.encode([{"x": 0.9}])[0, 0]) for then in searched(again)]
    assert at == pytest.approx([0.9, 0.45, 0.3])


def test_which_points_may_still_be_proposed():
    rule = Linear({"x": 1.0}, upper=0.5)
    now = grown(
        Space({"x": Real(0, 1), "n": Integer(1, 3)}, [rule]), Space({"x": Real(0, 4)}), {"n": 2}
    )
    points = [{"x": 0.4}, {"x": 0.8}, {"x": 3.0}, {"x": 0.4, "n": 9}]
    assert reachable(now, now.encode(points)).tolist() == [True, False, False, False]
    assert [allows(now, point) for point in points] == [True, False, False, False]
    assert not reachable(now, now.encode(points[1:])).any()
    plain = Space({"x": Real(0, 1)})
    assert reachable(plain, np.array([[0.2], [7.0]])).all()


def test_a_pool_finds_rows_that_are_gone_no_more_and_still_has_a_place_for_them():
    old = Pool([{"t": 10.0, "s": "a"}, {"t": 20.0, "s": "b"}])
    now = grown(Pool([{"t": 20.0, "s": "b"}, {"t": 40.0, "s": "c"}]), old, {})
    assert isinstance(now, GrownPool)
    points = [old.point(0), old.point(1)]
    np.testing.assert_allclose(now.encode(points), [[-0.5, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert now.locate(points).tolist() == [-1, 0]
    assert reachable(now, now.encode(points)).tolist() == [False, True]
    assert now.to_json(points[0]) == points[0]
    with pytest.raises(SpaceError, match=r"'s': 'a'.*'b'"):
        now.check(points[0])


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
