import pytest

import covey
from covey.report.slices import edges

SPACE = covey.Space(
    {
        "lr": covey.Real(1e-5, 1e-1, log=True),
        "layers": covey.Integer(1, 8),
        "flag": covey.Integer(0, 1),
        "opt": covey.Choice(["adam", "sgd"]),
    }
)
INSIDE = {"lr": 1e-3, "layers": 4, "flag": 0, "opt": "adam"}


def test_a_point_inside_touches_nothing():
    assert edges(SPACE, INSIDE, [INSIDE]) == ()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"lr": 1e-5}, "lr sits at its lower bound 1e-05: widen it?"),
        ({"lr": 1.05e-5}, "lr is next to its lower bound 1e-05: widen it?"),
        ({"lr": 1e-1}, "lr sits at its upper bound 0.1: widen it?"),
        ({"layers": 8}, "layers sits at its upper bound 8: widen it?"),
        ({"layers": 1}, "layers sits at its lower bound 1: widen it?"),
    ],
)
def test_an_end_is_named(changed, words):
    (found,) = edges(SPACE, INSIDE | changed, [INSIDE, INSIDE | changed])
    assert found.words == words
    assert (found.others, found.of) == (1, 2)


def test_near_is_one_in_a_hundred_as_the_model_sees_it():
    assert edges(SPACE, INSIDE | {"lr": 1.2e-5}, []) == ()


def test_a_pool_asks_for_candidates():
    pool = covey.Pool([{"t": t, "name": str(t)} for t in range(5)], labels=["name"])
    (found,) = edges(pool, {"t": 4, "name": "4"}, [])
    assert found.words == "t sits at the largest in the pool 4: add candidates beyond it?"
    (found,) = edges(pool, {"t": -2}, [])
    assert found.words == "t lies beyond the smallest in the pool 0: add candidates beyond it?"
