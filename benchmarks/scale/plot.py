"""Seconds over the number of rows: a straight line of slope one is linear growth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """One curve for each case, both axes logarithmic, the fit left out as it does not grow."""
    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    axes = figure.subplots()
    cases = list(dict.fromkeys((r["objective"], r["strategy"], r["k"]) for r in rows))
    for i, case in enumerate(cases):
        mine = [r for r in rows if (r["objective"], r["strategy"], r["k"]) == case]
        spent = [r["seconds"] - r["stages"].get("fit", 0.0) for r in mine]
        axes.plot(
            [r["n"] for r in mine],
            spent,
            marker="osD^vP*Xhd<>"[i % 12],
            linestyle="-" if case[0] == "smooth" else "--",
            label=f"{case[1]}, B = {case[2]}, {case[0]}",
        )
    sizes = sorted({r["n"] for r in rows})
    axes.plot(sizes, [sizes_ * 1e-5 for sizes_ in sizes], color="0.7", label="linear")
    axes.set(xscale="log", yscale="log", xlabel="rows of the pool", ylabel="seconds, less the fit")
    axes.grid(visible=True, color="0.92")
    axes.legend(fontsize=7, frameon=False)
    figure.savefig(path, dpi=130)
