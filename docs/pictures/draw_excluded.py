"""Draw the picture of docs/results.md: what one typing error does to the model, and excluding it.

Run it from anywhere: `python docs/pictures/draw_excluded.py`; it writes excluded.png beside itself.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import covey

BATCH, WRONG = 8, 5


def yields(x: float) -> float:
    """A yield in per cent with its best near 0.62."""
    return 78.0 - 190.0 * (x - 0.62) ** 2 + 2.0 * np.sin(9.0 * x)


def main() -> None:
    """Tell eight yields, one of them mistyped, and draw the model with and without it."""
    study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), seed=0)
    batch = study.ask(BATCH)
    order = sorted(batch, key=lambda trial: trial.point["x"])
    wrong = order[WRONG]
    told = {t.id: yields(t.point["x"]) for t in batch}
    told[wrong.id] /= 10.0
    study.tell(batch, list(told.values()))
    at = np.linspace(0.0, 1.0, 201)
    figure = Figure(figsize=(10.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, title in (
        (left, f"{10.0 * told[wrong.id]:.1f} typed as {told[wrong.id]:.2f}"),
        (right, "the same, excluded"),
    ):
        if axes is right:
            study.exclude(wrong, "typing error")
        mean, std = study.predict([{"x": float(x)} for x in at])
        axes.fill_between(at, mean - 2 * std, mean + 2 * std, color="#1f4e9c", alpha=0.15, lw=0)
        axes.plot(at, mean, color="#1f4e9c", label="the model, ± 2 sd")
        axes.plot(at, [yields(x) for x in at], "--", color="0.5", lw=1.0, label="the truth")
        counted = study.history.counted
        axes.plot([t.point["x"] for t in counted], [t.value for t in counted], "ko", label="told")
        if axes is right:
            at_wrong = [wrong.point["x"]], [told[wrong.id]]
            axes.plot(*at_wrong, "X", mfc="none", mec="0.4", ms=9, label="excluded")
        advised = study.recommend(anywhere=True)
        axes.axvline(advised.point["x"], color="#b3242b", lw=1.2, label="recommended")
        axes.set_title(title, loc="left")
        axes.set_xlabel("x")
    left.set_ylabel("yield")
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(Path(__file__).with_name("excluded.png"), dpi=110)


if __name__ == "__main__":
    main()
