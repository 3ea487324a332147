"""The findings: written between the marks, from the rows and nothing else."""

from __future__ import annotations

import json
import re
from itertools import product

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install numba")

from papers.kathuria2016 import draws, findings, grounds, spread, suite
from papers.kathuria2016.entrants import ENTRANTS
from papers.kathuria2016.ground import GROUNDS, POINTS
from papers.kathuria2016.problems import PROBLEMS
from papers.kathuria2016.problems.robot import BEST_KNOWN
from papers.kathuria2016.results import RESULTS, append, appending, read_all
from papers.kathuria2016.robot.walk import _FIRST_SPEED, _MOST_SECONDS
from rich.console import Console


def made_up(level, *, problems=("branin", "bibtex"), batches=(5, 10), seeds=20, samples=5):
    """Runs of all entrants; ``level`` of an entrant is where its regret ends."""
    rows = []
    for problem, batch, seed, name in product(problems, batches, range(seeds), ENTRANTS):
        rng = np.random.default_rng([seed, batch, samples, *name.encode(), *problem.encode()])
        end = level(ENTRANTS[name]) * np.exp(0.3 * rng.standard_normal())
        curve = np.geomspace(10.0, end, 20 // batch + 1).tolist()
        rows.append(
            {
                "entrant": name, "problem": problem, "batch": batch, "seed": seed,
                "evaluations": 20, "samples": samples, "title": problem.title(),
                "grid": 0.0 if problem == "bibtex" else None,
                "recommendation": "seen", "seen": curve, "told": curve, "anywhere": curve,
                "cumulative": np.cumsum(curve).tolist(), "seconds": 1.0, "cpu": 36.0,
                "version": f"covey {samples}+0",
            }
        )  # fmt: skip
    return rows


LEVELS = {"sample": 0.1, "max": 0.4, "batched": 1.6, "lp": 1.6}


@pytest.fixture(scope="module")
def text():
    rows = made_up(lambda e: LEVELS[e.kind])
    return "\n".join(findings.lines(rows, made_up(lambda e: LEVELS[e.kind], samples=10, seeds=5)))


def test_what_the_rows_show_is_said_in_words(text):
    assert (
        "- Both settings: as the paper says, sampling from the DPP has less regret than max" in text
    )
    assert (
        "- Both settings: as the paper says, sampling has less regret than LP-UCB, but for robot."
        in text
    )
    assert (
        "- **The paper's settings: where problems are not solved, BUCB, B-EST or LP-UCB has the "
        "least median regret in 0 of 4 cells, a DPP method in 4; sampling has 1 times" in text
    )
    assert "1120 runs: branin, bibtex; 20 repetitions. Not run yet: cosines, hartmann6, " in text
    assert "11.2 core-hours for 1120 runs, 2.8 for 280 runs with more draws, " in text
    whole = 11.2 + 2.8 + spread.core_hours()
    assert f"{whole:.1f} in all, of 25 that were set aside" in text
    est = re.search(r"EST against UCB .*: (.*) comparisons", text)[1]
    assert re.findall(r"of (\d+)", est) == ["12", "12"]


def test_the_opposite_is_said_of_opposite_rows():
    worse = {"sample": 1.6, "max": 0.4, "batched": 0.1, "lp": 0.4}
    text = "\n".join(findings.lines(made_up(lambda e: worse[e.kind], problems=["cosines"]), []))
    assert "- Both settings: we do not find that sampling from the DPP has less regret than" in text
    assert "BUCB, B-EST or LP-UCB has the least median regret in 2 of 2 cells, a DPP" in text
    assert "More draws" not in text
    assert "grid search |" not in text


def test_equals_are_not_decided():
    text = "\n".join(findings.lines(made_up(lambda _: 1.0, problems=["cosines"]), []))
    assert "20 repetitions do not decide whether sampling" in text


def test_every_number_of_the_summary_comes_from_the_rows(text):
    line = next(x for x in text.splitlines() if x.startswith("| 1 | sampling from the DPP"))
    assert line.count("end: **holds** (8+ 0− 0?)") == 2  # two rules, two problems, two sizes
    counted = next(x for x in text.splitlines() if "LP-UCB, but for robot | at the end |" in x)
    assert counted.endswith("| 8 for, 0 against, of 8 | 8 for, 0 against, of 8 |")


def test_what_was_not_run_is_not_mentioned(text):
    for name in set(PROBLEMS) - {"branin", "bibtex"}:
        assert f"| {name} |" not in text
    assert not re.search(r"\| \d+ \| (robot|Abalone|Delicious|Hartmann)", text)
    half = [row for row in made_up(lambda _: 1.0) if ENTRANTS[row["entrant"]].side == "paper"]
    assert "In practice" not in "\n".join(findings.lines(half, []))


def test_problems_with_fewer_repetitions_are_named():
    rows = made_up(lambda _: 1.0, seeds=4) + made_up(lambda _: 1.0, problems=["robot"], seeds=2)
    assert "4 repetitions, but of robot (2 so far)" in "\n".join(findings.lines(rows, []))


def test_solved_problems_are_set_apart():
    text = "\n".join(
        findings.lines(made_up(lambda e: 1e-5 * LEVELS[e.kind], problems=["branin"]), [])
    )
    assert "All methods have solved branin 5, branin 10 at the end" in text
    assert "| at the end | 0 for, 0 against, of 0; 4 solved |" in text
    assert "end: **solved by all** (0+ 0− 0?, 4 solved)" in text
    assert "all have solved what would tell whether sampling" in text
    assert "where problems are not solved" not in text


def test_only_what_is_between_the_marks_is_written(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- findings -->\nold\n<!-- /findings -->\nafter\n")
    rows = made_up(lambda _: 1.0, problems=["branin"], seeds=3)
    findings.write(rows, [], readme)
    once = readme.read_text()
    assert once.startswith("before\n<!-- findings -->\n")
    assert once.endswith("<!-- /findings -->\nafter\n")
    assert "\nold\n" not in once
    findings.write(rows, [], readme)
    assert readme.read_text() == once
    readme.write_text("no place for it")
    with pytest.raises(ValueError, match="no place for the findings"):
        findings.write(rows, [], readme)


@pytest.mark.parametrize("default", [True, False])
def test_the_readme_is_written_from_the_kept_results_alone(default, tmp_path, monkeypatch):
    readme, out = tmp_path / "README.md", tmp_path / "results"
    readme.write_text(f"{findings.BEGIN}\n{findings.END_MARK}\n")
    monkeypatch.setattr("papers.kathuria2016.figures.draw", lambda *_: [])
    monkeypatch.setattr(findings, "README", readme)
    monkeypatch.setattr(suite, "RESULTS", out if default else tmp_path / "other")
    monkeypatch.setattr(draws, "TEN", tmp_path / "none")
    with appending(out, ["branin"]) as files:
        for row in made_up(lambda _: 1.0, problems=["branin"], seeds=3):
            append(files["branin"], row)
    assert suite.publish(out, Console(stderr=True)) == 0
    assert ("In short" in readme.read_text()) is default
    assert "paper, at the end" in (out / "claims.md").read_text()


def test_more_draws_are_compared_run_by_run():
    few = made_up(lambda _: 1.0, problems=["branin"], seeds=16)
    many = made_up(lambda _: 0.5, problems=["branin"], seeds=16, samples=10)
    table = draws.matched(few, many)
    assert set(table) == {("branin", 5), ("branin", 10)}
    assert all(len(seeds) == 16 for seeds in table.values())
    assert all(len(own) == 14 for seeds in table.values() for own in seeds.values())
    text = "\n".join(draws.lines(few, many))
    assert "| 5 draws | 10 draws |" in text
    assert "covey 10+0" in text
    found = re.search(r"p = (\S+), rank-biserial correlation (\S+) ", text)
    assert 2.0**-15 <= float(found[1]) < 1e-4  # sixteen repetitions say no more than that
    assert "--samples 10 --seeds 16" in text
    assert "would not have changed a comparison" in text
    assert float(found[2]) > 0.5
    same = "\n".join(draws.lines(few, made_up(lambda _: 1.0, problems=["branin"], samples=10)))
    assert float(re.search(r"p = (\S+),", same)[1]) > 0.01
    assert list(draws.lines(few, [])) == []


def test_draws_that_turn_a_comparison_are_counted():
    few = made_up(lambda e: LEVELS[e.kind], problems=["branin"], seeds=16)
    other = {"sample": 1.6, "max": 0.4, "batched": 0.1, "lp": 0.1}
    many = made_up(lambda e: other[e.kind], problems=["branin"], seeds=16, samples=10)
    text = "\n".join(draws.lines(few, many))
    assert "More draws would have changed comparisons: of 52 comparisons" in text
    assert "40 significantly change sides" in text


def test_runs_of_a_repetition_are_averaged():
    first, second = {0: [(3.0, 1.0), (1.0, 1.0)]}, {0: [(1.0, 3.0)], 7: [(0.0, 0.0)]}
    assert draws.averaged([first]).tolist() == [0.25]
    assert draws.averaged([first, second]).tolist() == [0.0, 0.0]


def test_what_fastxml_gives_at_its_defaults():
    found = spread.precisions(spread.TABLES / "bibtex.jsonl")
    assert len(found) == 7350
    assert found[50, 1.0, 1.0, 10, 100] >= 62.0  # about what its authors have
    line = next(x for x in spread.lines() if x.startswith("| Bibtex | 7350 |"))
    assert line.endswith(f"| {max(found.values()):.1f} | {found[50, 1.0, 1.0, 10, 100]:.1f} |")
    assert spread.core_hours() > 0.1


def test_half_a_table_of_fastxml_says_nothing(tmp_path):
    whole = (spread.TABLES / "bibtex.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "bibtex.jsonl").write_text("".join(whole[:20]))
    assert list(spread.lines(tmp_path)) == []


def test_the_numbers_of_the_readme_are_those_of_the_source():
    page = " ".join(findings.README.read_text(encoding="utf-8").split())
    best = json.loads(BEST_KNOWN.read_text())
    walks = f"{best['evaluations']:,}".replace(",", " ")
    assert f"{best['value']:.4f} m/s, is the best of {walks} walks" in page
    assert f"--seeds {len(best['ends'])} " in best["command"]
    assert ("five searches" in page) == (len(best["ends"]) == 5)
    assert ("Fifty repetitions" in page) == (suite.FULL.seeds == 50)
    assert ("We draw five" in page) == (suite.FULL.samples == 5)
    assert f"Length**: {suite.FULL.evaluations} looks" in page
    assert f"{POINTS} scrambled Sobol points" in page
    assert f"first speed is {_FIRST_SPEED:g} rad/s" in page
    assert f"more than {_MOST_SECONDS:g} s" in page


def test_relative_differences_need_no_unit():
    a, b = np.array([0.0, 1.0, 3e-9]), np.array([0.0, 3.0, 1e-9])
    assert draws.relative(a, b).tolist() == pytest.approx([0.0, -0.5, 0.5])


WORSE = {"sample": 1.6, "max": 1.6, "batched": 0.1, "lp": 0.1}
FLOOR = 0.5


def hartmann(kind, level=lambda e: WORSE[e.kind], **how):
    """Rows on a ground; on X alone nobody is better than FLOOR, and all regrets are above it."""
    rows = made_up(level, problems=["hartmann6"], **how)
    if kind == "ends":
        return rows  # as they were before there was a choice
    rows = [row | {"ground": kind} for row in rows]
    if kind == "finite":
        for row in rows:
            row["least"] = FLOOR
            for name in ("seen", "told", "anywhere"):
                row[name] = [x + FLOOR for x in row[name]]
    return rows


def equal(_):
    return 1.0


def test_a_difference_that_vanishes_on_x_alone_is_said_to():
    rows = [*hartmann("ends"), *hartmann("finite", equal), *hartmann("clouds", equal)]
    paper, practice = grounds.summary(rows)
    assert paper.startswith("- Hartmann6 on other grounds, the paper's settings: compared with ")
    assert "on `ends` less regret in 0 and more in 16 of 16 comparisons; on `finite` less" in paper
    assert "On X alone, as the paper has it, the difference vanishes: none is left" in paper
    assert "With clouds for everybody the difference vanishes: none is left" in paper
    assert ", in practice: " in practice
    # The controls: the same difference, some of it, and none that could vanish.
    same = [*hartmann("ends"), *hartmann("finite")]
    assert "the difference does not shrink." in next(grounds.summary(same))
    fewer = [*hartmann("ends"), *hartmann("finite", lambda e: 1.6 if e.kind == "max" else 0.1)]
    assert "the difference shrinks, but does not vanish." in next(grounds.summary(fewer))
    none = [*hartmann("ends", equal), *hartmann("finite", equal)]
    assert "the difference" not in next(grounds.summary(none))


def test_verdicts_that_change_with_the_ground_are_named():
    rows = [*hartmann("ends"), *hartmann("finite", equal), *hartmann("clouds")]
    text = "\n".join(findings.lines(rows, []))
    line = next(x for x in text.splitlines() if x.startswith("| 17 | Hartmann-6: LP-UCB has cons"))
    assert "| quarter: **holds** (4+ 0− 0?)<br>end: **holds** (4+ 0− 0?) |" in line  # the ends'
    alone = next(x for x in text.splitlines() if x.startswith("| 17 |") and "| paper | end |" in x)
    assert alone.endswith(
        "| **holds** (4+ 0− 0?) | **not decided** (0+ 0− 4?) | **holds** (4+ 0− 0?) |"
    )
    finite, clouds = (x for x in text.splitlines() if x.startswith("- On `"))
    assert finite.startswith("- On `finite` instead of `ends`, the other problems as they are, ")
    assert "17 (paper) from *holds* to *not decided*" in finite
    assert clouds.endswith(" 0 of 88 verdicts of all change.")
    assert "| 3, 18 | sampling has less regret than LP-UCB, but for robot | paper | end |" in text


def test_on_x_alone_regret_is_judged_against_the_best_of_x():
    rows = [*hartmann("ends", seeds=4), *hartmann("finite", lambda _: 1e-9, seeds=4)]
    for row in rows:
        if "least" in row and row["seed"] < 3:
            row["seen"] = [*row["seen"][:-1], FLOOR]
    text = "\n".join(grounds.lines(rows))
    assert "nobody can have less than the best of X, 0.5 (median); 84 of 112 runs have" in text
    assert re.search(r"^\| BUCB \| \S+ \| \*\*0\.5\*\* \(3/4\) \|", text, re.MULTILINE)
    assert "| paper | end | **not decided** (0+ 0− 4?) | **solved by all** (0+ 0− 0?, 4" in text
    table = grounds.compared(rows, "hartmann6")["finite"]
    row = table["hartmann6", 5]["bucb"][0]
    inside = grounds.within(table)["hartmann6", 5]["bucb"][0]
    assert inside["seen"][-1] == 0.0
    looks = np.array([1, 6, 11, 16, 21])
    assert inside["cumulative"] == pytest.approx(row["cumulative"] - FLOOR * looks)


def test_grounds_are_compared_on_the_repetitions_that_all_have():
    rows = [*hartmann("ends"), *hartmann("finite", seeds=6), *hartmann("clouds", seeds=5)]
    tables = grounds.compared(rows, "hartmann6")
    assert list(tables) == list(GROUNDS)
    for table in tables.values():
        assert {len(seeds) for own in table.values() for seeds in own.values()} == {5}
    assert "Hartmann6, 5 repetitions" in "\n".join(grounds.lines(rows))
    only = [row for row in rows if row.get("ground") != "finite"]
    assert "finite" not in "\n".join([*grounds.lines(only), *grounds.summary(only)])


def test_other_grounds_touch_nothing_else():
    rows = hartmann("ends")
    before = list(findings.lines(rows, []))
    after = list(findings.lines([*rows, *hartmann("clouds", lambda _: 1e-9)], []))
    assert len([line for line in before if line not in after]) == 1  # what it took
    took = next(line for line in after if "core-hours for" in line)
    assert "560 runs, 0.0 for 0 runs with more draws, 5.6 for 560 on other grounds" in took
    assert any(line.startswith("- hartmann6 on `clouds`: 560 runs") for line in after)
    assert "other grounds" not in "\n".join(before)
    assert list(grounds.details(rows)) == []
    details = "\n".join(grounds.details([*rows, *hartmann("clouds")]))
    assert "### ground `clouds`, practice: immediate regret at the end, paired tests" in details


def test_the_page_says_what_the_kept_rows_say():
    """Else someone has added rows, or changed the rule, and has not written the page again."""
    rows = read_all(RESULTS, PROBLEMS)
    if not rows:
        pytest.skip("no results are kept yet; python -m papers.kathuria2016 all")
    page = findings.README.read_text(encoding="utf-8")
    made = list(findings.lines(rows, read_all(draws.TEN, PROBLEMS)))
    # Not the numbers, whose last digit may depend on a version of SciPy.
    words = [line for line in made if "**" in line or line.startswith("- ")]
    assert words
    assert all(line in page for line in words)
