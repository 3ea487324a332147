"""Figures: each chart of the page with its sentence and its data as a table."""

from __future__ import annotations

from dataclasses import dataclass

from covey.report.calibration import Calibration
from covey.report.card import Card, Dot
from covey.report.charts import agreement_chart, slice_chart, way_chart
from covey.report.slices import Slice
from covey.report.summaries import of_calibration, of_slice, of_way
from covey.report.words import number, plus_minus, shown

_MOST_DOTS = 1000
_MOST_PAIRS = 300


@dataclass(frozen=True, slots=True)
class Figure:
    """An SVG element called ``name``, what it shows in words, and its data."""

    name: str
    svg: str
    words: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def way_figure(card: Card) -> Figure:
    """The best so far; of a long study the last thousand trials, so that the page stays light."""
    dots, words = card.way[-_MOST_DOTS:], of_way(card)
    if len(dots) < len(card.way):
        words += f" Only the last {len(dots)} of {len(card.way)} trials are drawn."
    head = ("trial", "batch", "status", "value", "best so far")
    return Figure("way", way_chart(dots), words, head, tuple(_dot_row(dot) for dot in dots))


def agreement_figure(calibration: Calibration) -> Figure | None:
    """Predicted against measured; None while there is nothing to compare."""
    pairs, words = calibration.pairs[-_MOST_PAIRS:], of_calibration(calibration)
    if not pairs:
        return None
    if len(pairs) < len(calibration.pairs):
        words += f" Only the last {len(pairs)} are drawn."
    head = ("trial", "batch", "expected", "50 % band", "90 % band", "measured", "off by, in sd")
    rows = tuple(
        (
            str(p.id),
            str(p.batch),
            plus_minus(p.expected.mean, p.expected.std),
            _band(p.expected.half),
            _band(p.expected.most),
            number(p.measured, 6),
            f"{p.error:+.1f}",
        )
        for p in pairs
    )
    svg = agreement_chart(pairs, max(p.batch for p in pairs))
    return Figure("agreement", svg, words, head, rows)


def slice_figure(one: Slice, place: int) -> Figure:
    """A slice; options are numbered, for a chart that had no room for their names."""
    name = f"slice-{place}"
    head = (*(() if one.numeric else ("no.",)), shown(one.name), "expected", "90 % interval")
    rows = tuple(
        (
            *(() if one.numeric else (str(i),)),
            shown(at),
            plus_minus(f.mean, f.std),
            _band(f.most),
        )
        for i, (at, f) in enumerate(zip(one.at, one.expected, strict=True), start=1)
    )
    return Figure(name, slice_chart(one, name), of_slice(one), head, rows)


def _dot_row(dot: Dot) -> tuple[str, ...]:
    lot = dot.origin if dot.batch is None else str(dot.batch)
    return str(dot.id), lot, dot.status, _maybe(dot.value), _maybe(dot.best)


def _maybe(value: float | None) -> str:
    return "" if value is None else number(value, 6)


def _band(ends: tuple[float, float]) -> str:
    return f"{number(ends[0])} to {number(ends[1])}"
