"""Where the wells go: controls spread over the plate, points placed at random and in balance.

`scaffold_of` draws the wells of the controls of a plate, which leaves the wells of its points in
blocks; `placed` puts points and their copies into them and says in which order they are run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from covey.errors import SpaceError, several

if TYPE_CHECKING:
    from covey.arrays import Array, Indices, Mask
    from covey.plates.layout import Grid, Layout

TRIES = 200  # arrangements drawn, of which the one in best balance is kept
_REDRAWN = 50  # patterns of controls drawn until one tells the plate apart from others and turned
_NEAR = 0.25  # weight of copies that stand close together, beside a correlation
_LEAST = 1e-12  # variance below which a factor is constant


@dataclass(frozen=True)
class Scaffold:
    """One plate before its points are placed: the wells of controls, and those left by block."""

    controls: tuple[tuple[int, str, int], ...]  # well, name, replicate from 1
    blocks: tuple[tuple[int, ...], ...]  # wells of each block, in order; one if nothing is shared
    places: tuple[int, ...]  # points of each block

    @property
    def points(self) -> int:
        """Points of the plate."""
        return sum(self.places)

    @property
    def pattern(self) -> frozenset[tuple[int, str]]:
        """The wells of the controls, by name."""
        return frozenset((well, name) for well, name, _ in self.controls)


def scaffold_of(
    layout: Layout, rng: np.random.Generator, others: Collection[frozenset[tuple[int, str]]] = ()
) -> Scaffold:
    """Draw the wells of the controls: spread over rows, columns and quadrants, uniform over wells.

    A plate turned by 180 degrees, or swapped with another, shows by its controls, since patterns
    that would look alike are drawn again.
    """
    wells: dict[int, tuple[str, int]] = {}
    for _ in range(_REDRAWN):
        wells = _control_wells(layout, rng)
        pattern = frozenset((well, name) for well, (name, _) in wells.items())
        turned = frozenset((layout.grid.turned(well), name) for well, name in pattern)
        alike = turned == pattern and layout.order != "mirrored"
        if not pattern or not (alike or pattern in others):
            break
    controls = tuple((well, *wells[well]) for well in sorted(wells))
    blocks = _blocks(layout, wells)
    places = tuple(len(block) // layout.copies for block in blocks)
    scaffold = Scaffold(controls, blocks, places)
    if scaffold.points < 1:
        raise SpaceError(f"this layout leaves no well for a point: {layout.sum_in_words}.")
    return scaffold


def _blocks(layout: Layout, taken: Collection[int]) -> tuple[tuple[int, ...], ...]:
    """The wells for points that share a row or a column; all of them, if nothing is shared so."""
    grid = layout.grid
    usable = layout.usable & layout.usable[::-1] if layout.order == "mirrored" else layout.usable
    free = [w for w in np.flatnonzero(usable).tolist() if w not in taken]
    if layout.order == "mirrored":  # a well whose partner is taken, or that is its own, is left
        free = [w for w in free if (turned := grid.turned(w)) not in taken and turned != w]
    if layout.blocks_by is None:
        return (tuple(free),)
    of = grid.row(free) if layout.blocks_by == "row" else grid.column(free)
    found = tuple(
        tuple(w for w, b in zip(free, of.tolist(), strict=True) if b == block)
        for block in dict.fromkeys(of.tolist())
    )
    return tuple(block for block in found if len(block) >= layout.copies)


def _control_wells(layout: Layout, rng: np.random.Generator) -> dict[int, tuple[str, int]]:
    """A well for each copy of each control: well -> name, replicate."""
    grid, found = layout.grid, dict[int, tuple[str, int]]()
    free = layout.usable & layout.usable[::-1] if layout.order == "mirrored" else layout.usable
    free = free.copy()
    drawn = []
    for name, control in layout.samples_of_controls.items():
        if isinstance(control.wells, int):
            drawn.append((name, control.wells))
            continue
        for replicate, word in enumerate(control.wells, start=1):
            found[grid.index(word)] = (name, replicate)
            free[grid.index(word)] = False
    for name, count in drawn:
        if layout.order == "mirrored":
            upper = np.arange(len(grid)) < len(grid) // 2  # halves without the well in the middle
            half = _spread_wells(grid, free & free[::-1] & upper, count // 2, rng)
            wells = [w for one in half for w in (one, grid.turned(one))]
        elif layout.edge == "controls":
            wells = _rim_wells(grid, free, count, rng)
        else:
            wells = _spread_wells(grid, free, count, rng)
        for replicate, well in enumerate(wells, start=1):
            found[well] = (name, replicate)
            free[well] = False
    return found


def _spread_wells(grid: Grid, free: Mask, count: int, rng: np.random.Generator) -> list[int]:
    """Free wells, one in each stratum of the rows and of the columns (a Latin hypercube).

    Of the ways to pair strata, one is drawn that leaves no quadrant without, where there are four.
    Every well is as likely as any other where all are free and strata have equal sizes.
    """
    pairing = rng.permutation(count)
    if count >= 4:
        while not _covers(pairing, count):
            pairing = rng.permutation(count)
    free, found = free.copy(), []
    every = np.arange(len(grid))
    # Strata of the rows (r): r · count // rows; with more strata than rows several share a row.
    rows = grid.row(every) * count / grid.rows
    columns = grid.column(every) * count / grid.columns
    shift = rng.random()  # one for all columns: at even distances no third is without
    for i, j in enumerate(pairing.tolist()):
        u, v = i + shift, j + rng.random()
        near = np.square(_gap(columns, u, count / grid.columns)) + np.square(
            _gap(rows, v, count / grid.rows)
        )
        near = np.where(free, near, np.inf)
        best = np.flatnonzero(near == near.min())
        well = int(best[rng.integers(len(best))])
        found.append(well)
        free[well] = False
    return found


def _gap(start: Array, at: float, width: float) -> Array:
    """How far a place is from cells [start, start + width), zero inside."""
    return np.maximum(np.maximum(start - at, at - start - width), 0.0)


def _covers(pairing: Indices, count: int) -> bool:
    """Whether strata i of the columns and pairing[i] of the rows reach all four quadrants."""
    left = np.arange(count) < count / 2
    top = pairing < count / 2
    return len({*zip(left.tolist(), top.tolist(), strict=True)}) == 4


def _rim_wells(grid: Grid, free: Mask, count: int, rng: np.random.Generator) -> list[int]:
    """Free wells at even distances around the rim; others, once the rim is full."""
    every = np.arange(len(grid))
    row, column = grid.row(every) - (grid.rows - 1) / 2, grid.column(every) - (grid.columns - 1) / 2
    around = np.argsort(np.arctan2(row / grid.rows, column / grid.columns), kind="stable")
    rim = around[grid.rim[around] & free[around]].tolist()
    inner = rng.permutation(every)
    rest = inner[free[inner] & ~grid.rim[inner]].tolist()
    first = min(count, len(rim))
    steps = (rng.random() + np.arange(first)) * len(rim) / max(first, 1)
    return [rim[int(step) % len(rim)] for step in steps] + rest[: count - first]


@dataclass(frozen=True)
class Placement:
    """Points in wells: (n, copies) wells, the run order of every used well, and the balance."""

    wells: Indices  # (n, copies)
    order: dict[int, int]  # well -> run order from 1, controls included
    correlation: float  # largest |correlation| of a column of features with row, column, rim, order
    distance: float | None  # smallest distance of two copies of a point, in wells


def placed(
    layout: Layout,
    scaffold: Scaffold,
    features: Array,
    rng: np.random.Generator,
    tries: int = TRIES,
) -> Placement:
    """Put points into the wells of their blocks, block by block in the order of the points.

    Of ``tries`` random arrangements the one is kept whose largest correlation of a feature (n, q)
    with row, column, rim and run order is least, copies that stand close together counting against
    it. No solver, and the randomness is honest.
    """
    best: tuple[float, Placement] | None = None
    drawn = 1 if layout.order == "listed" else max(1, tries)
    for _ in range(drawn):
        wells = _assigned(layout, scaffold, rng)
        order = _run_order(layout, scaffold, wells, rng)
        correlation = _correlation(layout.grid, wells, order, features)
        distances = _distances(layout.grid, wells)
        score = correlation + _NEAR * _closeness(layout, distances)
        if best is None or score < best[0]:
            smallest = float(distances.min()) if distances.size else None
            best = score, Placement(wells, order, correlation, smallest)
    if best is None:
        raise SpaceError("there is no arrangement to choose among.")
    return best[1]


def _assigned(layout: Layout, scaffold: Scaffold, rng: np.random.Generator) -> Indices:
    """Wells (n, copies), at random within blocks."""
    rows = []
    for block, places in zip(scaffold.blocks, scaffold.places, strict=True):
        wells = np.array(block, dtype=np.intp)
        if layout.order == "mirrored":
            first = wells[wells < len(layout.grid) // 2]
            first = rng.permutation(first)[:places]
            swap = rng.random(places) < 0.5
            pair = np.column_stack([first, len(layout.grid) - 1 - first])
            rows.append(np.where(swap[:, None], pair[:, ::-1], pair))
            continue
        if layout.order != "listed":
            wells = rng.permutation(wells)
        rows.append(wells[: places * layout.copies].reshape(places, layout.copies))
    return np.vstack(rows)


def _run_order(
    layout: Layout, scaffold: Scaffold, wells: Indices, rng: np.random.Generator
) -> dict[int, int]:
    """Each used well's place in the order in which they are run, from 1."""
    used = np.sort(np.concatenate([wells.reshape(-1), [w for w, _, _ in scaffold.controls]]))
    used = used.astype(np.intp)
    if layout.order != "listed":
        used = rng.permutation(used)
    if layout.order == "blocked":
        used = used[np.argsort(layout.grid.column(used), kind="stable")]
    return {int(well): place for place, well in enumerate(used.tolist(), start=1)}


def _correlation(grid: Grid, wells: Indices, order: dict[int, int], features: Array) -> float:
    """The largest |correlation| of a feature (n, q) with row, column, rim and run order."""
    flat = wells.reshape(-1)
    if features.shape[1] == 0 or len(flat) < 3:
        return 0.0
    places = np.column_stack(
        [grid.row(flat), grid.column(flat), grid.rim[flat], [order[int(w)] for w in flat]]
    ).astype(float)
    values = np.repeat(features, wells.shape[1], axis=0)
    both = [_standard(values), _standard(places)]
    return float(np.abs(both[0].T @ both[1]).max(initial=0.0)) / len(flat)


def _standard(columns: Array) -> Array:
    """Columns with mean 0 and variance 1; constant ones are 0."""
    centred = columns - columns.mean(axis=0)
    spread = np.sqrt(np.square(centred).mean(axis=0))
    return centred / np.where(spread > _LEAST, spread, np.inf)


def _distances(grid: Grid, wells: Indices) -> Array:
    """The smallest distance between copies of each point, (n,); empty without copies."""
    copies = wells.shape[1]
    if copies < 2:
        return np.zeros(0)
    row, column = grid.row(wells).astype(float), grid.column(wells).astype(float)
    pairs = [
        np.hypot(row[:, a] - row[:, b], column[:, a] - column[:, b])
        for a in range(copies)
        for b in range(a)
    ]
    return np.asarray(np.min(pairs, axis=0))


def _closeness(layout: Layout, distances: Array) -> float:
    """How much closer copies stand than half the diagonal of the plate shared among them."""
    if not distances.size:
        return 0.0
    grid = layout.grid
    target = 0.5 * np.hypot(grid.rows - 1, grid.columns - 1) / max(layout.copies - 1, 1)
    return float(np.maximum(0.0, 1.0 - distances / max(target, 1.0)).mean())


@dataclass(frozen=True)
class Balance:
    """How evenly a plate is filled, for people to read."""

    correlation: float
    distance: float | None
    rim: dict[str, tuple[int, int]]  # role -> wells on the rim, wells in all
    rows: dict[str, list[int]]  # role -> wells in each row
    columns: dict[str, list[int]]

    def __str__(self) -> str:
        what = "largest correlation of a factor with row, column, rim or run order"
        parts = [f"{what} {self.correlation:.2f}"]
        if self.distance is not None:
            parts.append(f"copies at least {self.distance:.1f} wells apart")
        parts += [
            f"{role}: {on} of {several(every, 'well')} on the rim"
            for role, (on, every) in self.rim.items()
        ]
        return "; ".join(parts)


def balance_values(
    grid: Grid, places: Sequence[tuple[int, int | None, int | None]], features: Array
) -> tuple[float, float | None]:
    """Largest correlation and smallest distance of copies of wells with their trial and order."""
    wells = np.array([[well] for well, _, _ in places], dtype=np.intp).reshape(-1, 1)
    order = {well: place or 0 for well, _, place in places}
    copies: dict[int | None, list[int]] = {}
    for well, trial, _ in places:
        copies.setdefault(trial, []).append(well)
    gaps = [_distances(grid, np.array([one])) for one in copies.values() if len(one) > 1]
    distance = float(np.min(gaps)) if gaps else None
    return _correlation(grid, wells, order, features), distance


def balance_of(
    grid: Grid, roles: Sequence[tuple[int, str]], correlation: float, distance: float | None
) -> Balance:
    """The balance of wells with their roles."""
    by: dict[str, list[int]] = {}
    for well, role in roles:
        by.setdefault(role, []).append(well)
    return Balance(
        correlation,
        distance,
        {role: (int(grid.rim[wells].sum()), len(wells)) for role, wells in by.items()},
        {r: np.bincount(grid.row(w), minlength=grid.rows).tolist() for r, w in by.items()},
        {r: np.bincount(grid.column(w), minlength=grid.columns).tolist() for r, w in by.items()},
    )
