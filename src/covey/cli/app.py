"""The `covey` command: every end has its exit code."""

from __future__ import annotations

import io
import json
import logging
import sys
import traceback
from pathlib import Path

import typer

from covey.cli import verbs, views
from covey.cli.output import ExitCode, code_of, say, sentence
from covey.cli.root import ClickException, app
from covey.errors import CoveyError

__all__ = ["app", "main", "verbs", "views"]  # importing the commands is what registers them


class _Talk(logging.Handler):
    """What the library has to say, on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        say(f"covey: {record.getMessage()}")


def main() -> None:
    """Entry point: every end has its exit code, and our errors are one line on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names may hold any letter
    log = logging.getLogger("covey")
    for earlier in [one for one in log.handlers if isinstance(one, _Talk)]:
        log.removeHandler(earlier)  # of an earlier call in this process
    log.addHandler(_Talk(logging.WARNING))
    words = sys.argv[1:] or ["--help"]
    code, text = _run(words)
    own = words[: words.index("--")] if "--" in words else words  # the rest is the user's command
    if text and "--json" in own:
        say(json.dumps({"error": code.name.lower(), "message": text}))
    elif text:
        say(f"covey: {text}")
    sys.exit(int(code))


def _run(words: list[str]) -> tuple[ExitCode, str]:
    """How it ended, and why if it did not end well."""
    try:
        code = app(words, standalone_mode=False) or 0
    except CoveyError as error:
        return code_of(error), str(error)
    except SystemExit as end:
        code = end.code or 0
    except (typer.Abort, KeyboardInterrupt):
        code = ExitCode.INTERRUPTED
    except ClickException as error:
        return ExitCode.USAGE, f"{sentence(_usage(error))} See --help."
    except OSError as error:  # a full disk behind stdout, most likely
        return ExitCode.FAILED, f"cannot go on: {error.strerror or error}."
    except (ValueError, TypeError, RecursionError) as error:  # bad input that nobody thought of
        return ExitCode.INVALID, _unforeseen(error)
    except Exception as error:
        return ExitCode.FAILED, _unforeseen(error)
    ended = ExitCode(int(code))  # typer, too, hands on Ctrl-C as 130
    return ended, "stopped; what was recorded is safe." if ended == ExitCode.INTERRUPTED else ""


def _usage(error: Exception) -> str:
    """What is wrong with the command line, with the option that is; str leaves its name out."""
    named = getattr(error, "param", None) is not None
    return str(error.format_message() if named else error)  # type: ignore[attr-defined]


def _unforeseen(error: Exception) -> str:
    """The last resort: one sentence instead of a traceback, with what a report of it needs."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())[:300]
    return (
        f"an error that nobody foresaw: {type(error).__name__}{': ' if said else ''}{said} "
        f"(at {Path(place.filename).name}:{place.lineno}). That is a defect of covey; please "
        "report this line, with what `covey doctor` prints, where you got covey from."
    )
