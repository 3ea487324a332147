"""One picture of a run: every value told, and the best so far, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from covey.errors import HistoryError, MissingExtraError, ReportError, StrategyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from covey.history import History
    from covey.learn import Goal
    from covey.study import Study


_ENDINGS = (".png", ".svg", ".pdf")


def picture_path(path: str | Path) -> Path:
    """The path, if a picture can be written there; checked before long work starts."""
    path = Path(path)
    if path.suffix.lower() not in _ENDINGS:
        raise ReportError(f"a picture ends in {', '.join(_ENDINGS)}; got {path}.")
    if not path.parent.is_dir():
        raise ReportError(f"there is no folder {path.parent}; make it first, or choose another.")
    return path


def draw_run(
    history: History, goal: Goal | Mapping[str, Goal], path: str | Path, title: str = ""
) -> Path:
    """Save the picture as PNG, SVG or PDF, by the ending of the path; the path is returned.

    Raises:
        MissingExtraError: matplotlib is not installed.
        HistoryError: nothing was told yet, or all of it is excluded.
        ReportError: the file cannot be written.
        StrategyError: there are several goals, for which `draw_front` makes a picture.
    """
    path = picture_path(path)
    if isinstance(goal, Mapping):
        if len(goal) > 1:
            raise StrategyError(
                f"there are several goals ({', '.join(goal)}), and so no best so far to draw; use "
                "covey.report.draw_front(study, path)."
            )
        goal = next(iter(goal.values()))
    figure = _new_figure()
    told = history.counted
    if not told:
        why = "every result is excluded" if history.told else "nothing has been told yet"
        raise HistoryError(f"{why}, so there is nothing to draw.")
    ids = np.array([trial.id for trial in told])
    values = np.array([trial.value for trial in told], dtype=float)
    best = np.maximum.accumulate(values) if goal == "max" else np.minimum.accumulate(values)

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
    _finish(axes, title)
    _save(figure, path, title)
    return path


def draw_front(study: Study, path: str | Path, title: str = "") -> Path:
    """Save a picture of the front of two goals: results, what breaks a limit, and the trade-off.

    Of more goals the first two are drawn.

    Raises:
        HistoryError: no result that counts has a value of both goals.
        StrategyError: there is one goal; `draw_run` makes a picture of it.
    """
    path, outcomes = picture_path(path), study.outcomes
    if len(outcomes.goals) < 2:
        raise StrategyError("there is one goal, so there is no front; use covey.report.draw_run.")
    (x, _), (y, _) = list(outcomes.goals.items())[:2]
    told = [t for t in study.history.told if not t.excluded and {x, y} <= t.values.keys()]
    if not told:
        raise HistoryError("no result has a value of both goals yet, so there is no front to draw.")
    figure = _new_figure()
    from matplotlib.ticker import MaxNLocator

    axes = figure.subplots()
    kept = [t for t in told if outcomes.keeps(t.values)]
    broken = [t for t in told if t not in kept]
    batches = np.array([study.history.batch(t) or 0 for t in kept])
    values = np.array([[t.values[x], t.values[y]] for t in kept]).reshape(-1, 2)
    shade = axes.scatter(values[:, 0], values[:, 1], s=26, c=batches, cmap="viridis_r", zorder=2)
    if broken:
        at = np.array([[t.values[x], t.values[y]] for t in broken])
        axes.scatter(
            at[:, 0], at[:, 1], s=26, marker="x", color="0.55", zorder=2, label="breaks a limit"
        )
    front = np.array([[t.values[x], t.values[y]] for t in study.front]).reshape(-1, 2)
    front = front[np.argsort(front[:, 0])]
    axes.plot(
        front[:, 0],
        front[:, 1],
        "D",
        markersize=7,
        markerfacecolor="none",
        color="#b3242b",
        label="front",
    )
    bar = figure.colorbar(shade, ax=axes, label="batch", pad=0.01)
    bar.locator = MaxNLocator(integer=True)
    bar.update_ticks()
    names = f"{x} ({outcomes.goals[x]})", f"{y} ({outcomes.goals[y]})"
    axes.set(xlabel=names[0], ylabel=names[1])
    _finish(axes, title)
    _save(figure, path, title)
    return path


def _finish(axes: Axes, title: str) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)
    if title:
        axes.set_title(title, loc="left")


def _new_figure() -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot") from error
    return Figure(figsize=(8.0, 4.5), layout="constrained")


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
