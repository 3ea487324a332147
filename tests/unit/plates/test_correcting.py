"""Wells that are corrected, marked and unmarked after they were told, and points as dispensed."""

import json
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.plates.test_telling import LAYOUT, SPACE, asked, readings_of

from covey import Control, Layout, Real, Space, Study
from covey.errors import HistoryError, SpaceError
from covey.history import Moved, Point, Revised, event_from_json, event_to_json
from covey.learn import wells_measured
from covey.plates.picking import Dispense, pick_list


def told(**options):
    study, (plate,) = asked(**options)
    study.tell_plate(plate, readings_of(plate))
    return study, plate


def wells_of(plate, trial):
    return [w.name for w in plate.used if w.trial == trial]


def noisy(plate):
    return {w.name: 0.1 * place + (w.column % 3) for place, w in enumerate(plate.used)}


def test_value_and_standard_error_follow_a_corrected_well():
    study, plate = told()
    first, second = wells_of(plate, 0)
    study.amend_wells("p1", {first.lower(): 1.0, second: 3.0}, "a dilution was forgotten")
    assert (study.history[0].value, study.history[0].sem) == (2.0, 1.0)
    study.mark_wells(plate, second, "bubble")
    assert (study.history[0].value, study.history[0].sem) == (1.0, None)
    assert study.plate("p1").well(second).mark == "bubble"
    assert study.plate("p1").well(second).value == 3.0  # kept, and does not count
    fresh, same = told()
    fresh.amend_wells("p1", {first: 1.0}, "why")
    again = Study(SPACE, seed=1)
    again.ask_plates(1, LAYOUT)
    again.tell_plate("p1", {**readings_of(same), first: 1.0})
    assert fresh.history.trials == again.history.trials
    assert [t.point for t in fresh.ask(3)] == [t.point for t in again.ask(3)]


@pytest.mark.parametrize("which", ["one", "all", "control", "unread"])
def test_marking_and_unmarking_is_the_identity(which):
    studies = []
    for _ in range(2):
        study, (plate,) = asked()
        readings = noisy(plate)
        wells = {
            "one": wells_of(plate, 0)[:1],
            "all": wells_of(plate, 0),
            "control": [w.name for w in plate.used if w.trial is None],
            "unread": wells_of(plate, 1),
        }[which]
        if which == "unread":
            readings = {well: v for well, v in readings.items() if well not in wells}
        study.tell_plate(plate, readings, part=True)
        studies.append(study)
    marked, plain = studies
    before = marked.history.trials
    marked.mark_wells("p1", wells, "bubble")
    assert marked.plate("p1").well(wells[0]).mark == "bubble"
    if which in ("one", "all", "unread"):
        assert marked.history.trials != before
    if which in ("all", "unread"):
        lost = marked.history[0 if which == "all" else 1]
        assert (lost.status, lost.reason) == ("lost", "every well of it was marked (2 wells)")
        assert marked.history.reason(lost) == lost.reason
    marked.unmark_wells("p1", reversed(wells), "it was dust")
    assert marked.history.trials == before == plain.history.trials
    assert [marked.history.reason(t) for t in before] == [plain.history.reason(t) for t in before]
    assert marked.plate("p1").table() == plain.plate("p1").table()
    assert [t.point for t in marked.ask(4)] == [t.point for t in plain.ask(4)]


def test_a_mark_that_is_taken_back_leaves_a_well_to_be_told():
    study, (plate,) = asked()
    first = wells_of(plate, 0)[0]
    study.mark_wells("p1", [first], "spilt")
    study.tell_plate("p1", {w: v for w, v in readings_of(plate).items() if w != first})
    alone = study.history[0]
    assert (alone.status, alone.sem) == ("told", None)
    study.unmark_wells("p1", [first], "it was the neighbour")
    assert (study.history[0].status, study.plate("p1").missing) == ("pending", (first,))
    study.tell_plate("p1", {first: alone.value + 1.0})
    assert study.history[0].value == pytest.approx(alone.value + 0.5)
    assert study.history[0].sem == pytest.approx(0.5)


def test_a_cancelled_trial_is_cancelled_again():
    study, (plate,) = asked()
    first, second = wells_of(plate, 0)
    study.cancel(0)
    study.mark_wells("p1", [first, second], "never filled")
    assert study.history[0].status == "lost"
    before = study.history.trials
    study.unmark_wells("p1", [second], "it was")
    assert study.history[0].status == "cancelled"
    study.mark_wells("p1", [second], "it was not")
    assert study.history.trials == before


def test_times_of_trials_are_as_if_wells_had_never_been_marked():
    """Of a trial that was cancelled before its wells were marked, too."""
    study, (plate,) = asked()
    study.cancel(0)
    study.tell_plate(plate, {w: 1.0 for w in wells_of(plate, 1)}, part=True)

    def times():
        return [(t.asked_at, t.started_at, t.ended_at) for t in study.history.trials]

    before = times()
    assert before[0][2] is not None is not before[1][2]
    for wells in (wells_of(plate, 0), wells_of(plate, 1), wells_of(plate, 2)):
        study.mark_wells("p1", wells, "bubble")
        study.unmark_wells("p1", wells, "none")
        assert times() == before


def test_a_standard_error_told_by_hand_counts_though_a_well_was_read():
    """The scatter of its wells is none of the value that was told or corrected by hand."""
    study, (plate,) = asked()
    first, second = wells_of(plate, 0)
    study.tell_plate(plate, {**noisy(plate), second: None}, marks={second: "late"})
    assert _sem_of(study, 0) == [None]
    other, _ = asked()
    other.tell_plate("p1", {first: 1.0}, part=True)
    other.tell(0, 5.0, sem=0.25)
    assert _sem_of(other, 0) == [0.25]
    study.amend(0, 7.0, "off the screen")
    assert _sem_of(study, 0) == [None]
    study.amend(0, 7.0, "with its error", sem=0.5)
    assert _sem_of(study, 0) == [0.5]
    study.amend(1, study.history[1].value, "known better", sem=0.5)
    assert _sem_of(study, 1) == [0.5]
    assert _sem_of(study, 2) == [None, None]  # the control: one by one


def test_a_result_told_by_hand_is_not_of_its_wells_though_one_reads_the_same():
    """Else a mark could be made that could not be taken back."""
    study, (plate,) = asked()
    first, second = wells_of(plate, 0)
    study.tell_plate(plate, {first: 1.0}, part=True)
    study.tell(0, 1.0)
    for well in (first, second):
        with pytest.raises(HistoryError, match="told or corrected by hand"):
            study.mark_wells(plate, [well], "bubble")


def test_a_result_told_by_hand_may_fail_afterwards_though_its_trial_stands_in_wells():
    """Without readings there is nothing that stays; its wells may be told after all."""
    study, (plate,) = asked()
    study.tell(0, 5.0)
    study.fail(0, "the wrong vial", told=True)
    assert (study.history[0].status, study.history[0].value) == ("failed", None)
    study.tell_plate(plate, noisy(plate))
    assert study.history[0].status == "told"
    with pytest.raises(HistoryError, match="whose readings stay"):
        study.fail(0, "the wrong vial", told=True)


def _sem_of(study, id):
    """The standard errors of the results that the model has of a trial."""
    at, _, sems, _ = wells_measured(study.history, study.recipe)
    mine = (at == study.space.encode([study.history[id].point])).all(axis=1)
    return [None if np.isnan(sem) else float(sem) for sem in sems[mine]]


def test_an_excluded_trial_stays_excluded():
    study, plate = told()
    first, second = wells_of(plate, 0)
    study.exclude(0, "the wrong vial")
    study.amend_wells("p1", {first: 5.0}, "typing error")
    trial = study.history[0]
    assert (trial.excluded, trial.reason) == (True, "the wrong vial")
    assert study.history.reason(0) == "the wrong vial"
    assert trial.value > 2.0
    with pytest.raises(HistoryError, match="include it first"):
        study.mark_wells("p1", [first, second], "bubble")


def test_what_cannot_be_corrected_is_refused_and_nothing_is_recorded():
    study, plate = told()
    first = wells_of(plate, 0)[0]
    study.mark_wells("p1", wells_of(plate, 1)[:1], "bubble")
    marked = wells_of(plate, 1)[0]
    events = study.history.events
    cases = [
        (lambda: study.amend_wells("p9", {first: 1.0}, "why"), r"'p9'.*p1"),
        (lambda: study.amend_wells("p1", {marked: 1.0}, "why"), "A3.*bubble"),
        (lambda: study.amend_wells("p1", {first: float("nan")}, "why"), "got nan"),
        (lambda: study.amend_wells("p1", {first: {"yield": 1.0}}, "why"), "B4.*yield.*value"),
        (lambda: study.amend_wells("p1", {first: 1.0}, " "), "reason"),
        (lambda: study.amend_wells("p1", {}, "why"), "no well was given"),
        (lambda: study.amend_wells("p1", {first: 1.0, first.lower(): 2.0}, "why"), "twice"),
        (lambda: study.mark_wells("p1", [first, first], "why"), "given twice"),
        (lambda: study.mark_wells("p1", [marked], "why"), r"A3 .*bubble"),
        (lambda: study.mark_wells("p1", ["Z1"], "why"), "Z1"),
        (lambda: study.unmark_wells("p1", [first], "why"), "p1: well B4"),
        (lambda: study.note(Revised("p1", "why", marked=("Q7",))), r"p1: .*Q7"),
    ]
    for act, said in cases:
        with pytest.raises((HistoryError, SpaceError), match=said):
            act()
        assert study.history.events == events


def test_a_trial_that_was_corrected_by_hand_does_not_follow_its_wells():
    study, plate = told()
    first, _ = wells_of(plate, 0)
    study.amend(0, 7.0, "read off the screen")
    with pytest.raises(HistoryError, match=r"\{'value': 7\.0\}"):
        study.mark_wells("p1", [first], "bubble")
    study.mark_wells("p1", wells_of(plate, 1)[:1], "bubble")  # others do


def test_a_message_is_taken_once_by_its_key_and_a_journal_says_it_again(tmp_path):
    path = tmp_path / "run.jsonl"
    study, plate = told(journal=path)
    first, _ = wells_of(plate, 0)
    for _ in range(2):
        study.mark_wells("p1", [first], "bubble", key="seen by Ada")
    with pytest.raises(HistoryError, match="seen by Ada"):
        study.mark_wells("p1", [first], "dust", key="seen by Ada")
    study.amend_wells("p1", {wells_of(plate, 1)[0]: 4.0}, "typing error")
    loaded = Study.load(path)
    assert loaded.history.trials == study.history.trials
    assert loaded.plate("p1") == study.plate("p1")


def test_events_of_corrections_survive_json():
    for event in (
        Revised("p1", "why", {"A1": 1.5, "A2": Point({"yield": 2.0})}, ("B1",), ("B2",), "yield"),
        Revised("p1", "why", marked=("B1",)),
    ):
        text = json.dumps(event_to_json(event, dict, 0))
        assert event_from_json(json.loads(text), Point) == event
    assert '"values"' not in json.dumps(event_to_json(Revised("p1", "w", marked=("B1",)), dict, 0))


def test_corrections_of_outcomes_by_name():
    space = Space({"x": Real(0.0, 1.0)})
    goals = {"yield": "max", "cost": "min"}
    layout = Layout(plate=6, replicates=2, controls={"blank": 2})
    studies = []
    for wrong in (False, True):
        study = Study(space, goals, seed=0)
        (plate,) = study.ask_plates(1, layout)
        first, second = wells_of(plate, 0)
        readings = {w.name: {"yield": 50.0 + w.column, "cost": 3.0} for w in plate.used}
        right = dict(readings)
        if wrong:
            readings[first] = {"yield": 500.0, "cost": 3.0}
        study.tell_plate("p1", readings)
        if wrong:
            study.amend_wells("p1", {first: {"yield": right[first]["yield"]}}, "a zero too many")
            study.mark_wells("p1", second, "bubble")
            study.unmark_wells("p1", second, "dust")
        studies.append(study)
    a, b = studies
    assert a.history.trials == b.history.trials
    point = [{"x": 0.3}]
    for name in goals:
        assert float(a.predict(point)[name].mean[0]) == float(b.predict(point)[name].mean[0])
    with pytest.raises(HistoryError, match="purity"):
        b.amend_wells("p1", {first: {"purity": 1.0}}, "why")


def test_a_control_of_the_space_is_corrected_too():
    layout = Layout(plate=6, controls={"reference": Control(at={"x": 0.5, "y": 0.5}, wells=2)})
    study = Study(SPACE, seed=1)
    (plate,) = study.ask_plates(1, layout)
    study.tell_plate("p1", {w.name: 1.0 + 0.1 * w.column for w in plate.used})
    point = [{"x": 0.5, "y": 0.5}]
    before = float(study.predict(point).mean[0])
    control = next(w.name for w in plate.used if w.trial is None)
    study.amend_wells("p1", {control: 9.0}, "wrong gain")
    high = float(study.predict(point).mean[0])
    study.mark_wells("p1", [control], "wrong gain")
    assert high > before
    assert float(study.predict(point).mean[0]) < high


def test_trials_have_the_points_that_were_dispensed():
    space = Space({"ul": Real(1.0, 20.0), "x": Real(0.0, 1.0)})
    study = Study(space, seed=3)
    (plate,) = study.ask_plates(1, Layout(plate=12, replicates=2, controls={"blank": 2}))
    stocks = [
        {"material": "A", "plate": "S", "well": "A1", "volume_ul": 500},
        {"material": "B", "plate": "S", "well": "A2", "volume_ul": 500, "concentration": 10.0},
    ]
    rules = [Dispense("A", volume="{ul}"), Dispense("B", concentration="{x}", of=100.0)]
    with pytest.raises(SpaceError, match=r"A4.*hamilton"):
        pick_list(plate, "hamilton", stocks, [Dispense("A", volume=0.01)])
    picks = pick_list(plate, "echo", stocks, rules)
    asked_for = {t.id: t.point for t in study.history.trials}
    moved = study.tell_dispensed(picks)
    assert moved == [study.history[t.id] for t in moved]
    assert len(moved) == 5
    for trial in study.history.trials:
        wanted = asked_for[trial.id]
        assert trial.point["ul"] == pytest.approx(round(wanted["ul"] / 0.0025) * 0.0025, abs=1e-9)
        volume = round(wanted["x"] * 10.0 / 0.0025) * 0.0025  # 100 µL at x of a stock of 10
        assert trial.point["x"] == pytest.approx(volume / 10.0, abs=1e-9)
        assert study.history.point_asked(trial) == wanted
        assert study.plate("p1").well(wells_of(plate, trial.id)[0]).asked == wanted
    events = study.history.events
    assert study.tell_dispensed(pick_list(study.plate("p1"), "echo", stocks, rules)) == []
    assert study.history.events == events
    study.tell_plate("p1", {w.name: w.point["ul"] if w.point else 0.0 for w in plate.used})
    assert study.history[0].value == asked_for[0]["ul"]


def test_two_values_of_one_parameter_are_refused():
    _, (plate,) = asked()
    stocks = [{"material": "A", "plate": "S", "well": "A1", "volume_ul": 500}]
    rules = [Dispense("A", volume="{x}"), Dispense("A", volume="{x}")]
    same = pick_list(plate, "generic", stocks, rules)
    assert same.as_dispensed == {}
    stocks[0]["concentration"] = 3.0
    rules[1] = Dispense("A", concentration="{x}", of=10.0)
    with pytest.raises(SpaceError, match="a trial has one value of it"):
        _ = pick_list(plate, "echo", stocks, rules).as_dispensed


def test_other_numbers_name_what_corrects_a_well():
    study, plate = told()
    with pytest.raises(HistoryError, match=r"study\.amend_wells"):
        study.tell_plate("p1", {**readings_of(plate), wells_of(plate, 0)[0]: 77.0})


def test_a_history_lists_what_was_corrected_and_why():
    study, (plate,) = asked()
    (a, b), (c, d) = wells_of(plate, 0), wells_of(plate, 1)
    study.tell_plate("p1", readings_of(plate), marks={a: "bubble"})
    study.amend_wells("p1", {b: 4.0}, "typing error")
    study.mark_wells("p1", [c, d], "spilt")
    study.unmark_wells("p1", [d], "only a drop")
    study.exclude(2, "wrong vial")
    study.include(2, "the right one")
    study.amend(3, 5.0, "off the screen")
    blank = next(w.name for w in plate.used if w.trial is None)
    study.mark_wells("p1", blank, "not blank")
    study.note(Moved((4,), (Point(x=0.5, y=0.5),), "as built"))
    assert [tuple(one) for one in study.history.corrections] == [
        ((0,), f"p1 {a} marked", "bubble"),
        ((0,), f"p1 {b} amended to 4", "typing error"),
        ((1,), f"p1 {c}, {d} marked", "spilt"),
        ((1,), f"p1 {d} unmarked", "only a drop"),
        ((2,), "excluded", "wrong vial"),
        ((2,), "included again", "the right one"),
        ((3,), "amended to 5", "off the screen"),
        ((), f"p1 {blank} marked", "not blank"),
        ((4,), "run at another point than asked", "as built"),
    ]


def test_points_that_were_run_otherwise_are_in_a_journal_and_in_the_model(tmp_path):
    path = tmp_path / "run.jsonl"
    study, _ = told(journal=path)
    before = float(study.predict([{"x": 0.9, "y": 0.9}]).mean[0])
    trial = study.history[0]
    study.note(Moved((0,), (Point(x=0.9, y=0.9),), "as it was built"))
    assert study.history[0] == replace(trial, point=Point(x=0.9, y=0.9))
    assert study.history.point_asked(0) == trial.point
    after = float(study.predict([{"x": 0.9, "y": 0.9}]).mean[0])
    assert abs(after - trial.value) < abs(before - trial.value)
    assert Study.load(path).history.trials == study.history.trials
    for wrong, said in (
        (lambda: Moved((0, 1), (Point(x=0.5, y=0.5),), "why"), r"2 trials.*1 point"),
        (lambda: Moved((0,), (Point(x=0.5, y=0.5),), " "), "reason"),
        (lambda: study.note(Moved((99,), (Point(x=0.5, y=0.5),), "why")), "trial 99"),
    ):
        with pytest.raises(HistoryError, match=said):
            wrong()


def test_a_point_outside_the_space_is_not_recorded_as_run():
    study, (plate,) = asked()
    stocks = [{"material": "A", "plate": "S", "well": "A1", "volume_ul": 500}]
    picks = pick_list(plate, "echo", stocks, [Dispense("A", volume="{x}")])
    narrow = Study(Space({"x": Real(0.0, 1.0, step=0.001), "y": Real(0.0, 1.0)}), seed=1)
    narrow.ask_plates(1, LAYOUT)
    with pytest.raises(SpaceError, match="as dispensed is no point of the space"):
        narrow.tell_dispensed(picks)
    assert len(narrow.history.events) == 1
    assert study.tell_dispensed(picks)


def _at_random(study, rng, plate):
    """One thing that somebody may do to a plate and its trials, allowed or not."""
    record = study.history.plates.records[plate]
    wells = [str(w) for w in rng.choice([*record.uses], rng.integers(1, 5), replace=False)]
    marked = [well for well in wells if well in record.marks] or wells
    id, value = int(rng.integers(len(study.history))), float(rng.integers(0, 4))
    point = study.history[id].point
    every = {well: float(v) for well, v in zip(record.uses, rng.random(99), strict=False)}
    acts = [
        lambda: study.tell_plate(plate, {w: float(rng.random()) for w in wells}, part=True),
        lambda: study.tell_plate(plate, {w: every[w] for w in record.missing}),
        lambda: study.mark_wells(plate, wells, "bubble"),
        lambda: study.unmark_wells(plate, marked, "none"),
        lambda: study.amend_wells(plate, {wells[0]: value}, "typing error"),
        lambda: study.amend(id, value, "by hand", sem=0.1 if value else None),
        lambda: (study.include if study.history[id].excluded else study.exclude)(id, "vial"),
        lambda: study.tell(id, value),
        lambda: study.fail(id, "broke", told=bool(value)),
        lambda: study.cancel(id),
        lambda: study.retry(id),
        lambda: study.note(Moved((id,), (Point({**point, "x": round(point["x"], 2)}),), "rounded")),
    ]
    acts[rng.integers(len(acts))]()


def _state(study):
    history, book = study.history, study.history.plates
    times = [(t.asked_at, t.started_at, t.ended_at) for t in history.trials]
    return history.trials, times, book.records, history.corrections


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_done_to_wells_and_trials_a_journal_leads_to_the_same(seed, tmp_path):
    """And marks that are taken back at once change nothing, times and the next batch included."""
    rng, path = np.random.default_rng(seed), tmp_path / "run.jsonl"
    study, done = Study(SPACE, seed=seed, journal=path), 0
    for layout in (LAYOUT, Layout(plate=6, replicates=2, spread="plates")):
        study.ask_plates(2, layout, strategy="random")
    for _ in range(30):
        plate = f"p{rng.integers(1, 5)}"
        with suppress(HistoryError, SpaceError):
            _at_random(study, rng, plate)
            done += 1
        record, before = study.history.plates.records[plate], _state(study)
        free = [well for well in record.uses if well not in record.marks]
        taken = []
        for well in map(str, rng.permutation(free)[:4]):
            with suppress(HistoryError):  # of a trial that was told or amended by hand
                study.mark_wells(plate, [well], "bubble")
                taken.append(well)
        for well in reversed(taken):
            study.unmark_wells(plate, [well], "none")
        assert _state(study)[:3] == before[:3]
    assert done > 5
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(path.read_bytes())
    again = Study.load(copy)
    assert _state(again) == _state(study)
    if seed < 3:
        assert [t.point for t in again.ask(2)] == [t.point for t in study.ask(2)]
