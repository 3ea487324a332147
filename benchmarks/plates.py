"""Plates: what a rule for shared values costs, and what shifts between plates do to a model.

`python -m benchmarks.plates --rows rows.jsonl --seeds 120 --processes 8` prints three Markdown
tables: the rules with shifts between plates in the model, as they are by default, and without; and
what shifts do. The file holds a line for each run, and those in it are not run again, so that it
can be stopped and gone on with; of a packed file (.gz) only the tables are printed.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.race.runner import read
from covey import Integer, Layout, Real, Space, Study
from covey import propose as proposing
from covey.gp import GP, Sharing, condition, fit, observe
from covey.plates.choosing import Ranking, upper_bounds

FACTORS, LEVELS, WELLS, PLATES, NOISE = 4, 6, 24, 6, 0.02
SHOWN = (2, 4, 6)
TAUS = (0.0, 0.3, 1.0)
WAYS = ("none", "intercept", "subtract", "intercept + controls")


# The first table: which value a plate shares.


def two_peaks(seed: int) -> Callable[[Mapping[str, Any]], float]:
    """A function of four factors and a level: a peak at one level, a lower one at another."""
    rng = np.random.default_rng([seed, 18])
    centres = rng.uniform(0.15, 0.85, size=(2, FACTORS))
    levels = rng.choice(LEVELS, size=2, replace=False) / (LEVELS - 1)
    heights, width = (1.0, 0.8), 0.3

    def f(point: Mapping[str, Any]) -> float:
        x = np.array([point[f"x{i}"] for i in range(FACTORS)])
        level = point["level"] / (LEVELS - 1)
        away = np.square(x - centres).sum(axis=1) + np.square(level - levels)
        return float(np.max(heights * np.exp(-0.5 * away / width**2)))

    return f


def ranked(rule: str, seed: int) -> Any:
    """Ranks of levels by another rule than the mean of the five best upper bounds."""

    def rank(belief: Any, ids: Any, free: Any) -> Ranking:
        rng = np.random.default_rng([seed, belief.looks, 0, 3])
        found = {}
        for level in np.unique(ids[free]).tolist():
            some = free & (ids == level)
            best = float(upper_bounds(belief)[some].max())
            found[level] = best if rule == "best bound" else float(rng.random())
        return Ranking(found)

    return rank


RULES = ("five best bounds", "best bound", "random level")
RACES: dict[str, tuple[str, ...]] = {"rules": ("plate",), "rules, no shifts": ()}


def regrets(rule: str, seed: int, effects: tuple[str, ...]) -> list[float]:
    """What the best point tried lacks of the maximum, after each plate."""
    f, noise = two_peaks(seed), np.random.default_rng([seed, 19])
    space = Space({f"x{i}": Real(0.0, 1.0) for i in range(FACTORS)} | {"level": Integer(0, 5)})
    study = Study(space, seed=seed)
    layout = Layout(plate=WELLS, shared={"level": "plate"}, effects=effects)
    best, found = 0.0, []
    other = rule != "five best bounds"
    for _ in range(PLATES):
        how = ranked(rule, seed) if other else proposing.by_upper_bounds
        with mock.patch.object(proposing, "by_upper_bounds", how):
            (plate,) = study.ask_plates(1, layout)
        true = {well.name: f(well.point) for well in plate.used if well.point is not None}
        best = max(best, *true.values())
        noisy = {name: value + NOISE * noise.standard_normal() for name, value in true.items()}
        study.tell_plate(plate, noisy)
        found.append(1.0 - best)
    return found


# The second table: shifts between plates.

_WELLS_EACH, _PLATES, _CONTROLS, _NOISE, _TESTED = 20, 5, 4, 0.4, 1000


def smooth(seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """A hill over three factors, rippled, with standard deviation 1 over the cube."""
    rng = np.random.default_rng([seed, 20])
    top, steep = rng.uniform(0.2, 0.8, 3), rng.uniform(0.5, 1.5, 3)
    phase = rng.uniform(0.0, 2.0 * np.pi, 3)

    def hill(at: np.ndarray) -> np.ndarray:
        return -np.square(at - top) @ steep + 0.05 * np.sin(6.0 * at + phase).sum(axis=1)

    spread = float(hill(rng.random((4000, 3))).std())
    return lambda at: hill(at) / spread


def effects(tau: float, seed: int) -> dict[str, Any]:
    """Error and regret of each way to treat shifts of size ``tau``."""
    f, rng = smooth(seed), np.random.default_rng([seed, 21])
    plates = np.repeat(np.arange(_PLATES), _WELLS_EACH)
    at = rng.random((len(plates), 3))
    shift = tau * rng.standard_normal(_PLATES)
    values = f(at) + shift[plates] + _NOISE * rng.standard_normal(len(plates))
    of = np.repeat(np.arange(_PLATES), _CONTROLS)
    controls = 1.0 + shift[of] + _NOISE * rng.standard_normal(len(of))
    means = np.bincount(of, controls) / _CONTROLS
    labels = (tuple(f"p{i + 1}" for i in range(_PLATES)),)
    none, no = np.zeros(0), np.zeros((0, 1), dtype=int)
    kinds = np.zeros(len(of), dtype=int)
    alone = Sharing(("plate",), labels, plates[:, None], none, np.zeros(0, dtype=int), no)
    both = Sharing(("plate",), labels, plates[:, None], controls, kinds, of[:, None])
    tried = {
        "none": (values, None),
        "intercept": (values, alone),
        "subtract": (values - means[plates], None),
        "intercept + controls": (values, both),
    }
    tested = rng.random((_TESTED, 3))
    true, found = f(tested), {"error": {}, "regret": {}}
    for way, (told, groups) in tried.items():
        data = observe(at, told, np.full(len(at), np.nan), groups)
        models = fit(data, GP(), np.random.default_rng(seed))
        mean, _ = condition(models, data).predict(tested)
        apart = mean - true
        found["error"][way] = float(np.std(apart))
        found["regret"][way] = float(true.max() - true[int(np.argmax(mean))])
    return found


# Rows, tables and the command.


def run(job: tuple[str, str, int]) -> dict[str, Any]:
    """One row: a rule or a way, and a seed."""
    table, name, seed = job
    if table in RACES:
        found = regrets(name, seed, RACES[table])
        return {"table": table, "name": name, "seed": seed, "regrets": found}
    return {"table": table, "name": name, "seed": seed, **effects(float(name), seed)}


def jobs(tables: list[str], seeds: int) -> list[tuple[str, str, int]]:
    """All rows that are wanted, seed by seed."""
    wanted = []
    for seed in range(seeds):
        wanted += [(table, rule, seed) for table in RACES if table in tables for rule in RULES]
        few = seed < 24
        wanted += [("effects", str(tau), seed) for tau in TAUS if "effects" in tables and few]
    return wanted


def rules_table(rows: list[dict[str, Any]], table: str) -> str:
    """Mean regret after some plates, with its standard error."""
    lines = [f"| {table} | " + " | ".join(map(str, SHOWN)) + " | seeds |"]
    lines.append("|---" * (len(SHOWN) + 2) + "|")
    for rule in RULES:
        mine = [row["regrets"] for row in rows if row["table"] == table and row["name"] == rule]
        if not mine:
            continue
        values = np.array(mine)[:, [n - 1 for n in SHOWN]]
        errors = values.std(axis=0) / np.sqrt(len(values))
        cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(values.mean(axis=0), errors, strict=True)]
        lines.append(f"| {rule} | {' | '.join(cells)} | {len(mine)} |")
    return "\n".join(lines)


def effects_table(rows: list[dict[str, Any]]) -> str:
    """Error of f up to a constant, and regret of the predicted optimum."""
    lines = [f"| tau | {' | '.join(WAYS)} | seeds |", "|---" * (len(WAYS) + 2) + "|"]
    for tau in TAUS:
        mine = [r for r in rows if r["table"] == "effects" and float(r["name"]) == tau]
        if not mine:
            continue
        cells = [
            f"{np.mean([r['error'][w] for r in mine]):.3f} / "
            f"{np.mean([r['regret'][w] for r in mine]):.3f}"
            for w in WAYS
        ]
        lines.append(f"| {tau:g} | {' | '.join(cells)} | {len(mine)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=120)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--tables", nargs="*", default=[*RACES, "effects"])
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if given.rows.suffix != ".gz":  # else kept results: nothing is added
        run_missing(given)
    rows = read(given.rows)
    print(*(rules_table(rows, table) for table in RACES), effects_table(rows), sep="\n\n")


def run_missing(given: argparse.Namespace) -> None:
    """Add the rows that there are not yet, over processes."""
    done = {(row["table"], row["name"], row["seed"]) for row in read(given.rows)}
    left = [job for job in jobs(given.tables, given.seeds) if job not in done]
    with ProcessPoolExecutor(given.processes) as pool, given.rows.open("a") as file:
        for future in as_completed([pool.submit(run, job) for job in left]):
            file.write(json.dumps(future.result()) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
