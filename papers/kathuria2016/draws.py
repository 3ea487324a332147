"""Draws: whether more of them of the hyper-parameters would have changed the regrets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from covey.arrays import Array
from papers.kathuria2016.judge import END, Cell, Duel, comparable, holm, score
from papers.kathuria2016.report import tabulated
from papers.kathuria2016.results import RESULTS, Row, run_of

TEN = RESULTS / "ten_draws"
"""Rows of some of the runs, with ten draws an ask instead of five; made with `--samples 10`."""


def matched(rows: Sequence[Row], others: Sequence[Row]) -> dict[Cell, tuple[Array, Array]]:
    """Final immediate regrets of the runs that both have but for the number of draws, by cell."""
    known = {replace(run_of(row), samples=0): score(row, END) for row in comparable(rows)}
    found: dict[Cell, list[tuple[float, float]]] = {}
    for row in comparable(others):
        run = replace(run_of(row), samples=0)
        if run in known:
            pair = (known[run], score(row, END))
            found.setdefault((run.problem, run.batch), []).append(pair)
    order = {problem: i for i, problem in enumerate(dict.fromkeys(r["problem"] for r in rows))}
    return {
        cell: (np.array(found[cell]).T[0], np.array(found[cell]).T[1])
        for cell in sorted(found, key=lambda cell: (order[cell[0]], cell[1]))
    }


def lines(rows: Sequence[Row], others: Sequence[Row]) -> Iterator[str]:
    """Medians with either number of draws, a test in each cell and one over all pairs."""
    table = matched(rows, others)
    if not table:
        return
    adjusted = holm([Duel(few - many).p for few, many in table.values()])
    body = [
        [problem, str(batch), str(len(few)), *(f"{x:.3g}" for x in (*_medians(few, many), p))]
        for ((problem, batch), (few, many)), p in zip(table.items(), adjusted, strict=True)
    ]
    numbers = [sorted({row["samples"] for row in comparable(each)}) for each in (rows, others)]
    heads = [f"{' or '.join(map(str, each))} draws" for each in numbers]
    yield from tabulated(["", "B", "pairs of runs", *heads, "p (Holm)"], body)
    few, many = (np.concatenate([pair[i] for pair in table.values()]) for i in range(2))
    whole = Duel(relative(few, many))
    made = "; ".join(sorted({row["version"] for row in others}))
    yield ""
    yield (
        f"Over all {len(few)} pairs, of relative differences (a - b) / (a + b): p = {whole.p:.2g}, "
        f"rank-biserial correlation {whole.lean:+.2f} (positive: less regret with more draws). "
        f"The runs with {heads[1]} were made by {made}."
    )


def _medians(few: Array, many: Array) -> tuple[float, float]:
    return float(np.median(few)), float(np.median(many))


def relative(a: Array, b: Array) -> Array:
    """(a - b) / (a + b), which needs no unit; 0 where both are 0."""
    total = a + b
    return np.divide(a - b, total, out=np.zeros_like(total), where=total > 0.0)
