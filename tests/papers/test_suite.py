"""The command: it runs what is missing, resumes, leaves out what cannot be run, and draws."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from papers.kathuria2016 import findings, suite
from papers.kathuria2016.__main__ import COMMANDS, main
from papers.kathuria2016.problems import PROBLEMS, problem
from papers.kathuria2016.race import Run
from papers.kathuria2016.results import append, appending, missing, read, read_all, run_of

from covey import Pool

FEW = ["--entrants", "ucb-dpp-max", "ucb-dpp-sample", "lp-ucb-4", "--evaluations", "10"]


def quick(name, out, *words):
    return main([name, "--quick", "--out", str(out), "--workers", "1", *words])


@pytest.fixture
def undrawn(monkeypatch):
    """Without figures, which take their time."""
    monkeypatch.setattr("papers.kathuria2016.figures.draw", lambda *_: [])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder in which a quick race was run."""
    out = tmp_path_factory.mktemp("quick")
    assert quick("cosines", out, *FEW) == 0
    return out


def test_a_quick_race_leaves_rows_figures_and_tables(made):
    rows = read(made / "cosines.jsonl")
    assert len(rows) == 3 * 2 * suite.QUICK.seeds
    assert {run_of(row) for row in rows} == {
        Run(name, "cosines", batch, seed, 10, suite.QUICK.samples)
        for name in ("ucb-dpp-max", "ucb-dpp-sample", "lp-ucb-4")
        for batch in (5, 10)
        for seed in range(suite.QUICK.seeds)
    }
    drawn = {
        f"{r}-{s}.{e}"
        for r in ("immediate", "cumulative")
        for s in ("paper", "practice")
        for e in ("png", "svg")
    }
    assert {path.name for path in made.iterdir()} == drawn | {
        "cosines.jsonl", "tables.md", "claims.md"
    }  # fmt: skip
    tables = (made / "tables.md").read_text()
    assert "| cosines | 5 | 2 |" in tables
    assert "branin" not in tables


def test_what_is_done_is_not_done_again(made, undrawn, monkeypatch):
    def refuse(run):
        raise AssertionError(run)

    page = findings.README.read_bytes()
    before = (made / "cosines.jsonl").read_bytes()
    monkeypatch.setattr(suite, "race", refuse)
    assert quick("cosines", made, *FEW) == 0
    assert (made / "cosines.jsonl").read_bytes() == before
    assert findings.README.read_bytes() == page  # it is of the kept results alone


def test_a_torn_line_is_run_again(made, tmp_path):
    lines = (made / "cosines.jsonl").read_text().splitlines(keepends=True)
    torn = tmp_path / "cosines.jsonl"
    torn.write_text("".join(lines[:-1]) + lines[-1][:50])
    wanted = [run_of(json.loads(line)) for line in lines]
    assert missing(wanted, tmp_path) == wanted[-1:]
    assert suite.race_all(wanted, tmp_path, workers=1) == 0
    again = read(torn)
    assert [run_of(row) for row in again] == wanted
    assert again[-1]["cumulative"] == json.loads(lines[-1])["cumulative"]


def test_processes_make_the_same_rows(made, tmp_path):
    rows = read(made / "cosines.jsonl")[:3]
    suite.race_all([run_of(row) for row in rows], tmp_path, workers=2)
    got = {run_of(row): row["anywhere"] for row in read(tmp_path / "cosines.jsonl")}
    assert got == {run_of(row): row["anywhere"] for row in rows}


def test_a_run_that_fails_is_told_and_tried_again(tmp_path, monkeypatch):
    def fail(run):
        raise ValueError(f"no {run.seed}")

    run = Run("bucb", "cosines", 5, 0, 5, 2)
    monkeypatch.setattr(suite, "race", fail)
    assert suite.race_all([run], tmp_path, workers=1) == 1
    assert read(tmp_path / "cosines.jsonl")[0]["error"] == "ValueError('no 0')"
    assert read_all(tmp_path, PROBLEMS) == []
    assert missing([run], tmp_path) == [run]


def test_a_stop_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    def stop(run):
        raise KeyboardInterrupt

    monkeypatch.setattr(suite, "race", stop)
    assert quick("cosines", tmp_path, *FEW) == 130
    assert "goes on from here" in capsys.readouterr().err


def test_what_cannot_be_run_is_left_out_and_said(made, undrawn, capsys, monkeypatch):
    def without(name):
        if name == "abalone":
            raise FileNotFoundError("there is no abalone here")

    monkeypatch.setattr(suite, "problem", without)
    assert quick("abalone", made, *FEW) == 1
    assert "abalone is left out: there is no abalone here" in capsys.readouterr().err


def test_figures_only_runs_nothing(made, undrawn, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(suite, "race_all", None)
    (made / "tables.md").unlink()
    assert quick("all", made, "--figures-only") == 0
    assert (made / "tables.md").exists()
    assert quick("all", tmp_path, "--figures-only") == 1
    assert "no finished runs" in capsys.readouterr().err


def test_the_data_folder_is_passed_on(made, undrawn, tmp_path, monkeypatch):
    monkeypatch.setenv("COVEY_DATA", "elsewhere")
    assert quick("all", made, "--figures-only", "--data", str(tmp_path)) == 0
    assert suite.os.environ["COVEY_DATA"] == str(tmp_path)


def test_the_full_suite_is_the_issues(monkeypatch):
    planned = []
    monkeypatch.setattr(suite, "race_all", lambda runs, *_: planned.extend(runs))
    monkeypatch.setattr(suite, "problem", lambda name: problem("cosines"))
    monkeypatch.setattr(suite, "publish", lambda *_: 0)
    assert main(["all"]) == 0
    assert len(planned) == 50 * 7 * 2 * 14 == len(set(planned))
    assert {run.rounds for run in planned if run.batch == 5} == {20}
    assert planned[0].seed == 0
    assert planned[-1].seed == 49


def test_grounds_are_run_beside_each_other_and_rows_alone_are_not_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "publish", None)
    words = ["--rows-only", "--seeds", "1", "--batches", "5", "--grounds", "finite", "clouds"]
    assert quick("cosines", tmp_path, *FEW, *words) == 0
    rows = read(tmp_path / "cosines.jsonl")
    assert [row["ground"] for row in rows] == ["finite"] * 3 + ["clouds"] * 3
    assert [path.name for path in tmp_path.iterdir()] == ["cosines.jsonl"]
    before = (tmp_path / "cosines.jsonl").read_bytes()
    assert quick("cosines", tmp_path, *FEW, *words) == 0
    assert (tmp_path / "cosines.jsonl").read_bytes() == before


def test_a_pool_has_no_other_ground(tmp_path, capsys, monkeypatch):
    pool = replace(problem("cosines"), space=Pool([{"x0": 0.0, "x1": 0.0}]))
    monkeypatch.setattr(suite, "problem", lambda name: pool)
    planned = []
    monkeypatch.setattr(suite, "race_all", lambda runs, *_: planned.extend(runs))
    assert quick("abalone", tmp_path, "--grounds", "finite", "--rows-only") == 1
    assert "abalone is left out: its ground is a pool" in capsys.readouterr().err
    assert planned == []


def test_every_option_says_what_it_is(capsys):
    with pytest.raises(SystemExit):
        main(["all", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    for words in (
        "processes; one a core",
        "batch sizes; 5 and 10",
        "by the names of `list`",
        "finite: X alone, as the paper has it",
    ):
        assert words in said


def test_list_names_everything(capsys):
    assert main(["list"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in PROBLEMS)
    assert "estn-dpp-sample" in said


def test_an_unknown_command_says_what_there_is(capsys):
    with pytest.raises(SystemExit):
        main(["brannin"])
    assert "branin" in capsys.readouterr().err
    assert set(PROBLEMS) | {"list", "all", "optimum", "pack", "table"} <= set(COMMANDS)


def test_appending_to_no_file_leaves_none_behind(tmp_path):
    with appending(tmp_path, []) as files:
        assert files == {}
    with appending(tmp_path, ["x"]) as files:
        append(files["x"], {"a": 1})
    assert read(tmp_path / "x.jsonl") == [{"a": 1}]
