"""The root of the command line: what `covey` is before it does anything."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from covey.cli.output import ExitCode, Stop
from covey.errors import did_you_mean

# A group of commands that names the nearest one when a name is mistyped.

# Newer versions of typer carry a click of their own; by way of its public subclass, this is the
# root of command line errors in either case.
ClickException: type[Exception] = typer.BadParameter.__mro__[2]


class Suggesting(TyperGroup):
    """Says which command was perhaps meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As typer does it, with a suggestion."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            known = self.list_commands(ctx)
            raise Stop(
                ExitCode.USAGE,
                f"there is no command {args[0]!r}; there are {', '.join(known)}."
                f"{did_you_mean(args[0], known)}",
            )
        return super().resolve_command(ctx, args)


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


# Options that several commands share, each declared once.

Config = Annotated[
    Path, typer.Option("--config", "-c", envvar="COVEY_CONFIG", help="The study's file.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen; write nothing.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Write to this file.")]
Batch = Annotated[int | None, typer.Option("--batch", "-b", min=1, help="Points of a batch.")]
Strategy = Annotated[str | None, typer.Option(help="auto, est-dpp-sample, lp-ucb, ...")]
Reals = Annotated[list[str], typer.Option("--real", metavar="NAME=LOW:HIGH[:log]", help="Real.")]
Integers = Annotated[
    list[str], typer.Option("--integer", metavar="NAME=LOW:HIGH[:log]", help="Integer.")
]
Choices = Annotated[list[str], typer.Option("--choice", metavar="NAME=A,B,C", help="Choice.")]
PoolFile = Annotated[Path | None, typer.Option("--pool", help="CSV or Parquet of candidates.")]
Labels = Annotated[
    list[str], typer.Option("--label", metavar="COLUMN", help="Of the pool, unseen by the model.")
]
ValueColumn = Annotated[
    str, typer.Option("--value", metavar="COLUMN", help="Column of the results.")
]


def parameters_in(words: Sequence[str]) -> tuple[str, ...]:
    """The names of the parameters that a command line gives, in its order.

    The lists above keep the order within each kind only.

    >>> parameters_in(["next", "--choice", "opt=a,b", "--real=x=0:1", "--integer", "n=1:8"])
    ('opt', 'x', 'n')
    """
    found = []
    for word, after in pairwise([*words, ""]):
        flag, joined, rest = word.partition("=")
        if flag in ("--real", "--integer", "--choice"):
            found.append((rest if joined else after).partition("=")[0])
    return tuple(found)
