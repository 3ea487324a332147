"""`covey extend`: the study goes on in the space that covey.toml has by now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from covey.cli.ask import pairs_in
from covey.cli.correct import Reason
from covey.cli.options import FILE, Config, DryRun, Json
from covey.cli.output import ExitCode, Stop, put, put_json, say
from covey.cli.settings import Settings, read_settings
from covey.cli.show import end
from covey.errors import several
from covey.sheets.points import fixed_from_text

if TYPE_CHECKING:
    from covey.study import Study

_SHOWN = 12  # ids in a line


def extend(
    reason: Reason,
    values: Annotated[
        list[str],
        typer.Option(
            "--set", metavar="NAME=VALUE", help="What trials so far had of a new parameter."
        ),
    ] = [],
    config: Config = FILE,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Go on in the space that covey.toml has by now; every result stays in the model.

    Edit the file first: wider or narrower ranges, other options, other constraints, a new
    parameter, more rows of a pool. What differs is printed; --dry-run prints it and writes nothing.
    Pending trials that would be outside are named: tell, fail or cancel them first.

    \b
    covey extend --reason "a pump was added" --set pressure=1.0 --dry-run
    covey extend --reason "a pump was added" --set pressure=1.0
    """
    settings = read_settings(config)
    study = _opened(settings, dry_run)
    said, outside = _differences(settings, study, values)
    if not dry_run:
        study.extend(settings.space, reason, values=_values(settings, values) or None)
    if as_json:
        fields = {"differences": said, "outside": outside, "dry_run": dry_run}
        put_json("covey.extend/1", {**fields, "pending": len(study.history.pending)})
        return end(study)
    for line in said:
        put(line)
    if outside:
        ids = ", ".join(map(str, outside[:_SHOWN])) + (", ..." if len(outside) > _SHOWN else "")
        be = "is" if len(outside) == 1 else "are"
        say(f"{several(len(outside), 'result')} {be} outside and stay in the model: trial {ids}")
    if dry_run:
        say("dry run: nothing was recorded.")
    else:
        say(f"recorded in {settings.journal}; batches come from this space now. next: covey ask")
    return end(study)


def _opened(settings: Settings, dry_run: bool) -> Study:
    """The study in the space that its journal has."""
    if not settings.journal.exists():
        raise Stop(
            ExitCode.CONFLICT,
            f"there is no {settings.journal} yet, so there is nothing to extend; `covey ask` "
            "starts it, in the space that the file has.",
        )
    return settings.look(own=True) if dry_run else settings.change()


def _values(settings: Settings, words: list[str]) -> dict[str, Any]:
    return fixed_from_text(settings.space, pairs_in(words, "--set"))


def _differences(settings: Settings, study: Study, words: list[str]) -> tuple[list[str], list[int]]:
    """What is different in words, and the results that would be outside; or an error."""
    from covey.log.extension import preview
    from covey.space.description import as_described

    given = as_described(settings.space, study.space.describe())
    if given.fingerprint == study.space.fingerprint:
        raise Stop(
            ExitCode.NOTHING,
            f"{settings.path} has the space of the journal, so there is nothing to extend. Edit "
            "its parameters, constraints or pool first.",
        )
    return preview(study.space, given, _values(settings, words), study.history)
