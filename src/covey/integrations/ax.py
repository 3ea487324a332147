"""`CoveyNode`: an Ax generation node whose candidates Covey chooses.

``client.set_generation_strategy(GenerationStrategy(nodes=[CoveyNode()]))``
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from covey import GP, History, Space
from covey.arguments import checked_seed
from covey.arrays import one_thread
from covey.catalog import strategy_of
from covey.errors import ExhaustedError, SpaceError, StrategyError, installed
from covey.history import PLAIN, Asked, Event, Failed, Point, Told
from covey.integrations.spaces.ax import space_from_ax
from covey.integrations.unused import warn_of_unused
from covey.learn import Goal, Recipe
from covey.outcomes import Limit, Outcomes
from covey.propose import Request, propose
from covey.selection import Strategy

with installed("ax-platform", "ax"):
    from ax.core.base_trial import BaseTrial
    from ax.core.batch_trial import BatchTrial
    from ax.core.data import Data
    from ax.core.experiment import Experiment
    from ax.core.experiment_status import ExperimentStatus
    from ax.core.generator_run import GeneratorRun
    from ax.core.outcome_constraint import OutcomeConstraint
    from ax.core.parameter import DerivedParameter, FixedParameter, RangeParameter
    from ax.core.search_space import SearchSpace
    from ax.core.types import ComparisonOp, TParameterization
    from ax.exceptions.core import SearchSpaceExhausted
    from ax.generation_strategy.external_generation_node import ExternalGenerationNode
    from ax.generation_strategy.transition_criterion import TransitionCriterion


# An Ax experiment as a `History`: its arms are trials, in the space of what may vary.


_log = logging.getLogger("covey")

Outcome = tuple[float, float | None]  # to be maximised, and its standard error where it is known


@dataclass(frozen=True, eq=False)
class PointConverter:
    """Converts Ax's parameterizations to points of a `Space`, and back."""

    search_space: SearchSpace
    space: Space

    @staticmethod
    def of(search_space: SearchSpace) -> PointConverter:
        """The converter for the parameters of a search space that may vary."""
        return PointConverter(search_space, space_from_ax(search_space))

    def point(self, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
        """The point of a parameterization; None if it lies outside the search space."""
        point = {}
        for name in self.space.names:
            parameter = self.search_space.parameters[name]
            value = parameters.get(name, parameter.backfill_value)
            if value is None:
                return None
            value = parameter.cast(value)
            if isinstance(parameter, RangeParameter) and parameter.validate(value):
                # Ax accepts a value that rounding has put outside.
                value = min(max(value, parameter.lower), parameter.upper)
            point[name] = value
        try:
            return self.space.check(point, partial=True)
        except SpaceError as reason:
            _log.info("an arm outside the search space is left out: %s", reason)
            return None

    def parameters(self, point: Mapping[str, Any]) -> dict[str, Any] | None:
        """The parameterization of a point; None if rounding has taken it out of the space."""
        every = self.search_space.parameters
        found = {name: every[name].cast(value) for name, value in point.items()}
        for name, parameter in every.items():
            if isinstance(parameter, FixedParameter):
                found[name] = parameter.value
        for name, parameter in every.items():
            if isinstance(parameter, DerivedParameter):
                found[name] = parameter.compute(found)
        found = {name: found[name] for name in every}
        return found if self.search_space.check_membership(found) else None

    def held(self, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """The fixed values of a point: parameters fixed for now, and those disabled for good."""
        every = self.search_space.parameters
        for name, value in fixed.items():
            if isinstance(every.get(name), FixedParameter) and every[name].value != value:
                raise SpaceError(
                    f"parameter {name!r}: the search space fixes it to {every[name].value!r}; "
                    f"it cannot be {value!r}."
                )
        names = [name for name in self.space.names if every[name].is_disabled]
        disabled = {name: every[name].default_value for name in names}
        mine = {n: v for n, v in fixed.items() if n not in every or n in self.space.names}
        return {**disabled, **self.space.check(mine, partial=True)}


def history_of_experiment(experiment: Experiment, data: Data, converter: PointConverter) -> History:
    """The arms of an experiment and what became of them, their outcomes to be maximised.

    Each arm counts as one ask.

    Trials that failed or were abandoned, and arms without a value of the objective, count as
    failed: they are not proposed again and tell the model nothing. Stale trials never ran, and
    their points may be proposed again. What has not ended is pending, with data or without.
    """
    targets = Targets.of(experiment)
    outcomes = targets.found(data)
    points: list[Point] = []
    told: dict[int, tuple[Point, float | None]] = {}
    failed: list[int] = []
    for index, trial in sorted(experiment.trials.items()):
        for arm in () if trial.status.is_stale else trial.arms:
            point = converter.point(arm.parameters)
            if point is None:
                continue
            place, key = len(points), (index, arm.name)
            points.append(Point(point))
            if _is_over(trial) and key in outcomes and not _is_abandoned(trial, arm.name):
                told[place] = outcomes[key]
            elif trial.status.is_terminal or _is_abandoned(trial, arm.name):
                failed.append(place)
    events: list[Event] = [Asked((point,), "ax") for point in points]
    if told:
        values, sems = zip(*told.values(), strict=True)
        events.append(Told(tuple(told), values, sems, goal=targets.outcomes.event_goal))
    if failed:
        events.append(Failed(tuple(failed), "failed, abandoned, or without a value"))
    return History(events)


def _is_over(trial: BaseTrial) -> bool:
    return trial.status.is_completed or trial.status.is_early_stopped


def _is_abandoned(trial: BaseTrial, arm: str) -> bool:
    inside = isinstance(trial, BatchTrial) and arm in {a.name for a in trial.abandoned_arms}
    return trial.status.is_abandoned or inside


_OBJECTIVE = "objective"  # what the only objective is called, where there are constraints


@dataclass(frozen=True)
class Targets:
    """What an experiment optimises: weighted sums of metrics by name, and what is made of them."""

    sums: Mapping[str, Mapping[str, float]]  # outcome -> metric -> weight
    outcomes: Outcomes

    @staticmethod
    def of(experiment: Experiment) -> Targets:
        """The objectives of an experiment, and its constraints on outcomes.

        Raises:
            StrategyError: There is no objective; or one of several is a sum, or a constraint is a
                sum or relative to the status quo.
        """
        config = experiment.optimization_config
        if config is None:
            raise StrategyError(
                "this experiment has no objective; call client.configure_optimization first."
            )
        objective, bounds = config.objective, config.outcome_constraints
        if not objective.is_multi_objective and not bounds:
            return Targets({PLAIN: dict(objective.metric_weights)}, Outcomes({PLAIN: "max"}))
        sums: dict[str, Mapping[str, float]] = {_OBJECTIVE: dict(objective.metric_weights)}
        goals: dict[str, Goal] = {_OBJECTIVE: "max"}
        if objective.is_multi_objective:
            if len(objective.expression.split(",")) != len(objective.metric_weights):
                raise StrategyError(
                    f"of several objectives each is one metric, and here one is a sum: "
                    f"{objective.expression}. Report the sum as a metric of its own."
                )
            goals = {n: "max" if w > 0.0 else "min" for n, w in objective.metric_weights}
            sums = {name: {name: 1.0} for name in goals}
        limits = tuple(_limit(bound) for bound in bounds)
        sums |= {limit.name: {limit.name: 1.0} for limit in limits}
        return Targets(sums, Outcomes(goals, limits))

    def found(self, data: Data) -> dict[tuple[int, str], tuple[Point, float | None]]:
        """The outcomes of each arm of each trial that has a finite value of all of them.

        A standard error is passed on where there is one objective.
        """
        each = {name: _outcomes(data, weights) for name, weights in self.sums.items()}
        whole = set.intersection(*(set(found) for found in each.values()))
        only = self.outcomes.only
        return {
            key: (
                Point({name: found[key][0] for name, found in each.items()}),
                each[only][key][1] if only else None,
            )
            for key in whole
        }


def _limit(bound: OutcomeConstraint) -> Limit:
    """A constraint on one metric, in absolute terms."""
    single = len(bound.metric_weights) == 1 and bound.metric_weights[0][1] == 1.0
    if bound.relative or not single:
        raise StrategyError(
            f"a constraint is on one metric and not relative to the status quo; got {bound}. "
            "Write it as 'cost <= 3', or mark trials that violate it as failed."
        )
    sign = "<=" if bound.op is ComparisonOp.LEQ else ">="
    return Limit(bound.metric_weights[0][0], sign, float(bound.bound))


def _outcomes(data: Data, weights: Mapping[str, float]) -> dict[tuple[int, str], Outcome]:
    """The objective of each arm of each trial that has a finite value of all its metrics."""
    means: dict[tuple[int, str], dict[str, float]] = defaultdict(dict)
    squares: dict[tuple[int, str], float] = defaultdict(float)
    columns = ["trial_index", "arm_name", "metric_signature", "mean", "sem"]
    for index, arm, metric, mean, sem in data.df[columns].itertuples(index=False):
        if metric in weights and math.isfinite(mean):
            means[index, arm][metric] = weights[metric] * float(mean)
            squares[index, arm] += (weights[metric] * float(sem)) ** 2
    return {
        key: (sum(each.values()), math.sqrt(squares[key]) if squares[key] >= 0.0 else None)
        for key, each in means.items()
        if each.keys() == weights.keys()
    }


_TRIES = 20  # points to try, where rounding leaves nothing new of one


class NothingLeftError(ExhaustedError, SearchSpaceExhausted):
    """No point is left: Covey's `ExhaustedError`, and the error by which Ax ends a run."""

    def __init__(self, message: str) -> None:
        ExhaustedError.__init__(self, message, left=0)
        SearchSpaceExhausted.__init__(self, message)


class CoveyNode(ExternalGenerationNode):
    """Generates candidates, each from all that is known by then, and unlike what is still running.

    A candidate is a function of the experiment and the seed: a fresh node goes on with an
    experiment that was loaded from storage.

    Args:
        batch: has no effect any more.
        strategy: a name (see `covey.catalog.STRATEGIES`) or an object with `choose`.
        seed: of all randomness; None draws one.
        name: of the node in its generation strategy.
        transition_criteria: when the generation strategy moves on to another node.
        suggested_experiment_status: passed on to Ax.
    """

    def __init__(
        self,
        batch: int | None = None,
        strategy: str | Strategy = "auto",
        seed: int | None = None,
        *,
        name: str = "Covey",
        transition_criteria: Sequence[TransitionCriterion] | None = None,
        suggested_experiment_status: ExperimentStatus | None = None,
    ) -> None:
        warn_of_unused("CoveyNode", batch=batch)
        super().__init__(
            name=name,
            suggested_experiment_status=suggested_experiment_status,
            transition_criteria=transition_criteria,
        )
        self._strategy_name, self._strategy = strategy_of(strategy)
        self._seed = checked_seed(seed)
        self._door: PointConverter | None = None
        self._history = History()
        self._outcomes = Outcomes({PLAIN: "max"})
        self._fixed: dict[str, Any] = {}

    def update_generator_state(self, experiment: Experiment, data: Data) -> None:
        """Read the experiment again."""
        self._door = PointConverter.of(experiment.search_space)
        self._history = history_of_experiment(experiment, data, self._door)
        self._outcomes = Targets.of(experiment).outcomes

    def get_next_candidate(self, pending_parameters: list[TParameterization]) -> TParameterization:
        """The next point.

        Raises:
            NothingLeftError: every point of the space was tried, or is pending; it is an
                `ExhaustedError` and Ax's `SearchSpaceExhausted`.
        """
        if self._door is None:
            raise StrategyError("a CoveyNode is told of its experiment first; let Ax call it.")
        history = self._with(self._door, pending_parameters)
        recipe = Recipe(self._door.space, self._outcomes, GP(), self._seed)
        wanted = Request(1, self._strategy, self._strategy_name, self._door.held(self._fixed))
        taken = [dict(trial.point) for trial in history.trials]
        for _ in range(_TRIES):
            try:
                with one_thread():
                    (point,) = propose(history, recipe, wanted).points
            except ExhaustedError as error:
                raise NothingLeftError(str(error)) from error
            parameters = self._door.parameters(point)
            if parameters is not None and self._door.point(parameters) not in taken:
                return parameters
            # Rounding leaves nothing new of it, so the next one must differ.
            history = history.then(Asked((Point(point),), self._strategy_name))
        raise NothingLeftError(
            f"{_TRIES} points were none that is new after rounding to the digits of its "
            "parameters; allow more digits, or fewer trials."
        )

    def _with(self, converter: PointConverter, pending: list[TParameterization]) -> History:
        """The history with further pending points: candidates that are not trials yet."""
        history = self._history
        known = [dict(trial.point) for trial in history.trials]
        points = [point for point in map(converter.point, pending) if point is not None]
        for point in points:
            if point not in known:
                history = history.then(Asked((Point(point),), "ax"))
        return history

    def _gen(self, experiment: Experiment, **kwargs: Any) -> GeneratorRun:
        """Remember the fixed features, which Ax does not pass on to an external node."""
        features = kwargs.get("fixed_features")
        self._fixed = dict(features.parameters) if features is not None else {}
        return super()._gen(experiment=experiment, **kwargs)
