from __future__ import annotations

import pickle
import sys
import threading
import tracemalloc

import pytest

from covey.errors import HistoryError, MissingExtraError
from covey.history import (
    Added,
    Amended,
    Asked,
    Cancelled,
    Dispatched,
    Enqueued,
    Failed,
    History,
    Lost,
    Point,
    Told,
)
from covey.history.history import Ledger

A, B, C = Point(x=1.0), Point(x=2.0), Point(x=3.0)


def a_run() -> History:
    return History(
        [
            Asked((A, B), "auto", ({"noise": 0.1},)),
            Told((0,), (1.5,)),
            Enqueued((C,)),
            Asked((C, A), "random"),
            Failed((1,)),
            Cancelled((3,)),
            Added((B, C), (4.0, 4.0)),
        ]
    )


def test_an_older_view_replays_its_events_once(monkeypatch):
    """However often it is read, and whatever is read of it."""
    applied, apply = [], Ledger.apply
    old = a_run()
    new = old.then(Told((2,), (0.5,)))
    monkeypatch.setattr(
        Ledger, "apply", lambda self, *given: applied.append(given) or apply(self, *given)
    )
    for _ in range(3):
        assert old[2].status == "pending"
        assert [old.why(t) + "".join(old.notes(t)) for t in old] == [""] * len(old)
        assert [old.batch(i) for i in (0, 2, 3)] == [1, None, 2]
        assert (old.metrics(0), old.reports(0), old.attempts(0), old.stopped) == ({}, (), (), {})
        assert old.plates.records == {}
    assert len(applied) == len(old.events)
    assert new[2].value == 0.5


def test_going_on_from_an_older_view_replays_its_events_once(monkeypatch):
    """What it was read by is what goes on; the view itself stays what it was."""
    applied, apply = [], Ledger.apply
    old = a_run()
    old.then(Failed((2,)))
    monkeypatch.setattr(
        Ledger, "apply", lambda self, *given: applied.append(given) or apply(self, *given)
    )
    assert old.attempts(2) == ()
    other = old.then(Told((2,), (0.5,)))
    assert len(applied) == len(old.events) + 1
    assert (old.trial(2).status, other.trial(2).status) == ("pending", "told")


def test_what_an_older_view_goes_on_to_is_no_part_of_it():
    old = a_run()
    old.then(Failed((2,)))
    assert old[2].status == "pending"
    other = old.then(Told((2,), (0.5,)))
    assert (old.trial(2).status, other.trial(2).status) == ("pending", "told")
    with pytest.raises(HistoryError, match="already told"):
        other.then(Told((2,), (0.5,)))


def test_an_empty_history():
    empty = History()
    assert (len(empty), empty.trials, empty.events, empty.told) == (0, (), (), ())
    assert (empty.asked_count, empty.rounds, empty.models, empty.best("max")) == (0, 0, None, None)
    assert repr(empty) == "History(0 trials)"


def test_what_a_run_looks_like():
    run = a_run()
    assert (len(run), run.asked_count, run.rounds) == (7, 4, 2)
    assert [t.id for t in run.told] == [0, 5, 6]
    assert [t.id for t in run.pending] == [2, 4]
    assert [t.id for t in run.failed] == [1]
    assert run.models == ({"noise": 0.1},)  # the second batch recorded none
    assert repr(run) == "History(7 trials: 1 cancelled, 1 failed, 2 pending, 3 told)"
    assert repr(History([Enqueued((A,))])) == "History(1 trial: 1 pending)"
    assert run.trials == History(run.events).trials
    assert run.trial(5) == run.trials[5]


def test_the_last_recorded_models_count():
    run = a_run().then(Asked((A,), "auto", ({"noise": 0.2}, {"noise": 0.3})))
    assert run.models == ({"noise": 0.2}, {"noise": 0.3})


def test_the_best_is_the_first_of_equals_in_either_direction():
    run = a_run()
    assert run.best("max").id == 5
    assert run.best("min").id == 0
    assert run.then(Amended(0, 5.0, "typo")).best("max").id == 0
    assert run.then(Amended(0, 4.0, "typo")).best("min").id == 0
    with pytest.raises(HistoryError, match=r"'max'.*'min'.*'maximize'"):
        run.best("maximize")


def test_an_unknown_trial_is_named():
    with pytest.raises(HistoryError, match="trial 7"):
        a_run().trial(7)
    with pytest.raises(HistoryError, match="trial -1"):
        a_run().trial(-1)


def test_a_refused_event_changes_nothing():
    run = a_run()
    before = (run.trials, run.events)
    for refuse in (run.check, run.then):
        with pytest.raises(HistoryError, match="already told"):
            refuse(Told((2, 0), (1.0, 2.0)))
        assert (run.trials, run.events) == before == (a_run().trials, a_run().events)
    run.check(Told((2,), (1.0,)))
    assert run.events == before[1]


def test_an_older_view_answers_for_its_own_length():
    old = History().then(Asked((A, B), "auto"))
    new = old.then(Told((0,), (1.5,))).then(Enqueued((C,)))
    assert (len(old), len(old.events), old.trial(0).status) == (2, 1, "pending")
    assert [t.status for t in old.trials] == ["pending", "pending"]
    old.check(Told((0,), (9.0,)))
    with pytest.raises(HistoryError, match="trial 2"):
        old.check(Told((2,), (9.0,)))
    assert [t.status for t in new.trials] == ["told", "pending", "pending"]


def test_then_on_an_older_view_forks():
    root = History().then(Asked((A, B), "auto"))
    left = root.then(Told((0,), (1.0,)))
    right = root.then(Told((0,), (2.0,)))
    left, right = left.then(Failed((1,))), right.then(Cancelled((1,)))
    assert [(t.value, t.status) for t in left.trials] == [(1.0, "told"), (None, "failed")]
    assert [(t.value, t.status) for t in right.trials] == [(2.0, "told"), (None, "cancelled")]
    assert len(root.events) == 1


def test_then_costs_the_size_of_the_event_not_of_the_history():
    run = History([Asked((A,) * 50_000, "auto")])
    event = Told((7,), (1.0,))

    def peak(action) -> int:
        tracemalloc.start()
        try:
            action()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(lambda: run.then(event).trial(7)) < 50_000
    assert peak(lambda: run.then(event)) > 400_000  # by now an older view, which must fork


def test_threads_that_race_for_the_next_event_fork_and_corrupt_nothing():
    for _ in range(20):
        root, branches = History([Asked((A,) * 8, "auto")]), []
        gate = threading.Barrier(8)

        def tell(i, root=root, branches=branches, gate=gate):
            gate.wait()
            branches.append((i, root.then(Told((i,), (float(i),)))))

        threads = [threading.Thread(target=tell, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(i for i, _ in branches) == list(range(8))
        assert all([t.id for t in branch.told] == [i] for i, branch in branches)
        assert root.told == ()


def test_a_pickled_view_carries_its_own_part_only():
    old = a_run()
    new = old.then(Told((2,), (1.0,)))
    again = pickle.loads(pickle.dumps(old))
    assert again.events == old.events
    assert again.trials == old.trials
    assert len(new.events) == len(again.events) + 1


def test_to_frame():
    frame = a_run().to_frame()
    fates = ["batch", "reason", "asked", "started", "ended", "seconds"]
    assert list(frame.columns) == ["id", "status", "value", "sem", "origin", "x", *fates]
    assert frame["id"].tolist() == list(range(7))
    assert frame["value"].dropna().tolist() == [1.5, 4.0, 4.0]
    assert frame["sem"].dtype == "float64"
    assert frame["x"].tolist() == [1.0, 2.0, 3.0, 3.0, 1.0, 2.0, 3.0]
    empty = History().to_frame()
    assert list(empty.columns) == ["id", "status", "value", "sem", "origin", *fates]
    assert str(empty["asked"].dtype) == str(frame["ended"].dtype) == "datetime64[ns, UTC]"


def test_only_colliding_names_are_prefixed():
    point = Point({"value": 1, "point.value": 2, "lr": 3})
    frame = History([Enqueued((point, Point(other=4)))]).to_frame()
    names = ["point.point.value", "point.value", "lr", "other"]
    assert list(frame.columns)[5:-6] == names
    assert frame.loc[0, names[:3]].tolist() == [1, 2, 3]
    assert frame.loc[1, "other"] == 4
    assert frame.loc[0, ["other"]].isna().all()


def test_frames_name_the_extra_they_need(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"'covey\[frames\]'"):
        a_run().to_frame()


def test_a_history_knows_why_a_trial_failed_and_in_which_batch_it_was():
    history = (
        History()
        .then(Added((Point(x=0.0),), (1.0,)))
        .then(Asked((Point(x=0.1), Point(x=0.2)), "random"))
        .then(Failed((1,), "out of memory"))
        .then(Asked((Point(x=0.3), Point(x=0.4)), "random"))
        .then(Lost((3,), "killed"))
    )
    assert [history.batch(i) for i in range(5)] == [None, 1, 1, 2, 2]
    assert [history.reason(i) for i in range(5)] == ["", "out of memory", "", "killed", ""]
    later = history.then(Told((1,), (2.0,)))  # a late result
    assert later.reason(1) == ""
    assert history.reason(1) == "out of memory"  # an older view says what it said


def test_a_trial_names_itself_as_well_as_its_id():
    history = History().then(Asked((Point(x=0.1),), "random")).then(Dispatched(0, 1, "a", 5))
    trial = history.trials[0]
    assert history.attempts(trial) == history.attempts(0)
    assert (history.batch(trial), history.reason(trial)) == (1, "")
    for wrong in ("0", 0.5, None):
        with pytest.raises(HistoryError, match="trial"):
            history.attempts(wrong)


def test_the_frame_says_why_a_trial_failed_and_in_which_batch_it_was():
    pytest.importorskip("pandas", reason="pip install 'covey[frames]'")
    history = (
        History()
        .then(Asked((Point(x=0.1, batch=64), Point(x=0.2, batch=32)), "random"))
        .then(Failed((1,), "out of memory"))
        .then(Added((Point(x=0.0, batch=1),), (1.0,)))
    )
    frame = history.to_frame()
    assert list(frame.columns[5:9]) == ["x", "batch", "trial.batch", "reason"]
    assert list(frame["reason"]) == ["", "out of memory", ""]
    assert list(frame["batch"]) == [64, 32, 1]  # the parameter keeps its name
    assert frame["trial.batch"].fillna(0).tolist() == [1, 1, 0]


def test_a_history_is_a_sequence_of_its_trials():
    first = History().then(Asked((Point(x=0.1), Point(x=0.9)), "random"))
    history = first.then(Told((1,), (2.5,)))
    assert list(history) == list(history.trials)
    assert [len(history), history[1].value, history[-1].value] == [2, 2.5, 2.5]
    assert history[:1] == history.trials[:1]
    assert history[0] in history
    assert first[1].value is None  # an older view stays what it was
    for wrong in (2, -3, "x", 1.0):
        with pytest.raises(HistoryError, match="trial"):
            history[wrong]


def test_batches_say_which_event_made_which_trials():
    run = a_run()
    assert [(b.origin, b.round, list(b.ids)) for b in run.batches] == [
        ("asked", 1, [0, 1]),
        ("enqueued", None, [2]),
        ("asked", 2, [3, 4]),
        ("added", None, [5, 6]),
    ]
    assert [b.name for b in run.batches] == ["batch 1", "enqueued", "batch 2", "added"]
    assert [(b.strategy, b.modelled) for b in run.batches][::2] == [("auto", True), ("random", 0)]
    for batch in run.batches:
        assert run.events[batch.place].points == batch.points
        assert batch.points == tuple(run[i].point for i in batch.ids)
        assert {run.batch(i) for i in batch.ids} == {batch.round}
    older = History(run.events[:3])
    longer = older.then(Enqueued((A,)))
    assert older.batches == run.batches[:2]  # an older view has its own
    assert len({*run.batches, *longer.batches}) == 5
