"""`CoveySampler`: an Optuna sampler that draws trials from batches chosen by Covey."""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from covey.arguments import checked_seed
from covey.arrays import one_thread
from covey.baselines import Sobol
from covey.catalog import strategy_of
from covey.errors import ExhaustedError, SpaceError, StrategyError, installed, is_whole
from covey.gp import GP
from covey.history import (
    PLAIN,
    Added,
    Asked,
    Cancelled,
    Enqueued,
    Event,
    Failed,
    History,
    Point,
    Reported,
    Told,
)
from covey.integrations.optuna_batches import (
    BatchStore,
    Turns,
    all_trials,
    point_from_optuna,
    store_batch,
    store_claim,
)
from covey.integrations.spaces.optuna import space_from_optuna
from covey.integrations.spaces.optuna_trials import conditions_of, union_of
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


def _result(trial: FrozenTrial, values: Sequence[float], outcomes: Outcomes) -> Point:
    """What is told of a trial: its objectives and constraints by name."""
    return Point({**dict(zip(outcomes.goals, values, strict=True)), **_constraints(trial)})


def history_of(store: BatchStore, but: int, outcomes: Outcomes) -> History:
    """The history of a store's trials in its space, without the trial of number ``but``.

    Batches are asked for, so that random numbers and rounds advance, and then cancelled: which
    points were run is taken from the trials. Trials that lack a parameter of the space are left
    out. A pruned trial is told as a run of Covey tells one that it stops: the last value that it
    reported, with the step as ``stopped``.
    """
    events: list[Event] = []
    made = 0  # trials so far, which is the next id
    for batch in store.batches:
        events.append(Asked(tuple(map(Point, batch.points)), "batch"))
        events.append(Cancelled(tuple(range(made, made + len(batch.points)))))
        made += len(batch.points)
    found: dict[FinalStatus, list[tuple[Point, FrozenTrial]]] = {
        "told": [],
        "stopped": [],
        "failed": [],
        "pending": [],
    }
    several = not outcomes.only
    for trial in store.trials:
        point = store.point_of(trial) if trial.number != but else None
        if point is not None:
            found[status_of(trial, several=several)].append((Point(point), trial))
    steps = _compared([trial for status in ("told", "stopped") for _, trial in found[status]])
    for status, seen in found.items():
        if seen:
            ids = tuple(range(made, made + len(seen)))
            events += _events(status, ids, seen, steps, outcomes)
            made += len(seen)
    return History(events)


def _events(
    status: FinalStatus,
    ids: tuple[int, ...],
    seen: Sequence[tuple[Point, FrozenTrial]],
    steps: Container[int],
    outcomes: Outcomes,
) -> list[Event]:
    """What happened to trials of one status, which get these ids."""
    points, trials = tuple(point for point, _ in seen), [trial for _, trial in seen]
    goal = outcomes.event_goal
    reports = [
        Reported(id, 1, step, value)
        for id, trial in zip(ids, trials, strict=True)
        for step, value in _kept(reports_of(trial), steps)
    ]
    if status == "told":
        values = tuple(_result(trial, trial.values, outcomes) for trial in trials)
        return [Added(points, values, goal=goal), *reports]
    if status == "stopped":
        last = [max(reports_of(trial).items()) for trial in trials]
        values = tuple(
            _result(t, [value], outcomes) for t, (_, value) in zip(trials, last, strict=True)
        )
        stopped = tuple({"stopped": step} for step, _ in last)
        return [Enqueued(points), *reports, Told(ids, values, (), stopped, goal)]
    return [Enqueued(points), *([Failed(ids)] if status == "failed" else ())]


def _compared(trials: Sequence[FrozenTrial]) -> Container[int]:
    """The steps whose reports are taken, the same for all trials, so that curves compare."""
    steps = sorted({step for trial in trials for step in reports_of(trial)})
    if len(steps) <= _STEPS:
        return {*steps}
    return {steps[round(i * (len(steps) - 1) / (_STEPS - 1))] for i in range(_STEPS)}


def _kept(reports: dict[int, float], steps: Container[int]) -> list[tuple[int, float]]:
    last = max(reports, default=-1)
    return [(step, value) for step, value in reports.items() if step in steps or step == last]


_log = logging.getLogger("covey")


class CoveySampler(BaseSampler):
    """Draws trials from batches: each point promising, and all of them different.

    A batch is computed once and handed out one point per trial, to all threads and processes that
    share the study's storage, which take turns (`covey.integrations.optuna_batches`). The next
    one is computed when it is used up, from what has finished by then and with regard to what still
    runs; while there are fewer results than it has points, it is a piece of a Sobol sequence.

    With several ``directions`` the points are to add to the front of all objectives: by their
    hypervolume for two and three, at random weightings for more. Constraints that trials have set
    are modelled, each by itself, and kept.

    The search space is what completed trials had, or ``search_space``. A parameter that some of
    them lack is conditional on the values of others that it came with; all trials teach one model.
    Parameters outside the space (where nothing explains which trials have them), and all before the
    first trial is complete, are drawn at random, each by itself.
    A trial that a pruner ended counts with the last value that it reported.
    When every point of a finite space has been tried, points are repeated. Every draw is a function
    of the seed, the trial's number and the log, so that several workers may share a seed.

    Args:
        batch: points per batch; about a quarter as many as there are workers that end at different
            moments, or as many as begin and end together.
        strategy: a name (see `covey.catalog.STRATEGIES`) or an object with `choose`.
        seed: of all randomness; None draws one.
        search_space: distributions by name, if they are known beforehand.
        patience: seconds without any progress after which a worker that holds its turn is
            believed dead. More than the longest that a batch takes to compute.

    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=CoveySampler(batch=4, seed=0))
    >>> study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=13)
    >>> bool(abs(study.best_params["x"] - 0.3) < 0.1)
    True
    """

    def __init__(
        self,
        batch: int = 2,
        strategy: str | Strategy = "auto",
        seed: int | None = None,
        *,
        search_space: Mapping[str, BaseDistribution] | None = None,
        patience: float = 120.0,
    ) -> None:
        if not is_whole(batch, 1):
            raise StrategyError(f"batch is a whole number of points, at least 1; got {batch!r}.")
        if not patience > 0.0:
            raise StrategyError(f"patience is a number of seconds above 0; got {patience!r}.")
        self._batch = int(batch)
        self._name, self._strategy = strategy_of(strategy)
        self._seed = checked_seed(seed)
        self._turns = Turns(float(patience))
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
        """The next point of the current batch, after computing one if none is left."""
        if search_space.keys() <= trial.system_attrs.get("fixed_params", {}).keys():
            return {}
        with self._turns.take(study, trial) as trials:
            space = self._space(trials, search_space)
            if space is None or _is_whole(space, trial.system_attrs.get("fixed_params", {})):
                return {}
            store = BatchStore(trials, space)
            # A trial that is opened again keeps its point. A point that another trial claimed too,
            # after a worker in its turn was believed dead, is used by neither.
            while store.taken_by(trial.number) is None or store.contested(trial.number):
                place = store.next_place(trial.number)
                if place is None:
                    points = self._compute(study, trial, store)
                    if not points:
                        return self._repeat(trial, space)
                    place = store_batch(study, trial, space, store.serial, points)
                store_claim(study, trial, place)
                store = BatchStore(all_trials(study), space)
            return store.taken_by(trial.number) or {}

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

    def _compute(self, study: Study, trial: FrozenTrial, store: BatchStore) -> list[dict[str, Any]]:
        """The next batch, of fewer points where fewer are left; nothing if none is."""
        outcomes = outcomes_of(study, store.trials)
        history = history_of(store, trial.number, outcomes)
        recipe = Recipe(store.space, outcomes, GP(), self._seed)
        name, strategy = self._name, self._strategy
        if strategy.needs_model and len(history.told) < self._batch:
            name, strategy = "sobol", Sobol()
        k = self._batch
        while k:
            try:
                with one_thread():
                    points = propose(history, recipe, Request(k, strategy, name)).points
            except ExhaustedError as error:
                k = min(error.left, k - 1)
            else:
                _log.info("trial %d computed a batch of %d by %s", trial.number, k, name)
                return points
        return []

    def _repeat(self, trial: FrozenTrial, space: Space) -> dict[str, Any]:
        _log.info("every point was tried; trial %d repeats one at random", trial.number)
        rng = np.random.default_rng([self._seed, trial.number])
        return space.decode(rng.random((1, space.width)))[0]


def _is_whole(space: Space, fixed: Mapping[str, Any]) -> bool:
    """Whether fixed parameters leave nothing to choose, as those of one branch may."""
    if space.presence is None or not fixed:
        return False
    try:
        point_from_optuna(space, fixed)
    except SpaceError:
        return False
    return True


def _searchable(name: str, distribution: BaseDistribution) -> bool:
    if distribution.single():
        return False
    try:
        space_from_optuna({name: distribution})
    except SpaceError as error:
        _log.info("drawn at random, apart from the batch: %s", error)
        return False
    return True
