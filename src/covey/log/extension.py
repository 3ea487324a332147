"""Extending the space of a study: the event, what it must keep to, and the spaces of a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.errors import HistoryError, JournalConflict, JournalMismatch, SpaceError, several
from covey.history import Extended, History, Point, Trial
from covey.space import Choice, Mixture, Parameter, Pool, Space, space_from_description
from covey.space.changes import differences, one_value, require_compatible
from covey.space.constraints import Constraint
from covey.space.covering import (
    CoveringPool,
    CoveringSpace,
    allows,
    covering,
    remembering,
    searched,
)
from covey.space.description import as_described, constraint_from, parameter_from
from covey.space.names import is_scalar

if TYPE_CHECKING:
    from covey.learn import Recipe

_FARTHEST = 1e100  # of a coordinate: squares must not overflow
_NAMED = 8  # trials in a message
_ROUNDING = 1e-6  # of a total


def stages(
    header: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The spaces that a log went through, oldest first: its header and its extensions.

    Each has a ``space`` (the description) and its ``fingerprint``.
    """
    found = [header]
    for line in lines:
        extends = line.get("type") == "extended" and isinstance(line.get("space"), Mapping)
        if extends and line.get("fingerprint") != found[-1]["fingerprint"]:
            found.append(line)
    return found


def space_known_by(stage: Mapping[str, Any], like: Space | Pool) -> Space | Pool:
    """The space of a stage, as far as its description tells; ``like`` is a later one.

    Functions of the point are lost, objects among the options come from ``like``, and of a pool
    whose file has changed nothing is known but the description.
    """
    description, fingerprint = stage["space"], stage["fingerprint"]
    if description.get("kind") == "pool":
        try:
            return space_from_description(description)
        except SpaceError:
            if not isinstance(like, Pool):
                raise
            return _standing_in(like, description, fingerprint)
    if not description.get("opaque", False):
        return space_from_description(description)
    try:
        parameters = {e["name"]: _parameter(e, like) for e in description["parameters"]}
        rules = [rule for entry in description["where"] for rule in _rules(entry)]
    except (KeyError, TypeError) as error:
        raise SpaceError(f"the description of a space is damaged: {error!r}") from error
    return _standing_in(Space(parameters, where=rules), description, fingerprint)


def _standing_in(
    space: Space | Pool, description: Mapping[str, Any], fingerprint: str
) -> Space | Pool:
    """A copy of a space under the name that a log has for another."""
    made = copy(space)
    made.__dict__.update(written=description, fingerprint=fingerprint)
    return made


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
        return space_known_by({"space": event.space, "fingerprint": event.fingerprint}, given)
    except SpaceError as error:
        raise _unknown_space(event.reason) from error


def extended(event: Extended, now: Space | Pool, given: Space | Pool) -> Space | Pool:
    """The space to search after an event."""
    space = space_after(event, now, given)
    return now if space is now else remembering(space, now)


def require_known(space: Space | Pool, given: Space | Pool, reason: str) -> None:
    """Raise JournalMismatch if a log went on to a space that it cannot hold."""
    if space.written is not None and space.fingerprint != given.fingerprint:
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
    space = as_described(searched(space), now.describe())
    require_compatible(now, space)
    if values is not None and not isinstance(values, Mapping):
        raise SpaceError(f"values is a dict such as {{'pressure': 1.0}}, got {values!r}")
    new = new_names(now, space)
    known = {*new, *_conditional(now)}  # of these, trials may lack one that is present now
    if odd := [name for name in values or {} if name not in known or name not in space.names]:
        raise SpaceError(
            f"values has {odd[0]!r}, which is no new parameter"
            f"{'; new are ' + ', '.join(new) if new else ', as there are none'}"
        )
    # One by one, since together conditional parameters may exclude each other.
    given = (values or {}).items()
    each = {name: space.check({name: value}, partial=True)[name] for name, value in given}
    held = Point(each) if each else None
    event = Extended(space.describe(), space.fingerprint, reason, now.fingerprint, held)
    return event, space


def new_names(now: Space | Pool, space: Space | Pool) -> list[str]:
    """The parameters that only the second has."""
    return [] if isinstance(space, Pool) else [n for n in space.names if n not in now.names]


def require_possible(
    event: Extended, now: Space | Pool, after: Space | Pool, trials: Sequence[Trial]
) -> None:
    """Raise, and say what to do, unless these trials allow this extension.

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
    require_compatible(now, after)
    values: Mapping[str, Any] = event.values or {}
    if isinstance(now, Space) and isinstance(after, Space):
        _require_written(now, after)
        _require_branches_gone(now, after, trials)
    seen, full = _seen(after, trials, event)
    if isinstance(now, Space) and isinstance(seen, CoveringSpace):
        _require_values(now, seen, full)
    for name in values:
        after.check({name: values[name]}, partial=True)
    if isinstance(after, Space):
        _require_sums(after, values, trials)
    _require_places(seen, trials, full)
    _require_pending(now, after, trials, full)


def _seen(
    after: Space | Pool, trials: Sequence[Trial], event: Extended
) -> tuple[CoveringSpace | CoveringPool, list[Mapping[str, Any]]]:
    """The space that covers trials after an extension, and their points with the values of it."""
    seen = covering(after, [trial.point for trial in trials])
    if isinstance(seen, CoveringPool) or event.values is None:
        return seen, [trial.point for trial in trials]
    return seen, [seen.completed(trial.point, event.values) for trial in trials]


def completed_by(event: Extended, after: Space | Pool, history: History) -> Extended:
    """The event with the trials that have each value of a conditional parameter."""
    seen, full = _seen(after, history.trials, event)
    if event.values is None or isinstance(seen, CoveringPool) or not seen.conditions:
        return event
    having = {
        name: [
            trial.id
            for trial, point in zip(history.trials, full, strict=True)
            if name in point and name not in trial.point
        ]
        for name in event.values
    }
    return replace(event, having=having)


def _conditional(space: Space | Pool) -> list[str]:
    if isinstance(space, Pool):
        return []
    return [name for name, parameter in space.parameters.items() if parameter.when is not None]


def _require_written(now: Space, after: Space) -> None:
    """Raise if a condition names objects, which a log cannot hold to read old trials by."""
    for name, parameter in (*now.parameters.items(), *after.parameters.items()):
        for parent, values in (parameter.when or {}).items():
            if not all(map(is_scalar, values)):
                raise SpaceError(
                    f"{name!r} is present under options of {parent!r} that are objects, which "
                    "a log cannot hold; let names stand for them, and extend the space then, "
                    "or start another study, and pass it what you know with study.add"
                )


def _require_branches_gone(now: Space, after: Space, trials: Sequence[Trial]) -> None:
    """Raise if a conditional parameter is gone, and its branch is not: results depend on it."""
    then = CoveringSpace.of(now, ())
    for name in now.names:
        if name in after.parameters:
            continue
        parents = now.parameters[name].when or {}
        for trial in trials:
            had = name in trial.point and then.has(trial.point, name)
            # A parent that is gone itself is looked at alone.
            if had and all(
                parent in after.parameters and after.parameters[parent].allows(trial.point[parent])
                for parent in parents
            ):
                raise SpaceError(
                    f"the parameter {name!r} is gone, and its branch is not: trial {trial.id} had "
                    f"{trial.point[name]!r} of it. Keep it with the only value that it shall have, "
                    f"such as {name!r}: {one_value(now.parameters[name])}"
                )


def _require_values(now: Space, after: CoveringSpace, full: Sequence[Mapping[str, Any]]) -> None:
    """Raise if completed points lack a parameter that is present in them from now on."""
    for name in after.names:
        count = sum(name not in point and after.has(point, name) for point in full)
        if not count:
            continue
        new = name not in now.names
        those = several(count, "trial")
        said = (
            f"is new: say which value the {those} so far had of it"
            if new and count == len(full)
            else f"is present now in {those} of before that lack it: say which value they had of it"
        )
        raise SpaceError(
            f"the parameter {name!r} {said}, "
            f"study.extend(space, reason, values={{{name!r}: ...}}) or `covey "
            f"extend --set {name}=...`. If it differed among them, start another study, and pass "
            "it what you know with study.add"
        )


def _require_sums(after: Space, values: Mapping[str, Any], trials: Sequence[Trial]) -> None:
    """Raise if a new part of a mixture would come on top of parts that have its total already."""
    for mixture in (rule for rule in after.where if isinstance(rule, Mixture)):
        added = sum(values[name] for name in mixture.names if name in values)
        if not added:
            continue
        names = [name for name in mixture.names if name not in values]
        new = ", ".join(f"{name}={values[name]!r}" for name in mixture.names if name in values)
        for trial in trials:
            if all(trial.point.get(name) is not None for name in names):
                so_far = sum(trial.point[name] for name in names)
                if abs(so_far - mixture.total) <= _ROUNDING * mixture.total:
                    raise SpaceError(
                        f"with {new} the parts of trial {trial.id} would sum to "
                        f"{so_far + added:.6g}, not {mixture.total:.6g}, which {', '.join(names)} "
                        "come to already. Say 0 of a part that trials so far did not have; nothing "
                        "was written"
                    )


def _require_places(
    seen: CoveringSpace | CoveringPool, trials: Sequence[Trial], full: Sequence[Mapping[str, Any]]
) -> None:
    """Raise unless every trial, whose completed point is in ``full``, has a place to the model."""
    try:
        far = np.abs(seen.encode(full)).max(axis=1, initial=0.0)
    except SpaceError:
        far = np.array([_distance(seen, *pair) for pair in zip(trials, full, strict=True)])
    for i in np.flatnonzero(~(far <= _FARTHEST)).tolist():
        raise SpaceError(
            f"trial {trials[i].id} at {dict(trials[i].point)} would lie {far[i]:.0e} ranges away "
            "from the new space; choose a wider range, or start another study"
        )


def _distance(seen: CoveringSpace | CoveringPool, trial: Trial, point: Mapping[str, Any]) -> float:
    """The largest coordinate of a trial, or an error that names it if it has none."""
    try:
        return float(np.abs(seen.encode([point])).max(initial=0.0))
    except SpaceError as error:
        raise SpaceError(
            f"trial {trial.id} at {dict(trial.point)} has no place in the new space: {error}. "
            "Nothing was written"
        ) from error


def _require_pending(
    now: Space | Pool,
    after: Space | Pool,
    trials: Sequence[Trial],
    full: Sequence[Mapping[str, Any]],
) -> None:
    """Raise if trials that are under way, and possible so far, would not be any more."""
    bad = [
        trial
        for trial, point in zip(trials, full, strict=True)
        if trial.status == "pending"
        and (now.written is not None or _is_possible(now, trial.point))
        and not _is_possible(after, point)
    ]
    if bad:
        ids = ", ".join(str(trial.id) for trial in bad[:_NAMED])
        more = f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
        whose, them = ("its result", "it") if len(bad) == 1 else ("their results", "them")
        raise HistoryError(
            f"{several(len(bad), 'pending trial')} ({ids}{more}) would be outside the new space, "
            f"such as trial {bad[0].id} at {dict(bad[0].point)}. Tell "
            f"{whose}, fail or cancel {them} first; nothing was written."
        )


def _is_possible(space: Space | Pool, point: Mapping[str, Any]) -> bool:
    """Whether a point may be proposed in a space: it keeps all rules, or is a row of a pool."""
    if isinstance(space, Pool):
        return bool(CoveringPool.of(space, [point]).locate([point])[0] >= 0)
    return allows(space, point)


def preview(
    now: Space | Pool, space: Space | Pool, values: Mapping[str, Any], history: History
) -> tuple[list[str], list[int]]:
    """What an extension would change, and the ids of results that it would leave outside.

    Raises what `Study.extend` would.
    """
    event, space = extension(now, space, "preview", values or None)
    after = extended(event, now, space)
    require_possible(event, now, after, history.trials)
    _, full = _seen(after, history.told, event)
    outside = [
        trial.id
        for trial, point in zip(history.told, full, strict=True)
        if not _is_possible(after, point)
    ]
    return differences(now, space), outside


# What happened to the space of a study, in words.


def changes(history: History, recipe: Recipe) -> list[tuple[Extended, int, list[str]]]:
    """Every extension, the number of batches asked for before it, and what it changed."""
    passed = [*recipe.passed, searched(recipe.space)]
    found: list[tuple[Extended, int, list[str]]] = []
    for place, event in enumerate(history.events):
        if isinstance(event, Extended) and event.changes:
            rounds = sum(b.round is not None and b.place < place for b in history.batches)
            said = differences(*passed[len(found) : len(found) + 2])
            found.append((event, rounds, said))
    return found


def extensions_in_words(history: History, recipe: Recipe) -> list[str]:
    """Every extension in a sentence, oldest first."""
    return [
        f"the space was extended after {several(rounds, 'batch')}: {'; '.join(said)}. Reason: "
        f"{event.reason}"
        for event, rounds, said in changes(history, recipe)
    ]
