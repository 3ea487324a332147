"""`python -m papers.kathuria2016 list | all | EXPERIMENT | pack | table | optimum` (see --help)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from papers.kathuria2016.problems import PROBLEMS

COMMANDS = {
    "list": ("catalog", "name the experiments and the entrants"),
    "all": ("suite", "run every experiment, or what is missing of it; draw and judge"),
    **{name: ("suite", f"the same for {name} alone") for name in PROBLEMS},
    "pack": ("results", "put the rows of finished races into the packed files that are kept"),
    "table": ("fastxml.table", "make the table of FastXML on a data set, or go on with it"),
    "optimum": ("optimum", "search for the best known speed of the robot, and write it down"),
}
"""Sub-command -> the module here with its ``declare(parser)`` and ``run(options)``, and a help."""


def main(words: Sequence[str] | None = None) -> int:
    """Parse, and do one thing."""
    parser = argparse.ArgumentParser(prog="python -m papers.kathuria2016", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND")
    for name, (place, words_of_help) in COMMANDS.items():
        module = import_module(f"papers.kathuria2016.{place}")
        made = verbs.add_parser(name, help=words_of_help)
        module.declare(made)
        made.set_defaults(run=module.run)
    options = parser.parse_args(words)
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
