"""Draw the picture of the README: a batch of the default, and two over their relevance region.

Run it from anywhere: `python docs/pictures/draw_batch.py`; it writes batch.png beside itself.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from covey.gp import GP, condition, fit, observe
from covey.policies import EST
from covey.strategies import DPP
from covey.two_roles import TwoRoles

BATCH, SIDE = 8, 61


def hilly(at: np.ndarray) -> np.ndarray:
    """A smooth function with one good valley between worse ones."""
    x, y = at.T
    return np.sin(5.0 * x) * np.cos(4.0 * y) - 1.5 * (x - 0.6) ** 2


def main() -> None:
    """Fit to a few values, choose a batch by each of three strategies, draw them."""
    rng = np.random.default_rng(3)
    seen = rng.random((12, 2))
    data = observe(seen, hilly(seen), np.full(len(seen), np.nan))
    axis = np.linspace(0.0, 1.0, SIDE)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    belief = condition(fit(data, GP(), rng), data).belief(grid, round=2)
    belief = replace(belief, resolution=np.full(2, 0.01), seen_at=seen)

    figure = Figure(figsize=(12.0, 4.4), layout="constrained")
    strategies = {
        "auto, the default": TwoRoles(),
        "the paper's DPP-MAX: greedy": DPP(EST(), then="max", factor=1.0),
        "the paper's DPP-SAMPLE: drawn": DPP(EST(), then="sample", factor=1.0),
    }
    for axes, (title, strategy) in zip(
        figure.subplots(1, 3, sharey=True), strategies.items(), strict=True
    ):
        chosen = strategy.choose(belief, BATCH, rng)
        inside = np.zeros(len(grid))
        if chosen.region is not None:
            inside[chosen.region] = 1.0
        shape = (SIDE, SIDE)
        axes.contour(axis, axis, belief.mean.reshape(shape), 12, colors="0.75", linewidths=0.8)
        if inside.any():
            shown = inside.reshape(shape)
            axes.contourf(axis, axis, shown, [0.5, 1.5], colors=["#f4c27a"], alpha=0.55)
        axes.plot(*seen.T, "x", color="0.35", markersize=7, label="told so far", clip_on=False)
        batch = grid[list(chosen.indices)]
        axes.plot(
            *batch[1:].T,
            "o",
            color="#1f4e9c",
            markersize=8,
            label="the rest of the batch",
            clip_on=False,
        )
        axes.plot(
            *batch[0], "*", color="#b3242b", markersize=17, label="first point", clip_on=False
        )
        axes.set_title(title, loc="left")
        axes.set_aspect("equal")
        axes.set_xticks([])
        axes.set_yticks([])
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(Path(__file__).with_name("batch.png"), dpi=130)


if __name__ == "__main__":
    main()
