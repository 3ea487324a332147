"""Seconds and peak memory of reading a pool: `python -m benchmarks.scale.pools [--rows 1000000]`.

Six numbers and an id; each way in a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.scale.ask import peak_mib
from benchmarks.scale.problem import rows

WAYS = ("array", "csv", "parquet")


def write(folder: Path, n: int) -> None:
    """The same rows as CSV and as Parquet."""
    import polars as pl

    frame = pl.DataFrame(rows(n), schema=[f"x{j}" for j in range(6)])
    frame = frame.with_columns(pl.Series("id", [f"C{i}" for i in range(n)]))
    frame.write_csv(folder / "pool.csv")
    frame.write_parquet(folder / "pool.parquet")


def read(way: str, folder: str, n: int) -> str:
    """Seconds, and the most memory that the process has held."""
    from covey import Pool

    source = rows(n) if way == "array" else str(Path(folder) / f"pool.{way}")
    began = time.perf_counter()
    Pool(source, labels=[] if way == "array" else ["id"])
    return f"| {way} | {time.perf_counter() - began:.1f} | {peak_mib():.0f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--read", nargs=2, metavar=("WAY", "FOLDER"), help="one of them, here")
    wanted = parser.parse_args()
    if wanted.read:
        print(read(*wanted.read, wanted.rows))
        return
    print("| from | seconds | peak MiB |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), wanted.rows)
        for way in WAYS:
            command = [sys.executable, "-m", "benchmarks.scale.pools", "--rows", str(wanted.rows)]
            done = subprocess.run(
                [*command, "--read", way, folder], capture_output=True, text=True, check=True
            )
            print(done.stdout, end="", flush=True)


if __name__ == "__main__":
    main()
