from __future__ import annotations

import re

import pytest

from covey.errors import HistoryError
from covey.history import (
    Added,
    Amended,
    Asked,
    Cancelled,
    Dispatched,
    Enqueued,
    Failed,
    History,
    Late,
    Lost,
    Point,
    Told,
)
from covey.history.history import Ledger, check, known

X = Point(x=1.0)
# 0 pending, 1 told, 2 failed, 3 cancelled, 4 enqueued, 5 added
EVENTS = [
    Asked((X,) * 4, "auto"),
    Told((1,), (1.5,), (0.25,)),
    Failed((2,), "crash"),
    Cancelled((3,)),
    Enqueued((X,)),
    Added((X,), (2.5,), (0.5,)),
]
TRIALS = Ledger(EVENTS).trials


def refuses(message: str):
    return pytest.raises(HistoryError, match=re.escape(message))


def test_trials_stand_as_the_events_left_them():
    assert [(t.id, t.status, t.value, t.sem, t.origin) for t in TRIALS] == [
        (0, "pending", None, None, "asked"),
        (1, "told", 1.5, 0.25, "asked"),
        (2, "failed", None, None, "asked"),
        (3, "cancelled", None, None, "asked"),
        (4, "pending", None, None, "enqueued"),
        (5, "told", 2.5, 0.5, "added"),
    ]


def test_unknown_ids_are_named_with_those_that_exist():
    for event in (Told((9,), (1.0,)), Failed((9,)), Cancelled((9,)), Amended(9, 1.0, "typo")):
        with refuses("trial 9 was never asked; ids so far are 0 to 5."):
            check(event, TRIALS)
        with refuses("trial 9 was never asked; the only id so far is 0."):
            check(event, TRIALS[:1])
        with refuses("trial 9 was never asked; no trial has been asked yet."):
            check(event, [])
    with refuses("trial -1 was never asked"):
        check(Told((-1,), (1.0,)), TRIALS)
    assert known(5, TRIALS) is TRIALS[5]


def test_each_trial_is_told_once():
    with refuses(
        "trial 1 was already told 1.5; tell each trial once, or correct it with "
        "study.amend(1, value, reason)."
    ):
        check(Told((0, 1), (1.0, 2.0)), TRIALS)


@pytest.mark.parametrize("late", [2, 3])
def test_a_late_result_is_never_thrown_away(late):
    ledger = Ledger([*EVENTS, Told((late,), (7.0,))])
    assert (ledger.trials[late].status, ledger.trials[late].value) == ("told", 7.0)


@pytest.mark.parametrize("kind", [Failed, Cancelled, Lost])
@pytest.mark.parametrize(("i", "was"), [(1, "told 1.5"), (2, "failed"), (3, "cancelled")])
def test_only_a_pending_trial_fails_or_is_cancelled(kind, i, was):
    with refuses(
        f"trial {i} was already {was}; only a pending trial can be run, fail or be cancelled."
    ):
        check(kind((0, i)), TRIALS)
    check(kind((0, 4)), TRIALS)


@pytest.mark.parametrize(("i", "status"), [(0, "pending"), (2, "failed"), (3, "cancelled")])
def test_only_a_told_value_is_amended(i, status):
    with refuses(f"trial {i} is {status}, so there is no value to amend; use study.tell({i}, "):
        check(Amended(i, 1.0, "typo"), TRIALS)


def test_an_amendment_keeps_the_standard_error_unless_it_brings_one():
    kept = Ledger([*EVENTS, Amended(5, 9.0, "typo")]).trials[5]
    new = Ledger([*EVENTS, Amended(5, 9.0, "typo", 0.125)]).trials[5]
    assert (kept.value, kept.sem, kept.origin) == (9.0, 0.5, "added")
    assert (new.value, new.sem) == (9.0, 0.125)


def test_something_else_is_no_event():
    with refuses("an event of covey.history was expected, got 'told'"):
        check("told", TRIALS)


def test_a_replay_obeys_the_rules():
    with refuses("trial 1 was already told 1.5"):
        Ledger([*EVENTS, Told((1,), (1.0,))])


def test_a_dispatch_leaves_the_trial_pending_and_is_remembered():
    first, second = Dispatched(0, 1, "a1", 7), Dispatched(0, 2, "a2", 7)
    history = History([*EVENTS, first, second])
    assert history.trial(0).status == "pending"
    assert history.attempts(0) == (first, second)
    assert history.attempts(4) == ()
    older = History([*EVENTS, first])
    newer = older.then(second)
    assert (older.attempts(0), newer.attempts(0)) == ((first,), (first, second))
    with refuses("trial 1 was already told 1.5"):
        check(Dispatched(1, 1, "a1", 7), TRIALS)


def test_what_was_lost_is_not_failed_and_may_still_be_told():
    ledger = Ledger([*EVENTS, Lost((0,), "node went down")])
    assert ledger.trials[0].status == "lost"
    check(Told((0,), (3.0,)), ledger.trials)


def test_a_second_result_is_kept_and_not_believed():
    ledger = Ledger([*EVENTS, Late(1, 2, 9.0)])
    assert ledger.trials[1].value == 1.5
    assert ledger.events[-1] == Late(1, 2, 9.0)
    with refuses("trial 0 is pending"):
        check(Late(0, 1, 9.0), TRIALS)
