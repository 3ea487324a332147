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
    assert "2 results and 1 row without one" in done.err
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
        (RESULTS.replace("0.8", "high"), "results.csv:3: yield is 'high'"),
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
    assert "1 result and 1 row without one" in done.err
