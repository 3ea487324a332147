"""Laws of several goals: one goal is UCB, order does not matter, the dominated changes nothing."""

from dataclasses import replace

import numpy as np
import pytest

import covey
from covey.baselines import Hallucinated
from covey.belief import Belief, Beliefs, Goal
from covey.gp import learnt_scale, scaled
from covey.hypervolume import Front, front_of
from covey.learn import wells_measured
from covey.policies import UCB, judge
from covey.strategies import DPP
from covey.two_roles import TwoRoles


def beliefs_of(means, covs, known, worst=None):
    """Beliefs about m goals at n candidates, and the front of known values (f, m)."""
    n = len(means[0])
    at = np.linspace(0, 1, n)[:, None]
    each = [Belief.dense(at, mean, cov, 0.1) for mean, cov in zip(means, covs, strict=True)]
    worst = np.full(len(means), -3.0) if worst is None else worst
    goals = tuple(Goal(f"g{j}", 1, lambda values: values, 0.0) for j in range(len(means)))
    parts = tuple(part for belief in each for part in belief.parts)
    return Beliefs(at, parts, np.nan, goals=goals, front=Front(front_of(known), worst))


def random_beliefs(seed, m, n=40):
    rng = np.random.default_rng(seed)
    means = [rng.standard_normal(n) for _ in range(m)]
    roots = [rng.standard_normal((n, n)) / np.sqrt(n) for _ in range(m)]
    return beliefs_of(means, [r @ r.T for r in roots], rng.standard_normal((6, m)))


@pytest.mark.parametrize("seed", range(5))
def test_one_goals_hypervolume_orders_candidates_as_ucb_does(seed):
    beliefs = random_beliefs(seed, 1)
    plain = beliefs.each[0]
    several, one = (judge(UCB(4.0), b).scores for b in (beliefs, plain))
    assert np.argsort(several).tolist() == np.argsort(one).tolist()
    batch = TwoRoles(width=2.0, gain=0.0).choose(beliefs, 5, np.random.default_rng(0)).indices
    by_hand, seen = [], plain
    for _ in range(5):  # the upper bounds in turn, each imagined as observed
        scores = seen.mean + 2.0 * seen.std
        scores[by_hand] = -np.inf
        by_hand.append(int(np.argmax(scores)))
        seen = seen.after_looking_at([by_hand[-1]])
    assert list(batch) == by_hand


@pytest.mark.parametrize("m", [2, 3])
def test_permuting_goals_permutes_nothing_else(m):
    beliefs = random_beliefs(7, m)
    order = list(reversed(range(m)))
    other = replace(
        beliefs,
        parts=tuple(beliefs.parts[j] for j in order),
        goals=tuple(beliefs.goals[j] for j in order),
        front=Front(beliefs.front.values[:, order], beliefs.front.worst[order]),
    )
    for strategy in (TwoRoles(), DPP(UCB(), then="max"), Hallucinated(UCB())):
        found = [strategy.choose(b, 6, np.random.default_rng(0)).indices for b in (beliefs, other)]
        assert found[0] == found[1]


def test_permuting_the_outcomes_of_a_study_permutes_its_answers():
    rng = np.random.default_rng(3)
    pool = covey.Pool(rng.random((60, 2)))

    def told(goal):
        study = covey.Study(pool, goal=goal, seed=1)
        rows = [pool.point(i) for i in range(14)]
        study.add(rows, [{"a": p["x0"] + p["x1"] ** 2, "b": p["x0"] ** 2 - p["x1"]} for p in rows])
        return study

    one, other = told({"a": "max", "b": "min"}), told({"b": "min", "a": "max"})
    assert [t.point for t in one.ask(4)] == [t.point for t in other.ask(4)]
    assert [t.id for t in one.front] == [t.id for t in other.front]
    there, here = one.predict([pool.point(30)]), other.predict([pool.point(30)])
    assert {n: p.mean[0] for n, p in there.items()} == {n: p.mean[0] for n, p in here.items()}


def added_to(goal, n=12, units=1.0, **options):
    """A study of a plane with results from elsewhere, in smaller or larger units."""
    space = covey.Space({"x": covey.Real(0, 1), "y": covey.Real(0, 1)})
    study = covey.Study(space, goal=goal, seed=3, **options)
    points = [{"x": x, "y": y} for x, y in np.random.default_rng(5).random((n, 2)).tolist()]
    values = [
        {
            "a": units * (np.sin(3 * p["x"]) + p["y"] * (1 - p["x"])),
            "b": units * ((p["x"] - 0.3) ** 2 + (p["y"] - 0.6) ** 2),
            "c": units * (p["x"] * p["y"] + 0.3 * np.cos(4 * p["y"])),
            "d": units * ((p["x"] - 0.9) ** 2 + p["y"]),
        }
        for p in points
    ]
    study.add(points, [{name: one[name] for name in study.outcomes.names} for one in values])
    return study


def points_of(trials):
    return np.array([[t.point["x"], t.point["y"]] for t in trials])


@pytest.mark.parametrize(
    ("goal", "limits"),
    [
        ({"a": "max", "b": "min"}, {}),
        ({"a": "max", "b": "min"}, {"c": ("<=", 0.3), "d": ("<=", 1.2)}),
        ({"a": "max", "b": "min", "c": "max", "d": "min"}, {}),
    ],
)
def test_permuting_goals_and_limits_leaves_a_continuous_batch_as_it_is(goal, limits):
    other = {name: goal[name] for name in reversed(goal)}
    turned = {name: limits[name] for name in reversed(limits)}
    one, permuted = added_to(goal, limits=limits), added_to(other, limits=turned)
    assert [t.point for t in one.ask(4)] == [t.point for t in permuted.ask(4)]
    assert one.recommend().trial.id == permuted.recommend().trial.id


def test_the_unit_of_goals_plays_no_part_however_small_it_is():
    goal = {"a": "max", "b": "min"}
    one, small = added_to(goal, n=30), added_to(goal, n=30, units=1e-12)
    np.testing.assert_allclose(points_of(one.ask(4)), points_of(small.ask(4)), atol=1e-7)


def test_the_scale_of_a_front_follows_the_unit():
    values, worst = np.random.default_rng(0).random((9, 2)), np.zeros(2)
    for unit in (1e-30, 1e-10, 1e10):
        tiny = scaled(unit * values, unit * worst).span
        np.testing.assert_allclose(tiny, unit * scaled(values, worst).span)
    assert (scaled(np.zeros((3, 2)), np.zeros(2)).span == 1.0).all()


@pytest.mark.parametrize(
    ("goal", "options", "told"),
    [
        ({"value": "max"}, {}, lambda v: {"value": v}),
        ({"gain": "max"}, {}, lambda v: {"gain": v}),
        ("max", {"record": ["notes"]}, lambda v: {"value": v, "notes": "clear"}),
        ("max", {"worst": {"value": -100.0}}, lambda v: v),
    ],
)
def test_one_goal_without_limits_is_the_plain_study_bit_for_bit(goal, options, told):
    def batches(study, told):
        found = []
        for _ in range(3):
            batch = study.ask(5)
            found.append([t.point for t in batch])
            study.tell(batch, [told(np.sin(3 * t.point["x"]) + t.point["y"]) for t in batch])
        return found, study

    space = covey.Space({"x": covey.Real(0, 1), "y": covey.Real(0, 1)})
    plain, one = batches(covey.Study(space, goal="max", seed=3), lambda v: v)
    named, other = batches(covey.Study(space, goal=goal, seed=3, **options), told)
    assert named == plain
    assert other.history.models[0].get("outcome", "value") == other.outcomes.only
    here = [{"x": 0.2, "y": 0.7}]
    there = other.predict(here)
    mine = there if other.outcomes.plain else there[other.outcomes.only]
    assert mine.mean == one.predict(here).mean


@pytest.mark.parametrize("m", [2, 3])
def test_what_is_dominated_changes_no_score(m):
    beliefs = random_beliefs(5, m)
    more = beliefs.front.values[[0]] - np.abs(np.random.default_rng(0).standard_normal((4, m)))
    other = replace(beliefs, front=beliefs.front.with_values(more))
    one, two = (judge(UCB(4.0), b).scores for b in (beliefs, other))
    assert np.array_equal(one, two)
    better = replace(beliefs, front=beliefs.front.with_values(beliefs.front.values[[0]] + 0.5))
    assert not np.array_equal(one, judge(UCB(4.0), better).scores)  # the control


@pytest.mark.parametrize("m", [2, 3])
def test_scores_only_fall_within_a_batch(m):
    beliefs = random_beliefs(11, m)
    before = judge(UCB(4.0), beliefs).scores
    seen = beliefs
    for i in (3, 17, 8):
        seen = seen.after_looking_at([i])
        now = judge(UCB(4.0), seen).scores
        assert (now <= before + 1e-12).all()
        before = now


def test_the_kernel_is_the_mean_of_the_goals():
    beliefs = random_beliefs(2, 3)
    every = np.arange(len(beliefs))
    each = [b.information().block(every, every) for b in beliefs.each]
    assert np.allclose(beliefs.information().block(every, every), np.mean(each, axis=0))


def test_every_outcome_is_learnt_as_by_a_study_of_its_own():
    space = covey.Space({"x": covey.Real(0, 1), "y": covey.Real(0, 1)})
    study = covey.Study(space, goal={"a": "max", "b": "min"}, seed=4)
    alone = covey.Study(space, goal="min", seed=4)
    for _ in range(2):
        batch = study.ask(6, strategy="sobol")
        values = [np.sin(5 * t.point["x"]) + t.point["y"] for t in batch]
        study.tell(batch, [{"a": t.point["x"], "b": v} for t, v in zip(batch, values, strict=True)])
        alone.tell(alone.ask(6, strategy="sobol"), values)
    points = [{"x": 0.3, "y": 0.4}]
    assert study.predict(points)["b"].mean == pytest.approx(alone.predict(points).mean, abs=1e-12)
    own, expected = study.history.of_outcome("b").counted, alone.history.counted
    assert [(t.id, t.point, t.value, t.sem) for t in own] == [
        (t.id, t.point, t.value, t.sem) for t in expected
    ]


WELLS = {
    "a": lambda p, n: (p["x"] + p["y"] ** 2 if p else 0.0) + 0.1 * np.cos(n),
    "b": lambda p, n: (np.sin(5 * p["x"]) - p["y"] if p else -2.0) + 0.05 * np.sin(3 * n),
}


def measured_in_wells(goal, told):
    """A study with two plates, marks and corrections; ``told`` makes a reading of both outcomes."""
    reference = covey.Control(2, at={"x": 0.5, "y": 0.5})
    layout = covey.Layout(plate=24, controls={"blank": 2, "reference": reference}, replicates=2)
    study = covey.Study(UNIT, goal=goal, seed=4)
    for plate in study.ask_plates(2, layout, strategy="sobol"):
        points = [(well.name, well.point) for well in plate.used]
        read = {w: {k: f(p, n) for k, f in WELLS.items()} for n, (w, p) in enumerate(points)}
        told_now = {w: told(values) for w, values in read.items() if w != points[-1][0]}
        study.tell_plate(plate, told_now, part=True)
        once, _ = (well.name for well in plate.used if well.trial == plate.trials[0])
        marked, alone = (well.name for well in plate.used if well.trial == plate.trials[1])
        uses = study.history.plates.records[plate.name].uses
        blank = next(well for well in told_now if uses[well].control == "blank")
        study.mark_wells(plate, [marked, blank], "bubble")
        study.amend_wells(plate, {once: told({"a": 1.5, "b": read[once]["b"]})}, "misread")
        study.amend_wells(plate, {alone: told({"a": 0.25, "b": -0.75})}, "misread")
    study.unmark_wells("p1", [next(w.name for w in study.plate("p1").wells if w.mark)], "dry")
    study.exclude(2, "spilt")
    return study


@pytest.mark.parametrize(("name", "sense"), [("a", "max"), ("b", "min")])
def test_every_outcome_in_wells_is_learnt_as_by_a_study_of_its_own(name, sense):
    study = measured_in_wells({"a": "max", "b": "min"}, lambda values: values)
    alone = measured_in_wells(sense, lambda values: values[name])
    own = study.history.of_outcome(name)
    assert {t.status for t in own.trials} == {"told", "pending"}
    for mine, theirs in zip(own.trials, alone.history.trials, strict=True):
        assert (mine.status, mine.value, mine.sem) == (theirs.status, theirs.value, theirs.sem)
        assert mine.excluded == theirs.excluded
    found = wells_measured(own, replace(study.recipe.of(name), space=UNIT))
    expected = wells_measured(alone.history, replace(alone.recipe, space=UNIT))
    assert len(found[1]) > len(own.counted) + 2  # a result for each well, and each control inside
    for one, other in zip(found[:3], expected[:3], strict=True):
        np.testing.assert_array_equal(one, other)
    assert repr(found[3]) == repr(expected[3])  # what wells share, with the controls outside
    points = [{"x": 0.3, "y": 0.4}, {"x": 0.9, "y": 0.1}]
    one, other = study.predict(points)[name], alone.predict(points)
    np.testing.assert_allclose((one.mean, one.std), (other.mean, other.std), rtol=1e-9)


def test_the_learnt_reference_point_does_not_tighten_as_the_front_is_filled():
    rng = np.random.default_rng(0)
    for m in (2, 3):
        design = rng.random((10, m))
        loosest = design.min(axis=0) - np.ptp(design, axis=0)
        results = design
        for _ in range(5):  # each lot is better than the one before in all goals, and closer
            results = np.vstack([results, results.max(axis=0) + 0.1 * rng.random((8, m))])
            scale = learnt_scale(results, results, dimension=2)
            assert (scale.low <= loosest).all()
            assert (scale(results) > 0.0).all()


def test_a_step_in_the_tail_of_a_front_counts_a_tenth():
    results = np.random.default_rng(1).random((30, 2))
    scale = learnt_scale(results, results, dimension=2)
    for j in range(2):
        low, tail, top = scale.low[j], scale.tail[j], results[:, j].max()
        units = scale.of_goal(j, np.array([low, tail, top, top + scale.span[j]]))
        plain = np.diff((np.array([low, tail, top, top + scale.span[j]]) - low) / scale.span[j])
        assert units[0] == 0.0
        np.testing.assert_allclose(np.diff(units), plain * [0.1, 1.0, 1.0])


def test_a_front_that_is_short_so_far_grows_to_its_other_end():
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        design = rng.random((10, 2))
        end = np.column_stack([np.linspace(0.0, 0.12, 14), 0.02 * rng.random(14)])
        study = covey.Study(UNIT, goal={"a": "min", "b": "min"}, seed=seed)
        points = [{"x": float(x), "y": float(y)} for x, y in np.vstack([design, end])]
        study.add(points, [concave(point) for point in points])
        assert max(trial.point["x"] for trial in study.ask(4)) > 0.85


UNIT = covey.Space({"x": covey.Real(0, 1), "y": covey.Real(0, 1)})


def concave(point):
    """Two goals whose front is hollow: y = 0, and x from one end to the other."""
    rise = 1.0 + 9.0 * point["y"]
    return {"a": point["x"], "b": rise * (1.0 - (point["x"] / rise) ** 2)}


def test_one_result_far_out_in_the_first_design_leaves_the_reference_point_near():
    """A penalty of a million among values of order one counts as the outer fence of the rest."""
    rng = np.random.default_rng(0)
    results = rng.random((30, 2))
    spoilt = results.copy()
    spoilt[2, 1] = -1e6
    plain, kept = (learnt_scale(some, some, dimension=2).low for some in (results, spoilt))
    assert kept[0] == plain[0]
    assert plain[1] - 10.0 < kept[1] <= plain[1]
