"""Abalone as a problem of finitely many arms: find the oldest of 4177 snails.

Contal et al. (2013), whom the paper follows, name 8 dimensions and no code for the sex. Ours is
three 0/1 columns, for infants, females and males have no order that a distance should know; the
seven measurements are scaled to [0, 1]. The value is the number of rings (an age is rings + 1.5,
the same regret), the same at each look: there is no noise.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from covey import Pool
from papers.kathuria2016.data import fetch
from papers.kathuria2016.problem import Problem

COLUMNS = (
    "sex",
    "length",
    "diameter",
    "height",
    "whole_weight",
    "shucked_weight",
    "viscera_weight",
    "shell_weight",
)


def abalone(folder: str | Path | None = None) -> Problem:
    """The 4177 rows, one arm each; the most rings, 29, are had by one of them."""
    with fetch("abalone/abalone.data", folder).open(encoding="ascii", newline="") as file:
        table = list(csv.reader(file))
    cells = [(row[0], *map(float, row[1:-1])) for row in table]
    pool = Pool([dict(zip(COLUMNS, row, strict=True)) for row in cells])
    rings = [float(row[-1]) for row in table]

    def evaluate(point: Mapping[str, Any]) -> float:
        return rings[int(pool.locate([point])[0])]

    source = "UCI Abalone (Nash et al. 1994); the optimum is the largest of the table"
    return Problem("abalone", "Abalone", pool, evaluate, max(rings), 0.0, source)
