"""`tell_sheet`: the results in a file, recorded from Python."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from covey.errors import HistoryError
from covey.sheets.columns import columns_of, expected_in, require_no_wells, say_unused
from covey.sheets.intake import Manner, plan
from covey.sheets.recording import record_intake
from covey.tables import lines_in, table_from

if TYPE_CHECKING:
    from covey.history import Trial
    from covey.study import Study

_log = logging.getLogger("covey")


def tell_sheet(
    study: Study,
    path: str | Path,
    manner: Manner,
    *,
    value: str = "value",
    decimal: str | None = None,
    skip_unknown: bool = False,
) -> list[Trial]:
    """Record the results in a file, all of them or none; see `Study.tell_sheet`."""
    _require_arguments(path, value, decimal)
    expected = expected_in(study, value, decimal)
    table = table_from(lines_in(path, expected), expected.numbers, expected.decimal)
    if manner.by_id:
        require_no_wells(table, study)
    columns = columns_of(table, study, value, by_id=manner.by_id)
    found = plan([(columns, row) for row in table.rows], study, manner)
    found.require_all(skip_unknown=skip_unknown)
    trials = record_intake(found, study)
    unused = say_unused(table, columns, study)
    for line in (*table.dialect.said(), *([unused] if unused else ()), *found.left_out()):
        _log.warning("%s: %s", path, line)
    return trials


def _require_arguments(path: Any, value: Any, decimal: Any) -> None:
    if not isinstance(path, str | os.PathLike):
        raise HistoryError(
            f"tell_sheet takes the path of one file, such as 'results.xlsx'; got {path!r}. Values "
            "in memory are told by study.tell(trials, values)."
        )
    if not isinstance(value, str):
        raise HistoryError(f"value is the name of a column, such as 'yield'; got {value!r}.")
    if decimal not in (None, ".", ","):
        raise HistoryError(
            f"decimal is '.' or ',', or None where the file says it itself; got {decimal!r}."
        )
