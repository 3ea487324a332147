"""Draws: whether more of them of the hyper-parameters would have changed the regrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from covey.arrays import Array
from papers.kathuria2016.judge import (
    COMPARISONS,
    END,
    LEVEL,
    SIDES,
    Cell,
    Duel,
    Seeds,
    Table,
    cells,
    comparable,
    entrant,
    holm,
    paired,
    score,
)
from papers.kathuria2016.report import tabulated
from papers.kathuria2016.results import RESULTS, Row, run_of

TEN = RESULTS / "ten_draws"
"""Rows of some of the runs, with ten draws an ask instead of five; made with `--samples 10`."""

Ends = dict[int, list[tuple[float, float]]]
"""Repetition -> final regrets of its runs, with fewer draws and with more."""


def matched(rows: Sequence[Row], others: Sequence[Row]) -> dict[Cell, Ends]:
    """Final immediate regrets of the runs that both have but for the number of draws, by cell."""
    known = {replace(run_of(row), samples=0): score(row, END) for row in comparable(rows)}
    found: dict[Cell, Ends] = {}
    for row in comparable(others):
        run = replace(run_of(row), samples=0)
        if run in known:
            seeds = found.setdefault((run.problem, run.batch), {})
            seeds.setdefault(run.seed, []).append((known[run], score(row, END)))
    order = {problem: i for i, problem in enumerate(dict.fromkeys(r["problem"] for r in rows))}
    return {cell: found[cell] for cell in sorted(found, key=lambda cell: (order[cell[0]], cell[1]))}


def lines(rows: Sequence[Row], others: Sequence[Row]) -> Iterator[str]:
    """Medians with either number of draws, a test in each cell and one over all repetitions."""
    table = matched(rows, others)
    if not table:
        return
    adjusted = holm([Duel(averaged([seeds])).p for seeds in table.values()])
    body = [
        [
            problem,
            str(batch),
            str(sum(map(len, seeds.values()))),
            str(len(seeds)),
            *_numbers(seeds, p),
        ]
        for ((problem, batch), seeds), p in zip(table.items(), adjusted, strict=True)
    ]
    numbers = [sorted({row["samples"] for row in comparable(each)}) for each in (rows, others)]
    heads = [f"{' or '.join(map(str, each))} draws" for each in numbers]
    yield from tabulated(["", "B", "pairs of runs", "repetitions", *heads, "p (Holm)"], body)
    problems = dict.fromkeys(problem for problem, _ in table)
    each = [averaged([s for (name, _), s in table.items() if name == p]) for p in problems]
    whole = Duel(np.concatenate(each))
    yield ""
    yield (
        "Runs of one repetition share its ground, and count as one: tested are relative "
        "differences (a - b) / (a + b), averaged within a repetition of a cell, and for the next "
        f"number of a problem. Over all {len(whole.differences)}: p = {whole.p:.2g}, rank-biserial "
        f"correlation {whole.lean:+.2f} (positive: less regret with more draws). {_origin(others)}"
    )
    yield ""
    yield _changed(rows, others)


def _numbers(seeds: Ends, p: float) -> list[str]:
    few, many = np.median([pair for own in seeds.values() for pair in own], axis=0)
    return [f"{x:.3g}" for x in (few, many, p)]


def averaged(parts: Sequence[Ends]) -> Array:
    """One relative difference a repetition: the mean over its runs in all parts."""
    together: dict[int, list[tuple[float, float]]] = {}
    for part in parts:
        for seed, own in part.items():
            together.setdefault(seed, []).extend(own)
    return np.array([relative(*np.array(own).T).mean() for own in together.values()])


def relative(a: Array, b: Array) -> Array:
    """(a - b) / (a + b), which needs no unit; 0 where both are 0."""
    total = a + b
    return np.divide(a - b, total, out=np.zeros_like(total), where=total > 0.0)


def _origin(others: Sequence[Row]) -> str:
    """What made the rows with more draws."""
    own = comparable(others)
    made = "; ".join(sorted({row["version"] for row in own}))
    seeds = 1 + max(row["seed"] for row in own)
    return (
        f"The runs with more draws were made by {made}, with `python -m papers.kathuria2016 all "
        f"--samples {own[0]['samples']} --seeds {seeds} "
        "--out papers/kathuria2016/results/ten_draws`."
    )


def _changed(rows: Sequence[Row], others: Sequence[Row]) -> str:
    """Whether a comparison of two methods would have come out otherwise."""
    few, many = zip(*_compared(cells(rows), cells(others)), strict=True)
    leans = [
        [each.lean * (p < LEVEL) for each, p in zip(own, holm([x.p for x in own]), strict=True)]
        for own in (few, many)
    ]
    turned = sum(a * b < 0.0 for a, b in zip(*leans, strict=True))
    shifts = [Duel(a.differences - b.differences) for a, b in zip(few, many, strict=True)]
    shifted = sum(p < LEVEL for p in holm([each.p for each in shifts]))
    said = (
        "More draws would not have changed a comparison that these runs can tell"
        if turned == shifted == 0
        else "More draws would have changed comparisons"
    )
    return (
        f"{said}: of {len(few)} comparisons of two methods on these runs, {turned} significantly "
        f"change sides with the number of draws, and in {shifted} the difference between the two "
        "methods changes significantly (Holm over all of them)."
    )


def _compared(few: Table, many: Table) -> Iterator[tuple[Duel, Duel]]:
    """Each comparison in each cell on the repetitions that all four have."""
    for cell in few.keys() & many.keys():
        for side in SIDES:
            for pair in COMPARISONS:
                names = [entrant(who, side).name for who in pair]
                a, b, c, d = paired([*_of(few[cell], names), *_of(many[cell], names)], [END] * 4)
                if a.size:
                    yield Duel(a - b), Duel(c - d)


def _of(entered: Mapping[str, Seeds], names: Sequence[str]) -> list[Seeds]:
    return [entered.get(name, {}) for name in names]
