"""Claims: what the paper says its experiments show, and whether our runs show it.

A claim sets pairs of methods against each other on some problems, at some batch sizes. Each pair
in each cell (a problem at a batch size) is one bout: a test over the repetitions both have run,
a the regrets of the first and b those of the second.

- "less": the first has less regret; tested is a - b.
- "close": neither has twice the regret of the other, give or take ε; tested are a - 2b - ε and
  b - 2a - ε. A factor of two is our reading of "close", "comparable" and "slightly"; ε is 1/10000
  of the regret of a random first point, which nobody would miss.
- "competitive": the first has not twice the regret of the second; tested is a - 2b - ε.
- "gains": the first gains on the second as B grows; tested is (a - b) at the larger B minus
  (a - b) at the smaller, after as many looks or after as many batches. The cell is the problem.
- "leads": the first is ahead at the larger B, and gains on the second as B grows; tested is
  besides what "gains" has (a - b) at the larger B.

Tests are two-sided by Wilcoxon's signed ranks, and all those of a claim (on one side, at one
moment) are one family: their p values are Holm's, at the level 5 %. A bout speaks for the claim if
all that is tested is significantly negative, against it if any of it is significantly positive,
and is open otherwise. Then a claim

- holds, if more than half of its bouts speak for it and none against;
- holds in part, if some speak against it, but more for it;
- does not hold, if some speak against it, and at least as many as for it;
- is not decided, if none speak against it, and no more than half for it.

So a sentence that is general does not hold where it is as often wrong as right, and no lack of
evidence is held against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from covey.arrays import Array
from papers.kathuria2016.entrants import Entrant, Side
from papers.kathuria2016.judge import (
    CUMULATIVE,
    END,
    LEVEL,
    QUARTER,
    Cell,
    Duel,
    Measure,
    Seeds,
    Who,
    curve,
    entrant,
    holm,
    paired,
)

Pair = tuple[Who, Who]
Sort = Literal["less", "close", "competitive", "gains", "leads"]
Moment = Literal["quarter", "end", "cumulative", "looks", "batches"]
Ruling = Literal["holds", "holds in part", "does not hold", "not decided"]

MOMENTS: dict[Moment, str] = {
    "quarter": "after a quarter of the looks",
    "end": "at the end",
    "cumulative": "over the whole run",
    "looks": "after as many looks",
    "batches": "after as many batches",
}
"""When a claim is judged, in words; the last two compare batch sizes."""

SOLVED = 1e-4  # of the regret of a random first point: what is less is of no use to anyone (ours)

_MEASURES: dict[Moment, Measure] = {"quarter": QUARTER, "end": END, "cumulative": CUMULATIVE}
_TESTED: dict[Sort, Callable[[Array, Array, float], tuple[Array, ...]]] = {
    "less": lambda a, b, _: (a - b,),
    "close": lambda a, b, slack: (a - 2.0 * b - slack, b - 2.0 * a - slack),
    "competitive": lambda a, b, slack: (a - 2.0 * b - slack,),
    "gains": lambda before, after, _: (after - before,),
    "leads": lambda before, after, _: (after - before, after),
}


@dataclass(frozen=True)
class Claim:
    """One comparative statement of the paper.

    Attributes:
        words: what it says, in our words.
        where: where the paper says so.
        pairs: first and second of each comparison.
        problems: those it speaks of.
        batches: the batch sizes it speaks of.
        sort: what is said of the first and the second.
        moments: when; the last is the one that counts.
    """

    words: str
    where: str
    pairs: tuple[Pair, ...]
    problems: tuple[str, ...]
    batches: tuple[int, ...] = (5, 10)
    sort: Sort = "less"
    moments: tuple[Moment, ...] = ("quarter", "end")


@dataclass(frozen=True)
class Bout:
    """One pair in one cell."""

    cell: str
    first: Entrant
    second: Entrant
    duels: tuple[Duel, ...]
    medians: tuple[float, float]  # of batch sizes: of a - b, at the smaller B and at the larger
    solved: bool  # both have all but no regret left

    @property
    def runs(self) -> int:
        """Repetitions."""
        return len(self.duels[0].differences)


@dataclass(frozen=True)
class Verdict:
    """What the bouts say of a claim, on one side and at one moment."""

    claim: Claim
    side: Side
    moment: Moment
    pro: tuple[Bout, ...]
    contra: tuple[Bout, ...]
    open: tuple[Bout, ...]

    @property
    def bouts(self) -> tuple[Bout, ...]:
        """All of them."""
        return self.pro + self.contra + self.open

    @property
    def ruling(self) -> Ruling:
        """By the rule at the top of this file."""
        if self.contra:
            return "holds in part" if len(self.pro) > len(self.contra) else "does not hold"
        return "holds" if 2 * len(self.pro) > len(self.bouts) else "not decided"


def judged(
    claim: Claim, side: Side, moment: Moment, table: Mapping[Cell, Mapping[str, Seeds]]
) -> Verdict | None:
    """The verdict on a claim; None where nothing was run that it speaks of."""
    fought = [bout for bout in _bouts(claim, side, moment, table) if bout.runs]
    adjusted = iter(holm([duel.p for bout in fought for duel in bout.duels]))
    spoken: dict[str, list[Bout]] = {"pro": [], "contra": [], "open": []}
    for bout in fought:
        spoken[_spoken([(each.lean, next(adjusted)) for each in bout.duels])].append(bout)
    made = {name: tuple(bouts) for name, bouts in spoken.items()}
    return Verdict(claim, side, moment, **made) if fought else None


def _spoken(tests: Sequence[tuple[float, float]]) -> str:
    """Of the lean and Holm's p of all that is tested in a bout: what it says."""
    if any(p < LEVEL and lean > 0.0 for lean, p in tests):
        return "contra"
    return "pro" if all(p < LEVEL and lean < 0.0 for lean, p in tests) else "open"


def _bouts(
    claim: Claim, side: Side, moment: Moment, table: Mapping[Cell, Mapping[str, Seeds]]
) -> Iterator[Bout]:
    for problem in claim.problems:
        batches = [b for b in sorted(claim.batches) if (problem, b) in table]
        for one, other in claim.pairs:
            who = (entrant(one, side), entrant(other, side))
            if claim.sort not in ("gains", "leads"):
                for batch in batches:
                    yield _fought(claim, who, _MEASURES[moment], (problem, batch), table)
            elif len(batches) > 1:
                yield _grown(claim, who, moment, problem, table)


def _fought(
    claim: Claim,
    who: tuple[Entrant, Entrant],
    measure: Measure,
    cell: Cell,
    table: Mapping[Cell, Mapping[str, Seeds]],
) -> Bout:
    runs = [table[cell].get(each.name, {}) for each in who]
    a, b = paired(runs, [measure] * 2)
    middle, slack = _medians(a, b), SOLVED * _at_first(runs)
    duels = tuple(map(Duel, _TESTED[claim.sort](a, b, slack)))
    solved = measure[0] == "immediate" and max(middle) < slack
    return Bout(f"{cell[0]} {cell[1]}", *who, duels, middle, solved)


def _grown(
    claim: Claim,
    who: tuple[Entrant, Entrant],
    moment: Moment,
    problem: str,
    table: Mapping[Cell, Mapping[str, Seeds]],
) -> Bout:
    sizes = [b for b in claim.batches if (problem, b) in table]
    small, large = min(sizes), max(sizes)
    # After as many batches the smaller size has had as much fewer looks.
    then: Measure = ("immediate", small / large if moment == "batches" else 1.0)
    runs = [table[problem, size].get(each.name, {}) for size in (small, large) for each in who]
    a, b, c, d = paired(runs, [then, then, END, END])
    duels = tuple(map(Duel, _TESTED[claim.sort](a - b, c - d, 0.0)))
    return Bout(problem, *who, duels, _medians(a - b, c - d), solved=False)


def _medians(a: Array, b: Array) -> tuple[float, float]:
    return (float(np.median(a)), float(np.median(b))) if a.size else (0.0, 0.0)


def _at_first(runs: Sequence[Seeds]) -> float:
    """The median regret of the first point, which is the same for every entrant."""
    firsts = [curve(row, "immediate")[0] for seeds in runs for row in seeds.values()]
    return float(np.median(firsts)) if firsts else 0.0
