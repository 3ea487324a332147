"""The figures of the page: each chart with a sentence about it and its data as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from covey.errors import several
from covey.report.card import Card, Dot
from covey.report.charts import (
    chart,
    plot_agreement,
    plot_attained,
    plot_front,
    plot_slice,
    plot_trainings,
    plot_way,
)
from covey.report.format import plus_minus, share_of, shown, significant
from covey.report.predictions import Calibration
from covey.report.slices import Slice
from covey.report.tradeoff import TradeOff, of_attained, of_front
from covey.report.trainings import Trainings, of_trainings, rows_of

if TYPE_CHECKING:
    from covey.report.slices import Diversity


# Each chart in one sentence, for readers who do not see it.


def of_way(card: Card) -> str:
    """The best value so far: the first and the present one."""
    counts = card.standing.counts
    rest = ", ".join(f"{counts[s]} {s}" for s in ("pending", "failed") if counts[s])
    without = f"; no value of {rest}" if rest else ""
    bests = [dot.best for dot in card.way if dot.best is not None]
    if not bests:
        told = f"{counts['told']} told{_excluded(card)}" if counts["told"] else "none told yet"
        return f"{several(len(card.way), 'trial')}, {told}{without}."
    went = (
        f"stayed at {significant(bests[-1])}"
        if bests[0] == bests[-1]
        else f"went from {significant(bests[0])} to {significant(bests[-1])}"
    )
    return (
        f"Over {several(card.way[-1].lot + 1, 'lot')} of points the best value {went} "
        f"({'larger' if card.standing.goal == 'max' else 'smaller'} is better); "
        f"{counts['told']} told{_excluded(card)}{_stopped(card)}{without}."
    )


def _excluded(card: Card) -> str:
    count = sum(dot.excluded for dot in card.way)
    return f" ({count} excluded)" if count else ""


def _stopped(card: Card) -> str:
    count = sum(dot.stopped is not None for dot in card.way)
    return f" ({count} stopped early)" if count else ""


def of_calibration(calibration: Calibration) -> str:
    """Coverage of both bands against their probabilities."""
    parts = [
        f"{share_of(c.inside, c.of)} inside the {100 * c.band:.0f} % band, "
        f"{significant(c.band * c.of, 3)} expected"
        for c in calibration.coverage
    ]
    results = several(len(calibration.pairs), "result")
    return f"Of {results} that a model had predicted: {'; '.join(parts)}."


def of_slice(one: Slice) -> str:
    """How much the mean changes along a parameter, and the best point's value of it."""
    means = [f.mean for f in one.expected]
    here = shown(one.here)
    text = (
        f"Along {shown(one.name)} the expected value runs from {significant(min(means), 6)} to "
        f"{significant(max(means), 6)}; the best point has {here}."
    )
    if one.tied:
        text += f" To make up for it, {', '.join(map(shown, one.tied))} change too."
    if one.success:
        ends = (100.0 * min(one.success), 100.0 * max(one.success))
        text += f" The probability of success (red) runs from {ends[0]:.0f} to {ends[1]:.0f} %."
    if one.left_out:
        text += f" {several(one.left_out, 'value')} not shown."
    return text


def of_diversity(d: Diversity) -> list[str]:
    """Nearest pair, nearest earlier point, duplicates."""
    lines = []
    if d.pair is not None and d.median is not None:
        lines.append(
            f"Nearest pair in the batch: trials {d.pair.id} and {d.pair.other}, "
            f"{significant(d.pair.distance, 3)} apart (half of the points have a neighbour within "
            f"{significant(d.median, 3)})."
        )
    if d.earlier is not None:
        lines.append(
            f"Nearest to an earlier point: trial {d.earlier.id}, "
            f"{significant(d.earlier.distance, 3)} from trial {d.earlier.other}."
        )
    lines.append(
        f"Duplicates in the batch: {d.duplicates}. Points that repeat an earlier one: {d.repeats}."
    )
    return lines


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
    return Figure(
        "way", chart("way", plot_way, dots), words, head, tuple(_dot_row(dot) for dot in dots)
    )


def front_figures(found: TradeOff | None) -> list[Figure]:
    """The front of several goals, and what was attained of it batch by batch."""
    if found is None or not found.dots:
        return []
    head = ("trial", "batch", *found.names)
    rows = tuple(
        (str(d.id), "" if d.batch is None else str(d.batch), *map(_maybe, d.values))
        for d in found.front
    )
    made = []
    if len(found.goals) > 1:
        made.append(Figure("front", chart("front", plot_front, found), of_front(found), head, rows))
    if found.attained:
        shares = tuple((name, f"{share:.4g} %") for name, share in found.attained)
        words = of_attained(found)
        made.append(
            Figure(
                "attained",
                chart("attained", plot_attained, found),
                words,
                ("batch", "share"),
                shares,
            )
        )
    return made


def trainings_figure(found: Trainings | None) -> Figure | None:
    """What evaluations reported by step; None if none did."""
    if found is None:
        return None
    head = ("trial", "batch", "first value", "last value", "what became of it")
    svg = chart("trainings", plot_trainings, found.each)
    return Figure("trainings", svg, of_trainings(found), head, rows_of(found.each))


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
            significant(p.measured, 6),
            f"{p.error:+.1f}",
        )
        for p in pairs
    )
    svg = chart("agreement", plot_agreement, pairs)
    return Figure("agreement", svg, words, head, rows)


def slice_figure(one: Slice, place: int) -> Figure:
    """A slice; options are numbered, for a chart that had no room for their names."""
    name = f"slice-{place}"
    head = (*(() if one.numeric else ("no.",)), shown(one.name), "expected", "90 % interval")
    head = (*head, "success") if one.success else head
    rows = tuple(
        (
            *(() if one.numeric else (str(i),)),
            shown(at),
            plus_minus(f.mean, f.std),
            _band(f.most),
            *((f"{100.0 * one.success[i - 1]:.0f} %",) if one.success else ()),
        )
        for i, (at, f) in enumerate(zip(one.at, one.expected, strict=True), start=1)
    )
    return Figure(name, chart(name, plot_slice, one), of_slice(one), head, rows)


def _dot_row(dot: Dot) -> tuple[str, ...]:
    batch = dot.origin if dot.batch is None else str(dot.batch)
    status = "told, excluded" if dot.excluded else dot.status
    early = "" if dot.stopped is None else f", stopped at step {dot.stopped}"
    return str(dot.id), batch, status + early, _maybe(dot.value), _maybe(dot.best)


def _maybe(value: float | None) -> str:
    return "" if value is None else significant(value, 6)


def _band(ends: tuple[float, float]) -> str:
    return f"{significant(ends[0])} to {significant(ends[1])}"
