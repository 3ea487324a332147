"""`study.tell_sheet`: files as a chemist saves them, told from Python."""

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import covey
from covey.errors import HistoryError, SpaceError

SPACE = covey.Space(
    {
        "T": covey.Real(20.0, 120.0, step=5),
        "conc": covey.Real(0.01, 1.0, log=True),
        "solvent": covey.Choice(["DMF", "THF"]),
    }
)
HEAD = "id,T,conc,solvent,value\n"


@pytest.fixture
def study(tmp_path):
    """Three trials are pending."""
    made = covey.Study(SPACE, seed=1, journal=tmp_path / "run.jsonl")
    made.ask(3)
    return made


def row(study, id, value, **changed):
    point = {**study.history[id].point, **changed}
    return f"{id},{point['T']},{point['conc']},{point['solvent']},{value}\n"


def sheet(tmp_path, *rows, name="results.csv", head=HEAD):
    path = tmp_path / name
    path.write_text(head + "".join(rows), encoding="utf-8")
    return path


def lines(study):
    return study.journal.read_bytes()


def test_results_failures_repeats_and_measurements_of_ones_own(study, tmp_path):
    rows = [row(study, 0, 1.5), row(study, 1, "failed"), row(study, 0, 2.5), row(study, 2, "")]
    path = sheet(tmp_path, *rows, ",30,0.1,THF,13.5\n", ",40,0.1,THF,failed\n")
    told = study.tell_sheet(path)
    assert [(t.id, t.status, t.value) for t in told] == [
        *((0, "told", 1.5), (1, "failed", None)),
        *((3, "told", 2.5), (4, "told", 13.5), (5, "failed", None)),
    ]
    assert [t.id for t in study.history.pending] == [2]
    before = lines(study)
    assert study.tell_sheet(str(path)) == []
    assert lines(study) == before
    sheet(tmp_path, *rows[:3], row(study, 2, 4.5))  # the sheet was filled in to its end
    assert [(t.id, t.value) for t in study.tell_sheet(path)] == [(2, 4.5)]


def test_it_takes_what_the_command_takes_and_writes_the_same(study, tmp_path, monkeypatch):
    from covey.cli.app import app

    rows = (row(study, 0, 1.5), row(study, 1, 2.5, T=25.0), ",30,0.1,THF,13.5\n")
    path = sheet(tmp_path, *rows)
    monkeypatch.chdir(tmp_path)
    words = (
        "--real",
        "T=20:120:step=5",
        "--real",
        "conc=0.01:1:log",
        "--choice",
        "solvent=DMF,THF",
    )
    app(["init", *words, "--seed", "1"], standalone_mode=False)
    Path("covey.jsonl").write_bytes(lines(study))
    app(["tell", str(path), "--as-run"], standalone_mode=False)
    study.tell_sheet(path, as_run=True)
    events = [covey.Study.load(name).history.events for name in ("covey.jsonl", "run.jsonl")]
    assert events[0] == events[1]


def test_a_workbook(study, tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="install it: pip install 'covey[excel]'")
    book = openpyxl.Workbook()
    book.active.title = "Notes"
    book.active.append(["A page of the lab journal"])
    page = book.create_sheet("Yields")
    page.append(["Plate of Tuesday"])
    page.append(["id", *SPACE.names, "Yield"])
    for id, value in ((0, 61.5), (1, "failed"), (2, None)):
        page.append([id, *study.history[id].point.values(), value])
    book.save(tmp_path / "results.xlsx")
    told = study.tell_sheet(tmp_path / "results.xlsx", value="yield")
    assert [(t.id, t.status, t.value) for t in told] == [(0, "told", 61.5), (1, "failed", None)]


def test_semicolons_and_decimal_commas(study, tmp_path):
    german = [row(study, i, f"{i},5").replace(",", ";", 4).replace(".", ",") for i in range(3)]
    path = sheet(tmp_path, *german, head=HEAD.replace(",", ";"))
    assert [t.value for t in study.tell_sheet(path)] == [0.5, 1.5, 2.5]


def test_a_mark_that_may_be_read_two_ways_is_asked_for(study, tmp_path):
    text = [f"{i};{i + 1}.500\n" for i in range(3)]
    path = sheet(tmp_path, *text, head="id;value\n")
    with pytest.raises(HistoryError, match=r"1\.500.*decimal"):
        study.tell_sheet(path)
    assert [t.value for t in study.tell_sheet(path, decimal=".")] == [1.5, 2.5, 3.5]


def test_letters_of_windows_a_title_controls_and_other_columns_are_named(study, tmp_path, caplog):
    text = "Platte für Jürgen\nid,value,Gerät\n0,1.5,A\nblank,9,A\n1,2.5,B\n"
    path = tmp_path / "results.csv"
    path.write_bytes(text.encode("cp1252"))
    with caplog.at_level(logging.WARNING, "covey"):
        assert [t.value for t in study.tell_sheet(path)] == [1.5, 2.5]
    said = "\n".join(caplog.messages)
    for name in ("results.csv", "Windows-1252", "line 1 (Platte", "not recorded: Ger", "csv:4"):
        assert name in said


def test_standard_errors_come_with_values_or_later(study, tmp_path):
    path = sheet(tmp_path, "0,1.5,0.2\n", "1,2.5,\n", head="id,value,sem\n")
    assert [t.sem for t in study.tell_sheet(path)] == [0.2, None]
    sheet(tmp_path, "0,1.5,0.2\n", "1,2.5,0.3\n", head="id,value,sem\n")
    assert study.tell_sheet(path) == []  # no new value
    assert study.history[1].sem == 0.3


def test_what_was_run_otherwise_is_recorded_if_one_says_so(study, tmp_path):
    path = sheet(tmp_path, row(study, 0, 1.5, T=120.0), row(study, 1, 2.5))
    before = lines(study)
    with pytest.raises(HistoryError, match=r"T=120\.0.*as_run=True"):
        study.tell_sheet(path)
    assert lines(study) == before
    assert [(t.id, t.value, t.point["T"]) for t in study.tell_sheet(path, as_run=True)][1] == (
        *(3, 1.5),
        120.0,
    )
    assert study.history[0].status == "cancelled"


def test_ids_of_another_list_mean_nothing_if_one_says_so(study, tmp_path):
    path = sheet(tmp_path, "A7,30,0.1,THF,1.5\n", "A8,40,0.1,THF,2.5\n")
    with pytest.raises(HistoryError, match=r"'A7'.*by_id=False"):
        study.tell_sheet(path)
    assert [t.value for t in study.tell_sheet(path, by_id=False)] == [1.5, 2.5]
    assert study.tell_sheet(path, by_id=False) == []
    assert [t.value for t in study.tell_sheet(path, by_id=False, again=True)] == [1.5, 2.5]


def test_rows_of_nothing_refuse_all_unless_they_are_skipped(study, tmp_path):
    path = sheet(tmp_path, "7,30,0.1,THF,1\n", ",31,0.1,THF,1\n", row(study, 0, 1.5))
    before = lines(study)
    with pytest.raises(HistoryError, match=r"csv:2: .*trial 7.*skip_unknown=True.*csv:3"):
        study.tell_sheet(path)
    assert lines(study) == before
    assert [t.value for t in study.tell_sheet(path, skip_unknown=True)] == [1.5]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,value\n0,1.5\n1,73%\n", r"csv:3: .*'73%'"),
        ("id,value\n0,1.5\n1,nan\n", r"csv:3: .*finite"),
        ("id,value\n0,1.5\n1,1e200\n", r"csv:3: .*finite"),
        ("id,value\n0,1.5\n0.5,1\n", r"csv:3: .*'0\.5'"),
        ("id,value,sem\n0,1.5,-1\n", r"csv:2: .*sem.*-1"),
        ("id,yield\n0,1.5\n", r"no column 'value'.*id, yield.*value"),
        ("id,value,Value\n0,1.5,1\n", None),  # the very name is taken
        ("T,value\n20,1.5\n", r"no column 'conc'"),
        ("id,T,T,value\n0,1,1,1\n", r"two columns named 'T'"),
        ("", "is empty"),
        ("id,value\n", None),
    ],
)
def test_a_wrong_sheet_is_refused_as_a_whole(study, tmp_path, text, said):
    path = sheet(tmp_path, text, head="")
    before = lines(study)
    if said is None:
        study.tell_sheet(path)
        return
    with pytest.raises((HistoryError, SpaceError), match=said):
        study.tell_sheet(path)
    assert lines(study) == before


@pytest.mark.parametrize(
    ("path", "options", "said"),
    [
        ("missing.csv", {}, r"cannot read .*missing\.csv"),
        (".", {}, "folder"),
        ("x" * 5000, {}, "cannot read x"),
        (None, {}, "None"),
        (["results.csv"], {}, r"\['results\.csv'\].*study\.tell"),
        (b"results.csv", {}, "results"),
        ("results.csv", {"value": ["value"]}, r"\['value'\]"),
        ("results.csv", {"value": "T"}, "T: .*parameter"),
        ("results.csv", {"value": "yeild"}, "no column 'yeild'"),
        ("results.csv", {"decimal": "comma"}, "'comma'"),
        ("results.csv", {"decimal": True}, "True"),
    ],
)
def test_a_wrong_argument_is_named(study, tmp_path, monkeypatch, path, options, said):
    monkeypatch.chdir(tmp_path)
    sheet(tmp_path, row(study, 0, 1.5))
    before = lines(study)
    with pytest.raises(HistoryError, match=said):
        study.tell_sheet(path, **options)
    assert lines(study) == before


def test_several_outcomes_have_a_column_each(tmp_path):
    study = covey.Study(SPACE, {"yield": "max", "cost": "min"}, record=["note"], seed=1)
    study.ask(2)
    path = sheet(tmp_path, "0,61,33,clear\n", "1,58,,\n", head="id,yield,cost,note\n")
    assert [dict(t.values) for t in study.tell_sheet(path)] == [
        {"yield": 61.0, "cost": 33.0},
        {"yield": 58.0},
    ]
    assert study.history.metrics(0) == {"note": "clear"}
    sheet(tmp_path, "1,40\n", head="id,cost\n")
    assert dict(study.tell_sheet(path)[0].values) == {"yield": 58.0, "cost": 40.0}
    with pytest.raises(HistoryError, match="yield, cost"):
        study.tell_sheet(path, value="cost")


def test_wells_are_told_with_their_plate(tmp_path):
    study = covey.Study(covey.Space({"x": covey.Real(0, 1)}), seed=0)
    (plate,) = study.ask_plates(1, covey.Layout(plate=24))
    plate.write(tmp_path / "p1.csv")
    with pytest.raises(HistoryError, match=r"plate p1.*study\.tell_plate\('p1'"):
        study.tell_sheet(tmp_path / "p1.csv")
    assert not study.history.told


def test_a_pool_whose_file_changed_takes_nothing(tmp_path):
    file = tmp_path / "pool.csv"
    file.write_text("a,b\n1,2\n3,4\n5,7\n")
    study = covey.Study(covey.Pool(file), seed=0)
    study.ask(2)
    path = sheet(tmp_path, "0,failed\n", "1,1.5\n", head="id,value\n")
    file.write_text("a,b\n1,2\n3,4\n5,9\n")
    with pytest.raises(SpaceError, match=r"pool\.csv"):
        study.tell_sheet(path)
    assert len(study.history.pending) == 2


def test_a_study_that_is_only_looked_at_is_not_told(study, tmp_path):
    path = sheet(tmp_path, row(study, 0, 1.5))
    before = lines(study)
    with pytest.raises(covey.errors.JournalError):
        covey.Study.load(study.journal, read_only=True).tell_sheet(path)
    assert lines(study) == before


@given(st.lists(st.tuples(st.sampled_from(["0", "1", "9", ""]), st.text(max_size=4)), max_size=4))
def test_whatever_a_sheet_says_it_is_told_or_refused_as_a_whole(tmp_path_factory, cells):
    """The control is the number of values told: one for each number, if nothing is refused."""
    from covey.sheets.writing import sheet_text

    study = covey.Study(covey.Space({"x": covey.Real(0, 1)}), seed=0)
    study.ask(2)
    path = tmp_path_factory.mktemp("sheet") / "results.csv"
    rows = [{"id": id, "x": "", "value": value} for id, value in cells]
    path.write_bytes(sheet_text(["id", "x", "value"], rows).encode("utf-8", "replace"))
    before = study.history.events
    try:
        told = study.tell_sheet(path)
    except (HistoryError, SpaceError):
        assert study.history.events == before
        return
    assert {t.id for t in told} == {t.id for t in study.history.trials if t.status != "pending"}
    assert study.tell_sheet(path) == []
