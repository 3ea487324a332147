"""Ax: ``client.set_generation_strategy(GenerationStrategy(nodes=[CoveyNode(batch=4)]))``."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from covey import GP, History
from covey.arguments import checked_seed
from covey.arrays import one_thread
from covey.catalog import strategy_of
from covey.errors import ExhaustedError, MissingExtraError, StrategyError
from covey.header import Recipe
from covey.history import Asked, Point
from covey.propose import Request, propose
from covey.strategies import Strategy

try:
    from ax.core.data import Data
    from ax.core.experiment import Experiment
    from ax.core.experiment_status import ExperimentStatus
    from ax.core.generator_run import GeneratorRun
    from ax.core.types import TParameterization
    from ax.exceptions.core import SearchSpaceExhausted
    from ax.generation_strategy.external_generation_node import ExternalGenerationNode
    from ax.generation_strategy.transition_criterion import TransitionCriterion
except ImportError as error:
    raise MissingExtraError("ax-platform", "ax") from error

from covey.integrations.ax_history import Door, history_of

_log = logging.getLogger("covey")
_TRIES = 5  # batches of which rounding leaves nothing new, before it is given up


class NothingLeftError(ExhaustedError, SearchSpaceExhausted):
    """No point is left to try: an error of Covey's, and the one at which Ax ends a run."""

    def __init__(self, message: str) -> None:
        ExhaustedError.__init__(self, message, left=0)
        SearchSpaceExhausted.__init__(self, message)


class CoveyNode(ExternalGenerationNode):
    """Generates whole batches, handed out one candidate at a time.

    A batch is computed once and kept until it is used up or new results come in; the next knows
    what came in by then, and steps around what is still running. It is a function of the
    experiment and the seed: a fresh node goes on with an experiment that was loaded from storage.

    Args:
        batch: how many points are chosen together; as many as run at a time.
        strategy: a name (see `covey.catalog.STRATEGIES`) or an object with `choose`.
        seed: of all randomness; None draws one.
        name: of the node in its generation strategy.
        transition_criteria: when the generation strategy moves on to another node.
        suggested_experiment_status: passed on to Ax.
    """

    def __init__(
        self,
        batch: int = 4,
        strategy: str | Strategy = "auto",
        seed: int | None = None,
        *,
        name: str = "Covey",
        transition_criteria: Sequence[TransitionCriterion] | None = None,
        suggested_experiment_status: ExperimentStatus | None = None,
    ) -> None:
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise StrategyError(f"batch is a whole number of points, at least 1; got {batch!r}.")
        super().__init__(
            name=name,
            suggested_experiment_status=suggested_experiment_status,
            transition_criteria=transition_criteria,
        )
        self._batch = batch
        self._strategy_name, self._strategy = strategy_of(strategy)
        self._seed = checked_seed(seed)
        self._door: Door | None = None
        self._history = History()
        self._fixed: dict[str, Any] = {}
        self._queue: list[dict[str, Any]] = []  # points of the present batch, not yet handed out

    def update_generator_state(self, experiment: Experiment, data: Data) -> None:
        """Read the experiment anew; results that came in make the rest of a batch obsolete."""
        door = Door.to(experiment.search_space)
        history = history_of(experiment, data, door, self._batch)
        known = self._history
        same = (history.told, history.failed) == (known.told, known.failed)
        if self._door is None or not same or self._door.space != door.space:
            self._queue = []
        self._door, self._history = door, history

    def get_next_candidate(self, pending_parameters: list[TParameterization]) -> TParameterization:
        """The next point of the batch, after computing one if none is left.

        Raises:
            NothingLeftError: every point of the space was tried, or is pending; it is an
                `ExhaustedError` and Ax's `SearchSpaceExhausted`.
        """
        if self._door is None:
            raise StrategyError("a CoveyNode is told of its experiment first; let Ax call it.")
        history = self._with(self._door, pending_parameters)
        taken = [dict(trial.point) for trial in history.trials]
        for _ in range(_TRIES):
            while self._queue:
                parameters = self._door.parameters(self._queue.pop(0))
                if parameters is not None and self._door.point(parameters) not in taken:
                    return parameters
            self._queue = self._compute(self._door, history)
            # Should rounding leave none of these, the next batch must differ.
            history = history.then(Asked(tuple(map(Point, self._queue)), self._strategy_name))
        raise _nothing_left(
            f"{_TRIES} batches held no point that is new after rounding to the digits of its "
            "parameters; allow more digits, or fewer trials."
        )

    def _with(self, door: Door, pending: list[TParameterization]) -> History:
        """The history, and what is pending beside it: candidates that are no trials yet."""
        known = [dict(trial.point) for trial in self._history.trials]
        points = [point for point in map(door.point, pending) if point is not None]
        new = tuple(Point(point) for point in points if point not in known)
        return self._history.then(Asked(new, "ax")) if new else self._history

    def _compute(self, door: Door, history: History) -> list[dict[str, Any]]:
        """The next batch, of fewer points where fewer are left."""
        recipe = Recipe(door.space, "max", GP(), self._seed)
        fixed, k = door.held(self._fixed), self._batch
        while True:
            try:
                with one_thread():
                    wanted = Request(k, self._strategy, self._strategy_name, fixed)
                    return propose(history, recipe, wanted).points
            except ExhaustedError as error:
                if not error.left:
                    raise _nothing_left(str(error)) from error
                k = min(error.left, k - 1)
                _log.info("the last %d points of this search space", k)

    def _gen(self, experiment: Experiment, **kwargs: Any) -> GeneratorRun:
        """Ax does not tell an external node which parameters are fixed for now; here they are."""
        features = kwargs.get("fixed_features")
        fixed = dict(features.parameters) if features is not None else {}
        if fixed != self._fixed:
            self._fixed, self._queue = fixed, []
        return super()._gen(experiment=experiment, **kwargs)


def _nothing_left(reason: str) -> NothingLeftError:
    return NothingLeftError(reason)
