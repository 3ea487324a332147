"""Learning: from a history to a posterior (history -> observations -> fit -> posterior).

`understand` is the whole of it; `LastModel` keeps the posterior of a log until the log grows.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from covey.arrays import Array
from covey.curves import expected_ends
from covey.errors import HistoryError, SpaceError
from covey.gp import (
    GP,
    Bound,
    Model,
    Observations,
    Posterior,
    Posteriors,
    Recall,
    Scale,
    Sharing,
    Success,
    View,
    beyond_belief,
    fit_best,
    learnt_scale,
    observe,
    outgrown,
    scaled,
    success,
    views_of,
    without_shifts,
)
from covey.gp.fit import MANY
from covey.history import (
    Amended,
    Asked,
    History,
    Included,
    PlateRecord,
    Point,
    Trial,
    models_of,
)
from covey.history.events import ids_in
from covey.history.wells import mean_and_error
from covey.hypervolume import EXACT, Front, front_of
from covey.outcomes import Outcomes, Sense, goal_values
from covey.space import Pool, Space
from covey.space.covering import reachable, some_inside

if TYPE_CHECKING:
    from covey.earlier import Earlier
    from covey.gp.prior_mean import SourceMean

_log = logging.getLogger("covey")


Goal = Sense
NAMES = "0.3"  # the first version whose names of strategies mean what they mean now
RESOLUTION = 0.01  # of a range: points of a batch closer than this in every coordinate are copies


@dataclass(frozen=True)
class Recipe:
    """Everything about a study that its history does not say."""

    space: Space | Pool
    outcomes: Outcomes
    gp: GP
    seed: int
    resolution: float | None = None  # share of a range within which points are copies; None: 1 %
    earlier: tuple[Earlier, ...] = ()  # studies whose means are a prior
    passed: tuple[Space | Pool, ...] = ()  # the spaces that were searched before, oldest first
    names: str = NAMES  # of strategies mean what they did from this version on

    @property
    def alike(self) -> float:
        """The share of a range within which points are copies."""
        return RESOLUTION if self.resolution is None else self.resolution

    @property
    def goal(self) -> Goal:
        """Which way is better; of several goals, the first."""
        return next(iter(self.outcomes.goals.values()))

    @property
    def sign(self) -> float:
        """Turns values of the goal into something to maximise, and back."""
        return 1.0 if self.goal == "max" else -1.0

    def of(self, name: str) -> Recipe:
        """The recipe of a study of this outcome alone."""
        earlier = tuple(study.of(name) for study in self.earlier if name in study.goal)
        alone = Outcomes({name: self.outcomes.sense(name)})
        return replace(self, outcomes=alone, earlier=earlier)

    @property
    def sources(self) -> tuple[SourceMean, ...]:
        """The means of earlier studies of the only outcome."""
        return tuple(study.mean_in(self.space, self.gp) for study in self.earlier)


def understand(
    history: History,
    recipe: Recipe,
    rng: np.random.Generator,
    *,
    waiting: bool = True,
    recall: Recall | None = None,
) -> Posterior:
    """The posterior of the only outcome after all results.

    With ``waiting``, as for choosing a batch, the covariance is also conditioned on pending and
    failed points.
    ``recall`` of the last posterior saves time and changes nothing else.
    """
    history = history.of_outcome(recipe.outcomes.only)
    data, models = _standing(history, recipe) or _fitted(history, recipe, rng)
    data = without_shifts(models, data) if waiting else data
    if data.penalties:
        _log.info("took %d of %d results for penalties", data.penalties, data.looks)
    # A failed point will not be evaluated again. The covariance treats it as pending, so that the
    # next batch does not crowd around it.
    unseen = [t.point for t in (*history.pending, *history.failed)] if waiting else []
    pending = recipe.space.encode(unseen) if unseen else None
    posterior = (recall or Recall()).condition(models, data, pending)
    if recipe.earlier:
        posterior = replace(posterior, sources=recipe.sources)
    failed = [t.point for t in history.failed if not t.excluded]
    if len(failed) >= success.ENOUGH:
        return replace(posterior, success=_success(history, recipe, failed))
    return posterior


def _success(history: History, recipe: Recipe, failed: Sequence[Mapping[str, Any]]) -> Success:
    """Where trials succeed, from the results that count and these points, which failed."""
    told = recipe.space.encode([trial.point for trial in history.counted])
    # Its own, so that nothing else drawn in an ask depends on failures.
    rng = np.random.default_rng([recipe.seed, len(told), len(failed)])
    failed_at = recipe.space.encode(failed)
    return Success.among(told, failed_at, recipe.gp, rng, recipe.space.groups)


def doubtful(history: History, recipe: Recipe) -> dict[int, str]:
    """Results that are beyond belief on the good side, by trial, with what is so in words.

    None that somebody has vouched for by including or amending it. Excluded ones are judged
    already. Every outcome that is modelled is looked at; see `beyond_belief`.
    """
    found: dict[int, str] = {}
    told = [trial for trial in history.told if not trial.excluded]
    for name in recipe.outcomes.names:
        goal = recipe.outcomes.sense(name)
        sign, side = (1.0, "above") if goal == "max" else (-1.0, "below")
        known = [(t.id, t.values[name]) for t in told if name in t.values]
        odd = beyond_belief(sign * np.array([value for _, value in known]))
        if odd is not None:
            (id, value), far = known[odd[0]], odd[1]
            said = f"{name} {value:g} is beyond belief: {far:.0e} times as far {side} all other "
            found.setdefault(id, said + "results as these are from zero")
    return {id: said for id, said in found.items() if not _is_vouched_for(id, history)}


def _is_vouched_for(id: int, history: History) -> bool:
    """Whether somebody has included or amended a result, and so looked at it."""
    return any(
        isinstance(event, Included | Amended) and id in ids_in(event) for event in history.events
    )


def _fitted(
    history: History, recipe: Recipe, rng: np.random.Generator
) -> tuple[Observations, tuple[Model, ...]]:
    """The data in their most probable view, and hyper-parameters fitted to them now."""
    warp = _may_warp(recipe)
    views = views_of(*_results(history, recipe), warp=warp, groups=recipe.space.groups)
    earlier = _seen_before(views[0], recipe).earlier
    views = [replace(view, earlier=earlier) for view in views]  # at the same points
    data, models = fit_best(views, recipe.gp, rng, _last(history))
    return data, tuple(replace(model, view=data.view) for model in models)


def _last(history: History) -> tuple[Model, ...]:
    """The hyper-parameters of the last ask that logged some; empty if there is none."""
    try:
        return tuple(Model.from_description(model) for model in history.models or ())
    except HistoryError as error:
        places = enumerate(history.events, start=1)
        at = max(n for n, event in places if isinstance(event, Asked) and event.models)
        raise HistoryError(
            f"event {at} of the log cannot be gone on from: {error} It was not written by covey, "
            "or changed since; restore the journal from a copy."
        ) from error


def _standing(history: History, recipe: Recipe) -> tuple[Observations, tuple[Model, ...]] | None:
    """The data and the last hyper-parameters, if these still hold; None if a fit is due.

    They hold for more than `MANY` results that have not `outgrown` them.
    """
    models, gp = _last(history), recipe.gp
    if len(history.counted) <= MANY or len(models) != max(1, gp.samples):
        return None
    outcome = recipe.outcomes.only
    before = History(history.events[: _fitted_at(history, outcome)]).of_outcome(outcome)
    if not before.counted:
        return None
    now, then = (observations(h, recipe, view=models[0].view) for h in (history, before))
    suited = len(now) > MANY and all(model.suits(gp, now.at.shape[1]) for model in models)
    return (now, models) if suited and not outgrown(now, then) else None


def _fitted_at(history: History, outcome: str) -> int:
    """The number of events that were known when the present hyper-parameters were fitted.

    Results told while that ask was computed precede it in the log, but were not seen by it.
    """
    place = len(history.events)
    for i, event in reversed(list(enumerate(history.events))):
        if isinstance(event, Asked) and event.models is not None:
            if models_of(event.models, outcome) != history.models:
                if place < len(history.events):
                    break
                continue  # of a space that was left again, whose models these are not
            place = i if event.after is None else min(i, event.after)
    return place


def observations(history: History, recipe: Recipe, *, view: View = "straight") -> Observations:
    """The results that count, encoded and with the sign to maximise, in a view of `Model.view`."""
    allowed: View = view if _may_warp(recipe) else "straight"
    data = observe(*_results(history, recipe), view=allowed, groups=recipe.space.groups)
    return _seen_before(data, recipe)


def _seen_before(data: Observations, recipe: Recipe) -> Observations:
    """The data, with the means of earlier studies at their points."""
    if not recipe.earlier:
        return data
    return replace(data, earlier=np.column_stack([s.mean(data.at) for s in recipe.sources]))


def _may_warp(recipe: Recipe) -> bool:
    """Whether outcomes may be warped; not with a given noise, which is in unwarped units."""
    return recipe.gp.warp and recipe.gp.noise is None


def _results(history: History, recipe: Recipe) -> tuple[Array, Array, Array, Sharing | None]:
    """Encoded points (n, d), values to maximise (n,), standard errors (n,), nan where unknown.

    Of a trial that was stopped early, the value expected at its end (`covey.curves`). Of trials on
    plates, one for each well that was measured; and what their wells share.
    """
    told = history.counted
    if not told:
        so_far = "nothing has been told yet" if not history.told else "no result told so far counts"
        again = " or include one again" if any(t.excluded for t in history.told) else ""
        raise HistoryError(f"{so_far}, so there is no model. Tell at least one value{again} first.")
    if history.plates.records:
        return wells_measured(history, recipe)
    ends = expected_ends(history, recipe.sign) if history.stopped else {}
    values = np.array([recipe.sign * ends.get(t.id, t.value) for t in told if t.value is not None])
    sems = np.array([np.nan if t.sem is None else t.sem for t in told])
    return recipe.space.encode([t.point for t in told]), values, sems, None


# Wells of plates: each reading is a result, and those of one plate share a shift.


def wells_measured(history: History, recipe: Recipe) -> tuple[Array, Array, Array, Sharing | None]:
    """Results as of `_results`: of trials on plates the readings that make up their value.

    A trial whose value was told or corrected by hand is one result, with the shifts that all its
    wells share. Controls that are points of the space are results, too, at the values that their
    plate shares; others tell about shifts only. Effects are those of the layouts.
    """
    book, space, sign, outcome = history.plates, recipe.space, recipe.sign, recipe.outcomes.only
    rows: list[tuple[Mapping[str, Any], float, float, tuple[str, str] | None]] = []
    for trial in history.counted:
        found = [(values[outcome], (p, w)) for p, w, values in book.readings_of(trial.id)]
        mean, error = mean_and_error([value for value, _ in found]) if found else (None, None)
        if (trial.value, trial.sem) == (mean, error):
            rows += [(trial.point, value, np.nan, place) for value, place in found]
            continue
        # Of a value that was corrected by hand, the scatter of its wells is no standard error.
        sem = np.nan if trial.sem is None or trial.sem == error else trial.sem
        rows.append((trial.point, trial.value or 0.0, sem, _common(book.wells_of(trial.id))))
    outside: list[tuple[str, float, tuple[str, str]]] = []
    for plate, record in book.records.items():
        for well, use in record.uses.items():  # in one order, however the readings came
            name, value = use.control, record.readings.get(well, Point()).get(outcome)
            if not name or value is None or well in record.marks:
                continue
            point = _inside(record.point_of_control(name, history.trials), space)
            if point is not None:
                rows.append((point, value, np.nan, (plate, well)))
            else:
                outside.append((name, sign * value, (plate, well)))
    values, sems = (np.array([row[i] for row in rows], dtype=float) for i in (1, 2))
    at = space.encode([point for point, *_ in rows])
    return at, sign * values, sems, _groups(book.records, [row[3] for row in rows], outside)


def _common(places: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """What the wells of a trial share: the well, if it is one; the plate, with no well; or None."""
    if len(places) == 1:
        return places[0]
    return (places[0][0], "") if len({plate for plate, _ in places}) == 1 else None


def _inside(at: Mapping[str, Any] | None, space: Space | Pool) -> Mapping[str, Any] | None:
    """The point of a control, if it has one that is in the space, which may have changed since.

    A value that its plate shares may break a constraint, which is no reason not to learn from it.
    """
    try:
        every = isinstance(space, Space) and at is not None and {*space.names} <= {*at}
        return None if at is None else space.check(at, partial=every)
    except SpaceError:
        return None


def _groups(
    records: Mapping[str, PlateRecord],
    wells: Sequence[tuple[str, str] | None],
    controls: Sequence[tuple[str, float, tuple[str, str]]],
) -> Sharing | None:
    """What the wells of results and of controls share; None if that is nothing."""
    layouts = (record.layout.get("effects", ["plate"]) for record in records.values())
    names = tuple(dict.fromkeys(name for effects in layouts for name in effects))
    every = [*wells, *(well for _, _, well in controls)]
    labels, codes = [], np.full((len(every), len(names)), -1)
    for e, name in enumerate(names):
        known: dict[str, int] = {}
        for i, well in enumerate(every):
            label = "" if well is None else _label(name, *well, records[well[0]])
            if label:
                codes[i, e] = known.setdefault(label, len(known))
        labels.append(tuple(known))
    kinds = {name: i for i, name in enumerate(dict.fromkeys(name for name, _, _ in controls))}
    made = Sharing(
        names,
        tuple(labels),
        codes[: len(wells)],
        np.array([value for _, value, _ in controls], dtype=float),
        np.array([kinds[name] for name, _, _ in controls], dtype=np.intp),
        codes[len(wells) :],
    )
    return made.telling()


def _label(effect: str, plate: str, well: str, record: PlateRecord) -> str:
    """The group of a well; empty if it is in none."""
    if effect not in record.layout.get("effects", ["plate"]) or (not well and effect != "plate"):
        return ""
    row = well.rstrip("0123456789")
    known = {"plate": plate, "row": f"row {row}", "column": f"column {well[len(row) :]}"}
    return known[effect] if effect in known else record.days.get(well, "")


# Several outcomes: each is learnt as by a study that knows no other.

_DRAWN = 64  # weightings of the goals that a batch goes through, where there are more than three


def understand_each(
    history: History, recipe: Recipe, *, waiting: bool = True
) -> dict[str, Posterior]:
    """The posterior of every outcome; where one is not known yet, its trial is pending for it.

    Random numbers depend on the name of an outcome and not on its place among them; those of a
    single one are of a study that names none.
    """
    found, outcomes = {}, recipe.outcomes
    for name in outcomes.names:
        own_seed = [] if outcomes.single else [crc32(name.encode())]
        rng = np.random.default_rng([recipe.seed, history.asked_count, *own_seed])
        recall = Recall()
        posterior = understand(history, recipe.of(name), rng, waiting=waiting, recall=recall)
        label = outcomes.label(name)
        models = tuple(replace(model, outcome=label) for model in posterior.models)
        posterior = replace(posterior, known=recall.told(posterior))
        found[name] = replace(posterior, models=models)
    return found


def understand_several(history: History, recipe: Recipe, rng: np.random.Generator) -> Posteriors:
    """The posteriors of all outcomes, and the front of the means of the goals at known points.

    Points under way join the front at their means, so that a batch does not repeat them. Goals and
    limits are in the order of their names, so that permuting them changes nothing.
    """
    recipe = replace(recipe, outcomes=recipe.outcomes.in_order)
    outcomes, each = recipe.outcomes, understand_each(history, recipe)
    goals = tuple(each[name] for name in outcomes.goals)
    limits = bounds_of(each, recipe)
    every = [t for t in history.told if not t.excluded and outcomes.goals.keys() <= {*t.values}]
    told = reachable_trials(recipe.space, every)
    at = recipe.space.encode([trial.point for trial in told or every])
    # With no result left inside the front is empty, and its units are those of means inside.
    at = at if told else some_inside(recipe.space, at)
    means = np.column_stack([goal.outcome(goal.belief(at).mean) for goal in goals])
    scale = _scale(means, told, outcomes, at.shape[1])
    kept = np.array([outcomes.keeps(trial.values) for trial in told], dtype=bool)
    at, means = at[: len(told)][kept], means[: len(told)][kept]
    values = front_of(scale(means))
    front = Front(values, np.zeros(len(goals)))
    if len(goals) > EXACT:
        front = replace(front, weightings=rng.dirichlet(np.ones(len(goals)), size=_DRAWN))
    others = tuple(each[name] for name in each if name not in outcomes.goals)
    within = reachable(recipe.space, goals[0].data.at)
    made = Posteriors(tuple(outcomes.goals), goals, limits, others, scale, front, at, within)
    waiting = [t for t in history.trials if t.status == "pending" or _incomplete(t, outcomes)]
    return replace(made, front=_awaited(made, recipe, waiting)) if waiting else made


def bounds_of(each: Mapping[str, Posterior], recipe: Recipe) -> tuple[Bound, ...]:
    """The limits, on the posteriors of their outcomes."""
    signs = {name: recipe.of(name).sign for name in each}
    return tuple(
        Bound.of(
            each[limit.name],
            signs[limit.name] * limit.bound,
            above=(limit.sign == ">=") == (signs[limit.name] > 0.0),
        )
        for limit in recipe.outcomes.limits
    )


def reachable_trials(space: Space | Pool, trials: Sequence[Trial]) -> list[Trial]:
    """The trials whose points may still be proposed."""
    if not trials:
        return []
    kept = reachable(space, space.encode([trial.point for trial in trials]))
    return [trial for trial, one in zip(trials, kept.tolist(), strict=True) if one]


def _scale(means: Array, told: list[Trial], outcomes: Outcomes, dimension: int) -> Scale:
    """The units of the front of means (n, m), from the worst values, given or learnt."""
    worst = outcomes.worst_values()
    if worst is not None:
        return scaled(means, worst)
    results = goal_values(told, outcomes) if len(told) > 1 else means
    return learnt_scale(results, means, dimension)


def _incomplete(trial: Trial, outcomes: Outcomes) -> bool:
    return trial.status == "told" and not trial.excluded and bool(outcomes.lacks(trial))


def _awaited(made: Posteriors, recipe: Recipe, trials: list[Trial]) -> Front:
    """The front with points under way at their means, those that are likely to keep the limits."""
    at = recipe.space.encode([trial.point for trial in trials])
    chance = made.kept(at)
    at = at if chance is None else at[chance >= _LIKELY]
    if not len(at):
        return made.front
    means = np.column_stack([goal.outcome(goal.belief(at).mean) for goal in made.goals])
    return made.front.with_values(made.scale(means))


_LIKELY = 0.5  # probability from which on a point is taken to keep the limits


class LastModel:
    """The posterior of a log, kept until the log grows: the same log gives the same posterior.

    An ask may share its ``recall``, so that neither repeats a factorisation of the other.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe, self.recall = recipe, Recall()
        self._kept: tuple[int, Posterior] | None = None
        self._each: tuple[int, dict[str, Posterior]] | None = None

    def forget(self) -> None:
        """Free the posterior, whose factor is large with many results: the log is about to grow."""
        self._kept = self._each = None

    def each(self, history: History) -> dict[str, Posterior]:
        """The posterior of every outcome, after all results."""
        length = len(history.events)
        if self._each is None or self._each[0] != length:
            found = understand_each(history, self.recipe, waiting=False)
            self._each = (length, found)
        return self._each[1]

    def of(self, history: History) -> Posterior:
        """The posterior after all results; pending and failed trials play no part."""
        length = len(history.events)
        if self._kept is None or self._kept[0] != length:
            self._kept = None  # so that two large factors are never held at once
            rng = np.random.default_rng([self.recipe.seed, history.asked_count])
            posterior = understand(history, self.recipe, rng, waiting=False, recall=self.recall)
            self._kept = (length, posterior)
        return self._kept[1]
