"""Crashes told as a huge penalty cost no more than the points they spoil; results cost nothing."""

import numpy as np
import pytest

import covey
from covey.baselines import Hallucinated
from covey.gp import observations
from covey.policies import UCB

SPACE = covey.Space({f"x{i}": covey.Real(0.0, 1.0) for i in range(3)})


def bowl(point) -> float:
    return -sum((x - 0.3 - 0.2 * i) ** 2 for i, x in enumerate(point.values()))


def best_with_penalties() -> float:
    rng = np.random.default_rng(0)
    study, best = covey.Study(SPACE, seed=0), -np.inf
    for _ in range(7):
        batch = study.ask(6)
        values = [bowl(trial.point) for trial in batch]
        best = max(best, *values)
        study.tell(batch, [-1e6 if rng.random() < 0.1 else value for value in values])
    return best


def test_the_default_is_not_blinded():
    assert best_with_penalties() > -0.03


def test_taken_at_their_word_penalties_would_blind_it(monkeypatch):
    """The negative control."""
    monkeypatch.setattr(observations, "clipped_penalties", lambda values: values)
    assert best_with_penalties() < -0.05


def test_a_prediction_is_still_in_the_units_that_were_told():
    study = covey.Study(SPACE, seed=0)
    rng = np.random.default_rng(1)
    points = [dict(zip(SPACE.names, row, strict=True)) for row in rng.random((30, 3)).tolist()]
    values = [100.0 + bowl(point) for point in points]
    study.add([*points, {"x0": 0.9, "x1": 0.1, "x2": 0.1}], [*values, -1e6])
    assert study.predict([points[3]]).mean[0] == pytest.approx(values[3], abs=0.05)
    assert study.best.value == max(values)


def by_the_gap_alone(values):
    """The rule before: whatever lies ten ranges of the rest below it, alike or not."""
    ordered = np.sort(values)
    below = np.arange(1, len(values) // 4 + 1)
    ranges = ordered[-1] - ordered[below]
    apart = below[(ranges > 0.0) & (ordered[below] - ordered[below - 1] > 10.0 * ranges)]
    if len(apart) == 0:
        return values
    worst = ordered[apart[-1]]
    return np.maximum(values, worst - (ordered[-1] - worst))


CLUMPING = Hallucinated(UCB(beta=4.0))
LINE = covey.Space({"x": covey.Real(0.0, 1.0)})


def parabola(x: float) -> float:
    return -((x - 0.3) ** 2)


def wrong_rounds(seed: int) -> list[int]:
    """Rounds of a run that converges after which the model denies what it was told."""
    study, wrong = covey.Study(LINE, strategy=CLUMPING, seed=seed), []
    for round in range(12):
        batch = study.ask(4)
        study.tell(batch, [parabola(trial.point["x"]) for trial in batch])
        worst = min(study.history.told, key=lambda trial: trial.value)
        seen = study.predict([worst.point, {"x": 0.6}]).mean
        if np.abs(seen - [worst.value, parabola(0.6)]).max() > 0.1:
            wrong.append(round)
    return wrong


def test_a_run_that_converges_still_knows_its_first_results():
    assert [wrong_rounds(seed) for seed in range(2)] == [[], []]


def test_by_the_gap_alone_it_would_forget_them(monkeypatch):
    """The negative control: wrong in some rounds and right again in later ones."""
    monkeypatch.setattr(observations, "clipped_penalties", by_the_gap_alone)
    assert all(wrong_rounds(seed) for seed in range(2))


def prediction_after_scouting(scouts: int) -> np.ndarray:
    """Of a file of careful runs near a good setting, and some runs elsewhere."""
    rng = np.random.default_rng(0)
    elsewhere = rng.uniform(0.0, 0.8, scouts)  # of what is left without the neighbourhood of 0.3
    x = [*rng.uniform(0.295, 0.305, 100), *np.where(elsewhere < 0.2, elsewhere, elsewhere + 0.2)]
    study = covey.Study(LINE, seed=0)
    study.add([{"x": at} for at in x], [parabola(at) for at in x])
    return study.predict([{"x": at} for at in (0.05, 0.5, 0.7, 0.95)]).mean


TRUTH = np.array([parabola(x) for x in (0.05, 0.5, 0.7, 0.95)])


@pytest.mark.parametrize("scouts", [30, 33, 34])
def test_scouting_runs_are_results(scouts):
    assert prediction_after_scouting(scouts) == pytest.approx(TRUTH, abs=0.02)


def test_by_the_gap_alone_scouting_runs_would_be_lost(monkeypatch):
    """The negative control."""
    monkeypatch.setattr(observations, "clipped_penalties", by_the_gap_alone)
    assert np.abs(prediction_after_scouting(30) - TRUTH).max() > 0.1


@pytest.mark.parametrize("penalty", [-100.0, -1e6])
@pytest.mark.parametrize("unlike", [0.0, 1e-3])
def test_penalties_are_told_from_results_and_counted(penalty, unlike):
    rng = np.random.default_rng(2)
    points = [dict(zip(SPACE.names, row, strict=True)) for row in rng.random((40, 3)).tolist()]
    values = [bowl(point) for point in points]
    for crash in (3, 11, 12, 30):
        values[crash] = penalty * (1.0 + unlike * rng.random())
    study = covey.Study(SPACE, seed=0)
    study.add(points, values)
    assert study.predict([points[5]]).mean[0] == pytest.approx(values[5], abs=0.05)
    study.ask(2)
    assert study.diagnostics.penalties == 4


def test_a_run_without_penalties_counts_none():
    study = covey.Study(LINE, seed=0)
    for _ in range(8):
        batch = study.ask(4)
        study.tell(batch, [parabola(trial.point["x"]) for trial in batch])
    study.ask(1)
    assert study.diagnostics.penalties == 0


def test_a_log_line_says_how_many_were_taken_for_penalties(caplog):
    study = covey.Study(LINE, seed=0)
    x = np.linspace(0.0, 1.0, 12)
    study.add([{"x": at} for at in x], [parabola(at) for at in x[:-2]] + [-1e6, -1e6])
    with caplog.at_level("INFO", logger="covey"):
        study.ask(2)
    assert "took 2 of 12 results for penalties" in caplog.text


@pytest.mark.parametrize("tail", [1.0, 2.0])
def test_one_bad_result_of_a_skewed_law_is_hardly_ever_a_penalty(tail):
    """At most 1 of 100 log-normal outcomes; by the gap alone, more than 1 of 50 of them."""
    rng = np.random.default_rng(3)
    draws = [-np.exp(tail * rng.standard_normal(5)) for _ in range(1000)]
    taken, before = (
        sum(not np.array_equal(rule(values), values) for values in draws)
        for rule in (observations.clipped_penalties, by_the_gap_alone)
    )
    assert taken <= 10
    assert before > 20
