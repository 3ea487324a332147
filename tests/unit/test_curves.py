"""What stopped trials would have come to, and who is told of it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import covey
from covey import learn
from covey.curves import expected_ends
from covey.history import Asked, Event, Excluded, History, Point, Reported, Told

SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})
Values = Sequence[tuple[int, float]]  # steps and values


def history_of(curves: Sequence[Values], last: int, *more: Event) -> History:
    """Trainings that were stopped where their reports end, but for those at the ``last`` step."""
    points = tuple(Point(x=(i + 0.5) / len(curves)) for i in range(len(curves)))
    events: list[Event] = [Asked(points, "random")]
    for id, curve in enumerate(curves):
        events += [Reported(id, 1, step, value) for step, value in curve]
        step, value = curve[-1]
        events.append(Told((id,), (value,), (), ({"stopped": step} if step < last else None,)))
    return History([*events, *more])


def drawn(seed: int, count: int = 40) -> tuple[list[list[tuple[int, float]]], list[float]]:
    """Curves that rise at paces of their own, three quarters of them cut at step 3, and all ends.

    As under halving, those that were ahead go on.
    """
    rng = random.Random(seed)
    level = [rng.uniform(0.5, 1.0) for _ in range(count)]
    pace = [rng.uniform(2.0, 4.0) for _ in range(count)]
    whole = [
        [(t, a * (1 - math.exp(-t / p)) + rng.gauss(0, 0.01)) for t in (1, 3, 9, 27)]
        for a, p in zip(level, pace, strict=True)
    ]
    cut = sorted(curve[1][1] for curve in whole)[3 * count // 4]
    kept = [curve if curve[1][1] >= cut else curve[:2] for curve in whole]
    return kept, [curve[-1][1] for curve in whole]


def changed(curves: Sequence[Values], scale: float, shift: float) -> list[Values]:
    return [[(step, shift + scale * value) for step, value in curve] for curve in curves]


def without_reports(history: History) -> History:
    events = [event for event in history.events if not isinstance(event, Reported)]
    return History([replace(e, metrics=()) if isinstance(e, Told) else e for e in events])


# ---------------------------------------------------------------- laws


@pytest.mark.parametrize("goal", ["max", "min"])
def test_where_nothing_was_stopped_the_model_is_the_same_to_the_last_bit(goal):
    curves = [[(1, 0.1 * i), (27, math.sin(i))] for i in range(12)]
    history = history_of(curves, 27)
    assert expected_ends(history, 1.0) == {}
    recipe = covey.Study(SPACE, goal, seed=0).recipe
    with_reports, plain = (
        learn.observations(h, recipe) for h in (history, without_reports(history))
    )
    assert np.array_equal(with_reports.values, plain.values)
    assert np.array_equal(with_reports.at, plain.at)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_that_is_stopped_at_the_last_step_has_come_to_its_end(sign):
    curves, _ = drawn(1)
    for value in (0.123, 0.789, 1.5):
        history = history_of([*curves, [(3, 0.3), (27, value)]], 28)
        ended = {id for id, curve in enumerate(curves) if curve[-1][0] == 27}
        # The others that came as far were told without a word of being stopped.
        events = [
            replace(e, metrics=()) if isinstance(e, Told) and e.ids[0] in ended else e
            for e in history.events
        ]
        assert expected_ends(History(events), sign)[len(curves)] == value


def test_less_is_better_as_more_is():
    curves, _ = drawn(2)
    up = expected_ends(history_of(curves, 27), 1.0)
    down = expected_ends(history_of(changed(curves, -1.0, 0.0), 27), -1.0)
    assert {id: -value for id, value in down.items()} == pytest.approx(up)
    assert len(up) == 30


def test_units_do_not_matter():
    curves, _ = drawn(3)
    plain = expected_ends(history_of(curves, 27), 1.0)
    other = expected_ends(history_of(changed(curves, 250.0, -7.0), 27), 1.0)
    assert other == pytest.approx({id: 250.0 * value - 7.0 for id, value in plain.items()})


@pytest.mark.parametrize("seed", range(5))
def test_who_was_ahead_at_a_step_stays_ahead_and_below_the_best_that_ended(seed):
    curves, _ = drawn(seed)
    if seed == 4:  # those that were behind overtook: the slope would be negative
        curves = [c if len(c) < 4 else [*c[:3], (27, 2.0 - 3.0 * c[1][1])] for c in curves]
    found = expected_ends(history_of(curves, 27), 1.0)
    order = sorted(found, key=lambda id: curves[id][-1][1])
    values = [found[id] for id in order]
    assert values == sorted(values)
    assert values[-1] <= max(curve[-1][1] for curve in curves if curve[-1][0] == 27)


def test_ends_that_are_parallel_are_found_exactly():
    ends = [0.2, 0.5, 0.6, 0.9]
    curves = [[(1, e - 0.6), (3, e - 0.3), (9, e)] for e in ends]
    curves = [curves[0][:1], curves[1][:2], *curves[2:]]
    found = expected_ends(history_of(curves, 9), 1.0)
    assert found == pytest.approx({0: 0.2, 1: 0.5})


def test_the_line_by_a_referee():
    """Ridge regression as least squares with one row more, by way of a longer path."""
    curves, _ = drawn(5)
    values = [[value for _, value in curve] for curve in curves]
    found = expected_ends(history_of(curves, 27), 1.0)
    y, end = np.array([v[1] for v in values]), np.array([v[-1] for v in values])
    ended = np.array([len(v) == 4 for v in values])
    centred = np.column_stack([y[ended] - y[ended].mean(), end[ended] - end[ended].mean()])
    ridge = math.sqrt(np.var(y))
    rows = np.vstack([centred, [ridge, ridge]])
    slope = np.linalg.lstsq(rows[:, :1], rows[:, 1], rcond=None)[0][0]
    expected = end[ended].mean() + slope * (y - y[ended].mean())
    most = end[ended].max()
    assert found == pytest.approx(
        {id: min(most, expected[id]) for id in range(len(y)) if not ended[id]}
    )


def test_where_few_ended_the_steps_in_between_count():
    """One end says little: the slope from step 1 on is that of the many who came to step 3."""
    early = [[(1, 0.1 * i)] for i in range(4)]
    more = [[(1, 0.5 + 0.1 * i), (3, 1.0 + 0.2 * i)] for i in range(9)]
    curves = [*early, *more, [(1, 1.4), (3, 2.8), (9, 3.0)]]
    found = expected_ends(history_of(curves, 9), 1.0)
    assert found[4] == pytest.approx(1.0 + 0.2)  # all that ended gained 0.2 from step 3 on
    gap = found[3] - found[0]
    assert 0.3 * 1.6 < gap < 0.3 * 2.0  # values at step 3 are twice as far apart


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_none_is_expected_to_beat_the_best_that_ended_but_by_what_it_had(sign):
    curves = [[(1, 0.1), (9, 0.5)], [(1, 0.2), (9, 0.7)], [(1, 0.6)], [(1, 0.9)]]
    found = expected_ends(history_of(changed(curves, sign, 0.0), 9), sign)
    assert found == pytest.approx({2: sign * 0.7, 3: sign * 0.9})


def test_trainings_that_end_sooner_keep_their_value():
    """By the first, which ends at step 2, there is nothing to gain from step 3 on."""
    points = tuple(Point(x=i / 3) for i in range(3))
    curves = [[(1, 0.2), (2, 0.4)], [(1, 0.4), (3, 0.6), (9, 0.8)], [(1, 0.2), (3, 0.3)]]
    reports = [Reported(id, 1, *one) for id, curve in enumerate(curves) for one in curve]
    told = Told((0, 1, 2), (0.4, 0.8, 0.3), (), (None, None, {"stopped": 3}))
    found = expected_ends(History([Asked(points, "random"), *reports, told]), 1.0)
    y, end, here = np.array([0.4, 0.6]), np.array([0.4, 0.8]), np.array([0.4, 0.6, 0.3])
    slope = (0.1 * 0.2 * 2 + here.var()) / (0.1**2 * 2 + here.var())
    assert found == pytest.approx({2: end.mean() + slope * (0.3 - y.mean())})


def test_with_no_end_in_sight_it_is_what_the_last_step_shows():
    curves = [[(1, 0.1)], [(1, 0.2), (3, 0.5)], [(1, 0.3), (3, 0.6)]]
    found = expected_ends(history_of(curves, 9), 1.0)
    assert found == pytest.approx({0: 0.4, 1: 0.5, 2: 0.6})
    assert expected_ends(history_of([[(1, 0.1)], [(1, 0.7)]], 9), 1.0) == {0: 0.1, 1: 0.7}


def test_excluded_trials_and_earlier_attempts_do_not_count():
    curves, _ = drawn(6, 12)
    known = expected_ends(history_of(curves, 27), 1.0)
    odd = [[(1, 5.0), (3, 0.0), (27, -40.0)]]
    told = history_of([*curves, *odd], 27)
    assert expected_ends(told, 1.0) != pytest.approx(known)
    assert expected_ends(told.then(Excluded((12,), "odd")), 1.0) == pytest.approx(known)
    first = [e for e in told.events if isinstance(e, Reported) and e.id == 12]
    again = [Reported(12, 2, step, value) for step, value in curves[0]]
    place = told.events.index(first[-1]) + 1
    both = [*told.events[:place], *again, *told.events[place:]]
    alone = [e for e in both if e not in first]
    assert expected_ends(History(both), 1.0) == expected_ends(History(alone), 1.0)


# ---------------------------------------------------------------- what it is worth


def errors(seed: int, *, spoilt: bool) -> tuple[float, float]:
    """Squared errors of the expected ends and of the values as they stand; ends may be spoilt."""
    curves, ends = drawn(seed)
    if spoilt:  # what others gained says nothing about those that were stopped
        curves = [c if len(c) < 4 else [*c[:2], (27, c[1][1] - 1.0)] for c in curves]
    found = expected_ends(history_of(curves, 27), 1.0)
    return (
        sum((value - ends[id]) ** 2 for id, value in found.items()),
        sum((curves[id][-1][1] - ends[id]) ** 2 for id in found),
    )


def test_expected_ends_are_nearer_than_the_values_as_they_stand():
    better = sum(a < 0.5 * b for a, b in (errors(seed, spoilt=False) for seed in range(20)))
    control = sum(a < 0.5 * b for a, b in (errors(seed, spoilt=True) for seed in range(20)))
    assert better >= 18
    assert control <= 2


def test_a_value_that_says_nothing_about_the_end_tells_nothing_apart():
    rng = random.Random(0)
    curves = [[(1, rng.random()), (9, rng.random())] for _ in range(200)]
    curves += [[(1, 0.0)], [(1, 1.0)]]
    found = expected_ends(history_of(curves, 9), 1.0)
    assert found[201] - found[200] < 0.25
    assert found[200] == pytest.approx(0.5, abs=0.15)


# ---------------------------------------------------------------- the study


@pytest.mark.parametrize(("goal", "sign"), [("max", 1.0), ("min", -1.0)])
def test_the_model_learns_the_expected_end_and_the_log_keeps_the_value(goal, sign):
    curves = changed(drawn(7)[0], sign, 0.0)
    history = history_of(curves, 27)
    recipe = covey.Study(SPACE, goal, seed=0).recipe
    ends = expected_ends(history, sign)
    data = learn.observations(history, recipe)
    told = sign * (data.shift + data.scale * data.values)
    assert told == pytest.approx([ends.get(t.id, t.value) for t in history.trials])
    id = next(iter(ends))
    assert history.trial(id).value == curves[id][-1][1] != pytest.approx(ends[id])
    assert history.stopped[id] == 3


def test_the_best_is_one_that_ended_if_any_did():
    """Here values fall with the steps, so that one that was stopped looks best."""
    curves = [[(1, 0.9)], [(1, 0.95), (3, 0.5)], [(1, 0.99), (3, 0.6)]]
    history = history_of(curves, 3)
    assert [t.id for t in history.ended] == [1, 2]
    best = history.best("max")
    assert best is not None
    assert (best.id, best.value) == (2, 0.6)
    none = history_of(curves, 99).best("max")
    assert none is not None
    assert none.id == 0


def test_the_only_goal_has_expected_ends_under_its_name_too():
    curves, _ = drawn(8)
    plain = history_of(curves, 27)
    named = History(
        replace(e, values=tuple(Point(loss=v["value"]) for v in e.values), goal="loss")
        if isinstance(e, Told)
        else e
        for e in plain.events
    )
    own = named.of_outcome("loss")
    assert expected_ends(own, 1.0) == expected_ends(plain, 1.0) != {}


@pytest.mark.parametrize(
    ("value", "metrics", "stopped"),
    [
        (0.5, {"stopped": 3}, {0: 3}),
        (0.5, {"stopped": 3, "loss": 2.0}, {0: 3}),
        (0.6, {"stopped": 3}, {}),  # it has another value than at that step
        (0.5, {"stopped": 2}, {}),
        (0.5, {"stopped": True}, {}),
        (0.5, {"loss": 3}, {}),
    ],
)
def test_who_was_stopped_is_told_its_last_report_and_the_step(value, metrics, stopped):
    asked = Asked((Point(x=0.5),), "random")
    reports = [Reported(0, 1, 1, 0.2), Reported(0, 1, 3, 0.5)]
    told = Told((0,), (value,), (), (metrics,))
    assert History([asked, *reports, told]).stopped == stopped
    assert History([asked, told]).stopped == {}


def test_a_study_names_one_that_ended():
    study = covey.Study(SPACE, seed=0)
    trials = study.ask(6)
    for trial in trials:
        study.note(Reported(trial.id, 1, 1, 1.0 + trial.id))
        if trial.id < 4:
            study.note(Reported(trial.id, 1, 3, 0.5 + 0.1 * trial.id))
            study.tell(trial, 0.5 + 0.1 * trial.id)
        else:
            study.note(Told((trial.id,), (1.0 + trial.id,), (), ({"stopped": 1},)))
    assert study.best is not None
    assert study.best.id == 3
    assert [t.id for t in study.front] == [3]
    chosen = study.recommend().trial
    assert chosen is not None
    assert chosen.id < 4
    study.note(Excluded((0, 1, 2, 3), "none is left"))
    assert study.best is not None
    assert study.best.id == 5
