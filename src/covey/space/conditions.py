"""Conditions: parameters that are present only under values of others, and the branches they make.

`Condition` is the ``when`` of one parameter; `Presence` is what all of them come to in a space: who
is present in which row, which parents decide it, how many points there are. See decision 24.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from covey.errors import SpaceError
from covey.space.names import check_name, is_scalar, outline, plain, same, unknown

if TYPE_CHECKING:
    from covey.arrays import Array, Mask
    from covey.space.constraints import Constraint
    from covey.space.kinds import Parameter

    Parameters: TypeAlias = Mapping[str, Parameter]


class Condition(Mapping[str, tuple[Any, ...]]):
    """The values of other parameters under which a parameter is present.

    A single value is an equality, a list, tuple, set or range a membership; several names must all
    hold. (An option that is itself a tuple is written in a list.)

    >>> Condition.of({"model": "tree", "layers": [2, 3]})
    {'model': 'tree', 'layers': [2, 3]}
    """

    __slots__ = ("_allowed",)

    def __init__(self, allowed: Mapping[str, Sequence[Any]]) -> None:
        self._allowed = {name: tuple(values) for name, values in allowed.items()}

    @staticmethod
    def of(when: Any) -> Condition | None:
        """A ``when`` in canonical form; None if it says nothing."""
        if when is None or isinstance(when, Condition):
            return when
        if not isinstance(when, Mapping):
            raise SpaceError(
                "when names parameters and the values under which this one is present, as in "
                f"when={{'model': 'tree'}}; got {when!r}"
            )
        allowed = {}
        for name, values in when.items():
            check_name(name, "parameter")
            allowed[name] = _listed(name, values)
        return Condition(allowed) if allowed else None

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        return self._allowed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._allowed)

    def __len__(self) -> int:
        return len(self._allowed)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Condition):
            return NotImplemented
        return self.keys() == other.keys() and all(_alike(self[n], other[n]) for n in self)

    def __hash__(self) -> int:
        return hash(frozenset((name, len(values)) for name, values in self.items()))

    def __reduce__(self) -> tuple[type[Condition], tuple[dict[str, tuple[Any, ...]]]]:
        return Condition, (self._allowed,)

    def __repr__(self) -> str:
        return repr({n: v[0] if len(v) == 1 else list(v) for n, v in self.items()})

    def __str__(self) -> str:
        """In words, to follow "when"."""
        return " and ".join(
            f"{name} is {_either(values)}" for name, values in self._allowed.items()
        )

    def describe(self) -> dict[str, Any]:
        """As JSON holds it; a value that it cannot hold is only described."""
        held = {
            name: [v if is_scalar(v) else {"opaque": outline(v)} for v in values]
            for name, values in self.items()
        }
        return {name: v[0] if len(v) == 1 else v for name, v in held.items()}


def described(when: Any) -> dict[str, Any]:
    """The entry ``when`` of a parameter's description; nothing if it is always present."""
    condition = Condition.of(when)
    return {} if condition is None else {"when": condition.describe()}


def shown_when(when: Any) -> str:
    """The end of a parameter's repr."""
    return "" if when is None else f", when={when!r}"


def _listed(name: str, values: Any) -> tuple[Any, ...]:
    several = isinstance(values, list | tuple | range | Set | np.ndarray)
    found: list[Any] = []
    for value in map(plain, values if several else [values]):
        if not any(same(value, other) for other in found):
            found.append(value)
    if not found:
        raise SpaceError(f"when={{{name!r}: []}} never holds; name at least one value of {name!r}")
    return tuple(found)


def _alike(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(any(same(x, y) for y in b) for x in a)


def _either(values: Sequence[Any]) -> str:
    *others, last = map(repr, values)
    return f"{', '.join(others)} or {last}" if others else last


def neutral(parameter: Parameter) -> Array:
    """Coordinates (width,) of a parameter that is absent: the middle, no option more than others.

    Two points that both lack it are equal in it, and the parents tell either from all others.
    """
    one_hot = parameter.size == parameter.width > 1
    return np.full(parameter.width, 1.0 / parameter.width if one_hot else 0.5)


# What the conditions of a space come to.

MOST_BRANCHES = 1024  # branches drawn alike; with more, every parent's values are (our choice)
_COMBINATIONS = 2**16  # of values that decide what is present, within which points are counted


@dataclass(frozen=True)
class Presence:
    """The parameters of a space that are not always present, and what they need.

    ``needs`` holds for each of them every parameter above it, parents of parents too, with the
    values allowed there: it is present where all of these hold.
    """

    parameters: Parameters
    slices: Mapping[str, slice]
    order: tuple[str, ...]  # every parameter after those that decide on it
    needs: Mapping[str, Mapping[str, tuple[Any, ...]]]
    more: int = 0  # columns behind those of the parameters

    @staticmethod
    def of(
        parameters: Parameters, slices: Mapping[str, slice], *, every: bool = False
    ) -> Presence | None:
        """The presence in a space; None if every parameter is always present.

        With ``every`` also conditions that hold for all values there are: a value that is gone is
        none of them, though all of these are named.
        """
        when = {n: c for n, p in parameters.items() if (c := Condition.of(p.when)) is not None}
        if not when:
            return None
        order = _ordered(parameters, when)
        needs: dict[str, dict[str, tuple[Any, ...]]] = {}
        for name in order:
            found = _needed(name, when[name], parameters, needs, every) if name in when else {}
            if found:  # what always holds is no condition
                needs[name] = found
        return Presence(parameters, slices, order, needs) if needs else None

    @cached_property
    def parents(self) -> tuple[str, ...]:
        """The parameters that decide what is present, in order."""
        above = {parent for needed in self.needs.values() for parent in needed}
        return tuple(name for name in self.order if name in above)

    @cached_property
    def _allowed(self) -> dict[tuple[str, str], Array]:
        """Condensed coordinates of the values that a parameter needs of another."""
        return {
            (name, parent): self._short(parent, self.parameters[parent].encode(values))
            for name, needed in self.needs.items()
            for parent, values in needed.items()
        }

    def _short(self, name: str, columns: Array) -> Array:
        parameter = self.parameters[name]
        return np.asarray(parameter.condensed(parameter.snap(columns)))

    def rows(self, u: Array) -> dict[str, Mask]:
        """Of coordinates (n, d), the rows (n,) in which each conditional parameter is present."""
        short = {name: self._short(name, u[:, self.slices[name]]) for name in self.parents}
        return {name: self._holds(name, short, len(u)) for name in self.needs}

    def _holds(self, name: str, short: Mapping[str, Array], n: int) -> Mask:
        mask = np.ones(n, dtype=np.bool_)
        for parent in self.needs[name]:
            mask &= _among(short[parent], self._allowed[name, parent])
        return mask

    def present(self, u: Array) -> Mask:
        """Which coordinates (n, d) belong to a parameter that is present in their row."""
        mask = np.ones(u.shape, dtype=np.bool_)
        for name, rows in self.rows(u).items():
            mask[:, self.slices[name]] = rows[:, None]
        return mask

    def cleared(self, u: Array) -> Array:
        """Coordinates (n, d) with those of absent parameters neutral; changed in place."""
        for name, rows in self.rows(u).items():
            u[~rows, self.slices[name]] = neutral(self.parameters[name])
        return u

    def in_point(self, point: Mapping[str, Any], name: str) -> bool:
        """Whether a parameter is present in a point, by the values of those above it."""
        return all(
            parent in point and any(same(point[parent], value) for value in values)
            for parent, values in self.needs.get(name, {}).items()
        )

    def trimmed(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Checked values of a point, without those of parameters that are absent in it."""
        kept = dict(point)
        for name in self.order:
            if name in kept and not self.in_point(kept, name):
                del kept[name]
        return kept

    def refuse_tied(self, equalities: Sequence[Constraint]) -> None:
        """Raise if an equality, such as a mixture, ties a parameter that may be absent."""
        for rule in equalities:
            for name in self.needs.keys() & set(rule.names):
                raise SpaceError(
                    f"{name!r} may be absent, and {rule} needs it always; leave out its condition, "
                    "or let a value of 0 stand for absence"
                )

    def complete(self, point: Mapping[str, Any]) -> None:
        """Raise if a checked point has a parameter that must be absent, or lacks one."""
        lacking = []
        for name in self.order:
            if name in point and not self.in_point(point, name):
                raise self._superfluous(name, point)
            if name not in point and self.in_point(point, name):
                lacking.append(name)
        if lacking:
            held = ", ".join(f"{n} = {point[n]!r}" for n in self.parents if n in point)
            under = f" with {held}" if held else ""
            needed = [n for n in self.parameters if self.in_point(point, n)]
            raise SpaceError(
                f"the point has no {', '.join(map(repr, lacking))}; a point of this space{under} "
                f"needs {', '.join(needed)}"
            )

    def _superfluous(self, name: str, point: Mapping[str, Any]) -> SpaceError:
        condition = Condition.of(self.parameters[name].when)
        parents = () if condition is None else tuple(condition)
        here = [f"{p} is {point[p]!r}" if p in point else f"there is no {p}" for p in parents]
        return SpaceError(
            f"parameter {name!r} is present only when {condition}, and {' and '.join(here)}; "
            "leave it out, or change that"
        )

    def __contains__(self, name: object) -> bool:
        return name in self.needs

    # Parameters held fixed, which imply those above them.

    def implied(self, fixed: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What fixed values imply: all that are fixed then, and values left to other parents."""
        held, left = dict(fixed), dict[str, tuple[Any, ...]]()
        for name in fixed:
            for parent, values in self.needs.get(name, {}).items():
                before = left.get(parent, (held[parent],) if parent in held else None)
                both = values if before is None else _shared(values, before)
                if not both:
                    raise self._contradiction(name, parent, fixed)
                left[parent] = both
        held |= {parent: values[0] for parent, values in left.items() if len(values) == 1}
        return held, {parent: values for parent, values in left.items() if parent not in held}

    def _contradiction(self, name: str, parent: str, fixed: Mapping[str, Any]) -> SpaceError:
        values = _either(self.needs[name][parent])
        why = f"{parent} = {fixed[parent]!r} is fixed" if parent in fixed else "others rule it out"
        return SpaceError(
            f"{name!r} cannot be fixed: it is present only when {parent} is {values}, and {why}; "
            "fix one of them only"
        )

    def moved(self, u: Array, left: Mapping[str, Sequence[Any]]) -> Array:
        """Coordinates with each parent that has few values left at the nearest; in place."""
        for parent, values in left.items():
            columns = self.slices[parent]
            places = self.parameters[parent].encode(values)
            gaps = np.square(u[:, None, columns] - places).sum(axis=2)
            u[:, columns] = places[np.argmin(gaps, axis=1)]
        return u

    # Branches, and points that can be listed.

    def branches(self, fixed: Mapping[str, Any]) -> Array | None:
        """Rows (m, d), one for each combination of values of the parents; None if too many.

        Only the columns of parents count; those of other parameters are neutral.
        """
        return self.listed(self.parents, fixed, MOST_BRANCHES)

    def listed(self, names: Collection[str], fixed: Mapping[str, Any], limit: int) -> Array | None:
        """Rows (m, d) with every combination of values of these parameters, where present.

        None if a parameter is continuous, or there are more than ``limit``.
        """
        held, left = self.implied(fixed)
        u = np.zeros((1, sum(p.width for p in self.parameters.values()) + self.more))
        for name, parameter in self.parameters.items():
            u[:, self.slices[name]] = neutral(parameter)
        for name in self.order:
            if name not in names and name not in held:
                continue
            levels = self._levels(name, held, left, limit)
            rows = self._holds_in(name, u)
            if levels is None and rows.any():
                return None
            if levels is None:
                continue
            counts = np.where(rows, len(levels), 1)
            if int(counts.sum()) > limit:
                return None
            u = np.repeat(u, counts, axis=0)
            there = np.repeat(rows, counts)
            u[there, self.slices[name]] = np.tile(levels, (int(rows.sum()), 1))
        return u

    def _holds_in(self, name: str, u: Array) -> Mask:
        needed = self.needs.get(name, {})
        short = {parent: self._short(parent, u[:, self.slices[parent]]) for parent in needed}
        if not needed:
            return np.ones(len(u), dtype=np.bool_)
        return self._holds(name, short, len(u))

    def _levels(
        self, name: str, held: Mapping[str, Any], left: Mapping[str, Any], limit: int
    ) -> Array | None:
        parameter = self.parameters[name]
        if name in held:
            return parameter.encode([held[name]])
        if name in left:
            return parameter.encode(left[name])
        return parameter.levels() if (parameter.size or limit + 1) <= limit else None

    def size(self, fixed: Mapping[str, Any]) -> int | None:
        """Number of points with these values fixed; None if a parameter in one is continuous.

        Values of a parent that allow the same are counted together, and parameters that have
        nothing to do with each other apart. None too for more than 65,536 combinations of those.
        """
        held, left = self.implied(fixed)
        counts = [self._count(group, held, left) for group in self._groups()]
        return None if None in counts else math.prod(c for c in counts if c is not None)

    def _groups(self) -> list[list[str]]:
        """Parameters that decide on each other, together, each group in order."""
        group = {name: {name} for name in self.order}
        for name, needed in self.needs.items():
            for parent in needed:
                if group[name] is not group[parent]:
                    group[name] |= group[parent]
                    for other in group[parent]:
                        group[other] = group[name]
        distinct = {id(names): names for names in group.values()}
        return [[name for name in self.order if name in names] for names in distinct.values()]

    def _count(
        self, group: Sequence[str], held: Mapping[str, Any], left: Mapping[str, Any]
    ) -> int | None:
        """Points of one group: a sum over what the parents' values allow, of products."""
        ways: list[tuple[dict[str, Set[str]], int]] = [({}, 1)]
        for name in group:
            if name in self.parents:
                classes = self._classes(name, held, left)
                ways = [
                    ({**above, name: allows}, count * many)
                    for above, count in ways
                    for allows, many in (classes if self._open(name, above) else [(set(), 1)])
                ]
            if len(ways) > _COMBINATIONS:
                return None
        total = 0
        for above, count in ways:
            there = [n for n in group if n not in self.parents and self._open(n, above)]
            sizes = [1 if n in held else self.parameters[n].size for n in there]
            if None in sizes:
                return None
            total += count * math.prod(size for size in sizes if size is not None)
        return total

    def _open(self, name: str, above: Mapping[str, Set[str]]) -> bool:
        return all(name in above[parent] for parent in self.needs.get(name, {}))

    def _classes(
        self, parent: str, held: Mapping[str, Any], left: Mapping[str, Any]
    ) -> list[tuple[Set[str], int]]:
        """The parameters that values of a parent allow, and how many values allow just these."""
        children = {n: needed[parent] for n, needed in self.needs.items() if parent in needed}
        if parent in held or parent in left:
            values = [held[parent]] if parent in held else list(left[parent])
            others = 0
        else:
            values = _union(children.values())
            others = (self.parameters[parent].size or 0) - len(values)
        counts: dict[frozenset[str], int] = {frozenset(): others} if others else {}
        for value in values:
            allows = frozenset(n for n, v in children.items() if any(same(value, w) for w in v))
            counts[allows] = counts.get(allows, 0) + 1
        return list(counts.items())


def _ordered(parameters: Parameters, when: Mapping[str, Condition]) -> tuple[str, ...]:
    """Every parameter after those that its condition names, else in their own order."""
    for name, condition in when.items():
        for parent in condition:
            if parent not in parameters:
                error = unknown(parent, list(parameters), "parameter", "this space")
                raise SpaceError(f"the condition of parameter {name!r}: {error}")
    sorter = TopologicalSorter({name: tuple(when.get(name, ())) for name in parameters})
    try:
        return tuple(sorter.static_order())
    except CycleError as error:
        circle = " -> ".join(repr(name) for name in reversed(error.args[1]))
        raise SpaceError(
            f"conditions go round in a circle: {circle}; no parameter of it could be present. "
            "Drop one of these conditions."
        ) from error


def _needed(
    name: str,
    condition: Condition,
    parameters: Parameters,
    needs: Mapping[str, Mapping[str, tuple[Any, ...]]],
    every: bool,
) -> dict[str, tuple[Any, ...]]:
    """All that a parameter needs, of its parents and of theirs; if not ``every``, that decides."""
    found: dict[str, tuple[Any, ...]] = {}
    for parent, given in condition.items():
        values = _values(name, parent, parameters[parent], given)
        if every or len(values) < (parameters[parent].size or 0):
            found[parent] = _shared(values, found.get(parent, values))
        for above, more in needs.get(parent, {}).items():
            found[above] = _shared(more, found.get(above, more))
    never = next((parent for parent, values in found.items() if not values), None)
    if never is not None:
        raise SpaceError(
            f"parameter {name!r} is never present: its condition ({condition}) needs other values "
            f"of {never!r} than the conditions above it do. Change one of them."
        )
    return found


def _values(name: str, parent: str, parameter: Parameter, given: Iterable[Any]) -> tuple[Any, ...]:
    """The values of a parent that a condition names, in canonical form."""
    if parameter.size is None:
        raise SpaceError(
            f"the condition of parameter {name!r}: {parent!r} is continuous, and a condition "
            "compares values for equality; give it a step, or let a Choice decide"
        )
    found: list[Any] = []
    for value in given:
        try:
            checked = parameter.check(value)
        except SpaceError as error:
            raise SpaceError(
                f"the condition of parameter {name!r}: parameter {parent!r}: {error}"
            ) from error
        if not any(same(checked, other) for other in found):
            found.append(checked)
    return tuple(found)


def _shared(values: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(value for value in values if any(same(value, other) for other in others))


def _union(several: Iterable[Sequence[Any]]) -> list[Any]:
    found: list[Any] = []
    for values in several:
        found += [v for v in values if not any(same(v, other) for other in found)]
    return found


def _among(short: Array, allowed: Array) -> Mask:
    """Which rows (n, w) are among the allowed (m, w); snapped, so equal to the last bit."""
    if short.shape[1] == 1:
        return np.isin(short[:, 0], allowed[:, 0])
    return np.asarray((short[:, None, :] == allowed).all(axis=2).any(axis=1))
