"""Grounds: whether the verdicts depend on what may be looked at besides X."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from papers.kathuria2016.claims import Claim, Verdict, judged
from papers.kathuria2016.entrants import ENTRANTS, Side
from papers.kathuria2016.ground import GROUNDS, Kind
from papers.kathuria2016.judge import (
    END,
    MEASURES,
    SIDES,
    Seeds,
    Table,
    cells,
    comparable,
    field,
    paired,
    score,
)
from papers.kathuria2016.report import duels, heading, medians, shown_on, tabulated
from papers.kathuria2016.results import Row
from papers.kathuria2016.sentences import CLAIMS
from papers.kathuria2016.sentences.terms import DPP, LATE, LP, each, same
from papers.kathuria2016.summary import SETTINGS

OTHERS: tuple[Kind, ...] = tuple(kind for kind in GROUNDS if kind != "ends")
_REGRETS = ("seen", "told", "anywhere")
_WHERE: dict[Kind, str] = {
    "finite": "On X alone, as the paper has it,",
    "clouds": "With clouds for everybody",
}
_RIVALS = same("max", "batched") + same("sample", "batched") + each(DPP, LP)


def elsewhere(rows: Sequence[Row]) -> list[Row]:
    """The rows that count on other grounds than the usual one."""
    return [row for kind in OTHERS for row in comparable(rows, kind)]


def compared(rows: Sequence[Row], problem: str) -> dict[Kind, Table]:
    """The cells of a problem on each ground, on the repetitions that all grounds have."""
    own = [row for row in rows if row["problem"] == problem]
    found = {kind: made for kind in GROUNDS if (made := comparable(own, kind))}
    seeds = set.intersection(*({row["seed"] for row in made} for made in found.values()))
    return {
        kind: cells([row for row in made if row["seed"] in seeds], kind)
        for kind, made in found.items()
    }


def within(table: Table) -> Table:
    """The same runs with regrets against the best of X, where there is nothing else to look at."""
    return {
        cell: {name: {s: _within(row) for s, row in seeds.items()} for name, seeds in own.items()}
        for cell, own in table.items()
    }


def _within(row: Row) -> Row:
    if "least" not in row:
        return row
    looks = 1 + row["batch"] * np.arange(len(row["cumulative"]))
    regrets = {name: [x - row["least"] for x in row[name]] for name in _REGRETS}
    return {**row, **regrets, "cumulative": (row["cumulative"] - row["least"] * looks).tolist()}


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """What the ground does to the DPP methods against all others, in a sentence for each side."""
    for problem, title in _problems(rows).items():
        tables = {kind: within(table) for kind, table in compared(rows, problem).items()}
        rivals = Claim("", "", _RIVALS, (problem,), moments=LATE)
        for side in SIDES:
            found = {kind: judged(rivals, side, "end", table) for kind, table in tables.items()}
            verdicts = {kind: verdict for kind, verdict in found.items() if verdict}
            if verdicts.keys() > {"ends"}:
                yield _sentence(title, side, verdicts)


def _sentence(title: str, side: Side, verdicts: Mapping[Kind, Verdict]) -> str:
    told = [
        f"on `{kind}` less regret in {len(v.pro)} and more in {len(v.contra)} of {len(v.bouts)} "
        f"comparisons{f' ({len(v.solved)} are solved)' if v.solved else ''}"
        for kind, v in verdicts.items()
    ]
    decided = {kind: len(v.pro + v.contra) for kind, v in verdicts.items()}
    before = decided.get("ends", 0)
    fates = [
        f" {where} the difference {_fate(before, decided[kind])}."
        for kind, where in _WHERE.items()
        if before and kind in decided
    ]
    return (
        f"- {title} on other grounds, {SETTINGS[side][0].lower()}{SETTINGS[side][1:]}: compared "
        "with batching by the same rule and with LP-UCB, the DPP methods have at the end, "
        f"significantly, {'; '.join(told)}.{''.join(fates)}"
    )


def _fate(before: int, left: int) -> str:
    """What became of a difference that so many comparisons showed, and so many still do."""
    if not left:
        return "vanishes: none is left that so many repetitions can tell"
    return "shrinks, but does not vanish" if left < before else "does not shrink"


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Medians on the grounds beside each other, and what becomes of the verdicts."""
    for problem, title in _problems(rows).items():
        tables = compared(rows, problem)
        runs = len({row["seed"] for own in _runs(tables) for row in own.values()})
        yield (
            f"{title}, {runs} repetitions, median regrets at the end, against the maximum of the "
            f"function. {'; '.join(f'`{kind}`: {GROUNDS[kind]}' for kind in tables)}."
            f"{_floor(tables)}"
        )
        for side in SIDES:
            body = list(_beside(tables, side))
            if body:
                yield from ("", f"{SETTINGS[side]}:", "", *body)
        yield ""
        yield from _verdicts(problem, title, tables)
        yield ""
        yield from _changed(rows, tables)


def _problems(rows: Sequence[Row]) -> dict[str, str]:
    """Those that were run on another ground, with their titles."""
    return {row["problem"]: row["title"] for row in elsewhere(rows)}


def _runs(tables: Mapping[Kind, Table]) -> Iterator[Seeds]:
    for table in tables.values():
        for own in table.values():
            yield from own.values()


def _floor(tables: Mapping[Kind, Table]) -> str:
    """What nobody can do better than on X alone, and who has done as well."""
    rows = [row for own in _runs({"finite": tables.get("finite", {})}) for row in own.values()]
    if not rows:
        return ""
    found = sum(score(row, END) <= row["least"] for row in rows)
    middle = np.median(list({row["seed"]: row["least"] for row in rows}.values()))
    return (
        f" On X alone nobody can have less than the best of X, {middle:.2g} (median); {found} of "
        f"{len(rows)} runs have found it (in brackets: of each method), and judged is the regret "
        "against it, which is the paper's."
    )


def _beside(tables: Mapping[Kind, Table], side: Side) -> Iterator[str]:
    """A line for each method, a column for each ground at each batch size."""
    sheets = [
        (f"B = {batch}, {kind}", _column(own, side, finite=kind == "finite"))
        for batch in sorted({batch for table in tables.values() for _, batch in table})
        for kind, table in tables.items()
        for (_, size), own in table.items()
        if size == batch
    ]
    names = [name for name in ENTRANTS if any(name in column for _, column in sheets)]
    body = [
        [ENTRANTS[name].title, *(column.get(name, "-") for _, column in sheets)] for name in names
    ]
    yield from tabulated(["", *(head for head, _ in sheets)], body)


def _column(entered: Mapping[str, Seeds], side: Side, *, finite: bool) -> dict[str, str]:
    """Medians by method; the least of those judged is bold."""
    here = shown_on(entered, side)
    scores = paired([entered[name] for name in here], [END] * len(here)) if here else np.zeros(0)
    if not scores.size:
        return {}
    judged_too = field(entered, side)
    middle = dict(zip(here, np.median(scores, axis=1).tolist(), strict=True))
    best = min(middle[name] for name in judged_too)
    found = dict.fromkeys(here, "")
    if finite:
        common = sorted(set.intersection(*(set(entered[name]) for name in here)))
        reached = scores <= [entered[here[0]][seed]["least"] for seed in common]
        found = {name: f" ({sum(own)}/{len(own)})" for name, own in zip(here, reached, strict=True)}
    bold = {name: "**" if name in judged_too and middle[name] == best else "" for name in here}
    return {name: f"{bold[name]}{middle[name]:.2g}{bold[name]}{found[name]}" for name in here}


def restricted(problem: str) -> list[tuple[str, Claim]]:
    """The claims that speak of a problem, on that problem alone; equals are one, with all numbers.

    At the moment that counts.
    """
    found: dict[Claim, list[int]] = {}
    words: dict[Claim, str] = {}
    for number, claim in enumerate(CLAIMS, 1):
        if problem in claim.problems:
            pairs = tuple(sorted(set(claim.pairs)))
            alone = Claim("", "", pairs, (problem,), claim.batches, claim.sort, claim.moments[-1:])
            found.setdefault(alone, []).append(number)
            words.setdefault(alone, claim.words)
    return [
        (", ".join(map(str, numbers)), replace(alone, words=words[alone]))
        for alone, numbers in found.items()
    ]


def _verdicts(problem: str, title: str, tables: Mapping[Kind, Table]) -> Iterator[str]:
    judging = {kind: within(table) for kind, table in tables.items()}
    body = []
    for numbers, claim in restricted(problem):
        for side in SIDES:
            moment = claim.moments[-1]
            found = [judged(claim, side, moment, table) for table in judging.values()]
            if any(found):
                body.append([numbers, claim.words, side, moment, *map(_ruling, found)])
    if body:
        yield f"The claims that speak of {title}, judged on it alone by the same rule:"
        yield from ("", *tabulated(["", "claim", "settings", "when", *judging], body))


def _ruling(verdict: Verdict | None) -> str:
    if verdict is None:
        return "-"
    solved = f", {len(verdict.solved)} solved" if verdict.solved else ""
    counts = f"{len(verdict.pro)}+ {len(verdict.contra)}− {len(verdict.open)}?{solved}"
    return f"**{verdict.ruling}** ({counts})"


def _changed(rows: Sequence[Row], tables: Mapping[Kind, Table]) -> Iterator[str]:
    """Which verdicts of the whole would be others, had all run there on another ground."""
    everywhere = cells(rows)
    whole = {kind: {**everywhere, **within(table)} for kind, table in tables.items()}
    for kind in OTHERS:
        if kind in whole:
            turned = list(_turned(whole["ends"], whole[kind])) if "ends" in whole else []
            yield (
                f"- On `{kind}` instead of `ends`, the other problems as they are, "
                f"{len(turned)} of {len(CLAIMS) * len(SIDES)} verdicts of all change"
                f"{': ' + '; '.join(turned) if turned else ''}."
            )


def _turned(before: Table, after: Table) -> Iterator[str]:
    for number, claim in enumerate(CLAIMS, 1):
        for side in SIDES:
            pair = [judged(claim, side, claim.moments[-1], table) for table in (before, after)]
            old, new = (verdict and verdict.ruling for verdict in pair)
            if old and new and old != new:
                yield f"{number} ({side}) from *{old}* to *{new}*"


def details(rows: Sequence[Row]) -> Iterator[str]:
    """All tables of regrets and tests on the other grounds, regrets against the maximum."""
    for kind in OTHERS:
        table = cells(rows, kind)
        if table:
            yield ""
        for side in SIDES:
            for measure, words in MEASURES.items():
                title = f"ground `{kind}`, {side}: {words}"
                yield from heading(f"{title}, median (quartiles)", medians(table, side, measure))
                yield from heading(f"{title}, paired tests", duels(table, side, measure))
