import numpy as np
import pytest

import covey
from covey.candidates import Exclusions, candidate_set
from covey.errors import ExhaustedError, SpaceError
from covey.gp import Model, condition, observe
from covey.kernels import Matern52

SQUARE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})


def excluded(points=(), seed=0, asked=0):
    return Exclusions(points, seed, asked)


@pytest.fixture
def posterior():
    rng = np.random.default_rng(0)
    x = rng.random((10, 2))
    data = observe(x, -np.square(x - 0.4).sum(axis=1), np.full(10, np.nan))
    return condition([Model(Matern52((0.5, 0.5)), 1e-4)], data)


def test_what_is_fixed_is_held_exactly(posterior):
    left = candidate_set(SQUARE, {"x": 0.1}, excluded())
    rng = np.random.default_rng(0)
    for found in (left.in_order(3), left.scattered(3, rng), left.promising(3, posterior, rng)):
        points = found.points(range(3))
        assert [p["x"] for p in points] == [0.1] * 3
        assert len({p["y"] for p in points}) == 3


def test_candidates_climb_to_where_the_model_expects_much(posterior):
    left = candidate_set(SQUARE, {}, excluded())
    found = left.promising(5, posterior, np.random.default_rng(0))
    means = posterior.belief(found.at).mean
    dense = np.random.default_rng(1).random((100_000, 2))
    assert means.max() >= posterior.belief(dense).mean.max() - 5e-3
    assert np.all((found.at >= 0.0) & (found.at <= 1.0))
    assert len(np.unique(found.at, axis=0)) == len(found)


def test_a_narrow_linear_region_is_found():
    """A corner of 2e-11 of the cube: rejection starves, linear programming and a walk do not."""
    names = [f"x{i}" for i in range(6)]
    space = covey.Space(
        {name: covey.Real(0.0, 1.0) for name in names},
        where=[covey.Linear(dict.fromkeys(names, 1.0), upper=0.05)],
    )
    found = candidate_set(space, {}, excluded()).scattered(64, np.random.default_rng(0))
    assert len(found) >= 64
    assert found.at.sum(axis=1).max() <= 0.05 + 1e-9
    assert np.all(found.at.std(axis=0) > 1e-3)


def test_a_constraint_that_nothing_satisfies_says_so():
    space = covey.Space({"x": covey.Real(0.0, 1.0)}, where=[lambda p: False])
    with pytest.raises(ExhaustedError, match=r"found 0 that are feasible.*Check the constraints"):
        candidate_set(space, {}, excluded()).in_order(1)


def test_a_predicate_that_raises_is_named():
    space = covey.Space({"x": covey.Real(0.0, 1.0)}, where=[lambda p: p["z"] > 0])
    with pytest.raises(SpaceError):
        candidate_set(space, {}, excluded()).in_order(1)


def test_a_large_grid_with_few_feasible_points_is_listed_after_all():
    space = covey.Space(
        {"i": covey.Integer(0, 999), "j": covey.Integer(0, 999)},
        where=[lambda p: p["i"] == 7 and p["j"] in (1, 500, 998)],
    )
    found = candidate_set(space, {}, excluded()).in_order(3)
    assert {(p["i"], p["j"]) for p in found.points(range(3))} == {(7, 1), (7, 500), (7, 998)}
    with pytest.raises(ExhaustedError, match=r"before: 3"):
        candidate_set(space, {}, excluded()).in_order(4)


def test_candidates_are_apart_from_each_other_and_from_what_was_tried(posterior):
    tried = SQUARE.decode(posterior.data.at)
    found = candidate_set(SQUARE, {}, excluded(tried)).promising(
        5, posterior, np.random.default_rng(0)
    )
    others = np.vstack([found.at, posterior.data.at])
    gaps = np.linalg.norm(found.at[:, None] - others, axis=2)
    gaps[np.arange(len(found)), np.arange(len(found))] = np.inf
    assert gaps.min() >= 1e-4


def test_a_tiny_space_keeps_what_it_has(posterior):
    """Within 1e-5 of one place all points are hardly different, and still there are enough."""
    tiny = covey.Space(
        {"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)},
        where=[
            covey.Linear({"x": 1}, lower=0.4, upper=0.40001),
            covey.Linear({"y": 1}, lower=0.4, upper=0.40001),
        ],
    )
    found = candidate_set(tiny, {}, excluded()).promising(30, posterior, np.random.default_rng(0))
    assert len(found) >= 30


def test_a_point_for_which_there_is_no_other():
    corner = covey.Space(
        {"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)},
        where=[covey.Linear({"x": 1.0, "y": 1.0}, upper=1e-14)],
    )
    with pytest.raises(ExhaustedError):
        candidate_set(corner, {}, excluded([{"x": 0.0, "y": 0.0}])).in_order(3)


MIXED = covey.Space(
    {
        "x": covey.Real(0.0, 1.0),
        "n": covey.Integer(1, 9),
        "kind": covey.Choice(list("abcdefgh")),
        "one": covey.Choice(["alone"]),
        "size": covey.Choice([1, 2, 4], ordered=True),
    }
)


def points_of(space, seed):
    """A short run that comes back to where it was."""
    study = covey.Study(space, seed=seed)
    for _ in range(4):
        batch = study.ask(4)
        study.tell(batch, [t.point["x"] + "hgab".find(t.point["kind"]) for t in batch])
    return [dict(trial.point) for trial in study.history.trials]


@pytest.mark.parametrize("seed", range(3))
def test_condensed_coordinates_tell_the_same_points_apart(seed, monkeypatch):
    """The batches are those of the coordinates themselves, bit for bit."""
    found = points_of(MIXED, seed)
    monkeypatch.setattr(covey.Space, "condensed", lambda space, u: u)
    assert points_of(MIXED, seed) == found


def test_points_are_told_apart_by_one_column_for_each_parameter(monkeypatch):
    """A thousand options took half a minute: trees in a thousand dimensions are slow."""
    import scipy.spatial

    seen = []

    class Tree(scipy.spatial.cKDTree):
        def __init__(self, at):
            seen.append(at.shape[1])
            super().__init__(at)

    monkeypatch.setattr(scipy.spatial, "cKDTree", Tree)
    space = covey.Space({"x": covey.Real(0.0, 1.0), "kind": covey.Choice(range(300))})
    study = covey.Study(space, seed=0)
    study.tell(study.ask(2), [0.0, 1.0])
    study.ask(2, strategy="bucb")
    assert set(seen) == {2}
