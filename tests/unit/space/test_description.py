from __future__ import annotations

import json

import pytest

from covey.errors import SpaceError
from covey.space import Choice, Integer, Linear, Pool, Real, Space, space_from_description

SPACE = Space(
    {
        "lr": Real(1e-5, 1e-1, log=True),
        "k": Integer(0, 8, step=2),
        "opt": Choice(["adam", None, True, 1, 1.0]),
        "w": Choice([16, 32], ordered=True),
    },
    where=[Linear({"k": 1, "w": 0.1}, lower=1), Linear({"lr": 1}, upper=0.05)],
)


def through_json(space):
    return json.loads(json.dumps(space.describe(), allow_nan=False))


def test_a_space_is_rebuilt():
    again = space_from_description(through_json(SPACE))
    assert again == SPACE
    assert again.fingerprint == SPACE.fingerprint


@pytest.mark.parametrize(
    "opaque",
    [
        Space({"x": Real(0, 1)}, where=[lambda point: True]),
        Space({"c": Choice([[1], [2]])}),
        Pool([{"x": 1}, {"x": 2}]),
    ],
    ids=["predicate", "options", "rows"],
)
def test_what_a_log_cannot_hold_is_asked_for_again(opaque):
    with pytest.raises(SpaceError, match="`space=`"):
        space_from_description(through_json(opaque))


def test_a_pool_is_read_again_from_its_file(tmp_path):
    path = tmp_path / "pool.csv"
    path.write_text("id,t,s\na,1,u\nb,2,v\n")
    pool = Pool(path, inputs=["s", "t"])
    again = space_from_description(through_json(pool))
    assert again == pool
    assert again.inputs == ("s", "t")

    path.write_text("id,t,s\na,1,u\nb,3,v\n")
    with pytest.raises(SpaceError, match=r"pool\.csv.*covey\.Pool"):
        space_from_description(through_json(pool))
    path.write_text("id,t,s\na,1,u\n")
    with pytest.raises(SpaceError, match=r"pool\.csv.* 1 .* 2\)"):
        space_from_description(through_json(pool))
    path.write_text("id,t,s,z\na,1,u,1\nb,2,v,1\n")
    with pytest.raises(SpaceError, match=r"\['id', 't', 's', 'z'\]"):
        space_from_description(through_json(pool))
    path.unlink()
    with pytest.raises(SpaceError, match=r"pool\.csv"):
        space_from_description(through_json(pool))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "grid"}, r"'space'.*'pool'.*'grid'"),
        ({"parameters": [{"name": "x", "kind": "complex"}]}, "'complex'"),
        ({"parameters": [{"name": "x", "kind": "real", "lo": 1}]}, r"TypeError.*'lo'"),
        ({"parameters": None}, "is damaged"),
        ({"parameters": []}, "at least one parameter"),
    ],
)
def test_a_damaged_description_is_refused(change, message):
    with pytest.raises(SpaceError, match=message):
        space_from_description({**through_json(SPACE), **change})
