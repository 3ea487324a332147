"""Options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

FILE = Path("covey.toml")


class Direction(StrEnum):
    """The goal of a study."""

    max = "max"
    min = "min"


class DecimalMark(StrEnum):
    """The mark between whole numbers and decimals."""

    point = "point"
    comma = "comma"


Config = Annotated[
    Path, typer.Option("--config", "-c", envvar="COVEY_CONFIG", help="The study's file.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Say why each point is in the batch, on stderr.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen; write nothing.")]
Decimal = Annotated[
    DecimalMark | None,
    typer.Option(
        "--decimal",
        envvar="COVEY_DECIMAL",
        help="Decimal mark of CSV files: point, or comma (with semicolons).",
    ),
]
SkipUnknown = Annotated[
    bool, typer.Option("--skip-unknown", help="Leave out rows of no trial and no valid point.")
]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Write to this file.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]
Batch = Annotated[int | None, typer.Option("--batch", "-b", min=1, help="Points per batch.")]
Strategy = Annotated[str | None, typer.Option(help="auto, est-dpp-sample, lp-ucb, ...")]
Fix = Annotated[list[str], typer.Option(metavar="NAME=VALUE", help="Hold it fixed.")]
Reals = Annotated[
    list[str],
    typer.Option(
        "--real", metavar="NAME=LOW:HIGH[:step=S][:log][:when=OTHER=VALUE]", help="Real parameter."
    ),
]
Integers = Annotated[
    list[str],
    typer.Option(
        "--integer",
        metavar="NAME=LOW:HIGH[:step=S][:log][:when=OTHER=VALUE]",
        help="Integer parameter.",
    ),
]
Choices = Annotated[
    list[str],
    typer.Option(
        "--choice", metavar="NAME=A,B,C|@FILE[:when=OTHER=VALUE]", help="Categorical parameter."
    ),
]
FeatureFiles = Annotated[
    list[str],
    typer.Option("--features", metavar="NAME=FILE", help="CSV that describes a choice's options."),
]
Mixtures = Annotated[
    list[str],
    typer.Option(
        "--mixture",
        metavar="A+B=TOTAL[:parts=1-2][:least=L][:step=S]",
        help="Parts that sum to a total.",
    ),
]
Rules = Annotated[
    list[str],
    typer.Option(
        "--rule",
        metavar="NAME=VALUE: OTHER<=BOUND",
        help="What holds under a category; repeatable.",
    ),
]
PoolFile = Annotated[Path | None, typer.Option("--pool", help="CSV or Parquet of candidates.")]
Labels = Annotated[
    list[str], typer.Option("--label", metavar="COLUMN", help="Column the model does not see.")
]
Logs = Annotated[
    list[str], typer.Option("--log", metavar="COLUMN", help="Column the model sees in logs.")
]
Goals = Annotated[
    list[str], typer.Option("--goal", metavar="max|min|NAME=max", help="Better is; repeatable.")
]
Limits = Annotated[
    list[str], typer.Option("--limit", metavar="NAME<=BOUND", help="Bound an outcome must keep.")
]
Worst = Annotated[
    list[str],
    typer.Option("--worst", metavar="NAME=VALUE", help="From where a goal counts; repeatable."),
]
Records = Annotated[
    list[str], typer.Option("--record", metavar="NAME", help="Told beside outcomes; kept.")
]
Priors = Annotated[
    list[Path], typer.Option("--prior", metavar="JOURNAL", help="Earlier study; repeatable.")
]
ValueColumn = Annotated[
    str, typer.Option("--value", metavar="COLUMN", help="Column of the results.")
]


def mark_of(decimal: DecimalMark | None) -> str | None:
    """The decimal mark itself; None if nobody said which."""
    return None if decimal is None else "," if decimal is DecimalMark.comma else "."


def parameters_in(words: Sequence[str]) -> tuple[str, ...]:
    """The names of the parameters that a command line gives, in its order.

    The lists above keep the order within each kind only.

    >>> parameters_in(["next", "--choice", "opt=a,b", "--real=x=0:1", "--integer", "n=1:8"])
    ('opt', 'x', 'n')
    >>> parameters_in(["next", "--mixture", "x+y=1:step=0.1", "--real", "x=0:0.5"])
    ('x', 'y')
    """
    found = []
    for word, after in pairwise([*words, ""]):
        flag, joined, rest = word.partition("=")
        names = (rest if joined else after).partition("=")[0]
        if flag in ("--real", "--integer", "--choice"):
            found.append(names)
        elif flag == "--mixture":
            found += [name.strip() for name in names.split("+")]
    return tuple(dict.fromkeys(found))
