"""Laws of encoding: what goes in comes out, every value has its fair share of [0, 1]."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from covey.space import Choice, Integer, Linear, Pool, Real, Space, space_from_description

seeds = st.integers(0, 2**32 - 1)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.floats(-5, 5), st.text(max_size=3)
)
objects = st.one_of(scalars, st.lists(scalars, max_size=3))


@st.composite
def reals(draw):
    if draw(st.booleans()):
        low = draw(st.floats(1e-300, 1e290))
        return Real(low, low * draw(st.floats(1.001, 1e9)), log=True)
    low = draw(st.floats(-1e12, 1e12))
    return Real(low, low + draw(st.floats(1e-2, 1e12)))


@st.composite
def stepped(draw):
    unit = 10.0 ** draw(st.integers(-4, 3))
    low, step = draw(st.integers(-500, 500)), draw(st.integers(1, 40))
    reach = draw(st.integers(step, 5000))
    log = 2 * low > step and draw(st.booleans())
    return Real(low * unit, (low + reach) * unit, log=log, step=step * unit)


@st.composite
def integers(draw):
    step = draw(st.integers(1, 7))
    count = draw(st.integers(0, 300))
    log = draw(st.booleans())
    low = draw(st.integers(step // 2 + 1 if log else -(10**6), 10**6))
    return Integer(low, low + step * count, log=log, step=step)


@st.composite
def choices(draw, values=objects):
    options = draw(
        st.lists(values, min_size=1, max_size=6, unique_by=lambda v: (type(v).__name__, repr(v)))
    )
    zeros = [option for option in options if isinstance(option, float) and option == 0.0]
    nested = [str(option) for option in options if isinstance(option, list)]
    # Equal by value though printed differently: 0.0 and -0.0, [1] and [True].
    assume(len(zeros) < 2 and len(nested) < 2)
    return Choice(options, ordered=draw(st.booleans()))


@st.composite
def spaces(draw, options=objects):
    parts = draw(
        st.lists(
            st.one_of(reals(), stepped(), integers(), choices(options)), min_size=1, max_size=4
        )
    )
    return Space({f"p{i}": part for i, part in enumerate(parts)})


def coordinates(space, seed, n=20):
    """Inside, outside and exactly on the ends of the unit cube."""
    u = np.random.default_rng(seed).uniform(-0.2, 1.2, (n, space.width))
    u[0], u[1] = 0.0, 1.0
    return u


@given(spaces(), seeds)
def test_decode_undoes_encode(space, seed):
    for point in space.decode(coordinates(space, seed)):
        again = space.decode(space.encode([point]))[0]
        for name, parameter in space.parameters.items():
            if isinstance(parameter, Real):
                scale = point[name] if parameter.log else parameter.high - parameter.low
                assert abs(again[name] - point[name]) <= 1e-12 * abs(scale)
            else:
                assert type(again[name]) is type(point[name])
                assert again[name] == point[name]


@given(spaces(), seeds)
def test_decoded_points_belong_to_the_space(space, seed):
    for point in space.decode(coordinates(space, seed)):
        assert space.check(point) == point


@given(spaces(), seeds)
def test_snap_is_encode_after_decode(space, seed):
    u = coordinates(space, seed)
    snapped = space.snap(u)
    encoded = space.encode(space.decode(u))
    np.testing.assert_array_equal(snapped[:, ~space.continuous], encoded[:, ~space.continuous])
    np.testing.assert_allclose(snapped, encoded, rtol=0, atol=1e-12)


@given(spaces(), seeds)
def test_snap_is_idempotent(space, seed):
    once = space.snap(coordinates(space, seed))
    twice = space.snap(once)
    np.testing.assert_array_equal(twice[:, ~space.continuous], once[:, ~space.continuous])
    for name, parameter in space.parameters.items():
        if isinstance(parameter, Real):
            columns = space.columns_of(name)
            np.testing.assert_allclose(
                parameter.numbers(twice[:, columns]),
                parameter.numbers(once[:, columns]),
                rtol=1e-12,
                atol=0 if parameter.log else 1e-12 * (parameter.high - parameter.low),
            )


@given(spaces(), seeds)
def test_encoded_points_lie_in_the_unit_cube(space, seed):
    u = space.snap(coordinates(space, seed))
    assert u.min() >= 0.0
    assert u.max() <= 1.0


@given(reals())
def test_the_ends_of_a_real_are_exact(real):
    assert real.encode([real.low, real.high])[:, 0].tolist() == [0.0, 1.0]
    assert real.decode(np.array([[0.0], [1.0]])) == [real.low, real.high]


@given(reals(), seeds)
def test_encoding_keeps_the_order(real, seed):
    u = np.sort(np.random.default_rng(seed).random(50))[:, None]
    assert (np.diff(real.numbers(u)) >= 0).all()
    assert (np.diff(real.snap(u)[:, 0]) >= 0).all()


@given(integers())
def test_an_integer_owns_its_fair_share(integer):
    """Bin edges of v lie half a step to either side of it, in logs if asked: v is decoded there."""
    values = np.arange(integer.low, integer.high + 1, integer.step, dtype=float)
    edges = np.append(values - integer.step / 2, values[-1] + integer.step / 2)
    edges = np.log(edges) if integer.log else edges
    edges = (edges - edges[0]) / (edges[-1] - edges[0])
    inside = 1e-6 * np.diff(edges)
    assert integer.decode((edges[:-1] + inside)[:, None]) == values.tolist()
    assert integer.decode((edges[1:] - inside)[:, None]) == values.tolist()
    np.testing.assert_allclose(
        integer.encode(values.tolist())[:, 0], (edges[:-1] + edges[1:]) / 2, rtol=0, atol=1e-9
    )


@given(choices(st.text(max_size=3)))
def test_every_ordered_option_owns_the_same_share(choice):
    choice = Choice(choice.options, ordered=True)
    u = (np.arange(60 * choice.size) + 0.5)[:, None] / (60 * choice.size)
    counts = [choice.decode(u).count(option) for option in choice.options]
    assert counts == [60] * choice.size


@pytest.mark.parametrize("ordered", [False, True])
def test_uniform_coordinates_draw_every_option_equally_often(ordered):
    """Chi-square at level 1e-3 on 5 options; its negative control is below."""
    from scipy.stats import chisquare

    choice = Choice(list("abcde"), ordered=ordered)
    u = np.random.default_rng(0).random((5000, choice.width))
    drawn = choice.decode(u)
    assert chisquare([drawn.count(option) for option in choice.options]).pvalue > 1e-3


def test_rounding_to_the_nearest_would_be_caught():
    """Rounding u * (n - 1) gives the ends half a share; the check above must see that."""
    from scipy.stats import chisquare

    ranks = np.rint(np.random.default_rng(0).random(5000) * 4).astype(int)
    assert chisquare(np.bincount(ranks, minlength=5)).pvalue < 1e-3


@given(spaces(), seeds)
def test_json_gives_back_the_very_point(space, seed):
    for point in space.decode(coordinates(space, seed, n=5)):
        again = space.from_json(json.loads(json.dumps(space.to_json(point), allow_nan=False)))
        assert again == point
        assert [type(value) for value in again.values()] == [type(v) for v in point.values()]


@given(spaces(options=scalars))
def test_a_description_rebuilds_the_space_and_its_fingerprint(space):
    again = space_from_description(json.loads(json.dumps(space.describe(), allow_nan=False)))
    assert again == space
    assert again.fingerprint == space.fingerprint


@given(spaces(), spaces())
def test_fingerprints_agree_when_spaces_do_and_differ_when_they_do_not(a, b):
    assert Space(dict(a.parameters)).fingerprint == a.fingerprint
    assert (a.fingerprint == b.fingerprint) == (a == b)


@given(st.lists(st.tuples(reals(), st.floats(-3, 3)), min_size=1, max_size=4), seeds)
def test_a_point_that_passes_check_is_feasible_once_encoded(weighed, seed):
    """Also on the boundary: the bound is the very sum of a point of the space."""
    assume(any(weight for _, weight in weighed))
    parameters = {f"x{i}": real for i, (real, _) in enumerate(weighed)}
    rng = np.random.default_rng(seed)
    point = {
        name: min(max(rng.uniform(real.low, real.high), real.low), real.high)
        for name, real in parameters.items()
    }
    weights = {f"x{i}": weight for i, (_, weight) in enumerate(weighed)}
    total = sum(weight * point[name] for name, weight in weights.items())
    assume(abs(total) < 1e300)
    space = Space(parameters, where=[Linear(weights, upper=total)])
    assert space.check(point) == point
    assert space.feasible(space.encode([point]))[0]


@given(
    st.lists(
        st.fixed_dictionaries(
            {"x": st.floats(-1e6, 1e6), "n": st.integers(-9, 9), "s": st.sampled_from("abc")}
        ),
        min_size=1,
        max_size=12,
        unique_by=lambda row: (round(row["x"], 1), row["n"], row["s"]),
    )
)
def test_a_pool_finds_each_of_its_rows(rows):
    pool = Pool(rows)
    assert pool.size == len(rows)
    assert pool.locate(rows).tolist() == list(range(len(rows)))
    assert [pool.check({k: row[k] for k in "nsx"}) for row in rows] == rows
    np.testing.assert_array_equal(pool.encode(rows), pool.rows)
    assert pool.rows.min() >= 0.0
    assert pool.rows.max() <= 1.0
