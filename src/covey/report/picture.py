"""Charts of the report card as pictures in files: a run, or the front of several goals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from covey.errors import HistoryError, ReportError, StrategyError
from covey.report.card import way
from covey.report.charts import canvas, plot_front, plot_way
from covey.report.tradeoff import trade_off

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from covey.history import History
    from covey.learn import Goal
    from covey.study import Study


_ENDINGS = (".png", ".svg", ".pdf")
_WIDTH = 8.0  # inches


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
        (goal,) = goal.values()
    if not history.counted:
        why = "every result is excluded" if history.told else "nothing has been told yet"
        raise HistoryError(f"{why}, so there is nothing to draw.")
    with canvas("plot") as figure:
        plot_way(figure, way(history, goal))
        return _save(figure, path, title)


def draw_front(study: Study, path: str | Path, title: str = "") -> Path:
    """Save a picture of the front of several goals: every pair of them, and what breaks a limit.

    Raises:
        HistoryError: no result that counts has a value of each goal.
        StrategyError: there is one goal; `draw_run` makes a picture of it.
    """
    path, outcomes = picture_path(path), study.outcomes
    if len(outcomes.goals) < 2:
        raise StrategyError("there is one goal, so there is no front; use covey.report.draw_run.")
    found = trade_off(study.history, outcomes, study.space.width)
    goals = len(outcomes.goals)
    if not any(None not in dot.values[:goals] and not dot.excluded for dot in found.dots):
        raise HistoryError("no result has a value of each goal yet, so there is no front to draw.")
    with canvas("plot") as figure:
        plot_front(figure, found)
        return _save(figure, path, title)


def _save(figure: Figure, path: Path, title: str) -> Path:
    width, height = figure.get_size_inches()
    figure.set_size_inches(_WIDTH, _WIDTH * height / width)
    figure.axes[0].set_title(title, loc="left")
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise ReportError(f"cannot write the picture to {path}: {error}") from error
    return path
