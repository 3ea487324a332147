from __future__ import annotations

import copy
import json
import pickle
from dataclasses import FrozenInstanceError

import pytest

from covey.history import Point, Trial

POINT = Point(lr=0.1, opt="adam")


@pytest.mark.parametrize(
    "change",
    [
        lambda point: point.__setitem__("lr", 1.0),
        lambda point: point.__delitem__("lr"),
        lambda point: point.__ior__({"lr": 1.0}),
        lambda point: point.clear(),
        lambda point: point.pop("lr"),
        lambda point: point.popitem(),
        lambda point: point.setdefault("new", 1),
        lambda point: point.update(lr=1.0),
    ],
)
def test_a_point_cannot_be_changed(change):
    point = Point(lr=0.1, opt="adam")
    with pytest.raises(TypeError, match=r"read-only; change a copy instead: dict\(point\)"):
        change(point)
    assert point == {"lr": 0.1, "opt": "adam"}


def test_every_mutator_of_dict_is_refused():
    """Whatever dict offers and Point leaves alone must leave the point as it is."""
    left = {name for name in dir(dict) if getattr(dict, name) is getattr(Point, name)}
    reading = {"get", "items", "keys", "values", "copy"}
    assert {name for name in left if not name.startswith("_")} == reading
    assert not {"__setitem__", "__delitem__", "__ior__"} & left


def test_a_copy_of_a_point_is_a_plain_dict_that_can_be_changed():
    for plain in (POINT.copy(), dict(POINT), POINT | {}):
        assert type(plain) is dict
        plain["lr"] = 1.0
    assert POINT["lr"] == 0.1


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_points_and_trials_survive_pickling(protocol):
    trial = Trial(3, POINT, Point(value=1.5), "told", 0.1, "enqueued")
    for value in (POINT, trial):
        again = pickle.loads(pickle.dumps(value, protocol))
        assert again == value
        assert type(again) is type(value)
    assert type(copy.deepcopy(trial).point) is Point
    assert type(copy.copy(POINT)) is Point


def test_a_point_is_json():
    assert json.loads(json.dumps(POINT)) == POINT


def test_a_trial_is_frozen_and_pending_at_first():
    trial = Trial(0, POINT)
    assert (trial.value, trial.status, trial.sem, trial.origin) == (None, "pending", None, "asked")
    with pytest.raises(FrozenInstanceError):
        trial.status = "told"


def test_trials_can_be_keys_and_differ_by_what_became_of_them():
    pending, told = Trial(0, POINT), Trial(0, POINT, Point(value=1.0), "told")
    assert {pending: "job"}[Trial(0, Point(POINT))] == "job"
    assert pending != told
    assert len({pending, told, Trial(1, POINT)}) == 3


def test_a_trial_as_json_is_what_the_command_line_prints():
    trial = Trial(3, POINT, Point(value=1.5), "told", 0.1, "enqueued")
    written = '{"id": 3, "status": "told", "value": 1.5, "sem": 0.1, "origin": "enqueued", '
    assert json.dumps(trial.to_json()) == written + '"point": {"lr": 0.1, "opt": "adam"}}'
    assert trial.to_json(lambda point: [*point.values()])["point"] == [0.1, "adam"]
