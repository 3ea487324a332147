"""Bringing what one has: rows with and without ids, repeats, controls, deviations, files."""

from pathlib import Path

import pytest

import covey
from covey.tables import SheetRow

INIT = (
    *("init", "--real", "T=20:120:step=5", "--real", "conc=0.01:1:log"),
    *("--choice", "solvent=DMF,THF", "--batch", "3", "--seed", "1"),
)
OLD = (
    "T,conc,solvent,yield\n25,0.05,DMF,12.5\n30,0.1,THF,13.5\n30,0.1,THF,14.5\n45,0.2,DMF,failed\n"
)


@pytest.fixture
def lab(call):
    """A study of a chemist, nothing asked yet."""
    assert call(*INIT).code == 0
    return call


@pytest.fixture
def asked(lab):
    """The same with a batch of three; `rows` are its cells."""
    assert lab("ask", "--out", "batch.csv").code == 0
    return lab


def history():
    return covey.Study.load("covey.jsonl", read_only=True).history


def journal():
    path = Path("covey.jsonl")
    return path.read_bytes() if path.exists() else b""


def cells(id, value, **changed):
    """The row of a trial with some cells changed, as CSV."""
    point = {**history()[id].point, **changed}
    return f"{id},{point['T']},{point['conc']},{point['solvent']},{value}\n"


HEAD = "id,T,conc,solvent,value\n"


def sheet(name, *rows, head=HEAD):
    Path(name).write_text(head + "".join(rows))
    return name


def kinds(done):
    return [row["is"] for row in done.json["rows"]]


# Rows without ids


def test_what_one_has_starts_a_study(lab):
    Path("old.csv").write_text(OLD)
    done = lab("add", "old.csv", "--value", "yield", "--dry-run")
    assert done.code == 0
    assert [line.split()[1] for line in done.out.splitlines()[1:5]] == [
        *("added", "added", "repeat", "failed")
    ]
    assert not journal()
    done = lab("add", "old.csv", "--value", "yield")
    assert "1 failure recorded, 3 measurements added (1 of points" in done.out
    trials = history().trials
    assert [t.value for t in trials] == [12.5, 13.5, 14.5, None]
    assert [t.origin for t in trials] == ["added"] * 3 + ["enqueued"]
    assert trials[3].status == "failed"
    assert lab("ask", "--json").code == 0


def test_a_sheet_may_grow_and_be_added_again(lab):
    Path("old.csv").write_text(OLD)
    words = ("add", "old.csv", "--value", "yield", "--json")
    lab(*words)
    before = journal()
    assert (lab(*words).json["known"], journal()) == (4, before)
    Path("old.csv").write_text(OLD + "50,0.1,THF,20\n30,0.1,THF,13.5\n")  # a third repeat, as one
    done = lab(*words).json
    assert (done["known"], done["added"], done["repeats"]) == (4, 2, 1)
    assert lab(*words).json["added"] == 0
    # In another file a row that is known already is the same measurement, unless one says not.
    Path("more.csv").write_text("T,conc,solvent,yield\n50,0.1,THF,20\n")
    assert lab("add", "more.csv", "--value", "yield", "--json").json["added"] == 0
    assert lab("add", "more.csv", "--value", "yield", "--again", "--json").json["added"] == 1


def test_tell_takes_rows_with_and_without_ids(asked):
    row = ",30,0.1,THF,13.5\n"
    done = asked("tell", sheet("s.csv", cells(0, 1.5), row, cells(1, "")), "--json")
    found = done.json
    assert (found["told"], found["added"], found["open"], found["pending"]) == (1, 1, 1, 2)
    assert [t.status for t in history().trials] == ["told", "pending", "pending", "told"]
    sheet("s.csv", cells(1, 2.5).replace("1,", "1.0,", 1), row)  # as pandas writes ids with blanks
    found = asked("tell", "s.csv", "--json").json
    assert (found["told"], found["known"]) == (1, 1)
    assert asked("add", "0=1").code == asked("tell", "0=1", "s.csv").code == 2


def test_a_row_of_a_pending_point_is_its_result(asked):
    """A sheet that lost its column of ids: the points, exact, say which trials they are."""
    rows = [cells(i, i + 0.5).split(",", 1)[1] for i in range(3)]
    sheet("s.csv", *rows, head=HEAD.split(",", 1)[1])
    assert asked("tell", "s.csv", "--json").json["told"] == 3
    assert [t.value for t in history().trials] == [0.5, 1.5, 2.5]
    assert asked("tell", "s.csv", "--json").json["known"] == 3
    assert asked("add", "s.csv", "--json").json["known"] == 3


def test_add_takes_every_row_whatever_its_id(asked):
    sheet("s.csv", cells(0, 1.5).replace("0,", "A7,", 1), cells(1, 2.5))
    assert asked("tell", "s.csv").code == 5
    found = asked("add", "s.csv", "--json").json
    assert (found["added"], found["told"], found["pending"]) == (2, 0, 3)


def test_what_was_excluded_elsewhere_is_not_added(asked, tmp_path):
    asked("tell", "0=1", "1=2", "2=failed")
    asked("exclude", "0", "--reason", "wrong vial")
    asked("export", "--out", "all.csv")
    Path("other").mkdir()
    Path("other/covey.toml").write_text(Path("covey.toml").read_text())
    done = asked("add", "all.csv", "--config", "other/covey.toml")
    assert "1 failure recorded, 1 measurement added" in done.out
    assert "left out, as excluded" in done.err


# Repeats


def test_rows_of_one_id_are_repeats_and_each_counts(asked):
    sheet("s.csv", cells(0, 1.5), cells(0, 2.5), cells(0, 1.5))
    found = asked("tell", "s.csv", "--json").json
    assert (found["told"], found["repeats"], found["added"]) == (1, 2, 2)
    assert [t.value for t in history().told] == [1.5, 2.5, 1.5]
    assert len({str(t.point) for t in history().told}) == 1
    before = journal()
    assert asked("tell", "s.csv", "--json").json["known"] == 3
    assert journal() == before


def test_a_repeat_may_come_later_beside_the_first(asked):
    asked("tell", sheet("s.csv", cells(0, 1.5)))
    done = asked("tell", sheet("t.csv", cells(0, 2.5)))
    assert done.code == 5
    assert "was told 1.5 already" in done.err
    assert "row without an id" in done.err
    assert (
        asked("tell", sheet("s.csv", cells(0, 2.5), cells(0, 1.5)), "--json").json["repeats"] == 1
    )


def test_two_files_that_say_the_same_say_it_once(asked):
    sheet("a.csv", cells(0, 1.5), ",30,0.1,THF,13.5\n")
    sheet("b.csv", ",30,0.1,THF,13.5\n", cells(0, 1.5), cells(1, 2.5))
    found = asked("tell", "a.csv", "b.csv", "--json").json
    assert (found["told"], found["added"], found["known"]) == (2, 1, 2)
    sheet("c.csv", cells(2, 3.5))
    sheet("d.csv", cells(2, 4.5))  # plates that were run twice
    found = asked("tell", "c.csv", "d.csv", "--json").json
    assert (found["told"], found["repeats"]) == (1, 1)


# Controls and rows that nobody knows


@pytest.mark.parametrize(
    "said", ["control", "Control 2", "neg. ctrl", "blank", "Leerwert", "Standard-1"]
)
def test_controls_are_named_and_left_out(asked, said):
    done = asked("tell", sheet("s.csv", f"{said},,,,99\n", cells(0, 1.5)))
    assert done.code == 0, done.err
    assert "1 row left out, as controls: s.csv:2" in done.err
    rows = f"type,T,conc,solvent,value\n{said},30,0.1,THF,99\nsample,30,0.1,THF,9\n"
    Path("t.csv").write_text(rows)
    assert asked("tell", "t.csv", "--json").json["controls"] == 1
    assert [t.value for t in history().told] == [1.5, 9.0]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("7,30,0.1,THF,1\n", "s.csv:2: there is no trial 7; ids go to 2."),
        ("A1,30,0.1,THF,1\n", "s.csv:2: an id is a whole number, got 'A1'."),
        (",31,0.1,THF,1\n", "s.csv:2: parameter 'T': 31.0 is not on the grid"),
        (",30,0.1,water,1\n", "s.csv:2: solvent: 'water' is not an option"),
        (",30,,THF,1\n", "s.csv:2: conc: it is empty; give a number"),
        (",,,,1\n", "s.csv:2: no parameter has a value. If it is a control, say so in a column id"),
    ],
)
def test_a_row_that_nobody_knows_refuses_all_unless_it_is_skipped(asked, row, why):
    before = journal()
    sheet("s.csv", row, cells(0, 1.5))
    for words in ((), ("--dry-run",)):
        done = asked("tell", "s.csv", *words)
        assert done.code == 5
        assert why in done.err
        assert "--skip-unknown" in done.err
        assert journal() == before
    assert "unknown" in done.out  # the preview has it all the same
    done = asked("tell", "s.csv", "--skip-unknown")
    assert done.code == 0
    assert "1 row left out, of no trial and no valid point: s.csv:2" in done.err
    assert [t.value for t in history().told] == [1.5]


def test_a_wrong_number_is_never_skipped(asked):
    before = journal()
    done = asked("tell", sheet("s.csv", cells(0, "1.5x"), ",30,0.1,THF,1\n"), "--skip-unknown")
    assert done.code == 5
    assert "s.csv:2: the value '1.5x' is no number" in done.err
    assert journal() == before


def test_the_preview_has_every_row_even_if_one_is_refused(asked):
    sheet("s.csv", cells(0, 1.5), cells(1, "x"), cells(2, ""), "blank,,,,1\n", ",,,,2\n")
    done = asked("tell", "s.csv", "--dry-run")
    assert done.code == 5
    assert [line.split()[1] for line in done.out.splitlines()[1:]] == [
        *("result", "refused", "open", "control", "unknown")
    ]
    assert "1 other row cannot be taken either" in done.err


# What was run otherwise


def other(id):
    return 120 if history()[id].point["T"] != 120 else 115


def test_a_row_that_deviates_is_what_was_run_if_one_says_so(asked):
    sheet("s.csv", cells(0, 1.5, T=other(0)), cells(1, 2.5))
    before = journal()
    done = asked("tell", "s.csv")
    assert done.code == 5
    assert "--as-run" in done.err
    assert journal() == before
    assert kinds(asked("tell", "s.csv", "--dry-run", "--json", "--as-run")) == ["as run", "result"]
    done = asked("tell", "s.csv", "--as-run")
    assert "1 as run, not as asked" in done.out
    trials = history().trials
    assert [t.status for t in trials] == ["cancelled", "told", "pending", "told"]
    assert trials[3].point == {**trials[0].point, "T": other(0)}  # conc to the last digit
    assert history().notes(0) == ("trial 0 was run otherwise than asked, as trial 3",)
    before = journal()
    for words in ((), ("--as-run",)):  # told again, it is known, however it is told
        assert asked("tell", "s.csv", *words, "--json").json["known"] == 2
        assert journal() == before


def test_another_value_of_what_was_run_is_a_correction_and_no_second_measurement(asked):
    sheet("s.csv", cells(0, 1.5, T=other(0)))
    assert asked("tell", "s.csv", "--as-run").code == 0
    before = journal()
    sheet("s.csv", cells(0, 1.75, T=other(0)))
    for words in ((), ("--as-run",)):
        done = asked("tell", "s.csv", *words)
        assert done.code == 5
        assert "s.csv:2: trial 3 was told 1.5 already; correct a value with" in done.err
        assert "`covey amend 3=VALUE --reason WHY`" in done.err
    assert journal() == before
    asked("amend", "3=1.75", "--reason", "a comma too many")
    assert asked("tell", "s.csv", "--as-run", "--json").json["known"] == 1
    assert len(history()) == 4
    # What was run once more is a repeat, as long as the first of it is there.
    sheet("s.csv", cells(0, 1.75, T=other(0)), cells(0, 1.25, T=other(0)))
    assert kinds(asked("tell", "s.csv", "--as-run", "--dry-run", "--json")) == ["known", "as run"]
    sheet("s.csv", cells(0, 1.25, T=other(0)))
    assert asked("tell", "s.csv", "--as-run", "--again").code == 0
    assert [t.value for t in history().told] == [1.75, 1.25]


def test_another_point_of_what_was_run_is_refused(asked):
    sheet("s.csv", cells(0, 1.5, T=other(0)))
    asked("tell", "s.csv", "--as-run")
    before = journal()
    sheet("s.csv", cells(0, 1.5, T=other(0) - 10))
    done = asked("tell", "s.csv", "--as-run")
    assert done.code == 5
    assert "run instead of trial 0 is recorded as trial 3, otherwise than here" in done.err
    assert journal() == before
    asked("exclude", "3", "--reason", "it was cooler")
    assert asked("tell", "s.csv", "--as-run").code == 0
    assert history()[4].point["T"] == other(0) - 10


def test_at_a_terminal_a_question_is_asked(asked, monkeypatch):
    import typer

    sheet("s.csv", cells(0, 1.5, T=other(0)))
    answers = [False, True]
    monkeypatch.setattr("covey.cli.tell.is_terminal", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: answers.pop(0))
    done = asked("tell", "s.csv")
    assert done.code == 5
    assert "the row says T=" in done.err
    assert asked("tell", "s.csv").code == 0
    assert history()[3].point["T"] == other(0)


def test_the_point_of_another_trial_is_no_deviation(asked):
    """Ids that changed places with one another: a sheet sorted by some columns only."""
    first, second = cells(0, 1.5).split(",", 1)[1], cells(1, 2.5).split(",", 1)[1]
    done = asked("tell", sheet("s.csv", f"1,{first}", f"0,{second}"), "--as-run")
    assert done.code == 5
    assert "Was the sheet sorted" in done.err


def test_what_was_run_must_be_a_point_of_the_space(asked):
    done = asked("tell", sheet("s.csv", cells(0, 1.5, T=31.5)), "--as-run")
    assert done.code == 5
    assert "not on the grid" in done.err


def test_a_failure_may_deviate_too(asked):
    sheet("s.csv", cells(0, "failed", T=other(0)))
    assert asked("tell", "s.csv", "--as-run").code == 0
    trials = history().trials
    assert [t.status for t in trials] == ["cancelled", "pending", "pending", "failed"]
    before = journal()
    assert asked("tell", "s.csv", "--as-run").code == 0
    assert journal() == before


def test_a_told_trial_is_not_replaced(asked):
    asked("tell", "0=7")
    sheet("s.csv", cells(0, 7, T=other(0)))
    done = asked("tell", "s.csv", "--as-run")
    assert done.code == 5
    assert "covey exclude 0" in done.err
    asked("exclude", "0", "--reason", "hotter than asked")
    assert asked("tell", "s.csv", "--as-run", "--json").json["as_run"] == 1


@pytest.mark.parametrize(
    ("step", "asked_for", "cell", "alike"),
    [
        (None, 84.88568924976443, "84.9", True),
        (None, 84.88568924976443, "84.88568925", True),
        (None, 84.88568924976443, "85.1", False),
        (None, 128.75, "130", False),
        (None, 128.75, "129", True),
        (None, 0.2427, "0.2", True),  # a hundredth of a per cent of the range
        (None, 0.2427, "0.2438", False),  # close, but no rounding
        ("log", 0.2427, "0.2", False),  # rounded, but by far too much
        ("log", 0.2427, "0.243", True),
        (None, 300.0, "301.5", False),
        (1.0, 250.0, "251", False),  # another step
        (1.0, 250.0, "250.0", True),
    ],
)
def test_a_rounded_number_is_alike_and_another_number_is_not(step, asked_for, cell, alike):
    from covey.history import Point, Trial
    from covey.sheets.deviations import differing
    from covey.tables import SheetRow

    real = covey.Real(0.01, 400, log=True) if step == "log" else covey.Real(0, 400, step=step)
    space = covey.Space({"x": real})
    trial = Trial(0, Point(x=asked_for))
    row = SheetRow({"x": cell}, "s.csv:2")
    assert (differing(row, trial, space) == []) == alike


@pytest.mark.parametrize(
    ("cell", "alike"), [("2-Mar", True), ("mar2", True), ("THF", False), ("5-Dec", False)]
)
def test_a_name_that_a_spreadsheet_changed_is_still_the_one_asked_for(cell, alike):
    from covey.history import Point, Trial
    from covey.sheets.deviations import differing

    space = covey.Space({"c": covey.Choice(["MAR2", "2-3", "THF"])})
    row = SheetRow({"c": cell}, "s.csv:2")
    assert (differing(row, Trial(0, Point(c="MAR2")), space) == []) == alike


def test_numbers_of_a_pool_may_be_rounded_too():
    from covey.history import Point, Trial
    from covey.sheets.deviations import differing

    pool = covey.Pool([{"a": 84.88568, "s": "x"}, {"a": 12.0, "s": "y"}])
    trial = Trial(0, Point(pool.point(0)))
    for cell, said, alike in (
        ("84.89", "x", True),
        ("12", "x", False),
        ("84.89", "y", False),
        ("?", "x", False),
    ):
        row = SheetRow({"a": cell, "s": said}, "s.csv:2")
        assert (differing(row, trial, pool) == []) == alike


@pytest.mark.parametrize(
    ("cells_", "point"),
    [
        ({"model": "net", "depth": "", "lr": "0.5"}, {"model": "net", "lr": 0.5}),
        ({"model": "tree", "depth": "4", "lr": ""}, {"model": "tree", "depth": 4}),
        ({"model": "tree", "depth": "3", "lr": ""}, None),
        ({"model": "", "depth": "", "lr": ""}, None),
    ],
)
def test_what_was_run_may_lack_what_was_asked_for(cells_, point):
    """Parameters that are present under values of others only."""
    from covey.history import Point, Trial
    from covey.sheets.deviations import differing, point_as_run

    space = covey.Space(
        {
            "model": covey.Choice(["tree", "net"]),
            "depth": covey.Integer(1, 12, when={"model": "tree"}),
            "lr": covey.Real(0, 1, when={"model": "net"}),
        }
    )
    trial, row = Trial(0, Point(model="tree", depth=3)), SheetRow(cells_, "s.csv:2")
    assert bool(differing(row, trial, space)) == (point is not None)
    if point is not None:
        assert point_as_run(row, trial, space) == point
    with pytest.raises(covey.errors.SpaceError, match="lr"):
        point_as_run(SheetRow({"depth": "3", "lr": "0.5"}, "s.csv:2"), trial, space)


# Interrupted, and together with others


def test_after_an_interruption_the_same_command_records_what_is_missing(asked, monkeypatch):
    rows = [cells(0, 1.5, T=other(0)), cells(1, 2.5), cells(2, "failed"), cells(1, 2.75)]
    sheet("s.csv", *rows, ",30,0.1,THF,13.5\n", ",40,0.1,THF,failed\n")
    start = journal()

    def run(stop_at):
        """Tell the sheet; the process dies before its event of this number is in the journal."""
        from covey.log.log import Logbook

        commit, count = Logbook.commit, [0]

        def dying(self, *words, **more):
            count[0] += self.log.path is not None
            if count[0] == stop_at and self.log.path is not None:
                raise KeyboardInterrupt
            return commit(self, *words, **more)

        with monkeypatch.context() as patch:
            patch.setattr(Logbook, "commit", dying)
            done = asked("tell", "s.csv", "--as-run")
        return done.code

    def states():
        return sorted((t.status, str(t.point), t.value, t.origin) for t in history().trials)

    assert run(99) == 0
    whole = states()
    events = len(journal().splitlines()) - len(start.splitlines())
    assert events >= 6
    for stop_at in range(1, events + 1):
        Path("covey.jsonl").write_bytes(start)
        assert run(stop_at) == 130
        assert run(99) == 0
        assert states() == whole, stop_at


def test_two_who_tell_the_same_at_once_tell_it_once(asked):
    import subprocess
    import sys

    sheet("s.csv", cells(0, 1.5), ",30,0.1,THF,13.5\n", ",30,0.1,THF,14.5\n")
    words = [sys.executable, "-m", "covey", "tell", "s.csv"]
    both = [subprocess.Popen(words, stderr=subprocess.PIPE) for _ in range(2)]
    for one in both:
        one.communicate(timeout=300)
    assert sorted(t.value for t in history().told) == [1.5, 13.5, 14.5]


# Several outcomes


@pytest.fixture
def several(call):
    words = ("--goal", "yield=max", "--goal", "cost=min", "--record", "notes")
    assert (
        call("init", "--real", "T=20:120:step=5", "--batch", "2", "--seed", "0", *words).code == 0
    )
    assert call("ask").code == 0
    return call


def test_outcomes_may_come_in_several_files_and_for_points_never_asked(several):
    Path("y.csv").write_text("id;yield;notes\n0;61,5;clear\n1;62,5;\n")
    Path("c.csv").write_text("id\tcost\n0\t33,25\n")
    Path("old.csv").write_text("T,yield,cost,notes\n50,40,20,cloudy\n55,41,,\n")
    found = several("tell", "y.csv", "c.csv", "old.csv", "--json").json
    assert (found["told"], found["added"]) == (2, 2)
    trials = history().trials
    assert [t.values for t in trials] == [
        {"yield": 61.5, "cost": 33.25},
        {"yield": 62.5},
        {"yield": 40.0, "cost": 20.0},
        {"yield": 41.0},
    ]
    assert history().metrics(2) == {"notes": "cloudy"}
    before = journal()
    assert several("tell", "y.csv", "c.csv", "old.csv", "--json").json["known"] == 5
    assert journal() == before
    Path("old.csv").write_text("T,yield,cost,notes\n50,40,20,cloudy\n55,41,21,\n")
    assert several("tell", "old.csv", "--json").json["told"] == 1  # the rest of the last row
    assert history()[3].values == {"yield": 41.0, "cost": 21.0}


def test_a_result_in_part_and_a_repeat_of_the_rest(several):
    several("tell", "0:yield=60")
    Path("c.csv").write_text("id,cost\n0,33\n0,33\n")
    found = several("tell", "c.csv", "--json").json
    assert (found["told"], found["repeats"]) == (1, 1)
    done = several("tell", "0:yield=61")
    assert done.code == 5
    assert "was told yield 60.0 already; correct a value with `covey amend 0:yield" in done.err


def test_a_single_goal_with_a_name_may_have_another_column(call):
    call("init", "--real", "T=20:120:step=5", "--goal", "yield=max", "--batch", "2", "--seed", "0")
    call("ask")
    Path("y.csv").write_text("id,Ausbeute,sem,odd\n0,61,0.5,x\n")
    done = call("tell", "y.csv", "--value", "Ausbeute")
    assert done.code == 0, done.err
    assert "not recorded: odd" in done.err
    assert (history()[0].values, history()[0].sem) == ({"yield": 61.0}, 0.5)
    Path("y.csv").write_text("T,Ausbeute\n50,62\n")
    assert call("add", "y.csv", "--value", "Ausbeute", "--json").json["added"] == 1
    Path("y.csv").write_text("T,Ausbeute,sem\n50,62,0.25\n")
    assert call("add", "y.csv", "--value", "Ausbeute", "--json").json["sems"] == 1
    assert history()[2].sem == 0.25


def test_each_goal_has_a_column_of_its_own_name(several):
    Path("y.csv").write_text("id,Ausbeute\n0,61\n")
    assert several("tell", "y.csv", "--value", "Ausbeute").code == 2
    assert "no column 'yield'" in several("tell", "y.csv").err
    assert several("add", "y.csv").code == 5


# Sheets of other countries


def test_a_german_sheet_and_the_cell_that_is_wrong(asked):
    rows = [cells(i, f"{i}.5").replace(",", ";").replace(".", ",") for i in range(3)]
    text = (HEAD.replace(",", ";") + "".join(rows)).replace("value", "Ausbeute")
    Path("s.csv").write_bytes(text.encode("utf-16"))
    assert asked("tell", "s.csv", "--value", "Ausbeute", "--json").json["told"] == 3
    assert [t.value for t in history().told] == [0.5, 1.5, 2.5]
    Path("t.csv").write_text("T;conc;solvent;value\n30;0,1;THF;1,5\n35;0.2;THF;2,5\n")
    done = asked("tell", "t.csv")
    assert done.code == 5
    assert "t.csv:2: conc is '0,1', and t.csv:3: conc is '0.2'" in done.err
    done = asked("tell", "t.csv", "--decimal", "comma")
    assert "t.csv:3: conc: '0.2' has a decimal point" in done.err


# What sheets say in passing


def test_a_summary_names_only_what_there_is(lab):
    dry = lab("add", sheet("old.csv", head=OLD.replace("45,0.2,DMF,failed\n", "")), "--value",
              "yield", "--dry-run")  # fmt: skip
    assert dry.out.endswith("3 measurements would be added (1 of points measured before)\n")
    assert lab("add", "old.csv", "--value", "yield").out == (
        "3 measurements added (1 of points measured before)\n"
    )
    assert lab("add", "old.csv", "--value", "yield").out == "3 known already\n"
    Path("none.csv").write_text("T,conc,solvent,yield\n25,0.05,DMF,\n")
    assert lab("add", "none.csv", "--value", "yield").out == "nothing to record\n"


def test_lines_above_the_columns_are_passed_over_and_said(asked):
    text = "Plate 7; week 12\n\n" + HEAD + cells(0, 1.5) + cells(1, 2.5)
    Path("s.csv").write_text(text)
    done = asked("tell", "s.csv")
    assert done.code == 0, done.err
    assert (
        "s.csv: line 1 (Plate 7; week 12) above the names of the columns was not read" in done.err
    )
    assert [t.value for t in history().told] == [1.5, 2.5]
    Path("s.csv").write_text(text + cells(2, "x"))
    assert "s.csv:6: the value 'x' is no number" in asked("tell", "s.csv").err


def test_a_standard_error_of_zero_is_unknown(lab):
    """Two equal repeats give 0, and a model that believed it would take them for exact."""
    sheet("old.csv", "25,0.05,DMF,1.5,0\n", "30,0.1,THF,2.5,0.25\n", "35,0.1,THF,3.5,0.0\n",
          head="T,conc,solvent,value,sem\n")  # fmt: skip
    done = lab("add", "old.csv")
    assert done.code == 0, done.err
    assert [t.sem for t in history().told] == [None, 0.25, None]
    said = "old.csv: a sem of 0 counts as unknown: equal repeats do not prove it"
    assert f"{said} (old.csv:2, old.csv:4)" in done.err


def test_a_row_is_named_once_however_often_it_is_looked_at(asked):
    sheet("s.csv", "0,1.5,0\n", "1,2.5,0\n", head="id,value,sem\n")
    assert "(s.csv:2, s.csv:3)\n" in asked("tell", "s.csv").err


def test_the_rows_of_dates_are_named(call):
    call("init", "--choice", "gene=MAR2,SEPT7,THF", "--real", "x=0:1", "--seed", "1")
    sheet("s.csv", "0.1,2-Mar,1\n", "0.2,THF,2\n", "0.3,2-Mar,3\n", head="x,gene,value\n")
    done = call("add", "s.csv")
    assert "gene: the date 2-Mar was made of 'MAR2', and so read (s.csv:2, s.csv:4)" in done.err
    assert [t.point["gene"] for t in history().told] == ["MAR2", "THF", "MAR2"]
