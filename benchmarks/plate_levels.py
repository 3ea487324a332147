"""Which values of a factor plates share, one after the other, beside a spread of different values.

`python -m benchmarks.plate_levels --rows rows.jsonl --seeds 20` prints a Markdown table: the regret
of `recommend(anywhere=True)` after five plates of 24 wells that share a temperature, on functions
with one peak, with and without shifts between plates. A spread is five temperatures at even
distances over the range, or drawn at random, each on one plate, in random order; wells are chosen
as usual. The file holds a line for each run, and those in it are not run again, so that it can be
stopped and gone on with; of a packed file (.gz) only the table is printed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.race.runner import read
from covey import Choice, Layout, Real, Space, Study

PLATES, WELLS, BLANKS, NOISE, STUCK = 5, 24, 2, 1.5, 10.0
LIGANDS = {"XPhos": 0.95, "SPhos": 0.8, "PPh3": 0.4, "dppf": 0.6}
SOLVENTS = {"water": 0.5, "DMF": 1.0, "THF": 0.8}
RULES = ("covey", "even spread", "random spread")
SHIFTS = {"shifts": 2.0, "no shifts": 0.0}  # their standard deviation


@dataclass(frozen=True)
class Reaction:
    """A yield with one peak: at a temperature, and at a value of what differs from well to well."""

    best: float  # temperature of the peak
    width: float
    low: float
    high: float
    coupling: bool  # ligand and concentration differ from well to well; else solvent and pH

    @property
    def temperatures(self) -> list[float]:
        """All temperatures, in steps of 5."""
        return [float(t) for t in np.arange(self.low, self.high + 1.0, 5.0)]

    @property
    def space(self) -> Space:
        """What is searched."""
        shared = {"temperature": Real(self.low, self.high, step=5)}
        if self.coupling:
            conc, ligand = Real(0.02, 0.5, log=True), Choice(list(LIGANDS))
            return Space(shared | {"conc": conc, "ligand": ligand})
        return Space(shared | {"ph": Real(4.0, 9.0), "solvent": Choice(list(SOLVENTS))})

    def __call__(self, point: Mapping[str, Any]) -> float:
        """The yield in percent."""
        warm = math.exp(-(((point["temperature"] - self.best) / self.width) ** 2))
        if self.coupling:
            apart = math.log(point["conc"] / 0.15) ** 2
            return 95.0 * LIGANDS[point["ligand"]] * warm * math.exp(-apart / 3.0)
        return 80.0 * SOLVENTS[point["solvent"]] * warm * (1.0 - 0.08 * (point["ph"] - 6.3) ** 2)

    @property
    def most(self) -> float:
        """The largest yield."""
        wells = {"conc": 0.15, "ligand": "XPhos", "ph": 6.3, "solvent": "DMF"}
        return max(self({"temperature": t, **wells}) for t in self.temperatures)


FUNCTIONS = {
    "coupling, 90 of 40 to 110": Reaction(90.0, 35.0, 40.0, 110.0, coupling=True),
    "coupling, 75 of 40 to 110": Reaction(75.0, 35.0, 40.0, 110.0, coupling=True),
    "peak at 20 %": Reaction(40.0, 30.0, 20.0, 120.0, coupling=False),
    "peak at 40 %": Reaction(60.0, 30.0, 20.0, 120.0, coupling=False),
    "peak at 60 %": Reaction(80.0, 30.0, 20.0, 120.0, coupling=False),
    "peak at 80 %": Reaction(100.0, 30.0, 20.0, 120.0, coupling=False),
}


def spread_of(rule: str, f: Reaction, seed: int) -> list[float]:
    """Five different temperatures in random order."""
    rng = random.Random(seed + 500)
    if rule == "random spread":
        return rng.sample(f.temperatures, PLATES)
    shares = (np.arange(PLATES) + 0.5) / PLATES
    places = np.rint(shares * (len(f.temperatures) - 1)).astype(int)
    return rng.sample([f.temperatures[i] for i in places], PLATES)


def run(job: tuple[str, str, str, int]) -> dict[str, Any]:
    """One row: a function, with or without shifts, a rule and a seed."""
    name, shifts, rule, seed = job
    f, rng = FUNCTIONS[name], random.Random(seed)
    study = Study(f.space, seed=seed)
    effects = ("plate",) if SHIFTS[shifts] else ()
    layout = Layout(WELLS, {"temperature": "plate"}, controls={"blank": BLANKS}, effects=effects)
    temperatures = []
    for number in range(PLATES):
        fixed = None if rule == "covey" else {"temperature": spread_of(rule, f, seed)[number]}
        (plate,) = study.ask_plates(1, layout, fixed=fixed)
        temperatures.append(plate.held["temperature"])
        shift = rng.gauss(0.0, SHIFTS[shifts])
        true = {well.name: f(well.point) if well.point else 0.0 for well in plate.used}
        read = {well: value + shift + rng.gauss(0.0, NOISE) for well, value in true.items()}
        study.tell_plate(plate, read, turned=False)
    point = study.recommend(anywhere=True).point
    regret = f.most - f(point)
    row = {"function": name, "shifts": shifts, "rule": rule, "seed": seed, "regret": regret}
    return row | {"temperatures": temperatures, "recommended": point["temperature"]}


def key_of(row: Mapping[str, Any]) -> tuple[str, str, str, int]:
    """What a row is about."""
    return row["function"], row["shifts"], row["rule"], row["seed"]


def jobs(seeds: Iterable[int]) -> list[tuple[str, str, str, int]]:
    """All rows that are wanted, seed by seed; the even spread comes last."""
    cells = [(name, shifts) for name in FUNCTIONS for shifts in SHIFTS]
    groups = ((RULES[0], RULES[2]), RULES[1:2])
    return [(*c, rule, seed) for rules in groups for seed in seeds for c in cells for rule in rules]


def table(rows: list[dict[str, Any]]) -> str:
    """Mean regret of each rule, paired differences with their standard errors, and stuck runs."""
    heads = ["function", "", *RULES, *(f"less {rule}" for rule in RULES[1:]), "stuck", "seeds"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in FUNCTIONS:
        for shifts in SHIFTS:
            mine = [row for row in rows if key_of(row)[:2] == (name, shifts)]
            each = {r: {o["seed"]: o["regret"] for o in mine if o["rule"] == r} for r in RULES}
            if each["covey"]:
                lines.append(f"| {name} | {shifts} | {_cells(each)} | {len(each['covey'])} |")
    return "\n".join(lines)


def _cells(each: Mapping[str, Mapping[int, float]]) -> str:
    """Means of the rules, differences to the spreads, and how many runs are stuck."""
    cells = [f"{np.mean([*each[rule].values()]):.2f}" if each[rule] else "" for rule in RULES]
    for rule in RULES[1:]:
        both = [each["covey"][s] - each[rule][s] for s in each["covey"] if s in each[rule]]
        error = np.std(both, ddof=1) / math.sqrt(len(both)) if len(both) > 1 else math.nan
        cells.append(f"{np.mean(both):+.2f} ± {error:.2f}" if both else "")
    stuck = " / ".join(str(sum(r > STUCK for r in each[rule].values())) for rule in RULES)
    return " | ".join([*cells, stuck])


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if given.rows.suffix != ".gz":  # else kept results: nothing is added
        run_missing(given)
    print(table(read(given.rows)))


def run_missing(given: argparse.Namespace) -> None:
    """Add the rows that there are not yet, over processes."""
    done = {key_of(row) for row in read(given.rows)}
    wanted = jobs(range(given.first, given.first + given.seeds))
    left = [job for job in wanted if job not in done]
    with ProcessPoolExecutor(given.processes) as pool, given.rows.open("a") as file:
        for future in as_completed([pool.submit(run, job) for job in left]):
            file.write(json.dumps(future.result()) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
