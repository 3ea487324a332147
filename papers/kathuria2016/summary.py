"""The summary of the findings: sentences and counts that a reader takes home."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from papers.kathuria2016.claims import (
    MOMENTS,
    SOLVED,
    Bout,
    Claim,
    Ruling,
    Verdict,
    judged,
)
from papers.kathuria2016.entrants import ENTRANTS, Side
from papers.kathuria2016.judge import END, LEVEL, SIDES, Table, best, curve, duel, entrant, holm
from papers.kathuria2016.report import tabulated
from papers.kathuria2016.sentences import CLAIMS, HEADLINES

SETTINGS: dict[Side, str] = {"paper": "The paper's settings", "practice": "In practice"}
_WITH: dict[Side, str] = {"paper": "with the paper's settings", "practice": "in practice"}
_PLURALS: dict[Ruling, str] = {
    "holds": "hold",
    "holds in part": "hold in part",
    "does not hold": "do not hold",
    "not decided": "are not decided",
}
_THIS: dict[Ruling, str] = {
    "holds": "holds",
    "holds in part": "holds in part",
    "does not hold": "does not hold",
    "not decided": "is not decided",
}
_ALSO: dict[Ruling, str] = {
    "holds": "in practice too",
    "holds in part": "in practice too",
    "does not hold": "nor in practice",
    "not decided": "nor in practice",
}
_FOUND: dict[Ruling, str] = {
    "holds": "As the paper says, {}",
    "holds in part": "We find in part that {}",
    "does not hold": "We do not find that {}",
    "not decided": "{runs} repetitions do not decide whether {}",
}


def summary(table: Table) -> Iterator[str]:
    """What a reader should take home."""
    yield from _tally(table)
    for claim in HEADLINES:
        if said := _said(claim, table):
            yield f"- {said}."
    for more in (_champions, _between, _solved):
        yield from more(table)
    yield from ("", *_counts(table))


def _said(claim: Claim, table: Table) -> str:
    """A claim as a sentence that says what came of it, at the moment that counts."""
    late = [v for side in SIDES if (v := judged(claim, side, claim.moments[-1], table))]
    if not late:
        return ""
    runs = max(bout.runs for bout in late[0].bouts)
    said = _FOUND[late[0].ruling].format(claim.words, runs=runs)
    for other in late[1:]:
        same = other.ruling == late[0].ruling
        how = _ALSO[other.ruling] if same else f"{_WITH[other.side]} this {_THIS[other.ruling]}"
        said += f"; {how}"
    return said


def _counts(table: Table) -> Iterator[str]:
    """How many comparisons speak for and against what a reader takes home."""
    body = []
    for claim in HEADLINES:
        for moment in claim.moments:
            found = {side: judged(claim, side, moment, table) for side in SIDES}
            whole = [v for v in found.values() if v]
            if not whole:
                continue
            lines = {MOMENTS[moment]: lambda bout: True}
            if any(bout.solved for v in whole for bout in v.bouts):
                lines[f"{MOMENTS[moment]}, but for the solved"] = lambda bout: not bout.solved
            for when, counts in lines.items():
                shown = [_balance(found[side], counts) for side in SIDES]
                body.append([claim.words, when, *shown])
    if body:
        yield "How many comparisons are significantly for such a claim, and how many against it:"
        yield from ("", *tabulated(["", "", *SIDES], body))


def _balance(verdict: Verdict | None, counts: Callable[[Bout], bool]) -> str:
    if verdict is None:
        return "-"
    pro, contra, all_ = (sum(map(counts, x)) for x in (verdict.pro, verdict.contra, verdict.bouts))
    return f"{pro} for, {contra} against, of {all_}"


def _tally(table: Table) -> Iterator[str]:
    """How many claims hold, at the moment that counts."""
    for side in SIDES:
        verdicts = [judged(claim, side, claim.moments[-1], table) for claim in CLAIMS]
        rulings = Counter(v.ruling for v in verdicts if v)
        if rulings:
            words = ", ".join(f"{rulings[ruling]} {they}" for ruling, they in _PLURALS.items())
            yield f"- **{SETTINGS[side]}: of {rulings.total()} claims {words}.**"


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
        if e.side == "practice":
            twin = entrant((e.rule, e.kind), "paper").name
            fought += [duel(entered, e.name, twin, END) for entered in table.values()]
    fought = [each for each in fought if len(each.differences)]
    significant = [
        each.lean
        for each, p in zip(fought, holm([each.p for each in fought]), strict=True)
        if p < LEVEL
    ]
    if fought:
        less = sum(lean < 0.0 for lean in significant)
        yield (
            f"- With β = 4 or ESTn instead of the paper's settings, a method has less regret at "
            f"the end in {less} of {len(fought)} comparisons with itself, more in "
            f"{len(significant) - less}."
        )


def _solved(table: Table) -> Iterator[str]:
    """Where all have all but no regret left, so that differences are of no use."""
    done = []
    for (problem, batch), entered in table.items():
        first = curve(next(iter(next(iter(entered.values())).values())), "immediate")[0]
        ends = [m for side in SIDES for _, m in best(entered, side, END)]
        if ends and max(ends) < SOLVED * first:
            done.append(f"{problem} {batch}")
    if done:
        yield (
            f"- All methods have solved {', '.join(done)} at the end: every median is below "
            f"{SOLVED:g} of the regret of a random point. Differences there are real, and no use."
        )
