"""`CoveySearch` for Ray Tune: ``tune.TuneConfig(search_alg=CoveySearch(batch=4), ...)``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from covey import Pool, Space, Study
from covey.errors import (
    ExhaustedError,
    HistoryError,
    JournalError,
    SpaceError,
    StrategyError,
    installed,
    is_whole,
)
from covey.integrations.queue import TrialQueue
from covey.integrations.spaces.ray import domains_in, nested, picked, space_from_ray
from covey.learn import Goal
from covey.selection import Strategy

with installed("ray", "ray"):
    from ray.tune.result import DEFAULT_METRIC
    from ray.tune.search import Searcher


_log = logging.getLogger("covey")


class CoveySearch(Searcher):
    """Suggests whole batches, one trial at a time.

    Args:
        space: a `covey.Space` or `covey.Pool`, or a dict of Ray domains; None takes the
            ``param_space`` of the Tuner.
        metric: what to optimise; None takes that of the TuneConfig.
        mode: "max" or "min"; None takes that of the TuneConfig.
        batch: how many points are chosen together; None is ``max_concurrent_trials`` where the
            TuneConfig sets it, else 8.
        strategy: a name or an object, as for `covey.Study`; None is "auto", or that of a file
            restored.
        seed: of all randomness; None draws one.
        wait: with True the next batch is chosen when every trial of this one has ended, and
            `suggest` returns None until then. With False it is chosen when this one is handed out,
            knowing which points are still running.
    """

    CKPT_FILE_TMPL = "searcher-state-{}.jsonl"

    _mode: str | None
    _metric: str | None

    def __init__(  # noqa: PLR0913 - three are Ray's, four are ours
        self,
        space: Space | Pool | Mapping[str, Any] | None = None,
        metric: str | None = None,
        mode: str | None = None,
        *,
        batch: int | None = None,
        strategy: str | Strategy | None = None,
        seed: int | None = None,
        wait: bool = True,
    ) -> None:
        if batch is not None and not is_whole(batch, 1):
            raise StrategyError(f"batch is a whole number, at least 1; got {batch!r}.")
        _require_one_objective(metric, mode)
        super().__init__(metric=metric, mode=mode)
        self._space = space if isinstance(space, Space | Pool | None) else space_from_ray(space)
        self._batch, self._strategy, self._seed, self._wait = batch, strategy, seed, wait
        self._limit: int | None = None
        self._queue: TrialQueue | None = None

    @property
    def study(self) -> Study:
        """The study behind it: `best`, `recommend()`, `history`, `enqueue(points)`, ..."""
        return self._open_queue.study

    @property
    def _open_queue(self) -> TrialQueue:
        if self._queue is None:
            if self._space is None:
                raise SpaceError(
                    "CoveySearch has no space; give param_space= to the Tuner, or a space to it."
                )
            if self._mode is None:
                raise StrategyError(
                    "CoveySearch has no mode; give metric= and mode= to the TuneConfig, or, where "
                    "the Tuner has no param_space, to CoveySearch."
                )
            goal: Goal = "min" if self._mode == "min" else "max"
            study = Study(self._space, goal, self._strategy, self._seed)
            self._queue = TrialQueue(study, self._strategy or "auto")
        return self._queue

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Take what the Tuner knows; False if it contradicts what is known already."""
        _require_one_objective(metric, mode)
        if self._space is None:
            self._space = space_from_ray(config)
        elif domains_in(config) and space_from_ray(config) != self._space:
            return False
        if self._queue is not None:
            if mode not in (None, self.study.goal):
                return False
            self._queue.cancel_all()  # another run begins: the trials of the last one are gone
        self._mode = mode or self._mode
        self._metric = metric or self._metric or DEFAULT_METRIC
        return True

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Note the limit; the ConcurrencyLimiter enforces it."""
        self._limit = max_concurrent
        if self._wait and self._batch is not None and self._batch < max_concurrent:
            _log.warning(
                "a batch of %d leaves some of %d concurrent trials idle; use batch=%d, or "
                "wait=False",
                *(self._batch, max_concurrent, max_concurrent),
            )
        return False

    def suggest(self, trial_id: str) -> Any:
        """A point of the batch; None while it is evaluated; FINISHED if the space is used up."""
        batch = self._batch or self._limit or 8
        try:
            trial = self._open_queue.next(trial_id, batch, self._wait)
        except ExhaustedError:
            if self.study.space.size is None:  # constraints too tight: the user must know
                raise
            return Searcher.FINISHED
        return None if trial is None else nested(trial.point)

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Note an intermediate value: a trial that is stopped while paused has no result."""
        if trial_id in self._open_queue:
            self._open_queue.report(trial_id, result.get(self._metric or DEFAULT_METRIC))

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Record the result: failed without a finite value, cancelled if it never started."""
        metric = self._metric or DEFAULT_METRIC
        if trial_id not in self._open_queue:
            _log.warning("trial %s was not suggested by this search; its result is lost", trial_id)
        elif error:
            self._open_queue.fail(trial_id, "the trial ended with an error")
        elif result is None:
            self._open_queue.end(trial_id)
        elif metric not in result:
            self._open_queue.fail(trial_id, f"its result has no {metric!r}")
        else:
            self._open_queue.tell(trial_id, result[metric])

    def add_evaluated_point(
        self,
        parameters: dict[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: list[float] | None = None,
    ) -> None:
        """Add a result from elsewhere; one that was stopped early counts with the value it had."""
        point = picked(parameters, self.study.space.names)
        if not error:
            try:
                self.study.add([point], [value])
                return
            except HistoryError as reason:  # no finite number
                _log.warning("the evaluated point %s counts as failed: %s", point, reason)
        self.study.fail(self.study.enqueue([point]), "it failed elsewhere")

    def save(self, checkpoint_path: str) -> None:
        """Write a Covey journal, which `covey.Study.load` reads too."""
        Path(checkpoint_path).write_bytes(self._open_queue.snapshot(metric=self._metric))

    def restore(self, checkpoint_path: str) -> None:
        """Restore the search from a file that `save` wrote."""
        path = Path(checkpoint_path)
        if not path.is_file():
            raise JournalError(f"there is no saved search at {path}.")
        try:
            out, notes = TrialQueue.revive(
                path.read_bytes(), str(path), self._space, self._strategy
            )
        except SpaceError as error:
            raise SpaceError(
                f"{error} With a Tuner: Tuner.restore(..., param_space=...)"
            ) from error
        if self._mode not in (None, out.study.goal):
            raise JournalError(f"{path} belongs to a search with mode {out.study.goal!r}.")
        self._queue, self._space, self._mode = out, out.study.space, out.study.recipe.goal
        self._metric = self._metric or notes.get("metric")


def _require_one_objective(metric: Any, mode: Any) -> None:
    if not isinstance(metric, str | None) or mode not in (None, "min", "max"):
        raise StrategyError(
            f'CoveySearch takes one metric, and mode "min" or "max"; got {metric!r}, {mode!r}.'
        )
