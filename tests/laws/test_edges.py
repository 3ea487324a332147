"""Where methods break: one observation, constant outcomes, duplicates, few points, no noise."""

import numpy as np
import pytest

import covey
from covey.catalog import STRATEGIES
from covey.errors import ExhaustedError

pytestmark = pytest.mark.usefixtures("few_candidates")
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)
SPACE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})


def distinct(trials):
    return len({tuple(t.point.values()) for t in trials}) == len(trials)


@every_strategy
def test_one_observation_is_enough(strategy):
    study = covey.Study(SPACE, strategy=strategy, seed=0)
    study.tell(study.ask(1), [1.0])
    batch = study.ask(4)
    assert len(batch) == 4
    assert distinct(batch)


@every_strategy
def test_duplicated_inputs_without_noise(strategy):
    study = covey.Study(SPACE, strategy=strategy, seed=0, gp=covey.GP(noise=0.0))
    study.add([{"x": 0.5, "y": 0.5}] * 3 + [{"x": 0.1, "y": 0.1}], [1.0, 1.0, 1.0, 0.0])
    assert distinct(study.ask(4))


@every_strategy
def test_all_trials_failed(strategy):
    study = covey.Study(SPACE, strategy=strategy, seed=0)
    study.fail(study.ask(3))
    assert study.best is None
    again = study.ask(3)
    assert distinct([*study.history.trials, *again][:6])


@every_strategy
def test_noise_at_its_floor_and_huge_values(strategy):
    study = covey.Study(SPACE, strategy=strategy, seed=0)
    for _ in range(3):
        batch = study.ask(4)
        study.tell(batch, [1e12 + 1e9 * t.point["x"] for t in batch])
    assert distinct(study.ask(4))


def test_constant_outcomes_are_predicted_everywhere():
    study = covey.Study(SPACE, seed=0)
    study.tell(study.ask(6), [2.5] * 6)
    mean, std = study.predict([{"x": 0.5, "y": 0.5}])
    assert mean[0] == pytest.approx(2.5)
    assert np.isfinite(std[0])


def test_a_pool_that_is_used_up_says_so_and_stays_as_it_is():
    pool = covey.Pool([{"a": i} for i in range(3)])
    study = covey.Study(pool, seed=0)
    study.tell(study.ask(3), [0.0, 1.0, 2.0])
    before = study.history.events
    with pytest.raises(ExhaustedError, match=r"before: 0"):
        study.ask(1)
    assert study.history.events == before


@pytest.mark.parametrize("strategy", ["auto", "est-dpp-sample", "random", "sobol"])
def test_constraints_of_a_mixed_space_are_kept(strategy):
    space = covey.Space(
        {
            "rate": covey.Real(1e-5, 1e-1, log=True),
            "layers": covey.Integer(1, 8),
            "kind": covey.Choice(["a", "b", "c"]),
            "size": covey.Choice([16, 32, 64], ordered=True),
        },
        where=[covey.Linear({"layers": 1, "rate": 10}, upper=6.0), lambda p: p["kind"] != "b"],
    )
    study = covey.Study(space, strategy=strategy, seed=0)
    for _ in range(3):
        batch = study.ask(3)
        study.tell(batch, [t.point["layers"] - t.point["rate"] for t in batch])
    for trial in study.history.trials:
        assert trial.point["kind"] != "b"
        assert trial.point["layers"] + 10 * trial.point["rate"] <= 6.0
    assert distinct(study.history.trials)


def test_half_of_the_trials_fail():
    """A function that crashes on half of the space is still optimised on the other half."""
    study = covey.Study(SPACE, seed=0)
    for _ in range(8):
        batch = study.ask(4)
        for trial in batch:
            if trial.point["x"] > 0.5:
                study.fail(trial, "crash")
            else:
                study.tell(trial, trial.point["x"] - (trial.point["y"] - 0.3) ** 2)
    assert study.best.value > 0.42
    assert distinct(study.history.trials)


def test_batches_do_not_collapse():
    """Even when all is known the points of a batch stay apart."""
    study = covey.Study(SPACE, seed=0)
    for _ in range(8):
        batch = study.ask(5)
        study.tell(batch, [-((t.point["x"] - 0.4) ** 2) - t.point["y"] ** 2 for t in batch])
    at = np.array([list(t.point.values()) for t in batch])
    gaps = np.linalg.norm(at[:, None] - at, axis=2)[np.triu_indices(5, 1)]
    assert gaps.min() >= 1e-4


def extreme(seed: int) -> tuple[np.ndarray, list[float | None]]:
    """Seven results about any number, with any spread, and standard errors of any size or none."""
    rng = np.random.default_rng(seed)
    size, spread, error = 10.0 ** rng.uniform(-320.0, 100.0, 3)
    size = rng.choice([0.0, size])
    values = np.clip(size + spread * rng.choice([-1.0, 0.0, 0.5, 1.0], 7), -1e100, 1e100)
    sems = error * rng.choice([0.0, 1e-3, 1.0], 7)
    known = rng.random(7) < rng.choice([0.0, 0.5, 1.0])
    return values, [float(sem) if knows else None for sem, knows in zip(sems, known, strict=True)]


@pytest.mark.parametrize("seed", range(60))
def test_results_of_any_size_give_a_batch(seed):
    values, sems = extreme(seed)
    space = covey.Space({"x": covey.Real(0, 1), "y": covey.Real(0, 1)})
    study = covey.Study(space, seed=0)
    at = np.random.default_rng(1).random((7, 2)).tolist()
    study.add([{"x": x, "y": y} for x, y in at], values.tolist(), sem=sems)
    assert len({tuple(trial.point.values()) for trial in study.ask(3)}) == 3
    mean, std = study.predict([{"x": 0.5, "y": 0.5}])
    assert np.isfinite(mean[0])
    assert np.isfinite(std[0])


@pytest.mark.parametrize("noise", [1e-300, 0.1, 1e90])
@pytest.mark.parametrize("spread", [5e-324, 1e-310, 1e-160, 1e-90])
def test_a_given_noise_of_any_size_gives_a_batch(noise, spread):
    study = covey.Study(covey.Space({"x": covey.Real(0, 1)}), gp=covey.GP(noise=noise))
    study.add([{"x": 0.1}, {"x": 0.6}, {"x": 0.9}], [0.0, spread, -spread])
    assert len(study.ask(3)) == 3


@pytest.mark.parametrize(
    ("values", "sem"),
    [([0.0, 5e-324], None), ([1e-160, 3e-160], 0.1), ([0.0, 1e-300], 1e-3), ([1e-320, 0.0], 1e90)],
)
def test_a_spread_beyond_the_smallest_numbers_gives_a_batch(values, sem):
    study = covey.Study(covey.Space({"x": covey.Real(0, 1)}), seed=0)
    sems = None if sem is None else [sem] * len(values)
    study.add([{"x": 0.2}, {"x": 0.7}], values, sem=sems)
    assert len(study.ask(3)) == 3
