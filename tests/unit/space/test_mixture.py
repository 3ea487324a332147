"""`Mixture` as a constraint: what it refuses, what it holds for, its size and its list."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from itertools import product

import numpy as np
import pytest

from covey.errors import SpaceError
from covey.space import (
    Choice,
    Integer,
    Linear,
    Mixture,
    Real,
    Space,
    space_from_description,
)
from covey.space.constraints import Constraint
from covey.space.flat import Flat

NAMES = ["water", "ethanol", "glycerol"]
PARTS = {"water": Real(0, 1), "ethanol": Real(0, 1), "glycerol": Real(0, 0.4)}
LOTION = Space(
    {**PARTS, "T": Integer(20, 22)},
    where=[Mixture(NAMES, total=1.0, parts=(1, 2), least=0.05, step=0.01)],
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": "ab"}, "a list of two parts or more"),
        ({"names": ["a"]}, "a list of two parts or more"),
        ({"names": ["a", "a"]}, r"Mixture.*\['a', 'a'\]"),
        ({"names": ["a", 3]}, "got 3"),
        ({"names": ["a", "b"], "total": 0}, r"total of a Mixture.*got 0\.0"),
        ({"names": ["a", "b"], "total": "1"}, r"Mixture.*'1'"),
        ({"names": ["a", "b"], "parts": (0, 2)}, r"Mixture.*\(1, 2\).*\(0, 2\)"),
        ({"names": ["a", "b"], "parts": (2, 1)}, "from 1 to 2"),
        ({"names": ["a", "b"], "parts": 3}, r"\(1, 2\); got 3"),
        ({"names": ["a", "b"], "parts": "12"}, "from 1 to 2"),
        ({"names": ["a", "b"], "parts": (True, 2)}, "from 1 to 2"),
        ({"names": ["a", "b"], "least": 0}, r"least of a Mixture.*got 0\.0"),
        ({"names": ["a", "b"], "least": 1.5}, r"least=1\.5.*total=1\.0.*`least`"),
        ({"names": ["a", "b"], "step": -0.1}, r"got -0\.1"),
        ({"names": ["a", "b"], "step": 0.3}, r"total=1\.0.*0\.9.*1\.2"),
        ({"names": ["a", "b"], "step": 1e-7}, r"total=1\.0.*10000000"),
    ],
)
def test_a_mixture_refuses(arguments, message):
    with pytest.raises(SpaceError, match=message):
        Mixture(**arguments)


THREE = {name: Real(0, 0.6) for name in "abc"}


@pytest.mark.parametrize(
    ("parameters", "arguments", "message"),
    [
        (
            {"a": Real(0.5, 1), "b": Real(0.6, 1)},
            {},
            r"0\.5.*0\.6.*1\.1",
        ),
        (
            {"a": Real(0, 0.2), "b": Real(0, 0.3)},
            {},
            r"0\.2.*0\.3.*0\.5",
        ),
        (THREE, {"parts": 1}, r"1e-06.*0\.6.*1e-06"),
        (
            THREE,
            {"parts": 3, "least": 0.4},
            r"0 or 0.4 to 0.6.* 1.2 to 1.8 .*`least` \(0.4\)",
        ),
        (THREE, {"parts": (3, 3), "least": 0.7}, r"a \+ b \+ c = 1.*0\.7.*0\.6"),
        ({n: Real(0.1, 1) for n in "abc"}, {"parts": (1, 2)}, r"0\.1.*0\.1.*`parts`"),
        (
            {"a": Real(0.1, 0.2), "b": Real(0, 1)},
            {"least": 0.3},
            r"0\.3.*0\.2.*`least` \(0\.3",
        ),
        ({"a": Real(0, 1), "b": Choice(["u", "v"])}, {}, "'b' is no number"),
        ({"a": Real(0, 1), "b": Real(0.1, 1, log=True)}, {}, r"'b'.*low=0\.1"),
        ({"a": Real(0, 1), "b": Real(-1, 1)}, {}, r"'b'.*low=-1\.0"),
        ({"a": Real(0, 1, step=0.1), "b": Real(0, 1)}, {}, r"\(a 0\.1, b none\)"),
        ({"a": Real(0, 1, step=0.1), "b": Real(0, 1)}, {"step": 0.2}, r"Mixture.*0\.1.*0\.2"),
        ({"a": Real(0, 0.005), "b": Real(0, 1)}, {"step": 0.01}, r"step=0\.01.* 0\.0 .*'a'"),
        ({"a": Real(0.001, 0.005), "b": Real(0, 1)}, {"step": 0.01}, r"step=0\.01.*0\.001"),
        (
            {"a": Real(0.05, 0.95, step=0.1), "b": Real(0, 1, step=0.1)},
            {},
            r"'a'.*0\.05",
        ),
    ],
)
def test_a_space_refuses_a_mixture_that_cannot_be(parameters, arguments, message):
    with pytest.raises(SpaceError, match=message):
        Space(parameters, where=[Mixture(list(parameters), **arguments)])


def test_a_part_that_does_not_exist_or_belongs_to_two():
    with pytest.raises(SpaceError, match=r"'watr'.*'water'"):
        Space(PARTS, where=[Mixture(["watr", "ethanol"])])
    twice = [Mixture(["water", "ethanol"]), Mixture(["water", "glycerol"])]
    with pytest.raises(SpaceError, match=r"'water'.*water \+ ethanol = 1; water \+ glycerol = 1"):
        Space(PARTS, where=twice)


def test_it_is_a_constraint_and_says_what_it_is():
    mixture = Mixture(NAMES, total=100, parts=2)
    assert isinstance(mixture, Constraint)
    assert str(mixture) == "water + ethanol + glycerol = 100, 2 parts"
    assert mixture.parts == (2, 2)
    assert Mixture(NAMES, parts=np.int64(2)) == Mixture(tuple(NAMES), parts=[2, 2])
    assert hash(Mixture(NAMES)) == hash(Mixture(tuple(NAMES), 1))


# Size and list


def brute(limit=100):
    """Every lotion in hundredths, by trying."""
    found = []
    for a, b in product(range(limit + 1), repeat=2):
        row = (a, b, limit - a - b)
        sound = all(x == 0 or x >= 5 for x in row) and row[2] <= 40
        if min(row) >= 0 and sound and 1 <= sum(x > 0 for x in row) <= 2:
            found.append(row)
    return found


def test_a_mixture_in_steps_is_finite_and_listed():
    rows = brute()
    assert LOTION.size == 3 * len(rows)
    points = LOTION.decode(LOTION.grid(10_000))
    listed = {tuple(round(100 * p[n]) for n in NAMES) for p in points}
    assert listed == set(rows)
    assert len(points) == LOTION.size
    for point in points:
        assert sum(Decimal(repr(point[name])) for name in NAMES) == 1
        assert LOTION.check(point) == point


def test_a_fixed_part_leaves_the_rest():
    fixed = {"glycerol": 0.3}
    points = LOTION.decode(LOTION.grid(10_000, fixed))
    assert {(p["water"], p["ethanol"]) for p in points} == {(0.7, 0.0), (0.0, 0.7)}
    with pytest.raises(SpaceError, match=r"water=0.9, ethanol=0.3.* 1.2 with 2"):
        LOTION.grid(10_000, {"water": 0.9, "ethanol": 0.3})
    with pytest.raises(SpaceError, match=r"water=0\.02.*0\.05.*0\.02"):
        LOTION.grid(10_000, {"water": 0.02})


@pytest.mark.parametrize(
    ("options", "fixed", "message"),
    [
        (
            {"parts": (1, 3), "least": 0.1, "step": 0.05},
            {"a": 0.95},
            r"0.95 with 1 part, 1.05 to 1.95 with 2 parts.*; fix less, or .*`least` \(0.1\)",
        ),
        ({"least": 0.3}, {"a": 0.8}, r"0\.3.*0\.8.*1\.1"),
        ({"parts": 2}, {"a": 1.0}, r"a 1, b .* 1.000001 to 2 with 2 parts"),
        ({"parts": 2, "step": 0.1}, {"a": 1.0}, r"1.1 to 2 with 2 parts"),
        ({"parts": 2}, {"a": 0, "b": 0}, r"a \+ b \+ c = 1.*a=0, b=0"),
        ({"parts": (1, 2)}, {"a": 0.2, "b": 0.3}, r"0\.2.*0\.3.*0\.5"),
    ],
)
def test_what_is_fixed_and_cannot_be_is_told_the_bounds_and_sums(options, fixed, message):
    space = Space({name: Real(0, 1) for name in "abc"}, where=[Mixture(list("abc"), **options)])
    with pytest.raises(SpaceError, match=message):
        Flat(space, fixed)


def test_a_total_in_a_gap_is_told_both_sides():
    """One part is at most 0.9 and two at least 1.4."""
    with pytest.raises(SpaceError, match=r"0.7 to 0.9 with 1 part, 1.4 to 1.8 with 2 parts"):
        Space({name: Real(0, 0.9) for name in "abc"}, where=[Mixture(list("abc"), least=0.7)])


def test_a_mixture_is_refused_just_where_there_is_none():
    """The referee: mixtures in fifths of random bounds, listed before and after the choice."""
    rng, sizes = np.random.default_rng(0), []
    for _ in range(300):
        low, wide = rng.integers(0, 2, size=3), rng.integers(1, 4, size=3)
        high = np.minimum(low + wide, 5)
        fewest = int(rng.integers(1, 4))
        parts, least = (fewest, int(rng.integers(fewest, 4))), int(rng.integers(1, 4))
        ranges = list(zip(low.tolist(), high.tolist(), strict=True))
        rows = [
            row
            for row in product(*(range(a, b + 1) for a, b in ranges))
            if sum(row) == 5
            and all(x == 0 or x >= least for x in row)
            and parts[0] <= sum(x > 0 for x in row) <= parts[1]
        ]
        mixture = Mixture(list("abc"), total=5, parts=parts, least=least)
        try:
            space = Space(
                {n: Integer(a, b) for n, (a, b) in zip("abc", ranges, strict=True)}, where=[mixture]
            )
        except SpaceError:
            sizes.append(0)
        else:
            sizes.append(space.size)
        assert sizes[-1] == len(rows)
    assert 50 < sum(size > 0 for size in sizes) < 250


def test_two_mixtures_and_a_choice_are_all_combinations():
    space = Space(
        {
            "a": Real(0, 1),
            "kind": Choice(["u", "v"]),
            "c": Integer(0, 4),
            "b": Real(0, 1),
            "d": Integer(0, 4),
        },
        where=[Mixture(["b", "a"], step=0.25), Mixture(["c", "d"], total=4)],
    )
    assert space.size == 5 * 2 * 5
    points = space.decode(space.grid(100))
    assert len({tuple(p.items()) for p in points}) == 50
    assert all(p["a"] + p["b"] == 1.0 and p["c"] + p["d"] == 4 for p in points)


def test_without_steps_it_is_not_finite_and_linear_ones_take_their_share():
    assert Space(PARTS, where=[Mixture(NAMES)]).size is None
    cut = Space(
        PARTS, where=[Mixture(NAMES, step=0.1), Linear({"water": 1, "ethanol": -1}, upper=0)]
    )
    found = cut.decode(cut.grid(1000))
    assert 0 < len(found) < cut.size
    assert all(p["water"] <= p["ethanol"] for p in found)


def test_the_parts_have_the_step_of_the_mixture_and_move_together():
    coarse = Space({**PARTS, "n": Integer(0, 3)}, where=[Mixture(NAMES, step=0.05)])
    assert coarse.parameters["glycerol"] == Real(0, 0.4, step=0.05)
    assert coarse.continuous.tolist() == [True, True, True, False]
    assert coarse.levels() == (slice(3, 4),)
    np.testing.assert_allclose(coarse.resolution(0.01)[:3], 0.01)
    fine = Space(PARTS, where=[Mixture(NAMES, step=0.001)])
    assert fine.resolution(0.01)[0] == pytest.approx(0.5 / 1001)
    uneven = Space({"a": Real(0.033, 1), "b": Real(0, 1)}, where=[Mixture(["a", "b"], step=0.01)])
    assert uneven.parameters["a"].span == (0.04, 1.0)


@pytest.mark.parametrize("loaded", [False, True])
def test_its_parameters_make_a_space_with_another_step_or_none(loaded):
    """The step that a mixture gave its parts goes with it, as docs/extending.md has it."""
    ranges = {**PARTS, "T": Real(20, 80, step=0.5)}
    fine = Space(ranges, where=[Mixture(NAMES, step=0.01)])
    if loaded:
        fine = space_from_description(json.loads(json.dumps(fine.describe())))
    for step in (0.05, None, 0.01):
        where = [Mixture(NAMES, step=step)]
        again = Space({**fine.parameters, "p": Real(1, 2)}, where=where)
        assert again == Space({**ranges, "p": Real(1, 2)}, where=where)
        assert again.parameters["water"].step == step
        assert again.parameters["T"].step == 0.5
    own = Space({n: Real(0, 1, step=0.1) for n in NAMES}, where=[Mixture(NAMES)])
    assert Space({**own.parameters}, where=[Mixture(NAMES)]).parameters["water"].step == 0.1
    copy = pickle.loads(pickle.dumps(fine.parameters["water"]))
    assert copy == fine.parameters["water"]
    assert copy.given == Real(0, 1)


# Points


def test_points_off_by_rounding_are_taken_and_others_told_their_sum():
    point = {"water": 0.1 + 0.2, "ethanol": 0.7, "glycerol": 0, "T": 20}
    assert LOTION.check(point) == {"water": 0.3, "ethanol": 0.7, "glycerol": 0.0, "T": 20}
    free = Space(PARTS, where=[Mixture(NAMES)])
    third = {"water": 1 / 3, "ethanol": 1 / 3, "glycerol": 1 / 3}
    assert free.check(third) == third
    assert free.feasible(free.encode([third])).all()
    with pytest.raises(SpaceError, match=r"water \+ ethanol \+ glycerol = 1.*0\.999"):
        free.check({"water": 0.333, "ethanol": 0.333, "glycerol": 0.333})
    with pytest.raises(SpaceError, match=r"0\.01.*0\.9"):
        LOTION.check({**point, "ethanol": 0.6})
    with pytest.raises(SpaceError, match="'water'"):
        LOTION.check({"water": 0.3, "ethanol": 0.6, "glycerol": 0.1, "T": 20})
    with pytest.raises(SpaceError, match=r"0\.05.*0\.01.*0\.03"):
        LOTION.check({"water": 0.97, "ethanol": 0.03, "glycerol": 0, "T": 20})


def test_what_is_checked_is_what_holds():
    """The two ways to ask, points and coordinates, agree on a grid around the mixture."""
    mixture = Mixture(["a", "b"], parts=(1, 2), least=0.2)
    space = Space({"a": Real(0, 1), "b": Real(0, 1)}, where=[mixture])
    ticks = np.round(np.arange(0.0, 1.01, 0.1), 1).tolist()
    points = [{"a": a, "b": b} for a, b in product(ticks, repeat=2)]
    broken = [mixture.broken(point, space.parameters) for point in points]
    holds = space.feasible(space.encode(points))
    assert [b is None for b in broken] == holds.tolist()
    kept = {(p["a"], p["b"]) for p, b in zip(points, broken, strict=True) if b is None}
    inner = {(t, round(1 - t, 1)) for t in ticks if 0.2 <= t <= 0.8}
    assert kept == inner | {(0.0, 1.0), (1.0, 0.0)}


def test_it_is_written_down_and_read_back():
    for mixture in (Mixture(NAMES), Mixture(NAMES, 1.0, (1, 2), 0.05, 0.01)):
        space = Space({**PARTS, "T": Real(0, 1)}, where=[mixture])
        text = json.dumps(space.describe())
        again = space_from_description(json.loads(text))
        assert again == space
        assert again.fingerprint == space.fingerprint
    assert Mixture(NAMES).describe() == {"kind": "mixture", "names": NAMES, "total": 1.0}
