"""The trials of a history as a pandas frame."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any

from covey.errors import MissingExtraError
from covey.history.trial import PLAIN

if TYPE_CHECKING:
    import pandas as pd

    from covey.history.history import Ledger

_COLUMNS = ("id", "status", "value", "sem", "origin")


def own_column(name: str, taken: Container[str]) -> str:
    """The name of a column of ours; parameters keep theirs.

    >>> own_column("batch", ["x"]), own_column("batch", ["x", "batch"])
    ('batch', 'trial.batch')
    """
    while name in taken:
        name = f"trial.{name}"
    return name


def frame_of(ledger: Ledger) -> pd.DataFrame:
    """One row per trial; see `History.to_frame`."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError("pandas", "frames") from error
    trials = ledger.trials
    data: dict[str, Any] = {name: [getattr(trial, name) for trial in trials] for name in _COLUMNS}
    # One of several goals may be called value, and then is in the column of that name.
    data["value"] = [trial.values.get(PLAIN, trial.value) for trial in trials]
    data |= {name: pd.Series(data[name], dtype="float64") for name in ("value", "sem")}
    names = dict.fromkeys(name for trial in trials for name in trial.point)
    for name in names:
        column = name
        while column in _COLUMNS or (column != name and column in names):
            column = f"point.{column}"
        data[column] = [trial.point.get(name) for trial in trials]
    for name in dict.fromkeys(n for trial in trials for n in trial.named if n != PLAIN):
        column = own_column(name, data)
        data[column] = pd.Series([trial.values.get(name) for trial in trials], dtype="float64")
    noted = [ledger.metrics.get(trial.id, {}) for trial in trials]
    for name in dict.fromkeys(name for one in noted for name in one):
        data[own_column(name, data)] = [one.get(name) for one in noted]
    _add_fates(data, ledger, pd)
    return pd.DataFrame(data)


def _add_fates(data: dict[str, Any], ledger: Ledger, pd: Any) -> None:
    """The columns of what became of each trial, and when; the rare ones where there is any."""
    trials = ledger.trials
    rounds = [batch.round for batch in ledger.batches for _ in batch.ids]
    data[own_column("batch", data)] = pd.Series(rounds, dtype="Int64")
    data[own_column("reason", data)] = [trial.reason for trial in trials]
    for name in ("asked", "started", "ended"):
        times = [getattr(trial, f"{name}_at") for trial in trials]
        data[own_column(name, data)] = pd.Series(times, dtype="datetime64[ns, UTC]")
    seconds = [trial.seconds for trial in trials]
    data[own_column("seconds", data)] = pd.Series(seconds, dtype="float64")
    notes = ["; ".join(ledger.notes.get(trial.id, ())) for trial in trials]
    if any(notes):
        data[own_column("notes", data)] = notes
    wells = [ledger.plates.wells_of(trial.id) for trial in trials]
    if any(wells):
        plates = [" ".join(dict.fromkeys(plate for plate, _ in some)) for some in wells]
        data[own_column("plate", data)] = plates
        data[own_column("well", data)] = [" ".join(well for _, well in some) for some in wells]
    if any(trial.excluded for trial in trials):
        data[own_column("excluded", data)] = [trial.excluded for trial in trials]
