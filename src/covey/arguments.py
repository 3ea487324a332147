"""Checks of what users pass to a `Study`: seed, counts, keys, trials, values and points."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from covey.earlier import PriorStudies, earlier_studies
from covey.errors import (
    HistoryError,
    SpaceError,
    StrategyError,
    is_whole,
    sentence,
)
from covey.gp import GP
from covey.history import History, Point, Trial
from covey.learn import Goal, Recipe
from covey.outcomes import Outcomes, refuse_parameters
from covey.selection import Strategy
from covey.space import Frame, Pool, Space, records_of
from covey.space.constraints import enforce
from covey.space.covering import searched

_LONGEST = 1e9  # seconds of a time budget
_MOST_POINTS = 10**5  # of a batch: their coordinates are drawn at once
Points = Iterable[Mapping[str, Any]] | Frame
Trials = Trial | int | Sequence[Trial | int]


def checked_gp(gp: GP | None) -> GP:
    """The Gaussian process to use, the default if none is given."""
    if gp is not None and not isinstance(gp, GP):
        raise StrategyError(f"gp is a covey.GP, such as covey.GP(kernel='matern52'); got {gp!r}.")
    return gp or GP()


def checked_seed(seed: int | None) -> int:
    """The seed, drawn if none is given."""
    if seed is None:
        return secrets.randbits(32)
    if not is_whole(seed, 0):
        raise StrategyError(f"seed must be a whole number >= 0, or None; got {seed!r}.")
    return int(seed)


def checked_resolution(resolution: Any) -> float | None:
    """A share of a range, or None."""
    if resolution is None:
        return None
    number = isinstance(resolution, int | float | np.integer | np.floating)
    if not number or isinstance(resolution, bool) or not 0.0 <= resolution < 1.0:
        raise StrategyError(
            "resolution is the share of a range within which two points of a batch are alike, "
            f"from 0 to below 1, or None; got {resolution!r}."
        )
    return float(resolution)


def checked_held(space: Space | Pool, fixed: Any) -> dict[str, Any]:
    """Parameters held fixed; they break no constraint that is about them alone."""
    held = {} if fixed is None else space.check(fixed, partial=True)
    try:
        for rule in space.constraints if held else ():
            enforce(rule, held, space.parameters)  # of what is not held it says nothing
    except SpaceError as error:
        raise SpaceError(
            f"what is held fixed leaves no point: {sentence(error)} Hold other values, or relax "
            "the constraint."
        ) from error
    return held


def checked_count(k: Any) -> int:
    """The number of points to ask for."""
    if not is_whole(k, 1):
        raise StrategyError(f"ask takes a whole number of points, at least 1; got {k!r}.")
    if k > _MOST_POINTS:
        raise StrategyError(f"ask takes at most {_MOST_POINTS} points; got {k!r}. Ask for fewer.")
    return int(k)


_LARGEST = 1536  # points of a batch: the wells of the largest plate, and some seconds a size


def checked_up_to(up_to: Any) -> int:
    """The largest batch that advice is about."""
    if not is_whole(up_to, 1) or up_to > _LARGEST:
        raise StrategyError(
            f"up_to is the largest batch in question, a whole number from 1 to {_LARGEST}; "
            f"got {up_to!r}."
        )
    return int(up_to)


def checked_worth(worth: Any) -> float | None:
    """The least gain that counts in advice, in the user's units; None: not said."""
    number = isinstance(worth, int | float | np.number) and not isinstance(worth, bool)
    if worth is not None and not (number and 0.0 < worth < np.inf):
        raise StrategyError(
            "worth is the least gain that counts, a number > 0 in the units of your results; left "
            f"out it is 1 % of their range. Got {worth!r}."
        )
    return None if worth is None else float(worth)


def checked_key(key: str | None) -> str | None:
    """The key of a request, if it has one."""
    if key is not None and not (isinstance(key, str) and key):
        raise HistoryError(f"a key is a text that names one message; got {key!r}.")
    return key


def checked_seconds(seconds: float | None) -> float | None:
    """The time budget of an ask in seconds, if it has one."""
    if seconds is None:
        return None
    number = isinstance(seconds, int | float | np.integer | np.floating)
    if not number or isinstance(seconds, bool) or not 0.0 < seconds <= _LONGEST:
        got = "a larger one" if number and seconds > _LONGEST else repr(seconds)
        raise StrategyError(
            f"time_budget is a number of seconds above 0, up to {_LONGEST:g}; got {got}. Leave it "
            "out for as long as it takes."
        )
    return float(seconds)


def is_one(trials: Any) -> bool:
    """Whether a single trial, or its id, was given."""
    return isinstance(trials, Trial | int | np.integer)


def sequence_of(values: Any, what: str) -> tuple[Any, ...]:
    """The values as a tuple; an error that names ``what`` if they are no sequence."""
    if _is_single(values):
        raise HistoryError(f"a list of trials needs a list of {what}; got {values!r}.")
    return tuple(values)


# Of coordinates: a search holds about 25,000 rows at a time, which is 1 GB. (Our choice.)
_MOST_COLUMNS = 5000


UNCOPIED = (
    "a study cannot be pickled or copied: two copies would give out the same trials. Let processes "
    "share a journal, Study(space, journal='run.jsonl') here and Study.load('run.jsonl') there; "
    "study.history can be pickled."
)
# Arguments of the recipe, not of the machine, that few studies have.
RARE = ("resolution", "limits", "record", "worst", "prior")


@dataclass(frozen=True)
class StudyArguments:
    """What a user passes to `Study`; None where a journal, or a default, decides."""

    space: Space | Pool
    goal: Goal | Mapping[str, Goal] = "max"
    strategy: str | Strategy | None = None
    seed: int | None = None
    gp: GP | None = None
    resolution: float | None = None
    limits: Mapping[str, tuple[str, float]] | None = None
    record: Sequence[str] | None = None
    worst: Mapping[str, float] | None = None
    prior: PriorStudies | None = None

    def __post_init__(self) -> None:
        _require_kind(self.space)  # first: what is wrong with outcomes comes after it
        object.__setattr__(self, "space", searched(self.space))
        require_space(self.space, self.outcomes)

    @cached_property
    def outcomes(self) -> Outcomes:
        """Goals, limits and records."""
        return Outcomes.of(self.goal, self.limits, self.record, self.worst)

    @property
    def given(self) -> dict[str, Any]:
        """The keyword arguments of a `Study`: those that are given."""
        every = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in every.items() if value is not None}

    @property
    def recipe(self) -> Recipe:
        """The recipe of a new study."""
        gp, seed = checked_gp(self.gp), checked_seed(self.seed)
        resolution = checked_resolution(self.resolution)
        earlier = earlier_studies(self.prior, self.outcomes)
        made = Recipe(self.space, self.outcomes, gp, seed, resolution, earlier)
        for name in self.outcomes.names:
            _ = made.of(name).sources  # refuses a study that has too little in common
        return made


def _require_kind(space: object) -> None:
    if not isinstance(space, Space | Pool):
        raise SpaceError(f"a study needs a covey.Space or a covey.Pool; got {type(space)!r}.")


def require_space(space: Space | Pool, outcomes: Outcomes) -> None:
    """Raise unless a study with these outcomes can search the space."""
    _require_kind(space)
    if isinstance(space, Space):
        _refuse_too_wide(space)
    refuse_parameters(outcomes, space.names)


def require_space_to_extend(space: Space | Pool | None, extend: str | None) -> None:
    """Raise if a study shall be extended and nobody says to which space."""
    if extend is not None and space is None:
        raise SpaceError(
            f"extend={extend!r} is the reason for another space, and none is given; write "
            "Study.load(journal, space, extend=reason), with the space to go on in, or leave "
            "extend out."
        )


def require_extension(space: Space | Pool, recipe: Recipe) -> None:
    """Raise unless a study may go on in this space: its earlier studies must have a place in it."""
    require_space(space, recipe.outcomes)
    for study in recipe.earlier:
        for outcome in study.goal:
            study.of(outcome).mean_in(space, recipe.gp)


def _refuse_too_wide(space: Space) -> None:
    """Raise if the coordinates of a search would take more memory than a study should."""
    if space.width <= _MOST_COLUMNS:
        return
    name = max(space.names, key=lambda name: space.parameters[name].width)
    raise SpaceError(
        f"the coordinates of this space have {space.width} columns, {name!r} alone "
        f"{space.parameters[name].width}, one for each option; a study takes at most "
        f"{_MOST_COLUMNS}. Write Choice(..., ordered=True) if the options have an order; else "
        "describe each option by numbers, Choice(..., features=...)."
    )


# Results, of one outcome or of several by name.


class Results(NamedTuple):
    """Values for an event, what is recorded beside them, and the name of the only goal."""

    values: tuple[Any, ...]
    metrics: tuple[dict[str, Any] | None, ...] = ()
    goal: str | None = None


def results_of(
    values: Sequence[Any], ids: Sequence[int], history: History, outcomes: Outcomes
) -> Results:
    """The results of trials; an outcome that was told before need not be told again."""
    whose = [f"trial {id}" for id in ids]
    known = [
        history.trial(id).values if is_whole(id, 0) and id < len(history) else {} for id in ids
    ]
    return _named(values, whose, known, outcomes)


def new_results(values: Sequence[Any], count: int, outcomes: Outcomes) -> Results:
    """The results of so many points from elsewhere."""
    whose = [f"point {i} of {count}" for i in range(1, count + 1)]
    return _named(values, whose, [{}] * count, outcomes)


def _named(
    values: Sequence[Any],
    whose: Sequence[str],
    known: Sequence[Mapping[str, float]],
    outcomes: Outcomes,
) -> Results:
    if len(values) != len(whose):
        return Results(tuple(values))  # the event says what is wrong
    checked = [outcomes.checked(*one) for one in zip(values, whose, known, strict=True)]
    points = tuple(point for point, _ in checked)
    return Results(points, tuple(beside for _, beside in checked), outcomes.goal_in(points))


def correction(value: Any, whose: str, outcomes: Outcomes) -> Point:
    """A corrected value, or those by name that change."""
    point, beside = outcomes.checked(value, whose, outcomes.names)
    if beside:
        raise HistoryError(f"{whose}: {', '.join(beside)} is only recorded; amend outcomes.")
    return point


def each(sem: Any, count: int, outcomes: Outcomes, values: Sequence[Any] = ()) -> tuple[Any, ...]:
    """Standard errors for ``count`` values of the only goal; one number stands for all.

    ``values`` by name have to include the goal's where there is a standard error of it.
    """
    if sem is None:
        return ()
    if not outcomes.only:
        raise HistoryError(
            f"sem belongs to one goal, and there are {', '.join(outcomes.goals)}; leave it out."
        )
    sems = (sem,) * count if _is_single(sem) else tuple(sem)
    for one, value in zip(sems, values, strict=False):  # the event compares the lengths
        if one is not None and outcomes.only not in value:
            raise HistoryError(
                f"sem is {one!r} for a result without {outcomes.only!r}, to which it belongs; tell "
                "both together. Of several results give a list, with None in this place."
            )
    return sems


def _is_single(values: Any) -> bool:
    try:
        return np.ndim(values) == 0
    except ValueError:  # lists of unequal length; the error comes later
        return False


def ids_of(trials: Trials) -> tuple[int, ...]:
    """Ids of trials, of their ids, or of one of either."""
    if isinstance(trials, Set | Mapping | str) or not isinstance(
        trials, Trial | int | np.integer | Iterable
    ):
        raise HistoryError(
            f"trials is a trial, an id, or a list of these in order; got {type(trials).__name__}."
        )
    if isinstance(trials, Trial | int | np.integer):
        trials = (trials,)
    return tuple(trial.id if isinstance(trial, Trial) else trial for trial in trials)


def newest(trials: Trials) -> int:
    """The largest id among the given `Trial` objects; -1 if only ids were given."""
    given = trials if isinstance(trials, Sequence) else (trials,)
    return max((trial.id for trial in given if isinstance(trial, Trial)), default=-1)


def own_ids(trials: Trials, history: History) -> tuple[int, ...]:
    """Ids of trials of this history; one of another study would change the wrong point."""
    for trial in trials if isinstance(trials, Sequence) else (trials,):
        if isinstance(trial, Trial) and not _is_part(trial.point, history.trial(trial.id).point):
            raise HistoryError(
                f"trial {trial.id} at {dict(trial.point)} is not of this study, whose trial "
                f"{trial.id} is at {dict(history.trial(trial.id).point)}."
            )
    return ids_of(trials)


def _is_part(point: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether it is the point as it is now, or as it was before parameters joined the space."""
    return point == now or (
        len(point) < len(now) and all(n in now and now[n] == v for n, v in point.items())
    )


def checked_points(points: Points, space: Space | Pool) -> tuple[Any, ...]:
    """Points of the space, each checked; the points of a data frame are its rows."""
    rows = records_of(points)
    given = points if rows is None else rows
    if isinstance(given, Mapping | str) or not isinstance(given, Iterable):
        raise SpaceError(
            "points is a list of points, or a pandas or polars frame with a column for each "
            f"parameter; put a single point in a list, [point]. Got {type(points).__name__}."
        )
    return tuple(space.check(point) for point in given)
