"""Studies with outcomes by name: declared, told, asked for, answered and logged."""

import json

import numpy as np
import pytest

import covey
from covey.errors import HistoryError, JournalError, JournalMismatch, StrategyError
from covey.outcomes import Outcomes

GOALS = {"yield": "max", "cost": "min"}


def space():
    return covey.Space({"x": covey.Real(0, 1), "y": covey.Real(0, 1)})


def measured(point):
    return {"yield": point["x"], "cost": point["x"] ** 2 + (point["y"] - 0.4) ** 2}


def started(n=12, goal=GOALS, journal=None, **options):
    study = covey.Study(space(), goal=goal, seed=0, journal=journal, **options)
    batch = study.ask(n)
    study.tell(batch, [measured(t.point) for t in batch])
    return study


# Declaring.


@pytest.mark.parametrize(
    ("goal", "options", "said"),
    [
        ("best", {}, 'goal must be "max" or "min", or name several'),
        ({}, {}, 'goal must be "max" or "min", or name several'),
        ({"yield": "up"}, {}, "the goal 'yield' must be \"max\" or \"min\"; got 'up'"),
        ({"": "max"}, {}, "the name of a goal is a text"),
        ({"yield": "max", "Yield": "min"}, {}, "'yield' and 'Yield' differ in their case only"),
        (GOALS, {"limits": {"ph": 2.0}}, "the limit on 'ph' is such as"),
        (GOALS, {"limits": {"ph": ("<", 2.0)}}, "the limit on 'ph' is such as"),
        (GOALS, {"limits": {"ph": ("<=", float("nan"))}}, "the limit on 'ph' is a finite number"),
        (GOALS, {"limits": {"x": ("<=", 0.5)}}, "the limit x <= 0.5 is on a parameter"),
        (GOALS, {"limits": {"Cost": ("<=", 0.5)}}, "'cost' and 'Cost' differ in their case only"),
        (GOALS, {"record": "notes"}, "record is a list of names"),
        (GOALS, {"record": ["cost"]}, "'cost' is a goal; take it out of record"),
        (GOALS, {"record": ["n", "n"]}, "a name occurs twice in record"),
        (GOALS, {"limits": {"ph": ("<=", 1)}, "record": ["ph"]}, "'ph' is limited"),
        ({"x": "max"}, {}, "'x' is a parameter and an outcome"),
        ({"id": "max", "cost": "min"}, {}, "an outcome cannot be called 'id'"),
        (GOALS, {"limits": {"seconds": ("<=", 1)}}, "an outcome cannot be called 'seconds'"),
        (GOALS, {"record": ["reason"]}, "so are id, status, sem, origin, batch, asked"),
        (GOALS, {"limits": {"value": ("<=", 1)}}, "only a goal may be called 'value'"),
        (GOALS, {"record": ["value"]}, "only a goal may be called 'value'"),
        (GOALS, {"worst": {"yield": 0.0}}, "worst has one value for each goal (yield, cost)"),
        (GOALS, {"worst": {"yield": 0.0, "cost": "high"}}, "the worst 'cost' is a finite number"),
    ],
)
def test_what_makes_no_sense_is_refused(goal, options, said, tmp_path):
    with pytest.raises(StrategyError) as error:
        covey.Study(space(), goal=goal, journal=tmp_path / "run.jsonl", **options)
    assert said in str(error.value)
    assert not (tmp_path / "run.jsonl").exists()


def test_a_plain_goal_is_one_outcome_called_value():
    study = covey.Study(space(), goal="min", seed=0)
    study.tell(study.ask(1), [3.0])
    assert study.goal == "min"
    assert study.history[0].values == {"value": 3.0}
    assert study.outcomes == Outcomes({"value": "min"})
    assert [t.id for t in study.front] == [0]


# Telling.


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"yield": 1.0, "cost": 2.0, "colour": 3.0}, "'colour' was not declared"),
        ({"yield": 1.0, "costs": 2.0}, "Did you mean 'cost'?"),
        ({"yield": 1.0}, "no value for cost; write 'cost': None if it comes later"),
        ({"yield": 1.0, "cost": float("nan")}, "trial 0, 'cost': value must be finite, got nan"),
        ({"yield": None, "cost": None}, "every outcome is None"),
        ({"yield": 1.0, "cost": "cheap"}, "trial 0, 'cost': value must be a real number"),
        (1.0, "this study has several outcomes; tell them by name"),
        ({}, "no value for yield and cost"),
    ],
)
def test_a_bad_result_is_refused_and_nothing_is_recorded(told, said, tmp_path):
    journal = tmp_path / "run.jsonl"
    study = covey.Study(space(), goal=GOALS, seed=0, journal=journal)
    batch = study.ask(2)
    before = journal.read_bytes()
    with pytest.raises(HistoryError) as error:
        study.tell(batch, [told, {"yield": 1.0, "cost": 2.0}])
    assert said in str(error.value)
    assert journal.read_bytes() == before
    assert len(study.history.pending) == 2


def test_nan_in_one_of_three_is_refused():
    study = covey.Study(space(), goal=GOALS, limits={"ph": ("<=", 7.0)}, seed=0)
    study.ask(1)
    with pytest.raises(HistoryError, match=r"'ph'.*got nan"):
        study.tell(0, {"yield": 1.0, "cost": 2.0, "ph": np.nan})
    assert study.history[0].status == "pending"


def test_an_outcome_may_come_later():
    study = covey.Study(space(), goal=GOALS, seed=0)
    study.ask(2)
    study.tell([0, 1], [{"yield": 1.0, "cost": None}, {"yield": 2.0, "cost": 3.0}])
    assert study.history[0].values == {"yield": 1.0}
    assert [t.id for t in study.front] == [1]
    assert [t.id for t in study.history.of_outcome("cost").pending] == [0]
    study.tell(0, {"cost": 0.5})
    assert study.history[0].values == {"yield": 1.0, "cost": 0.5}
    assert [t.id for t in study.front] == [0, 1]
    with pytest.raises(HistoryError, match="trial 0 was already told"):
        study.tell(0, {"cost": 0.6})


def test_one_named_goal_is_the_value_and_takes_plain_numbers():
    study = covey.Study(space(), goal={"yield": "max"}, seed=0)
    study.tell(study.ask(2), [1.0, {"yield": 2.0}])
    assert [t.value for t in study.history] == [1.0, 2.0]
    assert study.best.id == 1


def test_the_goal_may_come_after_the_limit():
    study = covey.Study(space(), goal={"yield": "max"}, limits={"ph": ("<=", 7.0)}, seed=0)
    study.ask(2)
    study.tell([0, 1], [{"yield": None, "ph": 6.0}, {"yield": 1.0, "ph": 6.0}])
    study.tell(0, {"yield": 2.0})
    assert study.history[0].value == 2.0
    assert study.best.id == 0


def test_the_limit_may_come_after_the_goal(tmp_path):
    journal, limits = tmp_path / "run.jsonl", {"ph": ("<=", 7.0)}
    study = covey.Study(space(), goal="max", limits=limits, seed=0, journal=journal)
    study.ask(2)
    study.tell(0, {"value": 3.0, "ph": None})
    assert study.best is None
    study.tell(0, {"ph": 6.0})
    again = covey.Study(space(), goal="max", limits=limits, seed=0, journal=journal)
    for one in (study, again):
        assert one.history[0].value == one.best.value == 3.0
        assert one.history[0].goal == "value"
        assert [t.id for t in one.history.counted] == [0]


def test_records_are_kept_shown_and_not_modelled():
    study = covey.Study(space(), goal=GOALS, record=["notes", "batch_no"], seed=0)
    batch = study.ask(2)
    study.tell(batch, [{**measured(t.point), "notes": "clear"} for t in batch])
    assert study.history.metrics(0) == {"notes": "clear"}
    frame = study.history.to_frame()
    assert list(frame["notes"]) == ["clear", "clear"]
    assert frame["yield"].tolist() == [t.values["yield"] for t in study.history]
    assert set(study.predict([batch[0].point])) == {"yield", "cost"}


def test_one_of_several_goals_may_be_called_value():
    study = covey.Study(space(), goal={"value": "max", "cost": "min"}, seed=0)
    study.ask(2)
    study.tell(0, {"value": 1.5, "cost": 2.5})
    frame = study.history.to_frame()
    assert frame["value"].tolist()[0] == 1.5
    assert frame["cost"].tolist()[0] == 2.5
    assert frame["value"].isna().tolist() == [False, True]
    assert study.history[0].value is None


@pytest.mark.parametrize("ended", ["fail", "cancel"])
def test_what_a_late_result_lacks_is_pending(ended):
    study = covey.Study(space(), goal=GOALS, seed=0)
    study.ask(3)
    getattr(study, ended)([0, 1])
    study.tell(0, {"yield": 1.0, "cost": None})
    cost, gained = (study.history.of_outcome(name) for name in ("cost", "yield"))
    assert [t.id for t in cost.pending] == [0, 2]
    assert cost[1].status == gained[1].status == study.history[1].status
    assert [t.id for t in gained.told] == [0]
    study.tell(0, {"cost": 2.0})
    assert [t.id for t in study.history.of_outcome("cost").told] == [0]


def test_a_late_result_in_part_after_a_retry_that_failed_too():
    study = covey.Study(space(), goal=GOALS, seed=0)
    study.ask(2)
    study.fail(0)
    study.retry(0)
    study.fail([0, 1])
    study.tell(0, {"yield": 1.0, "cost": None})
    cost = study.history.of_outcome("cost")
    assert [t.status for t in cost] == ["pending", "failed"]


def test_a_trial_told_in_part_is_closed_by_excluding_it():
    study = covey.Study(space(), goal=GOALS, seed=0)
    study.ask(2)
    study.tell(0, {"yield": 1.0, "cost": None})
    with pytest.raises(HistoryError, match=r"cannot be measured: study.exclude\(0, reason\)"):
        study.fail(0, "the balance broke")
    study.exclude(0, "the balance broke")
    assert study.history[0].excluded


def test_amend_corrects_some_values_by_name():
    study = started(2)
    study.amend(0, {"cost": 9.0}, "typo")
    assert study.history[0].values["cost"] == 9.0
    assert study.history[0].values["yield"] == measured(study.history[0].point)["yield"]
    with pytest.raises(HistoryError, match="'price'"):
        study.amend(0, {"price": 9.0}, "typo")


def test_a_standard_error_needs_the_value_it_belongs_to():
    study = covey.Study(space(), goal="max", limits={"ph": ("<=", 7.0)}, seed=0)
    study.ask(2)
    told = [{"value": 1.0, "ph": 6.0}, {"value": None, "ph": 6.0}]
    with pytest.raises(HistoryError, match=r"0\.1.*'value'"):
        study.tell([0, 1], told, sem=0.1)
    assert len(study.history.pending) == 2
    study.tell([0, 1], told, sem=[0.1, None])
    assert [t.sem for t in study.history] == [0.1, None]


def test_the_model_learns_the_standard_error_of_a_value_that_was_amended_by_its_name():
    study = covey.Study(space(), goal={"yield": "max"}, limits={"ph": ("<=", 7.0)}, seed=0)
    study.ask(1)
    study.tell(0, {"yield": 60.0, "ph": 6.0}, sem=0.1)
    study.amend(0, {"yield": 61.0}, "typo", sem=0.4)
    (own,) = study.history.of_outcome("yield").counted
    assert (own.value, own.sem) == (61.0, 0.4)
    assert study.history.of_outcome("ph")[0].sem is None


def test_a_standard_error_needs_one_goal():
    study = covey.Study(space(), goal=GOALS, seed=0)
    study.ask(1)
    with pytest.raises(HistoryError, match="sem belongs to one goal"):
        study.tell(0, {"yield": 1.0, "cost": 2.0}, sem=0.1)
    one = covey.Study(space(), goal={"yield": "max"}, limits={"ph": ("<=", 7)}, seed=0)
    one.ask(1)
    one.tell(0, {"yield": 1.0, "ph": 2.0}, sem=0.1)
    assert one.history[0].sem == 0.1


# Answers.


def test_front_and_best_keep_the_limits_and_leave_out_what_is_excluded():
    study = covey.Study(space(), goal={"yield": "max"}, limits={"ph": ("<=", 7.0)}, seed=0)
    study.ask(4)
    study.tell(
        range(4),
        [{"yield": v, "ph": ph} for v, ph in [(9.0, 8.0), (3.0, 7.0), (5.0, 6.0), (4.0, 1.0)]],
    )
    assert study.best.id == 2
    assert [t.id for t in study.front] == [2]
    study.note(covey.history.Excluded((2,), "spilt"))
    assert study.best.id == 3
    study.note(covey.history.Excluded((1, 3), "spilt"))
    assert study.best is None
    assert study.front == []
    with pytest.raises(HistoryError, match="ph <= 7"):
        study.recommend()


def test_excluding_and_including_leaves_front_and_batches_as_they_were():
    study, twin = started(14), started(14)
    before = [trial.id for trial in study.front]
    worst = study.front[0].id
    study.exclude(worst, "spilt")
    assert worst not in [trial.id for trial in study.front]
    study.include(worst, "it was not")
    assert [trial.id for trial in study.front] == before
    assert [t.point for t in study.ask(3)] == [t.point for t in twin.ask(3)]


def test_advice_does_not_depend_on_the_name_of_the_goal():
    named, plain = (covey.Study(space(), goal=goal, seed=3) for goal in ({"yield": "max"}, "max"))
    for study in (named, plain):
        batch = study.ask(8)
        values = [float(i % 5) for i in range(8)]
        study.tell(batch, [{"yield": v} for v in values] if study is named else values)
    assert named.advice(4) == plain.advice(4)


def test_several_goals_have_no_one_best():
    study = started()
    with pytest.raises(StrategyError, match=r"study.front has those .*recommend\(weights"):
        _ = study.best


def test_weights_move_the_recommendation_along_the_front():
    study = started(20)
    greedy = study.recommend(weights={"yield": 10, "cost": 1})
    thrifty = study.recommend(weights={"yield": 1, "cost": 10})
    assert greedy.expected["yield"].mean > thrifty.expected["yield"].mean
    assert greedy.expected["cost"].mean > thrifty.expected["cost"].mean
    assert greedy.trial.id in {t.id for t in study.front}
    assert study.recommend(anywhere=True).trial is None


@pytest.mark.parametrize(
    "weights", [{"yield": 1}, {"yield": 0, "cost": 0}, {"yield": -1, "cost": 1}]
)
def test_bad_weights_are_refused(weights):
    with pytest.raises(StrategyError, match="weight"):
        started(3).recommend(weights=weights)


def test_no_weight_makes_a_dominated_trial_the_answer():
    # Two options: where the gain is alike, the cost is not.
    pool = covey.Pool([{"x": float(i)} for i in range(6)])
    study = covey.Study(pool, goal={"gain": "max", "cost": "min"}, seed=0)
    study.add(
        [pool.point(i) for i in range(6)],
        [{"gain": 1.0, "cost": cost} for cost in (6.0, 5.0, 4.0, 3.0, 2.0, 1.0)],
    )
    for weights in ({"gain": 1, "cost": 0}, {"gain": 0, "cost": 1}):
        found = study.recommend(weights=weights)
        means = study.predict([t.point for t in study.history])
        assert found.trial.id == int(np.argmin(means["cost"].mean)) == 5


def test_all_failed_or_excluded_gives_a_design_and_an_error_without_a_model():
    study = covey.Study(space(), goal=GOALS, seed=0)
    study.fail(study.ask(3))
    assert study.front == []
    assert len(study.ask(2)) == 2
    with pytest.raises(HistoryError, match="nothing has been told yet"):
        study.predict([{"x": 0.1, "y": 0.1}])
    told = started(3)
    told.note(covey.history.Excluded((0, 1, 2), "wrong"))
    assert told.front == []
    assert len(told.ask(2)) == 2
    with pytest.raises(HistoryError, match="no result told so far counts"):
        told.predict([{"x": 0.1, "y": 0.1}])


# Batches.


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize(
    "strategy",
    [
        *("auto", "ucb-dpp-max", "ucb-dpp-sample", "est-dpp-sample", "ucb-pe", "bucb", "b-est"),
        *("thompson", "dpp-ts", "random", "sobol"),
    ],
)
def test_every_strategy_chooses_for_several_goals(strategy):
    study = started(goal=GOALS)
    batch = study.ask(4, strategy=strategy)
    assert len({tuple(t.point.values()) for t in batch}) == 4


def test_a_strategy_of_one_mean_says_so():
    with pytest.raises(StrategyError, match="reads the slope of one goal"):
        started().ask(3, strategy="lp-ucb")


def test_no_two_of_a_batch_are_copies():
    study = started(30)
    batch = np.array([list(t.point.values()) for t in study.ask(16)])
    apart = np.abs(batch[:, None] - batch).max(axis=2)
    assert apart[~np.eye(16, dtype=bool)].min() >= 0.01


@pytest.mark.parametrize("m", [3, 4])
def test_more_goals(m):
    names = [f"g{j}" for j in range(m)]
    study = covey.Study(space(), goal=dict.fromkeys(names, "min"), seed=0)
    batch = study.ask(12)
    centres = np.random.default_rng(0).random((m, 2))
    rows = np.array([list(t.point.values()) for t in batch])
    values = np.square(rows[:, None] - centres).sum(axis=2)
    study.tell(batch, [dict(zip(names, map(float, row), strict=True)) for row in values])
    assert len(study.ask(4)) == 4
    assert ("weighting" in study.diagnostics.note) == (m == 4)


def test_limits_are_learnt():
    """Half of the space breaks the limit, and the goal rises towards it; hardly any batch does."""
    study = covey.Study(space(), goal={"yield": "max"}, limits={"ph": ("<=", 0.5)}, seed=0)
    for _ in range(5):
        batch = study.ask(6)
        study.tell(batch, [{"yield": t.point["x"], "ph": t.point["x"]} for t in batch])
    kept = [t.point["x"] <= 0.5 for t in study.history]
    assert sum(kept[-12:]) >= 8
    assert study.best.value > 0.48


def test_where_no_result_keeps_a_limit_batches_go_towards_it():
    """Its probability is tiny everywhere, and still has a direction."""
    study = covey.Study(space(), goal=GOALS, limits={"ph": (">=", 1.2)}, seed=0)
    batch = study.ask(12)
    study.tell(batch, [{**measured(t.point), "ph": t.point["y"]} for t in batch])
    assert np.mean([t.point["y"] for t in study.ask(4)]) > 0.9


def test_a_pool_a_mixed_space_and_pending_trials():
    pool = covey.Pool(np.random.default_rng(0).random((80, 2)))
    mixed = covey.Space({"x0": covey.Real(0, 1), "x1": covey.Choice([0.1, 0.5, 0.9])})
    for where in (pool, mixed):
        study = covey.Study(where, goal=GOALS, seed=0)
        batch = study.ask(12)
        rows = [{"x": t.point["x0"], "y": t.point["x1"]} for t in batch]
        study.tell(batch, [measured(row) for row in rows])
        open_ones = [study.ask(3), study.ask(3)]
        points = [tuple(t.point.values()) for some in open_ones for t in some]
        assert len(set(points)) == 6  # the second batch knows of the first


# The log.


def test_a_plain_header_is_as_before_and_outcomes_are_in_theirs(tmp_path):
    covey.Study(space(), goal="min", seed=0, journal=tmp_path / "plain.jsonl")
    plain = json.loads((tmp_path / "plain.jsonl").read_text().splitlines()[0])
    assert plain["goal"] == "min"
    assert not {"limits", "record", "worst"} & plain.keys()
    covey.Study(
        space(), goal=GOALS, limits={"ph": ("<=", 7.0)}, record=["notes"], seed=0,
        worst={"yield": 0.0, "cost": 2.0}, journal=tmp_path / "named.jsonl",
    )  # fmt: skip
    named = json.loads((tmp_path / "named.jsonl").read_text().splitlines()[0])
    assert named["goal"] == GOALS
    assert (named["limits"], named["record"]) == ({"ph": ["<=", 7.0]}, ["notes"])
    assert named["worst"] == {"yield": 0.0, "cost": 2.0}


def test_a_reloaded_study_asks_for_the_same_batch(tmp_path):
    journal = tmp_path / "run.jsonl"
    study = started(journal=journal, limits={"cost": ("<=", 1.0)})
    study.ask(2)
    study.tell(12, {"yield": 0.3, "cost": None})
    twin = tmp_path / "twin.jsonl"
    twin.write_bytes(journal.read_bytes())
    ours = study.ask(3)
    other = covey.Study.load(twin)
    assert [t.point for t in other.ask(3)] == [t.point for t in ours]
    assert other.goal == GOALS
    assert other.outcomes.limits == study.outcomes.limits
    logged = [json.loads(line) for line in journal.read_text().splitlines()][-1]["models"]
    assert [model["outcome"] for model in logged] == ["cost", "yield"]  # in the order of names


def test_a_journal_of_other_outcomes_is_refused(tmp_path):
    journal = tmp_path / "run.jsonl"
    started(3, journal=journal, limits={"cost": ("<=", 1.0)})
    with pytest.raises(JournalMismatch, match=r"\{'yield': 'max', 'cost': 'min'\}"):
        covey.Study(space(), goal={"yield": "max"}, journal=journal)
    with pytest.raises(JournalMismatch, match=r"'cost': \['<=', 1\.0\]"):
        covey.Study(space(), goal=GOALS, limits={"cost": ("<=", 2.0)}, journal=journal)
    assert len(covey.Study(space(), goal=GOALS, journal=journal).history) == 3


def test_a_header_with_nonsense_is_refused(tmp_path):
    from covey.log.header import require_study

    journal = tmp_path / "run.jsonl"
    started(3, journal=journal)
    header = json.loads(journal.read_text().splitlines()[0])
    with pytest.raises(JournalError, match="makes no sense"):
        require_study({**header, "limits": {"ph": 3}}, journal)


def test_results_in_part_and_their_corrections_are_those_of_each_outcome():

    study = covey.Study(covey.Space({"x": covey.Real(0, 1)}), {"a": "max", "b": "min"}, seed=0)
    study.add([{"x": 0.1}, {"x": 0.9}], [{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": None}])
    study.amend(0, {"b": 2.5}, "a typo")
    a, b = (study.history.of_outcome(name) for name in ("a", "b"))
    assert [(t.status, t.value) for t in a.trials] == [("told", 1.0), ("told", 3.0)]
    assert [(t.status, t.value) for t in b.trials] == [("told", 2.5), ("pending", None)]
