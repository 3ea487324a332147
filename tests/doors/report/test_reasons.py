import pytest

import covey
from covey.history import Asked, Point, Trial
from covey.report.card import LEAST_CHANCE, MEANING, reason, repeats
from covey.report.predictions import Forecast, PastForecast, past_forecasts


def seen(chance):
    return PastForecast(Forecast(0.0, 1.0, (-0.7, 0.7), (-1.6, 1.6)), chance)


@pytest.mark.parametrize(
    ("origin", "repeated", "past", "word"),
    [
        ("asked", False, seen(LEAST_CHANCE), "exploit"),
        ("asked", False, seen(LEAST_CHANCE - 1e-9), "explore"),
        ("asked", False, None, "design"),
        ("asked", True, seen(0.9), "repeat"),
        ("enqueued", False, None, "yours"),
        ("enqueued", True, None, "repeat"),
        ("added", False, None, "added"),
    ],
)
def test_every_reason(origin, repeated, past, word):
    assert reason(Trial(0, Point(x=0.5), origin=origin), repeated, past) == word
    assert word in MEANING


def test_repeats_are_of_points_looked_at(line):
    line.add([{"x": 0.5}, {"x": 0.5}], [1.0, 2.0])
    (free,) = line.enqueue([{"x": 0.7}])
    line.cancel(free)
    line.enqueue([{"x": 0.5}, {"x": 0.7}, {"x": 0.7}])
    trials = line.history.trials
    assert repeats(line.space, trials, range(len(trials))) == {1, 3, 5}
    assert repeats(line.space, trials, [3, 4]) == {3}


def test_a_label_does_not_make_another_point():
    pool = covey.Pool([{"t": 1, "name": "a"}, {"t": 2, "name": "b"}], labels=["name"])
    study = covey.Study(pool, seed=0)
    study.add([{"t": 1}], [1.0])
    study.enqueue([{"t": 1, "name": "a"}, {"t": 2}])
    assert repeats(pool, study.history.trials, [1, 2]) == {1}


def test_a_point_near_the_best_exploits_and_one_far_away_explores():
    space = covey.Space({"x": covey.Real(0.0, 1.0)})
    study = covey.Study(space, seed=0, gp=covey.GP(noise=0.05))
    study.add(
        [{"x": x / 20} for x in range(13)], [x / 20 - 2 * max(0.0, x / 20 - 0.5) for x in range(13)]
    )
    study.ask(1)
    models = study.history.models
    history = study.history.then(
        Asked((Point(x=0.51), Point(x=0.02), Point(x=1.0)), "auto", models)
    )
    found = past_forecasts(history, study.recipe, history.batches)
    words = [reason(history.trial(i), False, found[i]) for i in (14, 15, 16)]
    assert words[0] == "exploit"
    assert words[1] == "explore"
