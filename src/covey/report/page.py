"""The page: a card as one self-contained HTML file (extra: covey[report])."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from covey.disk import write_whole
from covey.errors import MissingExtraError, ReportError, duration, several
from covey.report.card import MEANING, Card, Row
from covey.report.figures import (
    agreement_figure,
    front_figures,
    of_diversity,
    slice_figure,
    trainings_figure,
    way_figure,
)
from covey.report.format import plus_minus, share_of, shown, significant
from covey.report.predictions import MOST_TOLD

_MOST_ROWS = 100
_MOST_COLUMNS = 16
_MOST_NAMES = 5


def page_path(path: str | Path) -> Path:
    """The path, if a page can be written there; checked before long work starts."""
    path = Path(path)
    try:
        folder, room = path.is_dir(), path.parent.is_dir()
    except OSError as error:
        raise ReportError(f"cannot write the report to {path}: {error}") from error
    if folder:
        raise ReportError(f"{path} is a folder; name a file in it, such as {path / 'report.html'}.")
    if not room:
        raise ReportError(f"there is no folder {path.parent}; make it first, or choose another.")
    return path


def write_page(card: Card, path: str | Path) -> Path:
    """Write the page, whole or not at all; the path is returned.

    Raises:
        MissingExtraError: matplotlib or jinja2 is not installed.
        ReportError: the file cannot be written.
    """
    path = page_path(path)
    text = page(card)
    try:
        write_whole(path, text)
    except OSError as error:
        raise ReportError(f"cannot write the report to {path}: {error}") from error
    return path


def page(card: Card) -> str:
    """The page as text; the same card gives the same bytes.

    Every text is escaped by the template engine; the SVG alone passes as it is, since the plotting
    library has escaped what is in it.
    """
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise MissingExtraError("jinja2", "report") from error
    engine = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    engine.filters.update(
        number=significant, plus_minus=plus_minus, several=several, share=share_of, shown=shown
    )
    engine.filters["duration"] = duration
    template = resources.files("covey.report").joinpath("card.html.j2").read_text("utf-8")
    return engine.from_string(template).render(_context(card))


def _context(card: Card) -> dict[str, Any]:
    reasons = {row.reason for row in card.rows}
    return {
        "card": card,
        "way": way_figure(card) if card.way else None,
        "agreement": agreement_figure(card.calibration),
        "trainings": trainings_figure(card.trainings),
        "front": front_figures(card.trade_off),
        "slices": [
            (one, slice_figure(one, place)) for place, one in enumerate(card.slices, start=1)
        ],
        "diversity": of_diversity(card.diversity) if card.rows else [],
        "rows": _first_rows(card),
        "columns": card.standing.parameters[:_MOST_COLUMNS],
        "meanings": {reason: text for reason, text in MEANING.items() if reason in reasons},
        "title": _title(card),
        "too_many": card.standing.counts["told"] > MOST_TOLD,
    }


def _first_rows(card: Card) -> list[Row]:
    """As many rows as the page has room for, in order; pending ones are kept before all others."""
    awaited = sorted(card.rows, key=lambda row: row.status != "pending")
    return sorted(awaited[:_MOST_ROWS], key=lambda row: row.id)


def _title(card: Card) -> str:
    names = list(dict.fromkeys(card.batches))
    if len(names) > _MOST_NAMES:
        names = [names[0], f"{len(names) - 2} more", names[-1]]
    return ", ".join(names).capitalize()
