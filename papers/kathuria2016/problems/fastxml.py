"""FastXML's five parameters, as a pool: Precision@1 from the tables this project has made.

All five are seen in logs, as their ranges suggest; the values themselves are carried along as
labels. The table is of one seed, so that the value of a setting is the same at each look. The line
of the grid search lies at the optimum of that table: it can be reached, and not be passed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from covey import Pool
from papers.kathuria2016.data import DataError
from papers.kathuria2016.fastxml.settings import GRID
from papers.kathuria2016.fastxml.table import TABLES, read
from papers.kathuria2016.problem import Problem

PARAMETERS = ("num_tree", "bias", "log_loss_coeff", "max_leaf", "lbl_per_leaf")


def settings_of(line: Mapping[str, Any]) -> Iterator[tuple[dict[str, float], float]]:
    """Each setting of a line of a table, with its Precision@1 in percent."""
    cuts = [list(enumerate(line[name])) for name in ("num_tree", "max_leaf", "lbl_per_leaf")]
    for (t, trees), (m, max_leaf), (k, kept) in product(*cuts):
        values = (trees, line["bias"], line["log_loss_coeff"], max_leaf, kept)
        share = 100.0 * line["hits"][t][m][k] / line["points"]
        yield dict(zip(PARAMETERS, values, strict=True)), share


def from_table(name: str, title: str, path: Path, trainings: int = len(GRID.pairs)) -> Problem:
    """The pool of all settings in a table of so many trainings, its optimum the best of them."""
    lines = read(path)
    if len(lines) != trainings:
        raise DataError(
            f"{path} holds {len(lines)} of {trainings} trainings. Make the rest with: "
            f"python -m papers.kathuria2016 table {name}"
        )
    settings, values = zip(*(each for line in lines for each in settings_of(line)), strict=True)
    logs = [{f"log_{key}": math.log(value) for key, value in each.items()} for each in settings]
    rows = [{**seen, **each} for seen, each in zip(logs, settings, strict=True)]
    pool = Pool(rows, labels=PARAMETERS)

    def evaluate(point: Mapping[str, Any]) -> float:
        return values[int(pool.locate([point])[0])]

    best = max(values)
    source = (
        f"our FastXML on {title}, Precision@1 in percent on the official test points, seed "
        f"{lines[0]['seed']}; the optimum is the best of {pool.size} settings tabulated"
    )
    return Problem(name, f"FastXML {title}", pool, evaluate, best, 0.0, source, grid=best)


def bibtex() -> Problem:
    """FastXML on Bibtex."""
    return from_table("bibtex", "Bibtex", TABLES / "bibtex.jsonl")


def delicious() -> Problem:
    """FastXML on Delicious."""
    return from_table("delicious", "Delicious", TABLES / "delicious.jsonl")
