"""What failures cost: how many come, how much regret stays, and what other ways would cost.

`python -m benchmarks.failures --rows rows.jsonl` prints a Markdown table. The file holds a line for
each run, and those in it are not run again, so that it can be stopped and gone on with. One seed
takes two minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from covey import Integer, Real, Space, Study, Trial

Fails = Callable[[Mapping[str, Any], np.random.Generator], bool]

BATCH, ROUNDS = 8, 8
PLANE = Space({"x": Real(-5.0, 10.0), "y": Real(0.0, 15.0)})
NETS = Space(
    {
        "layers": Integer(1, 64),
        "width": Integer(16, 1024, log=True),
        "lr": Real(1e-5, 0.1, log=True),
    }
)
WAYS = ("learnt", "penalty", "ignored")


def cube(d: int) -> Space:
    """The unit cube."""
    return Space({f"x{i}": Real(0.0, 1.0) for i in range(d)})


def coordinates(point: Mapping[str, Any]) -> np.ndarray:
    """The point of a cube as an array (d,)."""
    return np.array(list(point.values()), dtype=float)


@dataclass(frozen=True)
class Case:
    """Something to maximise that fails here and there, and the most to be had where it does not."""

    name: str
    space: Space
    f: Callable[[Mapping[str, Any]], float]
    fails: Fails
    most: float
    near: float  # regret at which it counts as found


def slope(point: Mapping[str, Any]) -> float:
    """Rises towards x0 = 0.9, with a ripple across."""
    x, y = coordinates(point)
    return float(-((x - 0.9) ** 2) - 0.3 * (y - 0.3 - 0.2 * np.sin(5.0 * x)) ** 2)


def bowl(point: Mapping[str, Any]) -> float:
    """A summit 0.05 from the border through the middle of the cube."""
    return float(-np.square(coordinates(point) - 0.475).sum())


_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
_SUMMIT = np.array([0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573])


def hartmann(point: Mapping[str, Any]) -> float:
    """Hartmann's in six dimensions: 3.32237 at the summit."""
    x = coordinates(point)
    return float(np.exp(-(_A * np.square(x - _P)).sum(axis=1)) @ np.array([1.0, 1.2, 3.0, 3.2]))


def _across() -> np.ndarray:
    """The normal of a plane through the middle of the cube, 0.05 from Hartmann's summit."""
    away = 0.5 - _SUMMIT
    length = float(np.linalg.norm(away))
    side = np.array([1.0, -1.0, 1.0, -1.0, 1.0, 1.0])
    side -= side @ away / length**2 * away
    side /= np.linalg.norm(side)
    part = 0.05 / length
    return part * away / length + math.sqrt(1.0 - part**2) * side


_NORMAL = _across()


def accuracy(point: Mapping[str, Any]) -> float:
    """The larger the net the better, at the right rate of learning."""
    return math.log(point["layers"] * point["width"]) - (math.log10(point["lr"]) + 3.0) ** 2


def branin(point: Mapping[str, Any]) -> float:
    """Turned up: three summits of height -0.397887."""
    x, y = point["x"], point["y"]
    bend = y - 5.1 / (4.0 * math.pi**2) * x**2 + 5.0 / math.pi * x - 6.0
    return -(bend**2) - 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(x) - 10.0


def _best_of_slope() -> float:
    """The most that `slope` has where x0 is at most a half."""
    y = np.linspace(0.0, 1.0, 20001)
    return max(slope({"x0": 0.5, "x1": one}) for one in y)


BORDERS = (
    Case(
        "2-d: rises beyond x > 0.5",
        cube(2),
        slope,
        lambda p, _: p["x0"] > 0.5,
        _best_of_slope(),
        1e-3,
    ),
    Case("4-d: summit 0.05 off", cube(4), bowl, lambda p, _: sum(p.values()) > 2.0, 0.0, 1e-3),
    Case(
        "6-d: Hartmann's summit 0.05 off",
        *(cube(6), hartmann),
        fails=lambda p, _: bool(_NORMAL @ (coordinates(p) - 0.5) > 0.0),
        most=3.32237,
        near=0.1,
    ),
    Case(
        "3-d, mixed: too large a net",
        *(NETS, accuracy),
        fails=lambda p, _: p["layers"] * p["width"] > 4000,
        most=math.log(4000),
        near=0.05,
    ),
)
AT_RANDOM = (
    Case(
        "Branin, 30 % at random", PLANE, branin, lambda _, rng: rng.random() < 0.3, -0.397887, 0.05
    ),
    Case(
        "Hartmann, 30 % at random",
        *(cube(6), hartmann),
        fails=lambda _, rng: rng.random() < 0.3,
        most=3.32237,
        near=0.1,
    ),
)
CASES = {case.name: case for case in (*BORDERS, *AT_RANDOM)}


def settle(study: Study, broken: list[Trial], how: str, told: list[float]) -> None:
    """Record trials that failed; ``told`` are the values so far."""
    if how == "penalty" and told:
        study.tell(broken, [min(told)] * len(broken))
    elif how == "ignored":
        study.cancel(broken)
    else:
        study.fail(broken)


def one_run(case: Case, how: str, seed: int, strategy: str) -> dict[str, Any]:
    """How many of each batch failed, and the regret after it."""
    rng = np.random.default_rng(seed)
    study = Study(case.space, strategy=strategy, seed=seed)
    failed, regrets, best = [], [], -math.inf
    for _ in range(ROUNDS):
        failed.append(0)
        broken = []
        for trial in study.ask(BATCH):
            if case.fails(trial.point, rng):
                failed[-1] += 1
                broken.append(trial)
            else:
                value = case.f(trial.point)
                best = max(best, value)
                study.tell(trial, value)
        told = [t.value for t in study.history.told if t.value is not None]
        if broken:
            settle(study, broken, how, told)
        regrets.append(case.most - best)
    return {"case": case.name, "way": how, "seed": seed, "failed": failed, "regrets": regrets}


def summary(case: Case, how: str, rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """A line of the table."""
    failed = np.array([row["failed"] for row in rows]) / BATCH
    regrets = np.array([row["regrets"] for row in rows])
    found = [
        next((i + 1 for i, r in enumerate(one) if r < case.near), ROUNDS + 1) for one in regrets
    ]
    shares = [
        f"{100.0 * failed[:, part].mean():.0f}" for part in (slice(0, 2), slice(2, 4), slice(4, 8))
    ]
    middle = [f"{np.median(regrets[:, i]):.2g}" for i in (1, 3, 7)]
    return (
        case.name,
        how,
        str(len(rows)),
        " / ".join(shares),
        " / ".join(middle),
        f"{regrets[:, -1].mean():.2g}",
        f"{np.mean(found):.1f}",
    )


HEAD = (
    *("problem", "failures", "seeds", "% failing in batches 1-2 / 3-4 / 5-8"),
    *("median regret after 2 / 4 / 8", "mean after 8", "batches to find"),
)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=100, help="the first seed")
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--only", default="", help="problems whose name begins like this")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--rows", type=Path, help="runs so far; new ones are appended")
    given = parser.parse_args()
    lines = given.rows.read_text().splitlines() if given.rows and given.rows.exists() else []
    rows = {(r["case"], r["way"], r["seed"]): r for r in map(json.loads, lines)}
    wanted = [case for name, case in CASES.items() if name.startswith(given.only)]
    ways = given.ways.split(",")
    for seed in range(given.first, given.first + given.seeds):
        for case in wanted:
            for how in ways:
                if (case.name, how, seed) in rows:
                    continue
                row = one_run(case, how, seed, given.strategy)
                rows[case.name, how, seed] = row
                if given.rows:
                    with given.rows.open("a") as file:
                        print(json.dumps(row), file=file)
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for case in wanted:
        for how in ways:
            mine = [r for key, r in rows.items() if key[:2] == (case.name, how)]
            print(f"| {' | '.join(summary(case, how, mine))} |")


if __name__ == "__main__":
    main()
