from __future__ import annotations

import json

import pytest

from covey.errors import HistoryError, JournalError
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
    Included,
    Late,
    Lost,
    Noted,
    Point,
    Reported,
    Retried,
    Told,
    event_from_json,
    event_to_json,
)

A, B = Point(x=1.0), Point(x=2.0)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            Asked((A, B), "auto", ({"noise": 0.1},)),
            {"type": "asked", "ids": [7, 8], "points": [A, B], "strategy": "auto"}
            | {"models": [{"noise": 0.1}]},
        ),
        (
            Asked((A, B, A), "auto", reasons=("first", "drawn", "drawn"), nats=(1.0, 0.8444, 1e-9)),
            {"type": "asked", "ids": [7, 8, 9], "points": [A, B, A], "strategy": "auto"}
            | {"reasons": ["first", "drawn", 1], "nats": [1.0, 0.844, 1e-9]},
        ),
        (
            Asked((A,), "random"),
            {"type": "asked", "ids": [7], "points": [A], "strategy": "random"},
        ),
        (Enqueued((A,)), {"type": "enqueued", "ids": [7], "points": [A]}),
        (
            Added((A, B), (1.0, 2.0), (None, 0.5)),
            {"type": "added", "ids": [7, 8], "points": [A, B], "values": [1.0, 2.0]}
            | {"sems": [None, 0.5]},
        ),
        (Told((3, 1), (1.0, 2.0)), {"type": "told", "ids": [3, 1], "values": [1.0, 2.0]}),
        (
            Told((3, 1), (1.0, 2.0), metrics=(None, {"latency": 3})),
            {
                "type": "told",
                "ids": [3, 1],
                "values": [1.0, 2.0],
                "metrics": [None, {"latency": 3}],
            },
        ),
        (Failed((3,), "out of memory"), {"type": "failed", "ids": [3], "reason": "out of memory"}),
        (Cancelled((3,)), {"type": "cancelled", "ids": [3]}),
        (Amended(3, 1.0, "typo"), {"type": "amended", "id": 3, "value": 1.0, "reason": "typo"}),
        (
            Dispatched(3, 1, "covey-1-3-a1", 9),
            {"type": "dispatched", "id": 3, "attempt": 1, "name": "covey-1-3-a1", "seed": 9},
        ),
        (Lost((3,), "power cut"), {"type": "lost", "ids": [3], "reason": "power cut"}),
        (Late(3, 2, 1.0), {"type": "late", "id": 3, "attempt": 2, "value": 1.0}),
        (Excluded((3,), "wet"), {"type": "excluded", "ids": [3], "reason": "wet"}),
        (Included((3,), "dry"), {"type": "included", "ids": [3], "reason": "dry"}),
        (Retried((3, 1)), {"type": "retried", "ids": [3, 1]}),
        (
            Noted((3,), "cloudy"),
            {"type": "noted", "ignorable": True, "ids": [3], "text": "cloudy"},
        ),
        (
            Reported(3, 1, 20, 0.5),
            {"type": "reported", "ignorable": True, "id": 3, "attempt": 1, "step": 20}
            | {"value": 0.5},
        ),
        (
            Began("0a1b2c3d", 7, "tern", {"total": 9, "slots": None}),
            {"type": "began", "ignorable": True, "run": "0a1b2c3d", "pid": 7, "host": "tern"}
            | {"plan": {"total": 9, "slots": None}},
        ),
        (
            Ended("0a1b2c3d", "Ctrl-C"),
            {"type": "ended", "ignorable": True, "run": "0a1b2c3d", "reason": "Ctrl-C"},
        ),
        (
            Extended({"parameters": []}, "abc", "too narrow"),
            {"type": "extended", "space": {"parameters": []}, "fingerprint": "abc"}
            | {"reason": "too narrow"},
        ),
        (
            Extended({"parameters": []}, "abc", "a pump", before="ab", values=Point(p=1.0)),
            {"type": "extended", "space": {"parameters": []}, "fingerprint": "abc"}
            | {"reason": "a pump", "before": "ab", "values": {"p": 1.0}},
        ),
        (
            Extended({"parameters": []}, "abc", "a pump", "ab", Point(p=1.0), {"p": [2, 5]}),
            {"type": "extended", "space": {"parameters": []}, "fingerprint": "abc"}
            | {"reason": "a pump", "before": "ab", "values": {"p": 1.0}, "having": {"p": [2, 5]}},
        ),
    ],
)
def test_the_shape_of_each_event(event, expected):
    """Written down, since it is what journals on disk hold."""
    written = event_to_json(event, dict, first_id=7)
    assert written == {"v": 1, **expected}
    assert event_from_json(json.loads(json.dumps(written)), Point, first_id=7) == event


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            Told((3,), ({"yield": 61, "impurity": 1.5},), (0.5,), goal="yield"),
            {"type": "told", "ids": [3], "values": [{"yield": 61.0, "impurity": 1.5}]}
            | {"sems": [0.5], "goal": "yield"},
        ),
        (
            Added((A,), ({"yield": 61, "cost": 33},)),
            {"type": "added", "ids": [7], "points": [A], "values": [{"yield": 61.0, "cost": 33.0}]},
        ),
        (
            Amended(3, {"cost": 3}, "typo"),
            {"type": "amended", "id": 3, "value": {"cost": 3.0}, "reason": "typo"},
        ),
    ],
)
def test_values_by_name_are_of_a_version_that_older_readers_refuse(event, expected):
    written = event_to_json(event, dict, first_id=7)
    assert written == {"v": 2, **expected}
    assert event_from_json(json.loads(json.dumps(written)), Point, first_id=7) == event


def test_points_pass_through_the_space():
    written = event_to_json(Enqueued((A,)), lambda point: [point["x"]], 0)
    assert written["points"] == [[1.0]]
    assert event_from_json(written, lambda row: {"x": row[0]}) == Enqueued((A,))


def test_unknown_fields_are_passed_over():
    written = event_to_json(Told((3,), (1.0,)), dict, 0) | {"seq": 4, "at": "now", "mood": "good"}
    assert event_from_json(written, Point) == Told((3,), (1.0,))


@pytest.mark.parametrize(
    "strange",
    [
        {"type": "starred", "v": 1, "ids": [0]},
        {"type": "told", "v": 3, "ids": [0], "values": [1.0]},
        {"type": "failed", "v": 2, "ids": [0]},
        {"type": ["told"], "v": 1},
        {"v": 1},
        {"type": "told", "ids": [0], "values": [1.0]},
    ],
)
def test_what_a_newer_covey_wrote_is_refused_unless_it_may_be_ignored(strange):
    with pytest.raises(JournalError, match=r"unknown event: type .* A newer covey may have writ"):
        event_from_json(strange, Point)
    with pytest.raises(JournalError):
        event_from_json(strange | {"ignorable": "yes"}, Point)
    assert event_from_json(strange | {"ignorable": True}, Point) is None


@pytest.mark.parametrize(
    "malformed",
    [
        {"type": "told", "v": 1, "ids": [0]},
        {"type": "told", "v": 1, "ids": 0, "values": [1.0]},
        {"type": "asked", "v": 1, "points": 3, "strategy": "auto"},
        {"type": "asked", "v": 1, "points": [["x"]], "strategy": "auto"},
        {"type": "enqueued", "v": 1},
        {"type": "told", "v": 2, "ids": [0], "values": [1.0]},
        {"type": "told", "v": 1, "ids": [0], "values": [{"yield": 1.0}]},
    ],
)
def test_a_malformed_event_is_refused_by_our_own_error(malformed):
    with pytest.raises(JournalError, match="a malformed event of type"):
        event_from_json(malformed, Point)


def test_what_the_event_itself_refuses_keeps_its_words():
    with pytest.raises(HistoryError, match="1 trial but 2 values"):
        event_from_json({"type": "told", "v": 1, "ids": [0], "values": [1.0, 2.0]}, Point)


def test_ids_written_down_are_compared():
    written = event_to_json(Enqueued((A, B)), dict, first_id=4)
    with pytest.raises(JournalError, match=r"\[4, 5\]"):
        event_from_json(written, Point, first_id=3)
    assert event_from_json(written, Point) == Enqueued((A, B))


@pytest.mark.parametrize("odd", [[0], ["first", 1], ["first", True], ["first", None], 3, [{}]])
def test_a_reason_is_a_text_or_the_place_of_one(odd):
    line = {"type": "asked", "v": 1, "points": [A, B], "strategy": "auto", "reasons": odd}
    with pytest.raises(JournalError, match=r"reason|iterable"):
        event_from_json(line, dict)
