import numpy as np
import pytest

import covey
from covey.advice import predict, recommend_anywhere, recommend_told
from covey.gp import GP, Recall
from covey.history import Added, History, Point
from covey.learn import LastModel, Recipe, understand
from covey.outcomes import Outcomes

SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})


@pytest.mark.parametrize(("goal", "sign"), [("max", 1.0), ("min", -1.0)])
def test_advice_in_the_users_sign(goal, sign):
    xs = np.linspace(0.0, 1.0, 9)
    points = tuple(Point(x=float(x)) for x in xs)
    values = tuple(sign * (10.0 - (x - 0.4) ** 2) for x in xs)
    recipe = Recipe(SPACE, Outcomes.of(goal), GP(), 0)
    history = History().then(Added(points, values))
    posterior = understand(history, recipe, np.random.default_rng(0))
    assert predict(posterior, recipe, (points[3],)).mean[0] == pytest.approx(values[3], abs=0.01)
    told = recommend_told(posterior, recipe, history)
    assert told.trial is not None
    assert told.trial.id == 3
    assert told.mean == pytest.approx(values[3], abs=0.01)
    anywhere = recommend_anywhere(posterior, recipe)
    assert anywhere.trial is None
    assert anywhere.point["x"] == pytest.approx(0.4, abs=0.03)


def test_with_noise_the_recommendation_is_not_the_luckiest():
    """One lucky outlier beside a solid plateau of replicates."""
    points = (*(Point(x=0.2),) * 6, *(Point(x=0.8),) * 6)
    values = (0.0, 0.1, -0.1, 0.05, -0.05, 1.6, 1.0, 1.1, 0.9, 1.05, 0.95, 1.0)
    history = History().then(Added(points, values))
    recipe = Recipe(SPACE, Outcomes.of("max"), GP(), 0)
    posterior = understand(history, recipe, np.random.default_rng(0))
    assert history.best("max").point == {"x": 0.2}
    assert recommend_told(posterior, recipe, history).point == {"x": 0.8}


def test_a_pool_recommends_one_of_its_rows():
    pool = covey.Pool([{"a": i / 9, "name": f"row {i}"} for i in range(10)], labels=["name"])
    history = History().then(Added((Point(a=0.0), Point(a=4 / 9), Point(a=1.0)), (0.0, 1.0, 0.2)))
    recipe = Recipe(pool, Outcomes.of("max"), GP(), 0)
    posterior = understand(history, recipe, np.random.default_rng(0))
    assert recommend_anywhere(posterior, recipe).point["name"].startswith("row ")


def test_a_model_is_kept_until_the_log_grows():
    recipe = Recipe(SPACE, Outcomes.of("max"), GP(), 0)
    history = History().then(Added((Point(x=0.2), Point(x=0.7)), (0.0, 1.0)))
    last = LastModel(recipe)
    first = last.of(history)
    assert last.of(history) is first
    grown = last.of(history.then(Added((Point(x=0.5),), (2.0,))))
    assert grown is not first
    assert len(grown.data.at) == 3


def test_a_shared_recall_changes_no_advice():
    recipe = Recipe(SPACE, Outcomes.of("max"), GP(), 0)
    alone, together = LastModel(recipe), LastModel(recipe)
    alone.recall, together.recall = Recall(many=5), Recall(many=5)
    points = tuple(Point(x=i / 11) for i in range(12))
    history = History().then(Added(points, tuple(np.sin(5.0 * p["x"]) for p in points)))
    rng = np.random.default_rng(0)
    understand(history, recipe, rng, recall=together.recall).belief(SPACE.encode(points))
    plain, shared = (last.of(history) for last in (alone, together))
    for ours, theirs in zip(
        predict(shared, recipe, points), predict(plain, recipe, points), strict=True
    ):
        assert np.array_equal(ours, theirs)


def told_through(noise_of, seed, goal="min"):
    """Eighty looks at exp(2(x - 0.3)²), each times a factor."""
    rng = np.random.default_rng(seed)
    study = covey.Study(SPACE, goal, seed=seed)
    xs = rng.random(80)
    values = np.exp(2.0 * (xs - 0.3) ** 2) * noise_of(rng)
    study.add([{"x": float(x)} for x in xs], values)
    return study


def test_under_a_bend_the_prediction_is_the_mean_and_not_the_median():
    """Log-normal noise of mean e^0.32: over six studies the mean is met, the median is far off."""
    at = np.linspace(0.0, 1.0, 11)
    median = np.exp(2.0 * (at - 0.3) ** 2)
    off_mean, off_median = [], []
    for seed in range(6):
        study = told_through(lambda rng: np.exp(0.8 * rng.standard_normal(80)), seed)
        mean, _ = study.predict([{"x": float(x)} for x in at])
        off_mean.append(np.mean(mean - np.exp(0.32) * median))
        off_median.append(np.mean(mean - median))
    assert abs(np.mean(off_mean)) < 0.15
    assert np.mean(off_median) > 0.3
    best = study.recommend()
    assert best.mean == pytest.approx(study.predict([best.point]).mean[0])
