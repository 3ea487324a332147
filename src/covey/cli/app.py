"""The `covey` command. Heavy imports happen inside commands, so that help is quick."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="covey",
    help="Choose the next batch of experiments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from covey import __version__

        typer.echo(f"covey {__version__}")
        raise typer.Exit


@app.callback()
def covey(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Choose the next batch of experiments."""


@app.command()
def demo(
    batch: Annotated[int, typer.Option(min=1, help="Points per batch.")] = 8,
    rounds: Annotated[int, typer.Option(min=1, help="Batches.")] = 12,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    out: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path("covey-demo.png"),
) -> None:
    """Maximise Hartmann-6, a function of six variables, in batches.

    Example: covey demo --batch 4 --rounds 5 --out run.png
    """
    from covey.cli.demo import run_demo

    run_demo(batch, rounds, seed, out)


def main() -> None:
    """Entry point: our own errors become one line on stderr and exit code 1."""
    from covey.errors import CoveyError

    try:
        app()
    except CoveyError as error:
        typer.echo(f"covey: {error}", err=True)
        sys.exit(1)
