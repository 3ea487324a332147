"""The demo: one study from first batch to picture, with live progress."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from covey.bench import hartmann6
from covey.cli.outputs import Output
from covey.cli.voice import printable
from covey.errors import MissingExtraError
from covey.report import draw_run, picture_path
from covey.study import Study


def run_demo(batch: int, rounds: int, seed: int, out: Path) -> None:
    """Optimise Hartmann-6; talk on stderr, the result on stdout."""
    picture_path(out)
    Output(out, ours=_is_drawn).require_free()
    problem = hartmann6()
    study = Study(problem.space, goal="max", seed=seed)
    # No markup: the brackets of covey[plot] are meant.
    talk = Console(stderr=True, markup=False)
    data = Console(highlight=False, markup=False, soft_wrap=True)
    talk.print(
        f"Hartmann-6, a function of six variables, in {rounds} x {batch} evaluations; "
        f"the maximum is {problem.optimum:.5f}."
    )
    columns = (
        TextColumn("batch {task.completed}/{task.total}"),
        BarColumn(),
        TextColumn("best {task.fields[best]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=talk, disable=not talk.is_terminal) as progress:
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


def _is_drawn(file: BinaryIO) -> bool:
    """Whether a picture was drawn by a program, as ours are, and is no photograph."""
    return b"atplotlib" in file.read()
