"""What there is to run."""

from __future__ import annotations

import argparse

from rich.console import Console

from papers.kathuria2016.entrants import ENTRANTS
from papers.kathuria2016.problems import ABOUT, PROBLEMS
from papers.kathuria2016.results import RESULTS, read_all


def declare(parser: argparse.ArgumentParser) -> None:
    """No options."""
    del parser


def run(options: argparse.Namespace) -> int:
    """Print experiments with how many runs of each are finished, and entrants."""
    del options
    console = Console(highlight=False, soft_wrap=True)
    console.print("Experiments (`all` runs every one of them), with their finished runs:")
    for name in PROBLEMS:
        done = len(read_all(RESULTS, [name]))
        console.print(f"  {name:10} {done:5}  {ABOUT[name]}", markup=False)
    console.print("Entrants:")
    for entrant in ENTRANTS.values():
        console.print(f"  {entrant.name:18}  {entrant.title} ({entrant.side})")
    return 0
