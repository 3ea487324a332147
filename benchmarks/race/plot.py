"""Plots of the race: median simple regret by round, one panel a cell."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.figure import Figure

_STYLES = ("-", "--", ":", "-.")


def _paired(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the seeds that every optimiser of a cell has run."""
    seeds: dict[Any, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        seeds[row["problem"], row["batch"]][row["optimiser"]].add(row["seed"])
    common = {cell: set.intersection(*ran.values()) for cell, ran in seeds.items()}
    return [row for row in rows if row["seed"] in common[row["problem"], row["batch"]]]


def draw(rows: list[dict[str, Any]], path: Path) -> Path:
    """Save the panels, with shared legend; readable in grey by line style."""
    curves: dict[Any, dict[str, dict[int, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for row in _paired(rows):
        if "regret" in row:
            share = max(row["regret"] / row["range"], 1e-9)
            curves[row["problem"], row["batch"]][row["optimiser"]][row["round"]].append(share)
    cells = sorted(curves)
    names = sorted({name for cell in curves.values() for name in cell})
    columns = min(4, len(cells))
    height = -(-len(cells) // columns)
    figure = Figure(figsize=(3.2 * columns, 2.5 * height + 0.8), layout="constrained")
    grid = figure.subplots(height, columns, squeeze=False).ravel()
    for axes, cell in zip(grid, cells, strict=False):
        for i, name in enumerate(names):
            points = curves[cell].get(name, {})
            at = sorted(points)
            style = {"linestyle": _STYLES[i % len(_STYLES)], "color": f"C{i}"}
            axes.plot(at, [median(points[t]) for t in at], label=name, linewidth=1.4, **style)
        axes.set_yscale("log")
        axes.set_title(f"{cell[0]}, B = {cell[1]}", fontsize=9, loc="left")
        axes.tick_params(labelsize=7)
    for axes in grid[len(cells) :]:
        axes.set_visible(False)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.savefig(path, dpi=110)
    return path
