"""Changes of a space: which there may be while a study goes on, and what they are in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from covey.errors import SpaceError
from covey.space.choice import Choice
from covey.space.conditions import Condition, shown_when
from covey.space.constraints import Constraint, Predicate, describe_rule, title
from covey.space.covering import CoveringPool
from covey.space.names import listed
from covey.space.parameters import Parameter
from covey.space.pool import Pool
from covey.space.space import Space


def require_compatible(before: Space | Pool, after: Space | Pool) -> None:
    """Raise SpaceError, with what to do instead, unless a study may go on in the other space."""
    if isinstance(before, Pool) and isinstance(after, Pool):
        return _require_same_columns(before, after)
    if isinstance(before, Pool) or isinstance(after, Pool):
        raise _other_kind(before, after)
    for name, parameter in before.parameters.items():
        if name not in after.parameters and parameter.when is not None:
            continue  # with its branch; whether that is gone depends on the trials
        if name not in after.parameters:
            raise SpaceError(
                f"the parameter {name!r} is gone, and old results depend on it. Keep it with the "
                f"only value that it shall have, such as {name!r}: {one_value(parameter)}; or "
                "start another study, and pass it what you know with study.add"
            )
        _require_same_kind(name, parameter, after.parameters[name])
    return None


def one_value(parameter: Parameter) -> str:
    """How to keep a parameter that is not to be varied any more."""
    return f"covey.Choice([{parameter.examples(1)[0]!r}]{shown_when(parameter.when)})"


def _require_same_kind(name: str, then: Parameter, now: Parameter) -> None:
    if then.numeric and now.numeric:
        return
    if not isinstance(now, type(then)):
        raise SpaceError(
            f"{name!r} was {then.words()} and would be {now.words()}, and a value of the one is "
            f"none of the other. Give the new parameter another name, and keep {name!r} with the "
            f"only value that it shall have, such as {name!r}: {one_value(then)}"
        )
    if isinstance(then, Choice) and isinstance(now, Choice) and then.opaque:
        kept = Choice(now.options[: then.size], ordered=then.ordered)
        if now.size < then.size or kept != Choice(then.options, ordered=then.ordered):
            raise SpaceError(
                f"{name!r} has options that a log can only count ({then.opaque}); keep all of "
                "them, in their order, and put new ones behind them"
            )
    return


def _require_same_columns(before: Pool, after: Pool) -> None:
    then, now = before.describe(), after.describe()
    for what in ("columns", "inputs"):
        if sorted(then[what]) != sorted(now[what]):
            raise SpaceError(
                f"the {what} of the pool were {listed(then[what])} and would be "
                f"{listed(now[what])}; a pool is extended by rows, not by columns. Keep its "
                "columns, with `inputs` and `labels` as they were"
            )
    if before.written is not None:
        return
    for name, feature in after._features.items():
        if not isinstance(feature, type(before._features[name])):
            raise SpaceError(f"the column {name!r} of the pool has values of another kind now")


def _other_kind(before: Space | Pool, after: Space | Pool) -> SpaceError:
    kinds = ["a Pool" if isinstance(space, Pool) else "a Space" for space in (before, after)]
    return SpaceError(
        f"the study searches {kinds[0]} and cannot go on in {kinds[1]}; start another study, and "
        "pass it what you know with study.add"
    )


# What changed, in words.


def differences(before: Space | Pool, after: Space | Pool) -> list[str]:
    """What is different, a line each; empty if nothing is that a log can tell.

    >>> from covey import Integer, Real
    >>> differences(Space({"x": Real(0, 1)}), Space({"x": Real(0, 2), "n": Integer(1, 3)}))
    ['x: real, 0.0 to 2.0 (was real, 0.0 to 1.0)', 'n: new, integer, 1 to 3']
    """
    if isinstance(before, Pool) and isinstance(after, Pool):
        return list(_rows_in_words(before, after))
    if isinstance(before, Pool) or isinstance(after, Pool):
        return [str(_other_kind(before, after))]
    found = []
    for name, parameter in after.parameters.items():
        then = before.parameters.get(name)
        if then is None:
            found.append(f"{name}: new, {parameter.words()}{_when(parameter)}")
        elif then.describe() != parameter.describe():
            found.append(f"{name}: {_changed(then, parameter)}")
    found += [f"{name}: gone" for name in before.parameters if name not in after.parameters]
    found += _rules_in_words(before, after)
    if not found and list(before.parameters) != list(after.parameters):
        found.append(f"order of the parameters: {listed(after.names)}")
    return found


def _when(parameter: Parameter) -> str:
    return "" if parameter.when is None else f", when {Condition.of(parameter.when)}"


def _changed(then: Parameter, now: Parameter) -> str:
    whens = [_when(parameter).removeprefix(", ") or "always" for parameter in (then, now)]
    said = [f"present {whens[1]} (was {whens[0]})"] if whens[0] != whens[1] else []
    rest = [{**parameter.describe(), "when": None} for parameter in (then, now)]
    return "; ".join([_changed_values(then, now)] * (rest[0] != rest[1]) + said)


def _changed_values(then: Parameter, now: Parameter) -> str:
    if isinstance(then, Choice) and isinstance(now, Choice) and then.ordered == now.ordered:
        texts = [list(map(repr, choice.options)) for choice in (then, now)]
        new, gone = ([t for t in texts[a] if t not in texts[1 - a]] for a in (1, 0))
        parts = [f"{word} {listed(some)}" for word, some in (("new", new), ("gone", gone)) if some]
        if parts:
            return "; ".join(parts)
        return now.words() if texts[0] == texts[1] else f"in another order, {listed(texts[1])}"
    return f"{now.words()} (was {then.words()})"


def _rules_in_words(before: Space, after: Space) -> list[str]:
    """The constraints that are new, gone or changed; and whether only their order is another."""
    then, now = before.describe()["where"], [describe_rule(rule) for rule in after.where]
    new = [rule for rule in after.where if describe_rule(rule) not in then]
    gone = [rule for rule in before.where if describe_rule(rule) not in now]
    lost = [rule for rule in then if rule.get("kind") == "predicate" and rule not in now]
    found = []
    for rule in new:
        was = next((old for old in gone if _alike(old, rule)), None)
        if was is None:
            found.append(f"constraint: new, {_in_words(rule)}")
        else:
            gone.remove(was)
            found.append(f"constraint: {_in_words(rule)} (was {_in_words(was)})")
    texts = [_in_words(rule) for rule in gone]
    texts += [text for rule in lost if (text := f"the function {rule['name']}") not in texts]
    found += [f"constraint: gone, {text}" for text in texts]
    return found or ([] if then == now else ["constraints: in another order or number"])


def _alike(one: Constraint | Predicate, other: Constraint | Predicate) -> bool:
    """Whether two constraints are of one kind and have a parameter in common."""
    if not isinstance(one, Constraint) or not isinstance(other, Constraint):
        return False
    return isinstance(one, type(other)) and not set(one.names).isdisjoint(other.names)


def _in_words(rule: Constraint | Predicate) -> str:
    return str(rule) if isinstance(rule, Constraint) else f"the function {title(rule)}"


def _rows_in_words(before: Pool, after: Pool) -> Iterator[str]:
    then, now = before.describe(), after.describe()
    if then["sha256"] != now["sha256"]:
        rows = f"{after.size} candidates (were {then['n']})"
        if before.written is None:
            old = [before.point(i) for i in range(before.size)] if before.size <= _FEW_ROWS else []
            gone = int(np.sum(CoveringPool.of(after, old).locate(old) < 0)) if old else 0
            rows += f", {gone} gone" if gone else ""
        yield rows
    if then.get("log") != now.get("log"):
        yield f"inputs in logs: {listed(now.get('log', ())) or 'none'}"


_FEW_ROWS = 20_000  # of a pool: more are not compared one by one
