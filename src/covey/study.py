"""`Study`: ask for batches, tell results, predict and recommend, all on one durable log."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias, Unpack

from covey import advice, arguments, errors, gains, outcomes
from covey.advice import Prediction, Recommendation
from covey.arguments import Points, StudyArguments, Trials
from covey.arrays import Array, one_thread
from covey.catalog import strategy_of
from covey.diagnostics import Diagnostics
from covey.disk import Mutex
from covey.errors import CoveyError, HistoryError, JournalConflict, JournalDamaged, JournalError
from covey.gains import Advice
from covey.gp import GP
from covey.history import History, Trial, events
from covey.large.budget import ResourceOptions, Resources, progress_bar
from covey.learn import Goal, LastModel, Recipe, doubtful
from covey.log.header import OpenedLog, open_study, reopen
from covey.log.log import Log, LogState, Message, ReadOnlyLog, Requirement
from covey.outcomes import Outcomes
from covey.plates.asking import OnPlates
from covey.propose import Proposer, Request, propose
from covey.selection import Strategy
from covey.space import Pool, Space
from covey.space.covering import are_alike, covering

if TYPE_CHECKING:
    from covey.run.api import Objective, Result, Workers
    from covey.run.plan import RunOptions

_log = logging.getLogger("covey")

Value: TypeAlias = float | Mapping[str, Any]
"""A result: a number; or outcomes by name, and what is recorded beside them."""


class SearchOptions(ResourceOptions, total=False):
    """Those of a study that few give."""

    resolution: float | None
    limits: Mapping[str, tuple[str, float]] | None
    record: Sequence[str] | None
    worst: Mapping[str, float] | None
    prior: Sequence[str | Path] | None


class Study(OnPlates):
    """Asks for the next batch, is told results, and remembers everything in one log.

    Methods may be called from any thread. Those that compute (`ask`, `predict`, `recommend`) wait
    for each other; `tell` and the like wait for none of them.

    Args:
        space: what is searched: a `Space`, or a `Pool` of candidates.
        goal: "max" or "min"; or several outcomes by name, {"yield": "max", "cost": "min"}.
        strategy: a name (see `covey.catalog.STRATEGIES`) or an object with `choose`; None is what
            an existing journal says, else "auto".
        seed: of all randomness; None draws one and logs it.
        journal: path of a durable log; an existing one is continued. Or a `covey.log.log.Log`.
        gp: the Gaussian process to use.
        resolution: share of each range within which two points of a batch of "auto" would be
            copies, which it avoids; None is 0.01, and 0 lets a whole batch polish a summit.
        limits: outcomes that must keep a bound, such as {"impurity": ("<=", 2.0)}.
        record: names of what is told beside the outcomes, to be kept and shown.
        worst: the reference point of several goals: values no better than these are worth
            nothing, {"yield": 20, "cost": 90}; None learns it.
        prior: journals of earlier studies, as a prior mean; the log keeps what it needs of them.
        resources: device="cuda", memory="8 GiB", precision="float32" (see `Resources`).

    >>> from covey import Real
    >>> study = Study(Space({"x": Real(0.0, 1.0)}), goal="min", seed=0)
    >>> for _ in range(3):
    ...     batch = study.ask(4)
    ...     doubted = study.tell(batch, [(t.point["x"] - 0.3) ** 2 for t in batch])
    >>> bool(abs(study.best.point["x"] - 0.3) < 0.1)
    True
    """

    def __init__(
        self,
        space: Space | Pool,
        goal: Goal | Mapping[str, Goal] = "max",
        strategy: str | Strategy | None = None,
        seed: int | None = None,
        journal: str | Path | Log | OpenedLog | None = None,
        gp: GP | None = None,
        **options: Unpack[SearchOptions],
    ) -> None:
        rare = [options.pop(name, None) for name in arguments.RARE]  # type: ignore[misc]
        wanted = StudyArguments(space, goal, strategy, seed, gp, *rare)
        opened = open_study(wanted, journal, strategy_of)
        self._computing, self._lock = Mutex(), Mutex()  # _lock is held for moments only
        self._diagnostics: Diagnostics | None = None
        self._begun, self._log = opened.recipe, opened.book
        # The recipe in the state of the log that was last looked at.
        self._covering: tuple[LogState | None, Recipe] = (None, opened.recipe)
        self._model = LastModel(opened.recipe)
        self._name, self._strategy = opened.name, opened.strategy
        self._resources = Resources(**options)  # type: ignore[misc] # the rest is popped
        self._doubted: set[tuple[int, str]] = set()  # of which it was said, also by a rehearsal
        self.proposer: Proposer = propose  # computes a batch; see contrib/covey-dask

    @classmethod
    def load(
        cls,
        journal: str | Path,
        space: Space | Pool | None = None,
        strategy: str | Strategy | None = None,
        *,
        read_only: bool = False,
        extend: str | None = None,
        **resources: Unpack[ResourceOptions],
    ) -> Self:
        """Open a study from its journal and go on.

        What a log cannot hold (rows in memory, a function, a strategy object) is passed again;
        ``read_only`` reads up to any damage; a reason to `extend` goes on in another ``space``.
        """
        arguments.require_space_to_extend(space, extend)
        opened = reopen(journal, read_only=read_only)
        goal = opened.log.header["goal"]
        if extend is not None and space is not None:
            former = opened.space(like=space)
            study = cls(former, goal, strategy, journal=opened, **resources)
            try:
                study.extend(space, extend)
            except CoveyError:
                opened.log.close()
                raise
            return study
        space = opened.space() if space is None else space
        return cls(space, goal, strategy, journal=opened, **resources)

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

        In a finite space none was asked, told or failed before; too few left are an error.

        Args:
            k: how many.
            strategy: another strategy, for this batch only.
            fixed: parameters held at these values, for this batch only.
            key: names this request: asked again with the same key, the same batch is returned.
            time_budget: seconds it may take, about: if need be fewer candidates are considered,
                and the sampling chain is shortened; `diagnostics` says so.
            progress: show a progress bar; None: for a long ask at a terminal.
        """
        request = self._request(k, strategy, fixed, time_budget, key)
        with progress_bar(f"choosing {errors.several(k, 'point')}", progress=progress):
            return self._asked(request, key)

    def _request(
        self,
        k: int,
        strategy: Any,
        fixed: Any = None,
        seconds: Any = None,
        key: str | None = None,
    ) -> Request:
        name, chosen = self._name, self._strategy
        if strategy is not None:
            name, chosen = strategy_of(strategy, self._begun.names)
        held = arguments.checked_held(self._space_for(key), fixed)
        use = replace(self._resources, seconds=arguments.checked_seconds(seconds))
        return Request(arguments.checked_count(k), chosen, name, held, use)

    def _asked(self, request: Request, key: str | None) -> list[Trial]:
        with self._computing, self._log.log.asking():
            self.refresh()
            self.doubt()  # what others have told
            while True:
                with suppress(JournalConflict):  # another process took a point: choose again
                    return self._ask(request, arguments.checked_key(key))

    def _ask(self, request: Request, key: str | None) -> list[Trial]:
        with self._lock:
            self._log.refresh()
            if key is not None and (made := self._log.made_by(key, request)) is not None:
                return made
            since = self._log.state
        recipe, space = self._in(since), since.space
        if request.fixed:  # the space may have been extended since
            request = replace(request, fixed=space.check(request.fixed, partial=True))
        self._learnt(recipe).forget()
        self._log.verify()
        with one_thread():
            proposal = self.proposer(since.history, recipe, request, self._model.recall)
        # Fixed values are logged if there are any, or if a key will be compared with them.
        held = space.to_json(request.fixed) if request.fixed or key is not None else None
        asked = proposal.as_event(request.name, held)
        with self._lock:
            trials = self._log.commit(asked, key, since)
        self._diagnostics = proposal.diagnostics
        return trials

    def enqueue(self, points: Points, *, key: str | None = None) -> list[Trial]:
        """Make points (dicts, or a pandas or polars frame) pending; `ask` never returns them."""
        checked = arguments.checked_points(points, self._space_for(key))
        return self._commit(events.Enqueued(checked), key)

    def tell(
        self,
        trials: Trials,
        values: Value | Sequence[Value] | Array,
        sem: float | Sequence[float | None] | Array | None = None,
        *,
        key: str | None = None,
    ) -> list[Trial]:
        """Record the results of a batch or of one trial, in your own sign: all of them or none.

        Returns the trials that are excluded by it, as beyond belief (see `doubt`); mostly none.

        Args:
            trials: trials or their ids, in any order; or one of them.
            values: as many finite numbers; or one. Outcomes that have names are told by name,
                {"yield": 61, "cost": 33}; None for one that comes later, with another tell.
            sem: standard error of each value where it is known; one number stands for all.
            key: names this message: sent again with the same key, it is taken once.
        """
        ids = self._own_ids(trials)
        told = (values,) if arguments.is_one(trials) else arguments.sequence_of(values, "values")
        found = arguments.results_of(told, ids, self.history, self.outcomes)
        sems = arguments.each(sem, len(ids), self.outcomes, found.values)
        self._commit(events.Told(ids, found.values, sems, found.metrics, found.goal), key)
        return self.doubt()

    def tell_sheet(  # noqa: PLR0913 - each answers another question about the rows
        self,
        path: str | Path,
        *,
        value: str = "value",
        by_id: bool = True,
        as_run: bool = False,
        again: bool = False,
        skip_unknown: bool = False,
        decimal: str | None = None,
    ) -> list[Trial]:
        """Record the results in a file, CSV or .xlsx, all of them or none; see docs/sheets.md.

        A row with an id is the result of that trial, a row without one a measurement of its point.
        What is recorded already is passed over; warnings of the logger "covey" name what is left
        out, such as controls. Returns the trials that were told by it, or have failed.

        Args:
            path: the file. Its columns are id, one for each parameter and outcome, and perhaps sem.
            value: the column of a single goal.
            by_id: whether ids are those of trials; else every row is a measurement of its point.
            as_run: record what was run where a row has another point than was asked for.
            again: count rows that are recorded already as new measurements.
            skip_unknown: leave out rows of no trial and no valid point, instead of refusing all.
            decimal: the mark in numbers, "." or ",", where the file leaves it open.
        """
        from covey.sheets.intake import Manner
        from covey.sheets.telling import tell_sheet

        manner = Manner(by_id=by_id, as_run=as_run, again=again)
        return tell_sheet(
            self, path, manner, value=value, decimal=decimal, skip_unknown=skip_unknown
        )

    def fail(
        self, trials: Trials, reason: str = "", *, told: bool = False, key: str | None = None
    ) -> None:
        """Record that these failed: not proposed again; batches learn where trials fail.

        With ``told`` and a reason also of trials that have a value: it is worth nothing, and gone.
        """
        self._commit(events.Failed(self._own_ids(trials), reason, told), key)

    def cancel(self, trials: Trials, reason: str = "", *, key: str | None = None) -> None:
        """Record that these were never run: they may be proposed again."""
        self._commit(events.Cancelled(self._own_ids(trials), reason), key)

    def amend(
        self,
        trial: Trial | int,
        value: Value,
        reason: str,
        *,
        sem: float | None = None,
        key: str | None = None,
    ) -> None:
        """Correct a told value, or some of those that have names; the log keeps both.

        ``sem`` is its standard error; None keeps the one it had.
        """
        if not arguments.is_one(trial):
            raise HistoryError(f"amend takes one trial or its id; got {trial!r}.")
        (id,) = self._own_ids(trial)
        corrected = arguments.correction(value, f"trial {id}", self.outcomes)
        (error,) = arguments.each(sem, 1, self.outcomes, (corrected,)) or (None,)
        self._commit(events.Amended(id, corrected, reason, error), key)

    def exclude(self, trials: Trials, reason: str, *, key: str | None = None) -> None:
        """Leave results out of the model and of `best`; their points are not proposed again."""
        self._commit(events.Excluded(self._own_ids(trials), reason), key)

    def include(self, trials: Trials, reason: str, *, key: str | None = None) -> None:
        """Let excluded results count again: batches are as if they had never been excluded.

        They are not doubted again, however far they are from the others.
        """
        self._commit(events.Included(self._own_ids(trials), reason), key)

    def doubt(self) -> list[Trial]:
        """Exclude results that are beyond belief, such as 1e6 among values of order 1.

        `tell` and `ask` do so by themselves, with a warning of the logger "covey". What is excluded
        counts again if you `include` it; if it is wrong, `amend` it first. Returns the trials.
        """
        found = doubtful(self.history, self._recipe)
        for id, said in found.items():
            try:
                self._commit(events.Excluded((id,), said))
            except (HistoryError, JournalError):  # another process was quicker; or `ask` will see
                continue
            if (id, said) not in self._doubted:
                self._doubted.add((id, said))
                _log.warning(
                    "trial %d is excluded: %s. If it is right, include it, with a reason; if not, "
                    "amend it first, or leave it out.",
                    *(id, said),
                )
        return [trial for trial in map(self.history.trial, found) if trial.excluded]

    def retry(self, trials: Trials, *, key: str | None = None) -> None:
        """Make failed trials pending again: a run evaluates them, or you tell their results."""
        self._commit(events.Retried(self._own_ids(trials)), key)

    def extend(
        self,
        space: Space | Pool,
        reason: str,
        *,
        values: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> None:
        """Go on in another space; the log goes on, and every result stays in the model.

        Ranges may become wider or narrower, options come and go, constraints change, a `Pool` gain
        or lose rows, and parameters join, but none may go. Results outside still train the model.
        Pending trials must stay possible: tell, fail or cancel the others first.

        Args:
            space: as it is from now on.
            reason: shown with it from now on.
            values: of new parameters, what the trials so far had, {"pressure": 1.0}.
            key: names this message: sent again with the same key, it is taken once.
        """
        arguments.require_extension(space, self._begun)
        with self._lock:
            self._log.extend(space, reason, values, arguments.checked_key(key))

    def add(
        self,
        points: Points,
        values: Sequence[Value] | Array,
        sem: float | Sequence[float | None] | Array | None = None,
        *,
        key: str | None = None,
    ) -> list[Trial]:
        """Record results from elsewhere; points outside a `Pool` only train the model."""
        checked = arguments.checked_points(points, self._space_for(key))
        told, outcomes = arguments.sequence_of(values, "values"), self.outcomes
        found = arguments.new_results(told, len(checked), outcomes)
        sems = arguments.each(sem, len(checked), outcomes, found.values)
        added = events.Added(checked, found.values, sems, found.metrics, found.goal)
        made = self._commit(added, key)
        excluded = {trial.id: trial for trial in self.doubt()}
        return [excluded.get(trial.id, trial) for trial in made]

    def run(
        self,
        f: Objective,
        *,
        batch: int = 8,
        rounds: int | None = None,
        workers: Workers | None = None,
        **options: Unpack[RunOptions],
    ) -> Result:
        """Evaluate f to the end of a budget, in parallel; see `covey.run.run`."""
        from covey.run.api import run

        return run(self, f, batch=batch, rounds=rounds, workers=workers, **options)

    def note(
        self,
        trials: Trials | events.Event,
        text: str = "",
        *,
        key: str | None = None,
        require: Requirement | None = None,
    ) -> None:
        """Write a remark about trials into the log, which changes nothing else.

        An event is appended as it is, unless ``require`` raises for the history before it.
        """
        if not isinstance(trials, events.Event):
            trials = events.Noted(self._own_ids(trials), text)
        self._commit(trials, key, require)

    def rehearsal(self) -> Self:
        """A copy that goes on in memory: what would happen if, with no log written."""
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        copied._computing, copied._lock = Mutex(), Mutex()
        copied._log, copied._model = self._log.rehearsal(), LastModel(self._begun)
        return copied

    def refresh(self) -> None:
        """Read what other processes have written to the journal since."""
        with self._lock:
            self._log.refresh()

    @property
    def damage(self) -> JournalDamaged | None:
        """Where the journal of a study opened read-only is damaged, if it is."""
        log = self._log.log
        return log.damage if isinstance(log, ReadOnlyLog) else None

    @property
    def journal(self) -> Path | None:
        """The path of the journal; None without one."""
        return self._log.log.path

    def asking(self) -> AbstractContextManager[None]:
        """Wait for a turn to ask, and hold it; what this thread asks meanwhile needs no other."""
        return self._log.log.asking()

    def running(self) -> AbstractContextManager[object]:
        """Hold the right to evaluate pending trials, against a second run; see `covey.run.run`."""
        return self._log.log.running()

    @property
    def recipe(self) -> Recipe:
        """Space, goal, Gaussian process and seed: the study without its history."""
        return self._recipe

    @property
    def space(self) -> Space | Pool:
        """The space that is searched; what it became, if it was extended."""
        return self._recipe.space

    @property
    def goal(self) -> Goal | dict[str, Goal]:
        """Whether it maximises or minimises; of each goal, where they have names."""
        goal: Goal | dict[str, Goal] = self._recipe.outcomes.describe()["goal"]
        return goal

    @property
    def outcomes(self) -> Outcomes:
        """Goals, limits and records; a plain number is the goal "value"."""
        return self._recipe.outcomes

    @property
    def seed(self) -> int:
        """Seed of all randomness, given or drawn."""
        return self._recipe.seed

    @property
    def history(self) -> History:
        """All events and trials so far, as an immutable view."""
        return self._log.history

    @property
    def diagnostics(self) -> Diagnostics | None:
        """How the last batch of this process was chosen."""
        return self._diagnostics

    @property
    def best(self) -> Trial | None:
        """The best trial told so far that keeps the limits, by its value; the first of equals.

        Raises:
            StrategyError: There are several goals, so there is no one best trial; see `front`.
        """
        return outcomes.best_trial(self.history, self.outcomes)

    @property
    def front(self) -> list[Trial]:
        """The told trials, none excluded, that keep the limits and that no other dominates."""
        return list(outcomes.front(self.history, self.outcomes))

    def predict(self, points: Points) -> Prediction | dict[str, Prediction]:
        """What the model expects at some points: mean and standard deviation of f.

        f is the mean of a measurement there, in your units and sign. The standard deviation leaves
        out the noise. From the third failure on, ``success`` of what is returned is the probability
        of success. Where outcomes have names, there is one prediction for each, by its name.
        """
        state = self._log.state
        wanted, recipe = arguments.checked_points(points, state.space), self._in(state)
        with self._computing, one_thread():
            if recipe.outcomes.plain:
                return advice.predict(self._learnt(recipe).of(state.history), recipe, wanted)
            each = self._learnt(recipe).each(state.history)
            return advice.predict_each(each, recipe, wanted)

    def recommend(
        self, weights: Mapping[str, float] | None = None, *, anywhere: bool = False
    ) -> Recommendation:
        """The point of best posterior mean among those told; or ``anywhere`` in the space.

        If `extend` left all that were told outside, it is anywhere too. Limits are kept, as far as
        is known. Of several goals ``weights`` say how much each counts: the point comes closest to
        the best of every goal, by distances in shares of the front's range times these weights.

        With noise this is a better answer than `best`, which may owe its value to luck. The mean is
        that of a measurement. Noise is taken to be alike everywhere, after the warp: where it grows
        along an axis and is skewed, the point follows the median, and GP(warp=False) is safer.
        """
        named = advice.checked_weights(weights, self.outcomes)
        state = self._log.state
        history, recipe = state.history, self._in(state)
        with self._computing, one_thread():
            if not recipe.outcomes.plain:
                each = self._learnt(recipe).each(history)
                return advice.recommend_by_weights(each, recipe, history, named, anywhere=anywhere)
            posterior = self._learnt(recipe).of(history)
            if anywhere:
                return advice.recommend_anywhere(posterior, recipe)
            return advice.recommend_told(posterior, recipe, history)

    def advice(self, up_to: int = 96, *, worth: float | None = None) -> Advice:
        """What batches of 1, 2, 4 ... ``up_to`` points are expected to gain, and whether to stop.

        ``worth`` is the least gain that counts, in your units; None: 1 % of the range of the
        results. ``print(study.advice())`` says it in words. Takes about as long as eight asks.
        """
        ask = self._request(arguments.checked_up_to(up_to), None)
        least = arguments.checked_worth(worth)
        with self._computing, one_thread():
            return gains.advise(self.history, self._recipe, ask, self.proposer, least)

    def __repr__(self) -> str:
        return f"Study(goal={self.goal!r}, strategy={self._name!r}, {self.history!r})"

    def __reduce__(self) -> NoReturn:
        raise JournalError(arguments.UNCOPIED)

    def _in(self, state: LogState) -> Recipe:
        """The recipe with the space as it is, or was, in this state of the log.

        After an extension it covers the points so far.
        """
        if not state.passed:
            return self._begun
        last, recipe = self._covering
        if last is not state:
            seen = covering(state.space, [trial.point for trial in state.history.trials])
            if not are_alike(seen, recipe.space):  # else the model is kept
                recipe = replace(self._begun, space=seen, passed=state.passed)
            self._covering = (state, recipe)
        return recipe

    @property
    def _recipe(self) -> Recipe:
        return self._in(self._log.state)

    def _learnt(self, recipe: Recipe) -> LastModel:
        """The model of this recipe; of a space that was left it is forgotten."""
        if self._model.recipe.space is not recipe.space:
            self._model = LastModel(recipe)
        return self._model

    def _space_for(self, key: str | None) -> Space | Pool:
        """Return the space in which a message is read: that of its time, if the key was used."""
        with self._lock:
            return self._log.space_for(arguments.checked_key(key))

    def _own_ids(self, trials: Trials) -> tuple[int, ...]:
        """Ids of trials of this study; the log is read first if another process asked for them."""
        if arguments.newest(trials) >= len(self.history):
            self.refresh()
        return arguments.own_ids(trials, self.history)

    def _message_of(self, key: str) -> Message | None:
        """What was logged with this key, if it was used."""
        with self._lock:
            return self._log.message(str(arguments.checked_key(key)))

    def _commit(
        self, event: events.Event, key: str | None = None, require: Requirement | None = None
    ) -> list[Trial]:
        with self._lock:
            return self._log.commit(event, arguments.checked_key(key), require=require)
