"""Results on disk: one line a run, appended as runs end, so that a race can go on later.

A problem's rows are those of ``problem.jsonl.gz``, which is kept with the project, and of
``problem.jsonl``, to which a race appends; `python -m papers.kathuria2016 pack` moves the latter
into the former.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO

from papers.kathuria2016.ground import GROUNDS
from papers.kathuria2016.race import Run

Row = dict[str, Any]

RESULTS = Path(__file__).with_name("results")


def file_of(folder: Path, problem: str) -> Path:
    """The file a race appends to: one a problem, so that two machines can share the work."""
    return folder / f"{problem}.jsonl"


def packed(folder: Path, problem: str) -> Path:
    """The file that is kept."""
    return folder / f"{problem}.jsonl.gz"


def read(path: Path) -> list[Row]:
    """The rows of a file, packed or not; a line cut off by a stop is passed over."""
    if not path.exists():
        return []
    whole = path.read_bytes()
    text = (gzip.decompress(whole) if path.suffix == ".gz" else whole).decode(errors="replace")
    rows = []
    for line in text.splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def read_all(folder: Path, problems: Iterable[str]) -> list[Row]:
    """Rows of finished runs on these problems, one a run: the packed one, where there are two."""
    return [
        row
        for name in problems
        for row in _once(read(packed(folder, name)) + read(file_of(folder, name)))
    ]


def _once(rows: Iterable[Row]) -> list[Row]:
    found: dict[Run, Row] = {}
    for row in rows:
        if "error" not in row:
            found.setdefault(run_of(row), row)
    return list(found.values())


def run_of(row: Row) -> Run:
    """The run that a row is of; rows from before there was a choice of ground have the ends."""
    told = {"ground": "ends", **row}
    return Run(**{field.name: told[field.name] for field in fields(Run)})


def missing(runs: Iterable[Run], folder: Path) -> list[Run]:
    """The runs that have no row yet; one that failed is to be tried again."""
    runs = list(runs)
    done = {run_of(row) for row in read_all(folder, {run.problem for run in runs})}
    return [run for run in runs if run not in done]


@contextmanager
def appending(folder: Path, problems: Iterable[str]) -> Iterator[dict[str, TextIO]]:
    """The files of these problems, open for more lines."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, TextIO] = {}
    try:
        for name in problems:
            path = file_of(folder, name)
            torn = path.exists() and not path.read_bytes().endswith(b"\n")
            files[name] = path.open("a", encoding="utf-8")
            # Or the next row would be lost with the torn one.
            files[name].write("\n" if torn and path.stat().st_size else "")
        yield files
    finally:
        for file in files.values():
            file.close()


def append(file: TextIO, row: Row) -> None:
    """One line, on disk before the next run ends."""
    file.write(json.dumps(row) + "\n")
    file.flush()


def pack(folder: Path, problem: str) -> Path | None:
    """Put all finished rows of a problem into its packed file; None if there are none.

    The same rows give the same bytes, in whatever order they came.
    """
    rows = read_all(folder, [problem])
    if not rows:
        return None
    rows.sort(key=_place)
    buffer = io.BytesIO()
    with gzip.GzipFile("", "wb", 9, buffer, mtime=0) as file:
        file.writelines((json.dumps(row) + "\n").encode() for row in rows)
    path, fresh = packed(folder, problem), packed(folder, f".{problem}")
    fresh.write_bytes(buffer.getvalue())
    fresh.replace(path)  # a stop in between must not cost the rows
    file_of(folder, problem).unlink(missing_ok=True)
    return path


def _place(row: Row) -> tuple[int, int, int, str, str]:
    """Where a row is kept: ground by ground, repetition by repetition."""
    ground = list(GROUNDS).index(run_of(row).ground)
    return (ground, row["seed"], row["batch"], row["entrant"], json.dumps(row))


def declare(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FOLDER", help="of results")


def run(options: argparse.Namespace) -> int:
    """Pack every problem of a folder, while no race is writing there."""
    from rich.console import Console

    from papers.kathuria2016.problems import PROBLEMS

    for name in PROBLEMS:
        if path := pack(options.out, name):
            Console(stderr=True).print(f"wrote {path}", highlight=False, soft_wrap=True)
    return 0
