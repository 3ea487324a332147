"""Figures: regret by batch, a panel for each problem and batch size, a sheet for each side.

Readable in grey: a kind of method has its own lightness and marker, a rule its own dashes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

from covey.arrays import Array
from papers.kathuria2016.entrants import ENTRANTS, Side
from papers.kathuria2016.judge import Cell, Seeds, cells, curve, field
from papers.kathuria2016.results import Row

_COLOURS = {"sample": "#12305c", "max": "#c8553d", "batched": "#8fbf7f", "lp": "#000000"}
_MARKERS = {"sample": "o", "max": "s", "batched": "^", "lp": "D"}
_DASHES = {"ucb": "-", "est": (0, (4, 2))}
_LEAST = 1e-9  # a regret below this is nought, up to rounding
_FEW = 50.0
_GRID = "tab:blue"  # the paper's blue line


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Immediate and cumulative regret, paper and practice, PNG and SVG; of what was run only."""
    table = cells(rows)
    paths = []
    for regret in ("immediate", "cumulative"):
        for side in ("paper", "practice"):
            shown = {cell: _of_side(entered, side) for cell, entered in table.items()}
            shown = {cell: entered for cell, entered in shown.items() if entered}
            if shown:
                paths += _sheet(shown, regret, folder / f"{regret}-{side}")
    return paths


def _of_side(entered: Mapping[str, Seeds], side: Side) -> dict[str, Seeds]:
    return {name: entered[name] for name in field(entered, side)}


def _sheet(table: Mapping[Cell, Mapping[str, Seeds]], regret: str, path: Path) -> list[Path]:
    """One row a problem, one column a batch size."""
    problems = list(dict.fromkeys(problem for problem, _ in table))
    batches = sorted({batch for _, batch in table})
    size = (5.2 * len(batches), 3.1 * len(problems) + 0.7)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(problems), len(batches), squeeze=False)
    for axes_of_row, problem in zip(grid, problems, strict=True):
        for axes, batch in zip(axes_of_row, batches, strict=True):
            if (problem, batch) in table:
                _panel(axes, table[problem, batch], regret)
            else:
                axes.set_visible(False)
    handles = {
        label: handle
        for axes in grid.ravel()
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside upper center",
        ncols=4,
        frameon=False,
        fontsize=9,
    )
    figure.draw_without_rendering()  # lays it out, once for both files
    figure.set_layout_engine("none")
    saved = [path.with_suffix(".png"), path.with_suffix(".svg")]
    # Without a date, and with a salt of our own, the same runs give the same file.
    with rc_context({"svg.hashsalt": "covey"}):
        figure.savefig(saved[0], dpi=130)
        figure.savefig(saved[1], metadata={"Date": None})
    return saved


def _panel(axes: Axes, entered: Mapping[str, Seeds], regret: str) -> None:
    """Median by batch with the band between the quartiles."""
    first: Row = next(iter(next(iter(entered.values())).values()))
    shown: list[Array] = []
    for i, (name, seeds) in enumerate(entered.items()):
        curves = np.array([curve(row, regret) for row in seeds.values()])
        shown.append(np.quantile(curves, [0.25, 0.5, 0.75], axis=0))
        _draw(axes, name, shown[-1], i)
    axes.set_title(f"{first['title']}, B = {first['batch']}", fontsize=10, loc="left")
    axes.set_xlabel("batches", fontsize=9)
    axes.set_ylabel(f"{regret} regret", fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.margins(x=0.02)
    axes.tick_params(labelsize=8, which="both")
    axes.grid(visible=True, color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)
    if regret == "immediate":
        if first["grid"] is not None:
            axes.axhline(first["grid"], color=_GRID, linewidth=2.0, label="best of grid search")
            shown.append(np.array([first["grid"]]))
        _in_logs(axes, np.concatenate(shown, axis=None))


def _in_logs(axes: Axes, shown: Array) -> None:
    """A logarithmic axis; where nought is to be seen, linear below the decade of the rest."""
    rest = shown[shown > _LEAST]
    if len(rest) == len(shown):
        axes.set_yscale("log")
        if rest.max() < _FEW * rest.min():  # decades alone would be too few to read
            axes.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("{x:g}")
    elif len(rest):
        decade = 10.0 ** np.floor(np.log10(rest.min()))
        axes.set_yscale("symlog", linthresh=decade, linscale=0.5)
        axes.set_ylim(bottom=-0.25 * decade)


def _draw(axes: Axes, name: str, quartiles: Array, i: int) -> None:
    entrant = ENTRANTS[name]
    low, middle, high = quartiles
    at, colour = np.arange(len(middle)), _COLOURS[entrant.kind]
    axes.fill_between(at, low, high, color=colour, alpha=0.10, linewidth=0)
    axes.plot(
        at,
        middle,
        label=entrant.title,
        color=colour,
        linestyle=":" if entrant.kind == "lp" else _DASHES[entrant.rule],
        linewidth=1.6,
        marker=_MARKERS[entrant.kind],
        markersize=4,
        markerfacecolor=colour if entrant.rule == "ucb" else "white",
        markevery=(i % 3, 3),
    )
