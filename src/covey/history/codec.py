"""Events to JSON objects and back: the event part of a line; journal.py adds seq, time and crc."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from covey.errors import CoveyError, JournalError, is_whole
from covey.history.events import (
    Added,
    Amended,
    Asked,
    Began,
    Cancelled,
    Dispatched,
    Ended,
    Enqueued,
    Event,
    Excluded,
    Extended,
    Failed,
    Included,
    Late,
    Lost,
    Moved,
    Noted,
    Reported,
    Retried,
    Told,
)
from covey.history.trial import PLAIN, Point, is_plain
from covey.history.wells import Measured, Revised

_VERSION = 1
_NAMED = 2  # the version of events that carry values by name, which 0.1 would misread
_KINDS: dict[str, type[Event]] = {
    "asked": Asked,
    "enqueued": Enqueued,
    "added": Added,
    "told": Told,
    "failed": Failed,
    "cancelled": Cancelled,
    "amended": Amended,
    "dispatched": Dispatched,
    "lost": Lost,
    "late": Late,
    "excluded": Excluded,
    "included": Included,
    "retried": Retried,
    "noted": Noted,
    "reported": Reported,
    "extended": Extended,
    "measured": Measured,
    "revised": Revised,
    "moved": Moved,
    "began": Began,
    "ended": Ended,
}
# Events that a reader who does not know them may skip, and that say so: no status, value or id of
# a trial and no later batch depends on them. All others must be understood, or refused.
_IGNORABLE = (Noted, Reported, Began, Ended)
_VERSIONS = dict.fromkeys((Told, Added, Amended), (_VERSION, _NAMED))
_NAMES = {kind: name for name, kind in _KINDS.items()}
_FIELDS = {kind: tuple(field.name for field in fields(kind)) for kind in _NAMES}


def event_to_json(
    event: Event, point_to_json: Callable[[Point], Any], first_id: int
) -> dict[str, Any]:
    """The event as a JSON object; trials it creates are numbered from ``first_id``.

    >>> event_to_json(Told(ids=(3,), values=(1.5,)), dict, first_id=4)
    {'type': 'told', 'v': 1, 'ids': [3], 'values': [1.5]}
    """
    out: dict[str, Any] = {"type": _NAMES[type(event)], "v": _VERSION}
    if isinstance(event, _IGNORABLE):
        out["ignorable"] = True
    if isinstance(event, Asked | Enqueued | Added):
        out["ids"] = list(range(first_id, first_id + len(event.points)))
    if isinstance(event, Asked | Enqueued | Added | Moved):
        out["points"] = [point_to_json(point) for point in event.points]
    if isinstance(event, Extended) and event.values is not None:
        out["values"] = point_to_json(event.values)
    results = _results_of(event)
    for name in _FIELDS[type(event)]:
        value = results.get(name, getattr(event, name))
        if name not in out and not _is_empty(value):
            out[name] = list(value) if isinstance(value, tuple) else value
    if "reasons" in out:
        out["reasons"] = _said_once(out["reasons"])
    return out | {"v": _version(type(event), out)}


def event_from_json(
    obj: Mapping[str, Any],
    point_from_json: Callable[[Any], Mapping[str, Any]],
    first_id: int | None = None,
) -> Event | None:
    """The event a JSON object describes, or None for an unknown one that may be skipped.

    An event of a type or version that this covey does not know is skipped if it says
    ``"ignorable": true``, and refused otherwise, since it might change every batch.
    Unknown fields are ignored, so that a newer covey may add some. With ``first_id`` (the number
    of trials so far) the ids written down are compared with those the event will create.

    Raises:
        JournalError: The object is no event, or of a kind or version this covey cannot read.
    """
    name, version = obj.get("type"), obj.get("v")
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None or version not in _VERSIONS.get(kind, (_VERSION,)):
        if obj.get("ignorable") is True:
            return None
        raise JournalError(
            f"unknown event: type {name!r}, version {version!r}. A newer covey may have written "
            "it; upgrade this one to read the log: pip install --upgrade covey."
        )
    given = {field: obj[field] for field in _FIELDS[kind] if field in obj}
    try:
        if "points" in given:
            given["points"] = tuple(point_from_json(point) for point in given["points"])
            _compare_ids(obj, len(given["points"]), None if kind is Moved else first_id)
        if "reasons" in given:
            given["reasons"] = _said_again(given["reasons"])
        event = kind(**given)
        needed = _version(kind, given)
    except CoveyError:
        raise
    except (TypeError, ValueError, KeyError) as error:
        raise JournalError(f"a malformed event of type {name!r}: {error}.") from error
    if version != needed:
        raise JournalError(
            f"a malformed event of type {name!r}: version {version} has values "
            f"{'by' if version == _NAMED else 'without'} name."
        )
    return event


def _results_of(event: Event) -> dict[str, Any]:
    """The field of an event that holds results, if it has one, as JSON has them."""
    match event:
        case Told() | Added() | Measured():
            return {"values": _shortened(event.values, event.goal)}
        case Revised(values=dict() as right):
            values = _shortened([*right.values()], event.goal)
            return {"values": dict(zip(right, values, strict=True))}
        case Amended(value=value):
            return {"value": _shortened([value], None)[0]}
        case _:
            return {}


def _shortened(values: Sequence[Point | None], goal: str | None) -> tuple[Any, ...]:
    """Results as plain numbers, where the outcome of the study has no name."""
    if goal is None and all(one is None or is_plain(one) for one in values):
        return tuple(None if one is None else one[PLAIN] for one in values)
    return tuple(values)


def _version(kind: type[Event], obj: Mapping[str, Any]) -> int:
    """The version of an event of this kind, which depends on whether its results have names."""
    if kind not in _VERSIONS:
        return _VERSION
    results = obj["values"] if "values" in obj else [obj.get("value")]
    return _NAMED if any(isinstance(one, dict) for one in results) else _VERSION


def _is_empty(value: object) -> bool:
    """Whether a field is left out: no models, no known standard error."""
    return value is None or (isinstance(value, tuple) and all(item is None for item in value))


def _said_once(words: Sequence[str]) -> list[str | int]:
    """Words as they are for the first time, and after that the place where they stand.

    Most points of a batch have the reason of another. Words and not codes, so that a log is
    understood without the covey that wrote it, and words may change from one to the next.

    >>> _said_once(["exploits", "explores", "explores"])
    ['exploits', 'explores', 1]
    """
    first: dict[str, int] = {}
    return [
        said if first.setdefault(said, place) == place else first[said]
        for place, said in enumerate(words)
    ]


def _said_again(items: Sequence[str | int]) -> tuple[str, ...]:
    """The words of each, from what `_said_once` made of them."""
    words: list[str] = []
    for item in items:
        if is_whole(item, 0) and item < len(words):
            words.append(words[item])
        elif isinstance(item, str):
            words.append(item)
        else:
            raise JournalError(
                f"a reason is a text, or the place of an earlier one; got {item!r}. The log was "
                "edited by hand, or damaged."
            )
    return tuple(words)


def _compare_ids(obj: Mapping[str, Any], count: int, first_id: int | None) -> None:
    if first_id is not None and obj.get("ids") != list(range(first_id, first_id + count)):
        raise JournalError(
            f"an event creates {count} trials with ids {obj.get('ids')!r}, but the next free id "
            f"is {first_id}: events before it are missing, or the log was edited by hand."
        )
