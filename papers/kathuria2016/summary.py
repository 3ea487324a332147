"""The summary of the findings: sentences and counts that a reader takes home."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from papers.kathuria2016.claims import (
    MOMENTS,
    SOLVED,
    Claim,
    Ruling,
    Verdict,
    at_first,
    judged,
)
from papers.kathuria2016.entrants import ENTRANTS, Kind, Side
from papers.kathuria2016.judge import (
    COMPARISONS,
    END,
    LEVEL,
    SIDES,
    Cell,
    Duel,
    Table,
    best,
    duel,
    entrant,
    field,
    holm,
)
from papers.kathuria2016.report import tabulated
from papers.kathuria2016.sentences import CLAIMS, HEADLINES

SETTINGS: dict[Side, str] = {"paper": "The paper's settings", "practice": "In practice"}
_WITH: dict[Side, str] = {"paper": "with the paper's settings", "practice": "in practice"}
_CAMPS: tuple[tuple[Kind, ...], ...] = (("batched", "lp"), ("max", "sample"))
RULES = COMPARISONS[-3:]
"""EST against UCB."""
_PLURALS: dict[Ruling, str] = {
    "holds": "hold",
    "holds in part": "hold in part",
    "does not hold": "do not hold",
    "not decided": "are not decided",
    "solved by all": "are solved by all",
}
_THIS: dict[Ruling, str] = {
    "holds": "holds",
    "holds in part": "holds in part",
    "does not hold": "does not hold",
    "not decided": "is not decided",
    "solved by all": "cannot be told, for all have solved it",
}
_FOUND: dict[Ruling, str] = {
    "holds": "As the paper says, {}",
    "holds in part": "We find in part that {}",
    "does not hold": "We do not find that {}",
    "not decided": "{runs} repetitions do not decide whether {}",
    "solved by all": "All have solved what would tell whether {}",
}


def summary(table: Table, asides: Iterable[str] = ()) -> Iterator[str]:
    """What a reader should take home; asides are what other tables have to say."""
    yield from _leaders(table)
    for claim in HEADLINES:
        if said := _said(claim, table):
            yield f"- {said}."
    for more in (_champions, _rules, _between, _solved, _tally):
        yield from more(table)
    yield from asides
    yield from ("", *_counts(table))


def _said(claim: Claim, table: Table) -> str:
    """A claim as a sentence that says what came of it, at the moment that counts."""
    late = [v for side in SIDES if (v := judged(claim, side, claim.moments[-1], table))]
    if not late:
        return ""
    runs = max(bout.runs for bout in late[0].bouts + late[0].solved)
    said = _FOUND[late[0].ruling].format(claim.words, runs=runs)
    if len(late) > 1 and late[0].ruling == late[1].ruling:
        return f"Both settings: {said[0].lower()}{said[1:]}"
    return "; ".join([said, *(f"{_WITH[v.side]} this {_THIS[v.ruling]}" for v in late[1:])])


def _counts(table: Table) -> Iterator[str]:
    """How many comparisons speak for and against what a reader takes home."""
    body = []
    for claim in HEADLINES:
        for moment in claim.moments:
            found = {side: judged(claim, side, moment, table) for side in SIDES}
            if any(found.values()):
                shown = [_balance(found[side]) for side in SIDES]
                body.append([claim.words, MOMENTS[moment], *shown])
    if body:
        yield "How many comparisons are significantly for such a claim, and how many against it:"
        yield from ("", *tabulated(["", "", *SIDES], body))


def _balance(verdict: Verdict | None) -> str:
    if verdict is None:
        return "-"
    solved = f"; {len(verdict.solved)} solved" if verdict.solved else ""
    pro, contra, all_ = map(len, (verdict.pro, verdict.contra, verdict.bouts))
    return f"{pro} for, {contra} against, of {all_}{solved}"


def _tally(table: Table) -> Iterator[str]:
    """How many claims hold, at the moment that counts."""
    for side in SIDES:
        verdicts = [judged(claim, side, claim.moments[-1], table) for claim in CLAIMS]
        rulings = Counter(v.ruling for v in verdicts if v)
        if rulings:
            told = [
                f"{n} {they if n > 1 else _THIS[r]}"
                for r, they in _PLURALS.items()
                if (n := rulings[r])
            ]
            words = ", ".join(told)
            yield f"- {SETTINGS[side]}: of {rulings.total()} claims, which overlap, {words}."


def _champions(table: Table) -> Iterator[str]:
    """Who has the least median most often."""
    told = []
    for side in SIDES:
        orders = [order for entered in table.values() if (order := best(entered, side, END))]
        firsts = Counter(name for order in orders for name, m in order if m == order[0][1])
        ranked = [f"{ENTRANTS[n].title} in {count}" for n, count in firsts.most_common(3)]
        if ranked:
            told.append(f"{_WITH[side]} {', '.join(ranked)} of {len(orders)} cells")
    if told:
        yield f"- The least median regret at the end (equals count each) has {'; '.join(told)}."


def _between(table: Table) -> Iterator[str]:
    """The same methods, with the settings of practice and with the paper's."""
    fought = []
    for e in ENTRANTS.values():
        twin = e.name.replace("estn", "est").removesuffix("-4")
        if e.side == "practice":
            fought += [duel(entered, e.name, twin, END) for entered in table.values()]
    fought = [each for each in fought if len(each.differences)]
    if fought:
        less, more = _won(fought)
        yield (
            f"- With β = 4 or ESTn instead of the paper's settings, a method has less regret at "
            f"the end in {less} of {len(fought)} comparisons with itself, more in {more}."
        )


def _won(fought: Sequence[Duel]) -> tuple[int, int]:
    """Of a family of tests: how many are significantly negative, and how many positive."""
    tested = zip(fought, holm([each.p for each in fought]), strict=True)
    leans = [each.lean for each, p in tested if p < LEVEL]
    return sum(lean < 0.0 for lean in leans), sum(lean > 0.0 for lean in leans)


def _rules(table: Table) -> Iterator[str]:
    """EST against UCB, the rest being the same: of this the paper says nothing general."""
    told = []
    for side in SIDES:
        pairs = [(entrant(one, side).name, entrant(other, side).name) for one, other in RULES]
        fought = [
            made
            for cell, entered in table.items()
            if cell not in solved(table, side)
            for pair in pairs
            if len((made := duel(entered, *pair, END)).differences)
        ]
        if fought:
            less, more = _won(fought)
            told.append(f"{_WITH[side]} less in {less}, more in {more} of {len(fought)}")
    if told:
        yield (
            f"- EST against UCB in the same method, regret at the end, where not solved: "
            f"{'; '.join(told)} comparisons."
        )


def _leaders(table: Table) -> Iterator[str]:
    """The main thing: who is best where it matters, and how far sampling is from that."""
    for side in SIDES:
        orders = {
            cell: order
            for cell, entered in table.items()
            if cell not in solved(table, side) and (order := best(entered, side, END))
        }
        ratios = [
            ratio
            for cell, order in orders.items()
            for ratio in _ratios(order, SOLVED * at_first(list(table[cell].values())))
        ]
        if ratios:
            others, ours = (sum(_ahead(o, kinds) for o in orders.values()) for kinds in _CAMPS)
            yield (
                f"- **{SETTINGS[side]}: where problems are not solved, BUCB, B-EST or LP-UCB has "
                f"the least median regret in {others} of {len(orders)} cells, a DPP method in "
                f"{ours}; sampling has {np.median(ratios):.2g} times the regret of the best "
                "(median).**"
            )


def _ahead(order: Sequence[tuple[str, float]], kinds: Sequence[Kind]) -> bool:
    """Whether the least median is one of these kinds', and of no other's."""
    return all(ENTRANTS[name].kind in kinds for name, m in order if m == order[0][1])


def _ratios(order: Sequence[tuple[str, float]], slack: float) -> list[float]:
    """Medians of sampling by the best one, both give or take what is of no use."""
    least = order[0][1] + slack
    return [(m + slack) / least for name, m in order if ENTRANTS[name].kind == "sample"]


def solved(table: Table, side: Side) -> set[Cell]:
    """The cells in which all of a side have all but no regret left at the end."""
    found = set()
    for cell, entered in table.items():
        ends = [m for _, m in best(entered, side, END)]
        if ends and max(ends) < SOLVED * at_first(list(entered.values())):
            found.add(cell)
    return found


def _solved(table: Table) -> Iterator[str]:
    """Where all have all but no regret left, so that differences are of no use."""
    sides = [side for side in SIDES if any(field(entered, side) for entered in table.values())]
    each = [solved(table, side) for side in sides]
    done = [
        f"{problem} {batch}" for problem, batch in table if all((problem, batch) in s for s in each)
    ]
    if done:
        yield (
            f"- All methods have solved {', '.join(done)} at the end: every median is below "
            f"{SOLVED:g} of the regret of a random point. Differences there are real, and no use."
        )
