"""The race as it is run: problems with true optima, paired starts, resumable results."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.race.functions import FUNCTIONS
from benchmarks.race.optimisers import OPTIMISERS, PEERS, version_of
from benchmarks.race.problems import names, problem
from benchmarks.race.runner import Run, finished, race, read, run_all, spread
from benchmarks.race.table import last_rows, lines, ratios

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_point_is_above_the_optimum(name):
    function = FUNCTIONS[name]
    low, high = np.array(function.box).T
    many = low + np.random.default_rng(0).random((5000, len(low))) * (high - low)
    values = function.f(many)
    assert values.shape == (5000,)
    assert values.max() <= function.optimum + 1e-9


def test_optima_are_reached_at_their_known_places():
    places = {
        "branin2": [np.pi, 2.275],
        "cosines2": [0.3125, 0.3125],
        "levy4": [1.0] * 4,
        "hartmann6": [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573],
        "styblinski6": [-2.903534] * 6,
        "rosenbrock8": [1.0] * 8,
        "ackley10": [0.0] * 10,
        "griewank6": [0.0] * 6,
        "rastrigin4": [0.0] * 4,
        "sphere20": [0.3] * 20,
    }
    for name, place in places.items():
        function = FUNCTIONS[name]
        assert function.f(np.array([place]))[0] == pytest.approx(function.optimum, abs=1e-5)


def test_first_batches_are_paired():
    for name in ("hartmann6", "mixed-branin3"):
        task = problem(name)
        assert task.first_batch(4, 1) == task.first_batch(4, 1)
        assert task.first_batch(4, 1) != task.first_batch(4, 2)


def test_noise_is_a_share_of_the_range():
    assert problem("levy4").noise == 0.0
    assert problem("levy4~10%").noise == pytest.approx(0.1 * problem("levy4").range)


@pytest.mark.parametrize("name", ["forrester1~10%", "mixed-branin3", "mixed-hartmann6"])
def test_a_run_is_a_row_a_batch(name):
    rows = list(race(Run("covey-lp-ucb", name, 3, 0, 2)))
    assert [row["round"] for row in rows] == [0, 1, 2]
    regrets = [row["regret"] for row in rows]
    assert regrets == sorted(regrets, reverse=True)
    assert min(regrets) >= -1e-9
    assert rows[2]["cumulative"] >= rows[1]["cumulative"]
    assert rows[1]["spread"] > 0.0


def test_results_resume(tmp_path):
    out = tmp_path / "race.jsonl"
    runs = [Run("covey-random", "forrester1", 2, seed, 1) for seed in range(3)]
    assert [done for done, _, _ in run_all(runs[:2], out, 1)] == [1, 2]
    with out.open("a") as file:
        file.write('{"cut off')  # as a stop would leave it
    assert [total for _, total, _ in run_all(runs, out, 1)] == [1]
    assert finished(out) == set(runs)


def test_what_is_not_entered_is_noted_once(tmp_path):
    out = tmp_path / "race.jsonl"
    row = {"optimiser": "x", "problem": "y", "batch": 1, "seed": 0, "rounds": 2, "round": 0}
    out.write_text(json.dumps({**row, "unsupported": "why"}) + "\n")
    assert finished(out) == {Run("x", "y", 1, 0, 2)}


def test_a_run_that_fails_costs_the_others_nothing(tmp_path, monkeypatch):
    out = tmp_path / "race.jsonl"
    bad = Run("covey-random", "no-such-problem", 2, 0, 1)
    good = Run("covey-random", "forrester1", 2, 0, 1)
    assert [done for done, _, _ in run_all([bad, good], out, 1)] == [1, 2]
    assert finished(out) == {good}
    assert any("error" in row for row in read(out))


def test_tables_compare_paired_seeds_only():
    def row(optimiser, seed, regret):
        return {
            "optimiser": optimiser,
            "problem": "p",
            "batch": 5,
            "seed": seed,
            "rounds": 1,
            "round": 1,
            "regret": regret,
            "cumulative": 10.0 * regret,
            "range": 2.0,
            "ask_cpu_s": 0.1,
        }

    rows = [row("a", 0, 1.0), row("a", 1, 0.5), row("b", 1, 1e-5), row("b", 2, 9.0)]
    (entered,) = last_rows(rows).values()
    assert {name: list(seeds) for name, seeds in entered.items()} == {"a": [1], "b": [1]}
    text = "\n".join(lines(rows))
    assert "| p | 5 | 1 | 1 | 0.25 / 2.5 | 0 / 5e-05 |" in text
    first, second = "| b | 1 | 1.00 | 1 | 1.00 | 100% |", "| a | 2 | 2.00 | 2 | 2.00 | 0% |"
    assert text.index(first) < text.index(second)
    assert "| b | 1 | 0 / 0 / 1 | 0 / 0 / 1 |" in text  # the duel, a against b


def test_places_count_only_where_all_are_entered():
    def row(optimiser, problem, regret):
        run = {"optimiser": optimiser, "problem": problem, "batch": 5, "seed": 0, "rounds": 1}
        found = {"regret": regret, "cumulative": regret, "range": 1.0, "ask_cpu_s": 0.1}
        return {**run, "round": 1, **found}

    rows = [row("a", "p", 0.5), row("b", "p", 0.7), row("a", "q", 0.9)]
    text = "\n".join(lines(rows))
    assert "Places in the 1 cells" in text
    assert "| a | 1 | 1.00 |" in text


def test_a_row_says_which_source_ran():
    assert version_of("covey-auto") == version_of("covey-random")
    assert re.fullmatch(r"covey \d+\.\d+\.\d+\+[0-9a-f]{8}", version_of("covey-auto"))


@pytest.mark.filterwarnings("ignore:Optimization failed in:RuntimeWarning")  # BoTorch tries again
@pytest.mark.parametrize("name", ["branin2~10%", "mixed-branin3"])
def test_botorch_takes_part(name):
    pytest.importorskip("botorch", reason="pip install botorch")
    rows = list(race(Run("botorch", name, 2, 0, 1)))
    assert rows[1]["regret"] <= rows[0]["regret"]


def test_a_collapsed_batch_has_no_spread():
    assert spread(np.array([[0.1, 0.1], [0.1, 0.1], [0.9, 0.9]])) == 0.0
    assert spread(np.array([[0.0, 0.0], [0.3, 0.4]])) == pytest.approx(0.5)


def test_every_strategy_of_ours_is_entered():
    from covey.catalog import STRATEGIES

    assert {f"covey-{name}" for name in STRATEGIES} <= set(OPTIMISERS)
    assert {f"covey-{name}-theory" for name in ("ucb-dpp-max", "bucb")} <= set(OPTIMISERS)
    assert set(PEERS) == {"botorch", "hebo", "optuna-gp", "turbo", "vizier"} <= set(OPTIMISERS)
    assert "levy4~1%" in set(names())


def test_the_command_runs_tabulates_and_draws(tmp_path):
    def call(*words):
        command = [sys.executable, "-m", "benchmarks.race", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    out = str(tmp_path / "race.jsonl")
    run = ["--problems", "forrester1", "--batches", "2", "--seeds", "1", "--rounds", "1"]
    done = call("run", *run, "--workers", "1", "--out", out)
    assert done.returncode == 0, done.stderr
    assert len(read(Path(out))) == 4  # two optimisers, two rounds
    assert "| forrester1 | 2 | 1 | 1 |" in call("table", out).stdout
    assert call("plot", out, "--out", str(tmp_path / "race.png")).returncode == 0
    assert (tmp_path / "race.png").exists()
    wrong = call("run", "--problems", "levi4", "--out", out)
    assert wrong.returncode == 1
    assert "unknown: levi4" in wrong.stderr


def test_ratios_compare_ours_with_each_peer_on_the_seeds_all_have():
    def row(optimiser, regret, problem="levy4~10%"):
        cell = {"problem": problem, "batch": 5, "rounds": 1, "round": 1, "seed": 0}
        return {**cell, "optimiser": optimiser, "regret": regret, "cumulative": 4.0, "range": 1.0}

    rows = [row("covey-auto", 0.2), row("hebo", 0.8), row("covey-auto", 9.0, "levy4")]
    assert list(ratios(rows, "~10%"))[2:] == ["| hebo | 1 | 1 / 0 / 0 | 0.25 | 1.00 |"]
