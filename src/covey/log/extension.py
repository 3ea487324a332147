"""Extending the space of a study: the event, what it must keep to, and the spaces of a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from covey.errors import HistoryError, JournalConflict, JournalMismatch, SpaceError, several
from covey.history import Extended, History, Point, Trial
from covey.space import Choice, Parameter, Pool, Space, space_from_description
from covey.space.changes import differences, require_compatible
from covey.space.constraints import Constraint
from covey.space.description import as_described, constraint_from, parameter_from
from covey.space.extending import (
    FormerPool,
    FormerSpace,
    allows,
    former_spaces,
    grown,
    is_former,
)

_FARTHEST = 1e100  # of a coordinate: squares must not overflow
_NAMED = 8  # trials in a message


@dataclass(frozen=True)
class Stage:
    """A space that a log went through: its description, and why and when it came."""

    description: Mapping[str, Any] = field(repr=False)
    fingerprint: str
    reason: str = ""  # empty: the study began with it
    at: str = ""


def stages(header: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> list[Stage]:
    """The spaces of a log, oldest first; the last is the one that is searched now."""
    found = [Stage(header["space"], header["fingerprint"])]
    for line in lines:
        if line.get("type") == "extended" and isinstance(line.get("space"), Mapping):
            mark = str(line.get("fingerprint", ""))
            if mark != found[-1].fingerprint:
                reason, at = str(line.get("reason", "")), str(line.get("at", ""))[:10]
                found.append(Stage(line["space"], mark, reason, at))
    return found


def former_space(stage: Stage, like: Space | Pool) -> Space | Pool:
    """The space of a stage, as far as its description tells; ``like`` is a later one.

    Functions of the point are lost, objects among the options come from ``like``, and a pool whose
    file has changed is known by name only.
    """
    description = stage.description
    if description.get("kind") == "pool":
        try:
            return space_from_description(description)
        except SpaceError:
            if not isinstance(like, Pool):
                raise
            return FormerPool.of(like, description, stage.fingerprint)
    if not description.get("opaque", False):
        return space_from_description(description)
    try:
        parameters = {e["name"]: _parameter(e, like) for e in description["parameters"]}
        rules = [rule for entry in description["where"] for rule in _rules(entry)]
    except (KeyError, TypeError) as error:
        raise SpaceError(f"the description of a space is damaged: {error!r}") from error
    return FormerSpace.of(Space(parameters, where=rules), description, stage.fingerprint)


def _parameter(entry: Mapping[str, Any], like: Space | Pool) -> Parameter:
    options = entry.get("options", ())
    if not any(isinstance(option, Mapping) for option in options):
        return parameter_from(entry)
    now = like.parameters.get(entry["name"]) if isinstance(like, Space) else None
    if not isinstance(now, Choice) or now.size < len(options):
        raise SpaceError(
            f"options of {entry['name']!r} are objects, which a log cannot hold; pass `space=` "
            "with all of them, in their order, and new ones behind them"
        )
    ordered, when = bool(entry.get("ordered", False)), entry.get("when")
    return Choice(now.options[: len(options)], ordered=ordered, when=when)


def _rules(entry: Mapping[str, Any]) -> list[Constraint]:
    try:
        return [constraint_from(entry)]
    except (SpaceError, KeyError):  # a function of the point
        return []


def space_after(event: Extended, now: Space | Pool, given: Space | Pool) -> Space | Pool:
    """The space that an event describes: the one there is, the one given, or a new one."""
    for known in (now, given):
        if known.fingerprint == event.fingerprint:
            return known
    try:
        return former_space(Stage(event.space, event.fingerprint, event.reason), given)
    except SpaceError as error:
        raise _unknown_space(event.reason) from error


def extended(event: Extended, now: Space | Pool, given: Space | Pool) -> Space | Pool:
    """The space to search after an event."""
    space = space_after(event, now, given)
    return now if space is now else grown(space, now, event.values or {})


def require_known(space: Space | Pool, given: Space | Pool, reason: str) -> None:
    """Raise JournalMismatch if a log went on to a space that it cannot hold."""
    if is_former(space) and space.fingerprint != given.fingerprint:
        raise _unknown_space(reason)


def _unknown_space(reason: str) -> JournalMismatch:
    why = f" ({reason})" if reason else ""
    return JournalMismatch(
        f"the space of this study was extended since{why}, to one that a log cannot hold "
        "(functions, objects or rows that are not in a file any more). Open the study again "
        "and pass that space."
    )


# The event, and what it must keep to.


def extension(
    now: Space | Pool, space: Space | Pool, reason: str, values: Mapping[str, Any] | None
) -> tuple[Extended, Space | Pool]:
    """The event that makes a study go on in another space, and that space.

    ``values`` are those that trials so far had of new parameters.
    """
    space = as_described(space, now.describe())
    require_compatible(now, space)
    if values is not None and not isinstance(values, Mapping):
        raise SpaceError(f"values is a dict such as {{'pressure': 1.0}}, got {values!r}")
    new = new_names(now, space)
    if odd := [name for name in values or {} if name not in new]:
        raise SpaceError(
            f"values has {odd[0]!r}, which is no new parameter"
            f"{'; new are ' + ', '.join(new) if new else ', as there are none'}"
        )
    held = Point(space.check(values, partial=True)) if values else None
    event = Extended(space.describe(), space.fingerprint, reason, now.fingerprint, held)
    return event, space


def new_names(now: Space | Pool, space: Space | Pool) -> list[str]:
    """The parameters that only the second has."""
    return [] if isinstance(space, Pool) else [n for n in space.names if n not in now.names]


def require_possible(
    event: Extended, now: Space | Pool, after: Space | Pool, history: History
) -> None:
    """Raise, and say what to do, unless the trials so far allow this extension.

    Raises:
        JournalConflict: The space was extended since the event was made.
        SpaceError: A result has no place in the new space, or lacks a value.
        HistoryError: Pending trials would be impossible.
    """
    if event.before not in (None, now.fingerprint):
        raise JournalConflict(
            "somebody else has extended the space since; nothing was written. Look at study.space "
            "and repeat."
        )
    if after is now:
        return
    if any(isinstance(s, Space) and s.presence is not None for s in (now, after)):
        raise SpaceError(
            "a space with conditions (`when`) does not grow yet: results of before would have or "
            "lack parameters by other conditions. Start another study, and pass it what you know "
            "with study.add"
        )
    require_compatible(now, after)
    values: Mapping[str, Any] = event.values or {}
    lacking = [name for name in new_names(now, after) if name not in values]
    if lacking and len(history):
        name = lacking[0]
        raise SpaceError(
            f"the parameter {name!r} is new: say which value the {several(len(history), 'trial')} "
            f"so far had of it, study.extend(space, reason, values={{{name!r}: ...}}) or `covey "
            f"extend --set {name}=...`. If it differed among them, start another study, and pass "
            "it what you know with study.add"
        )
    for name in values:
        after.check({name: values[name]}, partial=True)
    _require_places(after, history.trials)
    _require_pending(now, after, history.pending, values)


def _require_places(after: Space | Pool, trials: Sequence[Trial]) -> None:
    """Raise unless every trial has coordinates in the new space."""
    for trial in trials:
        try:
            far = np.abs(after.encode([trial.point])).max(initial=0.0)
        except SpaceError as error:
            raise SpaceError(
                f"trial {trial.id} at {dict(trial.point)} has no place in the new space: {error}. "
                "Nothing was written"
            ) from error
        if not far <= _FARTHEST:
            raise SpaceError(
                f"trial {trial.id} at {dict(trial.point)} would lie {far:.0e} ranges away from the "
                "new space; choose a wider range, or start another study"
            )


def _require_pending(
    now: Space | Pool, after: Space | Pool, pending: Sequence[Trial], values: Mapping[str, Any]
) -> None:
    """Raise if trials that are under way, and possible so far, would not be any more."""
    points = [trial.point for trial in pending]
    was = np.ones(len(points), bool) if is_former(now) else _possible(now, points)
    stays = _possible(after, [{**point, **values} for point in points])
    bad = [trial for trial, a, b in zip(pending, was, stays, strict=True) if a and not b]
    if bad:
        ids = ", ".join(str(trial.id) for trial in bad[:_NAMED])
        more = f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
        whose, them = ("its result", "it") if len(bad) == 1 else ("their results", "them")
        raise HistoryError(
            f"{several(len(bad), 'pending trial')} ({ids}{more}) would be outside the new space, "
            f"such as trial {bad[0].id} at {dict(bad[0].point)}. Tell "
            f"{whose}, fail or cancel {them} first; nothing was written."
        )


def _possible(space: Space | Pool, points: Sequence[Mapping[str, Any]]) -> Sequence[bool]:
    if isinstance(space, Pool):
        return [bool(place >= 0) for place in space.locate(points)] if points else []
    return [allows(space, point) for point in points]


def preview(
    now: Space | Pool, space: Space | Pool, values: Mapping[str, Any], history: History
) -> tuple[list[str], list[int]]:
    """What an extension would change, and the ids of results that it would leave outside.

    Raises what `Study.extend` would.
    """
    event, space = extension(now, space, "preview", values or None)
    after = extended(event, now, space)
    require_possible(event, now, after, history)
    points = [{**trial.point, **values} for trial in history.told]
    kept = _possible(after, points)
    outside = [trial.id for trial, one in zip(history.told, kept, strict=True) if not one]
    return differences(now, space), outside


# What happened to the space of a study, in words.


def changes(history: History, space: Space | Pool) -> list[tuple[Extended, int, list[str]]]:
    """Every extension, the number of batches asked for before it, and what it changed."""
    passed = [*former_spaces(space), space]
    found: list[tuple[Extended, int, list[str]]] = []
    for place, event in enumerate(history.events):
        if isinstance(event, Extended) and event.changes:
            rounds = sum(b.round is not None and b.place < place for b in history.batches)
            said = differences(*passed[len(found) : len(found) + 2])
            found.append((event, rounds, said))
    return found


def extensions_in_words(history: History, space: Space | Pool) -> list[str]:
    """Every extension in a sentence, oldest first."""
    return [
        f"the space was extended after {several(rounds, 'batch')}: {'; '.join(said)}. Reason: "
        f"{event.reason}"
        for event, rounds, said in changes(history, space)
    ]
