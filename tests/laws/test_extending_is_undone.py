"""Extending a space and taking it back is the identity; results outside still train the model."""

from __future__ import annotations

import numpy as np
import pytest
from tests.play import points_of

import covey
from covey.errors import HistoryError, JournalMismatch, SpaceError, StrategyError
from covey.history import Asked
from covey.learn import understand, understand_several
from covey.log.extension import extensions_in_words
from covey.propose import compared

REALS = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(1e-3, 1.0, log=True)})
WIDER = covey.Space({"x": covey.Real(-1.0, 2.0), "y": covey.Real(1e-4, 10.0)})
MIXED = covey.Space(
    {"x": covey.Real(0.0, 1.0), "n": covey.Integer(1, 6), "c": covey.Choice(["a", "b", "c"])}
)
OTHER = covey.Space(
    {
        "c": covey.Choice(["c", "d", "a"]),
        "x": covey.Real(0.2, 0.5, step=0.1),
        "n": covey.Real(0.0, 3.0),
    },
    where=[covey.Linear({"x": 1.0, "n": 1.0}, upper=2.0)],
)
POOL = covey.Pool([{"x": i / 40, "c": "abc"[i % 3]} for i in range(41)])
ROWS = covey.Pool([{"x": i / 20, "c": "bd"[i % 2]} for i in range(10, 41)])
NUMBERS = {name: [ord(name) % 5, ord(name) % 3] for name in "abcdefg"}


def described(*names):
    return covey.Space({"x": covey.Real(0, 1), "c": covey.Choice(names, features=NUMBERS)})


SIZES = covey.Space(
    {
        "x": covey.Real(0, 1),
        "n": covey.Real(0, 4),
        "c": covey.Choice(["xs", "s", "l", "xl"], ordered=True),
    }
)
FEWER_SIZES = covey.Space(
    {
        "x": covey.Choice([0.5]),
        "n": covey.Real(0, 2),
        "c": covey.Choice(["s", "m", "l"], ordered=True),
    }
)
PAIRS = {
    "reals": (REALS, WIDER),
    "mixed": (MIXED, OTHER),
    "pool": (POOL, ROWS),
    "descriptors": (described(*"abcdef"), described(*"bcdg")),
    "order": (SIZES, FEWER_SIZES),
}

IN_BOTH = {
    "reals": {"x": 0.5, "y": 0.5},
    "mixed": {"x": 0.3, "n": 1, "c": "a"},
    "pool": {"x": 0.7, "c": "b"},
    "descriptors": {"x": 0.5, "c": "b"},
    "order": {"x": 0.5, "n": 1.0, "c": "s"},
}


def value(point):
    extra = {"a": 0.0, "b": 0.3, "c": -0.4}.get(point.get("c"), 0.0)
    return float(np.sin(5 * point["x"]) + point.get("y", point.get("n", 0) / 6) + extra)


def some(space, strategy="auto", **options):
    study = covey.Study(space, strategy=strategy, seed=4, **options)
    for _ in range(2):
        batch = study.ask(6)
        study.tell(batch, [value(trial.point) for trial in batch])
    study.fail(study.ask(1), "too hot")
    return study


@pytest.mark.parametrize(("space", "other"), PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("strategy", ["auto", "ucb-dpp-max"])
def test_extending_and_taking_it_back_is_the_identity(space, other, strategy, tmp_path):
    path = tmp_path / "run.jsonl"
    untouched, back, without = (some(space, strategy) for _ in range(3))
    kept = some(space, strategy, journal=path)
    for study in (back, without, kept):
        study.extend(other, "another range")
    back.recommend()  # which may keep a model of it
    for study in (back, kept):
        study.extend(space, "as it was")
    assert back.recommend() == untouched.recommend()
    expected = points_of(untouched.ask(4))
    assert points_of(back.ask(4)) == expected
    assert points_of(covey.Study.load(path, space).ask(4)) == expected
    assert points_of(without.ask(4)) != expected  # the control: the other space changes the batch


def test_after_asks_in_between_hyper_parameters_are_those_of_the_space():
    study = some(REALS)
    study.tell(study.ask(3), [1.0, 2.0, 3.0])
    mine = study.history.models
    assert mine is not None
    study.extend(WIDER, "wider")
    assert study.history.models is None  # lengths are shares of a range: these are of another
    study.tell(study.ask(3), [1.0, 2.0, 3.0])
    theirs = study.history.models
    assert theirs not in (None, mine)
    study.extend(REALS, "back")
    assert study.history.models == mine
    study.extend(WIDER, "wider again")
    assert study.history.models == theirs


@pytest.mark.parametrize(("space", "other"), PAIRS.values(), ids=PAIRS)
def test_the_way_to_a_space_does_not_matter(space, other, tmp_path):
    """What a model sees depends on the space as it is and on what was told, on no other space."""
    path = tmp_path / "run.jsonl"
    straight, around = some(space), some(space, journal=path)
    straight.extend(other, "at once")
    for step in (other, space, other):
        around.extend(step, "to and fro")
    points = [trial.point for trial in around.history]
    seen = [study.recipe.space.encode(points) for study in (straight, around)]
    np.testing.assert_allclose(seen[1], seen[0], atol=1e-9)
    expected = points_of(straight.ask(4))
    assert points_of(covey.Study.load(path, other).ask(4)) == expected


def test_what_changed_is_said_of_the_spaces_themselves():
    study = some(POOL)
    study.extend(ROWS, "another catalogue")
    (said,) = extensions_in_words(study.history, study.recipe)
    assert "31 candidates (were 41), 39 gone" in said


@pytest.mark.parametrize("pair", PAIRS)
def test_what_is_told_meanwhile_is_as_if_it_had_been_told_without_extending(pair):
    space, other = PAIRS[pair]
    untouched, back = some(space), some(space)
    back.extend(other, "another range")
    for study in (untouched, back):
        study.add([IN_BOTH[pair]], [3.0])
        study.exclude(1, "spilt")
    back.extend(space, "as it was")
    assert points_of(back.ask(4)) == points_of(untouched.ask(4))


@pytest.mark.parametrize(("space", "other"), PAIRS.values(), ids=PAIRS)
def test_a_batch_is_of_the_space_as_it_is_now(space, other):
    study = some(space)
    study.extend(other, "another range")
    for trial in study.ask(6):
        assert dict(trial.point) == other.check(trial.point)


def test_results_outside_a_narrowed_range_still_train_the_model():
    """The prediction is that of a model of the same results in the wide range."""
    line = covey.Space({"x": covey.Real(0.0, 10.0)})
    study = covey.Study(line, seed=1)
    batch = study.ask(10)
    study.tell(batch, [trial.point["x"] for trial in batch])
    half = covey.Space({"x": covey.Real(0.0, 5.0)})
    lone = covey.Study(half, seed=1)  # the control: without the results outside
    told = [t for t in study.history if t.point["x"] <= 5.0]
    lone.add([t.point for t in told], [t.value for t in told])
    study.extend(half, "above five it boils")
    at = [{"x": 5.0}]
    assert abs(study.predict(at).mean[0] - 5.0) < 0.05
    assert study.predict(at).std[0] < 0.5 * lone.predict(at).std[0]
    assert study.best.point["x"] > 5.0  # what was measured
    assert study.recommend().point["x"] <= 5.0  # what may be used


def test_what_was_reached_outside_is_no_measure_of_what_can_be_reached():
    """A peak that was cut off does not stop the search for the best of what is left."""

    def f(x):
        return float(np.exp(-8 * (x - 0.3) ** 2) + 5.0 * np.exp(-20 * (x - 1.6) ** 2))

    study = covey.Study(covey.Space({"x": covey.Real(0.0, 2.0)}), seed=3)
    for _ in range(3):
        batch = study.ask(5)
        study.tell(batch, [f(trial.point["x"]) for trial in batch])
    assert study.best.point["x"] > 1.0
    study.extend(covey.Space({"x": covey.Real(0.0, 0.8)}), "it boils")
    for _ in range(2):
        batch = study.ask(4)
        study.tell(batch, [f(trial.point["x"]) for trial in batch])
    assert abs(study.recommend().point["x"] - 0.3) < 0.05


def test_an_option_with_features_that_trials_had_may_go(tmp_path):
    numbers = {"a": [1.0, 7.0], "b": [2.0, 1.0], "c": [8.0, 5.0], "d": [8.1, 5.2]}

    def space(*names):
        return covey.Space({"c": covey.Choice(names, features=numbers), "x": covey.Real(0, 1)})

    study = covey.Study(space(*"abcd"), seed=0, journal=tmp_path / "run.jsonl")
    study.add([{"c": c, "x": 0.5} for c in "abd"], [0.0, 1.0, 9.0])
    study.extend(space(*"abc"), "sold out")
    predicted = study.predict([{"c": c, "x": 0.5} for c in "abc"]).mean
    assert predicted[2] > 5.0  # the result of the one gone speaks of the one that is like it
    assert all(trial.point["c"] != "d" for trial in study.ask(4))
    again = covey.Study.load(tmp_path / "run.jsonl")  # the log needs no file
    assert again.space == study.space
    assert len(again.history.told) == 3
    points = [trial.point for trial in study.history]
    np.testing.assert_array_equal(
        again.recipe.space.encode(points), study.recipe.space.encode(points)
    )


def test_options_that_are_gone_do_not_blur_each_other():
    """Each result of them tells something about the other parameters, whatever its option did."""
    space = covey.Space({"x": covey.Real(0, 1), "c": covey.Choice(list("abcde"))})
    off = dict(zip("abcde", (0.0, 0.5, 5.0, -5.0, 2.0), strict=True))
    study = covey.Study(space, seed=0)
    points = [{"x": (i * 7 % 30) / 29, "c": "abcde"[i % 5]} for i in range(30)]
    study.add(points, [np.sin(6 * p["x"]) + off[p["c"]] for p in points])
    study.extend(covey.Space({**space.parameters, "c": covey.Choice(["a", "b"])}), "sold out")
    at = [{"x": x, "c": "a"} for x in np.linspace(0, 1, 9)]
    expected = np.sin(6 * np.linspace(0, 1, 9))
    assert np.abs(study.predict(at).mean - expected).max() < 0.2


def test_a_reason_to_extend_needs_a_space(tmp_path):
    path = tmp_path / "run.jsonl"
    covey.Study(REALS, seed=0, journal=path)
    with pytest.raises(SpaceError, match=r"extend='wider' is the reason .* none is given"):
        covey.Study.load(path, extend="wider")
    assert covey.Study.load(path, WIDER, extend="wider").space == WIDER  # and nobody holds it


def test_a_new_part_of_a_mixture_does_not_come_on_top_of_the_total():
    def space(*names, total=1.0):
        parts = {name: covey.Real(0, 1) for name in names}
        return covey.Space(parts, where=[covey.Mixture(names, total=total)])

    study = covey.Study(space("w", "g"), seed=0)
    study.add([{"w": 0.3, "g": 0.7}, {"w": 0.5, "g": 0.5}], [1.0, 2.0])
    with pytest.raises(SpaceError, match=r"e=0\.2 .* trial 0 would sum to 1\.2, not 1,.* Say 0"):
        study.extend(space("w", "g", "e"), "a third part", values={"e": 0.2})
    assert len(study.history.events) == 1
    study.extend(space("w", "g", "e"), "a third part", values={"e": 0.0})
    whole = covey.Study(space("w", "g"), seed=0)
    whole.add([{"w": 0.3, "g": 0.7}], [1.0])
    whole.extend(space("w", "g", "e", total=1.2), "it was always there", values={"e": 0.2})


def left_outside(goal="max", **options) -> covey.Study:
    """A study whose results, the best ones at the far end, were all cut off."""
    sign = 1.0 if goal == "max" else -1.0
    study = covey.Study(covey.Space({"x": covey.Real(0, 1)}), goal=goal, seed=0, **options)
    study.add([{"x": v} for v in (0.6, 0.7, 0.8, 0.9)], [sign * v for v in (1, 2, 3, 4)])
    study.extend(covey.Space({"x": covey.Real(0, 0.5)}), "above a half it boils")
    return study


@pytest.mark.parametrize("goal", ["max", "min"])
def test_with_no_result_left_inside_the_model_says_what_to_use_and_what_to_beat(goal):
    study = left_outside(goal)
    found = study.recommend()
    assert found.trial is None
    assert found.point["x"] <= 0.5
    assert found == study.recommend(anywhere=True)
    advice = study.advice(up_to=4)
    assert advice.gains[0].gain > 0.0  # the results outside promise nothing that can be beaten
    assert advice.chance > 0.1
    assert not advice.stop
    recipe, rng = study._in(study._log.state), np.random.default_rng(0)
    posterior = understand(study.history, recipe, rng)
    belief = posterior.belief(np.array([[0.2], [0.9], [1.0]]))
    inside = compared(belief, posterior, study.space)
    assert inside.best == belief.mean.max() < belief.best
    assert inside.told is None


def test_with_one_result_left_inside_it_is_the_one_to_use():
    study = left_outside()
    study.add([{"x": 0.1}], [0.5])
    assert study.recommend().trial is not None
    assert study.recommend().point["x"] == 0.1


def test_with_no_row_left_a_pool_recommends_one_that_it_has():
    old = covey.Pool([{"t": float(t)} for t in range(8)])
    study = covey.Study(old, seed=0)
    study.add([{"t": float(t)} for t in range(4)], [1.0, 2.0, 3.0, 4.0])
    study.extend(covey.Pool([{"t": float(t)} for t in range(4, 8)]), "used up")
    assert study.recommend().point["t"] == 4.0
    assert study.advice(up_to=2).gains[0].gain > 0.0


def test_with_no_row_left_several_goals_are_traded_off_among_those_there_are():
    study = covey.Study(
        covey.Pool([{"t": float(t)} for t in range(8)]), goal={"a": "max", "b": "min"}, seed=0
    )
    study.add([{"t": float(t)} for t in range(4)], [{"a": t, "b": 2.0 * t} for t in range(4)])
    study.extend(covey.Pool([{"t": float(t)} for t in range(4, 8)]), "used up")
    assert study.recommend().point["t"] >= 4.0
    assert all(trial.point["t"] >= 4.0 for trial in study.ask(2))


@pytest.mark.parametrize("limits", [{}, {"cost": ("<=", 3.0)}])
def test_with_several_outcomes_results_outside_are_no_measure_either(limits):
    goal = {"yield": "max"} if limits else {"yield": "max", "cost": "min"}
    study = covey.Study(covey.Space({"x": covey.Real(0, 1)}), goal=goal, limits=limits, seed=0)
    points = [{"x": v} for v in (0.6, 0.7, 0.8, 0.9)]
    study.add(points, [{"yield": 10 * p["x"] - 5, "cost": p["x"]} for p in points])
    study.extend(covey.Space({"x": covey.Real(0, 0.5)}), "above a half it boils")
    assert study.recommend().point["x"] <= 0.5
    assert study.recommend().trial is None
    assert all(trial.point["x"] <= 0.5 for trial in study.ask(3))


def test_a_goal_with_a_limit_is_compared_with_what_can_be_reached():
    """The results outside do not count: moving them up changes nothing of the comparison."""
    study = covey.Study(
        covey.Space({"x": covey.Real(0, 1)}),
        goal={"y": "max"},
        limits={"cost": ("<=", 3.0)},
        seed=0,
    )
    points = [{"x": v} for v in (0.1, 0.3, 0.6, 0.9)]
    study.add(points, [{"y": p["x"], "cost": 1.0 + p["x"]} for p in points])
    study.extend(covey.Space({"x": covey.Real(0, 0.5)}), "above a half it boils")
    recipe, rng = study._in(study._log.state), np.random.default_rng(0)
    posteriors = understand_several(study.history, recipe, rng)
    belief = posteriors.belief(np.array([[0.5]]))
    values = posteriors.goals[0].data.values
    assert belief.best == values[1]
    assert values[1] < values.max()


def test_a_new_parameter_has_the_value_that_old_trials_had(tmp_path):
    path = tmp_path / "run.jsonl"
    study = covey.Study(REALS, seed=2, journal=path)
    batch = study.ask(4)
    study.tell(batch[:3], [1.0, 2.0, 3.0])
    more = covey.Space({**REALS.parameters, "p": covey.Real(0.5, 2.0)})
    before = path.read_bytes()
    with pytest.raises(SpaceError, match=r"'p' is new.*values=\{'p': \.\.\.\}.*--set p="):
        study.extend(more, "a second pump")
    with pytest.raises(SpaceError, match=r"3.0 is outside"):
        study.extend(more, "a second pump", values={"p": 3.0})
    with pytest.raises(SpaceError, match="values has 'x', which is no new parameter; new are p"):
        study.extend(more, "a second pump", values={"p": 1.0, "x": 1.0})
    assert path.read_bytes() == before
    study.extend(more, "a second pump", values={"p": 1.0}, key="pump")
    study.extend(more, "a second pump", values={"p": 1.0}, key="pump")  # sent again
    with pytest.raises(HistoryError, match="used before"):
        study.extend(REALS, "something else", key="pump")
    study.tell(batch[3], 2.5)  # a trial of before, which lacks the parameter
    assert {t.point["p"] for t in study.history} == {1.0}
    again = covey.Study.load(path)
    assert again.history.trials == study.history.trials
    assert sum(e.__class__.__name__ == "Extended" for e in again.history.events) == 1
    assert points_of(again.ask(3)) != []
    assert list(again.history.to_frame()["p"][:4]) == [1.0] * 4


def test_pending_trials_that_would_be_impossible_are_named():
    study = covey.Study(REALS, seed=0)
    study.enqueue([{"x": x, "y": 0.5} for x in (0.1, 0.7, 0.9)])
    narrow = covey.Space({"x": covey.Real(0.0, 0.5), "y": covey.Real(1e-3, 1.0)})
    with pytest.raises(HistoryError, match=r"2 pending trials \(1, 2\).*cancel them first"):
        study.extend(narrow, "narrower")
    assert study.space == REALS
    assert len(study.history.events) == 1
    study.tell(1, 1.0)
    study.cancel(2)
    study.extend(narrow, "narrower")
    # Old trials stay addressable, also those outside.
    study.amend(1, 2.0, "a typo")
    study.exclude(1, "wet")
    study.include(1, "dry")
    study.tell(2, 3.0)
    study.tell(0, 1.0)
    assert study.best.id == 2


@pytest.mark.parametrize("reason", ["", "  "])
def test_a_reason_is_needed(reason):
    study = covey.Study(REALS, seed=0)
    with pytest.raises(HistoryError, match="reason must not be empty"):
        study.extend(WIDER, reason)


def test_a_space_that_is_none_or_the_same_is_refused():
    study = covey.Study(REALS, seed=0)
    with pytest.raises(SpaceError, match="has this space already"):
        study.extend(covey.Space(REALS.parameters), "the same")
    with pytest.raises(SpaceError, match=r"needs a covey\.Space"):
        study.extend({"x": covey.Real(0, 1)}, "no space")
    study.add([{"x": 0.0, "y": 0.1}], [1.0])
    logs = covey.Space({**REALS.parameters, "x": covey.Real(0.1, 1, log=True)})
    with pytest.raises(SpaceError, match=r"trial 0 .* has no place .* log scale"):
        study.extend(logs, "logs")
    assert len(study.history.events) == 1


def test_another_process_goes_on_in_the_new_space(tmp_path):
    path = tmp_path / "run.jsonl"
    mine = some(REALS, journal=path)
    other = covey.Study.load(path)
    other.extend(covey.Space({"x": covey.Real(2.0, 3.0), "y": covey.Real(2.0, 3.0)}), "elsewhere")
    assert all(2.0 <= t.point["x"] <= 3.0 for t in mine.ask(3))  # which reads the log first
    assert mine.space == other.space
    assert mine.recipe.space == other.space


def test_a_batch_chosen_in_the_old_space_is_chosen_again(tmp_path):
    """It is never logged: an extension that comes first makes it conflict."""
    path = tmp_path / "run.jsonl"
    mine = some(REALS, journal=path)
    other = covey.Study.load(path)
    real, calls = mine.proposer, []

    def slow(history, recipe, request, recall):
        calls.append(recipe.space)
        made = real(history, recipe, request, recall)
        if len(calls) == 1:
            far = covey.Space({"x": covey.Real(2.0, 3.0), "y": covey.Real(2.0, 3.0)})
            other.extend(far, "elsewhere")
        return made

    mine.proposer = slow
    assert all(2.0 <= t.point["x"] <= 3.0 for t in mine.ask(3))
    assert len(calls) == 2
    asked = [e for e in covey.Study.load(path).history.events if isinstance(e, Asked)]
    assert len(asked) == 4


def test_points_of_ones_own_are_checked_in_the_space_that_there_is_by_then(tmp_path):
    path = tmp_path / "run.jsonl"
    mine = covey.Study(REALS, seed=0, journal=path)
    other = covey.Study.load(path)
    more = covey.Space({**REALS.parameters, "p": covey.Real(0.5, 2.0)})
    other.extend(more, "a second pump")
    with pytest.raises(SpaceError, match="'p'"):
        mine.enqueue([{"x": 0.5, "y": 0.5}])
    assert len(covey.Study.load(path).history) == 0


def test_opening_with_the_first_space_says_what_happened_since(tmp_path):
    path = tmp_path / "run.jsonl"
    study = covey.Study(REALS, seed=0, journal=path)
    study.extend(WIDER, "the best is at the edge")
    with pytest.raises(JournalMismatch, match=r"since on .*at the edge.*x: real, -1\.0"):
        covey.Study(REALS, journal=path)
    with pytest.raises(JournalMismatch, match=r"another space.*covey extend"):
        covey.Study(covey.Space({"x": covey.Real(0, 7), "y": covey.Real(1, 2)}), journal=path)
    assert covey.Study(WIDER, journal=path).space == WIDER
    again = covey.Study.load(path, REALS, extend="no, it was an outlier")
    assert again.space == REALS


def test_what_a_log_cannot_hold_is_passed_again(tmp_path):
    path = tmp_path / "run.jsonl"
    options, more = [object, int], [object, int, str]

    def space(options, most):
        return covey.Space(
            {"x": covey.Real(0, 1), "c": covey.Choice(options)}, where=[lambda p: p["x"] < most]
        )

    study = covey.Study(space(options, 0.9), seed=0, journal=path)
    study.tell(study.ask(4), [1.0, 2.0, 3.0, 4.0])
    # The function of the old space is lost, and not needed.
    again = covey.Study.load(path, space(more, 0.5), extend="a third kind")
    assert [dict(t.point) for t in again.history] == [dict(t.point) for t in study.history]
    assert all(t.point["x"] < 0.5 for t in again.ask(4))
    with pytest.raises(JournalMismatch, match=r"a third kind.*pass that space"):
        study.refresh()
    assert len(covey.Study.load(path, space(more, 0.5)).history) == 8


def test_several_goals_go_on_too():
    space = covey.Space({"x": covey.Real(0.0, 1.0)})
    study = covey.Study(space, {"up": "max", "down": "min"}, seed=0)
    for _ in range(2):
        batch = study.ask(4)
        study.tell(batch, [{"up": t.point["x"], "down": t.point["x"] ** 2} for t in batch])
    more = covey.Space({"x": covey.Real(0.0, 0.5), "n": covey.Integer(1, 3)})
    study.extend(more, "narrower, and a number", values={"n": 2})
    batch = study.ask(3)
    assert all(more.check(t.point) for t in batch)
    assert study.recommend().point["x"] <= 0.5
    taken = covey.Space({**more.parameters, "up": covey.Real(0, 1)})
    with pytest.raises(StrategyError, match="a parameter and an outcome"):
        study.extend(taken, "its name is taken")


def test_a_snapshot_of_a_host_holds_all_of_it():
    from covey.integrations.snapshots import revive, snapshot

    study = some(MIXED)
    study.extend(OTHER, "another range")
    study.ask(2)
    again, _ = revive(snapshot(study, "auto", {}), "a snapshot", None, None)
    assert again.history.trials == study.history.trials
    assert points_of(again.ask(3)) == points_of(study.ask(3))
