"""Tables of the race, in Markdown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Any

TIE = 1e-4  # of the problem's range: smaller regrets count as equal

Cell = tuple[str, int, int]  # problem, batch, rounds


def last_rows(rows: list[dict[str, Any]]) -> dict[Cell, dict[str, dict[int, dict[str, Any]]]]:
    """cell -> optimiser -> seed -> its last row; only seeds that every optimiser there has run."""
    cells: dict[Cell, dict[str, dict[int, dict[str, Any]]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row["round"] == row["rounds"] and "regret" in row:
            cells[row["problem"], row["batch"], row["rounds"]][row["optimiser"]][row["seed"]] = row
    for entered in cells.values():
        paired = set.intersection(*(set(seeds) for seeds in entered.values()))
        for name, seeds in entered.items():
            entered[name] = {seed: seeds[seed] for seed in sorted(paired)}
    return {cell: dict(entered) for cell, entered in sorted(cells.items()) if any(entered.values())}


def scores(seeds: dict[int, dict[str, Any]]) -> tuple[float, float]:
    """Median simple regret (ties at nought) and cumulative regret, as shares of the range."""
    simple = [max(row["regret"] / row["range"], 0.0) for row in seeds.values()]
    total = [row["cumulative"] / row["range"] for row in seeds.values()]
    return median(0.0 if r < TIE else r for r in simple), median(total)


def lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """One table of regrets by cell, one of ranks, wins and seconds by optimiser."""
    cells = last_rows(rows)
    if not cells:
        yield "no finished runs here; `python -m benchmarks.race run` makes some"
        return
    names = sorted({name for entered in cells.values() for name in entered})
    yield "Median simple regret / median cumulative regret, as shares of the range of the function."
    yield ""
    yield "| problem | B | rounds | seeds | " + " | ".join(names) + " |"
    yield "|---|---|---|---|" + "---|" * len(names)
    ranks: dict[str, list[tuple[float, float]]] = defaultdict(list)
    wins: dict[str, int] = defaultdict(int)
    for (problem, batch, rounds), entered in cells.items():
        found = {name: scores(seeds) for name, seeds in entered.items() if seeds}
        shown = [f"{found[n][0]:.2g} / {found[n][1]:.3g}" if n in found else "-" for n in names]
        seeds = len(next(iter(entered.values())))
        yield f"| {problem} | {batch} | {rounds} | {seeds} | " + " | ".join(shown) + " |"
        for name in found:
            ranks[name].append((_rank(found, name, 0), _rank(found, name, 1)))
            wins[name] += _rank(found, name, 0) == min(_rank(found, n, 0) for n in found)
    yield ""
    yield "| optimiser | cells | rank, simple | rank, cumulative | best in | CPU s an ask |"
    yield "|---|---|---|---|---|---|"
    for name in sorted(ranks, key=lambda n: sum(r[0] for r in ranks[n]) / len(ranks[n])):
        simple, total = (sum(part) / len(ranks[name]) for part in zip(*ranks[name], strict=True))
        seconds = median(r["ask_cpu_s"] for r in rows if r["optimiser"] == name and r["round"])
        count = len(ranks[name])
        yield (
            f"| {name} | {count} | {simple:.2f} | {total:.2f} | "
            f"{wins[name] / count:.0%} | {seconds:.3g} |"
        )


def _rank(found: dict[str, tuple[float, float]], name: str, which: int) -> float:
    """Place among the optimisers of a cell; equals share the mean of their places."""
    mine = found[name][which]
    below = sum(other[which] < mine for other in found.values())
    equal = sum(other[which] == mine for other in found.values())
    return below + (equal + 1) / 2
