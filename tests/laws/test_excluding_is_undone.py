"""Excluding results: they are as if never told, and including them again is the identity."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.play import SPACE, f, play, points_of

import covey
from covey.errors import ExhaustedError, HistoryError
from covey.gp import Recall
from covey.history import Asked, Excluded, History, Told
from covey.learn import understand

MIXED = covey.Space(
    {
        "x": covey.Real(0.0, 1.0),
        "n": covey.Integer(1, 6),
        "c": covey.Choice(["a", "b", "c"]),
    }
)
POOL = covey.Pool([{"x": i / 40, "y": (i * 7 % 41) / 40} for i in range(41)])


def value(point):
    extra = {"a": 0.0, "b": 0.3, "c": -0.4}.get(point.get("c"), 0.0)
    return float(np.sin(5 * point["x"]) + point.get("y", point.get("n", 0) / 6) + extra)


def some(space, strategy, **options):
    """A study with results, a failure and a pending trial."""
    study = covey.Study(space, strategy=strategy, seed=4, **options)
    for _ in range(2):
        batch = study.ask(5)
        study.tell(batch, [value(trial.point) for trial in batch])
    study.fail(study.ask(1), "too hot")
    study.ask(1)
    return study


@pytest.mark.parametrize("space", [SPACE, MIXED, POOL], ids=["reals", "mixed", "pool"])
@pytest.mark.parametrize("strategy", ["auto", "ucb-dpp-max", "ucb-pe"])
def test_excluding_and_including_is_the_identity(space, strategy):
    ids = [9, 2, 5]
    untouched, back, without = (some(space, strategy) for _ in range(3))
    back.exclude(ids, "wrong vial")
    back.recommend()  # which may keep a model of it
    back.include(ids[:1], "right vial")
    back.include(ids[1:], "right vial")
    without.exclude(ids, "wrong vial")
    assert back.history.trials == untouched.history.trials
    assert back.best == untouched.best
    assert back.recommend() == untouched.recommend()
    expected = points_of(untouched.ask(4))
    assert points_of(back.ask(4)) == expected
    assert points_of(without.ask(4)) != expected  # the control: excluding changes the batch


def test_an_excluded_result_is_as_if_it_had_never_been_told():
    """The model is the one of a study whose trial was withdrawn, bit for bit."""
    studies = [covey.Study(SPACE, seed=1) for _ in range(3)]
    for study in studies:
        batch = study.ask(12)
        study.tell(batch[:11], [f(trial.point) for trial in batch[:11]])
    excluded, cancelled, kept = studies
    excluded.tell(11, 50.0)
    kept.tell(11, 50.0)
    cancelled.cancel(11)
    excluded.exclude(11, "a fat finger")
    at = [{"x": 0.1 * i, "y": 0.5} for i in range(10)]
    for mine, theirs in zip(excluded.predict(at), cancelled.predict(at), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert not np.array_equal(excluded.predict(at).mean, kept.predict(at).mean)
    assert excluded.best == cancelled.best
    assert excluded.recommend() == cancelled.recommend()
    assert kept.best.id == 11


def test_an_excluded_point_is_not_proposed_again():
    pool = covey.Pool([{"x": i / 9} for i in range(10)])
    study = covey.Study(pool, seed=0)
    batch = study.ask(6)
    study.tell(batch, [trial.point["x"] for trial in batch])
    study.exclude(batch[:3], "wet")
    assert {t.point["x"] for t in study.ask(4)}.isdisjoint(t.point["x"] for t in batch)
    with pytest.raises(ExhaustedError):
        study.ask(1)
    study.exclude(batch[3:], "all wet")
    with pytest.raises(ExhaustedError):
        study.ask(1)


@pytest.mark.parametrize("space", [SPACE, POOL], ids=["reals", "pool"])
def test_with_all_excluded_a_batch_is_a_design_as_with_nothing_told(space):
    excluded, cancelled = (covey.Study(space, seed=2) for _ in range(2))
    batch = excluded.ask(5)
    excluded.tell(batch, range(5))
    excluded.exclude(batch, "the reader was off")
    cancelled.ask(5)
    assert excluded.best is None
    with pytest.raises(HistoryError, match="Tell at least one value or include one again first"):
        excluded.recommend()
    first = excluded.ask(4)
    if space is SPACE:  # the next points of the same sequence
        assert points_of(first) == points_of(cancelled.ask(4))
    events = excluded.history.events
    assert events[-1].models is None


def test_the_log_alone_decides(tmp_path):
    """Live, loaded, and cut after each event, the same events give the same batch."""
    path = tmp_path / "run.jsonl"
    live = play(covey.Study(SPACE, seed=3, journal=path), rounds=3, k=4)
    live.exclude([1, 4, 7], "wet")
    live.predict([{"x": 0.5, "y": 0.5}])
    live.include([4], "dry")
    live.fail(live.ask(1), "a typo")
    live.retry(12)
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(path.read_bytes())
    loaded = covey.Study.load(copy)
    assert loaded.history.trials == live.history.trials
    assert loaded.history.trial(12).status == "pending"
    assert points_of(loaded.ask(4)) == points_of(live.ask(4))


def test_a_recalled_factor_of_more_results_changes_nothing():
    """With many results factors are kept between asks; one of excluded rows must not be used."""
    rng = np.random.default_rng(0)
    points = [{"x": float(x), "y": float(y)} for x, y in rng.random((40, 2))]
    recipe = covey.Study(SPACE, seed=0).recipe
    all_in = History([Asked(tuple(points), "random"), Told(range(40), [f(p) for p in points])])
    out = all_in.then(Excluded((3, 17, 39), "wet"))
    recall = Recall(many=5, block=4)
    understand(all_in, recipe, np.random.default_rng(0), recall=recall)
    used = understand(out, recipe, np.random.default_rng(0), recall=recall)
    fresh = understand(out, recipe, np.random.default_rng(0), recall=Recall(many=5, block=4))
    at = rng.random((6, 2))
    np.testing.assert_array_equal(used.belief(at).mean, fresh.belief(at).mean)
    np.testing.assert_array_equal(used.belief(at).std, fresh.belief(at).std)


@pytest.mark.parametrize(
    ("verb", "words", "said"),
    [
        ("exclude", ([12], "x"), "trial 12 is failed, and only a result is excluded"),
        ("exclude", ([13], "x"), "trial 13 is pending, .* cancel it"),
        ("exclude", ([0, 99], "x"), "trial 99 was never asked; ids so far are 0 to 13"),
        ("exclude", ([0, 0], "x"), "trial 0 was given twice"),
        ("exclude", ([0], " "), "reason must not be empty"),
        ("exclude", ([], "x"), "no trial was given"),
        ("include", ([0], "x"), "trial 0 is not excluded"),
        ("retry", ([12, 0],), "trial 0 is told; only a failed trial is retried"),
        ("retry", ([13],), "trial 13 is pending; .* still to be run"),
        ("retry", ([99],), "trial 99 was never asked"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_recorded(verb, words, said, tmp_path):
    path = tmp_path / "run.jsonl"
    study = play(covey.Study(SPACE, seed=3, journal=path), rounds=3, k=4)
    study.fail(study.ask(1))
    study.ask(1)
    before = path.read_bytes()
    with pytest.raises(HistoryError, match=said):
        getattr(study, verb)(*words)
    assert path.read_bytes() == before


def test_keys_take_each_message_once(tmp_path):
    study = play(covey.Study(SPACE, seed=3, journal=tmp_path / "run.jsonl"), rounds=1, k=4)
    for _ in range(2):
        study.exclude([1], "wet", key="note 7")
    with pytest.raises(HistoryError, match="'note 7' was used before"):
        study.exclude([2], "wet", key="note 7")
    lines = (tmp_path / "run.jsonl").read_text().splitlines()
    assert [json.loads(line).get("type") for line in lines].count("excluded") == 1
