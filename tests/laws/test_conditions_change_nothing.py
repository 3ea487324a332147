"""A condition that always holds changes nothing; branches have an equal share of candidates."""

from collections import Counter

import numpy as np
import pytest

import covey
from covey import Choice, Integer, Real, Space
from covey.candidates import Exclusions, candidate_set

MODEL = Choice(["tree", "net"])


def batches(space: Space) -> list[list[dict]]:
    study = covey.Study(space, seed=3)
    made = []
    for _ in range(4):
        batch = study.ask(5)
        made.append([dict(trial.point) for trial in batch])
        study.tell(batch, [value(trial.point) for trial in batch])
    return made


def value(point) -> float:
    return (point["model"] == "net") - (point.get("x", 0.2) - 0.3) ** 2 + point.get("n", 4) / 9


def space(x=None, n=None) -> Space:
    return Space({"model": MODEL, "x": Real(0, 1, when=x), "n": Integer(1, 200, when=n)})


def test_a_condition_that_always_holds_changes_no_bit_of_a_batch():
    plain = batches(space())
    always = {"model": ["tree", "net"]}
    assert batches(space(x=always, n=always)) == plain
    assert batches(space(x={"model": "tree"})) != plain  # the control: one that matters does


def test_one_that_always_holds_beside_one_that_does_not():
    assert batches(space(x={"model": "tree"}, n={"model": ["net", "tree"]})) == batches(
        space(x={"model": "tree"})
    )


def branching() -> Space:
    """Three branches, of which one has far more volume than the others."""
    return Space(
        {
            "model": Choice(["tree", "net", "line"]),
            "depth": Integer(1, 3, when={"model": "tree"}),
            **{f"x{i}": Real(0, 1, when={"model": "net"}) for i in range(4)},
            "bias": Real(-1, 1),
        }
    )


def test_branches_have_an_equal_share_and_a_design_visits_each():
    where = candidate_set(branching(), {}, Exclusions((), 7, 0))
    drawn = branching().decode(where.scattered(900, np.random.default_rng(0)).at)
    shares = Counter(point["model"] for point in drawn)
    assert max(shares.values()) - min(shares.values()) <= 2
    for start in range(0, 12, 3):
        set_out = candidate_set(branching(), {}, Exclusions((), 7, start)).in_order(3)
        assert {p["model"] for p in set_out.points(range(3))} == {"tree", "net", "line"}


def test_a_branch_is_filled_as_its_own_space():
    where = candidate_set(branching(), {}, Exclusions((), 7, 0))
    drawn = branching().decode(where.scattered(1024, np.random.default_rng(0)).at)
    for name in ("x0", "x3"):
        x = np.array([point[name] for point in drawn if point["model"] == "net"])
        counts, _ = np.histogram(x, bins=8, range=(0, 1))
        assert counts.min() > 0.6 * len(x) / 8
        assert counts.max() < 1.4 * len(x) / 8


def test_a_finite_space_is_designed_branch_by_branch():
    finite = Space(
        {"model": MODEL, "depth": Integer(1, 50, when={"model": "tree"}), "k": Integer(1, 4)}
    )
    first = candidate_set(finite, {}, Exclusions((), 1, 0)).in_order(4)
    assert Counter(p["model"] for p in first.points(range(4))) == {"tree": 2, "net": 2}


@pytest.mark.parametrize("fixed", [{"depth": 2}, {"x1": 0.25}, {"model": "line"}])
def test_what_is_fixed_brings_its_branch(fixed):
    study = covey.Study(branching(), seed=0)
    for _ in range(3):
        batch = study.ask(4, fixed=fixed)
        assert all(fixed.items() <= trial.point.items() for trial in batch)
        study.tell(batch, [trial.point["bias"] for trial in batch])


def test_ascent_leaves_absent_parameters_alone():
    study = covey.Study(branching(), seed=0)
    for _ in range(4):
        batch = study.ask(6)
        study.tell(
            batch, [-sum(v**2 for v in t.point.values() if v != t.point["model"]) for t in batch]
        )
    u = branching().encode([trial.point for trial in study.history.trials])
    np.testing.assert_array_equal(branching().snap(u), u)
