"""`ParameterContract`: what a space, a log, a sheet and a report rely on in a kind of parameter."""

from __future__ import annotations

import json
import pickle
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.errors import SpaceError
from covey.space import Linear, Parameter, Space, space_from_description
from covey.space.parameters import registered

if TYPE_CHECKING:
    from covey.arrays import Array

_MANY = 200  # rows of coordinates to test
_ROUNDING = 1e-9


class ParameterContract(ABC):
    """Inherit, name the class ``Test...``, and let pytest run it.

    >>> class TestAngle(ParameterContract):
    ...     def parameter(self): return Angle()
    ...     def values(self): return [0.0, 90.0, 359.5]
    ...     def strangers(self): return ["north", None]
    """

    @abstractmethod
    def parameter(self) -> Parameter:
        """The parameter under test; a new one at each call."""

    @abstractmethod
    def values(self) -> Sequence[Any]:
        """Some of its values, in canonical form: as ``check`` returns them."""

    @abstractmethod
    def strangers(self) -> Sequence[Any]:
        """What is no value of it, to be refused."""

    def _coordinates(self) -> Array:
        """Rows inside the cube, at its corners and outside: a search meets all of these."""
        width = self.parameter().width
        inside = np.random.default_rng(0).random((_MANY, width))
        return np.vstack([inside, 3.0 * inside - 1.0, np.zeros((1, width)), np.ones((1, width))])

    def test_it_is_a_parameter(self) -> None:
        """A space takes it."""
        parameter = self.parameter()
        assert isinstance(parameter, Parameter), "it lacks a member of covey.space.Parameter"
        assert Space({"p": parameter}).width == parameter.width >= 1, "its width is not its columns"

    def test_two_of_a_kind_are_equal_and_it_travels(self) -> None:
        """A study is refused if its space is not the one of the log; workers get it by pickle."""
        parameter = self.parameter()
        assert parameter == self.parameter(), "two that are built alike are not equal"
        assert hash(parameter) == hash(self.parameter()), "equal ones have different hashes"
        assert pickle.loads(pickle.dumps(parameter)) == parameter, "pickle changes it"

    def test_values_are_canonical(self) -> None:
        """``check`` gives back what it has accepted."""
        for value in self.values():
            _same(self.parameter().check(value), value, "check changes a canonical value")

    def test_strangers_are_refused_by_an_error_of_ours(self) -> None:
        """The command line and every door show a SpaceError as a sentence."""
        parameter = self.parameter()
        for value in self.strangers():
            for refuse in (parameter.check, lambda value: parameter.encode([value])):
                try:
                    refuse(value)
                except SpaceError:
                    continue
                except Exception as error:
                    raise AssertionError(f"{value!r} is refused by {error!r}") from error
                raise AssertionError(f"{value!r} is not refused")

    def test_coordinates_lie_in_the_unit_cube(self) -> None:
        """Length scales are priors on it."""
        u = self.parameter().encode(self.values())
        shape = (len(self.values()), self.parameter().width)
        assert u.shape == shape, f"encode gives shape {u.shape}, not {shape}"
        assert self.parameter().encode([]).shape == (0, shape[1]), "encode([]) has not its columns"
        assert np.all((u >= 0.0) & (u <= 1.0)), "coordinates outside [0, 1]"

    def test_decode_undoes_encode(self) -> None:
        """Exactly for finitely many values, up to rounding for a continuum."""
        parameter = self.parameter()
        u = parameter.encode(self.values())
        back = parameter.decode(u)
        np.testing.assert_allclose(parameter.encode(back), u, rtol=0.0, atol=_ROUNDING)
        for value, again in zip(self.values(), back, strict=True):
            if parameter.size is not None:
                _same(again, value, "decode does not undo encode")

    def test_every_row_decodes_to_a_value(self) -> None:
        """A search moves freely, and asks for what it has found."""
        parameter = self.parameter()
        for value in parameter.decode(self._coordinates()):
            _same(parameter.check(value), value, "decode gives what check changes")

    def test_snap_is_encode_of_decode_and_idempotent(self) -> None:
        """To the last bit: that is how a point already taken is recognised."""
        parameter, u = self.parameter(), self._coordinates()
        snapped = parameter.snap(u)
        np.testing.assert_array_equal(snapped, parameter.encode(parameter.decode(u)))
        np.testing.assert_allclose(parameter.snap(snapped), snapped, rtol=0.0, atol=_ROUNDING)

    def test_condensed_coordinates_tell_the_same_values_apart(self) -> None:
        """Or a batch would repeat a point, or lose one."""
        snapped = self.parameter().snap(self._coordinates())
        short = self.parameter().condensed(snapped)
        distinct = (len(np.unique(rows, axis=0)) for rows in (snapped, short))
        assert len(set(distinct)) == 1, "condensed coordinates merge values, or split one"

    def test_levels_are_all_values(self) -> None:
        """A small finite space is listed, not sampled."""
        parameter = self.parameter()
        levels = parameter.levels() if (parameter.size or 0) <= 10**6 else None
        if parameter.size is None:
            assert levels is None, "it has levels and no size"
        elif levels is not None:
            assert levels.shape == (parameter.size, parameter.width), "levels are not all values"
            np.testing.assert_array_equal(parameter.snap(levels), levels)

    def test_examples_are_distinct_values(self) -> None:
        """A chart draws them; a command is tried with them."""
        parameter = self.parameter()
        for most in (2, 41):
            shown = parameter.examples(most)
            for value in shown:
                _same(parameter.check(value), value, "an example is not canonical")
            u = parameter.encode(shown)
            assert len(np.unique(u, axis=0)) == len(shown), "two examples are one value"
            assert min(2, parameter.size or 2) <= len(shown) <= most, "too few examples, or many"

    def test_values_survive_json(self) -> None:
        """The log holds them."""
        parameter = self.parameter()
        for value in self.values():
            text = json.dumps(parameter.to_json(value), allow_nan=False)
            _same(parameter.from_json(json.loads(text)), value, "JSON changes a value")

    def test_the_description_builds_it_again(self) -> None:
        """So that a log can be replayed without the program that wrote it."""
        parameter, space = self.parameter(), Space({"p": self.parameter()})
        text = json.dumps(space.describe(), allow_nan=False)
        assert registered(parameter.kind) is type(parameter), "its kind is not registered"
        if not parameter.opaque:
            assert space_from_description(json.loads(text)) == space, "its description differs"

    def test_values_survive_a_sheet(self) -> None:
        """What ``covey ask`` writes, ``covey tell`` reads."""
        parameter = self.parameter()
        for value in self.values():
            text = "" if value is None else str(value)
            _same(parameter.check(parameter.parse(text)), value, f"{text!r} is read differently")

    def test_a_linear_constraint_may_weigh_it_if_it_says_so(self) -> None:
        """Numbers at coordinates, and back to the nearest."""
        parameter = self.parameter()
        if parameter.numeric:
            low, high = parameter.span
            u = parameter.encode(self.values())
            x = parameter.numbers(u)
            assert np.all((low <= x) & (x <= high)), "numbers outside the span"
            np.testing.assert_allclose(parameter.nearest(x), u, rtol=0.0, atol=_ROUNDING)
            Space({"p": parameter}, where=[Linear({"p": 1.0}, upper=high)])


def _same(got: Any, expected: Any, otherwise: str) -> None:
    alike = type(got) is type(expected) and bool(np.all(got == expected))
    assert alike, f"{otherwise}: {expected!r} became {got!r}"
