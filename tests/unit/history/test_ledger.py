"""Which event may follow which, and what it makes of the trials."""

from __future__ import annotations

import re

import pytest

from covey.errors import HistoryError
from covey.history import (
    Added,
    Amended,
    Asked,
    Began,
    Cancelled,
    Dispatched,
    Ended,
    Enqueued,
    Excluded,
    Extended,
    Failed,
    History,
    Included,
    Late,
    Lost,
    Noted,
    Point,
    Reported,
    Retried,
    Told,
)
from covey.history.history import Ledger, check, known

A, B, C = Point(x=1.0), Point(x=2.0), Point(x=3.0)

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


def test_an_excluded_result_is_told_and_does_not_count():
    before = History(EVENTS)
    out = before.then(Excluded((5,), "the cell was wet"))
    assert (out[5].status, out[5].excluded, out[5].value) == ("told", True, 2.5)
    assert "excluded=True" in repr(out[5])
    assert out[5].to_json()["excluded"] is True
    assert [t.id for t in before.counted] == [1, 5] == [t.id for t in out.told]
    assert [t.id for t in out.counted] == [1]
    assert (before.best("max").id, out.best("max").id, out.best("min").id) == (5, 1, 1)
    assert out.reason(5) == "the cell was wet"
    assert out.then(Amended(5, 3.0, "typo"))[5].excluded  # and why stays known
    assert out.then(Amended(5, 3.0, "typo")).reason(5) == "the cell was wet"
    back = out.then(Included((5,), "it was another cell"))
    assert back.trials == before.trials
    assert back.reason(5) == ""
    assert History([*EVENTS, Excluded((1, 5), "all")]).best("max") is None


def test_the_frame_marks_what_is_excluded():
    pytest.importorskip("pandas", reason="pip install 'covey[frames]'")
    frame = History([*EVENTS, Excluded((5,), "the cell was wet")]).to_frame()
    assert frame["excluded"].tolist() == [i == 5 for i in range(len(frame))]
    assert frame["reason"][5] == "the cell was wet"
    assert "excluded" not in History(EVENTS).to_frame().columns


def test_only_what_counts_is_excluded_and_only_what_is_excluded_included():
    with refuses(
        "trial 0 is pending, and only a result is excluded; cancel it if it will not be run."
    ):
        check(Excluded((1, 0), "x"), TRIALS)
    with refuses("trial 1 is not excluded, so there is nothing to include."):
        check(Included((1,), "x"), TRIALS)
    out = Ledger([*EVENTS, Excluded((1,), "x")]).trials
    with refuses("trial 1 is excluded already; include it to take that back."):
        check(Excluded((1,), "x"), out)


def test_failed_trials_are_pending_again_once_they_are_retried():
    again = History(EVENTS).then(Retried((2,)))
    assert (again[2].status, again.reason(2)) == ("pending", "")
    assert again.then(Told((2,), (1.0,)))[2].value == 1.0
    with refuses(
        "trial 1 is told; only a failed trial is retried: amend a wrong value, or exclude"
    ):
        check(Retried((2, 1)), TRIALS)
    with refuses("trial 0 is pending; only a failed trial is retried: it is still to be run."):
        check(Retried((0,)), TRIALS)
    with refuses("trial 3 is cancelled; only a failed trial is retried: enqueue its point"):
        check(Retried((3,)), TRIALS)


def test_the_repr_counts_what_is_excluded():
    assert repr(History([*EVENTS, Excluded((1,), "wet")])).endswith("2 told (1 excluded))")
    assert "excluded" not in repr(History(EVENTS))


def test_notes_and_reports_change_no_trial():
    """So a reader that does not know them may pass them over."""
    history = History([*EVENTS, Noted((0, 1), "cloudy"), Noted((1,), "and late")])
    history = history.then(Reported(0, 1, 1, 0.25)).then(Reported(0, 1, 2, 0.5))
    assert [history.notes(i) for i in range(3)] == [("cloudy",), ("cloudy", "and late"), ()]
    assert [(r.step, r.value) for r in history.reports(0)] == [(1, 0.25), (2, 0.5)]
    assert history.reports(1) == ()
    assert history.trials == History(EVENTS).trials
    for event in (Noted((9,), "x"), Reported(9, 1, 1, 0.0), Retried((9,)), Excluded((9,), "x")):
        with refuses("trial 9 was never asked"):
            check(event, TRIALS)


def test_the_beginning_and_the_end_of_a_run_change_no_trial_and_no_count():
    """Batches depend on the number of points asked for, not on that of events."""
    plain = History(EVENTS)
    history = History([Began("0a1b2c3d", 7, "tern", {"batch": 4}), *EVENTS, Ended("0a1b2c3d", "")])
    assert history.trials == plain.trials
    assert (history.asked_count, history.rounds) == (plain.asked_count, plain.rounds)
    assert plain.then(Ended("0a1b2c3d", "Ctrl-C")).changed_since(plain) == ()


def test_an_extended_space_leaves_the_trials_alone():
    event = Extended({"kind": "space"}, "abc", "the optimum is at the edge")
    history = History([*EVENTS, event])
    assert history.trials == History(EVENTS).trials
    assert history.events[-1] == event


def test_a_new_parameter_completes_the_points_and_only_from_then_on():
    event = Extended({"kind": "space"}, "abc", "a pump", before="ab", values={"p": 1.0})
    before = History(EVENTS)
    after = before.then(event)
    assert [dict(t.point) for t in after] == [{**t.point, "p": 1.0} for t in before]
    assert all("p" not in trial.point for trial in before)
    assert [(t.id, t.status, t.value) for t in after] == [(t.id, t.status, t.value) for t in before]


def test_hyper_parameters_belong_to_the_space_they_are_of():
    def asked(length):
        return Asked((X,), "auto", models=({"length": length},))

    def moved(before, after):
        return Extended({"kind": "space"}, after, "a reason", before=before)

    history = History([asked(1.0), moved("a", "b")])
    assert history.models is None
    history = history.then(asked(2.0)).then(moved("b", "a"))
    assert history.models == ({"length": 1.0},)
    assert history.then(moved("a", "b")).models == ({"length": 2.0},)
    assert history.then(moved("a", "a")).models == ({"length": 1.0},)


def test_values_by_name_are_the_trials_and_the_value_is_the_only_goals():
    made = Asked((X,) * 3, "auto")
    told = Told((0,), ({"yield": 61.0, "impurity": 1.5},), (0.5,), goal="yield")
    history = History([made, told, Told((1,), ({"yield": 7.0},))])
    assert (history[0].value, history[0].sem) == (61.0, 0.5)
    assert history[0].values == {"yield": 61.0, "impurity": 1.5}
    assert "values={'yield': 61.0, 'impurity': 1.5}" in repr(history[0])
    assert history[0].to_json()["values"] == history[0].values
    assert (history[1].value, history[1].values) == (7.0, {"yield": 7.0})
    assert (history[2].value, history[2].values) == (None, {})
    assert TRIALS[1].values == {"value": 1.5}
    with pytest.raises(TypeError, match="read-only"):
        history[0].values["yield"] = 0.0


def test_of_several_goals_none_is_the_value():
    both = {"yield": 61.0, "cost": 33.0}
    history = History([Asked((X,), "auto"), Told((0,), (both,)), Added((X,), (both,))])
    assert [(t.status, t.value, t.values) for t in history] == [("told", None, both)] * 2
    assert (history.counted, history.best("max")) == ((), None)


def test_values_are_amended_by_the_names_they_were_told_by():
    told = {"yield": 61.0, "impurity": 1.5}
    history = History([Added((X,), (told,), goal="yield"), Added((X,), (told,))])
    assert history.then(Amended(0, 60.0, "typo"))[0].values == {**told, "yield": 60.0}
    by_name = history.then(Amended(0, {"impurity": 2.0}, "typo"))
    assert (by_name[0].value, by_name[0].values) == (61.0, {**told, "impurity": 2.0})
    for event in (Amended(0, {"cost": 1.0}, "typo"), Amended(1, 60.0, "typo")):
        with refuses(f"was told {told}; amend values by these names, got "):
            history.check(event)
    plain = History(EVENTS).then(Amended(1, {"value": 2.0}, "typo"))[1]
    assert (plain.value, plain.named) == (2.0, {})


def test_a_trial_says_why_it_failed_as_long_as_that_is_so():
    events = [Asked((Point(x=0.1), Point(x=0.9)), "random"), Failed((0,), "too hot")]
    failed = History(events)
    assert failed[0].reason == failed.reason(0) == "too hot"
    assert "reason='too hot'" in repr(failed[0])
    assert failed[1].reason == ""
    again = failed.then(Retried((0,)))
    assert again[0].reason == ""
    told = again.then(Told((0,), (1.0,)))
    excluded = told.then(Excluded((0,), "wrong vial"))
    assert excluded[0].reason == "wrong vial"
    assert excluded.then(Included((0,), "right vial"))[0].reason == ""
    assert failed.then(Told((0,), (2.0,)))[0].reason == ""
