"""Results on disk: one line a run, appended as runs end, so that a race can go on later."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO

from papers.kathuria2016.race import Run

Row = dict[str, Any]


def file_of(folder: Path, problem: str) -> Path:
    """The file of a problem: one each, so that two machines can share the work."""
    return folder / f"{problem}.jsonl"


def read(path: Path) -> list[Row]:
    """The rows of a file; a line cut off by a stop is passed over."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def read_all(folder: Path, problems: Iterable[str]) -> list[Row]:
    """Rows of finished runs on these problems."""
    return [row for name in problems for row in read(file_of(folder, name)) if "error" not in row]


def run_of(row: Row) -> Run:
    """The run that a row is of."""
    return Run(**{field.name: row[field.name] for field in fields(Run)})


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
