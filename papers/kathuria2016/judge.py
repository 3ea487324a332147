"""The judge: medians, and paired Wilcoxon tests of what the paper's section 4 compares.

Every table comes out of rows of finished runs; a cell without any does not appear.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from covey.arrays import Array
from papers.kathuria2016.entrants import ENTRANTS, Entrant, Kind, Rule, Side
from papers.kathuria2016.results import Row

LEVEL = 0.05  # of a row of tests together (Holm 1979)

Cell = tuple[str, int]  # problem and batch size
Seeds = dict[int, Row]
Who = tuple[Rule, Kind]

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

MEASURES = {
    "immediate regret after a quarter of the looks": ("immediate", 0.25),
    "immediate regret at the end": ("immediate", 1.0),
    "cumulative regret at the end": ("cumulative", 1.0),
}
"""Words -> which regret, and after what share of the batches."""


@dataclass(frozen=True)
class Duel:
    """One paired comparison: negative differences mean that the first has less regret."""

    differences: Array

    @property
    def p(self) -> float:
        """Two-sided, by Wilcoxon's signed ranks; equal regrets have a rank but no sign (Pratt)."""
        from scipy.stats import wilcoxon

        if not self.differences.any():
            return 1.0
        return float(wilcoxon(self.differences, zero_method="pratt").pvalue)

    @property
    def lean(self) -> float:
        """Rank-biserial correlation: -1 where the first always has less regret, 1 where more."""
        from scipy.stats import rankdata

        if not self.differences.any():
            return 0.0
        ranks = rankdata(np.abs(self.differences))
        return float(np.sign(self.differences) @ ranks / ranks.sum())


def comparable(rows: Sequence[Row]) -> list[Row]:
    """Of each problem the rows of one length and one number of draws: the most frequent."""
    kinds: dict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    for row in rows:
        kinds[row["problem"]][row["evaluations"], row["samples"]] += 1
    usual = {name: counts.most_common(1)[0][0] for name, counts in kinds.items()}
    return [r for r in rows if (r["evaluations"], r["samples"]) == usual[r["problem"]]]


def cells(rows: Sequence[Row]) -> dict[Cell, dict[str, Seeds]]:
    """(problem, batch) -> entrant -> seed -> row, in the order of the rows and of the entrants."""
    found: dict[Cell, dict[str, Seeds]] = {}
    for row in sorted(comparable(rows), key=lambda row: row["batch"]):
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


def score(row: Row, measure: str) -> float:
    """One number of a run: a regret after a share of its batches."""
    regret, share = MEASURES[measure]
    values = curve(row, regret)
    return values[math.ceil(share * (len(values) - 1))]


def entrant(who: Who, side: Side) -> Entrant:
    """The entrant meant by a rule and a kind."""
    return next(e for e in ENTRANTS.values() if (e.rule, e.kind, e.side) == (*who, side))


def duel(entered: Mapping[str, Seeds], first: str, second: str, measure: str) -> Duel:
    """Two entrants on the repetitions that both have run."""
    a, b = entered.get(first, {}), entered.get(second, {})
    both = sorted(a.keys() & b.keys())
    return Duel(np.array([score(a[s], measure) - score(b[s], measure) for s in both]))


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


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """All tables, in Markdown."""
    table = cells(rows)
    for side in ("paper", "practice"):
        for measure in MEASURES:
            yield from _medians(table, side, measure)
        for measure in MEASURES:
            yield from _duels(table, side, measure)
        yield from _growth(table, side)
    yield from _costs(table)
    yield from _origin(comparable(rows))


def _table(title: str, head: Sequence[str], body: Sequence[Sequence[str]]) -> Iterator[str]:
    if body:
        yield from (f"### {title}", "", _row(head), "|" + "---|" * len(head))
        yield from map(_row, body)
        yield ""


def _row(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"


def _medians(table: Mapping[Cell, Mapping[str, Seeds]], side: Side, measure: str) -> Iterator[str]:
    names = [name for name, e in ENTRANTS.items() if e.side == side]
    body = []
    for (problem, batch), entered in table.items():
        here = {name: entered[name] for name in names if name in entered}
        paired = sorted(set.intersection(*(set(seeds) for seeds in here.values()))) if here else []
        shown = [
            _quartiles([score(here[n][s], measure) for s in paired]) if n in here else "-"
            for n in names
        ]
        if paired:
            body.append([problem, str(batch), str(len(paired)), *shown])
    title = f"{side}: {measure}, median (quartiles)"
    yield from _table(title, ["", "B", "runs", *(ENTRANTS[n].title for n in names)], body)


def _quartiles(values: Sequence[float]) -> str:
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return f"{middle:.3g} ({low:.2g}, {high:.2g})"


def _duels(table: Mapping[Cell, Mapping[str, Seeds]], side: Side, measure: str) -> Iterator[str]:
    body = []
    for one, other in COMPARISONS:
        first, second = entrant(one, side), entrant(other, side)
        duels = [duel(entered, first.name, second.name, measure) for entered in table.values()]
        if any(len(each.differences) for each in duels):
            body.append([f"{first.title} against {second.title}", *_verdicts(duels)])
    title = f'{side}: {measure}, paired tests; "<" is less regret of the first'
    yield from _table(title, ["", *(f"{problem} {batch}" for problem, batch in table)], body)


def _verdicts(duels: Sequence[Duel]) -> list[str]:
    """Of a row of tests: < or > where Holm's p is below the level, and that p."""
    tested = [i for i, each in enumerate(duels) if len(each.differences)]
    adjusted = dict(zip(tested, holm([duels[i].p for i in tested]), strict=True))
    signs = {-1.0: "<", 1.0: ">", 0.0: "?"}
    return [
        ""
        if i not in adjusted
        else f"{signs[float(np.sign(each.lean))] if adjusted[i] < LEVEL else '?'} {adjusted[i]:.1g}"
        for i, each in enumerate(duels)
    ]


def _growth(table: Mapping[Cell, Mapping[str, Seeds]], side: Side) -> Iterator[str]:
    """Whether the first gains on the second as B grows: differences of differences, by seed."""
    problems = list(dict.fromkeys(problem for problem, _ in table))
    batches = sorted({batch for _, batch in table})
    measure = "immediate regret at the end"
    body = []
    for one, other in COMPARISONS[:2] + COMPARISONS[6:8]:
        first, second = entrant(one, side), entrant(other, side)
        duels = []
        for problem in problems:
            small, large = ((problem, batches[0]), (problem, batches[-1]))
            at = [table.get(cell, {}) for cell in (small, large)]
            duels.append(_grown(at[0], at[1], (first.name, second.name), measure))
        if any(len(each.differences) for each in duels):
            body.append([f"{first.title} against {second.title}", *_verdicts(duels)])
    title = f'{side}: from B = {batches[0]} to {batches[-1]}, {measure}; "<": the first gains'
    yield from _table(title, ["", *problems], body if len(batches) > 1 else [])


def _grown(
    small: Mapping[str, Seeds], large: Mapping[str, Seeds], names: tuple[str, str], measure: str
) -> Duel:
    runs = [at.get(name, {}) for at in (large, small) for name in names]
    common = sorted(set.intersection(*(set(seeds) for seeds in runs)))
    gains = []
    for seed in common:
        a, b, c, d = (score(seeds[seed], measure) for seeds in runs)
        gains.append((a - b) - (c - d))
    return Duel(np.array(gains))


def _costs(table: Mapping[Cell, Mapping[str, Seeds]]) -> Iterator[str]:
    names = [n for n in ENTRANTS if any(n in entered for entered in table.values())]
    body, total = [], 0.0
    for (problem, batch), entered in table.items():
        means = {
            n: float(np.mean([r["cpu"] for r in seeds.values()])) for n, seeds in entered.items()
        }
        total += 50.0 * sum(means.values()) / 3600.0
        shown = [f"{means[n]:.2g}" if n in means else "-" for n in names]
        body.append([problem, str(batch), *shown, f"{50.0 * sum(means.values()) / 3600.0:.2f}"])
    title = f"Seconds of one core a run; all fifty repetitions: {total:.1f} core-hours"
    yield from _table(title, ["", "B", *(ENTRANTS[n].title for n in names), "50 runs, h"], body)


def _origin(rows: Sequence[Row]) -> Iterator[str]:
    """What made the rows."""
    for problem in dict.fromkeys(row["problem"] for row in rows):
        own = [row for row in rows if row["problem"] == problem]
        seeds = sorted({row["seed"] for row in own})
        made = "; ".join(sorted({row["version"] for row in own}))
        yield (
            f"- {problem}: {len(own)} runs, immediate regret of `{own[0]['recommendation']}`; "
            f"{made}; `python -m papers.kathuria2016 {problem} --seeds {seeds[-1] + 1} "
            f"--evaluations {own[0]['evaluations']} --samples {own[0]['samples']}`"
        )
