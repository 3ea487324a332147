"""The spread of FastXML's Precision@1 over its grid: what there is to be won by tuning it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np

from papers.kathuria2016.fastxml.settings import GRID, Settings
from papers.kathuria2016.fastxml.table import TABLES, read
from papers.kathuria2016.problems.fastxml import settings_of
from papers.kathuria2016.report import tabulated

TITLES = {"bibtex": "Bibtex", "delicious": "Delicious"}


def lines(folder: Path = TABLES) -> Iterator[str]:
    """Of each whole table the least, the middle and the best, and what the defaults give."""
    found = {title: precisions(folder / f"{name}.jsonl") for name, title in TITLES.items()}
    body = [
        [title, str(len(own)), *(f"{x:.1f}" for x in _summed(own))]
        for title, own in found.items()
        if len(own) == len(GRID.pairs) * _cuts()
    ]
    if body:
        yield (
            "The paper says that FastXML's performance depends on its parameters to a reasonable "
            "amount (section 4). Precision@1 in percent over our grid:"
        )
        head = ["", "settings", "least", "lower quartile", "median", "best", "at the defaults"]
        yield from ("", *tabulated(head, body))


def precisions(path: Path) -> dict[tuple[float, ...], float]:
    """Precision@1 in percent of each setting in a table."""
    return {
        tuple(setting.values()): value
        for line in read(path)
        for setting, value in settings_of(line)
    }


def core_hours(folder: Path = TABLES) -> float:
    """What the tables took, on one core."""
    each = (line["cpu_seconds"] for name in TITLES for line in read(folder / f"{name}.jsonl"))
    return sum(each) / 3600.0


def _summed(own: Mapping[tuple[float, ...], float]) -> list[float]:
    spread = np.quantile(list(own.values()), [0.0, 0.25, 0.5, 1.0])
    return [*spread.tolist(), own[tuple(asdict(Settings()).values())]]


def _cuts() -> int:
    return int(np.prod([len(values) for values in asdict(GRID.cuts).values()]))
