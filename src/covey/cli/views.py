"""The commands that look: status, best, export, logs, report, journal, doctor; and the demo.

Heavy imports happen inside, so that help is quick.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from covey.cli.root import Config, DryRun, Json, Out, app, journals

_FILE = Path("covey.toml")


@app.command()
def status(config: Config = _FILE, as_json: Json = False) -> None:
    """Say how far the study is, and what to do next.

    \b
    covey status
    covey status --json
    """
    from covey.cli.look import status as show
    from covey.cli.settings import read_settings

    show(read_settings(config), as_json)


@app.command()
def best(config: Config = _FILE, as_json: Json = False) -> None:
    """The best point told, and the one the model recommends.

    \b
    covey best
    covey best --json
    """
    from covey.cli.look import best as show
    from covey.cli.settings import read_settings

    show(read_settings(config), as_json)


@app.command()
def export(config: Config = _FILE, out: Out = None, as_json: Json = False) -> None:
    """Every trial, as CSV or JSON.

    \b
    covey export
    covey export --out trials.csv
    covey export --json
    """
    from covey.cli.look import export as write
    from covey.cli.settings import read_settings

    write(read_settings(config), out, as_json)


@app.command()
def logs(
    trial: Annotated[int, typer.Argument(metavar="ID", help="Of a trial.")],
    config: Config = _FILE,
    as_json: Json = False,
) -> None:
    """Why a trial failed, and what is kept of what its evaluations printed.

    \b
    covey logs 1
    covey logs 1 --json
    """
    from covey.cli.look import logs as show
    from covey.cli.settings import read_settings

    show(read_settings(config), trial, as_json)


@app.command()
def report(
    config: Config = _FILE,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("covey-report.html"),
    as_json: Json = False,
) -> None:
    """One page about the study, as an HTML file that works offline.

    \b
    covey report
    covey report --out report.html
    covey report --json
    """
    from covey.cli.look import report as write
    from covey.cli.settings import read_settings

    write(read_settings(config), out, as_json)


@journals.command()
def verify(journal: Path, as_json: Json = False) -> None:
    """Check every line; a damaged one is named by line and byte, with exit code 6.

    \b
    covey journal verify covey.jsonl
    """
    from covey.cli.doctor import verify as check

    check(journal, as_json)


@journals.command()
def repair(
    journal: Path,
    out: Annotated[Path, typer.Option("--out", "-o", help="A new file.")],
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Write every line before the first damaged one to a new file; nothing is changed.

    \b
    covey journal repair covey.jsonl --out mended.jsonl
    """
    from covey.cli.doctor import mend

    mend(journal, out, as_json, dry_run)


@app.command()
def doctor(
    folder: Annotated[Path, typer.Argument(help="Where the study is.")] = Path(),
    as_json: Json = False,
) -> None:
    """Look at the machine, the installation and the study here; made for pasting.

    \b
    covey doctor
    covey doctor --json
    """
    from covey.cli.doctor import doctor as look

    look(folder, as_json)


@app.command()
def demo(
    batch: Annotated[int, typer.Option(min=1, help="Points per batch.")] = 8,
    rounds: Annotated[int, typer.Option(min=1, help="Batches.")] = 12,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    out: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path("covey-demo.png"),
) -> None:
    """Maximise Hartmann-6, a function of six variables, in batches.

    \b
    covey demo --batch 4 --rounds 5 --out run.png
    """
    from covey.cli.doctor import run_demo

    run_demo(batch, rounds, seed, out)
