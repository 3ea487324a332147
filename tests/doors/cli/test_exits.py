import covey
from covey.cli.output import ExitCode, code_of
from covey.errors import (
    EvaluationError,
    ExhaustedError,
    HistoryError,
    JournalConflict,
    JournalDamaged,
    JournalError,
)


def test_each_error_has_its_code():
    assert covey.ExitCode is ExitCode
    for error, code in (
        (JournalDamaged("x"), 6),
        (JournalConflict("x"), 3),
        (JournalError("x"), 1),
        (ExhaustedError("x"), 7),
        (HistoryError("x"), 5),
        (EvaluationError("x"), 1),
    ):
        assert code_of(error) == code
