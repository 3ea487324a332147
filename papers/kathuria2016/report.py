"""The report: tables in Markdown, out of rows of finished runs; what has none does not appear."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from papers.kathuria2016.claims import MOMENTS, Bout, Claim, judged
from papers.kathuria2016.entrants import ENTRANTS, Side
from papers.kathuria2016.ground import Kind
from papers.kathuria2016.judge import (
    COMPARISONS,
    END,
    LEVEL,
    MEASURES,
    SIDES,
    Duel,
    Measure,
    Seeds,
    Table,
    best,
    cells,
    comparable,
    duel,
    entrant,
    field,
    holm,
    paired,
    score,
)
from papers.kathuria2016.results import Row, run_of


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """All tables of regrets and tests."""
    table = cells(rows)
    for side in SIDES:
        for measure, words in MEASURES.items():
            yield from heading(
                f"{side}: {words}, median (quartiles)", medians(table, side, measure)
            )
        for measure, words in MEASURES.items():
            yield from heading(f"{side}: {words}, {_SIGNS}", duels(table, side, measure))
    yield from heading("Seconds of one core a run", seconds(table))
    yield from origin(comparable(rows))


_SIGNS = 'paired tests; "<" is less regret of the first, "?" not decided'


def heading(title: str, body: Iterable[str], depth: int = 3) -> Iterator[str]:
    """A title over some lines, if there are any."""
    made = list(body)
    if made:
        yield from (f"{'#' * depth} {title}", "", *made, "")


def tabulated(head: Sequence[str], body: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table, if it has a line."""
    if body:
        yield from (_row(head), "|" + "---|" * len(head), *map(_row, body))


def _row(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"


def medians(table: Table, side: Side, measure: Measure, *, short: bool = False) -> Iterator[str]:
    """Medians over the repetitions that all entrants have run; in short, without quartiles.

    On the paper's side LP-UCB with the theory's width stands beside those that are judged.
    """
    names = [n for n in ENTRANTS if any(n in shown_on(entered, side) for entered in table.values())]
    body = []
    for (problem, batch), entered in table.items():
        here = shown_on(entered, side)
        if not here:
            continue
        scores = paired([entered[name] for name in here], [measure] * len(here))
        if scores.size:
            judged_too = np.isin(here, field(entered, side))
            shown = dict(zip(here, _shown(scores, judged_too, short=short), strict=True))
            runs = str(scores.shape[1])
            body.append([problem, str(batch), runs, *(shown.get(name, "-") for name in names)])
    yield from tabulated(["", "B", "runs", *(ENTRANTS[n].title for n in names)], body)


def shown_on(entered: Mapping[str, Seeds], side: Side) -> list[str]:
    """The field of a side, and the others of its own."""
    judged_too = field(entered, side)
    return [name for name in entered if name in judged_too or ENTRANTS[name].side == side]


def _shown(scores: np.ndarray, judged_too: np.ndarray, *, short: bool) -> list[str]:
    low, middle, high = np.quantile(scores, [0.25, 0.5, 0.75], axis=1)
    if not short:
        each = zip(low, middle, high, strict=True)
        return [f"{m:.3g} ({a:.2g}, {b:.2g})" for a, m, b in each]
    least = middle[judged_too].min()
    each = zip(middle, judged_too, strict=True)
    return [f"**{m:.2g}**" if m == least and may else f"{m:.2g}" for m, may in each]


def duels(table: Table, side: Side, measure: Measure) -> Iterator[str]:
    """The comparisons of the paper in every cell; the tests of a line are one family."""
    body = []
    for one, other in COMPARISONS:
        first, second = entrant(one, side), entrant(other, side)
        fought = [duel(entered, first.name, second.name, measure) for entered in table.values()]
        if any(len(each.differences) for each in fought):
            body.append([f"{first.title} against {second.title}", *_signs(fought)])
    yield from tabulated(["", *(f"{problem} {batch}" for problem, batch in table)], body)


def _signs(fought: Sequence[Duel]) -> list[str]:
    """Of a family of tests: < or > where Holm's p is below the level, and that p."""
    tested = [i for i, each in enumerate(fought) if len(each.differences)]
    adjusted = dict(zip(tested, holm([fought[i].p for i in tested]), strict=True))
    signs = {-1.0: "<", 1.0: ">", 0.0: "?"}
    return [
        ""
        if i not in adjusted
        else f"{signs[float(np.sign(each.lean))] if adjusted[i] < LEVEL else '?'} {adjusted[i]:.1g}"
        for i, each in enumerate(fought)
    ]


def standings(table: Table, side: Side) -> Iterator[str]:
    """How often an entrant has the least median of its side, and its mean place, by measure."""
    names = [n for n in ENTRANTS if any(n in field(entered, side) for entered in table.values())]
    columns: dict[str, list[str]] = {name: [] for name in names}
    for measure in MEASURES:
        orders = [dict(best(entered, side, measure)) for entered in table.values()]
        for name in names:
            found = [order for order in orders if name in order]
            places = [sum(m < order[name] for m in order.values()) + 1 for order in found]
            columns[name].append(
                f"{places.count(1)} of {len(places)}; {np.mean(places):.1f}" if places else "-"
            )
    body = [[ENTRANTS[name].title, *columns[name]] for name in names]
    yield from tabulated(["", *MEASURES.values()], body)


def reached(table: Table) -> Iterator[str]:
    """How many runs have found what the grid search found, where there is one."""
    names = [n for n in ENTRANTS if any(n in entered for entered in table.values())]
    body = []
    for (problem, batch), entered in table.items():
        grid = next(iter(next(iter(entered.values())).values()))["grid"]
        if grid is not None:
            ends = {
                n: [score(r, END) <= grid for r in runs.values()] for n, runs in entered.items()
            }
            shown = [f"{sum(ends[n])}/{len(ends[n])}" if n in ends else "-" for n in names]
            body.append([problem, str(batch), *shown])
    yield from tabulated(["", "B", *(ENTRANTS[n].title for n in names)], body)


def evidence(claims: Sequence[Claim], table: Table) -> Iterator[str]:
    """Every claim with its verdicts and the bouts behind them."""
    for number, claim in enumerate(claims, 1):
        body = []
        for side in SIDES:
            for moment in claim.moments:
                if verdict := judged(claim, side, moment, table):
                    spoken = (verdict.pro, verdict.contra, verdict.open, verdict.solved)
                    shown = [f"{len(bouts)}: {_named(bouts)}" if bouts else "0" for bouts in spoken]
                    body.append([f"{side}, {MOMENTS[moment]}", verdict.ruling, *shown])
        title = f"{number}. {claim.words} ({claim.where})"
        yield from heading(title, tabulated(["", "", "for", "against", "open", "solved"], body))


def _named(bouts: Sequence[Bout]) -> str:
    """Bouts by pair: where they were fought, and the medians there."""
    pairs: dict[str, list[str]] = {}
    for bout in bouts:
        where = f"{bout.cell} ({bout.medians[0]:.2g}, {bout.medians[1]:.2g})"
        pairs.setdefault(f"{bout.first.title} / {bout.second.title}", []).append(where)
    return "; ".join(f"{pair} on {', '.join(cells)}" for pair, cells in pairs.items())


def seconds(table: Table) -> Iterator[str]:
    """The mean cost of a run, entrant by entrant."""
    names = [n for n in ENTRANTS if any(n in entered for entered in table.values())]
    body = []
    for (problem, batch), entered in table.items():
        means = {n: np.mean([r["cpu"] for r in seeds.values()]) for n, seeds in entered.items()}
        shown = [f"{means[n]:.2g}" if n in means else "-" for n in names]
        body.append([problem, str(batch), *shown])
    yield from tabulated(["", "B", *(ENTRANTS[n].title for n in names)], body)


def origin(rows: Sequence[Row]) -> Iterator[str]:
    """What made the rows, and what they took."""
    groups: dict[tuple[str, Kind], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["problem"], run_of(row).ground), []).append(row)
    for (problem, ground), own in groups.items():
        seeds = sorted({row["seed"] for row in own})
        usual = ground == "ends"
        place, option = ("", "") if usual else (f" on `{ground}`", f" --grounds {ground}")
        made = "; ".join(sorted({row["version"] for row in own}))
        yield (
            f"- {problem}{place}: {len(own)} runs, seeds {seeds[0]} to {seeds[-1]}, "
            f"{core_hours(own):.1f} core-hours; immediate regret of `{own[0]['recommendation']}`; "
            f"{made}; `python -m papers.kathuria2016 {problem} --seeds {seeds[-1] + 1} "
            f"--evaluations {own[0]['evaluations']} --samples {own[0]['samples']}{option}`"
        )


def by_problem(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each problem."""
    found: Mapping[str, list[Row]] = {row["problem"]: [] for row in rows}
    for row in rows:
        found[row["problem"]].append(row)
    return dict(found)


def core_hours(rows: Sequence[Row]) -> float:
    """What runs took, on one core."""
    return sum(row["cpu"] for row in rows) / 3600.0
