"""The suite: which runs there are, run in parallel, then drawn and judged."""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from covey import Pool
from papers.kathuria2016.entrants import ENTRANTS, PAPER_GP
from papers.kathuria2016.ground import GROUNDS
from papers.kathuria2016.problems import PROBLEMS, problem
from papers.kathuria2016.race import Run, race
from papers.kathuria2016.results import RESULTS, Row, append, appending, missing, read_all


@dataclass(frozen=True)
class Tier:
    """How much of it: repetitions, looks after the first, draws of the hyper-parameters."""

    seeds: int
    evaluations: int
    samples: int


FULL = Tier(seeds=50, evaluations=100, samples=PAPER_GP.samples)
QUICK = Tier(seeds=2, evaluations=20, samples=3)


def declare(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument("--quick", action="store_true", help="few and short runs, to see it work")
    parser.add_argument("--figures-only", action="store_true", help="from the results there are")
    parser.add_argument("--rows-only", action="store_true", help="run, and draw and judge nothing")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="data sets; else downloaded")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="of results and figures")
    parser.add_argument(
        "--workers",
        type=int,
        default=os.cpu_count(),
        metavar="N",
        help="processes; one a core unless told",
    )
    parser.add_argument(
        "--batches",
        type=int,
        nargs="+",
        default=[5, 10],
        metavar="B",
        help="batch sizes; 5 and 10 unless told",
    )
    parser.add_argument(
        "--entrants",
        nargs="+",
        default=list(ENTRANTS),
        choices=list(ENTRANTS),
        metavar="NAME",
        help="methods by the names of `list`; all unless told",
    )
    parser.add_argument(
        "--grounds",
        nargs="+",
        default=["ends"],
        choices=list(GROUNDS),
        metavar="GROUND",
        help=f"{'; '.join(f'{name}: {words}' for name, words in GROUNDS.items())}; "
        "ends unless told, and a pool has no other",
    )
    for name in asdict(FULL):
        parser.add_argument(
            f"--{name}", type=int, metavar="N", help=f"instead of the tier's {name}"
        )


def run(options: argparse.Namespace) -> int:
    """Run what is missing, then draw and judge all there is; 1 if a problem could not be run."""
    console = Console(stderr=True)
    if options.data:
        os.environ["COVEY_DATA"] = str(options.data.resolve())
    out = options.out or (RESULTS / "quick" if options.quick else RESULTS)
    names = list(PROBLEMS) if options.verb == "all" else [options.verb]
    absent: list[str] = []
    if not options.figures_only:
        absent = [name for name in names if not _ready(name, options.grounds, console)]
        runs = planned(options, [name for name in names if name not in absent])
        try:
            race_all(runs, out, options.workers)
        except KeyboardInterrupt:
            console.print("stopped; the same command goes on from here")
            return 130
    return (0 if options.rows_only else publish(out, console)) or bool(absent)


def planned(options: argparse.Namespace, problems: list[str]) -> list[Run]:
    """Every run asked for, repetition by repetition, so that a stop leaves whole ones."""
    tier = asdict(QUICK if options.quick else FULL)
    tier |= {name: value for name in tier if (value := getattr(options, name)) is not None}
    return [
        Run(entrant, name, batch, seed, tier["evaluations"], tier["samples"], ground)
        for seed in range(tier["seeds"])
        for name in problems
        for ground in options.grounds
        for batch in options.batches
        for entrant in options.entrants
    ]


def _ready(name: str, grounds: list[str], console: Console) -> bool:
    """Whether the problem can be run here: its data, its table or numba may be missing."""
    why = ""
    try:
        if isinstance(problem(name).space, Pool) and set(grounds) != {"ends"}:
            why = "its ground is a pool, for which there is no choice; leave --grounds out"
    except (OSError, ImportError) as error:
        why = str(error)
    if why:
        console.print(f"{name} is left out: {why}", highlight=False, markup=False)
    return not why


def race_all(runs: list[Run], folder: Path, workers: int) -> int:
    """Run what is missing; how many runs failed. They say why in their rows."""
    left, failed = missing(runs, folder), 0
    bar = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        appending(folder, sorted({run.problem for run in left})) as files,
        Progress(TextColumn("{task.description}"), *bar, console=Console(stderr=True)) as progress,
    ):
        task = progress.add_task("runs", total=len(runs), completed=len(runs) - len(left))
        for row in _rows(left, workers):
            append(files[row["problem"]], row)
            failed += "error" in row
            words = f"runs, {failed} failed" if failed else "runs"
            progress.update(task, advance=1, description=words)
    return failed


def _rows(runs: list[Run], workers: int) -> Iterator[Row]:
    """A row for each run, as they end."""
    if workers <= 1:
        yield from map(attempt, runs)
        return
    with _pool(workers) as pool:
        for future in as_completed([pool.submit(attempt, run) for run in runs]):
            yield future.result()


def attempt(run: Run) -> Row:
    """The row of a run; of one that fails, why."""
    try:
        return race(run)
    except Exception as error:
        return {**asdict(run), "error": repr(error)}


def _let_the_parent_stop() -> None:
    """An interrupt reaches every process of a terminal: the runs under way end in peace."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes of one thread each; a stop does not wait for what is queued."""
    # Else a parent told to end would leave its children waiting for ever.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")})
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _let_the_parent_stop)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        signal.signal(signal.SIGTERM, before)


def publish(out: Path, console: Console) -> int:
    """Figures and tables of everything in the folder; 1 if there is nothing.

    The findings in the README are written from the results that are kept with it, and no others.
    """
    from papers.kathuria2016 import draws, findings, grounds
    from papers.kathuria2016.figures import draw
    from papers.kathuria2016.report import lines

    rows = read_all(out, PROBLEMS)
    if not rows:
        console.print(f"there are no finished runs in {out}; run without --figures-only")
        return 1
    tables, claims = out / "tables.md", out / "claims.md"
    tables.write_text("\n".join([*lines(rows), *grounds.details(rows)]) + "\n", encoding="utf-8")
    claims.write_text("\n".join(findings.proof(rows)) + "\n", encoding="utf-8")
    paths = [*draw(rows, out), tables, claims]
    if out.resolve() == RESULTS.resolve():
        findings.write(rows, read_all(draws.TEN, PROBLEMS), findings.README)
        paths.append(findings.README)
    for path in paths:
        console.print(f"wrote {path}", highlight=False)
    return 0
