"""Earlier studies: their results, read from journals, as prior means of another study.

`earlier_studies` reads them, `Earlier` holds what the header of the new study keeps, and
`Earlier.mean_in` makes a prior mean of it (`covey.gp.prior_mean`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from covey.disk import reporting
from covey.errors import JournalError, SpaceError, did_you_mean
from covey.gp import condition, fit_best, views_of
from covey.gp.prior_mean import SourceMean
from covey.history import PLAIN, History, event_from_json
from covey.log.journal import read
from covey.outcomes import Outcomes
from covey.space import Pool, Space
from covey.space.names import is_finite, is_scalar, listed

if TYPE_CHECKING:
    from covey.arrays import Array
    from covey.gp import GP
    from covey.learn import Recipe

MOST = 300  # results of an earlier study that are kept: the best of them, and others at random
_BEST = 100
_FEWEST = 3  # results from which a mean can be learnt

PriorStudies: TypeAlias = Sequence[str | os.PathLike[str]]
"""Paths of the journals of earlier studies."""


@dataclass(frozen=True)
class Earlier:
    """Results of an earlier study, by the names of its parameters and of this study's outcomes."""

    name: str  # of its file
    fingerprint: str  # of its space
    goal: Mapping[str, str]  # whether more is better, of each outcome
    points: tuple[Mapping[str, Any], ...]
    values: tuple[Mapping[str, float], ...]
    told: int  # results that it had
    # Means that were made of it, by what they depend on.
    made: dict[Any, SourceMean] = field(default_factory=dict, compare=False, repr=False)

    def describe(self) -> dict[str, Any]:
        """Plain data for the header of a log."""
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "goal": dict(self.goal),
            "points": [dict(point) for point in self.points],
            "values": [dict(values) for values in self.values],
            "told": self.told,
        }

    @staticmethod
    def from_description(data: Any) -> Earlier:
        """The inverse of `describe`.

        Raises:
            JournalError: The data describe no study.
        """
        try:
            found = Earlier(
                str(data["name"]),
                str(data["fingerprint"]),
                dict(data["goal"]),
                tuple(dict(point) for point in data["points"]),
                tuple(
                    {name: float(value) for name, value in values.items()}
                    for values in data["values"]
                ),
                int(data["told"]),
            )
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise JournalError(
                "the header of this journal makes no sense of its earlier studies; restore the "
                "journal from a copy."
            ) from error
        return found

    def of(self, outcome: str) -> Earlier:
        """With this outcome alone."""
        return replace(self, goal={outcome: self.goal[outcome]})

    @property
    def names(self) -> tuple[str, ...]:
        """Its parameters: those that all of its points have."""
        common = set(self.points[0]).intersection(*map(set, self.points[1:]))
        return tuple(name for name in self.points[0] if name in common)

    def mean_in(self, space: Space | Pool, gp: GP) -> SourceMean:
        """Its posterior mean, in standardised units, more being better, in coordinates of a space.

        The parameters that both have are coordinates of the new space, within its ranges or not;
        what only the earlier study varied is held at its best result.

        Raises:
            SpaceError: They have too little in common.
        """
        (outcome, sense), *_ = self.goal.items()
        key = (space.fingerprint, outcome, sense, gp)
        if key not in self.made:
            self.made[key] = self._mean_in(space, gp, outcome, 1.0 if sense == "max" else -1.0)
        return self.made[key]

    def _mean_in(self, space: Space | Pool, gp: GP, outcome: str, sign: float) -> SourceMean:
        shared = [name for name in _searched(space) if name in self.names]
        if not shared:
            hints = (did_you_mean(name, _searched(space)) for name in self.names)
            raise SpaceError(
                f"{self.name} is no prior for this study: all of its results have the parameters "
                f"{listed(self.names) or 'that a log cannot hold'}, and this study has "
                f"{listed(_searched(space))}, none of which is the same."
                f"{next((hint for hint in hints if hint), '')}"
            )
        here = np.hstack([_coordinates(space, name, self._column(name)) for name in shared])
        others = [name for name in self.names if name not in shared]
        rest = np.hstack([np.zeros((len(here), 0)), *(_spread(self._column(n)) for n in others)])
        has = np.array([outcome in values for values in self.values])
        kept = np.asarray(~np.isnan(here).any(axis=1) & has)
        if kept.sum() < _FEWEST:
            raise SpaceError(
                f"{self.name} is no prior for this study: {int(kept.sum())} of its results can be "
                f"placed in this space, and {_FEWEST} are needed. Options that this study does not "
                "have are left out."
            )
        told = np.array([v[outcome] for v, keep in zip(self.values, kept, strict=True) if keep])
        at, values = np.hstack([here, rest])[kept], sign * told
        columns = np.concatenate([np.r_[space.columns_of(name)] for name in shared])
        groups = _groups(space, columns, rest.shape[1])
        views = views_of(at, values, np.full(len(values), np.nan), warp=gp.warp, groups=groups)
        plain = replace(gp, noise=None, samples=0)
        data, models = fit_best(views, plain, np.random.default_rng(0))
        return SourceMean(condition(models, data), columns, rest[kept][int(np.argmax(values))])

    def _column(self, name: str) -> list[Any]:
        return [point[name] for point in self.points]


def _groups(space: Space | Pool, columns: Array, more: int) -> tuple[int, ...] | None:
    """Which of the columns of a mean share a length-scale; ``more`` have their own."""
    if space.groups is None:
        return None
    _, place = np.unique([space.groups[c] for c in columns], return_inverse=True)
    return (*map(int, place), *range(int(place.max()) + 1, int(place.max()) + 1 + more))


def _searched(space: Space | Pool) -> tuple[str, ...]:
    """The parameters that vary; one that is held is as if the space did not have it."""
    if isinstance(space, Pool):
        return space.inputs
    return tuple(name for name, parameter in space.parameters.items() if parameter.size != 1)


def _coordinates(space: Space | Pool, name: str, values: Sequence[Any]) -> Array:
    """Coordinates (n, width) of values of one parameter; nan where a value has none."""
    columns = space.columns_of(name)
    width = columns.stop - columns.start
    at = np.full((len(values), width), np.nan)
    whole = space.point(0) if isinstance(space, Pool) else {}
    for i, written in enumerate(values):
        value = written
        with suppress(SpaceError):  # a value without a place is left out
            if isinstance(space, Pool):
                at[i] = space.encode([{**whole, name: value}])[0, columns]
                continue
            with suppress(SpaceError):  # a number outside is as it was written
                value = space.parameters[name].from_json(written)
            at[i] = space.parameters[name].place([value])
    return at


def _spread(values: Sequence[Any]) -> Array:
    """Coordinates (n, c) of what only the earlier study has; none of what is constant."""
    if all(map(is_finite, values)):
        x = np.array(values, dtype=np.float64)[:, None]
        return (x - x.min()) / np.ptp(x) if np.ptp(x) > 0.0 else x[:, :0]
    distinct = list(dict.fromkeys(map(repr, values)))
    hot = np.array([[repr(value) == option for option in distinct] for value in values])
    return hot.astype(np.float64) if len(distinct) > 1 else np.zeros((len(values), 0))


# Reading earlier studies.


def earlier_studies(given: PriorStudies | None, outcomes: Outcomes) -> tuple[Earlier, ...]:
    """The earlier studies at these paths, matched with the outcomes of a new study."""
    if given is None:
        return ()
    if isinstance(given, str | os.PathLike) or not isinstance(given, Sequence):
        raise JournalError(
            f"prior is a list of paths of journals, such as ['last-year.jsonl']; got {given!r}."
        )
    wanted = _senses(outcomes)
    found: list[Earlier] = []
    for path in given:
        if not isinstance(path, str | os.PathLike):
            raise JournalError(f"prior is a list of paths of journals; one of them is {path!r}.")
        study = _read(Path(path))
        if any(study.name == other.name for other in found):
            raise JournalError(
                f"prior names two files called {study.name}; rename one, so that reports can tell "
                "them apart."
            )
        found.append(_matched(study, wanted, single=outcomes.single))
    return tuple(found)


def _senses(outcomes: Outcomes) -> dict[str, str]:
    return {name: outcomes.sense(name) for name in outcomes.names}


def _read(path: Path) -> Earlier:
    with reporting(f"look for the prior {path}"):
        if not path.exists():
            raise JournalError(
                f"prior: there is no journal at {path}; name one that is there, or leave it out."
            )
    contents = read(path)
    header = contents.header
    try:
        outcomes = Outcomes.of(header["goal"], header.get("limits"), header.get("record"))
        fingerprint = str(header["fingerprint"])
    except (KeyError, ValueError) as error:
        raise JournalError(f"{path} is not the journal of a study, so it is no prior.") from error
    read_back = (event_from_json(line, dict) for line in contents.events)
    events = [event for event in read_back if event is not None]
    trials = [trial for trial in History(events).told if not trial.excluded]
    senses = _senses(outcomes)
    first = next(iter(senses))
    scores = [(1.0 if senses[first] == "max" else -1.0) * t.values.get(first, 0.0) for t in trials]
    kept = _picked(np.array(scores))
    points = tuple({n: v for n, v in trials[i].point.items() if is_scalar(v)} for i in kept)
    values = tuple({n: v for n, v in trials[i].values.items() if n in senses} for i in kept)
    if len(trials) < _FEWEST:
        raise JournalError(
            f"{path} holds {len(trials)} results that count, and a prior needs at least "
            f"{_FEWEST}; leave it out."
        )
    return Earlier(path.name, fingerprint, senses, points, values, len(trials))


def _picked(scores: Array) -> list[int]:
    """At most `MOST` places, ascending: of the best results, and of others at random."""
    if len(scores) <= MOST:
        return list(range(len(scores)))
    order = np.argsort(-scores, kind="stable")
    others = np.random.default_rng(0).permutation(order[_BEST:])[: MOST - _BEST]
    return sorted([*order[:_BEST].tolist(), *others.tolist()])


def _matched(study: Earlier, wanted: Mapping[str, str], *, single: bool) -> Earlier:
    """The study with its outcomes called as in the new one; those that it lacks are left out.

    An outcome of the same name is the same quantity, better in the direction of the new study.
    Where each study has one goal, good is good, whatever the two are called.
    """
    common = {name: sense for name, sense in wanted.items() if name in study.goal}
    if common and (PLAIN not in common or not single):
        return replace(study, goal=common)
    if single and len(study.goal) == 1:
        (theirs, sense), (ours, _) = *study.goal.items(), *wanted.items()
        renamed = tuple({ours: v[theirs]} if theirs in v else {} for v in study.values)
        return replace(study, goal={ours: sense}, values=renamed)
    raise JournalError(
        f"{study.name} is no prior for this study: it has the outcomes {listed(study.goal)}, and "
        f"this study {listed(wanted)}. Name the goals of this study as they were named there, "
        "goal={'yield': 'max'}, or leave it out."
    )


# What is said about them.


class Count(NamedTuple):
    """How much an earlier study counts, averaged over the models.

    Attributes:
        weight: a_s, of its mean in the prior mean.
        influence: the weight times the standard deviation of its mean at the points told so far,
            in standard deviations of the results. A mean that hardly varies has none, whatever its
            weight.
    """

    weight: float
    influence: float


def counts_of(
    recipe: Recipe, history: History, models: Sequence[Mapping[str, Any]]
) -> dict[str, Count]:
    """How much each study counts in models as a log describes them, by the name of its file.

    Those of which the models do not know yet are left out.
    """
    found: dict[str, list[Count]] = {study.name: [] for study in recipe.earlier}
    at = recipe.space.encode([trial.point for trial in history.told if not trial.excluded])
    for model in models:
        outcome = model.get("outcome", PLAIN)
        mine = [study for study in recipe.earlier if outcome in study.goal]
        for study, weight in zip(mine, model.get("earlier", ()), strict=False):
            mean = study.of(outcome).mean_in(recipe.space, recipe.gp)
            spread = float(np.std(mean.mean(at))) if weight > 0.0 else 0.0
            found[study.name].append(Count(float(weight), weight * spread))
    return {
        name: Count(*np.mean(counts, axis=0).tolist()) for name, counts in found.items() if counts
    }


def sentences_about(recipe: Recipe, history: History) -> tuple[str, ...]:
    """A sentence about each study: how much it counts in the latest models."""
    counts = counts_of(recipe, history, history.models or ()) if recipe.earlier else {}
    return tuple(
        f"The earlier study {study.name} {_words_of(counts[study.name])}."
        if study.name in counts
        else f"How much the earlier study {study.name} counts is found from the results."
        for study in recipe.earlier
    )


def _words_of(count: Count) -> str:
    if count.weight == 0.0:
        return "counts for nothing: the results contradict it"
    return (
        f"counts with weight {count.weight:.2f}, and moves what is expected by "
        f"{count.influence:.2f} standard deviations of the results"
    )
