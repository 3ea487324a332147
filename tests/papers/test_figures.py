"""The figures: a panel for each cell that was run; the same for the same runs; grey is enough."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from papers.kathuria2016.entrants import ENTRANTS
from papers.kathuria2016.figures import _COLOURS, _DASHES, _panel, draw
from papers.kathuria2016.judge import cells
from papers.kathuria2016.problems import PROBLEMS


def rows(problems, batches=(5, 10), grid=None):
    return [
        {
            "entrant": name, "problem": problem, "batch": batch, "seed": seed,
            "evaluations": 20, "samples": 10, "title": problem.upper(), "grid": grid,
            "recommendation": "seen", "seen": [3.0, 2.0 + i, 1.0 / (1 + seed)],
            "cumulative": [3.0, 9.0, 12.0 + i],
        }
        for problem in problems
        for batch in batches
        for i, name in enumerate(ENTRANTS)
        for seed in range(2)
    ]  # fmt: skip


def text(path):
    return path.read_text(encoding="utf-8")


def panels(path):
    return len(re.findall(r'<g id="axes_\d+">', text(path)))


def test_fourteen_panels_of_seven_problems(tmp_path):
    some = [row for row in rows(PROBLEMS) if row["entrant"] in ("bucb", "est-dpp-sample")]
    paths = draw(some, tmp_path)
    assert [p.name for p in paths] == [
        f"{regret}-paper.{kind}"
        for regret in ("immediate", "cumulative")
        for kind in ("png", "svg")
    ]
    assert panels(paths[1]) == panels(paths[3]) == 14
    assert all(path.stat().st_size > 10_000 for path in paths)


def test_what_was_not_run_has_no_panel(tmp_path):
    some = [
        row
        for row in rows(["branin", "robot"])
        if (row["problem"], row["batch"]) != ("robot", 10)
        and ENTRANTS[row["entrant"]].side == "paper"
    ]
    paths = draw(some, tmp_path)
    assert {path.stem for path in paths} == {"immediate-paper", "cumulative-paper"}
    assert panels(paths[1]) == 3


def test_the_line_of_the_grid_search_is_drawn_where_there_is_one(tmp_path, monkeypatch):
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
    some = rows(["bibtex"], batches=[5], grid=0.5) + rows(["branin"], batches=[5])
    paths = draw(some, tmp_path)
    immediate, cumulative = text(paths[1]), text(paths[5])
    assert immediate.count("best of grid search") == 1  # in the legend
    assert "best of grid search" not in cumulative
    assert "best of grid search" not in text(draw(rows(["branin"], [5]), tmp_path)[1])


def panel(some, regret="immediate"):
    axes = Figure().subplots()
    _panel(axes, next(iter(cells(some).values())), regret)
    return axes


@pytest.mark.parametrize("solved", [0, 1, 2])
def test_regrets_are_in_logs_and_nought_can_be_seen(solved):
    """Also where all runs (of two) or some have no regret left."""
    some = [r for r in rows(["branin"], [5]) if r["entrant"] == "bucb"]
    for row in some[:solved]:
        row["seen"] = [3.0, 0.02, 0.0]
    axes = panel(some)
    # One of two leaves quartiles above nought, two do not.
    assert axes.get_yscale() == ("symlog" if solved == 2 else "log")
    if solved == 2:
        assert axes.get_ylim()[0] < 0.0
        assert axes.get_ylim()[1] > 3.0
    assert panel(some, "cumulative").get_yscale() == "linear"


def test_a_problem_solved_at_once_can_be_drawn():
    some = [row | {"seen": [0.0, 0.0, 0.0]} for row in rows(["branin"], [5])]
    assert panel(some).get_yscale() == "linear"


def test_few_decades_have_plain_numbers():
    some = [row | {"seen": [20.0, 10.0, 2.0]} for row in rows(["abalone"], [5])]
    axes = panel(some)
    axes.figure.draw_without_rendering()
    shown = {text.get_text() for text in axes.get_yticklabels(which="both")}
    assert {"2", "5", "10", "20"} <= shown


def test_the_grids_line_is_within_its_panel():
    axes = panel(rows(["bibtex"], [5], grid=0.0))
    assert axes.get_ylim()[0] < 0.0 < axes.get_ylim()[1]
    assert "best of grid search" in axes.get_legend_handles_labels()[1]


def test_the_same_runs_give_the_same_drawing(tmp_path):
    some = [row for row in rows(["branin"], [5]) if row["entrant"] == "bucb"]
    first = [path.read_bytes() for path in draw(some, tmp_path)]
    assert [path.read_bytes() for path in draw(some, tmp_path)] == first


def test_kinds_differ_in_grey():
    def lightness(colour):
        red, green, blue = to_rgb(colour)
        return 0.299 * red + 0.587 * green + 0.114 * blue

    greys = sorted(lightness(colour) for colour in _COLOURS.values())
    assert min(b - a for a, b in pairwise(greys)) > 0.12
    assert len(set(map(str, _DASHES.values()))) == len(_DASHES)
