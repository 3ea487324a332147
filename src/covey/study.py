"""Study: the front desk. It only swaps one immutable history for the next."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from covey.advice import Prediction, Recommendation, predict, recommend_anywhere, recommend_told
from covey.arguments import (
    Trials,
    checked_gp,
    checked_path,
    checked_seed,
    each,
    ids_of,
    several,
)
from covey.arrays import Array, one_thread
from covey.catalog import strategy_of
from covey.diagnostics import Diagnostics
from covey.errors import CoveyError, HistoryError, JournalError, SpaceError, StrategyError
from covey.gp import GP, Posterior
from covey.history import (
    Added,
    Amended,
    Asked,
    Cancelled,
    Enqueued,
    Event,
    Failed,
    History,
    Point,
    Told,
    Trial,
)
from covey.journal import Journal
from covey.logbook import Logbook, open_journal, recipe_in, strategy_in
from covey.propose import Goal, Recipe, Request, propose, understand
from covey.space import Pool, Space, space_from_description
from covey.strategies import Strategy

_log = logging.getLogger("covey")


class Study:
    """Asks for the next batch, is told results, and remembers everything in one log.

    Every method may be called from any thread; calls wait for each other, so `tell` waits while
    an `ask` computes.

    Args:
        space: where to look: a `Space`, or a `Pool` of candidates.
        goal: "max" or "min".
        strategy: a name (see `covey.catalog.STRATEGIES`) or an object with `choose`; None is what
            an existing journal says, else "auto".
        seed: of all randomness; None draws one and logs it.
        journal: path of a durable log; an existing one is continued.
        gp: the Gaussian process to use.

    >>> from covey import Real
    >>> study = Study(Space({"x": Real(0.0, 1.0)}), goal="min", seed=0)
    >>> for _ in range(3):
    ...     batch = study.ask(4)
    ...     study.tell(batch, [(t.point["x"] - 0.3) ** 2 for t in batch])
    >>> bool(abs(study.best.point["x"] - 0.3) < 0.1)
    True
    """

    def __init__(
        self,
        space: Space | Pool,
        goal: Goal = "max",
        strategy: str | Strategy | None = None,
        seed: int | None = None,
        journal: str | Path | Journal | None = None,
        gp: GP | None = None,
    ) -> None:
        if not isinstance(space, Space | Pool):
            raise SpaceError(f"a study needs a covey.Space or a covey.Pool; got {type(space)!r}.")
        if goal not in ("max", "min"):
            raise StrategyError(f'goal must be "max" or "min"; got {goal!r}.')
        self._lock = threading.RLock()
        self._diagnostics: Diagnostics | None = None
        self._understood: tuple[int, Posterior] | None = None
        self._recipe = Recipe(space, goal, checked_gp(gp), checked_seed(seed))
        path = journal if isinstance(journal, Journal) else checked_path(journal)
        if isinstance(path, Path) and path.exists():
            path = open_journal(path)
        if isinstance(path, Journal):
            self._resume(path, strategy, seed, gp)
            return
        self._name, self._strategy = strategy_of("auto" if strategy is None else strategy)
        if path is None:
            self._log = Logbook(space)
        else:
            named = {"name": self._name, "object": not isinstance(strategy, str | None)}
            self._log = Logbook.create(path, self._recipe, named)

    def _resume(
        self, journal: Journal, strategy: str | Strategy | None, seed: int | None, gp: GP | None
    ) -> None:
        """Go on with a journal, if it belongs to the same problem."""
        try:
            self._recipe = recipe_in(journal, self._recipe, seed, gp)
            chosen = strategy_in(journal) if strategy is None else strategy
            self._name, self._strategy = strategy_of(chosen)
            self._log = Logbook.resume(journal, self.space)
        except CoveyError:
            journal.close()
            raise

    @classmethod
    def load(
        cls,
        journal: str | Path,
        space: Space | Pool | None = None,
        strategy: str | Strategy | None = None,
    ) -> Self:
        """Replay a journal and go on.

        What a log cannot hold (an array pool, a predicate, a strategy object) is passed again; the
        space is checked by its fingerprint.
        """
        path = checked_path(journal)
        if path is None or not path.exists():
            raise JournalError(f"there is no journal at {journal}; Study(journal=...) starts one.")
        opened = open_journal(path)
        if space is None:
            space = space_from_description(opened.header["space"])
        return cls(space, opened.header["goal"], strategy, journal=opened)

    def ask(
        self,
        k: int = 1,
        *,
        strategy: str | Strategy | None = None,
        fixed: Mapping[str, Any] | None = None,
    ) -> list[Trial]:
        """The next k points: distinct, feasible, none of them pending.

        In a finite space (a `Pool`, or integers and choices only) none was asked, told or failed
        before. If there are not k such points, an error says why and nothing is logged.

        Args:
            k: how many.
            strategy: another strategy, for this batch only.
            fixed: parameters held at these values, for this batch only.
        """
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise StrategyError(f"ask takes a whole number of points, at least 1; got {k!r}.")
        name, chosen = (self._name, self._strategy) if strategy is None else strategy_of(strategy)
        held = self.space.check(fixed, partial=True) if fixed else {}
        with self._lock:
            with one_thread():
                wanted = Request(int(k), chosen, name, held)
                proposal = propose(self.history, self._recipe, wanted)
            models = tuple(model.describe() for model in proposal.models) or None
            trials = self._commit(Asked(tuple(map(Point, proposal.points)), name, models))
            self._diagnostics = proposal.diagnostics
        _log.info("asked for %d points by %s: %s", k, name, proposal.diagnostics.seconds)
        return trials

    def enqueue(self, points: Iterable[Mapping[str, Any]]) -> list[Trial]:
        """Points of your own choice, repeats welcome: pending now, never returned by `ask`."""
        return self._commit(Enqueued(self._checked(points)))

    def tell(
        self,
        trials: Trials,
        values: float | Sequence[float] | Array,
        sem: float | Sequence[float | None] | Array | None = None,
    ) -> None:
        """Results of a batch or of one trial, in your own sign; all of them or none are taken.

        Args:
            trials: trials or their ids, in any order; or one of them.
            values: as many finite numbers; or one.
            sem: standard error of each value where it is known; one number stands for all.
        """
        ids = self._own(trials)
        one = isinstance(trials, Trial | int | np.integer)
        told: tuple[Any, ...] = (values,) if one else several(values, "values")
        self._commit(Told(ids, told, each(sem, len(ids))))

    def fail(self, trials: Trials, reason: str = "") -> None:
        """These crashed: not proposed again, and without effect on the model's mean."""
        self._commit(Failed(self._own(trials), reason))

    def cancel(self, trials: Trials) -> None:
        """These were never run: free to be proposed again."""
        self._commit(Cancelled(self._own(trials)))

    def amend(self, trial: Trial | int, value: float, reason: str) -> None:
        """Correct a told value; the log keeps both."""
        if not isinstance(trial, Trial | int | np.integer):
            raise HistoryError(f"amend takes one trial or its id; got {trial!r}.")
        self._commit(Amended(self._own(trial)[0], value, reason))

    def add(
        self,
        points: Iterable[Mapping[str, Any]],
        values: Sequence[float] | Array,
        sem: float | Sequence[float | None] | Array | None = None,
    ) -> list[Trial]:
        """Results from elsewhere; points outside a `Pool` only train the model."""
        checked = self._checked(points)
        return self._commit(Added(checked, several(values, "values"), each(sem, len(checked))))

    @property
    def space(self) -> Space | Pool:
        """Where it looks."""
        return self._recipe.space

    @property
    def goal(self) -> Goal:
        """Whether it maximises or minimises."""
        return self._recipe.goal

    @property
    def seed(self) -> int:
        """Seed of all randomness, given or drawn."""
        return self._recipe.seed

    @property
    def history(self) -> History:
        """Everything that happened, as an immutable view."""
        return self._log.history

    @property
    def diagnostics(self) -> Diagnostics | None:
        """The last ask of this process, explained."""
        return self._diagnostics

    @property
    def best(self) -> Trial | None:
        """The best trial told so far, by its value; the first of equals."""
        return self.history.best(self.goal)

    def predict(self, points: Iterable[Mapping[str, Any]]) -> Prediction:
        """What the model expects at some points: mean and standard deviation of f."""
        wanted = self._checked(points)
        with self._lock, one_thread():
            return predict(self._posterior(), self._recipe, wanted)

    def recommend(self, *, anywhere: bool = False) -> Recommendation:
        """The point of best posterior mean among those told; or ``anywhere`` in the space.

        With noise this is a better answer than `best`, which believes the luckiest value.
        """
        with self._lock, one_thread():
            if anywhere:
                return recommend_anywhere(self._posterior(), self._recipe)
            return recommend_told(self._posterior(), self._recipe, self.history)

    def __repr__(self) -> str:
        return f"Study(goal={self.goal!r}, strategy={self._name!r}, {self.history!r})"

    def _commit(self, event: Event) -> list[Trial]:
        with self._lock:
            return self._log.commit(event)

    def _own(self, trials: Trials) -> tuple[int, ...]:
        """Ids of trials of this study; one of another study would change the wrong point."""
        for trial in trials if isinstance(trials, Sequence) else (trials,):
            if isinstance(trial, Trial) and self.history.trial(trial.id).point != trial.point:
                raise HistoryError(
                    f"trial {trial.id} at {dict(trial.point)} is not of this study, whose trial "
                    f"{trial.id} is at {dict(self.history.trial(trial.id).point)}."
                )
        return ids_of(trials)

    def _checked(self, points: Iterable[Mapping[str, Any]]) -> tuple[Any, ...]:
        if isinstance(points, Mapping) or not isinstance(points, Iterable):
            raise SpaceError(
                "points is a list of points; put a single one in a list, [point], and write a "
                f'frame as frame.to_dict("records"). Got {type(points).__name__}.'
            )
        return tuple(self.space.check(point) for point in points)

    def _posterior(self) -> Posterior:
        """The model of the present log; cached, since the same log gives the same model."""
        with self._lock, one_thread():
            length = len(self.history.events)
            if self._understood is None or self._understood[0] != length:
                rng = np.random.default_rng([self.seed, self.history.asked_count])
                self._understood = (
                    length,
                    understand(self.history, self._recipe, rng, waiting=False),
                )
            return self._understood[1]
