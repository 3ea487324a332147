"""Study: the front desk. It only swaps one immutable history for the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack

from covey import advice, arguments
from covey.advice import LastModel, Prediction, Recommendation
from covey.arguments import Points, Trials
from covey.arrays import Array, one_thread
from covey.catalog import strategy_of
from covey.cost import Cost
from covey.diagnostics import Diagnostics
from covey.errors import HistoryError, JournalConflict, JournalDamaged, JournalError, several
from covey.gp import GP
from covey.header import Goal, Recipe
from covey.history import History, Point, Trial, events
from covey.journal import Contents, Journal, Mutex
from covey.opening import Wanted, open_study, reopen
from covey.propose import Proposer, Request, propose
from covey.resources import ResourceOptions, Resources
from covey.space import Pool, Space, space_from_description
from covey.strategies import Strategy
from covey.waiting import cost_of, waiting

if TYPE_CHECKING:
    from covey.run.plan import RunOptions
    from covey.run.runner import Objective, Result
    from covey.run.workers import Workers

_TRIES = 2  # asks that begin again because another process wrote meanwhile; then that one waits


class Study:
    """Asks for the next batch, is told results, and remembers everything in one log.

    Methods may be called from any thread; calls wait for each other, so does `tell` for an `ask`.

    Args:
        space: where to look: a `Space`, or a `Pool` of candidates.
        goal: "max" or "min".
        strategy: a name (see `covey.catalog.STRATEGIES`) or an object with `choose`; None is what
            an existing journal says, else "auto".
        seed: of all randomness; None draws one and logs it.
        journal: path of a durable log; an existing one is continued.
        gp: the Gaussian process to use.
        resources: device="cuda", memory="8 GiB", precision="float32" (see `Resources`).

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
        journal: str | Path | Journal | Contents | None = None,
        gp: GP | None = None,
        **resources: Unpack[ResourceOptions],
    ) -> None:
        opened = open_study(Wanted(space, goal, strategy, seed, gp), journal)
        self._lock = Mutex()
        self._diagnostics: Diagnostics | None = None
        self._recipe, self._log = opened.recipe, opened.book
        self._model = LastModel(opened.recipe)
        self._name, self._strategy = opened.name, opened.strategy
        self._resources = Resources(**resources)
        self.proposer: Proposer = propose  # who works out a batch; see `covey.cluster`

    @classmethod
    def load(
        cls,
        journal: str | Path,
        space: Space | Pool | None = None,
        strategy: str | Strategy | None = None,
        *,
        read_only: bool = False,
        **resources: Unpack[ResourceOptions],
    ) -> Self:
        """Replay a journal and go on.

        What a log cannot hold (an array pool, a predicate, a strategy object) is passed again, the
        space checked by its fingerprint. ``read_only``: only look, and before damage if there is.
        """
        opened = reopen(journal, read_only=read_only)
        if space is None:
            space = space_from_description(opened.header["space"])
        return cls(space, opened.header["goal"], strategy, journal=opened, **resources)

    def ask(
        self,
        k: int = 1,
        *,
        strategy: str | Strategy | None = None,
        fixed: Mapping[str, Any] | None = None,
        key: str | None = None,
        time_budget: float | None = None,
        progress: bool | None = None,
    ) -> list[Trial]:
        """The next k points: distinct, feasible, none of them pending.

        In a finite space none was asked, told or failed before. If there are not k such points, an
        error says why and nothing is logged.

        Args:
            k: how many.
            strategy: another strategy, for this batch only.
            fixed: parameters held at these values, for this batch only.
            key: names this request: asked again with the same key, the same batch is returned.
            time_budget: seconds it may take, about: at need fewer candidates are looked at, and
                the chain that samples is cut short; `diagnostics` says so.
            progress: show a bar; None: where a long ask is waited for at a terminal.
        """
        key = arguments.checked_key(key)
        name, chosen = (self._name, self._strategy) if strategy is None else strategy_of(strategy)
        held = {} if fixed is None else self.space.check(fixed, partial=True)
        use = replace(self._resources, seconds=arguments.checked_seconds(time_budget))
        request = Request(arguments.checked_count(k), chosen, name, held, use)
        cost = partial(cost_of, self.history, self._recipe, request)
        with self._lock, waiting(cost, f"choosing {several(k, 'point')}", progress=progress):
            for _ in range(_TRIES):
                self._log.refresh()
                with suppress(JournalConflict):  # somebody wrote while we thought: think again
                    return self._ask(request, key)
            with self._log.held():  # among many who write we would think in vain for ever
                return self._ask(request, key)

    def _ask(self, request: Request, key: str | None) -> list[Trial]:
        if key is not None and (made := self._log.made_by(key, request)) is not None:
            return made
        self._model.forget()
        self._log.verify()
        with one_thread():
            proposal = self.proposer(self.history, self._recipe, request, self._model.recall)
        models = tuple(model.describe() for model in proposal.models) or None
        # What was held is said where there is something to say, and where a key will be compared.
        held = self.space.to_json(request.fixed) if request.fixed or key is not None else None
        asked = events.Asked(tuple(map(Point, proposal.points)), request.name, models, held)
        trials = self._commit(asked, key)
        self._diagnostics = proposal.diagnostics
        return trials

    def cost(self, k: int = 1) -> Cost:
        """About how long `ask` would take now, and how much memory."""
        k = arguments.checked_count(k)
        request = Request(k, self._strategy, self._name, resources=self._resources)
        return cost_of(self.history, self._recipe, request)

    def enqueue(self, points: Points, *, key: str | None = None) -> list[Trial]:
        """Points of your own choice, repeats welcome: pending now, never returned by `ask`.

        A list of dicts, or a pandas or polars frame; so for `add` and `predict`.
        """
        return self._commit(events.Enqueued(arguments.checked_points(points, self.space)), key)

    def tell(
        self,
        trials: Trials,
        values: float | Sequence[float] | Array,
        sem: float | Sequence[float | None] | Array | None = None,
        *,
        key: str | None = None,
    ) -> None:
        """Results of a batch or of one trial, in your own sign; all of them or none are taken.

        Args:
            trials: trials or their ids, in any order; or one of them.
            values: as many finite numbers; or one.
            sem: standard error of each value where it is known; one number stands for all.
            key: names this message: sent again with the same key, it is taken once.
        """
        ids = self._own_ids(trials)
        told = (values,) if arguments.is_one(trials) else arguments.several(values, "values")
        self._commit(events.Told(ids, told, arguments.each(sem, len(ids))), key)

    def fail(self, trials: Trials, reason: str = "") -> None:
        """These crashed: not proposed again, and batches keep away from where such are."""
        self._commit(events.Failed(self._own_ids(trials), reason))

    def cancel(self, trials: Trials) -> None:
        """These were never run: free to be proposed again."""
        self._commit(events.Cancelled(self._own_ids(trials)))

    def amend(self, trial: Trial | int, value: float, reason: str) -> None:
        """Correct a told value; the log keeps both."""
        if not arguments.is_one(trial):
            raise HistoryError(f"amend takes one trial or its id; got {trial!r}.")
        self._commit(events.Amended(self._own_ids(trial)[0], value, reason))

    def add(
        self,
        points: Points,
        values: Sequence[float] | Array,
        sem: float | Sequence[float | None] | Array | None = None,
        *,
        key: str | None = None,
    ) -> list[Trial]:
        """Results from elsewhere; points outside a `Pool` only train the model."""
        checked = arguments.checked_points(points, self.space)
        told, sems = arguments.several(values, "values"), arguments.each(sem, len(checked))
        return self._commit(events.Added(checked, told, sems), key)

    def run(
        self,
        f: Objective,
        *,
        batch: int = 8,
        rounds: int = 20,
        workers: Workers = 4,
        **options: Unpack[RunOptions],
    ) -> Result:
        """Evaluate f to the end of a budget, in parallel; see `covey.run.run`."""
        from covey.run import run  # a door: the one import that points up, and only when called

        return run(self, f, batch=batch, rounds=rounds, workers=workers, **options)

    def note(self, event: events.Event) -> None:
        """Write an event down as it is: for what runs a study, or brings one back."""
        self._commit(event)

    def refresh(self) -> None:
        """Read what other processes have written to the journal since."""
        with self._lock:
            self._log.refresh()

    @property
    def damage(self) -> JournalDamaged | None:
        """Where the journal of a study opened read-only is damaged, if it is."""
        return self._log.damage

    @property
    def journal(self) -> Path | None:
        """Where the log is kept, if it is."""
        return self._log.path

    @property
    def recipe(self) -> Recipe:
        """Everything about the study that its history does not say."""
        return self._recipe

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

    def predict(self, points: Points) -> Prediction:
        """What the model expects at some points: mean and standard deviation of f.

        f is the mean of a measurement there, in your units and sign, also where outcomes were bent
        to be modelled. The noise of a single measurement is no part of the standard deviation.
        """
        wanted = arguments.checked_points(points, self.space)
        with self._lock, one_thread():
            return advice.predict(self._model.of(self.history), self._recipe, wanted)

    def recommend(self, *, anywhere: bool = False) -> Recommendation:
        """The point of best posterior mean among those told; or ``anywhere`` in the space.

        With noise this is a better answer than `best`, which believes the luckiest value. The mean
        is that of a measurement, as of `predict`. Noise is taken to be alike everywhere (after the
        bend, if outcomes were bent): where it grows along an axis and is skewed, the point follows
        the median, and GP(warp=False), which averages as it is told, is the safer model.
        """
        with self._lock, one_thread():
            posterior = self._model.of(self.history)
            if anywhere:
                return advice.recommend_anywhere(posterior, self._recipe)
            return advice.recommend_told(posterior, self._recipe, self.history)

    def __repr__(self) -> str:
        return f"Study(goal={self.goal!r}, strategy={self._name!r}, {self.history!r})"

    def __reduce__(self) -> NoReturn:
        raise JournalError(
            "a study cannot be pickled or copied: two copies would give out the same trials. Let "
            "processes share a journal, Study(space, journal='run.jsonl') here and "
            "Study.load('run.jsonl') there; study.history can be pickled."
        )

    def _own_ids(self, trials: Trials) -> tuple[int, ...]:
        """Their ids; another process may have asked for them since, and handed them over."""
        if arguments.newest(trials) >= len(self.history):
            self.refresh()
        return arguments.own_ids(trials, self.history)

    def _commit(self, event: events.Event, key: str | None = None) -> list[Trial]:
        with self._lock:
            return self._log.commit(event, arguments.checked_key(key))
