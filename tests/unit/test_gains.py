"""What a batch is expected to gain, and whether to stop."""

import numpy as np
import pytest

import covey
from covey import Choice, Pool, Real, Space
from covey.errors import ExhaustedError, HistoryError, StrategyError
from covey.gains import expected_gains, sizes_up_to
from covey.gp import GP
from covey.learn import Recipe
from covey.outcomes import Outcomes
from covey.outlook import outlook

SPACE = Space({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)})


def bowl(point, scale: float = 1.0) -> float:
    return -scale * ((point["x"] - 0.3) ** 2 + (point["y"] - 0.6) ** 2)


def after(rounds: int, goal: str = "max", **options) -> covey.Study:
    study = covey.Study(SPACE, goal=goal, seed=1, **options)
    sign = 1.0 if goal == "max" else -1.0
    for _ in range(rounds):
        batch = study.ask(6)
        study.tell(batch, [sign * bowl(trial.point) for trial in batch])
    return study


def test_sizes_double_up_to_the_largest():
    assert sizes_up_to(1) == [1]
    assert sizes_up_to(8) == [1, 2, 4, 8]
    assert sizes_up_to(9) == [1, 2, 4, 8, 9]


def test_a_larger_batch_gains_no_less():
    found = after(2).advice(up_to=16)
    gains = [gain.gain for gain in found.gains]
    assert [gain.size for gain in found.gains] == [1, 2, 4, 8, 16]
    assert gains == sorted(gains)
    assert gains[0] > 0.0
    assert found.gains[-1].share == 1.0
    assert found.size in [gain.size for gain in found.gains]
    information = [gain.information for gain in found.gains]
    assert information == sorted(information)


def test_a_known_summit_says_stop_and_a_fresh_study_does_not():
    assert not after(2).advice(up_to=4).stop
    done = after(9).advice(up_to=4)
    assert done.stop
    assert done.chance < 0.05
    assert "time to stop" in str(done)
    wrong, times = done.wrong_stops
    assert times > 0
    assert f"it was wrong to stop {wrong} times of {times}" in str(done)


def test_minimising_mirrors_maximising():
    high, low = after(2).advice(up_to=4), after(2, "min").advice(up_to=4)
    for one, other in zip(high.gains, low.gains, strict=True):
        assert one.gain == pytest.approx(other.gain, rel=1e-6)
        assert one.expected_best == pytest.approx(-other.expected_best, rel=1e-6)


def test_the_gain_agrees_with_brute_force():
    """Of one new point beside one known, E[max(f_1, f_0)] - E[f_0] has a closed form."""
    from scipy.stats import norm

    study = covey.Study(SPACE, seed=0, gp=GP(warp=False))
    points = [{"x": 0.1, "y": 0.1}]
    study.add(points, [0.5])
    ahead = outlook(study.history, Recipe(SPACE, Outcomes.of("max"), GP(warp=False, noise=0.3), 0))
    new = [{"x": 0.3, "y": 0.2}]
    (gain,) = expected_gains(ahead, [new])
    (posterior,) = ahead.goals
    exact = []
    for member in posterior.belief(SPACE.encode(points + new)).members:
        cov = member.columns([0, 1])
        spread = np.sqrt(cov[0, 0] + cov[1, 1] - 2.0 * cov[0, 1])
        more = member.mean[1] - member.mean[0]
        exact.append(more * norm.cdf(more / spread) + spread * norm.pdf(more / spread))
    assert len(exact) > 1  # hyper-parameters are uncertain
    assert gain.gain == pytest.approx(posterior.data.scale * np.mean(exact), rel=0.06)


def test_points_under_way_are_not_gained_twice():
    study = after(2)
    before = study.advice(up_to=4).gains[-1].gain
    study.ask(12)
    assert study.advice(up_to=4).gains[-1].gain < before


def test_a_finite_space_has_no_more_than_is_left():
    pool = Pool([{"x": float(i)} for i in range(12)])
    study = covey.Study(pool, seed=0)
    study.add([{"x": float(i)} for i in range(5)], [float(i) for i in range(5)])
    assert study.advice(up_to=96).gains[-1].size == 7


def test_mixed_spaces_and_strategies_without_a_model():
    space = Space({"x": Real(0.0, 1.0), "kind": Choice(["a", "b"])})
    study = covey.Study(space, seed=0, strategy="random")
    batch = study.ask(6)
    study.tell(batch, [float(np.sin(9.0 * trial.point["x"])) for trial in batch])
    assert study.advice(up_to=8).gains[-1].gain > 0.0


def test_advice_changes_nothing_and_repeats_itself():
    study = after(2)
    events = len(study.history.events)
    assert study.advice(up_to=4) == study.advice(up_to=4)
    assert len(study.history.events) == events
    assert [t.point for t in study.ask(3)] == [t.point for t in after(2).ask(3)]


@pytest.mark.parametrize("worth", [0.0, -1.0, float("nan"), float("inf"), "much", True])
def test_worth_is_a_positive_number(worth):
    with pytest.raises(StrategyError, match="least gain that counts"):
        after(2).advice(up_to=2, worth=worth)


def test_worth_decides_when_to_stop():
    study = after(4)
    assert study.advice(up_to=2, worth=1e-12).chance >= study.advice(up_to=2, worth=10.0).chance
    assert study.advice(up_to=2, worth=10.0).stop


def test_without_results_there_is_no_advice():
    with pytest.raises(HistoryError, match="nothing has been told"):
        covey.Study(SPACE, seed=0).advice()


def test_a_batch_that_is_likely_to_fail_gains_less():
    def foretold(fails: bool) -> float:
        study = after(2)
        trials = study.enqueue([{"x": x, "y": y} for x in (0.2, 0.3, 0.4) for y in (0.5, 0.6, 0.7)])
        (study.fail if fails else study.cancel)(trials)
        points = [{"x": 0.31, "y": 0.61}, {"x": 0.28, "y": 0.58}]
        return expected_gains(outlook(study.history, study.recipe), [points])[0].gain

    assert foretold(fails=True) < 0.7 * foretold(fails=False)


def rising_into_failures(rounds: int) -> covey.Study:
    study = covey.Study(Space({"heat": Real(0.0, 1.0)}), seed=0)
    for _ in range(rounds):
        for trial in study.ask(6):
            heat = trial.point["heat"]
            study.fail(trial, "hot") if heat > 0.5 else study.tell(trial, heat)
    return study


def test_what_would_fail_is_no_chance_of_more():
    assert rising_into_failures(7).advice(up_to=2, worth=0.1).chance < 0.5


def test_points_under_way_that_would_fail_are_not_counted_on():
    study = rising_into_failures(5)
    before = study.advice(up_to=2).gains[-1].expected_best
    study.enqueue([{"heat": 0.9}, {"heat": 1.0}])
    assert study.advice(up_to=2).gains[-1].expected_best < before + 0.2


def test_points_under_way_may_be_better():
    study = covey.Study(Space({"a": covey.Integer(0, 40)}), seed=0)
    study.add([{"a": a} for a in range(28)], [float(a) for a in range(28)])
    study.enqueue([{"a": a} for a in range(29, 41)])
    assert study.advice(up_to=1, worth=2.0).chance > 0.9


def test_a_space_that_is_used_up_has_no_batch_left():
    study = covey.Study(Space({"a": covey.Integer(0, 4)}), seed=0)
    for trial in study.ask(5):
        study.tell(trial, float(trial.point["a"]))
    with pytest.raises(ExhaustedError, match="no batch left"):
        study.advice(up_to=4)


@pytest.mark.parametrize("size", [0, -3, 2.5, 100_000_000, "96", True])
def test_the_largest_batch_is_a_number_of_points(size):
    with pytest.raises(StrategyError, match="up_to is the largest batch"):
        after(2).advice(up_to=size)


def test_expected_best_is_the_gain_above_one_baseline():
    gains = after(2).advice(up_to=8).gains
    baseline = {round(gain.expected_best - gain.gain, 9) for gain in gains}
    assert len(baseline) == 1


def test_stopping_takes_more_than_three_batches():
    assert not after(1).advice(up_to=2, worth=50.0).stop
