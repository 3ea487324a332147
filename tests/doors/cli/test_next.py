from pathlib import Path

import pytest

RESULTS = "lr,layers,opt,yield\n0.001,2,adam,0.5\n0.01,4,sgd,0.8\n0.02,5,sgd,\n"
SPACE = ["--real", "lr=1e-5:0.1:log", "--integer", "layers=1:8", "--choice", "opt=adam,sgd"]


@pytest.fixture
def results(call):
    Path("results.csv").write_text(RESULTS)
    return call


def test_results_in_the_next_plate_out(results):
    done = results(
        *("next", "--in", "results.csv", "--value", "yield", *SPACE),
        *("--batch", "12", "--out", "plate.csv"),
    )
    assert done.code == 0, done.err
    assert "2 results, 0 failures and 1 row without one" in done.err
    lines = Path("plate.csv").read_text().splitlines()
    assert lines[0] == "lr,layers,opt,yield"
    assert len(set(lines)) == 13
    assert not Path("covey.jsonl").exists()


def test_the_same_files_give_the_same_plate(results):
    words = ["next", "--in", "results.csv", "--value", "yield", *SPACE, "--batch", "4"]
    assert results(*words).out == results(*words).out
    assert results(*words).out != results(*words, "--seed", "1").out
    assert len(results(*words, "--json").json["points"]) == 4


def test_without_results_a_first_design(results):
    assert len(results("next", *SPACE, "--batch", "3").out.splitlines()) == 4


def test_a_pool_of_candidates(results):
    Path("pool.csv").write_text(
        "x,solvent,ok\n" + "".join(f"{i},s{i % 3},True\n" for i in range(9))
    )
    Path("done.csv").write_text("x,solvent,ok,value\n0,s0,True,1.0\n4,s1,True,2.0\n")
    done = results("next", "--pool", "pool.csv", "--in", "done.csv", "--batch", "7")
    assert done.code == 0, done.err
    assert results("next", "--pool", "pool.csv", "--in", "done.csv", "--batch", "8").code == 7


def test_the_study_may_come_from_its_file_with_all_it_says(call):
    call("init", "--real", "x=0:1", "--goal", "min", "--batch", "3")
    rows = "".join(f"{x / 10},{(x / 10 - 0.2) ** 2}\n" for x in range(11))
    Path("results.csv").write_text("x,value\n" + rows)
    done = call("next", "--in", "results.csv", "--json")
    assert "goal min" in done.err
    points = [point["x"] for point in done.json["points"]]
    assert len(points) == 3
    assert min(abs(x - 0.2) for x in points) < 0.05
    assert "goal max" in call("next", "--in", "results.csv", "--goal", "max").err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (RESULTS.replace("yield", "yeild"), "no column 'yield'"),
        (RESULTS.replace("0.8", "high"), "results.csv:3: the yield 'high' is no number"),
        (RESULTS.replace("0.8", "nan"), "results.csv:3: the yield must be finite"),
        (RESULTS.replace("0.8", "1e200"), "results.csv:3: the yield must be finite"),
        (RESULTS.replace("0.8", "1_000"), "results.csv:3: the yield '1_000' is no number"),
        (RESULTS.replace("sgd,0.8", "sdg,0.8"), "results.csv:3: opt: 'sdg' is not an option"),
        (RESULTS.replace("0.01,4", "0.01,4.5"), "results.csv:3: parameter 'layers'"),
        (RESULTS.replace("0.01,4", "much,4"), "results.csv:3: lr: 'much' is not a number"),
        (RESULTS.replace("layers", "layer"), "no column 'layers'"),
    ],
)
def test_a_bad_cell_is_named_by_file_and_line(results, text, words):
    Path("results.csv").write_text(text)
    done = results("next", "--in", "results.csv", "--value", "yield", *SPACE, "--out", "plate.csv")
    assert done.code == 5
    assert words in done.err
    assert not Path("plate.csv").exists()


def test_parameters_or_a_pool(results):
    assert results("next", *SPACE, "--pool", "results.csv").code == 2


def test_the_results_are_not_written_over(results):
    words = ["next", "--in", "results.csv", "--value", "yield", *SPACE, "--out", "results.csv"]
    assert results(*words).code == 2
    assert Path("results.csv").read_text() == RESULTS


def test_a_failure_is_neither_a_result_nor_under_way(results):
    Path("results.csv").write_text(RESULTS.replace("0.8", "failed"))
    done = results("next", "--in", "results.csv", "--value", "yield", *SPACE, "--batch", "2")
    assert done.code == 0
    assert "1 result, 1 failure and 1 row without one" in done.err


def test_several_files_are_all_read_in_order(results):
    Path("more.csv").write_text("opt,layers,yield,lr\nadam,3,failed,0.03\nadam,3,0.7,0.04\n")
    words = ["next", "--in", "results.csv", "--in", "more.csv", "--value", "yield", *SPACE]
    done = results(*words, "--batch", "2")
    assert done.code == 0, done.err
    assert "2 results, 0 failures and 1 row without one read from results.csv" in done.err
    assert "1 result, 1 failure and 0 rows without one read from more.csv" in done.err
    one = RESULTS + "0.03,3,adam,failed\n0.04,3,adam,0.7\n"
    Path("one.csv").write_text(one)
    alone = results("next", "--in", "one.csv", "--value", "yield", *SPACE, "--batch", "2")
    assert done.out == alone.out
    Path("more.csv").write_text("opt,layers,yield,lr\nadam,3,high,0.03\n")
    assert "more.csv:2: the yield 'high'" in results(*words).err
    assert results(*words, "--out", "more.csv").code == 2
    assert results(*words, "--in", "./results.csv").code == 2


def test_the_plate_has_the_columns_of_the_file_and_names_those_it_does_not_know(results):
    rows = "well,opt,yield,layers,lr,sem\nA1,adam,0.5,2,0.001,0.1\nA2,sgd,0.8,4,0.01,\n"
    Path("results.csv").write_text(rows)
    words = ["next", "--in", "results.csv", "--value", "yield", *SPACE, "--batch", "2"]
    done = results(*words)
    lines = done.out.splitlines()
    assert lines[0] == "well,opt,yield,layers,lr,sem"
    assert [line.split(",")[0] for line in lines[1:]] == ["", ""]
    assert {line.split(",")[1] for line in lines[1:]} <= {"adam", "sgd"}
    assert "not used: well." in done.err
    Path("plate.csv").write_text(done.out)
    again = results(*words, "--in", "plate.csv")  # as it came out, it goes in again
    assert again.code == 0, again.err


def test_an_export_goes_in_without_a_word_about_its_columns(study):
    study("ask")
    study("tell", "0=1.5", "1=failed")
    Path("all.csv").write_text(study("export").out)
    done = study("next", "--in", "all.csv", "--batch", "1")
    assert done.code == 0, done.err
    assert "1 result, 1 failure and 1 row without one read from all.csv" in done.err
    assert "not used" not in done.err


def test_without_a_file_the_columns_come_in_the_order_of_the_flags(call):
    words = ["--choice", "opt=adam,sgd", "--real=lr=0:1", "--integer", "n=1:8", "--real", "b=0:1"]
    assert call("next", *words, "--batch", "1").out.splitlines()[0] == "opt,lr,n,b,value"


def test_what_the_order_of_the_columns_is_changes_no_point(call):
    one = ["--choice", "opt=adam,sgd", "--real", "lr=0:1"]
    two = ["--real", "lr=0:1", "--choice", "opt=adam,sgd"]
    assert call("next", *one, "--json").json == call("next", *two, "--json").json


def test_a_label_of_a_pool_is_carried_along_and_no_input(call):
    Path("pool.csv").write_text("id,x\n" + "".join(f"{90 - i},{i}\n" for i in range(9)))
    done = call("next", "--pool", "pool.csv", "--label", "id", "--batch", "2")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == "id,x,value"
    assert "inputs x" in done.err
    Path("done.csv").write_text("x,value\n0,1.0\n4,2.0\n")
    words = ["next", "--pool", "pool.csv", "--in", "done.csv", "--batch", "2"]
    assert call(*words, "--label", "id").code == 0
    assert call(*words).code == 5  # the control: as an input it is missing
    assert call("next", "--real", "x=0:1", "--label", "id").code == 2


def test_booleans_and_numbers_come_back_from_a_spreadsheet(call):
    Path("covey.toml").write_text(
        "[study]\nbatch = 1\n[parameters.hot]\ntype = 'choice'\noptions = [true, false]\n"
        "[parameters.dose]\ntype = 'choice'\noptions = [1.0, 2.5]\n"
    )
    Path("r.csv").write_text("hot,dose,value\nTRUE,1,1\nFALSE,1.0,2\nfalse,2.5,3\n")
    done = call("next", "--in", "r.csv", "--json")
    assert done.code == 0, done.err
    assert done.json["points"] == [{"hot": True, "dose": 2.5}]


def test_next_repeats_the_space_it_understood(call):
    done = call("next", "--choice", "s=DMF,1,4-dioxane", "--real", "x=0:1:log", "--batch", "1")
    assert done.code == 2  # a log range cannot begin at 0
    done = call("next", "--choice", "s=DMF,1,4-dioxane", "--real", "x=1:2:log", "--batch", "1")
    assert "s: one of 'DMF', '1', '4-dioxane'" in done.err
    assert "x: real, 1.0 to 2.0, log" in done.err


def test_each_point_says_why_it_is_there(results):
    words = ["next", "--in", "results.csv", "--value", "yield", *SPACE, "--batch", "2"]
    done = results(*words, "--json", "--out", "plate.csv", "--explain")
    assert len(done.json["why"]) == len(done.json["points"]) == 2
    assert all(f"point {i}: {why}" in done.err for i, why in enumerate(done.json["why"], start=1))
    assert len(Path("plate.csv").read_text().splitlines()) == 3  # the file is written too


def test_a_german_file_goes_in_and_comes_out(results):
    Path("results.csv").write_text("lr;layers;opt;yield\n0,001;2;adam;0,5\n0,01;4;sgd;0,8\n")
    words = ["next", "--in", "results.csv", "--value", "yield", *SPACE, "--batch", "2"]
    plain = results(*words)
    assert plain.out.splitlines()[0] == "lr,layers,opt,yield"
    german = results(*words, "--decimal", "comma")
    assert german.out == plain.out.replace(",", ";").replace(".", ",")
    Path("german.csv").write_text(german.out)
    again = results(*words, "--in", "german.csv")
    assert "0 results, 0 failures and 2 rows without one read from german.csv" in again.err


def test_the_mark_may_come_from_the_environment(results, monkeypatch):
    words = ["next", "--in", "results.csv", "--value", "yield", *SPACE, "--batch", "1"]
    flagged = results(*words, "--decimal", "comma").out
    monkeypatch.setenv("COVEY_DECIMAL", "comma")
    assert results(*words).out == flagged  # and the file with points is read all the same
    assert ";" in flagged


def test_controls_and_unknown_rows_are_kept_apart(results):
    rows = "type,lr,layers,opt,yield\nsample,0.001,2,adam,0.5\nblank,,,,9\nsample,5,2,adam,0.6\n"
    Path("results.csv").write_text(rows)
    words = ["next", "--in", "results.csv", "--value", "yield", *SPACE, "--batch", "2"]
    done = results(*words)
    assert done.code == 5
    assert "results.csv:4: parameter 'lr'" in done.err
    done = results(*words, "--skip-unknown")
    assert done.code == 0, done.err
    assert "1 row left out, as controls: results.csv:3" in done.err
    assert "1 row left out, of no trial and no valid point: results.csv:4" in done.err
    assert "1 result, 0 failures and 0 rows" in done.err
    Path("results.csv").write_text("\n".join(rows.splitlines()[:2]) + "\n")
    assert results(*words).out == done.out


def test_a_journal_is_kept_on_request(results):
    words = ["next", "--in", "results.csv", "--value", "yield", *SPACE, "--batch", "2"]
    words += ["--journal", "plates.jsonl"]
    dry = results(*words, "--dry-run")
    assert not Path("plates.jsonl").exists()
    done = results(*words, "--out", "plate.csv")
    assert done.code == 0, done.err
    assert "2 trials recorded in plates.jsonl" in done.err
    assert Path("plate.csv").read_text() == dry.out
    first, *rows = Path("plate.csv").read_text().splitlines()
    assert first == "id,lr,layers,opt,yield"
    assert [row.split(",")[0] for row in rows] == ["3", "4"]  # after two results and a pending row
    # Arrow up, enter: nothing is new, so the same batch, and no second one in the journal.
    before = Path("plates.jsonl").read_bytes()
    again = results(*words, "--out", "plate.csv", "--force")
    assert again.code == 0, again.err
    assert "shown again" in again.err
    assert Path("plates.jsonl").read_bytes() == before
    Path("plate.csv").write_text("\n".join([first, rows[0] + "0.9", rows[1]]) + "\n")
    assert results(*words, "--out", "plate.csv").code == 3  # a value would be lost
    kept = Path("plates.jsonl").read_bytes()
    dry = results(*words, "--in", "plate.csv", "--dry-run")
    assert Path("plates.jsonl").read_bytes() == kept
    more = results(*words, "--in", "plate.csv", "--out", "plate2.csv")
    assert Path("plate2.csv").read_text() == dry.out
    assert more.code == 0, more.err
    assert Path("plate2.csv").read_text().splitlines()[1].startswith("5,")
    import covey

    trials = covey.Study.load("plates.jsonl", read_only=True).history.trials
    found = [trial.status for trial in trials]
    assert found == ["told", "told", "pending", "told", "pending", "pending", "pending"]
    assert trials[3].value == 0.9


def test_a_journal_takes_all_or_nothing(results):
    words = ["next", "--in", "results.csv", "--value", "yield", *SPACE, "--batch", "2"]
    words += ["--journal", "plates.jsonl"]
    assert results(*words).code == 0
    before = Path("plates.jsonl").read_bytes()
    Path("more.csv").write_text("id,lr,layers,opt,yield\n3,,,,0.9\n99,,,,0.8\n")
    done = results(*words, "--in", "more.csv")
    assert done.code == 5
    assert "more.csv:3: there is no trial 99" in done.err
    assert Path("plates.jsonl").read_bytes() == before
    assert results(*words, "--in", "more.csv", "--skip-unknown").code == 0


def test_the_columns_of_a_plate_keep_their_order_in_a_workbook(results):
    openpyxl = pytest.importorskip("openpyxl", reason="install it: pip install 'covey[excel]'")
    rows = "well,opt,yield,layers,lr\nA1,adam,0.5,2,0.001\nA2,sgd,0.8,4,0.01\n"
    Path("results.csv").write_text(rows)
    words = ["next", "--in", "results.csv", "--value", "yield", *SPACE, "--batch", "2"]
    assert results(*words, "--out", "plate.xlsx").code == 0
    book = openpyxl.load_workbook("plate.xlsx")
    assert [cell.value for cell in book.active[1]] == ["well", "opt", "yield", "layers", "lr"]
    assert isinstance(book.active["E2"].value, float)
    book.active["C2"] = 0.9
    book.save("plate.xlsx")
    assert results(*words, "--out", "plate.xlsx").code == 3


def test_rows_mean_what_they_mean_when_they_are_told(results):
    """A study that is told the same file asks for the same points; standard errors count."""
    import covey

    rows = "lr,layers,opt,value,sem\n0.001,2,adam,0.5,0.2\n0.01,4,sgd,0.8,\n0.02,5,sgd,failed,\n"
    more = "0.03,3,adam,0.6,\n0.03,3,adam,0.6,\n0.04,2,sgd,0.7,\n0.05,6,sgd,0.9,\n"
    more += "0.06,7,adam,0.5,\n0.002,1,sgd,0.3,\n0.003,3,adam,0.4,\n"
    Path("results.csv").write_text(rows + more)
    done = results("next", "--in", "results.csv", *SPACE, "--batch", "3", "--json")
    space = covey.Space(
        {
            "lr": covey.Real(1e-5, 0.1, log=True),
            "layers": covey.Integer(1, 8),
            "opt": covey.Choice(["adam", "sgd"]),
        }
    )
    study = covey.Study(space, seed=0)
    assert len(study.tell_sheet("results.csv")) == 10
    assert done.json["points"] == [dict(trial.point) for trial in study.ask(3)]
    Path("results.csv").write_text((rows + more).replace("0.5,0.2", "0.5,0.9"))
    control = results("next", "--in", "results.csv", *SPACE, "--batch", "3", "--json")
    assert control.json["points"] != done.json["points"]


def test_the_same_row_in_two_files_counts_twice_without_a_journal(results):
    Path("more.csv").write_text(RESULTS)
    words = ["next", "--in", "results.csv", "--value", "yield", *SPACE, "--batch", "2"]
    twice = results(*words, "--in", "more.csv")
    header, *rows = RESULTS.splitlines()
    Path("results.csv").write_text("\n".join([header, *rows, *rows]) + "\n")
    assert results(*words).out == twice.out


def test_what_a_refused_file_says_starts_no_journal(results):
    Path("results.csv").write_text(RESULTS.replace("0.8", "high"))
    words = ["next", "--in", "results.csv", "--value", "yield", *SPACE, "--journal", "p.jsonl"]
    assert results(*words).code == 5
    assert not Path("p.jsonl").exists()


def test_an_earlier_study_that_the_file_names_counts(call):
    import covey

    old = covey.Study(covey.Space({"x": covey.Real(0, 1)}), seed=0, journal="old.jsonl")
    old.tell(old.ask(8), [-((t.point["x"] - 0.9) ** 2) for t in old.history.pending])
    Path("results.csv").write_text("x,value\n0.1,-0.64\n0.3,-0.36\n")
    call("init", "--real", "x=0:1", "--seed", "0", "--prior", "old.jsonl")
    study = covey.Study(covey.Space({"x": covey.Real(0, 1)}), seed=0, prior=["old.jsonl"])
    study.tell_sheet("results.csv")
    done = call("next", "--in", "results.csv", "--batch", "2", "--json")
    assert done.json["points"] == [dict(trial.point) for trial in study.ask(2)]
    study = covey.Study(covey.Space({"x": covey.Real(0, 1)}), seed=0)
    study.tell_sheet("results.csv")
    assert done.json["points"] != [dict(trial.point) for trial in study.ask(2)]  # the control
