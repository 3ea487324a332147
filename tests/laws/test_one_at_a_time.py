"""Eight asks for one point, with nothing told in between, are one ask for eight."""

import math
from collections import Counter

import numpy as np
import pytest

import covey
from covey import Pool, Real, Space, Study

SQUARE = Space({"x": Real(-5.0, 10.0), "y": Real(0.0, 15.0)})


def branin(point) -> float:
    x, y = point["x"], point["y"]
    bowl = y - 5.1 / (4.0 * math.pi**2) * x**2 + 5.0 / math.pi * x - 6.0
    return -(bowl**2) - 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(x)


def study_with_results(space: Space | Pool, results: int) -> Study:
    study = Study(space, seed=0)
    while len(study.history.told) < results:
        batch = study.ask(8)
        study.tell(batch, [branin(trial.point) for trial in batch])
    return study


def asked_one_by_one(study: Study) -> list[covey.Trial]:
    return [study.ask(1)[0] for _ in range(8)]


def roles(study: Study, batch: list[covey.Trial]) -> Counter[str]:
    return Counter(study.history.why(trial).split(":")[0] for trial in batch)


@pytest.mark.parametrize("results", [16, 64])
def test_eight_single_asks_have_the_roles_of_one_batch(results):
    together, apart = (study_with_results(SQUARE, results) for _ in range(2))
    batch, one_by_one = together.ask(8), asked_one_by_one(apart)
    here, there = roles(together, batch), roles(apart, one_by_one)
    # Ascents and fits of later asks begin from what was found before, so a role may turn.
    assert abs(here["explores"] - there["explores"]) <= 1
    assert {*here, *there} <= {"exploits", "explores"}


def test_eight_single_asks_choose_the_rows_of_one_batch_late_in_a_study():
    rng = np.random.default_rng(0)
    pool = Pool([{"x": x, "y": y} for x, y in (rng.random((400, 2)) * 15 - [5, 0]).tolist()])
    together, apart = (study_with_results(pool, 64) for _ in range(2))
    batch = {tuple(trial.point.values()) for trial in together.ask(8)}
    assert batch == {tuple(trial.point.values()) for trial in asked_one_by_one(apart)}
