import json
from dataclasses import replace

import pytest

import covey
from covey.history import Asked, Point, Trial
from covey.report import card, page
from covey.report.batches import Commands
from covey.report.card import LEAST_CHANCE, MEANING, headline, reason, repeats
from covey.report.predictions import Forecast, PastForecast, past_forecasts


def plain(study):
    return json.loads(json.dumps(card(study).to_json(), allow_nan=False))


def test_a_card_says_everything(rising):
    made = card(rising)
    assert made.headline.startswith("Batch 4: 3 of 6 in; 2 pending, 1 cancelled. Best ")
    assert made.standing.counts == {
        "pending": 2,
        "told": 21,
        "failed": 3,
        "cancelled": 1,
        "lost": 0,
    }
    assert made.standing.strategies == ("auto",)
    assert (made.standing.seed, made.standing.batches) == (1, 4)
    assert made.standing.events == len(rising.history.events)
    assert made.standing.version == covey.__version__
    assert (made.batches, made.still_open) == (("batch 4",), True)
    assert [row.id for row in made.rows] == list(range(21, 27))
    assert made.best == rising.best.id
    assert made.notes[0].startswith("2 of 4 batches came without a model")


def test_the_rows_of_the_open_batch(rising):
    rows = card(rising).rows
    for row in rows:
        trial = rising.history.trial(row.id)
        assert row.point == dict(trial.point)
        assert row.expected is not None
        assert (row.value, row.status) == (trial.value, trial.status)
        assert (row.error is None) == (trial.value is None)
        assert row.reason == ("exploit" if row.chance >= 1 / 3 else "explore")
        if row.error is not None:
            off = trial.value - row.expected.mean
            assert row.error == pytest.approx(off / row.expected.std)


def test_both_goals_mirror_each_other(rising, falling):
    """The same search seen in a mirror: every number has the other sign, every word fits."""
    up, down = card(rising), card(falling)
    assert up.best == down.best
    for a, b in zip(up.rows, down.rows, strict=True):
        assert a.point == b.point
        assert a.reason == b.reason
        assert a.expected.mean == pytest.approx(-b.expected.mean, rel=1e-9)
        assert a.expected.most == pytest.approx(
            (-b.expected.most[1], -b.expected.most[0]), rel=1e-9
        )
    for a, b in zip(up.calibration.coverage, down.calibration.coverage, strict=True):
        assert (a.band, a.inside, a.of) == (b.band, b.inside, b.of)
    assert [dot.best for dot in up.way] == [-dot.best for dot in down.way]
    assert [one.name for one in up.slices] == [one.name for one in down.slices]


def test_reasons_of_points_that_no_model_chose(line):
    line.add([{"x": 0.5}], [1.0])
    line.enqueue([{"x": 0.5}, {"x": 0.6}])
    line.ask(1, strategy="random")
    assert [row.reason for row in card(line).rows] == ["repeat", "yours", "design"]


def test_json_is_plain_and_complete(rising, pooled):
    for study in (rising, pooled):
        out = plain(study)
        assert out["schema"] == "covey.report/1"
        assert out["headline"] == card(study).headline
        assert len(out["way"]) == len(study.history)
    assert out["rows"][0]["point"]["name"].startswith("molecule")


def test_a_number_that_is_none_is_null(card_of):
    made = card_of("rising")
    odd = replace(made, rows=(replace(made.rows[0], chance=float("nan")),))
    assert odd.to_json()["rows"][0]["chance"] is None


def test_options_that_json_cannot_hold():
    space = covey.Space({"f": covey.Choice([max, min])})
    study = covey.Study(space, seed=0)
    study.tell(study.ask(2), [1.0, 2.0])
    rows = plain(study)["rows"]
    assert sorted(row["point"]["f"]["option"] for row in rows) == [0, 1]
    assert rows[0]["texts"][0].startswith("<built-in function m")


def test_the_same_log_gives_the_same_card(tmp_path):
    study = covey.Study(
        covey.Space({"x": covey.Real(0.0, 1.0)}), seed=0, journal=tmp_path / "run.jsonl"
    )
    for _ in range(3):
        batch = study.ask(4)
        study.tell(batch, [-((t.point["x"] - 0.3) ** 2) for t in batch])
    first = card(study)
    del study
    assert card(covey.Study.load(tmp_path / "run.jsonl")) == first


def test_commands_of_another_door(line):
    given = Commands(("covey ask",), ("covey ask --again",))
    assert card(line, given).commands == given


def empty(study):
    del study


def pending(study):
    study.ask(3)


def failed(study):
    study.fail(study.ask(3))


def one(study):
    study.tell(study.ask(1), [2.0])


def constant(study):
    study.tell(study.ask(4), [2.0] * 4)
    study.tell(study.ask(4), [2.0] * 4)


def added(study):
    study.add([{"x": 0.1}, {"x": 0.2}], [1.0, 2.0])


def extreme(study):
    study.tell(study.ask(5), [1e100, -1e100, 0.0, 1e-300, 1.0])
    study.tell(study.ask(2), [1.0, 2.0])


def repeated(study):
    study.tell(study.enqueue([{"x": 0.5}] * 3), [1.0, 1.1, 0.9])


def lost_and_found(study):
    batch = study.ask(3)
    study.fail(batch)
    study.tell(batch[0], 1.0)
    study.cancel(study.ask(2))


CASES = [empty, pending, failed, one, constant, added, extreme, repeated, lost_and_found]


@pytest.mark.parametrize("happened", CASES)
@pytest.mark.parametrize("goal", ["max", "min"])
def test_however_little_happened(happened, goal):
    study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), goal=goal, seed=0)
    happened(study)
    out = plain(study)
    assert out["headline"]
    assert (out["best"] is None) == (not study.history.told)
    assert bool(out["slices"]) == bool(study.history.told)


def test_duplicates_are_stated(line):
    repeated(line)
    found = card(line).diversity
    assert (found.duplicates, found.pair.distance) == (2, 0.0)


def test_long_studies_are_looked_back_on_in_part():
    study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), seed=0)
    for _ in range(14):
        batch = study.ask(5)
        study.tell(batch, [-((t.point["x"] - 0.3) ** 2) for t in batch])
    made = card(study)
    assert {pair.batch for pair in made.calibration.pairs} == set(range(3, 15))
    assert "looks back on the last 12 of 13 batches" in made.notes[-1]


def test_very_many_results_are_not_modelled(line):
    study = covey.Study(line.space, seed=0)
    study.add([{"x": i / 3000} for i in range(3001)], range(3001))
    made = card(study)
    assert made.slices == ()
    assert made.notes[-1].startswith("3001 results are more than a report looks at")
    assert "Left out: see the note above." in page(made)


def test_the_best_of_long_ago_still_knows_what_was_expected():
    study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), seed=0)
    study.tell(study.ask(4), [0.0, 0.1, 0.2, 0.3])
    study.tell(study.ask(4), [9.0, 0.0, 0.0, 0.0])
    for _ in range(13):
        study.tell(study.ask(4), [0.0, 0.1, 0.2, 0.3])
    assert "unchanged since batch 2; the model expected" in card(study).headline


# The headline


def of(study):
    batches = study.history.batches
    return headline(
        study.history, study.goal, batches, past_forecasts(study.history, study.recipe, batches)
    )


def test_nothing_yet(line):
    assert of(line) == (
        "No batch has been asked for yet. Nothing has been told, so there is no best yet."
    )
    line.enqueue([{"x": 0.5}])
    assert of(line).startswith("No batch has been asked for yet; 1 trial enqueued.")


def test_a_batch_as_it_comes_in(line):
    batch = line.ask(3)
    assert of(line).startswith("Batch 1: 0 of 3 in; 3 pending. Nothing has been told")
    line.tell(batch[0], 1.0)
    line.fail(batch[1])
    assert of(line) == (
        "Batch 1: 1 of 3 in; 1 pending, 1 failed. Best 1 (trial 0); it was chosen without a model."
    )


def test_everything_failed(line):
    line.fail(line.ask(2))
    assert of(line) == (
        "Batch 1: 0 of 2 in; 2 failed. Nothing has been told, so there is no best yet."
    )


def test_what_is_excluded_is_said_and_is_not_the_best(line):
    line.tell(line.ask(4), [1.0, 9.0, 3.0, 2.0])
    line.tell(line.ask(2), [4.0, 5.0])
    line.exclude([1, 5], "wrong <vial>")
    assert of(line).startswith("Batch 2: 2 of 2 in; 1 excluded. Best 4 (trial 4), up 1 from batch")
    made = card(line)
    assert [(one.id, one.batch, one.reason) for one in made.excluded] == [
        *((5, 2, "wrong <vial>"), (1, 1, "wrong <vial>"))
    ]
    assert [row.excluded for row in made.rows] == [False, True]
    assert [dot.id for dot in made.way if dot.excluded] == [1, 5]
    assert [dot.best for dot in made.way] == [3.0] * 4 + [4.0] * 2
    assert [pair.id for pair in made.calibration.pairs] == [4]  # it says nothing about the model
    json.dumps(made.to_json(), allow_nan=False)


def test_everything_excluded(line):
    line.tell(line.ask(2), [1.0, 2.0])
    line.exclude([0, 1], "wet")
    assert of(line) == (
        "Batch 1: 2 of 2 in; 2 excluded. Every result is excluded, so there is no best yet."
    )


def test_excluding_and_including_leaves_the_card_but_for_the_events(line):
    line.tell(line.ask(4), [1.0, 9.0, 3.0, 2.0])
    before = card(line).to_json()
    line.exclude([1], "wet")
    line.include([1], "dry")
    after = card(line).to_json()
    assert after["standing"].pop("events") == before["standing"].pop("events") + 2
    assert after == before


def second(goal, values):
    study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), goal=goal, seed=0)
    study.tell(study.ask(3), [1.0, 2.0, 3.0])
    study.tell(study.ask(2), values)
    return of(study)


def test_up_and_down():
    up = second("max", [5.25, 0.0])
    assert up.startswith("Batch 2: 2 of 2 in. Best 5.25 (trial 3), up 2.25 from batch 1; the model")
    assert " ± " in up
    down = second("min", [-0.5, 9.0])
    assert "Best -0.5 (trial 3), down 1.5 from batch 1; the model expected" in down


def test_unchanged():
    assert "Best 3 (trial 2), unchanged since batch 1; it was chosen" in second("max", [0.0, 3.0])
    assert "Best 1 (trial 0), unchanged since batch 1" in second("min", [1.0, 3.0])


def test_results_from_elsewhere(line):
    line.add([{"x": 0.1}, {"x": 0.2}], [4.0, 5.0])
    assert of(line) == ("No batch has been asked for yet; 2 trials added. Best 5 (trial 1, added).")
    batch = line.ask(2)
    assert "2 pending. Best 5 (trial 1, added), from added." in of(line)
    line.tell(batch, [6.0, 7.0])
    assert "Best 7 (trial 3), up 2 from what was known before; the model" in of(line)
    line.tell(line.enqueue([{"x": 0.9}]), [8.0])
    assert of(line).endswith("Best 8 (trial 4, enqueued).")


# The reason of each point


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
    assert repeats(line.space, trials, range(len(trials))) == {1: 0, 3: 0, 5: 4}
    assert repeats(line.space, trials, [3, 4]) == {3: 0}


def test_a_label_does_not_make_another_point():
    pool = covey.Pool([{"t": 1, "name": "a"}, {"t": 2, "name": "b"}], labels=["name"])
    study = covey.Study(pool, seed=0)
    study.add([{"t": 1}], [1.0])
    study.enqueue([{"t": 1, "name": "a"}, {"t": 2}])
    assert repeats(pool, study.history.trials, [1, 2]) == {1: 0}


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


def test_a_replicate_is_said_to_be_one(line):
    line.add([{"x": 0.2}, {"x": 0.5}], [1.0, 2.0])
    line.enqueue([{"x": 0.5}, {"x": 0.6}])
    again, fresh = covey.report.card(line).rows
    assert (again.reason, again.why) == ("repeat", "replicate of trial 1")
    assert (fresh.reason, fresh.why) == ("yours", "")


def test_each_point_of_the_last_batch_says_why_it_is_there(line):
    line.tell(line.ask(12), [((i * 5) % 12) / 3.0 for i in range(12)])
    batch = line.ask(4, strategy="est-dpp-max")
    rows = covey.report.card(line).rows
    assert [row.why for row in rows] == [line.history.why(trial) for trial in batch]
    assert "picked for the largest determinant from" in covey.report.page(covey.report.card(line))
