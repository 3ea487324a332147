"""Readings of plates: files of readers, what is refused, and how trials are told."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from covey import Control, History, Layout, Real, Space, Study
from covey.errors import HistoryError, SpaceError
from covey.history import Asked, Measured, Point, event_from_json, event_to_json
from covey.history.wells import mean_and_error
from covey.learn import wells_measured
from covey.plates.layout import Grid
from covey.plates.reader import read_readings
from covey.plates.telling import marked_as_well, what_wells_are

SPACE = Space({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)})
LAYOUT = Layout(plate=12, controls={"blank": 2}, replicates=2)


def by_name(numbers):
    return {well: {"value": number} for well, number in numbers.items()}


def f(point):
    return round(1.0 - (point["x"] - 0.3) ** 2, 6)


def asked(layout=LAYOUT, count=1, **options):
    study = Study(SPACE, seed=1, **options)
    return study, study.ask_plates(count, layout)


def readings_of(plate, shift=0.0):
    return {w.name: shift + (f(w.point) if w.point else 0.1) for w in plate.used}


def matrix_of(plate, readings, separator=",", comma=False, frame=True):
    grid, lines = plate.grid, []
    for row in range(grid.rows):
        cells = [readings.get(w.name) for w in plate.wells[row * grid.columns :][: grid.columns]]
        texts = ["" if v is None else str(v).replace(".", "," if comma else ".") for v in cells]
        lines.append(separator.join([chr(65 + row), *texts] if frame else texts))
    head = separator.join(["", *(str(c + 1) for c in range(grid.columns))])
    return "\n".join([head, *lines] if frame else lines) + "\n"


def long_of(plate, readings, separator=",", comma=False):
    lines = [separator.join(("Well", "Value"))]
    for well, value in readings.items():
        padded = f"{well[0]}{int(well[1:]):02d}"
        lines.append(f"{padded}{separator}{str(value).replace('.', ',' if comma else '.')}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("form", ["dict", "array", "long", "matrix", "bare", "long;", "matrix\t"])
def test_all_forms_of_readings_say_the_same(form, tmp_path):
    study, (plate,) = asked()
    readings = readings_of(plate)
    grid = plate.grid
    array = np.full((grid.rows, grid.columns), np.nan)
    for well, value in readings.items():
        array.flat[grid.index(well)] = value
    given = {
        "dict": readings,
        "array": array,
        "long": long_of(plate, readings),
        "matrix": matrix_of(plate, readings),
        "bare": matrix_of(plate, readings, frame=False),
        "long;": long_of(plate, readings, ";", comma=True),
        "matrix\t": matrix_of(plate, readings, "\t", comma=True),
    }[form]
    if isinstance(given, str):
        path = tmp_path / "reader.csv"
        path.write_text("\ufeff" + given)
        given = path
    study.tell_plate("p1", given)
    for trial in study.history.trials:
        assert trial.status == "told"
        assert trial.value == pytest.approx(f(trial.point), abs=1e-12)
        assert trial.sem is None  # equal wells do not prove that there is no noise
    assert study.history.plates.records["p1"].missing == ()


def test_the_table_that_was_written_is_read_back(tmp_path):
    study, (plate,) = asked()
    plate.write(tmp_path / "p1.csv")
    rows = (tmp_path / "p1.csv").read_text().splitlines()
    head = rows[0].split(",")
    told, readings = [rows[0]], readings_of(plate)
    for row in reversed(rows[1:]):  # the order of rows means nothing
        cells = row.split(",")
        cells[head.index("value")] = str(readings.get(cells[head.index("well")], ""))
        told.append(",".join(cells))
    (tmp_path / "p1.csv").write_text("\n".join(told))
    study.tell_plate("p1", tmp_path / "p1.csv")
    assert all(t.status == "told" for t in study.history.trials)
    assert study.plate("p1").well("A1") == study.plate("p1").well("a01")


def test_a_mean_and_its_standard_error():
    study, (plate,) = asked()
    readings = readings_of(plate)
    a, b = [w.name for w in plate.used if w.trial == 0]
    readings[a], readings[b] = 1.0, 3.0
    study.tell_plate(plate, readings)
    assert (study.history[0].value, study.history[0].sem) == (2.0, 1.0)


@pytest.mark.parametrize(
    "values", [(2.5, 2.5), (0.1 + 0.2, 0.3), (0.0, 0.0), (0.1, 0.1, 0.1), (-1e9, -1e9)]
)
def test_equal_wells_leave_the_noise_unknown(values):
    assert mean_and_error(values)[1] is None
    assert mean_and_error([*range(len(values))])[1] > 0
    assert mean_and_error([*values, values[0] + 1e-3 * (abs(values[0]) + 1)])[1] > 0


def test_equal_wells_are_not_certain_to_the_model():
    """The band at a point whose two wells agree is as wide as the noise of all wells has it."""
    study, (plate,) = asked(Layout(plate=24, replicates=2))
    draw = np.random.default_rng(0)
    readings = {w.name: f(w.point) + 0.05 * draw.normal() for w in plate.used}
    for well in plate.used:
        if well.trial == 0:
            readings[well.name] = f(well.point)
    study.tell_plate(plate, readings)
    found = study.predict([t.point for t in study.history.trials])
    assert study.history[0].sem is None
    assert found.std[0] > 0.25 * np.median(found.std)


def test_a_plate_told_in_two_parts_is_a_plate_told_at_once():
    studies = [asked()[0] for _ in range(2)]
    plate = studies[0].plates[0]
    readings = readings_of(plate)
    some = dict(list(readings.items())[:5])
    studies[0].tell_plate("p1", readings)
    studies[1].tell_plate("p1", some, part=True)
    assert any(t.status == "pending" for t in studies[1].history.trials)
    studies[1].tell_plate("p1", readings)
    assert studies[0].history.trials == studies[1].history.trials
    assert [p.table() for p in studies[0].plates] == [p.table() for p in studies[1].plates]
    a, b = (s.ask(4) for s in studies)
    assert [t.point for t in a] == [t.point for t in b]


@pytest.mark.parametrize("at", [None, {"x": 0.5, "y": 0.5}])
def test_controls_told_in_any_order_are_the_same_to_the_model(at):
    """Sums of numbers depend on their order, so that it is that of the plate."""
    models = []
    for turned in (False, True):
        layout = Layout(plate=24, controls={"blank": Control(6, at=at)})
        study, plates = asked(layout, count=2)
        rng = np.random.default_rng(4)
        for plate in plates:
            wells = [w.name for w in plate.used]
            readings = dict(zip(wells, rng.normal(size=len(wells)).tolist(), strict=True))
            for well in reversed(wells) if turned else wells:
                study.tell_plate(plate, {well: readings[well]}, part=True)
        models.append((study.ask(1)[0].point, study.history.models))
    assert models[0] == models[1]


def test_marks_leave_wells_out_and_a_trial_without_any_is_lost():
    study, (plate,) = asked()
    first = [w.name for w in plate.used if w.trial == 0]
    other = next(w.name for w in plate.used if w.trial == 1)
    readings = readings_of(plate) | {other: 99.0}
    study.tell_plate(plate, readings, marks={other: "bubble", **dict.fromkeys(first, "spilt")})
    assert study.history[0].status == "lost"
    assert "2 wells" in study.history.reason(0)
    assert study.history[1].value == f(study.history[1].point)
    assert study.history[1].sem is None
    assert study.plate("p1").well(other).mark == "bubble"


def test_what_is_known_already_is_passed_over_and_other_numbers_are_refused():
    study, (plate,) = asked()
    readings = readings_of(plate)
    study.tell_plate(plate, readings)
    events = study.history.events
    study.tell_plate(plate, readings)
    assert study.history.events == events
    well = plate.used[0].name
    with pytest.raises(HistoryError, match=f"well {well}.*was told"):
        study.tell_plate(plate, readings | {well: 0.5})
    assert study.history.events == events


def test_bad_readings_are_refused_by_their_cell_and_nothing_is_recorded(tmp_path):
    study, (plate,) = asked()
    readings, grid = readings_of(plate), plate.grid
    well = plate.used[3].name
    row = plate.well(well).row.encode()[0] - 63  # the line of its row in a matrix with a header
    events = study.history.events
    without = {w: v for w, v in readings.items() if w != well}
    text = long_of(plate, readings)
    cases = [
        (without, f"1 well without a reading: {well}"),
        (matrix_of(plate, without), rf"1 well without a reading: {well} \(.*csv:{row}\)"),
        (text.replace(f",{readings[well]}\n", ",\n"), rf"{well} \(.*csv:[0-9]+\).*Nothing was rec"),
        (readings | {well: float("nan")}, f"well {well}: value must be finite"),
        (
            text.replace(f"{well[0]}0{well[1:]},", f"{well[0]}0{well[1:]},x"),
            f"well {well}: the Value 'x",
        ),
        (text + f"{well},1.0\n", f"well {well} comes twice"),
        (text + "Z1,1.0\n", "Z1"),
        ("well,colour\nA1,red\n", "'value'"),
        ("well,RFU,OD600\nA1,1,2\n", "several that may be meant: RFU, OD600"),
        ("1,2\n3,4\n", "neither a table"),
        (np.zeros((2, 2)), "3 x 4"),
        (
            text.replace("Well", "plate,Well").replace("\n", "\np9,", 12),
            "of plate p9|no reading|without",
        ),
    ]
    for number, (given, said) in enumerate(cases):
        path = tmp_path / f"{number}.csv"
        if isinstance(given, str):
            path.write_text(given)
        with pytest.raises(HistoryError, match=said):
            study.tell_plate("p1", path if isinstance(given, str) else given)
        assert study.history.events == events
    with pytest.raises(HistoryError, match=r"'p2'.*p1"):
        study.tell_plate("p2", readings)
    with pytest.raises(HistoryError, match=r"missing\.csv"):
        study.tell_plate("p1", tmp_path / "missing.csv")
    assert grid.index(well) >= 0


def test_a_word_of_the_reader_is_a_mark():
    found = read_readings("well,value\nA1,OVRFLW\nA2,1.5\nA3,\n", Grid(3, 4))
    assert found.marks == {"A1": "OVRFLW"}
    assert found.values == {"A2": {"value": 1.5}}


def test_a_trial_that_was_told_by_hand_is_not_measured_again():
    study, (plate,) = asked()
    study.tell(0, 5.0)
    with pytest.raises(HistoryError, match=r"trial 0.*B4"):
        study.tell_plate(plate, readings_of(plate))
    rest = {w.name: 1.0 for w in plate.used if w.trial != 0}
    study.tell_plate(plate, rest, part=True)
    assert study.history[0].value == 5.0


def test_a_journal_with_plates_is_read_back(tmp_path):
    study, (plate,) = asked(journal=tmp_path / "s.jsonl")
    study.tell_plate(plate, readings_of(plate), marks={plate.used[0].name: "bubble"}, day="monday")
    lines = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert [line.get("type") for line in lines[1:]] == ["asked", "measured"]
    assert lines[1]["plates"]["layout"] == LAYOUT.describe()
    again = Study.load(tmp_path / "s.jsonl")
    assert again.history.trials == study.history.trials
    assert again.plate("p1").table() == study.plate("p1").table()
    assert [t.point for t in again.ask(3)] == [
        t.point for t in Study.load(tmp_path / "s.jsonl").history.trials[-3:]
    ]


def test_events_are_written_as_the_page_about_journals_says():
    event = Measured("p1", ("A2", "A3"), (0.81, None), {"A3": "bubble"})
    written = event_to_json(event, dict, 0)
    assert written == {
        "type": "measured",
        "v": 1,
        "plate": "p1",
        "wells": ["A2", "A3"],
        "values": [0.81, None],
        "marks": {"A3": "bubble"},
    }
    assert event_from_json(written, dict) == event
    plain = event_to_json(Asked((Point(x=1.0),), "auto"), dict, 0)
    assert "plates" not in plain


@pytest.mark.parametrize(
    "wrong",
    [
        {"plate": ""},
        {"wells": ()},
        {"wells": ("A1", "A1"), "values": (1.0, 2.0)},
        {"values": (1.0, 2.0)},
        {"values": (None,)},
        {"values": (math.inf,)},
        {"marks": {"B1": "x"}},
        {"marks": {"A1": " "}},
    ],
)
def test_malformed_readings_are_refused(wrong):
    given = {"plate": "p1", "wells": ("A1",), "values": (1.0,)} | wrong
    with pytest.raises(HistoryError):
        Measured(**given)


@pytest.mark.parametrize(
    "plates",
    [
        [],
        {"layout": {}, "wells": []},
        {"layout": {}, "wells": [["p1", "A1", 0, 1]], "controls": []},
        {"layout": {}, "wells": [["p1", "A1", 1, 1, 1]], "controls": []},
        {"layout": {}, "wells": [["p1", "A1", 0, 1, 1], ["p1", "A1", 0, 2, 2]], "controls": []},
        {"layout": {}, "wells": [], "controls": []},
    ],
)
def test_malformed_plates_are_refused(plates):
    with pytest.raises(HistoryError):
        Asked((Point(x=1.0),), "auto", plates=plates)


def test_an_older_view_of_a_history_does_not_see_later_readings():
    study, (plate,) = asked()
    before = study.history
    book = before.plates
    study.tell_plate(plate, readings_of(plate))
    assert before.plates.records["p1"].readings == {}
    assert book.records["p1"].readings == {}
    assert study.history.plates.records["p1"].missing == ()
    assert History(study.history.events).trials == study.history.trials


def test_shifts_of_plates_are_learnt_and_not_predicted():
    """Plates that read 0, 2 and -3 more; without the effect, predictions are far off."""
    errors = {}
    for effects in (("plate",), ()):
        layout = Layout(plate=24, controls={"blank": 3}, effects=effects)
        study, plates = asked(layout, 3)
        for plate, shift in zip(plates, (0.0, 2.0, -3.0), strict=True):
            study.tell_plate(plate, readings_of(plate, shift))
        points = [{"x": x, "y": 0.5} for x in np.linspace(0.0, 1.0, 21)]
        apart = study.predict(points).mean - np.array([f(p) for p in points])
        errors[effects] = float(np.std(apart))
        study.ask(2)
        logged = study.history.models[0].get("shifts", {})
        assert set(logged) == set(effects)
    assert errors[("plate",)] < 0.05
    assert errors[()] > 0.1


def test_controls_in_the_space_are_results():
    at = {"x": 0.9, "y": 0.9}
    layout = Layout(plate=12, controls={"reference": Control(4, at=at)})
    study, (plate,) = asked(layout)
    study.tell_plate(plate, {w.name: 7.0 if w.trial is None else f(w.point) for w in plate.used})
    assert study.predict([at]).mean[0] == pytest.approx(7.0, abs=1.0)
    assert len(study.history) == 8


def test_amended_values_are_taken_as_they_are():
    study, (plate,) = asked()
    study.tell_plate(plate, readings_of(plate))
    study.amend(0, 9.0, "typing error")
    point = study.history[0].point
    assert study.predict([point]).mean[0] > 2.0


def test_the_only_goal_may_have_a_name():
    study = Study(SPACE, goal={"yield": "max"}, record=["note"], seed=1)
    (plate,) = study.ask_plates(1, LAYOUT)
    study.tell_plate(plate, readings_of(plate))
    assert study.history[0].values == {"yield": pytest.approx(f(study.history[0].point))}
    expected = study.predict([study.history[0].point])["yield"].mean[0]
    wells = [well for well in study.plate(plate.name).wells if well.trial == 0]
    assert [well.predicted for well in wells] == [pytest.approx(expected)] * len(wells)
    study.ask(2)
    study.exclude(0, "spilt")
    study.ask(2)


def framed(rows, columns, cell="0.5", numbers=True):
    head = [",".join(["", *(str(c + 1) for c in range(columns))])] if numbers else []
    return "\n".join(head + [",".join([chr(65 + r), *[cell] * columns]) for r in range(rows)])


@pytest.mark.parametrize("numbers", [True, False])
@pytest.mark.parametrize(("rows", "columns"), [(8, 12), (4, 12), (8, 6), (3, 6)])
def test_a_matrix_of_another_format_is_refused(rows, columns, numbers):
    said = rf"matrix of {rows} x {columns} in lines .* the plate has 4 x 6 wells"
    with pytest.raises(HistoryError, match=said):
        read_readings(framed(rows, columns, numbers=numbers), Grid(4, 6))
    assert len(read_readings(framed(4, 6, numbers=numbers), Grid(4, 6)).values) == 24


def test_what_stands_behind_numbered_columns_is_no_reading():
    text = "\n".join(line + ",450" for line in framed(2, 3).splitlines())
    assert all(
        values == {"value": 0.5} for values in read_readings(text, Grid(2, 3)).values.values()
    )


def test_two_matrices_in_a_file_are_refused_by_their_lines():
    text = framed(2, 3) + "\n\n" + framed(2, 3, "0.7")
    with pytest.raises(HistoryError, match="2 matrices, in lines 2 to 3 and in lines 6 to 7"):
        read_readings(text, Grid(2, 3))


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (
            "A1;0,113 A2;0.999",
            r"A1.*'0,113'.*A2.*'0\.999'",
        ),
        ("A1;1,234 A2;2,345", r"A1.*'1,234'"),
        ("A1;1.012 A2;7", r"A1.*'1\.012'"),
        (
            "A1;0,5 A2;1.234",
            r"A2.*'1\.234'",
        ),
        ("A1;0.5 A2;1,234", r"A2.*'1,234'"),
        ("A1;0,5 A2;1.234,5", r"A2.*'1\.234,5'"),
    ],
)
@pytest.mark.parametrize("separator", [";", "\t"])
def test_doubtful_numbers_are_refused_by_their_cell(cells, said, separator):
    text = ("well;value\n" + cells.replace(" ", "\n")).replace(";", separator)
    with pytest.raises(HistoryError, match=said):
        read_readings(text, Grid(2, 3))


def test_who_says_the_decimal_mark_is_believed():
    text, told = "well;value\nA1;1,234\nA2;2,345\n", by_name({"A1": 1.234, "A2": 2.345})
    assert read_readings(text, Grid(2, 3), decimal=",").values == told
    with pytest.raises(HistoryError, match=r"A1.*'1,234'"):
        read_readings(text, Grid(2, 3), decimal=".")
    with pytest.raises(HistoryError, match="decimal is"):
        read_readings(text, Grid(2, 3), decimal="comma")
    for text in ("well;value\nA1;1,234\nA2;2,5\n", "well,value\nA1,1.234\nA2,2.5\n"):
        assert read_readings(text, Grid(2, 3)).values == by_name({"A1": 1.234, "A2": 2.5})


def test_a_number_for_a_marked_well_is_refused_and_a_mark_again_is_not():
    study, (plate,) = asked()
    well, readings = plate.used[0].name, readings_of(plate)
    rest = {name: value for name, value in readings.items() if name != well}
    study.tell_plate(plate, rest, marks={well: "bubble"})
    events = study.history.events
    with pytest.raises(HistoryError, match=rf"well {well}: .* marked already \(bubble\)"):
        study.tell_plate(plate, readings)
    study.tell_plate(plate, rest, marks={well: "bubble"})
    assert study.history.events == events


def test_what_is_refused_is_shown_as_a_contradiction_before():
    """A preview and a telling go by one rule, in both directions of a mark."""
    study, (plate,) = asked()
    first, second, third = (w.name for w in plate.used[:3])
    study.tell_plate(plate, {first: 1.0}, marks={second: "bubble"}, part=True)
    for given, marks, kind in [
        ({first: 2.0}, {}, "contradicts"),
        ({}, {first: "bubble"}, "contradicts"),
        ({second: 1.0}, {}, "contradicts"),
        ({first: 1.0}, {}, "known"),
        ({second: 1.0}, {second: "bubble"}, "marked"),
        ({third: 1.0}, {}, "control" if plate.used[2].trial is None else "sample"),
    ]:
        record = study.history.plates.records["p1"]
        found = marked_as_well(plate.readings(given), marks, record)
        well = next(iter({**given, **marks}))
        shown = what_wells_are(found, record)
        assert next(one.kind for one in shown if one.well == well) == kind
        events = study.history.events
        if kind == "contradicts":
            with pytest.raises(HistoryError, match=f"well {well}: .*already"):
                study.tell_plate(plate, found, part=True)
            assert study.history.events == events


def test_a_file_of_another_plate_is_refused_as_that():
    study, (plate, _) = asked(count=2)
    study.tell_plate("p1", readings_of(plate))
    text = "plate,well,value\n" + "".join(f"p2,{w.name},1\n" for w in plate.used)
    with pytest.raises(HistoryError, match=r"p2.* p1"):
        study.tell_plate("p1", text)
    both = read_readings(text + "p1,A1,0.5\n", plate.grid, plate="p1")
    assert both.values == {"A1": {"value": 0.5}}
    assert both.others == {"p2": 12}


def filled(plate, change=(), separator=","):
    """The table of a plate with values, and perhaps another text in one cell."""
    readings, lines = readings_of(plate), [separator.join(plate.columns)]
    for row in plate.rows():
        row |= {"value": readings.get(row["well"])}
        row |= {column: text for well, column, text in change if well == row["well"]}
        cells = ["" if row[c] is None else str(row[c]) for c in plate.columns]
        lines.append(separator.join(cells))
    return "\n".join(lines)


def test_a_table_with_another_trial_or_point_is_refused_by_its_cell():
    study, (plate,) = asked()
    events = study.history.events
    well = next(w for w in plate.used if w.trial is not None)
    blank = next(w for w in plate.used if w.trial is None)
    wrong = [
        (well.name, "trial", str(well.trial + 1)),
        (well.name, "x", str((well.point["x"] + 0.1) % 1.0)),
        (well.name, "y", "abc"),
        (blank.name, "trial", "0"),
    ]
    for where, column, text in wrong:
        with pytest.raises(HistoryError, match=f"well {where}: {column} is '{text}', but plate p1"):
            study.tell_plate("p1", filled(plate, [(where, column, text)]))
    assert study.history.events == events
    harmless = [
        (well.name, "x", f"{well.point['x']:.3f}"),
        (well.name, "trial", f"{well.trial}.0"),
        (well.name, "y", ""),
    ]
    study.tell_plate("p1", filled(plate, harmless))
    assert all(t.status == "told" for t in study.history.trials)


def test_a_reader_may_have_columns_that_are_named_as_parameters():
    study, (plate,) = asked()
    lines = [f"{well},{value},37.0" for well, value in readings_of(plate).items()]
    study.tell_plate("p1", "\n".join(["well,value,x", *lines]))
    assert all(t.status == "told" for t in study.history.trials)


def test_a_key_acknowledges_readings_that_were_corrected_since():
    study, (plate,) = asked()
    readings = readings_of(plate)
    study.tell_plate(plate, readings, key="reader 1")
    first, second = (w.name for w in plate.used[:2])
    study.amend_wells(plate, {first: 9.0}, "typing error")
    study.mark_wells(plate, [second], "bubble")
    events = study.history.events
    study.tell_plate(plate, readings, key="reader 1")
    assert study.history.events == events
    for other in (readings | {first: 77.0}, {first: readings[first]}):
        with pytest.raises(HistoryError, match=rf"{first}|reader 1"):
            study.tell_plate(plate, other, part=True, key="reader 1")
        assert study.history.events == events


def test_a_key_of_plates_is_refused_by_ask():
    study = Study(SPACE, seed=1)
    (plate,) = study.ask_plates(1, LAYOUT, key="week 12")
    events = study.history.events
    with pytest.raises(HistoryError, match="'week 12'"):
        study.ask(len(plate.trials), key="week 12")
    study.ask(2, key="batch")
    with pytest.raises(HistoryError, match="'batch'"):
        study.ask_plates(1, LAYOUT, key="batch")
    assert study.history.events[: len(events)] == events
    assert [p.name for p in study.ask_plates(1, LAYOUT, key="week 12")] == ["p1"]


@pytest.mark.parametrize("goal", ["max", {"out": "max", "cost": "min"}])
def test_what_is_no_plate_and_no_reading_is_refused(goal):
    study = Study(SPACE, goal=goal, seed=0)
    plates = study.ask_plates(1, Layout(6), strategy="random")
    told = {"A1": 1.0 if goal == "max" else {"out": 1.0, "cost": 3.0}}
    study.tell_plate("p1", told, part=True)
    events = study.history.events
    wrong = [
        (plates, {"A2": 1.0}, "one Plate or its name"),
        ([], {"A2": 1.0}, r"got \[\]"),
        (None, {"A2": 1.0}, "got None"),
        ("p1", {"A1": {"out": 2.0, "cost": None}}, "A1, 'cost'"),
        ("p1", {"A2": {"out": 2.0, "cost": None}}, "A2, 'cost'"),
        ("p1", {"A2": "high"}, "A2"),
        ("p1", [1, 2], "rows of numbers|several"),
        ("p1", [3, [4]], "rows of numbers|several"),
        ("p1", 5, "rows of numbers|several"),
        ("p1", "a" * 5000, r"cannot read a{60}\.\.\."),
        ("p1", "a\0b", "null character"),
    ]
    for plate, readings, said in wrong:
        with pytest.raises(HistoryError, match=said):
            study.tell_plate(plate, readings, part=True)
        assert study.history.events == events
    for turned in (np.array([True, False]), "yes", 1):
        with pytest.raises(HistoryError, match="turned is True, False or None"):
            study.tell_plate("p1", {"A2": 1.0}, part=True, turned=turned)
    assert study.history.events == events


def test_a_reference_has_the_shared_value_of_its_plate():
    """Readings of it are results at that value, which they would hide as those of a constant."""
    space = Space({"t": Real(40, 110, step=5), "x": Real(0.0, 1.0)})
    reference = Control(2, at={"x": 0.3})
    true = math.exp(-((10 / 35) ** 2)) - math.exp(-((30 / 35) ** 2))
    for controls in (
        {"reference": reference},
        {"blank": 2},
        {"blank": 2, "reference": reference},
    ):
        study, rng = Study(space, seed=0), np.random.default_rng(0)
        layout = Layout(plate=12, shared={"t": "plate"}, controls=controls)
        for t in (75.0, 45.0, 105.0, 60.0, 90.0):
            study.ask_plates(1, layout, fixed={"t": t}, strategy="random")
        for plate, t in zip(study.plates, (75.0, 45.0, 105.0, 60.0, 90.0), strict=True):
            placed = {w.name: w.point for w in plate.used}
            assert {p["t"] for p in placed.values() if p} == {t}
            warm, shift = math.exp(-(((t - 90) / 35) ** 2)), 0.02 * rng.standard_normal()
            value = {w: warm * (1 - (p["x"] - 0.4) ** 2) if p else 0.0 for w, p in placed.items()}
            noise = {well: 0.015 * rng.standard_normal() for well in value}
            study.tell_plate(plate, {w: v + shift + noise[w] for w, v in value.items()})
        high, low = study.predict([{"t": t, "x": 0.4} for t in (100.0, 60.0)]).mean
        assert abs(high - low - true) <= 0.2 * true
        at = wells_measured(study.history, replace(study.recipe, space=space))[0]
        assert len(at) == 5 * (12 - controls.get("blank", 0))


def test_a_point_of_a_control_lacks_nothing_but_what_its_plate_shares():
    space = Space({"t": Real(40, 110, step=5), "x": Real(0.0, 1.0)})
    for shared, at, said in (
        ({"t": "plate"}, {}, r"'r'.*'x'"),
        ({"t": "plate"}, {"t": 60.0, "x": 0.3}, "Leave t out of its point"),
        ({"t": "column"}, {"x": 0.3}, "has a point without t, but wells share t by column"),
        ({}, {"x": 0.3}, r"'r'.*'t'"),
    ):
        study = Study(space, seed=0)
        layout = Layout(plate=12, shared=shared, controls={"r": Control(2, at=at)})
        with pytest.raises(SpaceError, match=said):
            study.ask_plates(1, layout)
        assert not study.history.events
