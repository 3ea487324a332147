"""`covey doctor` (facts for a bug report), `covey journal` (verify, repair) and `covey demo`."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import covey
from covey.cli.options import FILE, DryRun, Force, Json
from covey.cli.output import ExitCode, Output, Stop, printable, put, put_json, say
from covey.cli.settings import read_settings
from covey.disk import drive_kind
from covey.errors import CoveyError, MissingExtraError, several
from covey.log import repair
from covey.log.journal import read

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_PACKAGES = ("numpy", "scipy", "typer", "rich", "threadpoolctl", "cloudpickle")
_EXTRAS = (
    *("matplotlib", "jinja2", "pandas", "pyarrow", "torch", "botorch", "optuna", "ray"),
    *("distributed", "scikit-learn", "ax-platform", "ConfigSpace"),
)


def doctor(
    folder: Annotated[Path, typer.Argument(help="Where the study is.")] = Path(),
    as_json: Json = False,
) -> None:
    """Describe the machine, the installation and the study here, for a bug report.

    \b
    covey doctor
    covey doctor --json
    """
    facts = {
        "covey": covey.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "extras": {name: v for name in _EXTRAS if (v := _version(name)) != "missing"},
        "threads": {k: v for k, v in os.environ.items() if k.endswith("_NUM_THREADS")},
        "drive": drive_kind(folder) or "unknown",
        "fsync_ms": _fsync_ms(folder),
        "clock": datetime.now(UTC).isoformat(timespec="seconds"),
        "stdout_is_a_terminal": sys.stdout.isatty(),
        "study": _study(folder / FILE),
    }
    if as_json:
        put_json("covey.doctor/1", facts)
        return
    for name, fact in facts.items():
        put(f"{name:20} {_shown(fact)}")


def _shown(fact: Any) -> str:
    if isinstance(fact, dict):
        return ", ".join(f"{k} {v}" for k, v in fact.items()) or "none"
    return str(fact)


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _fsync_ms(folder: Path) -> float | str:
    """Median milliseconds of writing a short line durably, in this folder."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            times = []
            for _ in range(9):
                start = time.perf_counter()
                file.write(b"covey\n")
                file.flush()
                os.fsync(file.fileno())
                times.append(1e3 * (time.perf_counter() - start))
    except OSError as error:
        return f"cannot write here: {error.strerror}"
    return round(sorted(times)[4], 3)


def _study(path: Path) -> str:
    if not path.exists():
        return f"no {path.name} here"
    try:
        settings = read_settings(path)
        if not settings.journal.exists():
            return f"{path.name} is fine, nothing was asked yet"
        events = len(read(settings.journal).events)
        verify = "event verifies" if events == 1 else "events verify"
        return f"{path.name} is fine, {events} {verify}"
    except CoveyError as error:
        return f"error: {error}"


# `covey journal verify` and `covey journal repair`.


def verify(journal: Path, as_json: Json = False) -> None:
    """Check every line; a damaged one is named by line and byte, with exit code 6.

    \b
    covey journal verify covey.jsonl
    """
    contents = read(journal, prefix=True)
    damage = contents.damage
    if as_json:
        fields = {
            "path": str(journal),
            "events": len(contents.events),
            "bytes": contents.size,
            "torn_bytes": len(contents.torn),
            "damage": None if damage is None else {"line": damage.line, "byte": damage.offset},
        }
        put_json("covey.journal.verify/1", fields)
    else:
        verify = "verifies" if len(contents.events) == 1 else "verify"
        events = several(len(contents.events), "event")
        put(f"{journal}: {events} in {contents.size} bytes {verify}")
    if contents.torn:
        say(
            f"a torn line of {several(len(contents.torn), 'byte')} at the end was never "
            "acknowledged; the next write sets it aside."
        )
    if damage is not None:
        raise damage


def repair_copy(
    journal: Path,
    out: Annotated[Path, typer.Option("--out", "-o", help="A new file.")],
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Write every line before the first damaged one to a new file; the damaged file is not changed.

    \b
    covey journal repair covey.jsonl --out mended.jsonl
    """
    contents = read(journal, prefix=True) if dry_run else repair(journal, out)
    if not as_json:
        verb = "would be written" if dry_run else "written"
        put(f"{several(len(contents.events), 'event')} {verb} to {out}")
    else:
        fields = {"path": str(journal), "out": str(out), "events": len(contents.events)}
        put_json("covey.journal.repair/1", {**fields, "dry_run": dry_run})
    if contents.damage is None and not contents.torn:
        say("the journal was whole; the copy is the same.")
    elif contents.damage is not None:
        say(f"what follows line {contents.damage.line - 1} is not in it, and still in {journal}.")
    if dry_run and out.exists():
        raise Stop(ExitCode.CONFLICT, f"{out} exists already; name another file.")


# The demo: one study from first batch to picture, with live progress.


def demo(
    batch: Annotated[int, typer.Option(min=1, help="Points per batch.")] = 8,
    rounds: Annotated[int, typer.Option(min=1, help="Number of batches.")] = 12,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    out: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path("covey-demo.png"),
    force: Force = False,
) -> None:
    """Maximise Hartmann-6, a function of six variables, in batches.

    \b
    covey demo --batch 4 --rounds 5 --out run.png
    """
    from rich.console import Console

    from covey.bench import hartmann6
    from covey.report import draw_run, picture_path

    picture_path(out)
    Output(out, force=force).require_free()
    problem = hartmann6()
    study = covey.Study(problem.space, goal="max", seed=seed)
    # No markup: the brackets of covey[plot] are literal.
    talk = Console(stderr=True, markup=False)
    data = Console(highlight=False, markup=False, soft_wrap=True)
    talk.print(
        f"Hartmann-6, a function of six variables, in {rounds} x {batch} evaluations; "
        f"the maximum is {problem.optimum:.5f}."
    )
    with _bar(talk) as progress:
        task = progress.add_task("demo", total=rounds, best="-")
        for done in range(1, rounds + 1):
            trials = study.ask(batch)
            study.tell(trials, [problem.f(trial.point) for trial in trials])
            best = study.history.best("max")
            value = f"{best.value:.5f}" if best is not None else "-"
            progress.update(task, advance=1, best=value)
            if not talk.is_terminal:
                talk.print(f"batch {done}/{rounds}: best {value}")
    best = study.best
    if best is None or best.value is None:
        return
    point = ", ".join(f"{name}={x:.4f}" for name, x in best.point.items())
    data.print(f"best value {best.value:.5f} (regret {problem.regret(best.value):.2g}) at {point}")
    try:
        where = draw_run(study.history, "max", out, f"Hartmann-6, batches of {batch}")
        data.print(printable(f"picture saved to {where.resolve()}"))
    except MissingExtraError as error:
        talk.print(f"no picture: {error}")


def _bar(talk: Console) -> Progress:
    """A progress bar, shown on a terminal only."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("batch {task.completed}/{task.total}"),
        BarColumn(),
        TextColumn("best {task.fields[best]}"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=talk, disable=not talk.is_terminal)
