"""The judge: medians and tests of made-up runs whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from papers.kathuria2016.entrants import ENTRANTS
from papers.kathuria2016.judge import (
    CUMULATIVE,
    END,
    QUARTER,
    Duel,
    best,
    cells,
    comparable,
    duel,
    holm,
    paired,
    score,
)
from papers.kathuria2016.report import evidence, lines, reached, standings
from papers.kathuria2016.sentences import CLAIMS
from scipy.stats import wilcoxon


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
    assert score(row, QUARTER) == 3
    assert score(row, CUMULATIVE) == row["cumulative"][-1]
    assert score(row, ("immediate", 0.5)) == 2


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


def test_scores_are_paired_each_by_its_measure():
    table = cells(made_up(lambda _: 1.0, seeds=4))["branin", 5]
    one, other = dict(table["bucb"]), dict(table["lp-ucb"])
    del one[1]
    got = paired([one, other], [QUARTER, END])
    assert got.tolist() == [
        [one[s]["anywhere"][1] for s in (0, 2, 3)],
        [other[s]["anywhere"][-1] for s in (0, 2, 3)],
    ]


def test_the_best_come_first_and_equals_share_a_place():
    rows = made_up(lambda e: 0.1 if e.kind == "lp" else 1.0, noise=0.0)
    table = cells(rows)
    order = best(table["branin", 5], "paper", END)
    assert order[0] == ("lp-ucb-4", 0.1)
    assert {value for _, value in order[1:]} == {1.0}
    lines = list(standings(table, "paper"))
    assert "| LP-UCB, β = 4 | 1 of 1; 1.0 | 1 of 1; 1.0 | 1 of 1; 1.0 |" in lines
    assert "| BUCB | 0 of 1; 2.0 | 0 of 1; 2.0 | 0 of 1; 2.0 |" in lines
    assert best({}, "paper", END) == []


def row_of(text, title, name):
    table = text.split(f"### {title}")[1].split("###")[0]
    return next(line for line in table.splitlines() if line.startswith(f"| {name}"))


def test_signs_say_who_has_less_regret():
    rows = [
        *made_up(lambda e: 0.3 if e.kind == "sample" else 1.0, batch=10),
        *made_up(lambda _: 1.0, problem="cosines", batch=10),
    ]
    versus = "UCB-DPP-SAMPLE against UCB-DPP-MAX"
    row = row_of("\n".join(lines(rows)), "paper: immediate regret at the end, paired", versus)
    signs = [word.strip()[0] for word in row.split("|")[2:-1]]
    assert signs == ["<", "?"]


def test_the_worse_first_is_marked():
    text = "\n".join(lines(made_up(lambda e: 3.0 if e.kind == "max" else 1.0)))
    assert "| > " in row_of(
        text, "practice: immediate regret at the end, paired", "ESTn-DPP-MAX against B-ESTn"
    )


def test_what_was_not_run_does_not_appear():
    rows = [r for r in made_up(lambda _: 1.0) if ENTRANTS[r["entrant"]].side == "paper"]
    text = "\n".join(lines(rows))
    assert "practice" not in text
    assert "7 entrants" not in text
    assert "350 runs, seeds 0 to 49, 0.2 core-hours" in text  # 7 entrants x 50 x 2 s
    assert "--seeds 50 --evaluations 20 --samples 10" in text


def test_runs_of_another_length_are_not_mixed_in():
    rows = made_up(lambda _: 1.0, seeds=3)
    other = [row | {"evaluations": 10} for row in rows[:5]]
    assert comparable(other + rows) == rows


def test_runs_that_reach_the_grids_best_are_counted():
    rows = [row | {"grid": 0.5} for row in made_up(lambda _: 1.0, seeds=4, noise=0.0)]
    for row in rows:
        if row["entrant"] == "bucb" and row["seed"] < 3:
            row["anywhere"] = [1.0, 0.5]
    assert next(line for line in reached(cells(rows)) if "branin" in line).startswith(
        "| branin | 5 | 3/4 | 0/4 |"
    )
    assert list(reached(cells(made_up(lambda _: 1.0, seeds=1)))) == []


def test_the_evidence_names_the_cells():
    text = "\n".join(evidence(CLAIMS[:1], cells(made_up(lambda e: 1.0 + (e.kind == "max")))))
    assert "### 1. sampling from the DPP" in text
    assert "| paper, at the end | holds | 2: UCB-DPP-SAMPLE / UCB-DPP-MAX on branin 5 (" in text
    assert list(evidence(CLAIMS, {})) == []
