"""`snapshot` and `revive` save and restore a study for hosts that keep their own checkpoints.

A snapshot is a study as one journal in bytes. Options of a space that JSON cannot hold, such as
lists or objects, are pickled. Revive only what you trust: unpickling runs code.
"""

from __future__ import annotations

import io
import logging
import pickle
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from covey import GP, Pool, Space, Study
from covey.catalog import strategy_of
from covey.errors import JournalError, SpaceError, StrategyError
from covey.history import Extended, event_from_json, event_to_json
from covey.log.header import header_of
from covey.log.journal import Contents, event_line, header_line, parse
from covey.selection import Strategy
from covey.space import space_from_description
from covey.space.covering import searched
from covey.space.description import as_described

_log = logging.getLogger("covey")


def snapshot(study: Study, strategy: str | Strategy, notes: Mapping[str, Any]) -> bytes:
    """The study as it stands, in the format of its journal: `Study.load` reads it from a file.

    Args:
        study: any.
        strategy: its strategy, as it was given.
        notes: what the host has to remember beside it, as JSON.
    """
    name, _ = strategy_of(strategy)
    spaces = [*study.recipe.passed, searched(study.space)]  # the later ones are in the events
    named = {"name": name, "object": not isinstance(strategy, str)}
    header = {
        **header_of(replace(study.recipe, space=spaces[0]), named),
        "notes": dict(notes),
        "pickle": _pickled(spaces[0]),
    }
    history, lines = study.history, [header_line(header)]
    firsts = {batch.place: batch.first for batch in history.batches}  # event -> its first id
    for place, (event, at) in enumerate(zip(history.events, history.times, strict=True)):
        if isinstance(event, Extended) and event.changes:
            del spaces[0]
        written = event_to_json(event, spaces[0].to_json, firsts.get(place, 0))
        when = {} if at is None else {"at": at.isoformat(timespec="milliseconds")}
        lines.append(event_line(place + 1, {**when, **written}))
    return b"".join(lines)


def revive(
    data: bytes, name: str, space: Space | Pool | None, strategy: str | Strategy | None
) -> tuple[Study, dict[str, Any]]:
    """The study of a snapshot, or of any journal, in memory; and the host's notes in its header.

    Args:
        data: what `snapshot` gave.
        name: what errors call it.
        space: the space it was of; None builds it from its description.
        strategy: to go on with; None is the one it had.
    """
    contents = parse(io.BytesIO(data), name)
    header = contents.header
    try:
        space = _space(header, name, space)
        chosen = _strategy(header, strategy)
        study = Study(
            space,
            header["goal"],
            chosen,
            header["seed"],
            gp=GP(**header["gp"]),
            limits=header.get("limits"),
            record=header.get("record"),
            worst=header.get("worst"),
        )
    except (KeyError, TypeError) as error:
        raise JournalError(
            f"{name} is not the journal of a study that this covey understands ({error!r})."
        ) from error
    _replay(contents, study)
    return study, {"notes": {}, **header}


def _pickled(space: Space | Pool) -> str | None:
    """An opaque space, pickled, to be restored; None for a pool, which may be large."""
    if isinstance(space, Pool) or not space.describe()["opaque"]:
        return None
    try:
        return b64encode(pickle.dumps(space)).decode()
    except Exception as error:  # pickling an option may raise anything
        _log.info("this space must be passed again to go on with a snapshot: %r", error)
        return None


def _space(header: Mapping[str, Any], name: str, space: Space | Pool | None) -> Space | Pool:
    if space is None and header.get("pickle"):
        try:
            space = pickle.loads(b64decode(header["pickle"]))
        except Exception as error:  # the code it needs is missing or has changed
            raise SpaceError(
                f"the space in {name} cannot be unpickled ({error!r}); pass it again."
            ) from error
    if space is None:
        return space_from_description(header["space"])
    space = as_described(space, header["space"])
    if space.fingerprint != header["fingerprint"]:
        raise JournalError(
            f"{name} belongs to a search of another space, {header['space']!r}; "
            f"it cannot go on in {space!r}."
        )
    return space


def _strategy(header: Mapping[str, Any], strategy: str | Strategy | None) -> str | Strategy:
    if strategy is not None:
        return strategy
    if header["strategy"]["object"]:
        raise StrategyError(
            f"this search used a strategy object ({header['strategy']['name']}), which a log "
            "cannot hold; pass it again, as strategy=..."
        )
    return str(header["strategy"]["name"])


def _replay(contents: Contents, study: Study) -> None:
    for line in contents.events:
        event = event_from_json(line, study.space.from_json, len(study.history))
        if event is not None:
            study.note(event)  # appended as they are; nothing is asked or told again
