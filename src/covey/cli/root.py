"""The root of the command line: what `covey` is before it does anything."""

from __future__ import annotations

from typing import Annotated

import typer

from covey.cli.group import Suggesting

app = typer.Typer(
    name="covey",
    cls=Suggesting,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
journals = typer.Typer(
    cls=Suggesting,
    help="Check a journal, or save what precedes a damaged line.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(journals, name="journal")


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
    """Choose the next batch of experiments.

    \b
    covey init --real lr=1e-5:0.1:log --integer layers=1:8 --choice opt=adam,sgd
    covey ask
    covey tell 0=0.81 1=0.79
    covey status

    Data goes to stdout, talk to stderr. Exit codes: 0 done, 1 failed, 2 usage, 3 conflict or not
    found, 5 invalid input (nothing was recorded), 6 journal damaged, 7 nothing to do, 130 Ctrl-C.
    """
