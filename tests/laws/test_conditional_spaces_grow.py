"""A space with conditions grows: old results stay in the model, and it can be taken back."""

from __future__ import annotations

import numpy as np
import pytest
from tests.play import points_of

import covey
from covey import Choice, Integer, Real, Space
from covey.errors import HistoryError, SpaceError
from covey.space.covering import covering

TREE = {"model": "tree"}
NET = {"model": "net"}
OLD = Space(
    {
        "model": Choice(["tree", "net"]),
        "depth": Integer(1, 12, when=TREE),
        "lr": Real(1e-3, 1.0, log=True, when=NET),
    }
)
RANGES = Space(
    {
        **OLD.parameters,
        "depth": Integer(2, 20, when=TREE),
        "lr": Real(1e-2, 0.5, log=True, when=NET),
    }
)
BRANCH = Space(
    {
        **OLD.parameters,
        "model": Choice(["tree", "net", "knn"]),
        "k": Integer(1, 9, when={"model": "knn"}),
    }
)
FEWER = Space({"model": Choice(["net"]), "lr": Real(1e-3, 1.0, log=True, when=NET)})
NEVER = Space({**OLD.parameters, "lr": Real(1e-3, 1.0, log=True)})
OTHERS = {"ranges": RANGES, "branch": BRANCH, "fewer": FEWER}


def value(point):
    if point["model"] == "tree":
        return 1.0 - abs(point["depth"] - 6) / 10
    return 0.5 - np.log10(point["lr"] / 0.05) ** 2 / 4


def some(**options):
    study = covey.Study(OLD, seed=4, **options)
    for _ in range(2):
        batch = study.ask(6)
        study.tell(batch, [value(trial.point) for trial in batch])
    return study


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_extending_and_taking_it_back_is_the_identity(other, tmp_path):
    path = tmp_path / "run.jsonl"
    untouched, without, kept = some(), some(), some(journal=path)
    for study in (without, kept):
        study.extend(other, "another space")
    kept.recommend()
    kept.extend(OLD, "as it was")
    assert kept.recommend() == untouched.recommend()
    expected = points_of(untouched.ask(4))
    assert points_of(covey.Study.load(path).ask(4)) == expected
    assert points_of(without.ask(4)) != expected  # the control
    for trial in without.history.pending:
        assert dict(trial.point) == other.check(trial.point)


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_points_of_the_new_space_have_the_coordinates_of_any_space(other):
    now = covering(other, OLD.decode(np.random.default_rng(1).random((40, OLD.width))))
    rows = other.snap(np.random.default_rng(0).random((40, other.width)))
    points = other.decode(rows)
    at = now.encode(points)
    assert np.array_equal(at[:, : other.width], other.encode(points))
    assert not at[:, other.width :].any()
    assert np.array_equal(at, now.snap(at))


def test_a_branch_that_is_gone_stays_in_the_model_without_what_it_alone_had():
    points = [
        {"model": "tree", "depth": 3},
        {"model": "tree", "depth": 9},
        {"model": "net", "lr": 1.0},
    ]
    u = covering(FEWER, points).encode(points)
    assert u.tolist() == [[0.0, 0.5, 1.0], [0.0, 0.5, 1.0], [1.0, 1.0, 0.0]]
    study = some()
    study.extend(FEWER, "nets only")
    assert study.recommend().point["model"] == "net"
    assert study.best.point["model"] == "tree"  # what was measured
    assert study.history.to_frame()["depth"].notna().any()


def test_a_parameter_may_go_only_with_its_branch():
    alone = Space({"model": OLD.parameters["model"], "lr": OLD.parameters["lr"]})
    with pytest.raises(SpaceError, match=r"'depth' is gone, and its branch is not: trial \d+ had"):
        some().extend(alone, "no depth")
    study = covey.Study(OLD, seed=0)
    study.add([{"model": "net", "lr": 0.1}], [1.0])  # no tree so far: nothing depends on it
    study.extend(alone, "no depth")
    assert study.space == alone


def test_a_new_conditional_parameter_needs_a_value_in_its_branch_only(tmp_path):
    path = tmp_path / "run.jsonl"
    study = some(journal=path)
    leaf = Space({**OLD.parameters, "leaf": Integer(1, 50, when=TREE)})
    before = path.read_bytes()
    trees = [t.id for t in study.history if t.point["model"] == "tree"]
    assert 0 < len(trees) < len(study.history)
    with pytest.raises(SpaceError, match=rf"'leaf' is present now in {len(trees)} trials of befo"):
        study.extend(leaf, "leaves")
    assert path.read_bytes() == before
    study.extend(leaf, "leaves", values={"leaf": 5})
    again = covey.Study.load(path)
    for one in (study, again):
        assert [t.id for t in one.history if t.point.get("leaf") == 5] == trees
        assert all("leaf" not in t.point for t in one.history if t.id not in trees)
    twin = some()
    twin.extend(leaf, "leaves", values={"leaf": 5})
    assert points_of(again.ask(4)) == points_of(twin.ask(4))
    study.refresh()
    # Nets have none so far; what they had is asked for again, since 5 was said of trees.
    study.cancel(study.history.pending)
    every = Space({**leaf.parameters, "leaf": Integer(1, 50)})
    with pytest.raises(SpaceError, match="'leaf' is present now in"):
        study.extend(every, "leaves everywhere")
    study.extend(every, "leaves everywhere", values={"leaf": 7})
    assert {t.point["leaf"] for t in study.history if t.id in trees and t.id < 12} == {5}
    assert {t.point["leaf"] for t in study.history if t.point["model"] == "net"} >= {7}


def test_values_of_branches_that_exclude_each_other():
    study = some()
    both = Space(
        {
            **OLD.parameters,
            "leaf": Integer(1, 50, when=TREE),
            "way": Choice(["sgd", "adam"], when=NET),
            "decay": Real(0, 1, when={"way": "adam"}),
        }
    )
    study.extend(both, "more of both", values={"leaf": 5, "way": "adam", "decay": 0.1})
    for trial in study.history:
        assert both.check(trial.point) == dict(trial.point)  # also decay, below a new parent
    study.ask(3)


def test_a_parameter_that_becomes_conditional_leaves_the_model_where_it_is_absent():
    plain = Space({"model": Choice(["tree", "net"]), "lr": Real(1e-3, 1.0, log=True)})
    study = covey.Study(plain, seed=0)
    points = [{"model": m, "lr": lr} for m in ("tree", "net") for lr in (0.01, 0.1, 1.0)]
    study.add(points, [3.0, 3.1, 2.9, 1.0, 2.0, 1.5])
    only = Space({**plain.parameters, "lr": Real(1e-3, 1.0, log=True, when=NET)})
    study.extend(only, "trees have no rate")
    u = study.space.encode([t.point for t in study.history])
    assert (u[:3] == u[0]).all()
    assert len(np.unique(u[3:], axis=0)) == 3
    assert study.history[0].point["lr"] == 0.01  # as it was told
    assert dict(study.recommend().point) == {"model": "tree"}
    with pytest.raises(SpaceError, match="present only when model is 'net'"):
        study.enqueue([{"model": "tree", "lr": 0.1}])
    for trial in study.ask(4):
        assert only.check(trial.point) == dict(trial.point)


def test_a_point_that_lacks_a_parameter_has_no_coordinates():
    with pytest.raises(SpaceError, match="'lr'"):
        covering(BRANCH, []).encode([{"model": "net"}])
    study = some()
    study.extend(BRANCH, "neighbours")
    with pytest.raises(SpaceError, match="'k' is present only when model is 'knn'"):
        study.predict([{"model": "net", "lr": 0.1, "k": 3}])


def test_pending_trials_that_would_be_impossible_are_named():
    study = covey.Study(OLD, seed=0)
    study.enqueue([{"model": "tree", "depth": 1}, {"model": "net", "lr": 0.1}])
    with pytest.raises(HistoryError, match=r"1 pending trial \(0\).*cancel it first"):
        study.extend(FEWER, "nets only")
    study.cancel(0)
    study.extend(FEWER, "nets only")
    study.tell(1, 1.0)


def test_all_options_that_are_left_named_is_not_always():
    """Trees lack a rate; that only nets are left, which all have one, gives them none."""
    study = some()
    study.extend(FEWER, "nets only")
    assert study.space.presence is None
    assert all("lr" not in t.point for t in study.history if t.point["model"] == "tree")
    with pytest.raises(SpaceError, match="'lr' is present now in"):
        some().extend(NEVER, "always")


def test_the_change_is_said_in_words():
    from covey.space.changes import differences

    assert differences(OLD, BRANCH) == [
        "model: new 'knn'",
        "k: new, integer, 1 to 9, when model is 'knn'",
    ]
    assert differences(OLD, NEVER) == ["lr: present always (was when model is 'net')"]
    assert differences(OLD, FEWER) == ["model: gone 'tree'", "depth: gone"]


def test_objects_in_conditions_are_refused():
    kinds = [object, int]
    then = Space({"c": Choice(kinds), "x": Real(0, 1, when={"c": [int]})})
    study = covey.Study(then, seed=0)
    with pytest.raises(SpaceError, match="options of 'c' that are objects"):
        study.extend(Space({**then.parameters, "x": Real(0, 2, when={"c": [int]})}), "wider")
