"""Precision@1 over a grid of FastXML's parameters: one training for each (bias, coefficient).

The other three parameters cut the forest of that training down, so a line of the table has them
all. One line is appended when its training is done; a stopped command goes on where it was.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from papers.kathuria2016.data import DataError
from papers.kathuria2016.fastxml.dataset import DATASETS, load
from papers.kathuria2016.fastxml.settings import GRID, Grid, Settings

if TYPE_CHECKING:
    import argparse

    from papers.kathuria2016.fastxml.forest import Points

TABLES = Path(__file__).parents[1] / "tables"


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a table; one cut off by a stop is passed over."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def _append(path: Path, row: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        file.seek(0)
        whole = file.read()
        file.truncate(whole.rfind(b"\n") + 1)  # of a line cut off by a stop nothing is kept
        file.write(json.dumps(row).encode() + b"\n")


def _heading(name: str, grid: Grid, seed: int) -> dict[str, Any]:
    """What all lines of one table share."""
    cuts = grid.cuts
    return {
        "dataset": name,
        "seed": seed,
        "num_tree": list(cuts.num_tree),
        "max_leaf": list(cuts.max_leaf),
        "lbl_per_leaf": list(cuts.lbl_per_leaf),
    }


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in ("covey", "numpy", "scipy", "numba")},
    }


def line(data: tuple[Points, Points], pair: tuple[float, float], grid: Grid, seed: int) -> Any:
    """Counts of right first labels [num_tree][max_leaf][lbl_per_leaf], after one training."""
    from papers.kathuria2016.fastxml.forest import hits, train

    train_points, test_points = data
    cuts = grid.cuts
    settings = Settings(max(cuts.num_tree), *pair, min(cuts.max_leaf), max(cuts.lbl_per_leaf))
    return hits(train(train_points, settings, seed), test_points, cuts).tolist()


def make(
    name: str, path: Path, grid: Grid = GRID, seed: int = 0, data: Any = None
) -> Iterator[dict[str, Any]]:
    """Train for the pairs that are not in the file yet; yields each line once it is written."""
    heading = _heading(name, grid, seed)
    done = read(path)
    if any(row[key] != heading[key] for row in done for key in heading):
        raise DataError(f"{path} holds another table, not {heading}; name another file with --out")
    have = {(row["bias"], row["log_loss_coeff"]) for row in done}
    for pair in grid.pairs:
        if pair in have:
            continue
        data = data or load(name)
        clock, cpu = time.perf_counter(), time.process_time()
        counts = line(data, pair, grid, seed)
        row = {
            **heading,
            "bias": pair[0],
            "log_loss_coeff": pair[1],
            "points": data[1].labels.shape[0],
            "hits": counts,
            "seconds": round(time.perf_counter() - clock, 1),
            "cpu_seconds": round(time.process_time() - cpu, 1),
            "versions": _versions(),
            "command": f"python -m papers.kathuria2016 table {name} --seed {seed}",
        }
        _append(path, row)
        yield row


def declare(parser: argparse.ArgumentParser) -> None:
    """The data set, where it lies, and where the table goes."""
    parser.add_argument("dataset", choices=sorted(DATASETS))
    parser.add_argument("--data", metavar="FOLDER", help="where the data lies (else COVEY_DATA)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: tables/DATASET.jsonl")
    parser.add_argument("--seed", type=int, default=0)


def run(options: argparse.Namespace) -> int:
    """Make what is missing, a line of progress for each training."""
    from rich.console import Console

    say = Console(highlight=False, soft_wrap=True).print
    path = options.out or TABLES / f"{options.dataset}.jsonl"
    left = len(GRID.pairs) - len(read(path))
    say(f"{left} of {len(GRID.pairs)} trainings to do, to {path}")
    data = load(options.dataset, options.data)
    began = time.perf_counter()
    for made, row in enumerate(make(options.dataset, path, GRID, options.seed, data), start=1):
        best = max(c for by_tree in row["hits"] for by_leaf in by_tree for c in by_leaf)
        ahead = (time.perf_counter() - began) / made * (left - made)
        say(
            f"{made}/{left}  bias {row['bias']:g}  coefficient {row['log_loss_coeff']:g}  "
            f"best P@1 {100 * best / row['points']:.2f} %  {row['seconds']:.0f} s  "
            f"{ahead / 60:.0f} min left"
        )
    return 0
