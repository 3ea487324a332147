"""Laws of mixtures, through a whole study."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from scipy.stats import kstest

import covey
from covey.catalog import STRATEGIES
from covey.errors import ExhaustedError
from covey.space.flat import Flat, with_one_changed

NAMES = ("a", "b", "c")
SHARES = {name: covey.Real(0, 1) for name in NAMES}


def told(space, f, start=10, **options):
    study = covey.Study(space, seed=3, **options)
    first = study.ask(start)
    study.tell(first, [f(trial.point) for trial in first])
    return study


def bowl(point):
    return -sum((point[name] - x) ** 2 for name, x in zip(NAMES, (0.2, 0.5, 0.3), strict=True))


def test_a_mixture_of_two_parts_is_a_line():
    """What is drawn of it is what a single Real would be: uniform, and the other part the rest."""
    space = covey.Space({"a": covey.Real(0, 1), "b": covey.Real(0, 1)}, [covey.Mixture(["a", "b"])])
    at = Flat(space, {}).draw(2000, np.random.default_rng(0))
    np.testing.assert_allclose(at[:, 0], 1.0 - at[:, 1], atol=1e-15)
    assert kstest(at[:, 0], "uniform").pvalue > 1e-3
    line = covey.Space({"a": covey.Real(0, 1)})
    peak = told(space, lambda p: -((p["a"] - 0.37) ** 2)).recommend(anywhere=True)
    same = told(line, lambda p: -((p["a"] - 0.37) ** 2)).recommend(anywhere=True)
    assert peak.point["a"] == pytest.approx(same.point["a"], abs=0.02)


@pytest.mark.parametrize("step", [None, 0.01, 0.005])
def test_encode_and_decode_are_inverse_on_what_is_asked(step):
    space = covey.Space(SHARES, [covey.Mixture(NAMES, parts=(1, 2), least=0.02, step=step)])
    study = told(space, bowl)
    points = [dict(trial.point) for trial in study.history.trials]
    back = space.decode(space.encode(points))
    for point, again in zip(points, back, strict=True):
        assert space.check(point) == point
        if step is not None:
            assert again == point
            assert sum(Decimal(repr(x)) for x in point.values()) == 1
        assert list(again.values()) == pytest.approx(list(point.values()), abs=1e-15)


SLOW = {"thompson", "dpp-ts"}  # joint draws at thousands of candidates


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - SLOW))
def test_every_strategy_stays_on_the_mixture(strategy):
    space = covey.Space(
        {**SHARES, "T": covey.Real(20, 80), "kind": covey.Choice(["u", "v"])},
        [covey.Mixture(NAMES, parts=(1, 2), least=0.05), covey.Linear({"a": 1, "b": 1}, lower=0.3)],
    )
    study = told(space, lambda p: bowl(p) - abs(p["T"] - 50) / 60, strategy=strategy)
    for trial in study.ask(4):
        assert space.check(trial.point) == trial.point


def test_the_best_is_found_on_the_mixture_and_not_beside_it():
    """The best point anywhere keeps the constraint, where others have forgotten it."""
    space = covey.Space(SHARES, [covey.Mixture(NAMES)])
    study = told(space, bowl)
    for _ in range(2):
        batch = study.ask(5)
        study.tell(batch, [bowl(trial.point) for trial in batch])
    best = study.recommend(anywhere=True).point
    assert sum(best.values()) == pytest.approx(1.0, abs=1e-12)
    assert list(best.values()) == pytest.approx([0.2, 0.5, 0.3], abs=0.02)


def test_a_batch_is_a_function_of_seed_and_results():
    space = covey.Space(SHARES, [covey.Mixture(NAMES), covey.Linear({"a": 1, "b": -1}, 0.1, 0.1)])
    one, other = (told(space, bowl) for _ in range(2))
    assert [t.point for t in one.ask(3)] == [t.point for t in other.ask(3)]


def test_the_first_points_are_spread_out_and_go_on():
    space = covey.Space(SHARES, [covey.Mixture(NAMES)])
    study = covey.Study(space, seed=0)
    first = np.array([list(t.point.values()) for t in [*study.ask(6), *study.ask(6)]])
    gaps = np.linalg.norm(first[:, None] - first, axis=2) + 9.0 * np.eye(12)
    drawn = Flat(space, {}).draw(12 * 50, np.random.default_rng(0)).reshape(50, 12, 3)
    chance = [(np.linalg.norm(x[:, None] - x, axis=2) + 9.0 * np.eye(12)).min() for x in drawn]
    assert gaps.min() > np.quantile(chance, 0.98)


@pytest.mark.parametrize("beside", [0, 3])
def test_the_first_points_have_each_number_of_parts_as_often(beside):
    """Distances alone would take pure components first, since these are the farthest apart."""
    names = "abcde"
    ranges = {name: covey.Real(0, 1) for name in names}
    others = {f"x{i}": covey.Real(0, 1) for i in range(beside)}
    where = [covey.Mixture(list(names), parts=(1, 4), step=0.01)]
    study = covey.Study(covey.Space({**ranges, **others}, where), seed=0)
    for batch in (study.ask(8), study.ask(6), study.ask(2)):
        counts = [sum(trial.point[name] > 0.0 for name in names) for trial in batch]
        often = [counts.count(m) for m in (1, 2, 3, 4)]
        assert max(often) - min(often) <= 1
    counts = [sum(t.point[name] > 0.0 for name in names) for t in study.history.trials]
    assert [counts.count(m) for m in (1, 2, 3, 4)] == [4, 4, 4, 4]


def test_a_finite_mixture_ends_honestly():
    space = covey.Space(SHARES, [covey.Mixture(NAMES, parts=(1, 2), step=0.25)])
    assert space.size == 12
    study = covey.Study(space, seed=0)
    points = {tuple(t.point.values()) for t in [*study.ask(5), *study.ask(7)]}
    assert len(points) == 12
    with pytest.raises(ExhaustedError, match="before: 0") as caught:
        study.ask(1)
    assert caught.value.left == 0


def test_a_fixed_part_leaves_the_rest_to_the_others():
    space = covey.Space(SHARES, [covey.Mixture(NAMES)])
    study = told(space, bowl)
    for trial in study.ask(4, fixed={"a": 0.6}):
        assert trial.point["a"] == 0.6
        assert trial.point["b"] + trial.point["c"] == pytest.approx(0.4, abs=1e-12)


def test_points_off_by_rounding_are_added_and_enqueued():
    space = covey.Space(SHARES, [covey.Mixture(NAMES, step=0.1)])
    study = covey.Study(space, seed=0)
    study.add([{"a": 0.1 + 0.2, "b": 0.7, "c": 0.0}], [1.0])
    (queued,) = study.enqueue([{"a": 0.1, "b": 0.2, "c": 1 - 0.1 - 0.2}])
    assert study.history.told[0].point == {"a": 0.3, "b": 0.7, "c": 0.0}
    assert queued.point == {"a": 0.1, "b": 0.2, "c": 0.7}


def test_a_study_of_a_mixture_is_loaded_from_its_journal(tmp_path):
    where = [covey.Mixture(NAMES, parts=(1, 3), least=0.05, step=0.01)]
    path = tmp_path / "run.jsonl"
    study, beside = (
        covey.Study(covey.Space(SHARES, where), seed=1, journal=log) for log in (path, None)
    )
    for each in (study, beside):
        first = each.ask(8)
        each.tell(first, [bowl(t.point) for t in first])
    again = covey.Study.load(path)
    assert again.space == study.space
    assert [t.point for t in again.ask(3)] == [t.point for t in beside.ask(3)]


def test_several_goals_are_traded_off_on_the_mixture():
    space = covey.Space(SHARES, [covey.Mixture(NAMES, parts=(1, 2), least=0.1)])
    study = covey.Study(space, goal={"y": "max", "z": "min"}, seed=0)
    for _ in range(3):
        batch = study.ask(6)
        told = [{"y": t.point["a"] - t.point["b"] ** 2, "z": t.point["a"] ** 2} for t in batch]
        study.tell(batch, told)
    best = study.recommend(anywhere=True).point
    assert space.check(best) == best


def test_a_slice_moves_only_what_is_tied_even_where_the_best_lies_outside():
    """A best point from before the space was narrowed: its T is at nine times what is left."""

    def space(high):
        ranges = {"a": covey.Real(0, 1), "b": covey.Real(0, 1), "T": covey.Real(20, high)}
        return covey.Space(ranges, [covey.Mixture(["a", "b"])])

    study = covey.Study(space(120), seed=0)
    study.add([{"a": 0.5, "b": 0.5, "T": 110.0}], [1.0])
    study.extend(space(30), "it boils")
    at = with_one_changed(study.space, study.best.point, "a", [0.4, 0.5, 0.6])
    np.testing.assert_allclose(at, [[0.4, 0.6, 9.0], [0.5, 0.5, 9.0], [0.6, 0.4, 9.0]], atol=1e-12)
