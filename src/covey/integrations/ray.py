"""`CoveySearch` for Ray Tune: ``tune.TuneConfig(search_alg=CoveySearch(), ...)``."""

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
)
from covey.history import Trial
from covey.integrations.snapshots import revive, snapshot
from covey.integrations.spaces.ray import domains_in, nested, picked, space_from_ray
from covey.integrations.unused import warn_of_unused
from covey.learn import Goal
from covey.selection import Strategy
from covey.space.names import is_finite, plain

with installed("ray", "ray"):
    from ray.tune.result import DEFAULT_METRIC
    from ray.tune.search import Searcher


_log = logging.getLogger("covey")


class CoveySearch(Searcher):
    """Suggests the point of each trial as it begins, and goes around those that still run.

    Points of the user's own, from ``search.study.enqueue``, and retried ones go first.

    Args:
        space: a `covey.Space` or `covey.Pool`, or a dict of Ray domains; None takes the
            ``param_space`` of the Tuner.
        metric: what to optimise; None takes that of the TuneConfig.
        mode: "max" or "min"; None takes that of the TuneConfig.
        batch: has no effect any more.
        strategy: a name or an object, as for `covey.Study`; None is "auto", or that of a file
            restored.
        seed: of all randomness; None draws one.
        wait: has no effect any more.
    """

    CKPT_FILE_TMPL = "searcher-state-{}.jsonl"

    _mode: str | None
    _metric: str | None

    def __init__(  # noqa: PLR0913 - three are Ray's, two are ours, and two of 0.2
        self,
        space: Space | Pool | Mapping[str, Any] | None = None,
        metric: str | None = None,
        mode: str | None = None,
        *,
        batch: int | None = None,
        strategy: str | Strategy | None = None,
        seed: int | None = None,
        wait: bool | None = None,
    ) -> None:
        warn_of_unused("CoveySearch", batch=batch, wait=wait)
        _require_one_objective(metric, mode)
        super().__init__(metric=metric, mode=mode)
        self._space = space if isinstance(space, Space | Pool | None) else space_from_ray(space)
        self._strategy, self._seed = strategy, seed
        self._study: Study | None = None
        self._runs: dict[str, int] = {}  # trial of Ray -> id of the study's
        self._reported: dict[str, float] = {}  # its last intermediate value
        self._over: set[str] = set()  # trials of Ray that have ended

    @property
    def study(self) -> Study:
        """The study behind it: `best`, `recommend()`, `history`, `enqueue(points)`, ..."""
        if self._study is None:
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
            self._study = Study(self._space, goal, self._strategy, self._seed)
        return self._study

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Take what the Tuner knows; False if it contradicts what is known already."""
        _require_one_objective(metric, mode)
        if self._space is None:
            self._space = space_from_ray(config)
        elif domains_in(config) and space_from_ray(config) != self._space:
            return False
        if self._study is not None:
            if mode not in (None, self._study.goal):
                return False
            self._reported.clear()
            for run in self._runs:  # another run begins: the trials of the last one are gone
                self._cancel(run)
        self._mode = mode or self._mode
        self._metric = metric or self._metric or DEFAULT_METRIC
        return True

    def suggest(self, trial_id: str) -> Any:
        """The next point; FINISHED if the space is used up."""
        if trial_id not in self._runs:
            given = {id for run, id in self._runs.items() if run not in self._over}
            waiting = [trial for trial in self.study.history.pending if trial.id not in given]
            try:
                self._runs[trial_id] = (waiting or self.study.ask(1))[0].id
            except ExhaustedError:
                if self.study.space.size is None:  # constraints too tight: the user must know
                    raise
                return Searcher.FINISHED
        return nested(self._trial(trial_id).point)

    def _trial(self, run: str) -> Trial:
        return self.study.history.trial(self._runs[run])

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Note an intermediate value: it is the result if the trial ends without one."""
        value = plain(result.get(self._metric or DEFAULT_METRIC))
        if trial_id in self._runs and is_finite(value):
            self._reported[trial_id] = float(value)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Record the result: failed without a finite value, cancelled if it never started."""
        metric = self._metric or DEFAULT_METRIC
        if trial_id not in self._runs:
            _log.warning("trial %s was not suggested by this search; its result is lost", trial_id)
            return
        reported = self._reported.pop(trial_id, None)
        if error:
            self._fail(trial_id, "the trial ended with an error")
        elif result is not None and metric not in result:
            self._fail(trial_id, f"its result has no {metric!r}")
        elif result is not None:
            self._tell(trial_id, result[metric])
        elif reported is not None:  # stopped while paused
            self._tell(trial_id, reported)
        else:
            self._cancel(trial_id)
        self._over.add(trial_id)

    def _tell(self, run: str, value: Any) -> None:
        """Record a result, once; a value that is not a finite number is a failure."""
        trial = self._trial(run)
        if trial.status != "told":
            try:
                self.study.tell(trial, value)
            except HistoryError as error:
                self._fail(run, str(error))

    def _fail(self, run: str, reason: str) -> None:
        trial = self._trial(run)
        if trial.status == "pending":
            self.study.fail(trial, reason)
            _log.warning("trial %s at %s failed: %s", run, dict(trial.point), reason)

    def _cancel(self, run: str) -> None:
        """End a run without a result; one that was over may have been retried by another."""
        if run not in self._over and self._trial(run).status == "pending":
            self.study.cancel(self._trial(run))
        self._over.add(run)

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
        notes = {"runs": self._runs, "heard": self._reported, "over": sorted(self._over)}
        notes["metric"] = self._metric
        data = snapshot(self.study, self._strategy or "auto", notes)
        Path(checkpoint_path).write_bytes(data)

    def restore(self, checkpoint_path: str) -> None:
        """Restore the search from a file that `save` wrote."""
        path = Path(checkpoint_path)
        if not path.is_file():
            raise JournalError(f"there is no saved search at {path}.")
        try:
            study, header = revive(path.read_bytes(), str(path), self._space, self._strategy)
        except SpaceError as error:
            raise SpaceError(
                f"{error} With a Tuner: Tuner.restore(..., param_space=...)"
            ) from error
        if self._mode not in (None, study.goal):
            raise JournalError(f"{path} belongs to a search with mode {study.goal!r}.")
        self._study, self._space, self._mode = study, study.space, study.recipe.goal
        self._strategy = self._strategy or header["strategy"]["name"]
        notes = header["notes"]
        self._metric = self._metric or notes.get("metric")
        self._runs, self._reported = dict(notes.get("runs", {})), dict(notes.get("heard", {}))
        self._over = {run for run in self._runs if self._trial(run).status != "pending"}
        self._over.update(notes.get("over", ()))

    def __getstate__(self) -> dict[str, Any]:
        study = self._study
        if study is None:
            return self.__dict__
        return {**self.__dict__, "_study": snapshot(study, self._strategy or "auto", {})}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._study is not None:
            data, name = state["_study"], "the pickled search"
            self._study, _ = revive(data, name, self._space, self._strategy)


def _require_one_objective(metric: Any, mode: Any) -> None:
    if not isinstance(metric, str | None) or mode not in (None, "min", "max"):
        raise StrategyError(
            f'CoveySearch takes one metric, and mode "min" or "max"; got {metric!r}, {mode!r}.'
        )
