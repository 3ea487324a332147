"""The report card of a study: all facts of a report, derived from the log alone.

`card` computes a `Card`; `headline` writes its two sentences and `reason` says why a trial was
chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from covey import __version__
from covey.arrays import one_thread
from covey.earlier import sentences_about
from covey.errors import several
from covey.history import Batch, Correction, History, Origin, Status, Trial
from covey.learn import Goal, Recipe, understand
from covey.log.extension import extensions_in_words
from covey.outcomes import best_trial, middle
from covey.report.batches import (
    Commands,
    Failure,
    Remark,
    fates,
    python_commands,
    recent,
    shown_batches,
)
from covey.report.format import plain_text, plus_minus, shown, significant
from covey.report.plates import Plates, plates_of
from covey.report.predictions import (
    MOST_TOLD,
    Calibration,
    Forecast,
    PastForecast,
    calibrate,
    error_of,
    past_forecasts,
)
from covey.report.slices import Diversity, Edge, Slice, diversity, edges, model_slices
from covey.report.tradeoff import TradeOff, front_headline, trade_off
from covey.report.trainings import Trainings, trainings_of
from covey.space import Space
from covey.space.covering import CoveringSpace, allows

if TYPE_CHECKING:
    from covey.gp import Posterior
    from covey.space import Pool
    from covey.study import Study


# The headline: the state of the study in two sentences.


def headline(
    history: History, goal: Goal, batches: Sequence[Batch], past: Mapping[int, PastForecast]
) -> str:
    """How much of the last batch is in, and how the best value compares with earlier ones."""
    asked = [batch for batch in batches if batch.round is not None]
    best = history.best(goal)
    first = _arrived(asked[-1], history) if asked else _before_any(batches)
    if best is None or best.value is None:
        why = "Every result is excluded" if history.told else "Nothing has been told"
        return f"{first} {why}, so there is no best yet."
    origin = "" if best.origin == "asked" else f", {best.origin}"
    found = f"Best {significant(best.value)} (trial {best.id}{origin})"
    home = next(batch for batch in batches if best.id in batch.ids)
    change = _change(best, home, asked[-1], history, goal) if asked else ""
    return f"{first} {found}{change}{_expected(home, past.get(best.id))}."


def _arrived(batch: Batch, history: History) -> str:
    trials, stopped = history.trials, history.stopped.keys() & set(batch.ids)
    statuses = [trials[i].status for i in batch.ids]
    rest = [f"{len(stopped)} of them stopped early"] if stopped else []
    rest += [
        f"{statuses.count(status)} {status}"
        for status in ("pending", "failed", "cancelled", "lost")
        if status in statuses
    ]
    excluded = sum(trials[i].excluded for i in batch.ids)
    rest += [f"{excluded} excluded"] if excluded else []
    ending = f"; {', '.join(rest)}" if rest else ""
    return f"Batch {batch.round}: {statuses.count('told')} of {len(batch.ids)} in{ending}."


def _before_any(batches: Sequence[Batch]) -> str:
    entered = {
        kind: sum(len(batch.ids) for batch in batches if batch.origin == kind)
        for kind in ("added", "enqueued")
    }
    parts = [f"{several(n, 'trial')} {origin}" for origin, n in entered.items() if n]
    return f"No batch has been asked for yet{'; ' if parts else ''}{', '.join(parts)}."


def _change(best: Trial, home: Batch, last: Batch, history: History, goal: Goal) -> str:
    if home is not last:
        anything = any(history.trial(i).status == "told" for i in last.ids)
        if home.first > last.first:
            return ""
        return f", {'unchanged since' if anything else 'from'} {home.name}"
    values = [t.value for t in history.ended if t.id < last.first and t.value is not None]
    if not values or best.value is None:
        return ""
    before = max(values) if goal == "max" else min(values)
    known = f"batch {last.round - 1}" if last.round and last.round > 1 else "what was known before"
    gain = significant(abs(best.value - before), 3)
    return f", {'up' if best.value > before else 'down'} {gain} from {known}"


def _expected(home: Batch, past: PastForecast | None) -> str:
    if past is not None:
        return f"; the model expected {plus_minus(past.forecast.mean, past.forecast.std)}"
    return "; it was chosen without a model" if home.origin == "asked" else ""


# Why each trial was chosen, in one word.

Reason = Literal["exploit", "explore", "repeat", "design", "yours", "added"]

LEAST_CHANCE = 1.0 / 3.0

MEANING: dict[Reason, str] = {
    "exploit": "its mean is among the best: the model gave it at least one chance in three of "
    "being better than every point told by then",
    "explore": "chosen for its uncertainty: the chance was less than one in three",
    "repeat": "the same point was looked at before",
    "design": "spread over the space, without a model",
    "yours": "enqueued by you",
    "added": "measured elsewhere",
}


def reason(trial: Trial, repeated: bool, past: PastForecast | None) -> Reason:
    """Why a trial was chosen; tested in this order: repeat, yours or added, design, the rest.

    With m the best posterior mean among the points told when it was asked for, and μ, σ the
    belief there, a trial exploits if P(f > m) = Φ((μ - m)/σ) >= 1/3, that is if its mean falls
    short of m by no more than 0.43 σ; otherwise it explores (our choice).
    """
    if repeated:
        return "repeat"
    if trial.origin != "asked":
        return "yours" if trial.origin == "enqueued" else "added"
    if past is None:
        return "design"
    return "exploit" if past.chance >= LEAST_CHANCE else "explore"


def repeats(space: Space | Pool, trials: Sequence[Trial], ids: Iterable[int]) -> dict[int, int]:
    """Which of these ids have the point of an earlier trial, and the first trial that has it.

    Cost O(trials · d): each is encoded once and found by its bytes.
    """
    wanted = set(ids)
    seen: dict[bytes, int] = {}
    found: dict[int, int] = {}
    for trial, row in zip(trials, space.encode([t.point for t in trials]), strict=True):
        key = row.tobytes()
        if trial.id in wanted and key in seen:
            found[trial.id] = seen[key]
        if trial.status not in ("cancelled", "lost"):
            seen.setdefault(key, trial.id)
    return found


_SCHEMA = "covey.report/1"


@dataclass(frozen=True, slots=True)
class StudySummary:
    """The study in numbers: trials by status, and its recipe."""

    counts: dict[Status, int]
    goal: Goal
    strategies: tuple[str, ...]  # those that chose a batch, in order of first use
    seed: int
    version: str  # of the covey that made this card
    events: int
    batches: int
    parameters: tuple[str, ...]
    outcome: str = ""  # the one that values are of, where outcomes have names


@dataclass(frozen=True, slots=True)
class Dot:
    """One trial in the chart of the best so far, and the best value once its batch is in."""

    id: int
    lot: int  # number of its batch from 0, enqueued and added ones included
    batch: int | None
    origin: Origin
    status: Status
    value: float | None
    best: float | None
    excluded: bool = False
    stopped: int | None = None  # the step at which its evaluation was stopped early


@dataclass(frozen=True, slots=True)
class Row:
    """One trial of the batch shown; ``texts`` are its parameters as people read them."""

    id: int
    batch: int | None
    status: Status
    point: dict[str, Any]  # as JSON holds it
    texts: tuple[str, ...]
    expected: Forecast | None
    value: float | None
    error: float | None  # of the value, in standard deviations of its forecast
    reason: Reason
    chance: float | None  # probability that it is better than every point told by then
    excluded: bool = False
    why: str = ""  # it is in the batch, in words; empty where the log does not say
    seconds: float | None = None  # that its evaluation took, where a run started it
    stopped: int | None = None  # the step at which it was stopped early; its value is of that step


@dataclass(frozen=True, slots=True)
class Card:
    """All facts of a report.

    Attributes:
        headline: two sentences.
        standing: the status line.
        way: every trial in order, for the chart of the best so far.
        batches: names of the batches in ``rows``; ``still_open`` if results are awaited.
        rows: the open batch, or the last one.
        failures: the latest trials that failed or were lost, newest first, and why.
        excluded: the latest results that are excluded, newest first, and why.
        corrections: the latest of what was corrected by hand, newest first, and why.
        plates: what stands on each and how far it is shifted; None without plates.
        trainings: what evaluations reported on their way; None if none did.
        remarks: the latest notes about trials, newest first.
        calibration: predicted against measured, of the last batches.
        diversity: of ``rows``.
        slices: through the best point; empty while nothing was told.
        best: id of the best trial.
        edges: ends of the space at which the best point sits.
        commands: to go on, and to get the same batch again.
        notes: how the space was extended, and why; what was left out, and why.
        trade_off: the front and the limits, where outcomes have names; the rest of the card is
            then about the first goal.
    """

    headline: str
    standing: StudySummary
    way: tuple[Dot, ...]
    batches: tuple[str, ...]
    still_open: bool
    rows: tuple[Row, ...]
    failures: tuple[Failure, ...]
    excluded: tuple[Failure, ...]
    calibration: Calibration
    diversity: Diversity
    slices: tuple[Slice, ...]
    best: int | None
    edges: tuple[Edge, ...]
    commands: Commands
    notes: tuple[str, ...]
    trade_off: TradeOff | None = None
    corrections: tuple[Correction, ...] = ()
    plates: Plates | None = None
    trainings: Trainings | None = None
    remarks: tuple[Remark, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The card as plain JSON; numbers in full."""
        return {"schema": _SCHEMA, **_plain(asdict(self))}


def card(study: Study, commands: Commands | None = None) -> Card:
    """The report card of a study now; the same log gives the same card.

    Args:
        study: any study, however little has happened in it.
        commands: what to print under "type next"; None is the Python API.
    """
    history, recipe = study.history, study.recipe
    batches = history.batches
    with one_thread():
        commands = commands or python_commands(history, batches, study.journal)
        if recipe.outcomes.plain:
            return _card(history, recipe, commands, best_trial(history, recipe.outcomes))
        return _card_of_several(history, recipe, commands)


def _card_of_several(history: History, recipe: Recipe, commands: Commands) -> Card:
    """The card of the first goal, through the best trial or the middle of the front."""
    outcomes = recipe.outcomes
    first, found = next(iter(outcomes.goals)), trade_off(history, outcomes, recipe.space.width)
    leader = best_trial(history, outcomes) if outcomes.only else middle(history, outcomes)
    own = history.of_outcome(first)
    made = _card(own, recipe.of(first), commands, None if leader is None else own[leader.id])
    asked = [batch for batch in history.batches if batch.round is not None]
    arrived = _arrived(asked[-1], history) if asked else _before_any(history.batches)
    standing = replace(_standing(history, recipe, history.batches), outcome=first)
    standing = replace(standing, goal=recipe.of(first).goal)
    return replace(
        made,
        headline=f"{arrived} {front_headline(history, outcomes, found)}",
        standing=standing,
        trade_off=found,
        **fates(history),
    )


def _card(history: History, recipe: Recipe, commands: Commands, best: Trial | None) -> Card:
    trials, batches = history.trials, history.batches
    shown, window = shown_batches(batches, trials), recent(batches)
    home = [batch for batch in batches if best is not None and best.id in batch.ids]
    past = past_forecasts(history, recipe, {*window, *shown, *home})
    ids = [i for batch in shown for i in batch.ids]
    batch = [trials[i].point for i in ids]
    today = _today(history, recipe) if best is not None else None
    return Card(
        headline=headline(history, recipe.goal, batches, past),
        standing=_standing(history, recipe, batches),
        way=way(history, recipe.goal),
        batches=tuple(batch.name for batch in shown),
        still_open=bool(history.pending),
        rows=_rows(history, recipe, shown, past),
        **fates(history),
        trainings=trainings_of(history),
        calibration=calibrate(window, trials, past, history.stopped),
        diversity=diversity(recipe.space, trials, ids),
        slices=() if best is None or today is None else model_slices(today, recipe, best.point),
        best=None if best is None else best.id,
        edges=() if best is None else _edges(recipe.space, best, batch),
        commands=commands,
        notes=(
            *(f"{_said(one)}." for one in extensions_in_words(history, recipe)),
            *_notes(batches, window, len(history.counted)),
            *sentences_about(recipe, history),
        ),
        plates=plates_of(history, recipe, today),
    )


def _said(words: str) -> str:
    return plain_text(words[:1].upper() + words[1:].rstrip("."))


def _edges(
    space: Space | Pool, best: Trial, batch: Sequence[Mapping[str, Any]]
) -> tuple[Edge, ...]:
    """Ends at which the best point sits; none if it is outside a space that was narrowed."""
    outside = isinstance(space, CoveringSpace) and not allows(space, best.point)
    return () if outside else edges(space, best.point, batch)


def _today(history: History, recipe: Recipe) -> Posterior | None:
    """The present model, which is the one `Study.predict` uses; None for too many results."""
    if len(history.counted) > MOST_TOLD:
        return None
    rng = np.random.default_rng([recipe.seed, history.asked_count])
    return understand(history, recipe, rng, waiting=False)


def _standing(history: History, recipe: Recipe, batches: tuple[Batch, ...]) -> StudySummary:
    statuses = [trial.status for trial in history.trials]
    return StudySummary(
        counts={status: statuses.count(status) for status in get_args(Status)},
        goal=recipe.goal,
        strategies=tuple(dict.fromkeys(batch.strategy for batch in batches if batch.strategy)),
        seed=recipe.seed,
        version=__version__,
        events=len(history.events),
        batches=history.rounds,
        parameters=recipe.space.names,
    )


def way(history: History, goal: Goal) -> tuple[Dot, ...]:
    """Every trial in order, and the best value once its batch is in."""
    better = max if goal == "max" else min
    best: float | None = None
    ended, stopped = {trial.id for trial in history.ended}, history.stopped
    dots: list[Dot] = []
    for place, batch in enumerate(history.batches):
        members = history.trials[batch.first : batch.first + len(batch.ids)]
        values = [t.value for t in members if t.value is not None and t.id in ended]
        best = better([*values, *([] if best is None else [best])], default=None)
        dots += [
            Dot(
                *(t.id, place, batch.round, t.origin, t.status, t.value, best, t.excluded),
                stopped=stopped.get(t.id),
            )
            for t in members
        ]
    return tuple(dots)


def _rows(
    history: History, recipe: Recipe, batches: tuple[Batch, ...], past: Mapping[int, PastForecast]
) -> tuple[Row, ...]:
    space, trials = recipe.space, history.trials
    again = repeats(space, trials, [i for batch in batches for i in batch.ids]) if trials else {}
    rows, stopped = [], history.stopped
    for batch in batches:
        for i in batch.ids:
            trial, seen = trials[i], past.get(i)
            expected = None if seen is None else seen.forecast
            rows.append(
                Row(
                    id=i,
                    batch=batch.round,
                    status=trial.status,
                    point=space.to_json(trial.point),
                    texts=tuple(shown(trial.point.get(name, "")) for name in space.names),
                    expected=expected,
                    value=trial.value,
                    error=None if i in stopped else _error(expected, trial.value),
                    reason=reason(trial, i in again, seen),
                    chance=None if seen is None else seen.chance,
                    excluded=trial.excluded,
                    why=_why(batch, i, again.get(i)),
                    seconds=trial.seconds,
                    stopped=stopped.get(i),
                )
            )
    return tuple(rows)


def _why(batch: Batch, i: int, earlier: int | None) -> str:
    """Why a trial is there, in words: it has the point of an earlier one, or what the log says."""
    return plain_text(batch.why(i)) if earlier is None else f"replicate of trial {earlier}"


def _error(expected: Forecast | None, value: float | None) -> float | None:
    return None if expected is None or value is None else error_of(expected, value)


def _notes(batches: tuple[Batch, ...], window: tuple[Batch, ...], told: int) -> tuple[str, ...]:
    modelled = [batch for batch in batches if batch.modelled]
    asked = sum(batch.round is not None for batch in batches)
    notes = []
    if len(modelled) < asked:
        notes.append(
            f"{asked - len(modelled)} of {several(asked, 'batch')} came without a model (the "
            "first ones, or any by random or sobol): nothing was predicted there."
        )
    if len(window) < len(modelled):
        notes.append(
            f"To bound the work, predicted against measured looks back on the last {len(window)} "
            f"of {len(modelled)} batches that a model chose."
        )
    if told > MOST_TOLD:
        notes.append(
            f"{told} results are more than a report looks at with a model ({MOST_TOLD}): there are "
            "no slices, and no predictions for batches asked for after that many."
        )
    return tuple(notes)


def _plain(value: Any) -> Any:
    """Lists and dicts of JSON scalars; nan and infinities become null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Correction):
        return _plain(value._asdict())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
