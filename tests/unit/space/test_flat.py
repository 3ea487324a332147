"""Spaces without volume: points are drawn on them, moved to them, and climbed along them."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import beta, kstest

from covey.errors import ExhaustedError
from covey.space import Choice, Integer, Linear, Mixture, Real, Space
from covey.space.flat import Flat, farthest, tied_to, with_one_changed

NAMES = ["a", "b", "c", "d"]
SHARES = {name: Real(0, 1) for name in NAMES}
OTHERS = {"T": Real(20, 80), "n": Integer(0, 9), "kind": Choice(["u", "v"])}


def space(*where, **more):
    return Space({**SHARES, **OTHERS, **more}, where=where)


def numbers(found, at):
    return np.array([[p[name] for name in NAMES] for p in found.decode(at)])


SPACES = {
    "plain": space(Mixture(NAMES)),
    "faces": space(Mixture(NAMES, parts=(2, 3), least=0.1)),
    "steps": space(Mixture(NAMES, parts=(1, 3), least=0.05, step=0.01)),
    "two": space(Mixture(["a", "b"]), Mixture(["c", "d"], total=0.5)),
    "cut": space(Mixture(NAMES), Linear({"a": 1, "b": 1}, upper=0.02)),
    "tied": space(Mixture(NAMES), Linear({"a": 1, "b": -2}, lower=0, upper=0)),
    "tied faces": space(
        Mixture(NAMES, parts=(2, 3), least=0.1), Linear({"a": 1, "T": 0.01}, lower=0.7, upper=0.7)
    ),
    "linear": space(Linear(dict.fromkeys(NAMES, 1.0), lower=1, upper=1)),
    "uneven": space(Linear({"a": 2, "b": 1, "T": -0.05}, lower=-1, upper=-1)),
}


@pytest.mark.parametrize("name", SPACES)
def test_points_are_drawn_where_they_may_be(name):
    found, rng = SPACES[name], np.random.default_rng(0)
    flat = Flat(found, {})
    at = flat.draw_within(200, rng) if found.linear else flat.draw(200, rng)
    assert found.feasible(at).mean() > 0.99
    np.testing.assert_array_equal(found.snap(at), at)
    points = found.decode(at)
    assert {p["kind"] for p in points} == {"u", "v"}
    assert {p["n"] for p in points} == set(range(10))
    # The control: points of the cube are nowhere near.
    assert not found.feasible(rng.random(at.shape)).any()


@pytest.mark.parametrize("name", [n for n in SPACES if n != "cut"])
def test_what_is_moved_to_the_equalities_satisfies_them_and_stays(name):
    found = SPACES[name]
    flat, u = Flat(found, {}), np.random.default_rng(1).random((300, found.width))
    at = flat.project(u)
    assert found.feasible(at).mean() > (0.9 if "tied" in name else 0.999)
    kept = at[found.feasible(at)]
    np.testing.assert_allclose(flat.project(kept), kept, atol=1e-12)


@pytest.mark.parametrize(
    ("highs", "options"),
    [
        ((0.5, 0.4, 0.7, 0.3), {"parts": (1, 2), "least": 0.1, "step": 0.05}),
        ((0.5, 0.4, 0.7, 0.3), {"parts": (1, 2), "least": 0.1}),
        ((0.5, 0.4, 0.7, 0.3), {"parts": 2}),
        ((1.0, 1.0, 1.0, 1.0), {"parts": 3}),
        ((1.0, 1.0, 1.0, 1.0), {"parts": (2, 3), "step": 0.1}),
    ],
)
def test_every_point_is_moved_to_a_mixture_whatever_its_bounds(highs, options):
    ranges = {name: Real(0, high) for name, high in zip(NAMES, highs, strict=True)}
    found = Space(ranges, where=[Mixture(NAMES, **options)])
    flat, rng = Flat(found, {}), np.random.default_rng(0)
    corners = np.eye(4)[rng.integers(4, size=50)]
    for u in (rng.random((500, 4)), rng.random((500, 4)) ** 8, corners):
        assert found.feasible(flat.project(u)).all()
    assert found.feasible(flat.draw(300, rng)).all()


def test_a_part_fixed_at_0_is_absent_and_takes_no_place():
    """With a at 0 two of the other three may be present: as often as one alone is."""
    found = Space(SHARES, where=[Mixture(NAMES, parts=(1, 2))])
    at = Flat(found, {"a": 0.0}).draw(600, np.random.default_rng(0))
    assert (at[:, 0] == 0.0).all()
    assert ((at > 0.0).sum(axis=1) == 2).mean() == pytest.approx(0.5, abs=0.1)


def test_candidates_in_steps_are_uniform_over_the_compositions():
    names = [f"x{i}" for i in range(6)]
    found = Space({n: Real(0, 1) for n in names}, where=[Mixture(names, step=0.2)])
    at = found.decode(Flat(found, {}).draw(8000, np.random.default_rng(0)))
    pure = np.mean([max(point.values()) == 1.0 for point in at])
    assert pure == pytest.approx(6 / 252, abs=0.007)


def test_steps_sum_up_in_decimals():
    found = SPACES["steps"]
    at = Flat(found, {}).project(np.random.default_rng(2).random((300, found.width)))
    for point in found.decode(at):
        assert sum(Decimal(repr(point[name])) for name in NAMES) == 1


@pytest.mark.parametrize("fixed", [{"a": 0.25}, {"a": 0.0, "b": 0.5}, {"a": 0.3, "T": 55.0}])
def test_what_is_fixed_stays_and_the_rest_sums_to_what_is_left(fixed):
    for name in ("plain", "faces", "steps"):
        found = SPACES[name]
        flat, rng = Flat(found, fixed), np.random.default_rng(3)
        for at in (flat.draw(100, rng), flat.project(rng.random((100, found.width)))):
            assert found.feasible(at).all()
            x = numbers(found, at)
            for part, value in fixed.items():
                if part in NAMES:
                    np.testing.assert_allclose(x[:, NAMES.index(part)], value, atol=1e-15)


@pytest.mark.parametrize("parts", [4, 12, 20])
def test_chains_within_linear_constraints_are_uniform(parts):
    """A constraint that cuts nothing off leaves the marginals Beta(1, p - 1)."""
    names = [f"x{i}" for i in range(parts)]
    found = Space(
        {name: Real(0, 1) for name in names},
        where=[Mixture(names), Linear({"x0": 1, "x1": 1}, upper=1.5)],
    )
    at = Flat(found, {}).draw_within(600, np.random.default_rng(4))
    assert np.abs(at.sum(axis=1) - 1.0).max() < 1e-14
    assert min(kstest(column, beta(1, parts - 1).cdf).pvalue for column in at.T) > 1e-4


def test_nothing_within_contradictions():
    found = space(Mixture(NAMES), Linear({"a": 1, "b": 1, "c": 1, "d": 1}, upper=0.5))
    assert Flat(found, {}).draw_within(10, np.random.default_rng(0)) is None
    with pytest.raises(ExhaustedError, match=r"a \+ b \+ c \+ d = 1; a \+ b \+ c \+ d <= 0\.5"):
        next(Flat(found, {}).blocks(10, np.random.default_rng(0)))


@pytest.mark.parametrize("options", [{}, {"parts": (1, 2), "least": 0.1}, {"step": 0.1}])
def test_what_is_fixed_and_contradicts_the_constraints_is_told_so_at_once(options):
    found = space(Mixture(NAMES, **options), Linear({"a": 1, "b": -2}, lower=0, upper=0))
    assert len(next(Flat(found, {"a": 0.6}).blocks(10, np.random.default_rng(0)))) == 10
    with pytest.raises(ExhaustedError, match=r"a=0\.8.*a \+ b \+ c \+ d = 1.*b = 0") as caught:
        next(Flat(found, {"a": 0.8}).blocks(10, np.random.default_rng(0)))
    assert caught.value.left == 0


def test_faces_that_linear_constraints_leave_empty_take_no_share():
    """Of the pairs of four parts only those with a and another satisfy a >= 0.3 and a <= 0.7."""
    found = space(Mixture(NAMES, parts=2, least=0.1), Linear({"a": 1}, lower=0.3, upper=0.7))
    at = Flat(found, {}).draw_within(300, np.random.default_rng(0))
    assert len(at) == 300
    present = numbers(found, at) > 0.0
    assert present[:, 0].all()
    assert present[:, 1:].sum(axis=0).min() == 100


def test_corners_are_sought_once_for_each_face(monkeypatch):
    """Linear programs dominate an ask; their answers depend on the face alone."""
    solved = []

    def counted(*args, **options):
        solved.append(1)
        return linprog(*args, **options)

    monkeypatch.setattr("scipy.optimize.linprog", counted)
    where = [Mixture(NAMES, parts=(2, 3), least=0.11), Linear({"a": 1, "b": -1}, lower=0, upper=0)]
    found = Space(SHARES, where=where)
    first = Flat(found, {}).draw_within(200, np.random.default_rng(0))
    often = len(solved)
    assert 0 < often < 80
    again = Flat(Space(SHARES, where=where), {}).draw_within(200, np.random.default_rng(0))
    assert len(solved) == often
    np.testing.assert_array_equal(first, again)


def test_points_within_inequalities_leave_the_rest_uniform():
    found = Space(
        {"x": Real(0, 1), "y": Real(0, 10), "n": Integer(0, 9), "c": Choice(["a", "b"])},
        where=[Linear({"x": 1, "y": 1}, upper=0.5)],
    )
    points = found.decode(Flat(found, {"x": 0.2}).draw_within(400, np.random.default_rng(0)))
    assert {p["x"] for p in points} == {0.2}
    assert max(p["y"] for p in points) <= 0.3 + 1e-9
    assert {p["n"] for p in points} == set(range(10))
    assert {p["c"] for p in points} == {"a", "b"}
    impossible = [Linear({"x": 1}, lower=0.9), Linear({"x": 1}, upper=0.1)]
    none = Flat(Space({"x": Real(0, 1)}, where=impossible), {})
    assert none.draw_within(3, np.random.default_rng(0)) is None


def test_blocks_turn_to_chains_where_little_is_left():
    found = SPACES["cut"]
    block = next(Flat(found, {}).blocks(256, np.random.default_rng(0)))
    assert found.feasible(block).mean() > 0.99


# One point well inside


def test_the_centre_is_found_in_a_needle():
    """A thin corner that random points miss: its volume is 1e-6 / 2 of the square."""
    found = Space(
        {"x": Real(0, 1), "y": Real(0, 1), "c": Choice(["a", "b"])},
        where=[Linear({"x": 1, "y": 1}, upper=1e-3)],
    )
    u = Flat(found, {}).find_centre()
    assert u.shape == (4,)
    assert found.feasible(u[None])[0]
    np.testing.assert_array_equal(found.snap(u[None])[0], u)
    (point,) = found.decode(Flat(found, {"c": "b", "x": 5e-4}).find_centre()[None])
    assert point["c"] == "b"
    assert point["x"] == pytest.approx(5e-4)
    assert Flat(found, {"x": 0.5}).find_centre() is None


def test_the_centre_has_whole_integers():
    found = Space(
        {"a": Integer(0, 1000), "b": Integer(0, 1000)},
        where=[Linear({"a": 7, "b": 11}, lower=4998.9, upper=4999.1)],
    )
    (point,) = found.decode(Flat(found, {}).find_centre()[None])
    assert 7 * point["a"] + 11 * point["b"] == 4999


def test_the_centre_of_an_equality_among_integers_and_of_a_mixture_in_steps_is_found():
    found = Space(
        {"p": Integer(0, 1000), "q": Integer(0, 1000), **SHARES},
        where=[
            Linear({"p": 7, "q": 11}, lower=4999, upper=4999),
            Mixture(NAMES, step=0.01),
            Linear({"c": 3, "d": 1}, lower=1.63, upper=1.63),
        ],
    )
    (point,) = found.decode(Flat(found, {}).find_centre()[None])
    assert found.check(point) == point


def test_the_centre_has_ordered_numbers_and_logs():
    found = Space(
        {"w": Choice([1, 8, 64], ordered=True), "lr": Real(1e-6, 1, log=True)},
        where=[Linear({"w": 1}, lower=40), Linear({"lr": 1}, upper=1e-5)],
    )
    (point,) = found.decode(Flat(found, {}).find_centre()[None])
    assert point["w"] == 64
    assert 1e-6 < point["lr"] < 1e-5


def test_there_is_no_centre_without_linear_constraints_or_where_predicates_refuse_it():
    assert Flat(Space({"k": Integer(0, 3)}), {}).find_centre() is None
    never = Space({"x": Real(0, 1)}, where=[Linear({"x": 1}, upper=1), lambda point: False])
    assert Flat(never, {}).find_centre() is None


def test_the_farthest_are_spread_out():
    at = np.random.default_rng(0).random((400, 2))
    chosen = at[farthest(at, np.array([[0.0, 0.0]]), 8)]
    gaps = np.linalg.norm(chosen[:, None] - chosen, axis=2) + 9.0 * np.eye(8)
    assert gaps.min() > 0.25
    assert np.linalg.norm(chosen, axis=1).min() > 0.25


# Ascents


def bowl(target):
    def objective(at):
        return -np.square(at - target).sum(axis=1), -2.0 * (at - target)

    return objective


def test_an_ascent_ends_at_the_maximum_of_the_simplex():
    found = Space(SHARES, where=[Mixture(NAMES), Linear({"a": 1, "b": 1}, upper=0.4)])
    target = np.array([0.9, 0.1, 0.3, -0.2])
    flat = Flat(found, {})
    starts = flat.draw_within(4, np.random.default_rng(0))
    climbed = flat.climb(bowl(target), starts, np.ones(4, dtype=bool))
    # By hand: a + b = 0.4 binds and b = 0, so c + d = 0.6, split at equal distances.
    np.testing.assert_allclose(climbed, np.tile([0.4, 0.0, 0.55, 0.05], (4, 1)), atol=2e-4)
    assert found.feasible(flat.project(climbed)).all()


def test_an_ascent_keeps_its_face_and_what_is_not_free():
    found = SPACES["faces"]
    flat = Flat(found, {"T": 50.0})
    starts = flat.draw(6, np.random.default_rng(5))
    free = found.continuous.copy()
    free[found.columns_of("T")] = False
    climbed = flat.climb(bowl(np.full(found.width, 0.4)), starts, free)
    np.testing.assert_array_equal(climbed[:, :4] > 0.0, starts[:, :4] > 0.0)
    np.testing.assert_array_equal(climbed[:, 4:], starts[:, 4:])
    np.testing.assert_allclose(climbed[:, :4].sum(axis=1), 1.0, atol=1e-9)
    moved = np.square(climbed[:, :4] - 0.4).sum(axis=1)
    assert (moved <= np.square(starts[:, :4] - 0.4).sum(axis=1) + 1e-12).all()


@pytest.mark.parametrize("step", [None, 0.001])
def test_an_ascent_beside_a_fixed_part_ends_at_the_maximum_of_the_rest(step):
    """a = 0.6 stays; the rest sums to 0.4 and is nearest to the target where c = d + 0.1, b = 0."""
    found = Space(SHARES, where=[Mixture(NAMES, step=step)])
    flat = Flat(found, {"a": 0.6})
    target = found.encode([{"a": 0.0, "b": 0.0, "c": 0.5, "d": 0.4}])[0]
    free = np.array([False, True, True, True])
    climbed = flat.climb(bowl(target), flat.draw(4, np.random.default_rng(0)), free)
    np.testing.assert_allclose(numbers(found, climbed).sum(axis=1), 1.0, atol=2e-3)
    for point in found.decode(flat.project(climbed)):
        assert list(point.values()) == pytest.approx([0.6, 0.0, 0.25, 0.15], abs=1e-3)


def test_steps_are_climbed_as_if_they_were_none():
    found = Space({"a": Real(0, 1), "b": Real(0, 0.5)}, where=[Mixture(["a", "b"], step=0.05)])
    flat = Flat(found, {})
    climbed = flat.climb(
        bowl(found.encode([{"a": 0.7, "b": 0.3}])[0]),
        found.encode([{"a": 1.0, "b": 0.0}, {"a": 0.5, "b": 0.5}]),
        found.continuous,
    )
    assert found.decode(flat.project(climbed)) == [{"a": 0.7, "b": 0.3}] * 2


# One value changed, as a report shows it


def test_the_other_parts_make_up_in_proportion():
    found = Space(SHARES, where=[Mixture(NAMES)])
    point = {"a": 0.5, "b": 0.3, "c": 0.2, "d": 0.0}
    at = with_one_changed(found, point, "a", [0.0, 0.5, 0.75, 1.0])
    assert found.feasible(at).all()
    np.testing.assert_allclose(at[0], [0.0, 0.6, 0.4, 0.0], atol=1e-12)
    np.testing.assert_array_equal(at[1], list(point.values()))
    np.testing.assert_allclose(at[2], [0.75, 0.15, 0.1, 0.0], atol=1e-12)
    np.testing.assert_allclose(at[3], [1.0, 0.0, 0.0, 0.0], atol=1e-12)
    alone = with_one_changed(found, {"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0}, "a", [0.4])
    np.testing.assert_allclose(alone[0], [0.4, 0.2, 0.2, 0.2], atol=1e-12)
    assert tied_to(found, "b") == ("a", "c", "d")


def test_what_nothing_can_make_up_for_breaks_the_sum():
    found = SPACES["steps"]
    point = {"a": 0.5, "b": 0.3, "c": 0.2, "d": 0.0, "T": 30.0, "n": 1, "kind": "u"}
    at = with_one_changed(found, point, "a", [0.02, 0.3, 0.97])
    assert found.feasible(at).tolist() == [False, True, False]
    at = with_one_changed(found, point, "T", [20.0, 30.0])
    np.testing.assert_array_equal(at[:, :4], np.tile(found.encode([point])[0, :4], (2, 1)))
    assert tied_to(found, "T") == ()


def test_what_is_tied_through_others_makes_up_as_well():
    found = SPACES["tied faces"]
    point = {"a": 0.4, "b": 0.6, "c": 0.0, "d": 0.0, "T": 30.0, "n": 1, "kind": "u"}
    at = with_one_changed(found, point, "b", [0.5, 0.6])
    assert found.feasible(at).all()
    assert found.decode(at)[0]["T"] == pytest.approx(20.0)
    assert [p["n"] for p in found.decode(at)] == [1, 1]


def test_a_part_that_would_be_one_too_many_is_not_shown_in_place_of_another():
    """At w = e = 0.5 of at most two parts there is no g in proportion, and e is not dropped."""
    names = ["w", "e", "g"]
    for options in ({"parts": (1, 2)}, {"parts": (1, 2), "least": 0.05, "step": 0.01}):
        found = Space({n: Real(0, 1) for n in names}, where=[Mixture(names, **options)])
        point = {"w": 0.5, "e": 0.5, "g": 0.0}
        at = with_one_changed(found, point, "g", [0.0, 0.1, 0.5, 1.0])
        assert found.feasible(at).tolist() == [True, False, False, True]
        at = with_one_changed(found, point, "w", [0.0, 0.3, 0.8, 1.0])
        assert found.feasible(at).all()
        np.testing.assert_allclose([p["g"] for p in found.decode(at)], 0.0)


def test_a_part_too_small_for_least_ends_the_slice():
    names = ["w", "e", "g"]
    found = Space({n: Real(0, 1) for n in names}, where=[Mixture(names, least=0.05)])
    at = with_one_changed(found, {"w": 0.5, "e": 0.4, "g": 0.1}, "w", [0.6, 0.7, 0.9])
    assert found.feasible(at).tolist() == [True, True, False]
