"""When trials were asked for, began and ended, and why; results that are worth nothing."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta

import pytest

import covey
from covey.errors import HistoryError
from covey.history import (
    Added,
    Amended,
    Asked,
    Cancelled,
    Dispatched,
    Excluded,
    Failed,
    History,
    Included,
    Lost,
    Point,
    Reported,
    Retried,
    Told,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
TWO = Asked((Point(x=0.1), Point(x=0.9)), "random")


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def times(history: History, id: int = 0) -> list[float | None]:
    """Seconds since the start at which a trial was asked for, began and ended; how long it took."""
    trial = history[id]
    each = (trial.asked_at, trial.started_at, trial.ended_at)
    return [None if one is None else (one - START).total_seconds() for one in each] + [
        trial.seconds
    ]


def begun() -> History:
    return History().then(TWO, at(1)).then(Dispatched(0, 1, "a", 5), at(3))


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (Told((0,), (2.0,)), "told"),
        (Told((0,), (Point({"yield": 2.0}),)), "told"),
        (Failed((0,), "no"), "failed"),
        (Cancelled((0,), "no"), "cancelled"),
        (Lost((0,), "no"), "lost"),
    ],
)
def test_a_trial_knows_when_it_was_asked_for_began_and_ended(event, status):
    history = begun()
    assert times(history) == [1.0, 3.0, None, None]
    assert times(history, 1) == [1.0, None, None, None]
    ended = history.then(event, at(10.5))
    assert ended[0].status == status
    assert times(ended) == [1.0, 3.0, 10.5, 7.5]
    assert times(history) == [1.0, 3.0, None, None]  # an older view says what it said


def test_times_are_replayed_pickled_and_never_compared():
    history = begun().then(Told((0,), (2.0,)), at(5))
    for again in (History(history.events, history.times), pickle.loads(pickle.dumps(history))):
        assert [times(again, i) for i in (0, 1)] == [times(history, i) for i in (0, 1)]
        assert again.times == history.times
    bare = History(history.events)
    assert bare.trials == history.trials  # equal, though it knows no times
    assert times(bare) == [None] * 4
    assert "at=" not in repr(history[0])


def test_a_retry_forgets_the_times_of_what_failed():
    history = begun().then(Failed((0,), "no"), at(5)).then(Retried((0,)), at(6))
    assert times(history) == [1.0, None, None, None]
    again = history.then(Dispatched(0, 2, "b", 5), at(8)).then(Told((0,), (1.0,)), at(9))
    assert times(again) == [1.0, 8.0, 9.0, 1.0]


def test_what_is_added_ends_at_once_and_a_correction_is_no_end():
    history = History().then(Added((Point(x=0.5),), (1.0,)), at(2))
    assert times(history) == [2.0, None, 2.0, None]
    for event in (Amended(0, 3.0, "typo"), Excluded((0,), "wet"), Included((0,), "dry")):
        history = history.then(event, at(50))
        assert times(history) == [2.0, None, 2.0, None]


def test_further_values_by_name_do_not_move_the_end():
    history = begun().then(Told((0,), (Point(a=1.0),), goal=""), at(5))
    history = history.then(Told((0,), (Point(b=1.0),), goal=""), at(90))
    assert times(history) == [1.0, 3.0, 5.0, 2.0]


def test_a_clock_that_was_set_back_gives_no_duration():
    assert times(begun().then(Told((0,), (1.0,)), at(2)))[2:] == [2.0, None]


def test_a_live_study_and_its_journal_say_the_same_times(tmp_path):
    path = tmp_path / "run.jsonl"
    study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), seed=0, journal=path)
    before = datetime.now(UTC)
    batch = study.ask(3)
    study.tell(batch[:2], [1.0, 2.0])
    study.cancel(batch[2], "no time")
    study.add([{"x": 0.5}], [3.0])
    loaded = covey.Study.load(path, read_only=True).history
    assert loaded.times == study.history.times
    for mine, theirs in zip(study.history, loaded, strict=True):
        assert (mine.asked_at, mine.ended_at) == (theirs.asked_at, theirs.ended_at)
        assert abs(mine.asked_at - before) < timedelta(minutes=1)
    assert batch[0].asked_at == study.history[0].asked_at
    assert loaded[2].reason == "no time"


# ---------------------------------------------------------------- reasons


def test_a_trial_says_why_it_is_as_it_is():
    history = History().then(TWO)
    assert history.then(Cancelled((0,), "no vial"))[0].reason == "no vial"
    assert history.then(Cancelled((0,)))[0].reason == ""
    told = history.then(Told((0,), (1.0,)))
    amended = told.then(Amended(0, 2.0, "typing error"))
    assert (amended[0].reason, amended.reason(0)) == ("typing error", "typing error")
    out = amended.then(Excluded((0,), "wrong vial"))
    assert out[0].reason == "wrong vial"
    assert out.then(Amended(0, 3.0, "again"))[0].reason == "wrong vial"  # why it is excluded stays
    assert out.then(Included((0,), "right vial"))[0].reason == ""


def test_a_trial_that_was_stopped_early_says_at_which_step():
    history = begun().then(Reported(0, 1, 9, 0.4))
    stopped = history.then(Told((0,), (0.4,), (), ({"stopped": 9},)))
    assert stopped[0].reason == "stopped early at step 9"
    assert stopped.to_frame()["stopped"].tolist()[0] == 9
    # A result of one's own that happens to be called so is none.
    assert history.then(Told((0,), (0.5,), (), ({"stopped": 9},)))[0].reason == ""
    assert history.then(Told((0,), (0.4,), (), ({"stopped": "no"},)))[0].reason == ""


# ---------------------------------------------------------------- told, and worth nothing


def test_what_was_told_fails_only_if_that_is_said_and_why():
    told = begun().then(Told((0,), (1.0,), (0.1,)), at(5))
    with pytest.raises(HistoryError, match=r"1\.0.*told=True"):
        told.then(Failed((0,), "a crash that comes late"))
    with pytest.raises(HistoryError, match="reason"):
        Failed((0,), " ", told=True)
    failed = told.then(Failed((0, 1), "trained on the test set", told=True), at(9))
    assert [trial.status for trial in failed] == ["failed", "failed"]
    first = failed[0]
    assert (first.value, first.sem, first.values) == (None, None, {})
    assert first.reason == "trained on the test set"
    assert times(failed) == [1.0, 3.0, 5.0, 2.0]  # it ended when it was told
    assert failed.best("max") is None
    with pytest.raises(HistoryError, match="already failed"):
        failed.then(Failed((0,), "again", told=True))
    again = failed.then(Retried((0,))).then(Told((0,), (2.0,)))
    assert (again[0].value, again[0].sem) == (2.0, None)


def test_an_excluded_or_named_result_that_fails_leaves_nothing_behind():
    named = begun().then(Told((0,), (Point({"yield": 2.0, "cost": 3.0}),), goal="yield"))
    failed = named.then(Excluded((0,), "wet")).then(Failed((0,), "worthless", told=True))
    first = failed[0]
    assert (first.status, first.excluded, first.values, first.goal) == (
        "failed",
        False,
        {},
        "value",
    )
    again = failed.then(Told((0,), (Point(cost=1.0),), goal=""))
    assert again[0].values == {"cost": 1.0}


def test_a_study_of_several_goals_forgets_what_failed_afterwards():
    space = covey.Space({"x": covey.Real(0.0, 1.0)})
    study = covey.Study(space, {"a": "max", "b": "max"}, seed=0)
    batch = study.ask(4)
    study.tell(batch, [{"a": 1.0 + i, "b": 2.0 - i} for i in range(4)])
    study.fail(3, "wrong cable", told=True)
    assert 3 not in [trial.id for trial in study.front]
    study.tell(3, {"a": None, "b": 9.0})  # only in part: a is to come
    assert study.history[3].values == {"b": 9.0}
    assert study.history.of_outcome("a")[3].status == "pending"
    assert len(study.ask(2)) == 2
    study.tell(3, {"a": 9.0})
    assert [trial.id for trial in study.front] == [3]


def test_wells_end_a_trial_when_the_last_is_measured_and_say_why_it_is_lost():
    space = covey.Space({"x": covey.Real(0.0, 1.0)})
    study = covey.Study(space, seed=0)
    (plate,) = study.ask_plates(1, covey.Layout(plate=6, replicates=2), strategy="random")
    wells = [well.name for well in plate.used]
    first = study.history.plates.wells_of(0)
    rest = {name: 1.0 for name in wells if name != first[0][1]}
    study.tell_plate(plate, rest, part=True)
    assert study.history[0].ended_at is None
    study.tell_plate(plate, {first[0][1]: 1.0})
    ended = study.history[0]
    assert ended.asked_at <= ended.ended_at == study.history.times[-1]
    assert (ended.reason, ended.seconds) == ("", None)
    with pytest.raises(HistoryError, match=r"measured in wells, .* study\.exclude\(0, reason\)"):
        study.fail(0, "bubble", told=True)
    (other,) = study.ask_plates(1, covey.Layout(plate=6, replicates=2), strategy="random")
    study.tell_plate(other, {}, marks={well.name: "bubble" for well in other.used})
    lost = study.history[-1]
    assert lost.status == "lost"
    assert "2 wells" in lost.reason
    assert study.history.reason(lost) == lost.reason
    frame = study.history.to_frame()
    assert frame["reason"].tolist()[-1] == lost.reason
    assert {"plate", "well"} <= {*frame.columns}
