"""A result that is far too good to be true is set aside before it is modelled, and nothing else is.

The negative control: searches of functions of the kinds of BBOB, which span decades on purpose,
maximised and minimised, on the way to summits that are high and narrow.
"""

import logging

import numpy as np
import pytest

import covey
from covey.gp import beyond_belief
from covey.learn import doubtful

LINE = covey.Space({"x": covey.Real(0.0, 1.0)})


def told(values, goal="max", **options):
    study = covey.Study(LINE, goal, seed=0, **options)
    places = np.random.default_rng(1).random(len(values)).tolist()
    return study, study.add([{"x": x} for x in places], list(values))


def usual(n=30):
    return np.random.default_rng(4).normal(size=n)


def excluded(study):
    return [trial.id for trial in study.history.trials if trial.excluded]


@pytest.mark.parametrize("shift", [0.0, 1.0, -20.0])
@pytest.mark.parametrize("goal", ["max", "min"])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e9])
def test_a_slip_of_the_pen_is_excluded_in_any_unit(goal, unit, shift):
    sign = 1.0 if goal == "max" else -1.0
    values = unit * (usual() + shift)
    values[7] = sign * unit * 1e6
    study, trials = told(values.tolist(), goal)
    assert excluded(study) == [7] == [t.id for t in trials if t.excluded]
    assert "beyond belief" in study.history.reason(7)
    assert study.best.id != 7


def test_it_does_not_blind_the_model():
    """Defect: one value of 1e6 among values of order 1, and a point told 1.19 was predicted 32,437.

    All that the model says is what it says where that trial was never told."""
    space = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})
    at = np.random.default_rng(0).random((30, 2))
    points = [{"x": x, "y": y} for x, y in at.tolist()]
    values = (np.sin(5.0 * at[:, 0]) + at[:, 1]).tolist()
    blind, seeing = (covey.Study(space, seed=0) for _ in range(2))
    blind.add(points, [1e6 if i == 12 else value for i, value in enumerate(values)])
    seeing.add(points, values)
    seeing.exclude(12, "known to be wrong")
    expected = seeing.predict(points)
    found = blind.predict(points)
    assert found.mean.tolist() == expected.mean.tolist()
    assert np.abs(found.mean - values)[np.arange(30) != 12].max() < 0.5
    assert [t.point for t in blind.ask(4)] == [t.point for t in seeing.ask(4)]


def test_tell_says_so_and_so_does_the_log(caplog):
    study = covey.Study(LINE, seed=0)
    batch = study.ask(12)
    values = usual(12)
    assert study.tell(batch[:11], values[:11].tolist()) == []
    with caplog.at_level(logging.WARNING, "covey"):
        (doubted,) = study.tell(batch[11], 2e6)
    assert (doubted.id, doubted.excluded) == (11, True)
    (said,) = [record.getMessage() for record in caplog.records]
    assert "trial 11" in said
    assert "2e+06" in said
    assert "include" in said
    assert "amend" in said


def test_one_that_came_first_is_doubted_when_there_is_enough_to_judge_it_by():
    study = covey.Study(LINE, seed=0)
    batch = study.ask(10)
    for trial, value in zip(batch, [1e6, *usual(9).tolist()], strict=True):
        assert excluded(study) == []
        study.tell(trial, value)
    assert excluded(study) == [0]


def test_included_it_is_not_doubted_again(tmp_path):
    values = usual()
    values[7] = 1e6
    path = tmp_path / "run.jsonl"
    study, _ = told(values.tolist(), journal=path)
    study.include(7, "measured twice")
    assert study.best.id == 7
    for again in (study, covey.Study.load(path)):
        assert again.doubt() == []
        again.tell(again.ask(1), [0.5])
        assert excluded(again) == []


def test_amended_and_included_the_right_value_counts():
    values = usual()
    values[7] = 1e6
    study, _ = told(values.tolist())
    study.amend(7, 1.0, "typed without its exponent")
    study.include(7, "amended")
    assert study.history[7] in study.history.counted
    assert study.doubt() == []
    study.amend(8, 1e6, "checked in the notebook")  # whoever gives a reason has looked at it
    assert study.doubt() == []


def test_what_another_process_told_is_doubted_before_it_is_modelled(tmp_path):
    path = tmp_path / "run.jsonl"
    study = covey.Study(LINE, seed=0, journal=path)
    batch = study.ask(12)
    other = covey.Study.load(path)
    values = usual(12).tolist()
    other.note(covey.history.Told(tuple(range(12)), (*values[:11], 1e6)))  # as older versions do
    assert excluded(other) == []
    study.ask(2)
    assert excluded(study) == [batch[11].id]


def test_several_goals_and_limits_are_each_looked_at():
    goals = {"yield": "max", "cost": "min"}
    study = covey.Study(LINE, goals, seed=0, limits={"acid": ("<=", 2.0)})
    values = usual(36).reshape(12, 3)
    values[3, 1], values[5, 2] = -1e6, -1e7  # too cheap; hardly any acid
    values[6, 1] = 1e6  # dear, which is bad and no matter
    named = [dict(zip(("yield", "cost", "acid"), row, strict=True)) for row in values.tolist()]
    study.add([{"x": i / 12} for i in range(12)], named)
    assert excluded(study) == [3, 5]
    assert study.history.reason(3).startswith("cost -1e+06")


def test_penalties_are_no_scale_and_are_not_doubted():
    values = usual()
    values[[3, 4]] = -1e6
    assert excluded(told(values.tolist())[0]) == []
    values[7] = 1e6
    assert excluded(told(values.tolist())[0]) == [7]


@pytest.mark.parametrize(
    "values",
    [
        [*[0.1, 0.1001, 0.0999] * 5, 0.97],  # accuracies: most networks learn nothing
        [*[0.0] * 15, 12.0],  # nearly all reactions give nothing
        [*(10.0 ** -np.arange(3.0, 18.0)), 5.0],  # a narrow summit
        [*usual(28), 1e6, 1.2e6],  # two support each other
        [*usual(8), 1e6],  # too few to judge by
        [*usual(29), 2e4],
        list(-(10.0 ** np.linspace(7.0, -3.0, 20))),  # a loss from 1e7 to 1e-3
        [-1.0, *[-1e7] * 14],
        [1e-320] * 15 + [1.0],
        [1e300] * 14 + [-1e300],
    ],
    ids=range(10),
)
def test_what_must_not_be_doubted(values):
    assert beyond_belief(np.array(values, dtype=float)) is None


# The negative control.


def bbob_like(d, rng):
    """Functions to minimise, 0 at the origin, with the conditions of BBOB: up to 10⁶."""
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    weights = 10.0 ** (6.0 * np.arange(d) / max(1, d - 1))
    powers = 2.0 + 4.0 * np.arange(d) / max(1, d - 1)
    return {
        "sphere": lambda z: np.sum(z**2, axis=1),
        "ellipsoid": lambda z: np.sum((z @ turn) ** 2 * weights, axis=1),
        "discus": lambda z: np.sum((z @ turn) ** 2 * np.where(weights == 1.0, 1e6, 1.0), axis=1),
        "different powers": lambda z: np.sum(np.abs(z @ turn) ** powers, axis=1) ** 0.5,
        "rastrigin": lambda z: np.sum(10.0 - 10.0 * np.cos(2.0 * np.pi * z) + z**2, axis=1),
        "rosenbrock": lambda z: np.sum(
            100.0 * ((z[:, :-1] + 1.0) ** 2 - z[:, 1:] - 1.0) ** 2 + z[:, :-1] ** 2, axis=1
        ),
        "attractive sector": lambda z: (
            np.sum((z * np.where(z > 0.0, 100.0, 1.0)) ** 2, axis=1) ** 0.9
        ),
    }


OBJECTIVES = {  # of the values f, which fall to 0
    "minimised": lambda f: -f,
    "its cube, minimised": lambda f: -(f**3),
    "its logarithm, minimised": lambda f: -np.log(f + 1e-12),
    "maximised": lambda f: f,
    "a summit of 100": lambda f: 100.0 / (1.0 + f),
    "a summit of 10,000": lambda f: 1e4 / (1.0 + f),
    "a narrow summit on a plain of 1": lambda f: 1.0 + 5000.0 * np.exp(-f),
    "the quality 1 / sqrt(f)": lambda f: 1.0 / np.sqrt(f + 1e-12),
}


def searches(seed):
    """Points of searches that explore and close in on the optimum, at several speeds."""
    rng = np.random.default_rng(seed)
    for d in (2, 5, 10):
        for name, f in bbob_like(d, rng).items():
            for speed in (0.1, 0.5, 0.8):
                first = rng.uniform(-5.0, 5.0, (2 * d, d))
                step, rows = first[np.argmin(f(first))], list(first)
                for k in range(40):
                    step = step * speed if k % 3 else step
                    wander = rng.uniform(-5.0, 5.0, d)
                    near = step * (1.0 + 0.2 * rng.standard_normal(d))
                    rows.append(near if k % 3 else wander)
                yield f"{name}, {d}-d, {speed}", f(np.array(rows))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_searches_that_span_decades_are_not_doubted(objective):
    """None of 63 searches, after any of their results."""
    doubted, count = [], 0
    for name, f in searches(0):
        values = OBJECTIVES[objective](f)
        count += 1
        if any(beyond_belief(values[:n]) is not None for n in range(4, len(values) + 1)):
            doubted.append(name)
    assert count == 63
    assert not doubted, doubted


def test_a_rule_of_ranges_alone_would_doubt_such_searches():
    """The mirror image of the rule for a penalty, which flags a gap of a thousand ranges."""
    doubted = 0
    for _, f in searches(0):
        values = OBJECTIVES["the quality 1 / sqrt(f)"](f)
        for n in range(10, len(values) + 1):
            *rest, second, top = np.sort(values[:n])
            doubted += top - second > 50.0 * (second - rest[0])
    assert doubted > 0


def test_an_old_log_is_judged_when_it_is_gone_on_with_and_not_before(tmp_path):
    path = tmp_path / "run.jsonl"
    study = covey.Study(LINE, seed=0, journal=path)
    study.note(covey.history.Added(tuple({"x": i / 12} for i in range(12)), (*usual(11), 1e6)))
    before = path.read_bytes()
    loaded = covey.Study.load(path, read_only=True)
    assert excluded(loaded) == []
    assert list(doubtful(loaded.history, loaded.recipe)) == [11]
    assert path.read_bytes() == before
