"""Findings: what the rows say, written into the README between two marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from papers.kathuria2016 import draws, grounds, spread
from papers.kathuria2016.claims import MOMENTS, Claim, judged
from papers.kathuria2016.entrants import Side
from papers.kathuria2016.judge import END, SIDES, Table, cells, comparable
from papers.kathuria2016.problems import PROBLEMS
from papers.kathuria2016.report import (
    by_problem,
    core_hours,
    duels,
    evidence,
    heading,
    medians,
    origin,
    reached,
    standings,
    tabulated,
)
from papers.kathuria2016.results import Row
from papers.kathuria2016.sentences import CLAIMS, UNJUDGED
from papers.kathuria2016.summary import SETTINGS, summary

BUDGET = 25.0
"""Core-hours that the whole may take."""
README = Path(__file__).with_name("README.md")
BEGIN, END_MARK = "<!-- findings -->", "<!-- /findings -->"


def write(rows: Sequence[Row], others: Sequence[Row], readme: Path = README) -> None:
    """Put the findings between the marks of a README; ``others`` have more draws."""
    before, begun, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    _, ended, after = rest.partition(END_MARK)
    if not (begun and ended):
        raise ValueError(f"{readme} has no place for the findings: {BEGIN} and {END_MARK}")
    made = "\n".join(lines(rows, others))
    readme.write_text(f"{before}{BEGIN}\n{made}\n{END_MARK}{after}", encoding="utf-8")


def lines(rows: Sequence[Row], others: Sequence[Row]) -> Iterator[str]:
    """The findings: in short, the verdicts, the numbers, and where they come from."""
    table = cells(rows)
    yield from ("", *_ran(comparable(rows)), "")
    yield from heading("In short", summary(table, grounds.summary(rows)))
    yield from heading("The paper's claims, one by one", _verdicts(table))
    for side in SIDES:
        yield from heading(f"{SETTINGS[side]}: median regrets at the end", _numbers(table, side))
    yield from heading("On other grounds", grounds.lines(rows))
    yield from heading("Runs that found the best of the grid search", reached(table))
    yield from heading("More draws of the hyper-parameters", draws.lines(rows, others))
    yield from heading("FastXML over its grid", spread.lines())
    yield from heading("What it took", _cost(rows, others))


def proof(rows: Sequence[Row]) -> Iterator[str]:
    """The bouts behind every verdict, for a file of their own."""
    yield "# The evidence, claim by claim"
    yield ""
    yield (
        "What speaks for a claim, against it, and what is left open, by the rule at the top of "
        "`claims.py`: pairs of methods, the problems and batch sizes, and there the medians of the "
        "first and of the second (for claims about batch sizes: of their difference, at the "
        "smaller and at the larger). What both have solved does not count."
    )
    yield ""
    yield from evidence(CLAIMS, cells(rows))


def _ran(rows: Sequence[Row]) -> Iterator[str]:
    """How much was run, and what is still missing of fifty repetitions."""
    groups = by_problem(rows)
    counts = {name: len({row["seed"] for row in own}) for name, own in groups.items()}
    most = max(counts.values())
    few = [f"{name} ({count} so far)" for name, count in counts.items() if count < most]
    absent = [name for name in PROBLEMS if name not in groups]
    yield (
        f"{len(rows)} runs: {', '.join(groups)}; {most} repetitions"
        f"{', but of ' + ', '.join(few) if few else ''}. "
        f"{'Not run yet: ' + ', '.join(absent) + '. ' if absent else ''}"
        "All of this section is written from the rows in `results/` by "
        "`python -m papers.kathuria2016 all --figures-only`."
    )


def _verdicts(table: Table) -> Iterator[str]:
    """Each claim in a line."""
    body = []
    for number, claim in enumerate(CLAIMS, 1):
        shown = [_rulings(claim, side, table) for side in SIDES]
        if any(shown):
            body.append([str(number), claim.words, claim.where, *shown])
    if not body:
        return
    yield (
        "Paired Wilcoxon tests with Holm's correction within a claim decide whether a comparison "
        "is for it (+), against it (−) or open (?); one that both methods have solved does not "
        "count. If no more than half of the comparisons are + or −, the claim is *not decided*; "
        "else it *holds* if none is −, *holds in part* if there are more + than −, and otherwise "
        "*does not hold*. If all are solved, it is *solved by all*. Numbers are in brackets, names "
        "in [results/claims.md](results/claims.md). When: "
        f"{'; '.join(f'*{name}*, {words}' for name, words in MOMENTS.items())} (the last two "
        "compare batch sizes; the paper plots regret by batches, and does not say how many). "
        "Where two moments are given, the last counts above. The paper's figures are not in its "
        "source, so that words can be compared, and numbers cannot."
    )
    yield ""
    yield from tabulated(["", "claim", "where", *SIDES], body)
    yield ""
    left = [f"{words} ({where}: {why})" for words, where, why in UNJUDGED]
    yield f"Not judged: {'; '.join(left)}."


def _rulings(claim: Claim, side: Side, table: Table) -> str:
    verdicts = [v for moment in claim.moments if (v := judged(claim, side, moment, table))]
    return "<br>".join(
        f"{v.moment}: **{v.ruling}** ({len(v.pro)}+ {len(v.contra)}− {len(v.open)}?"
        f"{f', {len(v.solved)} solved' if v.solved else ''})"
        for v in verdicts
    )


def _numbers(table: Table, side: Side) -> Iterator[str]:
    numbers = list(medians(table, side, END, short=True))
    if not numbers:
        return
    picture = f"results/immediate-{side}.png"
    yield from (f"[![Immediate regret by batches]({picture})]({picture})", "", *numbers, "")
    yield "Cells in which a method has the least median, and its mean place among the seven judged:"
    yield from ("", *standings(table, side), "")
    yield "<details><summary>Paired tests at the end</summary>"
    yield ""
    yield 'Holm\'s p along a line; "<": the first has less regret, ">": more, "?": not decided.'
    yield from ("", *duels(table, side, END), "", "</details>")


def _cost(rows: Sequence[Row], others: Sequence[Row]) -> Iterator[str]:
    usual, more, elsewhere = comparable(rows), comparable(others), grounds.elsewhere(rows)
    each = (*map(core_hours, (usual, more, elsewhere)), spread.core_hours())
    moved = f"{each[2]:.1f} for {len(elsewhere)} on other grounds, " if elsewhere else ""
    yield (
        f"{each[0]:.1f} core-hours for {len(usual)} runs, {each[1]:.1f} for {len(more)} runs with "
        f"more draws, {moved}{each[3]:.1f} for the tables of FastXML: {sum(each):.1f} in all, of "
        f"{BUDGET:g} that were set aside."
    )
    yield from chain([""], origin([*usual, *elsewhere]))
