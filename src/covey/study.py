"""Study: the front desk, and the only mutable class. It swaps one immutable log for the next."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from covey.advice import Prediction, Recommendation, predict, recommend_anywhere, recommend_told
from covey.arguments import Trials, checked_seed, each, ids_of, several
from covey.arrays import Array
from covey.catalog import strategy_of
from covey.diagnostics import Diagnostics
from covey.errors import JournalError, SpaceError, StrategyError
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
    event_from_json,
    event_to_json,
)
from covey.journal import Journal
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
        strategy: a name (see `covey.catalog.STRATEGIES`) or an object with `choose`.
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
        strategy: str | Strategy = "auto",
        seed: int | None = None,
        journal: str | Path | None = None,
        gp: GP | None = None,
    ) -> None:
        if not isinstance(space, Space | Pool):
            raise SpaceError(f"a study needs a covey.Space or a covey.Pool; got {type(space)!r}.")
        if goal not in ("max", "min"):
            raise StrategyError(f'goal must be "max" or "min"; got {goal!r}.')
        self._name, self._strategy = strategy_of(strategy)
        self._named = isinstance(strategy, str)
        self._lock = threading.RLock()
        self._history = History()
        self._diagnostics: Diagnostics | None = None
        self._understood: tuple[int, Posterior] | None = None
        self._journal: Journal | None = None
        self._recipe = Recipe(space, goal, gp or GP(), checked_seed(seed))
        if journal is not None and Path(journal).exists():
            self._continue(Journal.open(journal), seed, gp)
        elif journal is not None:
            self._journal = Journal.create(journal, self._header())

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
        if not Path(journal).exists():
            raise JournalError(f"there is no journal at {journal}; Study(journal=...) starts one.")
        with Journal.open(journal) as opened:
            header = opened.header
        if space is None:
            space = space_from_description(header["space"])
        if strategy is None:
            strategy = header["strategy"]["name"]
            if header["strategy"]["object"]:
                raise StrategyError(
                    f"this journal used a strategy object ({strategy}), which a log cannot hold; "
                    "pass it again: Study.load(journal, strategy=...)."
                )
        return cls(space, header["goal"], strategy, header["seed"], journal, GP(**header["gp"]))

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
            proposal = propose(self._history, self._recipe, Request(int(k), chosen, name, held))
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
        ids = ids_of(trials)
        one = isinstance(trials, Trial | int | np.integer)
        told: tuple[Any, ...] = (values,) if one else several(values, "values")
        self._commit(Told(ids, told, each(sem, len(ids))))

    def fail(self, trials: Trials, reason: str = "") -> None:
        """These crashed: not proposed again, and without effect on the model's mean."""
        self._commit(Failed(ids_of(trials), reason))

    def cancel(self, trials: Trials) -> None:
        """These were never run: free to be proposed again."""
        self._commit(Cancelled(ids_of(trials)))

    def amend(self, trial: Trial | int, value: float, reason: str) -> None:
        """Correct a told value; the log keeps both."""
        self._commit(Amended(ids_of(trial)[0], value, reason))

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
        return self._history

    @property
    def diagnostics(self) -> Diagnostics | None:
        """The last ask of this process, explained."""
        return self._diagnostics

    @property
    def best(self) -> Trial | None:
        """The best trial told so far, by its value; the first of equals."""
        return self._history.best(self.goal)

    def predict(self, points: Iterable[Mapping[str, Any]]) -> Prediction:
        """What the model expects at some points: mean and standard deviation of f."""
        return predict(self._posterior(), self._recipe, self._checked(points))

    def recommend(self, *, anywhere: bool = False) -> Recommendation:
        """The point of best posterior mean among those told; or ``anywhere`` in the space.

        With noise this is a better answer than `best`, which believes the luckiest value.
        """
        with self._lock:
            if anywhere:
                return recommend_anywhere(self._posterior(), self._recipe)
            return recommend_told(self._posterior(), self._recipe, self._history)

    def __repr__(self) -> str:
        return f"Study(goal={self.goal!r}, strategy={self._name!r}, {self._history!r})"

    def _commit(self, event: Event) -> list[Trial]:
        """Check, write down, then believe: the only way the state changes."""
        with self._lock:
            before = self._history
            before.check(event)
            if self._journal is not None:
                self._journal.append(event_to_json(event, self.space.to_json, len(before)))
            self._history = before.then(event)
            return [self._history.trial(i) for i in range(len(before), len(self._history))]

    def _header(self) -> dict[str, Any]:
        return {
            "space": self.space.describe(),
            "fingerprint": self.space.fingerprint,
            "goal": self.goal,
            "strategy": {"name": self._name, "object": not self._named},
            "seed": self.seed,
            "gp": self._recipe.gp.describe(),
        }

    def _continue(self, journal: Journal, seed: int | None, gp: GP | None) -> None:
        """Take up an existing journal, if it belongs to the same problem."""
        header = journal.header
        for what, written, given in (
            ("space", header["fingerprint"], self.space.fingerprint),
            ("goal", header["goal"], self.goal),
            ("seed", header["seed"], header["seed"] if seed is None else seed),
            ("gp", header["gp"], header["gp"] if gp is None else gp.describe()),
        ):
            if written != given:
                journal.close()
                raise JournalError(
                    f"{journal.path} belongs to a study with another {what} ({written!r}, not "
                    f"{given!r}). Use the {what} it was started with, or another file."
                )
        self._recipe = Recipe(self.space, self.goal, GP(**header["gp"]), header["seed"])
        history = History()
        for line in journal.events:
            event = event_from_json(line, self.space.from_json, len(history))
            if event is not None:
                history = history.then(event)
        self._history, self._journal = history, journal

    def _checked(self, points: Iterable[Mapping[str, Any]]) -> tuple[Any, ...]:
        if isinstance(points, Mapping):
            raise SpaceError("points is a list of points; put a single one in a list: [point].")
        return tuple(self.space.check(point) for point in points)

    def _posterior(self) -> Posterior:
        """The model of the present log; cached, since the same log gives the same model."""
        with self._lock:
            length = len(self._history.events)
            if self._understood is None or self._understood[0] != length:
                rng = np.random.default_rng([self.seed, self._history.asked_count])
                self._understood = (length, understand(self._history, self._recipe, rng))
            return self._understood[1]
