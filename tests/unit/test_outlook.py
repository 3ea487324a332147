"""What points may be worth, where there are several goals or limits."""

import numpy as np
import pytest

import covey
from covey.gains import expected_gains
from covey.hypervolume import hypervolume
from covey.outlook import outlook

SPACE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})


def measured(point):
    return {"yield": point["x"], "cost": point["x"] ** 2 + (point["y"] - 0.4) ** 2}


def after(rounds, goal, limits=None, **options):
    study = covey.Study(SPACE, goal=goal, limits=limits, seed=0, **options)
    names = {*goal, *(limits or {})}
    for _ in range(rounds):
        batch = study.ask(6)
        study.tell(batch, [{n: measured(t.point)[n] for n in names} for t in batch])
    return study


GOALS = {"yield": "max", "cost": "min"}


def test_of_several_goals_a_larger_batch_gains_more_hypervolume():
    found = after(1, GOALS).advice(up_to=2)
    gains = [gain.gain for gain in found.gains]
    assert found.goals == 2
    assert 0.0 < gains[0] < gains[-1]
    assert "of hypervolume" in str(found)
    assert "adds to the hypervolume more than" in str(found)


def test_the_gain_is_that_of_exact_hypervolumes():
    study = after(1, GOALS, worst={"yield": 0.1, "cost": 0.9})
    ahead = outlook(study.history, study.recipe)
    points = [{"x": 0.8, "y": 0.4}, {"x": 0.4, "y": 0.4}]
    (gain,) = expected_gains(ahead, [points])
    values = ahead.drawn(np.vstack([ahead.known_at, SPACE.encode(points)]), 200)
    worst, told = np.zeros(2), len(ahead.known_at)
    exact = [hypervolume(v, worst) - hypervolume(v[:told], worst) for v in values]
    assert gain.gain == pytest.approx(ahead.span.prod() * np.mean(exact), rel=0.15)


def test_what_is_learnt_of_a_front_lowers_the_chance_of_more():
    few, many = (after(rounds, GOALS).advice(up_to=1, worth=0.02) for rounds in (1, 4))
    assert many.chance < 0.5 * few.chance


def test_the_order_of_goals_changes_nothing():
    turned = dict(reversed(GOALS.items()))
    assert after(1, GOALS).advice(up_to=1) == after(1, turned).advice(up_to=1)


def test_what_would_break_a_limit_is_no_chance_of_more():
    """The control: without the limit much is left."""
    limited = after(3, {"yield": "max"}, {"cost": ("<=", 0.25)})
    study = covey.Study(SPACE, seed=0)
    study.add([t.point for t in limited.history.told], [t.value for t in limited.history.told])
    kept = max(t.value for t in limited.history.told if measured(t.point)["cost"] <= 0.25)
    best = max(t.value for t in limited.history.told)
    assert kept < 0.55
    assert limited.advice(up_to=1, worth=0.1).chance < 0.1
    assert best > kept + 0.1 or study.advice(up_to=1, worth=0.1).chance > 0.5


def test_before_any_trial_keeps_the_limits_much_may_be_gained():
    study = covey.Study(SPACE, goal={"yield": "max"}, limits={"cost": ("<=", 0.25)}, seed=0)
    points = [{"x": x, "y": y} for x in (0.7, 0.8, 0.9, 1.0) for y in (0.8, 1.0)]
    study.add(points, [measured(point) for point in points])
    found = study.advice(up_to=2)
    assert found.chance > 0.1
    assert found.gains[-1].gain > 0.0
