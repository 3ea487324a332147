"""How the command line ends: exit codes, and which error means which."""

from __future__ import annotations

from enum import IntEnum

from covey.errors import (
    CoveyError,
    ExhaustedError,
    HistoryError,
    JournalConflict,
    JournalDamaged,
    JournalMismatch,
    SpaceError,
    StrategyError,
)


class ExitCode(IntEnum):
    """What a command's exit status says; part of the public interface."""

    OK = 0
    FAILED = 1  # it could not be done: a full disk, an evaluation, a missing package
    USAGE = 2  # the command line itself is wrong, or an answer was needed and nobody is there
    CONFLICT = 3  # somebody else is running the study, or what was named does not exist
    INVALID = 5  # a file, a value or the configuration is wrong; nothing was recorded
    DAMAGED = 6  # the journal is damaged
    NOTHING = 7  # there was nothing to do: the space is exhausted, no batch is open
    INTERRUPTED = 130  # Ctrl-C


class Stop(CoveyError):  # noqa: N818 - the verb says it
    """Ends a command with a code and a reason."""

    def __init__(self, code: ExitCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def sentence(text: object) -> str:
    """The text with a full stop, so that another sentence may follow.

    >>> sentence("widen the range"), sentence("Did you mean 'x'?")
    ('widen the range.', "Did you mean 'x'?")
    """
    said = str(text).rstrip()
    return said if said.endswith((".", "?", "!")) else f"{said}."


def code_of(error: CoveyError) -> ExitCode:
    """The exit code of an error.

    >>> code_of(SpaceError("low > high")).name
    'INVALID'
    """
    if isinstance(error, Stop):
        return error.code
    for kind, code in (
        (JournalDamaged, ExitCode.DAMAGED),
        (JournalConflict, ExitCode.CONFLICT),
        (JournalMismatch, ExitCode.INVALID),
        (ExhaustedError, ExitCode.NOTHING),
        ((SpaceError, HistoryError, StrategyError), ExitCode.INVALID),
    ):
        if isinstance(error, kind):
            return code
    return ExitCode.FAILED
