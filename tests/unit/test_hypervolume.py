"""Fronts and hypervolume, against brute force, inclusion-exclusion, cells and moocore."""

from itertools import combinations

import numpy as np
import pytest

from covey.hypervolume import (
    Front,
    boxes,
    chebyshev,
    directions,
    front_of,
    hypervolume,
    nondominated,
    reaches,
    spread_over,
)


def by_inclusion_exclusion(values, worst):
    """The volume of a union of boxes: with signs, of all their intersections."""
    values = np.maximum(values - worst, 0.0)
    return sum(
        (-1) ** (size + 1) * np.prod(values[list(some)].min(axis=0))
        for size in range(1, len(values) + 1)
        for some in combinations(range(len(values)), size)
    )


def test_goals_of_very_different_size_are_compared_one_by_one():
    values = np.array([[1e9, 1e-8], [1e9, 3e-8], [1e-8, 1e9], [3e-8, 1e9]])
    assert nondominated(values).tolist() == [False, True, False, True]


def dominates(a, b):
    return bool((a >= b).all() and (a > b).any())


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_hypervolume_is_that_of_inclusion_exclusion(m):
    rng = np.random.default_rng(m)
    for _ in range(20):
        values = rng.random((rng.integers(1, 7), m))
        worst = rng.random(m) * 0.3
        assert np.isclose(hypervolume(values, worst), by_inclusion_exclusion(values, worst))


def by_cells(values):
    """The volume above zero of a union of boxes whose corners are whole numbers: unit cells."""
    cells = np.indices(values.max(axis=0)).reshape(values.shape[1], -1).T
    return int((cells[:, None] < values).all(axis=2).any(axis=1).sum())


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_hypervolume_with_ties_is_the_number_of_cells(m):
    rng = np.random.default_rng(m)
    for size in (1, 8, 40):
        values = rng.integers(1, 6, (size, m))
        assert hypervolume(values.astype(float), np.zeros(m)) == by_cells(values)


def on_a_sphere(size, m, seed=0):
    values = np.abs(np.random.default_rng(seed).standard_normal((size, m)))
    return values / np.linalg.norm(values, axis=1, keepdims=True)


@pytest.mark.parametrize(("size", "m"), [(2000, 3), (80, 4), (40, 5)])
def test_hypervolume_does_not_depend_on_the_order_of_goals(size, m):
    values, worst = on_a_sphere(size, m), np.linspace(0.0, 0.2, m)
    expected = hypervolume(values, worst)
    for order in np.roll(np.arange(m), 1), np.arange(m)[::-1]:
        assert hypervolume(values[:, order], worst[order]) == pytest.approx(expected, rel=1e-12)
    assert hypervolume(values[::-1], worst) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("size", "m"), [(500, 2), (2000, 3), (80, 4), (40, 5)])
def test_hypervolume_is_that_of_moocore(size, m):
    moocore = pytest.importorskip("moocore")
    values, worst = on_a_sphere(size, m), np.full(m, 0.05)
    expected = moocore.hypervolume(values, ref=worst, maximise=True)
    assert hypervolume(values, worst) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("tied", [False, True])
def test_gains_are_differences_of_hypervolumes(m, tied):
    rng = np.random.default_rng(m)
    worst = np.full(m, 0.1)
    for _ in range(60):
        known, new = rng.random((rng.integers(0, 12), m)), rng.random((15, m))
        if tied:
            known, new = np.round(4.0 * known) / 4.0, np.round(4.0 * new) / 4.0
        found = boxes(front_of(known), worst)
        before = hypervolume(known, worst)
        after = [hypervolume(np.vstack([known, one]), worst) for one in new]
        assert np.allclose(found.gains(new), np.array(after) - before, atol=1e-12)
        assert len(found.lower) <= 2 * len(front_of(known)) + 1


def test_boxes_are_disjoint():
    rng = np.random.default_rng(0)
    for m in (2, 3):
        found = boxes(front_of(rng.random((30, m))), np.zeros(m))
        middle = rng.random((2000, m))
        inside = (middle[:, None] > found.lower) & (middle[:, None] <= found.upper)
        assert inside.all(axis=2).sum(axis=1).max() <= 1


def test_nondominated_against_brute_force():
    rng = np.random.default_rng(1)
    for m in (1, 2, 3, 4):
        values = np.round(5.0 * rng.random((60, m)))
        slow = [not any(dominates(b, a) for b in values) for a in values]
        assert nondominated(values).tolist() == slow


def test_scores_are_gains_or_how_far_a_value_is_from_one():
    front = Front(np.array([[1.0, 3.0], [2.0, 2.0]]), np.zeros(2))
    scores = front.scores(np.array([[3.0, 1.0], [1.0, 2.0], [1.5, 1.0], [-1.0, 9.0]]))
    assert scores[0] == pytest.approx(1.0)  # adds the square beyond (2, 1)
    assert scores[1] == 0.0  # on the edge of what is dominated
    assert scores[2] == pytest.approx(-0.5)  # 0.5 better in both, and it would be
    assert scores[3] == pytest.approx(-1.0)  # below the worst of the first goal
    raised = front.scores(np.array([[1.5, 1.0]]) + 0.5 + 1e-6)
    assert raised[0] > 0.0


def test_four_goals_are_scored_at_one_weighting_a_turn():
    weightings = np.eye(4)
    front = Front(np.full((1, 4), 0.5), np.zeros(4), weightings)
    better = 0.5 + 0.1 * np.eye(4)
    for turn in range(4):
        now = front.with_values(np.zeros((0, 4)), turn)
        assert int(np.argmax(now.scores(better))) == turn
    assert not front.exact


def test_chebyshev_reaches_the_middle_of_a_concave_front():
    angle = np.linspace(0.0, np.pi / 2, 41)
    front = np.column_stack([np.cos(angle), np.sin(angle)]) ** 2.5  # between the ends it is hollow
    equal = chebyshev(front, np.array([0.5, 0.5]), np.ones(2))
    assert int(np.argmax(equal)) == 20
    assert int(np.argmax(front.sum(axis=1))) in (0, 40)  # a weighted sum finds an end


def test_spread_over_takes_the_ends_first():
    values = np.column_stack([np.linspace(0, 1, 50), np.linspace(1, 0, 50)])
    assert set(spread_over(values, 2)) == {0, 49}
    assert len(set(spread_over(values, 7).tolist())) == 7
    assert spread_over(values[:3], 7).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("m", "share"), [(1, 1.0), (2, np.pi / 4), (3, np.pi / 6), (4, np.pi**2 / 32)]
)
def test_the_mean_power_of_what_is_reached_is_the_hypervolume(m, share):
    """Up to a share of the volume of a ball, and to the number of directions."""
    along, rng = directions(m), np.random.default_rng(m)
    np.testing.assert_allclose(np.linalg.norm(along, axis=1), 1.0)
    for _ in range(5):
        values = rng.random((8, m))
        reached = reaches(values[None], along, 0.0)[0]
        volume = hypervolume(values, np.zeros(m))
        assert share * np.power(reached, m).mean() == pytest.approx(volume, rel=0.05)


def test_what_is_below_the_reference_point_reaches_nothing():
    values = np.array([[[-1.0, 5.0], [-np.inf, -np.inf]]])
    assert not reaches(values, directions(2), 0.0).any()
