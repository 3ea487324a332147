"""Draw the picture of docs/outcomes.md: a front of two goals under a limit.

Run it from anywhere: `python docs/pictures/draw_front.py`; it writes front.png beside itself.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import covey
from covey.report import draw_front

SOLVENTS = {"water": (0.6, 0.0), "dmf": (1.0, 25.0), "thf": (0.8, 10.0)}  # yield, price


def measured(point: dict[str, Any]) -> dict[str, float]:
    """Yield, cost and impurity of a reaction: hotter and longer is better until it is not."""
    good, price = SOLVENTS[point["solvent"]]
    heat = math.exp(-(((point["temperature"] - 85.0) / 30.0) ** 2))
    done = 1.0 - math.exp(-point["hours"] / 5.0)
    return {
        "yield": 100.0 * heat * done * good,
        "cost": 10.0 + 2.0 * point["hours"] + 0.2 * (point["temperature"] - 20.0) + price,
        "impurity": 0.5 + 4.0 * (point["temperature"] / 120.0) ** 3,
    }


def main() -> None:
    """Five batches of eight."""
    space = covey.Space(
        {
            "temperature": covey.Real(20.0, 120.0),
            "hours": covey.Real(0.5, 24.0, log=True),
            "solvent": covey.Choice(list(SOLVENTS)),
        }
    )
    study = covey.Study(
        space, goal={"yield": "max", "cost": "min"}, limits={"impurity": ("<=", 2.0)}, seed=1
    )
    for _ in range(5):
        batch = study.ask(8)
        study.tell(batch, [measured(trial.point) for trial in batch])
    draw_front(
        study, Path(__file__).with_name("front.png"), "yield against cost, five batches of 8"
    )


if __name__ == "__main__":
    main()
