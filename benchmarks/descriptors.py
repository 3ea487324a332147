"""Options with descriptors against options without: a real campaign, looked up in its table.

    COVEY_DATA=... python -m benchmarks.descriptors RESULTS.jsonl --batches 5 8

The direct arylation of Shields et al. (2021): 12 ligands, 4 bases, 4 solvents, 3 concentrations and
3 temperatures, all 1728 yields known. The molecules are plain options ("one-hot"), or described by
tables that come with the data ("mordred", "dft"), or by fingerprints of their SMILES ("morgan",
"rdkit", which need the extra chem). Counted are evaluations until a yield of at least 95 % of the
largest is told. A row a run, resumed; of a packed file (.gz) only the table is printed.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

import covey
from benchmarks.race.optimisers import version_of
from benchmarks.race.runner import add_missing, by_cell
from covey import Choice, Space

SHARE, MOST = 0.95, 240  # of the largest yield; evaluations of a run
TABLES = {
    "mordred": {"ligand": "ligand_mordred", "base": "base_mordred", "solvent": "solvent_mordred"},
    "dft": {"ligand": "ligand-boltzmann_dft", "base": "base_dft", "solvent": "solvent_dft"},
}
KINDS = ("one-hot", *TABLES, "morgan", "rdkit")


class Cell(NamedTuple):
    """One run."""

    kind: str
    batch: int
    seed: int


def _folder() -> Path:
    data = os.environ.get("COVEY_DATA")
    if data is None:
        raise SystemExit("set COVEY_DATA to the folder of data sets")
    return Path(data) / "pools" / "direct_arylation"


@cache
def yields() -> dict[tuple[str, str, str, str, str], float]:
    """The yield of every reaction, by base, ligand, solvent, concentration and temperature."""
    with (_folder() / "experiment_index.csv").open(encoding="utf-8-sig", newline="") as file:
        return {tuple(row[1:6]): float(row[6]) for row in list(csv.reader(file))[1:]}


def described(name: str) -> dict[str, list[float]]:
    """The numbers of a table by SMILES: of its columns those that hold nothing else."""
    with (_folder() / f"{name}.csv").open(encoding="utf-8-sig", newline="") as file:
        header, *rows = list(csv.reader(file))
    smiles = next(i for i, column in enumerate(header) if column.endswith("_SMILES"))
    kept = [i for i in range(len(header)) if all(_is_number(row[i]) for row in rows)]
    return {row[smiles]: [float(row[i]) for i in kept] for row in rows}


def _is_number(cell: str) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except ValueError:
        return False


@cache
def space_of(kind: str) -> Space:
    """The reactions, with this kind of description."""
    base, ligand, solvent, molar, heat = (
        list(dict.fromkeys(c)) for c in zip(*yields(), strict=True)
    )
    molecules = {"base": base, "ligand": ligand, "solvent": solvent}
    made = {name: _molecules(kind, name, options) for name, options in molecules.items()}
    made["concentration"] = Choice(sorted(map(float, molar)))
    made["temperature"] = Choice(sorted(map(int, heat)))
    return Space(made)


def _molecules(kind: str, name: str, options: list[str]) -> Choice:
    if kind == "one-hot":
        return Choice(options)
    if kind in TABLES:
        return Choice(options, features=described(TABLES[kind][name]))
    return Choice.smiles({smiles: smiles for smiles in options}, kind)


def race(cell: Cell) -> list[dict[str, Any]]:
    """Ask and tell until the yield is within reach of the largest."""
    known = {(b, li, s, float(c), int(t)): y for (b, li, s, c, t), y in yields().items()}
    goal = SHARE * max(known.values())
    study = covey.Study(space_of(cell.kind), seed=cell.seed)
    began, told, reached = time.process_time(), 0, None
    while reached is None and told < MOST:
        trials = study.ask(cell.batch)
        points = [t.point for t in trials]
        values = [
            known[p["base"], p["ligand"], p["solvent"], p["concentration"], p["temperature"]]
            for p in points
        ]
        study.tell(trials, values)
        # Within a batch too: a point that comes earlier counts as found earlier.
        reached = next((told + i for i, v in enumerate(values, start=1) if v >= goal), None)
        told += len(trials)
    row = {
        **cell._asdict(),
        "reached": reached,
        "seconds": round(time.process_time() - began, 2),
        "version": version_of("covey-auto"),
    }
    return [row]


def table(rows: dict[Cell, dict[str, Any]]) -> Iterator[str]:
    """By kind and batch; a run that never got there counts as all its evaluations."""
    yield "options | B | runs | mean | quartiles | never | below one-hot | s"
    yield "---|---|---|---|---|---|---|---"
    groups: dict[tuple[int, str], dict[int, float]] = defaultdict(dict)
    seconds: dict[tuple[int, str], list[float]] = defaultdict(list)
    for cell, row in sorted(rows.items()):
        groups[cell.batch, cell.kind][cell.seed] = row["reached"] or MOST
        seconds[cell.batch, cell.kind].append(row["seconds"])
    for (batch, kind), found in groups.items():
        counts = np.array(list(found.values()))
        low, middle, high = np.quantile(counts, [0.25, 0.5, 0.75])
        plain = groups.get((batch, "one-hot"), {})
        pairs = [(found[s], plain[s]) for s in found if s in plain]
        wins = sum((a < b) + 0.5 * (a == b) for a, b in pairs)
        spent = np.mean(seconds[batch, kind])
        yield (
            f"{kind} | {batch} | {len(counts)} | {counts.mean():.1f} | "
            f"{low:.0f} {middle:.0f} {high:.0f} | {(counts >= MOST).sum()} | "
            f"{wins:g} of {len(pairs)} | {spent:.1f}"
        )


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["one-hot", *TABLES])
    parser.add_argument("--batches", nargs="+", type=int, default=[5, 8])
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=100, help="the first of the seeds")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.seeds)
    order = product(seeds, args.batches, args.kinds)
    wanted = [Cell(k, b, i) for i, b, k in order]
    add_missing(race, wanted, args.path, args.workers)
    print("\n".join(table(by_cell(args.path, Cell))))


if __name__ == "__main__":
    main()
