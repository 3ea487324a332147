"""`CoveySampler`: an Optuna sampler whose points are chosen by Covey."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from covey.arguments import checked_seed
from covey.arrays import one_thread
from covey.catalog import strategy_of
from covey.errors import ExhaustedError, SpaceError, installed
from covey.gp import GP
from covey.history import PLAIN, Asked, Enqueued, Event, Failed, History, Point, Reported, Told
from covey.integrations.spaces.optuna import point_from_optuna, space_from_optuna
from covey.integrations.spaces.optuna_trials import conditions_of, union_of
from covey.integrations.unused import warn_of_unused
from covey.learn import Goal, Recipe
from covey.outcomes import Limit, Outcomes
from covey.propose import Request, propose
from covey.selection import Strategy
from covey.space import Space

with installed("optuna", "optuna"):
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.study import Study, StudyDirection
    from optuna.trial import FrozenTrial


# An Optuna study as a `History`.

FinalStatus = Literal["told", "stopped", "failed", "pending"]
_MOST = 1e100  # largest absolute value that a history takes
_STEPS = 64  # of a study whose reports are taken; of more, some in between are left out


def status_of(trial: FrozenTrial, *, several: bool = False) -> FinalStatus:
    """The status of a trial in Covey's terms.

    A complete trial is told and a pruned one stopped, unless a value or a constraint of it is not
    finite: then it failed. A pruned trial without any report failed
    too: no pruner ends what has not reported, so the objective itself refused the point, which must
    not be proposed again. If the last report is not finite, the training diverged. With several
    objectives Optuna reports and prunes nothing. What runs or waits is pending.
    """
    if not trial.state.is_finished():
        return "pending"
    if not all(abs(value) <= _MOST for value in _constraints(trial).values()):
        return "failed"
    if trial.state.name == "PRUNED":
        last = max(trial.intermediate_values, default=-1)
        return "stopped" if last in reports_of(trial) and not several else "failed"
    finite = trial.values is not None and all(abs(value) <= _MOST for value in trial.values)
    return "told" if trial.state.name == "COMPLETE" and finite else "failed"


def reports_of(trial: FrozenTrial) -> dict[int, float]:
    """The intermediate values of a trial by step, in order; those that are not finite left out."""
    found = sorted(trial.intermediate_values.items())
    return {step: value for step, value in found if step >= 0 and abs(value) <= _MOST}


def outcomes_of(study: Study, trials: Sequence[FrozenTrial]) -> Outcomes:
    """The objectives of a study and the constraints that trials have.

    A constraint is a limit: it is modelled, and kept at zero or below.
    """
    goals = {f"objective {i}": _goal(direction) for i, direction in enumerate(study.directions)}
    names = sorted({name for trial in trials for name in _constraints(trial)})
    if len(goals) == 1 and not names:
        return Outcomes({PLAIN: _goal(study.directions[0])})
    return Outcomes(goals, tuple(Limit(name, "<=", 0.0) for name in names))


def _constraints(trial: FrozenTrial) -> dict[str, float]:
    """The constraints of a trial by name; before Optuna 5 they are a list without names."""
    named = getattr(trial, "constraints", None)
    if named is None:
        named = dict(enumerate(trial.system_attrs.get("constraints") or ()))
    return {f"constraint {name}": value for name, value in named.items()}


def _goal(direction: StudyDirection) -> Goal:
    return "max" if direction.name == "MAXIMIZE" else "min"


def _told(
    trial: FrozenTrial, status: FinalStatus, outcomes: Outcomes
) -> tuple[Point, dict[str, int] | None]:
    """What is told of a trial: objectives and constraints by name; and when, if it was stopped.

    One that was stopped has the last value that it reported.
    """
    values, metrics = trial.values, None
    if status == "stopped":
        step, value = max(reports_of(trial).items())
        values, metrics = [value], {"stopped": step}
    named = dict(zip(outcomes.goals, values, strict=True))
    return Point({**named, **_constraints(trial)}), metrics


def all_trials(study: Study) -> list[FrozenTrial]:
    """All trials as the storage has them now, those of all Hyperband brackets; not to be changed.

    Cost: one read of the storage, which caches finished trials.
    """
    return study._storage.get_all_trials(study._study_id, deepcopy=False)


def point_of(space: Space, trial: FrozenTrial) -> Point | None:
    """The point of a trial: what it suggested, or was fixed to; None if it is not in the space."""
    try:
        fixed = trial.system_attrs.get("fixed_params", {})
        return Point(point_from_optuna(space, {**fixed, **trial.params}))
    except SpaceError:  # a parameter is missing, or is outside the space
        return None


def history_of(
    space: Space,
    trials: Sequence[FrozenTrial],
    outcomes: Outcomes,
    asks: float = math.inf,
) -> History:
    """The history of trials in a space; those that lack a parameter of it are left out.

    Each trial of a number below ``asks`` counts as one ask. A pruned trial is told as a run of
    Covey tells one that it stops: the last value that it reported, with the step as ``stopped``.
    """
    points = [(trial, point_of(space, trial)) for trial in trials]
    known = [(trial, point) for trial, point in points if point is not None]
    several = not outcomes.only
    statuses = [status_of(trial, several=several) for trial, _ in known]
    events: list[Event] = [
        Asked((point,), "optuna") if trial.number < asks else Enqueued((point,))
        for trial, point in known
    ]
    ended = {
        id: trial for id, (trial, _) in enumerate(known) if statuses[id] in ("told", "stopped")
    }
    steps = _compared(ended.values())
    for id, trial in ended.items():
        events += [Reported(id, 1, *report) for report in _kept(reports_of(trial), steps)]
    if ended:
        told = [_told(trial, statuses[id], outcomes) for id, trial in ended.items()]
        values, metrics = zip(*told, strict=True)
        events.append(Told(tuple(ended), values, (), metrics, outcomes.event_goal))
    failed = tuple(id for id, status in enumerate(statuses) if status == "failed")
    return History([*events, Failed(failed)] if failed else events)


def _compared(trials: Iterable[FrozenTrial]) -> Container[int]:
    """The steps whose reports are taken, the same for all trials, so that curves compare."""
    steps = sorted({step for trial in trials for step in reports_of(trial)})
    if len(steps) <= _STEPS:
        return {*steps}
    return {steps[round(i * (len(steps) - 1) / (_STEPS - 1))] for i in range(_STEPS)}


def _kept(reports: dict[int, float], steps: Container[int]) -> list[tuple[int, float]]:
    last = max(reports, default=-1)
    return [(step, value) for step, value in reports.items() if step in steps or step == last]


_log = logging.getLogger("covey")
_computing = threading.Lock()  # one point at a time in a process, by the latest trials


class CoveySampler(BaseSampler):
    """Chooses the point of each trial, as it begins: promising, and unlike those that still run.

    It knows what has finished by then, in all threads and processes that share the study's storage,
    and goes around the points of running trials. Of trials that begin at the same moment none
    knows the others' points: then each works out those of trials of lower number beside its own.

    With several ``directions`` the points are to add to the front of all objectives: by their
    hypervolume for two and three, at random weightings for more. Constraints that trials have set
    are modelled, each by itself, and kept.

    The search space is what completed trials had, or ``search_space``. A parameter that some of
    them lack is conditional on the values of others that it came with; all trials teach one model.
    Parameters outside the space (where nothing explains which trials have them), and all before the
    first trial is complete, are drawn at random, each by itself.
    A trial that a pruner ended counts with the last value that it reported.
    When every point of a finite space has been tried, points are repeated. Every draw is a function
    of the seed, the trial's number and the log; several workers should share a seed.

    Args:
        batch: has no effect any more.
        strategy: a name (see `covey.catalog.STRATEGIES`) or an object with `choose`.
        seed: of all randomness; None draws one.
        search_space: distributions by name, if they are known beforehand.
        patience: has no effect any more.

    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=CoveySampler(seed=0))
    >>> study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=13)
    >>> bool(abs(study.best_params["x"] - 0.3) < 0.1)
    True
    """

    def __init__(
        self,
        batch: int | None = None,
        strategy: str | Strategy = "auto",
        seed: int | None = None,
        *,
        search_space: Mapping[str, BaseDistribution] | None = None,
        patience: float | None = None,
    ) -> None:
        warn_of_unused("CoveySampler", batch=batch, patience=patience)
        self._name, self._strategy = strategy_of(strategy)
        self._seed = checked_seed(seed)
        self._search_space = search_space
        if search_space is not None:
            space_from_optuna(search_space)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The distributions of completed trials, as far as Covey expresses and explains them."""
        known = self._search_space
        if known is None:
            trials = all_trials(study)
            found = union_of(trials)
            when = conditions_of(trials, found)
            known = {name: found[name] for name in sorted(found) if when.get(name) != {}}
        return {name: d for name, d in known.items() if _searchable(name, d)}

    def _space(
        self, trials: list[FrozenTrial], search_space: dict[str, BaseDistribution]
    ) -> Space | None:
        """The space of these distributions, conditional as completed trials show; None if empty."""
        when = conditions_of(trials, search_space)
        if self._search_space is not None:  # what nothing explains is then searched all the same
            when = {name: condition for name, condition in when.items() if condition}
        kept = {n: search_space[n] for n in sorted(search_space) if when.get(n) != {}}
        return space_from_optuna(kept, when) if kept else None

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The next point; nothing where there is no space, or all of it is fixed."""
        if search_space.keys() <= trial.system_attrs.get("fixed_params", {}).keys():
            return {}
        with _computing:
            trials = [other for other in all_trials(study) if other.number != trial.number]
            space = self._space(trials, search_space)
            if space is None:
                return {}
            outcomes = outcomes_of(study, trials)
            recipe = Recipe(space, outcomes, GP(), self._seed)
            before = [other for other in trials if other.number < trial.number]
            running = [other for other in before if other.state.name == "RUNNING"]
            choosing = [t.number for t in running if point_of(space, t) is None]
            # Those that began with the first of these, or later, share one ask with this trial:
            # the points of some are known, and the others' are the first that it gives.
            first = min([*choosing, trial.number])
            history = history_of(space, trials, outcomes, asks=first)
            k = sum(t.number >= first for t in running) + 1
            point = self._chosen(history, recipe, k, len(choosing))
        if point is None:
            _log.info("every point was tried; trial %d repeats one at random", trial.number)
            rng = np.random.default_rng([self._seed, trial.number])
            point = space.decode(rng.random((1, space.width)))[0]
        return point

    def _chosen(
        self, history: History, recipe: Recipe, k: int, place: int
    ) -> dict[str, Any] | None:
        """One of k points, or the last of those that are left; None if none is."""
        while k:
            try:
                with one_thread():
                    points = propose(history, recipe, Request(k, self._strategy, self._name)).points
            except ExhaustedError as error:
                k = min(error.left, k - 1)
            else:
                return points[min(place, k - 1)]
        return None

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A random value of one parameter that is not in the search space."""
        # Workers that share a seed must not share their draws, so the trial's number goes in.
        words = np.random.SeedSequence([self._seed, trial.number, *param_name.encode()])
        dice = RandomSampler(seed=int(words.generate_state(1)[0]))
        return dice.sample_independent(study, trial, param_name, param_distribution)


def _searchable(name: str, distribution: BaseDistribution) -> bool:
    if distribution.single():
        return False
    try:
        space_from_optuna({name: distribution})
    except SpaceError as error:
        _log.info("drawn at random, by itself: %s", error)
        return False
    return True
