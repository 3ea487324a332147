"""One picture of a run: every value told, and the best so far, batch by batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from covey.errors import HistoryError, MissingExtraError, ReportError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from covey.history import History
    from covey.learn import Goal


_ENDINGS = (".png", ".svg", ".pdf")


def picture_path(path: str | Path) -> Path:
    """The path, if a picture can be written there; checked before long work starts."""
    path = Path(path)
    if path.suffix.lower() not in _ENDINGS:
        raise ReportError(f"a picture ends in {', '.join(_ENDINGS)}; got {path}.")
    if not path.parent.is_dir():
        raise ReportError(f"there is no folder {path.parent}; make it first, or choose another.")
    return path


def draw_run(history: History, goal: Goal, path: str | Path, title: str = "") -> Path:
    """Save the picture as PNG, SVG or PDF, by the ending of the path; the path is returned.

    Raises:
        MissingExtraError: matplotlib is not installed.
        HistoryError: nothing was told yet, or all of it is excluded.
        ReportError: the file cannot be written.
    """
    path = picture_path(path)
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot") from error
    told = history.counted
    if not told:
        why = "every result is excluded" if history.told else "nothing has been told yet"
        raise HistoryError(f"{why}, so there is nothing to draw.")
    ids = np.array([trial.id for trial in told])
    values = np.array([trial.value for trial in told], dtype=float)
    best = np.maximum.accumulate(values) if goal == "max" else np.minimum.accumulate(values)

    figure = Figure(figsize=(8.0, 4.5), layout="constrained")
    axes = figure.subplots()
    for i, batch in enumerate(history.batches):
        if i % 2:
            axes.axvspan(batch.ids[0] - 0.5, batch.ids[-1] + 0.5, color="0.94", zorder=0)
    axes.scatter(ids, values, s=18, color="0.45", label="one evaluation", zorder=2)
    axes.step(
        ids, best, where="post", color="#b3242b", linewidth=2.0, label="best so far", zorder=3
    )
    axes.set_xlabel("trial (bands are batches)")
    axes.set_ylabel("value")
    axes.set_xlim(-0.5, len(history) - 0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)
    if title:
        axes.set_title(title, loc="left")
    _save(figure, path, title)
    return path


def _save(figure: Figure, path: Path, title: str) -> None:
    try:
        figure.draw_without_rendering()  # errors in the text show before a file is opened
    except ValueError as error:
        raise ReportError(
            f"cannot set the title {title!r}: {error} Write \\\\$ for a dollar sign that begins no "
            "formula."
        ) from error
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise ReportError(f"cannot write the picture to {path}: {error}") from error
