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
- "steady": the lead b - a of the first does not grow much with B, that is by less than half of b
  at the larger B and ε: equals at the smaller B would not be a factor of two apart. (Our reading.)

A bout is solved, and left out of all that follows, where the medians of both methods are below ε
(of claims about batch sizes: all four medians). Differences there may be real, and are no use.

Tests are two-sided by Wilcoxon's signed ranks, and all those of a claim (on one side, at one
moment) are one family: their p values are Holm's, at the level 5 %. A bout speaks for the claim if
all that is tested is significantly negative, against it if any of it is significantly positive,
and is open otherwise. Then a claim

- is solved by all, if no bout is left;
- is not decided, if no more than half of its bouts speak for or against it;
- else holds, if none speaks against it;
- else holds in part, if more speak for it than against it;
- else does not hold.

So neither for nor against a sentence does one bout of many decide.
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
    START,
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
Sort = Literal["less", "close", "competitive", "gains", "leads", "steady"]
Moment = Literal["start", "quarter", "end", "cumulative", "looks", "batches"]
Ruling = Literal["holds", "holds in part", "does not hold", "not decided", "solved by all"]

MOMENTS: dict[Moment, str] = {
    "start": "after a tenth of the looks",
    "quarter": "after a quarter of the looks, rounded up to a batch",
    "end": "at the end",
    "cumulative": "over the whole run",
    "looks": "after as many looks",
    "batches": "after as many batches",
}
"""When a claim is judged, in words; the last two compare batch sizes."""

SOLVED = 1e-4  # of the regret of a random first point: what is less is of no use to anyone (ours)

_MEASURES: dict[Moment, Measure] = {
    "start": START,
    "quarter": QUARTER,
    "end": END,
    "cumulative": CUMULATIVE,
}
_TESTED: dict[Sort, Callable[[Array, Array, float], tuple[Array, ...]]] = {
    "less": lambda a, b, _: (a - b,),
    "close": lambda a, b, slack: (a - 2.0 * b - slack, b - 2.0 * a - slack),
    "competitive": lambda a, b, slack: (a - 2.0 * b - slack,),
}
# Of the first and the second at the smaller B, then at the larger.
_GROWN: dict[Sort, Callable[[Array, Array, Array, Array, float], tuple[Array, ...]]] = {
    "gains": lambda a, b, c, d, _: ((c - d) - (a - b),),
    "leads": lambda a, b, c, d, _: ((c - d) - (a - b), c - d),
    "steady": lambda a, b, c, d, slack: ((d - c) - (b - a) - 0.5 * d - slack,),
}
SIZED: frozenset[Sort] = frozenset(_GROWN)
"""The sorts that compare batch sizes."""


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
    solved: bool  # all have all but no regret left

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
    solved: tuple[Bout, ...] = ()

    @property
    def bouts(self) -> tuple[Bout, ...]:
        """All that count."""
        return self.pro + self.contra + self.open

    @property
    def ruling(self) -> Ruling:
        """By the rule at the top of this file."""
        pro, contra = len(self.pro), len(self.contra)
        if not self.bouts:
            return "solved by all"
        if 2 * (pro + contra) <= len(self.bouts):
            return "not decided"
        if not contra:
            return "holds"
        return "holds in part" if pro > contra else "does not hold"


def judged(
    claim: Claim, side: Side, moment: Moment, table: Mapping[Cell, Mapping[str, Seeds]]
) -> Verdict | None:
    """The verdict on a claim; None where nothing was run that it speaks of."""
    fought = [bout for bout in _bouts(claim, side, moment, table) if bout.runs]
    counted = [bout for bout in fought if not bout.solved]
    adjusted = iter(holm([duel.p for bout in counted for duel in bout.duels]))
    spoken: dict[str, list[Bout]] = {"pro": [], "contra": [], "open": []}
    spoken["solved"] = [bout for bout in fought if bout.solved]
    for bout in counted:
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
            if claim.sort not in SIZED:
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
    middle, slack = _medians(a, b), SOLVED * at_first(runs)
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
    slack = SOLVED * at_first(runs)
    duels = tuple(map(Duel, _GROWN[claim.sort](a, b, c, d, slack)))
    solved = max(*_medians(a, b), *_medians(c, d)) < slack
    return Bout(problem, *who, duels, _medians(a - b, c - d), solved)


def _medians(a: Array, b: Array) -> tuple[float, float]:
    return (float(np.median(a)), float(np.median(b))) if a.size else (0.0, 0.0)


def at_first(runs: Sequence[Seeds]) -> float:
    """The median regret of the first point, which is the same for every entrant."""
    firsts = [curve(row, "immediate")[0] for seeds in runs for row in seeds.values()]
    return float(np.median(firsts)) if firsts else 0.0
