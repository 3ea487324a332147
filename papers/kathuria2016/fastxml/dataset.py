"""Bibtex and Delicious: Mulan's sparse ARFF files, in their official split."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from papers.kathuria2016.data import DataError, fetch

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from papers.kathuria2016.fastxml.forest import Points


@dataclass(frozen=True)
class Dataset:
    """Files whose rows, one after the other, are the training points and then the test points."""

    files: tuple[str, ...]
    features: int
    labels: int
    train: int
    test: int


DATASETS = {
    "bibtex": Dataset(
        ("bibtex/bibtex-train.arff", "bibtex/bibtex-test.arff"), 1836, 159, 4880, 2515
    ),
    # The first 12920 rows of the one file are the official training set, in its order.
    "delicious": Dataset(("delicious/delicious.arff",), 500, 983, 12920, 3185),
}


def read_rows(path: Path) -> list[list[int]]:
    """Which attributes are 1, row by row of a sparse ARFF file: `{3 1,17 1}` is [3, 17]."""
    rows = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.startswith("{"):
                cells = line.strip().strip("{}").split(",")
                rows.append([int(cell.split()[0]) for cell in cells if cell])
    return rows


def read(paths: list[Path], width: int) -> csr_matrix:
    """The rows of some sparse ARFF files as one 0/1 matrix."""
    from scipy.sparse import csr_matrix

    rows = [row for path in paths for row in read_rows(path)]
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    index = np.concatenate([np.asarray(row, dtype=np.int64) for row in rows])
    return csr_matrix((np.ones(len(index)), index, start), shape=(len(rows), width))


def load(name: str, folder: str | Path | None = None) -> tuple[Points, Points]:
    """The training and the test points of "bibtex" or "delicious"."""
    from papers.kathuria2016.fastxml.forest import Points

    kind = DATASETS[name]
    table = read([fetch(file, folder) for file in kind.files], kind.features + kind.labels)
    if table.shape[0] != kind.train + kind.test:
        raise DataError(f"{name} has {table.shape[0]} rows, not {kind.train + kind.test}")
    x, y = table[:, : kind.features], table[:, kind.features :]
    cut = kind.train
    return Points(x[:cut], y[:cut]), Points(x[cut:], y[cut:])
