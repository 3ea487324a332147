"""The judge: paired Wilcoxon tests of one entrant's regrets against another's."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from covey.arrays import Array
from papers.kathuria2016.entrants import ENTRANTS, Entrant, Kind, Rule, Side
from papers.kathuria2016.ground import Kind as GroundKind
from papers.kathuria2016.results import Row, run_of

LEVEL = 0.05  # of a family of tests together (Holm 1979)
SIDES: tuple[Side, ...] = ("paper", "practice")

Cell = tuple[str, int]  # problem and batch size
Seeds = dict[int, Row]
Table = dict[Cell, dict[str, Seeds]]
Who = tuple[Rule, Kind]
Measure = tuple[str, float]
"""Which regret, and after what share of the looks."""

START: Measure = ("immediate", 0.1)
QUARTER: Measure = ("immediate", 0.25)
END: Measure = ("immediate", 1.0)
CUMULATIVE: Measure = ("cumulative", 1.0)

MEASURES: dict[Measure, str] = {
    QUARTER: "immediate regret after a quarter of the looks",
    END: "immediate regret at the end",
    CUMULATIVE: "cumulative regret at the end",
}
"""The measures that have tables, in words."""

COMPARISONS: tuple[tuple[Who, Who], ...] = (
    (("ucb", "sample"), ("ucb", "max")),
    (("est", "sample"), ("est", "max")),
    (("ucb", "max"), ("ucb", "batched")),
    (("est", "max"), ("est", "batched")),
    (("ucb", "sample"), ("ucb", "batched")),
    (("est", "sample"), ("est", "batched")),
    (("ucb", "sample"), ("ucb", "lp")),
    (("est", "sample"), ("ucb", "lp")),
    (("ucb", "max"), ("ucb", "lp")),
    (("est", "max"), ("ucb", "lp")),
    (("est", "batched"), ("ucb", "batched")),
    (("est", "max"), ("ucb", "max")),
    (("est", "sample"), ("ucb", "sample")),
)
"""Pairs that section 4 of the paper sets against each other; there the first is the better one,
but for some panels of those with LP-UCB, and the last three, of which it says nothing general."""


@dataclass(frozen=True)
class Duel:
    """One paired comparison: negative differences mean that the first has less regret."""

    differences: Array

    @property
    def p(self) -> float:
        """Two-sided, by Wilcoxon's signed ranks; equal regrets have a rank but no sign (Pratt)."""
        return _wilcoxon(np.asarray(self.differences, dtype=float).tobytes())

    @property
    def lean(self) -> float:
        """Rank-biserial correlation: -1 where the first always has less regret, 1 where more."""
        from scipy.stats import rankdata

        if not self.differences.any():
            return 0.0
        ranks = rankdata(np.abs(self.differences))
        return float(np.sign(self.differences) @ ranks / ranks.sum())


@cache  # sentences of the paper repeat each other
def _wilcoxon(differences: bytes) -> float:
    from scipy.stats import wilcoxon

    values = np.frombuffer(differences)
    return float(wilcoxon(values, zero_method="pratt").pvalue) if values.any() else 1.0


def comparable(rows: Sequence[Row], ground: GroundKind = "ends") -> list[Row]:
    """On one ground the rows of one length and number of draws: of a problem the most frequent."""
    rows = [row for row in rows if run_of(row).ground == ground]
    kinds: dict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    for row in rows:
        kinds[row["problem"]][row["evaluations"], row["samples"]] += 1
    usual = {name: counts.most_common(1)[0][0] for name, counts in kinds.items()}
    return [r for r in rows if (r["evaluations"], r["samples"]) == usual[r["problem"]]]


def cells(rows: Sequence[Row], ground: GroundKind = "ends") -> Table:
    """(problem, batch) -> entrant -> seed -> row, in the order of the rows and of the entrants."""
    found: Table = {}
    for row in sorted(comparable(rows, ground), key=lambda row: row["batch"]):
        cell = found.setdefault((row["problem"], row["batch"]), {})
        cell.setdefault(row["entrant"], {})[row["seed"]] = row
    order = list(dict.fromkeys(row["problem"] for row in rows))
    return {
        cell: {name: found[cell][name] for name in ENTRANTS if name in found[cell]}
        for cell in sorted(found, key=lambda cell: (order.index(cell[0]), cell[1]))
    }


def curve(row: Row, regret: str) -> list[float]:
    """The regret of a run batch by batch: "immediate" is that of its recommendation."""
    made: list[float] = row[row["recommendation"] if regret == "immediate" else regret]
    return made


def score(row: Row, measure: Measure) -> float:
    """One number of a run: a regret after a share of its batches, the first point not counted."""
    regret, share = measure
    values = curve(row, regret)
    return values[math.ceil(share * (len(values) - 1))]


def entrant(who: Who, side: Side) -> Entrant:
    """The entrant meant by a rule and a kind.

    LP-UCB is on either side the one of β = 4: the paper ran GPyOpt's, which has that width.
    """
    at: Side = "practice" if who[1] == "lp" else side
    return next(e for e in ENTRANTS.values() if (e.rule, e.kind, e.side) == (*who, at))


def field(entered: Mapping[str, Seeds], side: Side) -> list[str]:
    """The entrants in a cell that are judged on a side; none where none of its own was run."""
    if all(ENTRANTS[name].side != side for name in entered):
        return []
    return [name for name in entered if (e := ENTRANTS[name]) == entrant((e.rule, e.kind), side)]


def paired(runs: Sequence[Mapping[int, Row]], measures: Sequence[Measure]) -> Array:
    """Scores (len(runs), m) on the m repetitions that all of them have, each by its measure."""
    common = sorted(set.intersection(*(set(seeds) for seeds in runs)))
    each = zip(runs, measures, strict=True)
    return np.array([[score(seeds[s], by) for s in common] for seeds, by in each], dtype=float)


def duel(entered: Mapping[str, Seeds], first: str, second: str, measure: Measure) -> Duel:
    """Two entrants on the repetitions that both have run."""
    a, b = paired([entered.get(first, {}), entered.get(second, {})], [measure] * 2)
    return Duel(a - b)


def best(entered: Mapping[str, Seeds], side: Side, measure: Measure) -> list[tuple[str, float]]:
    """The field of a side with medians over the repetitions all have run, the best first."""
    names = field(entered, side)
    if not names:
        return []
    scores = paired([entered[name] for name in names], [measure] * len(names))
    if not scores.size:
        return []
    return sorted(zip(names, np.median(scores, axis=1).tolist(), strict=True), key=lambda x: x[1])


def holm(p: Sequence[float]) -> list[float]:
    """p values adjusted for being many: the smallest times m, the next times m - 1, and so on.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, last = [0.0] * len(p), 0.0
    for rank, i in enumerate(np.argsort(p, kind="stable")):
        last = max(last, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = last
    return adjusted
