import numpy as np
import pytest

import covey
from covey.baselines import Sobol
from covey.catalog import strategy_of
from covey.errors import HistoryError
from covey.gp import GP
from covey.history import Added, Asked, Failed, History, Point, Told
from covey.propose import (
    Recipe,
    Request,
    Stopwatch,
    observations,
    prior_belief,
    propose,
    understand,
)

SPACE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})
RECIPE = Recipe(SPACE, "max", GP(), seed=0)


def request(k=3, name="auto", **fixed):
    return Request(k, strategy_of(name)[1], name, fixed)


@pytest.fixture
def told():
    points = tuple(Point(x=x, y=y) for x, y in np.random.default_rng(0).random((6, 2)))
    history = History().then(Asked(points, "random"))
    return history.then(Told(tuple(range(6)), tuple(p["x"] for p in points)))


def test_a_proposal_is_a_function_of_the_log(told):
    assert propose(told, RECIPE, request()).points == propose(told, RECIPE, request()).points
    other = Recipe(SPACE, "max", GP(), seed=1)
    assert propose(told, RECIPE, request()).points != propose(told, other, request()).points


def test_with_nothing_told_a_space_gets_the_sobol_design():
    plain = propose(History(), RECIPE, request())
    assert plain.points == propose(History(), RECIPE, Request(3, Sobol(), "sobol")).points
    assert plain.models == ()
    assert plain.diagnostics.information is None


def test_with_nothing_told_a_pool_gets_a_diverse_first_batch():
    rows = np.random.default_rng(0).random((60, 2))
    recipe = Recipe(covey.Pool(rows), "max", GP(), seed=0)
    batch = propose(History(), recipe, request(4)).points
    at = np.array([[p["x0"], p["x1"]] for p in batch])
    nearest = min(np.linalg.norm(a - b) for i, a in enumerate(at) for b in at[:i])
    assert nearest > 0.4


def test_a_proposal_records_the_models_and_its_account(told):
    made = propose(told, RECIPE, request())
    assert len(made.models) == 1
    assert set(made.diagnostics.seconds) == {"fit", "candidates", "belief", "choose"}
    assert made.diagnostics.information > 0.0


def test_sampled_hyper_parameters_give_several_models(told):
    recipe = Recipe(SPACE, "max", GP(samples=3), seed=0)
    made = propose(told, recipe, request())
    assert len(made.models) == 3
    assert len(made.points) == 3


def test_a_failed_point_is_as_good_as_pending_to_the_covariance(told):
    failed = told.then(Asked((Point(x=0.9, y=0.9),), "random")).then(Failed((6,), "crash"))
    at = SPACE.encode([{"x": 0.9, "y": 0.88}])
    rng = np.random.default_rng(0)
    before = understand(told, RECIPE, rng).belief(at)
    after = understand(failed, RECIPE, rng).belief(at)
    assert after.var[0] < 0.5 * before.var[0]
    assert after.mean[0] == pytest.approx(before.mean[0])


def test_minimising_turns_the_sign_once(told):
    straight = Recipe(SPACE, "max", GP(warp=False), 0)
    assert observations(told, straight).values == pytest.approx(
        -observations(told, Recipe(SPACE, "min", GP(warp=False), 0)).values
    )


def test_no_result_no_model():
    with pytest.raises(HistoryError, match="nothing has been told yet"):
        observations(History(), RECIPE)


def test_points_outside_a_pool_only_train_the_model():
    pool = covey.Pool([{"a": i / 9} for i in range(10)])
    history = History().then(Added((Point(a=0.55),), (1.0,)))
    batch = propose(history, Recipe(pool, "max", GP(), 0), request(10)).points
    assert sorted(p["a"] for p in batch) == [i / 9 for i in range(10)]


def test_the_prior_belief_knows_nothing():
    belief = prior_belief(np.random.default_rng(0).random((5, 2)), GP())
    assert np.all(belief.mean == 0.0)
    assert np.all(belief.var == 1.0)


def test_the_stopwatch_adds_up():
    watch = Stopwatch()
    for _ in range(2):
        with watch.timing("stage"):
            pass
    assert list(watch.seconds) == ["stage"]
    assert watch.seconds["stage"] >= 0.0
