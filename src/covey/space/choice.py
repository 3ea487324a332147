"""`Choice`: a parameter with finitely many options, which may be any objects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from covey.errors import SpaceError, did_you_mean
from covey.space.conditions import Condition, described, shown_when
from covey.space.features import FeatureRows, Features, carried_over, features_of
from covey.space.names import (
    is_finite,
    is_number,
    is_scalar,
    listed,
    outline,
    plain,
    same,
)
from covey.space.parameters import Parameter, register
from covey.spreadsheets import number_from_text

if TYPE_CHECKING:
    from covey.arrays import Array, Indices

_UNWRITABLE = 10**4300  # Python turns no larger number into digits


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Choice(Parameter):
    """A categorical parameter, one column per option; with ``ordered`` one column in their order.

    Unless ``ordered`` says otherwise, options that are all numbers are ordered, smallest first, and
    others are not: 0.1 is nearer to 0.05 than to 1. With ``ordered=True`` the order is as given.

    Options may be any objects and come back as they were given (NumPy scalars as Python ones).
    They are told apart by type and value: True, 1 and 1.0 are three options.

    ``features`` describe options by numbers: the path of a CSV or Parquet file or a frame, whose
    first column (or index) is the option, or a dict of a row for each. The columns are then these,
    standardised and reduced (see `covey.space.features`), and have one length-scale together.

    >>> Choice(["adam", "sgd"]).encode(["sgd"])
    array([[0., 1.]])
    >>> Choice(["low", "mid", "high", "top"], ordered=True).encode(["mid"])
    array([[0.375]])
    >>> Choice([1.0, 0.05, 0.1])
    Choice(options=(0.05, 0.1, 1.0), ordered=True)
    """

    kind: ClassVar[str] = "choice"
    options: Sequence[Any]
    ordered: bool = None  # type: ignore[assignment]  # None: numbers are, others are not
    features: Features | None = None
    when: Mapping[str, Any] | None = None
    _places: dict[tuple[type, Any], int] = field(init=False)
    order_was_told: bool = field(init=False)  # else a log may hold another one

    if TYPE_CHECKING:  # a dataclass has no other way to take more than it keeps

        def __init__(
            self,
            options: Sequence[Any],
            ordered: bool | None = None,
            features: FeatureRows | Features | None = None,
            when: Mapping[str, Any] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        options = _listed_options(self.options)
        if self.features is not None:
            if self.ordered:
                raise SpaceError(
                    "a Choice has an order or features, not both: features say which options are "
                    "alike. Leave one of them out."
                )
            object.__setattr__(self, "ordered", False)
        object.__setattr__(self, "order_was_told", self.ordered is not None)
        if not self.order_was_told and _are_distinct_numbers(options):
            options = tuple(sorted(options))
            object.__setattr__(self, "ordered", True)
        object.__setattr__(self, "options", options)
        object.__setattr__(self, "ordered", bool(self.ordered))
        object.__setattr__(self, "when", Condition.of(self.when))
        object.__setattr__(self, "_places", {})
        for i, option in enumerate(self.options):
            earlier = self._exact(option, among=i)
            if earlier is not None:
                raise SpaceError(
                    f"options {earlier} and {i} of a Choice are both {option!r}; "
                    "give each option once"
                )
            if _hashable(option):
                self._places[type(option), option] = i
        given: Any = self.features
        if given is not None and not isinstance(given, Features):
            made = features_of(given, self.options, _rewritten)
            object.__setattr__(self, "features", made)

    @staticmethod
    def smiles(options: Mapping[str, str], kind: str = "morgan") -> Choice:
        """A choice among molecules, described by numbers computed from their SMILES.

        Needs the extra ``chem``; the numbers are computed once, and a log holds them. ``kind`` is
        "morgan" (counts of circular substructures) or "rdkit" (RDKit's descriptors).

        >>> Choice.smiles({"THF": "C1CCOC1", "water": "O"}, "rdkit")  # doctest: +SKIP
        """
        from covey.space.smiles import smiles_features

        return Choice(list(options), features=smiles_features(options, kind))

    def __repr__(self) -> str:
        shown = "" if self.features is None else f", features=<{self.features.words}>"
        shown += shown_when(self.when)
        return f"Choice(options={self.options!r}, ordered={self.ordered!r}{shown})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Choice):
            return NotImplemented
        return (
            self.ordered == other.ordered
            and self.when == other.when
            and len(self.options) == len(other.options)
            and self.features == other.features
            and all(map(same, self.options, other.options))
        )

    def __hash__(self) -> int:
        return hash((self.ordered, tuple(type(option) for option in self.options)))

    def __reduce__(self) -> tuple[type[Choice], tuple[Any, ...]]:
        # The look-up table has types as keys, and not every type pickles.
        order = self.ordered if self.order_was_told else None
        return Choice, (self.options, order, self.features, self.when)

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        if self.features is not None:
            return self.features.width
        return 1 if self.ordered else len(self.options)

    @property
    def finest(self) -> float | None:
        """Half the smallest difference of two options that have features."""
        return None if self.features is None else self.features.finest

    @property
    def size(self) -> int:
        """Number of options."""
        return len(self.options)

    @property
    def numeric(self) -> bool:
        """Whether a linear constraint may weigh it: ordered, and every option a finite number."""
        return self.ordered and all(map(is_finite, self.options))

    @property
    def span(self) -> tuple[float, float]:
        """Smallest and largest option, when they are numbers."""
        if not all(map(is_finite, self.options)):
            return math.nan, math.nan
        return float(min(self.options)), float(max(self.options))

    def _exact(self, value: Any, among: int) -> int | None:
        if _hashable(value):
            return self._places.get((type(value), value))
        return next((i for i in range(among) if same(self.options[i], value)), None)

    def index(self, value: Any) -> int:
        """Position of an option, or an error that names the nearest one.

        A number finds an equal number of another type when there is only one: 1 finds 1.0.
        """
        if (found := self.find(value)) is not None:
            return found
        value = plain(value)
        raise SpaceError(
            f"{value!r} is not an option; the options are {listed(map(repr, self.options))}."
            f"{did_you_mean(value, self.options)}"
        )

    def find(self, value: Any) -> int | None:
        """Position of an option as of `index`; None if the value is none."""
        value = plain(value)
        found = self._exact(value, among=self.size)
        if found is None and is_number(value):
            equal = [i for i, o in enumerate(self.options) if is_number(o) and o == value]
            return equal[0] if len(equal) == 1 else None
        return found

    def check(self, value: Any) -> Any:
        """The option that equals ``value``, or an error."""
        return self.options[self.index(value)]

    def encode(self, values: Sequence[Any]) -> Array:
        """Coordinates (n, width) of n values."""
        return self._coordinates(np.array([self.index(value) for value in values], dtype=np.intp))

    def place(self, values: Sequence[Any]) -> Array:
        """Coordinates (n, width) of options, and of numbers among options that are a scale."""
        others = [value for value in values if self.find(value) is None]
        if not others or not all(map(self.holds, others)):
            return self.encode(values)  # which raises where one has no place
        options = np.array(self.options, dtype=np.float64)
        x = np.array([float(value) for value in values])
        if self.size == 1:
            return 0.5 + (x - options)[:, None]
        sign = np.sign(options[1] - options[0])
        low = np.clip(np.searchsorted(sign * options, sign * x) - 1, 0, self.size - 2)
        ranks = low + (x - options[low]) / (options[low + 1] - options[low])
        return ((ranks + 0.5) / self.size)[:, None]

    def holds(self, value: Any) -> bool:
        """Whether a value is an option, or a number and the options are numbers in order."""
        if self.find(value) is not None or not self.numeric or not is_finite(plain(value)):
            return self.find(value) is not None
        ups = np.diff(np.array(self.options, dtype=np.float64))
        return bool((ups > 0.0).all() or (ups < 0.0).all())

    def middle(self, value: Any) -> Array:
        """Coordinates (width,) of a value that is no option and has no place among them."""
        if self.features is not None:
            return self.features.place_of(value)
        return np.full(self.width, 0.5 if self.ordered else 0.0)

    def after(self, then: Parameter) -> Choice:
        """The same, with the places of options that have features in an earlier choice only."""
        mine, theirs = self.features, then.features if isinstance(then, Choice) else None
        if mine is None or theirs is None or not isinstance(then, Choice):
            return self
        ranks = [then.find(option) for option in self.options]
        shared = [(rank, i) for i, rank in enumerate(ranks) if rank is not None]
        known = [*zip(then.options, theirs.described, strict=True), *theirs.gone]
        gone = [(option, at) for option, at in known if self.find(option) is None]
        if not shared or not gone:
            return self
        places = tuple((option, carried_over(theirs, mine, shared, at)) for option, at in gone)
        return Choice(self.options, features=replace(mine, gone=places), when=self.when)

    def _coordinates(self, ranks: Indices) -> Array:
        if self.features is not None:
            return self.features.at[ranks]
        if self.ordered:
            return ((ranks + 0.5) / self.size)[:, None]
        hot = np.zeros((len(ranks), self.size))
        hot[np.arange(len(ranks)), ranks] = 1.0
        return hot

    def _ranks(self, columns: Array) -> Indices:
        """Option index (n,) at coordinates (n, width)."""
        if self.features is not None:
            return self.features.ranks(columns)
        if not self.ordered:
            return np.argmax(columns, axis=1)
        bins = np.floor(np.clip(columns[:, 0], 0.0, 1.0) * self.size)
        return np.minimum(bins, self.size - 1).astype(np.intp)

    def numbers(self, columns: Array) -> Array:
        """Options (n,) at coordinates (n, 1), as floats, when they are numbers."""
        return np.array(self.options, dtype=np.float64)[self._ranks(columns)]

    def decode(self, columns: Array) -> list[Any]:
        """Options at coordinates (n, width): the nearest, its bin, or the largest column."""
        return [self.options[rank] for rank in self._ranks(columns).tolist()]

    def snap(self, columns: Array) -> Array:
        """Coordinates of the options at ``columns``."""
        return self._coordinates(self._ranks(columns))

    def condensed(self, columns: Array) -> Array:
        """The index of each option, (n, 1); -1 for one that is gone."""
        if self.features is not None:
            ranks = np.where(self.features.is_option(columns), self._ranks(columns), -1)
            return ranks[:, None].astype(np.float64)
        if self.width == 1:
            return columns
        return np.where(columns.any(axis=1), np.argmax(columns, axis=1), -1)[:, None]

    def drawn(self, uniform: Array) -> Array:
        """Coordinates (n, width) of options that have equal chances, from uniform numbers.

        The option nearest to a uniform point is more often one that lies apart.
        """
        if self.features is None:
            return uniform
        ranks = np.floor(uniform[:, 0] * self.size).astype(np.intp)
        return self._coordinates(np.clip(ranks, 0, self.size - 1))

    def examples(self, most: int) -> list[Any]:
        """The first options."""
        return list(self.options[:most])

    def levels(self) -> Array:
        """Coordinates (size, width) of every option in order."""
        return self._coordinates(np.arange(self.size))

    def nearest(self, x: Array) -> Array:
        """Coordinates (n, 1) of the options nearest to numbers (n,), when they are numbers."""
        gaps = np.abs(np.array(self.options, dtype=np.float64) - x[:, None])
        return self._coordinates(np.argmin(gaps, axis=1))

    def to_json(self, option: Any) -> Any:
        """A scalar as it is, anything else as ``{"option": index}``."""
        index = self.index(option)
        option = self.options[index]
        return option if is_scalar(option) else {"option": index}

    def from_json(self, value: Any) -> Any:
        """The option that :meth:`to_json` wrote."""
        if not isinstance(value, Mapping):
            return self.check(value)
        index = value.get("option")
        if not isinstance(index, int) or not 0 <= index < self.size:
            raise SpaceError(
                f'{value!r} names no option; expected {{"option": 0}} to '
                f'{{"option": {self.size - 1}}}'
            )
        return self.options[index]

    def describe(self) -> dict[str, Any]:
        """What JSON needs to build it again; an option it cannot hold is only described."""
        options = [o if is_scalar(o) else {"opaque": outline(o)} for o in self.options]
        features = {} if self.features is None else {"features": self.features.describe()}
        told = {"kind": self.kind, "options": options, "ordered": self.ordered}
        return {**told, **features, **described(self.when)}

    @property
    def opaque(self) -> str | None:
        """The first option that JSON cannot hold."""
        return next((f"option {o!r}" for o in self.options if not is_scalar(o)), None)

    def words(self) -> str:
        """Its options, in words."""
        order = ", in this order" if self.ordered else ""
        if self.features is not None:
            order = f", described by {self.features.words}"
        return f"one of {listed(map(repr, self.options))}{order}"

    def parse(self, text: str) -> Any:
        """The option in a cell, as we write it in a sheet or as a spreadsheet rewrites it."""
        for alike in (_written, _written_in_blanks, _rewritten):
            found = [option for option in self.options if alike(option, text)]
            if len(found) > 1:
                both = ", ".join(map(repr, found))
                raise SpaceError(f"{text!r} may be any of {both}, which look alike in a sheet.")
            if found:
                return found[0]
        options = ", ".join(map(str, self.options))
        hint = did_you_mean(text, self.options)
        raise SpaceError(f"{text!r} is not an option; the options are {options}.{hint}")


def _listed_options(options: Any) -> tuple[Any, ...]:
    if isinstance(options, np.ndarray):
        options = list(options)
    if isinstance(options, str | bytes | Mapping | Set) or not isinstance(options, Sequence):
        raise SpaceError(
            f"the options of a Choice must be a list, got {options!r}; "
            "write Choice(['a', 'b']), in the order you want"
        )
    if not options:
        raise SpaceError("a Choice needs at least one option, got none")
    if any(isinstance(o, int) and abs(o) >= _UNWRITABLE for o in options):
        raise SpaceError(
            "an option of a Choice is a whole number of more than 4300 digits, which cannot be "
            "written down; give it as text"
        )
    return tuple(plain(option) for option in options)


def _are_distinct_numbers(options: Sequence[Any]) -> bool:
    """Whether they have an order by size; 1 and 1.0, which are two options, have none."""
    return all(map(is_finite, options)) and len(set(options)) == len(options)


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _written(option: Any, text: str) -> bool:
    return text == ("" if option is None else str(option))


def _written_in_blanks(option: Any, text: str) -> bool:
    return _written(option, text.strip())


def _rewritten(option: Any, text: str) -> bool:
    """TRUE for True, 1 for 1.0; and the same for texts that are spelled so."""
    text = text.strip()
    if option is None or isinstance(option, bool):
        return text.lower() == str(option).lower()
    try:
        return number_from_text(text) == float(option)
    except (TypeError, ValueError, OverflowError):
        return False
