"""The judge: medians and tests of made-up runs whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from papers.kathuria2016.entrants import ENTRANTS
from papers.kathuria2016.judge import Duel, cells, comparable, duel, holm, lines, score
from scipy.stats import wilcoxon

END = "immediate regret at the end"


def made_up(level, *, problem="branin", batch=5, seeds=50, noise=0.3):
    """Runs of all entrants; ``level`` of an entrant is how much regret it has."""
    rows = []
    for name, entrant in ENTRANTS.items():
        for seed in range(seeds):
            rng = np.random.default_rng([seed, batch, len(name), sum(map(ord, name))])
            curve = (level(entrant) * np.exp(noise * rng.standard_normal(5))).tolist()
            rows.append(
                {
                    "entrant": name, "problem": problem, "batch": batch, "seed": seed,
                    "evaluations": 20, "samples": 10, "title": problem.title(), "grid": None,
                    "recommendation": "anywhere", "seen": curve, "told": curve,
                    "anywhere": curve, "cumulative": np.cumsum(curve).tolist(),
                    "seconds": 1.0, "cpu": 2.0, "version": "covey 0+0",
                }
            )  # fmt: skip
    return rows


def test_scores_are_read_off_the_curves():
    row = made_up(lambda _: 1.0, seeds=1)[0] | {"seen": [4, 3, 2, 1, 0], "recommendation": "seen"}
    assert score(row, END) == 0
    assert score(row, "immediate regret after a quarter of the looks") == 3
    assert score(row, "cumulative regret at the end") == row["cumulative"][-1]


def test_a_duel_finds_the_better_one_and_none_among_equals():
    table = cells(made_up(lambda e: 0.5 if e.kind == "sample" else 1.0))["branin", 5]
    won = duel(table, "ucb-dpp-sample", "ucb-dpp-max", END)
    assert won.p < 1e-6
    assert won.lean < -0.8
    assert duel(table, "ucb-dpp-max", "ucb-dpp-sample", END).lean == -won.lean
    assert duel(table, "bucb", "ucb-dpp-max", END).p > 0.05
    assert won.p == wilcoxon(won.differences).pvalue


def test_a_duel_of_twins_is_not_decided():
    assert Duel(np.zeros(50)).p == 1.0
    assert Duel(np.zeros(50)).lean == 0.0
    assert Duel(np.array([])).p == 1.0
    ties = Duel(np.r_[np.zeros(30), np.ones(20)])
    assert ties.p < 1e-4
    assert ties.lean == pytest.approx(1.0, abs=0.7)


def test_only_repetitions_that_both_ran_count():
    rows = made_up(lambda _: 1.0)
    rows = [r for r in rows if r["entrant"] != "bucb" or r["seed"] < 7]
    table = cells(rows)["branin", 5]
    assert len(duel(table, "bucb", "lp-ucb", END).differences) == 7
    text = "\n".join(lines(rows))
    assert "| branin | 5 | 7 |" in text  # medians of the paper's side
    assert "| branin | 5 | 50 |" in text  # of the other


def test_holm_keeps_the_level_of_a_row():
    assert holm([0.01, 0.04, 0.03]) == [0.03, 0.06, 0.06]
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def row_of(text, title, name):
    table = text.split(f"### {title}")[1].split("###")[0]
    return next(line for line in table.splitlines() if line.startswith(f"| {name}"))


def test_verdicts_and_the_gap_that_grows_with_the_batch():
    def at(factor):
        return lambda e: factor if e.kind == "sample" else 1.0

    rows = [
        *made_up(at(0.9), batch=5),
        *made_up(at(0.3), batch=10),
        *made_up(at(1.0), problem="cosines", batch=5),
        *made_up(at(1.0), problem="cosines", batch=10),
    ]
    text = "\n".join(lines(rows))
    versus = "UCB-DPP-SAMPLE against UCB-DPP-MAX"
    verdicts = [w.strip() for w in row_of(text, f"paper: {END}, paired", versus).split("|")[2:-1]]
    assert verdicts[1].startswith("<")
    assert [v[0] for v in verdicts[2:]] == ["?", "?"]
    grown = [w.strip() for w in row_of(text, "paper: from B = 5 to 10", versus).split("|")[2:-1]]
    assert [v[0] for v in grown] == ["<", "?"]


def test_the_worse_first_is_marked():
    text = "\n".join(lines(made_up(lambda e: 3.0 if e.kind == "max" else 1.0)))
    assert "| > " in row_of(text, f"practice: {END}, paired", "ESTn-DPP-MAX against B-ESTn")


def test_what_was_not_run_does_not_appear():
    rows = [r for r in made_up(lambda _: 1.0) if ENTRANTS[r["entrant"]].side == "paper"]
    text = "\n".join(lines(rows))
    assert "practice" not in text
    assert "from B" not in text  # one batch size says nothing about growth
    assert "7 entrants" not in text
    assert "0.2 core-hours" in text  # 7 entrants x 50 x 2 s
    assert "--seeds 50 --evaluations 20 --samples 10" in text


def test_runs_of_another_length_are_not_mixed_in():
    rows = made_up(lambda _: 1.0, seeds=3)
    other = [row | {"evaluations": 10} for row in rows[:5]]
    assert comparable(other + rows) == rows
