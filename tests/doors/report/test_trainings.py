"""Reports of studies in which evaluations were stopped early."""

from __future__ import annotations

import json
import re

import pytest

import covey
from covey.history import Dispatched, Reported
from covey.report import card, page
from covey.report.figures import trainings_figure
from covey.report.trainings import of_trainings
from covey.run.stopping import told_early

SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})


def trained(goal="max", stop=True):
    """Three batches of six that learn by halves; all but two of each are stopped at step 1 or 3."""
    study = covey.Study(SPACE, goal=goal, seed=1)
    name = None if isinstance(goal, str) else "gain"
    for _ in range(3):
        for place, trial in enumerate(study.ask(6)):
            end = 10.0 - 8.0 * (trial.point["x"] - 0.4) ** 2
            study.note(Dispatched(trial.id, 1, f"covey-0a1b2c3d-{trial.id}-a1", 0))
            last = 9 if place < 2 or not stop else 1 + 2 * (place % 2)
            for step in [s for s in (1, 3, 9) if s <= last]:
                said = Reported(trial.id, 1, step, end * (1.0 - 0.5**step))
                study.note(said)
            if last < 9:
                study.note(told_early(said, study.outcomes))
            else:
                study.tell(trial.id, end if name is None else {name: end})
    return study


@pytest.fixture(scope="module", params=["plain", "named"])
def study(request):
    return trained("max" if request.param == "plain" else {"gain": "max"})


def test_stopped_trials_are_not_held_against_predictions_of_their_end(study):
    made, stopped = card(study), study.history.stopped
    assert len(stopped) == 12
    judged = {pair.id for pair in made.calibration.pairs}
    left_out = set(made.calibration.stopped)
    assert left_out == {id for id in stopped if id >= 6}
    assert judged == {id for id in range(6, 18) if id not in stopped}
    assert "too sure" not in made.calibration.note
    assert "8 results of trials stopped early" in made.calibration.note
    for row in made.rows:
        assert row.stopped == stopped.get(row.id)
        assert (row.error is None) == (row.id in stopped)


def test_they_are_named_with_the_step_they_reached(study):
    made = card(study)
    assert made.headline.startswith("Batch 3: 6 of 6 in; 4 of them stopped early.")
    assert {dot.id: dot.stopped for dot in made.way if dot.stopped} == study.history.stopped
    text = page(made)
    for id in (14, 15, 16, 17):
        row = re.search(rf'<tr><th scope="row">{id}</th>.*?</tr>', text, re.DOTALL)[0]
        assert f"told, stopped at step {study.history.stopped[id]}" in row
    said = of_trainings(made.trainings)
    assert "18 evaluations" in said
    assert "12 were stopped early" in said
    assert "17 at step 3" in said


def test_curves_are_drawn_to_the_step_they_reached(study):
    made = card(study)
    for one in made.trainings.each:
        reports = study.history.reports(one.id)
        assert one.steps == tuple(report.step for report in reports)
        assert one.values == tuple(report.value for report in reports)
        assert one.stopped == (one.id in study.history.stopped)
        assert one.ended != one.stopped
    figure = trainings_figure(made.trainings)
    assert figure.svg.count("<path") >= 18
    assert ("0", "1", "stopped early") not in {(r[0], r[1], r[-1]) for r in figure.rows}
    assert [row[-1] for row in figure.rows].count("stopped early") == 12
    out = json.loads(json.dumps(made.to_json(), allow_nan=False))
    assert out["trainings"]["stopped"] == 12


def test_without_stopping_every_result_is_judged():
    made = card(trained(stop=False))
    assert len(made.calibration.pairs) == 12
    assert "stopped early" not in made.headline + made.calibration.note
    assert "none was stopped" in of_trainings(made.trainings)


def test_a_study_without_reports_has_no_curves():
    study = covey.Study(SPACE, seed=0)
    study.tell(study.ask(2), [1.0, 2.0])
    assert card(study).trainings is None
    assert "h-trainings" not in page(card(study))


def test_only_the_last_attempt_is_drawn_and_what_goes_on_says_so():
    study = covey.Study(SPACE, seed=0)
    trial = study.ask(1)[0]
    for attempt, steps in ((1, (1, 2, 3)), (2, (1, 2))):
        study.note(Dispatched(trial.id, attempt, f"covey-0a1b2c3d-0-a{attempt}", 0))
        for step in steps:
            study.note(Reported(trial.id, attempt, step, 1.0))
    (one,) = card(study).trainings.each
    assert (one.steps, one.stopped, one.ended) == ((1, 2), False, False)
