"""The `covey` program: its commands, its entry point `main`, and the exit code of each outcome."""

from __future__ import annotations

import io
import json
import logging
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from covey.cli.ask import ask
from covey.cli.correct import (
    amend,
    amend_wells,
    cancel,
    exclude,
    fail,
    include,
    mark_wells,
    note,
    retry,
    unmark_wells,
)
from covey.cli.doctor import demo, doctor, repair_copy, verify
from covey.cli.extend import extend
from covey.cli.init import init
from covey.cli.next import next
from covey.cli.output import ExitCode, Stop, code_of, say
from covey.cli.plate import ask_plates, pick, show_plate, tell_plate
from covey.cli.run import run_command
from covey.cli.show import advice, best, export, logs, report
from covey.cli.tell import add, tell
from covey.cli.watch import status, watch
from covey.errors import CoveyError, did_you_mean, sentence

# The base class of command-line errors. Newer versions of typer bundle their own click, so it is
# reached through a public subclass.
ClickException: type[Exception] = typer.BadParameter.__mro__[2]


class SuggestingGroup(TyperGroup):
    """A group of commands that suggests the nearest one for a mistyped name."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolve a command as typer does; an unknown one is an error with a suggestion."""
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
    cls=SuggestingGroup,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
journals = typer.Typer(
    cls=SuggestingGroup,
    help="Check a journal, or save what precedes a damaged line.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(journals, name="journal")
plates = typer.Typer(
    cls=SuggestingGroup,
    help="Whole plates: ask for them, tell what a reader measured, show, pick and correct.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(plates, name="plate")


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

    Data goes to stdout, messages to stderr.

    Exit codes: 0 done, 1 failed, 2 usage, 3 conflict or not found, 5 invalid input (nothing
    recorded), 6 journal damaged, 7 nothing to do, 130 stopped (Ctrl-C, or
    SIGTERM during a run).
    """


# In the order of the help text.
_COMMANDS: dict[str, Callable[..., None]] = {
    "init": init,
    "ask": ask,
    "tell": tell,
    "add": add,
    "amend": amend,
    "exclude": exclude,
    "include": include,
    "fail": fail,
    "cancel": cancel,
    "retry": retry,
    "note": note,
    "extend": extend,
    "run": run_command,
    "next": next,
    "status": status,
    "watch": watch,
    "best": best,
    "advice": advice,
    "export": export,
    "logs": logs,
    "report": report,
    "doctor": doctor,
    "demo": demo,
}
for _name, _command in _COMMANDS.items():
    app.command(_name)(_command)
plates.command("ask")(ask_plates)
plates.command("tell")(tell_plate)
plates.command("show")(show_plate)
plates.command("pick")(pick)
plates.command("mark")(mark_wells)
plates.command("unmark")(unmark_wells)
plates.command("amend")(amend_wells)
journals.command("verify")(verify)
journals.command("repair")(repair_copy)


class _StderrHandler(logging.Handler):
    """Writes the library's log messages to stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record as one line."""
        say(f"covey: {record.getMessage()}")


def main() -> None:
    """Entry point: exits with an `ExitCode`, and reports an error in one line on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names may hold any letter
    log = logging.getLogger("covey")
    for earlier in [one for one in log.handlers if isinstance(one, _StderrHandler)]:
        log.removeHandler(earlier)  # left by an earlier call in this process
    log.addHandler(_StderrHandler(logging.WARNING))
    words = sys.argv[1:] or ["--help"]
    code, text = _run(words)
    own = words[: words.index("--")] if "--" in words else words  # the rest is the user's command
    if text and "--json" in own:
        say(json.dumps({"error": code.name.lower(), "message": text}))
    elif text:
        say(f"covey: {text}")
    sys.exit(int(code))


def _run(words: list[str]) -> tuple[ExitCode, str]:
    """The exit code, and the error message if there is one."""
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
    except (ValueError, TypeError, RecursionError) as error:  # bad input that no check caught
        return ExitCode.INVALID, _unforeseen(error)
    except Exception as error:
        return ExitCode.FAILED, _unforeseen(error)
    ended = ExitCode(int(code))  # typer also reports Ctrl-C as 130
    return ended, "stopped; what was recorded is safe." if ended == ExitCode.INTERRUPTED else ""


def _usage(error: Exception) -> str:
    """The message of a usage error with the name of the option, which `str` leaves out."""
    named = getattr(error, "param", None) is not None
    return str(error.format_message() if named else error)  # type: ignore[attr-defined]


def _unforeseen(error: Exception) -> str:
    """One sentence instead of a traceback for an unexpected error, with what a bug report needs."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())[:300]
    return (
        f"an error that nobody foresaw: {type(error).__name__}{': ' if said else ''}{said} "
        f"(at {Path(place.filename).name}:{place.lineno}). That is a defect of covey; please "
        "report this line, with what `covey doctor` prints, where you got covey from."
    )
