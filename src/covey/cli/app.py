"""The `covey` command: every end has its exit code."""

from __future__ import annotations

import json
import logging
import sys

import typer

from covey.cli import verbs, views
from covey.cli.group import ClickException
from covey.cli.root import app
from covey.cli.voice import say

__all__ = ["app", "main", "verbs", "views"]  # importing the commands is what registers them


class _Talk(logging.Handler):
    """What the library has to say, on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        say(f"covey: {record.getMessage()}")


def main() -> None:
    """Entry point: every end has its exit code, and our errors are one line on stderr."""
    from covey.cli.exits import ExitCode, code_of
    from covey.errors import CoveyError

    logging.getLogger("covey").addHandler(_Talk(logging.WARNING))
    words = sys.argv[1:] or ["--help"]
    try:
        sys.exit(app(words, standalone_mode=False) or 0)
    except CoveyError as error:
        code, text = code_of(error), str(error)
    except SystemExit as end:
        if end.code != ExitCode.INTERRUPTED:  # which is how typer hands on Ctrl-C
            raise
        code, text = ExitCode.INTERRUPTED, "stopped; what was recorded is safe."
    except (typer.Abort, KeyboardInterrupt):
        code, text = ExitCode.INTERRUPTED, "stopped; what was recorded is safe."
    except ClickException as error:
        code, text = ExitCode.USAGE, f"{error} See --help."
    own = words[: words.index("--")] if "--" in words else words  # the rest is the user's command
    if "--json" in own:
        say(json.dumps({"error": code.name.lower(), "message": text}))
    else:
        say(f"covey: {text}")
    sys.exit(int(code))
