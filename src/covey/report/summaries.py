"""Summaries: each chart in one sentence, for those who do not see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from covey.errors import several
from covey.report.words import number, share, shown

if TYPE_CHECKING:
    from covey.report.calibration import Calibration
    from covey.report.card import Card
    from covey.report.diversity import Diversity
    from covey.report.slices import Slice


def of_way(card: Card) -> str:
    """The best so far: where it began and where it is."""
    counts = card.standing.counts
    rest = ", ".join(f"{counts[s]} {s}" for s in ("pending", "failed") if counts[s])
    without = f"; no value of {rest}" if rest else ""
    bests = [dot.best for dot in card.way if dot.best is not None]
    if not bests:
        return f"{several(len(card.way), 'trial')}, none told yet{without}."
    went = (
        f"stayed at {number(bests[-1])}"
        if bests[0] == bests[-1]
        else f"went from {number(bests[0])} to {number(bests[-1])}"
    )
    return (
        f"Over {several(card.way[-1].lot + 1, 'lot')} of points the best value {went} "
        f"({'larger' if card.standing.goal == 'max' else 'smaller'} is better); "
        f"{counts['told']} told{without}."
    )


def of_calibration(calibration: Calibration) -> str:
    """Coverage of both bands beside what is expected of them."""
    parts = [
        f"{share(c.inside, c.of)} inside the {100 * c.band:.0f} % band, "
        f"{number(c.band * c.of, 3)} expected"
        for c in calibration.coverage
    ]
    results = several(len(calibration.pairs), "result")
    return f"Of {results} that a model had predicted: {'; '.join(parts)}."


def of_slice(one: Slice) -> str:
    """How far the mean moves along a parameter, and where it is now."""
    means = [f.mean for f in one.expected]
    here = shown(one.here)
    text = (
        f"Along {shown(one.name)} the expected value runs from {number(min(means), 6)} to "
        f"{number(max(means), 6)}; the best point has {here}."
    )
    if one.left_out:
        text += f" {several(one.left_out, 'value')} not shown."
    return text


def of_diversity(d: Diversity) -> list[str]:
    """Nearest pair, nearest earlier point, duplicates."""
    lines = []
    if d.pair is not None and d.median is not None:
        lines.append(
            f"Nearest pair in the batch: trials {d.pair.id} and {d.pair.other}, "
            f"{number(d.pair.distance, 3)} apart (half of the points have a neighbour within "
            f"{number(d.median, 3)})."
        )
    if d.earlier is not None:
        lines.append(
            f"Nearest to an earlier point: trial {d.earlier.id}, {number(d.earlier.distance, 3)} "
            f"from trial {d.earlier.other}."
        )
    lines.append(
        f"Duplicates in the batch: {d.duplicates}. Points that repeat an earlier one: {d.repeats}."
    )
    return lines
