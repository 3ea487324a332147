"""Tables of the race, in Markdown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import geometric_mean, mean, median
from typing import Any

_OURS = "covey-auto"
TIE = 1e-4  # of the problem's range: smaller regrets count as equal

Cell = tuple[str, int, int]  # problem, batch, rounds
Entered = dict[str, dict[int, dict[str, Any]]]  # optimiser -> seed -> row


@dataclass(frozen=True)
class Score:
    """Medians of an optimiser in a cell, as shares of the range."""

    simple: float
    cumulative: float

    def __str__(self) -> str:
        return f"{self.simple:.2g} / {self.cumulative:.3g}"


def last_rows(rows: list[dict[str, Any]]) -> dict[Cell, Entered]:
    """cell -> optimiser -> seed -> its last row; only seeds that every optimiser there has run."""
    cells: dict[Cell, Entered] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row["round"] == row["rounds"] and "regret" in row:
            cells[row["problem"], row["batch"], row["rounds"]][row["optimiser"]][row["seed"]] = row
    for entered in cells.values():
        paired = set.intersection(*(set(seeds) for seeds in entered.values()))
        for name, seeds in entered.items():
            entered[name] = {seed: seeds[seed] for seed in sorted(paired)}
    return {cell: dict(entered) for cell, entered in sorted(cells.items()) if any(entered.values())}


def score(seeds: Mapping[int, dict[str, Any]]) -> Score:
    """Median simple regret (ties at nought) and median cumulative regret."""
    simple = [max(row["regret"] / row["range"], 0.0) for row in seeds.values()]
    total = [row["cumulative"] / row["range"] for row in seeds.values()]
    return Score(median(0.0 if r < TIE else r for r in simple), median(total))


def lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Regrets by cell, standings, a duel of the first of ours with each other, and versions."""
    cells = last_rows(rows)
    if not cells:
        yield "no finished runs here; `python -m benchmarks.race run` makes some"
        return
    scores = {cell: {n: score(s) for n, s in entered.items()} for cell, entered in cells.items()}
    names = sorted({name for entered in cells.values() for name in entered})
    yield "Median simple regret / median cumulative regret, as shares of the range of the function."
    yield ""
    yield "| problem | B | rounds | seeds | " + " | ".join(names) + " |"
    yield "|---|---|---|---|" + "---|" * len(names)
    for (problem, batch, rounds), found in scores.items():
        seeds = len(next(iter(cells[problem, batch, rounds].values())))
        shown = [str(found.get(name, "-")) for name in names]
        yield f"| {problem} | {batch} | {rounds} | {seeds} | " + " | ".join(shown) + " |"
    yield ""
    yield from _standings(scores, names, rows)
    yield ""
    yield from _duels(scores, names)
    yield ""
    for name in names:
        versions = {r["version"] for r in rows if r["optimiser"] == name and "version" in r}
        yield f"- {name}: {'; '.join(sorted(versions)) or 'version not recorded'}"


def ratios(rows: list[dict[str, Any]], noise: str) -> Iterator[str]:
    """Regrets of covey-auto over those of each peer, in problems whose names end so."""
    cells = {c: e for c, e in last_rows(rows).items() if c[0].endswith(noise)}
    yield f"| covey-auto over | cells of {noise} | final won / tied / lost | final | cumulative |"
    yield "|---|---|---|---|---|"
    for peer in sorted({name for entered in cells.values() for name in entered} - {_OURS}):
        final, total = [], []
        for entered in cells.values():
            both = set(entered.get(_OURS, ())) & set(entered.get(peer, ()))
            if both:
                ours, theirs = ([entered[n][seed] for seed in both] for n in (_OURS, peer))
                final.append(_ratio(ours, theirs, "regret"))
                total.append(_ratio(ours, theirs, "cumulative"))
        won, lost = sum(r < 1 / 1.05 for r in final), sum(r > 1.05 for r in final)
        yield (
            f"| {peer} | {len(final)} | {won} / {len(final) - won - lost} / {lost} | "
            f"{geometric_mean(final):.2f} | {geometric_mean(total):.2f} |"
        )


def _ratio(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], what: str) -> float:
    """Of the geometric means over seeds."""
    mine, other = ([max(row[what], 1e-9) for row in rows] for rows in (ours, theirs))
    return geometric_mean(mine) / geometric_mean(other)


def _standings(
    scores: Mapping[Cell, Mapping[str, Score]], names: list[str], rows: list[dict[str, Any]]
) -> Iterator[str]:
    """Places where all are entered: a place among three is not a place among five."""
    common = [found for found in scores.values() if len(found) == len(names)]
    yield f"Places in the {len(common)} cells where all are entered (equals share a place):"
    yield ""
    yield (
        "| optimiser | median place, simple | mean | median place, cumulative | mean | best in "
        "| CPU s an ask | least spread |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    table = []
    for name in names:
        simple = [_place({n: s.simple for n, s in f.items()}, name) for f in common]
        total = [_place({n: s.cumulative for n, s in f.items()}, name) for f in common]
        best = [f[name].simple == min(s.simple for s in f.values()) for f in common]
        mine = [row for row in rows if row["optimiser"] == name and row["round"]]
        seconds = median(row["ask_cpu_s"] for row in mine)
        # Of a run's batches the closest pair, in the unit cube; the median over runs.
        spread = median(_least_spreads(mine))
        if common:
            words = (
                f"| {name} | {median(simple):.3g} | {mean(simple):.2f} | {median(total):.3g} "
                f"| {mean(total):.2f} | {mean(best):.0%} | {seconds:.3g} | {spread:.1g} |"
            )
            table.append((mean(simple), words))
    yield from (words for _, words in sorted(table))


def _least_spreads(rows: list[dict[str, Any]]) -> list[float]:
    runs: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in rows:
        key = tuple(row[k] for k in ("problem", "batch", "seed", "rounds"))
        runs[key].append(row.get("spread", float("nan")))
    return [min(spreads) for spreads in runs.values()]


def _duels(scores: Mapping[Cell, Mapping[str, Score]], names: list[str]) -> Iterator[str]:
    """Cell by cell, the first of ours against each of the others."""
    ours = next((name for name in names if name.startswith("covey-")), names[0])
    yield f"{ours} against each, cells won / tied / lost (a tie: within 5 %):"
    yield ""
    yield "| against | cells | simple regret | cumulative regret |"
    yield "|---|---|---|---|"
    for name in names:
        both = [(f[ours], f[name]) for f in scores.values() if ours in f and name in f]
        if name != ours and both:
            simple = _duel([(a.simple, b.simple) for a, b in both])
            total = _duel([(a.cumulative, b.cumulative) for a, b in both])
            yield f"| {name} | {len(both)} | {simple} | {total} |"


def _duel(pairs: list[tuple[float, float]]) -> str:
    won = sum(a < b / 1.05 for a, b in pairs)
    lost = sum(b < a / 1.05 for a, b in pairs)
    return f"{won} / {len(pairs) - won - lost} / {lost}"


def _place(found: Mapping[str, float], name: str) -> float:
    """Place among the optimisers of a cell; equals share the mean of their places."""
    below = sum(other < found[name] for other in found.values())
    equal = sum(other == found[name] for other in found.values())
    return below + (equal + 1) / 2
