import sys
from functools import partial

import numpy as np
import pytest

import covey
from covey.baselines import Sobol
from covey.catalog import strategy_of
from covey.errors import ExhaustedError, HistoryError
from covey.gp import GP, Recall
from covey.history import (
    Added,
    Amended,
    Asked,
    Excluded,
    Failed,
    History,
    Included,
    Noted,
    Point,
    Told,
)
from covey.learn import observations, understand
from covey.outcomes import Outcomes
from covey.propose import Recipe, Request, Stopwatch, propose

SPACE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})
RECIPE = Recipe(SPACE, Outcomes.of("max"), GP(), seed=0)


def request(k=3, name="auto", **fixed):
    return Request(k, strategy_of(name)[1], name, fixed)


@pytest.fixture
def told():
    points = tuple(Point(x=x, y=y) for x, y in np.random.default_rng(0).random((6, 2)))
    history = History().then(Asked(points, "random"))
    return history.then(Told(tuple(range(6)), tuple(p["x"] for p in points)))


def test_a_proposal_is_a_function_of_the_log(told):
    assert propose(told, RECIPE, request()).points == propose(told, RECIPE, request()).points
    other = Recipe(SPACE, Outcomes.of("max"), GP(), seed=1)
    assert propose(told, RECIPE, request()).points != propose(told, other, request()).points


def test_with_nothing_told_a_space_gets_the_sobol_design():
    plain = propose(History(), RECIPE, request())
    assert plain.points == propose(History(), RECIPE, Request(3, Sobol(), "sobol")).points
    assert plain.models == ()
    assert plain.diagnostics.information is None


def test_with_nothing_told_a_pool_gets_a_diverse_first_batch():
    rows = np.random.default_rng(0).random((60, 2))
    recipe = Recipe(covey.Pool(rows), Outcomes.of("max"), GP(), seed=0)
    batch = propose(History(), recipe, request(4)).points
    at = np.array([[p["x0"], p["x1"]] for p in batch])
    nearest = min(np.linalg.norm(a - b) for i, a in enumerate(at) for b in at[:i])
    assert nearest > 0.3


def test_a_proposal_records_the_models_and_its_account(told):
    made = propose(told, RECIPE, request())
    assert len(made.models) == 1
    assert set(made.diagnostics.seconds) == {"fit", "candidates", "belief", "choose"}
    assert made.diagnostics.information > 0.0


def test_sampled_hyper_parameters_give_several_models(told):
    recipe = Recipe(SPACE, Outcomes.of("max"), GP(samples=3), seed=0)
    made = propose(told, recipe, request())
    assert len(made.models) == 3
    assert len(made.points) == 3


def test_a_failed_point_is_as_good_as_pending_and_leaves_the_mean_alone(told):
    failed = told.then(Asked((Point(x=0.9, y=0.9),), "random")).then(Failed((6,), "crash"))
    at = SPACE.encode([{"x": 0.9, "y": 0.88}])
    rng = np.random.default_rng(0)
    before = understand(told, RECIPE, rng).belief(at)
    after = understand(failed, RECIPE, rng).belief(at)
    assert after.var[0] < 0.5 * before.var[0]
    assert after.mean[0] == pytest.approx(before.mean[0])
    advice = understand(failed, RECIPE, rng, waiting=False).belief(at)
    assert advice.mean[0] == pytest.approx(before.mean[0])


def test_minimising_turns_the_sign_once(told):
    straight = Recipe(SPACE, Outcomes.of("max"), GP(warp=False), 0)
    assert observations(told, straight).values == pytest.approx(
        -observations(told, Recipe(SPACE, Outcomes.of("min"), GP(warp=False), 0)).values
    )


def test_no_result_no_model(told):
    with pytest.raises(HistoryError, match="nothing has been told yet"):
        observations(History(), RECIPE)
    with pytest.raises(HistoryError, match="no result told so far counts, so there is no model"):
        observations(told.then(Excluded(tuple(range(6)), "all wet")), RECIPE)


def test_an_excluded_result_is_out_of_the_model_and_its_point_is_not_proposed_again(told):
    out = told.then(Excluded((5,), "wet"))
    five = History(
        [Asked(told.events[0].points[:5], "random"), Told(range(5), told.events[1].values[:5])]
    )
    np.testing.assert_array_equal(observations(out, RECIPE).at, observations(five, RECIPE).at)
    assert propose(out, RECIPE, request()).points != propose(told, RECIPE, request()).points
    pool = Recipe(covey.Pool([dict(p) for p in told.events[0].points]), Outcomes.of("max"), GP(), 0)
    with pytest.raises(ExhaustedError):
        propose(out, pool, request(1))


def test_a_result_that_was_excluded_and_included_again_leaves_no_trace_in_the_batch(told):
    back = told.then(Excluded((5,), "wet")).then(Included((5,), "dry")).then(Noted((0,), "so so"))
    assert propose(back, RECIPE, request()).points == propose(told, RECIPE, request()).points


def test_with_all_results_excluded_a_batch_is_the_design(told):
    none = told.then(Excluded(tuple(range(6)), "the reader was off"))
    assert propose(none, RECIPE, request()).models == ()


def test_points_outside_a_pool_only_train_the_model():
    pool = covey.Pool([{"a": i / 9} for i in range(10)])
    history = History().then(Added((Point(a=0.55),), (1.0,)))
    batch = propose(history, Recipe(pool, Outcomes.of("max"), GP(), 0), request(10)).points
    assert sorted(p["a"] for p in batch) == [i / 9 for i in range(10)]


def test_the_stopwatch_adds_up():
    watch = Stopwatch()
    for _ in range(2):
        with watch.timing("stage"):
            pass
    assert list(watch.seconds) == ["stage"]
    assert watch.seconds["stage"] >= 0.0


class TestManyResults:
    """More than 30 are many here."""

    POOL = covey.Pool(np.random.default_rng(0).random((120, 2)))
    RECIPE = Recipe(POOL, Outcomes.of("max"), GP(), seed=0)
    SMALL = staticmethod(partial(Recall, many=30, block=8))

    @pytest.fixture(autouse=True)
    def many_is_little(self, monkeypatch):
        for name in ("covey.learn", "covey.gp.fit"):
            monkeypatch.setattr(sys.modules[name], "MANY", 30)
        monkeypatch.setattr("covey.learn.Recall", self.SMALL)

    def f(self, point):
        return float(np.sin(5.0 * point["x0"]) + point["x1"])

    def started(self, n=40):
        points = tuple(Point(self.POOL.point(i)) for i in range(n))
        return History().then(Added(points, tuple(map(self.f, points))))

    def asked(self, history, k=3, recall=None):
        made = propose(history, self.RECIPE, request(k), recall)
        models = tuple(model.describe() for model in made.models)
        return history.then(Asked(tuple(map(Point, made.points)), "auto", models))

    def told(self, history):
        open_ = history.pending
        values = tuple(self.f(trial.point) for trial in open_)
        return history.then(Told(tuple(trial.id for trial in open_), values))

    def models(self, *sizes, n=40):
        """The models of an ask, and of those that follow batches of these sizes."""
        history = self.asked(self.started(n), sizes[0])
        found = [history.models]
        for size in (*sizes[1:], 1):
            history = self.asked(self.told(history), size)
            found.append(history.models)
        return found

    def test_hyper_parameters_stay_until_a_tenth_more_is_known(self):
        first, *later = self.models(2, 2, 1, 4)
        assert [models == first for models in later] == [True, True, False, False]
        assert later[2] == later[3]  # and then for as long again

    def test_of_few_results_they_never_stay(self):
        first, second = self.models(1, n=20)
        assert first != second

    def test_nor_of_many_looks_at_few_points(self):
        points = tuple(Point(self.POOL.point(i % 20)) for i in range(40))
        values = tuple(self.f(point) + 0.1 * (i % 3) for i, point in enumerate(points))
        history = self.asked(History().then(Added(points, values)), 1)
        assert self.asked(self.told(history), 1).models != history.models

    def test_they_are_fitted_anew_when_the_units_move(self):
        history = self.told(self.asked(self.started()))
        amended = history.then(Amended(7, 50.0, "a slip"))
        assert self.asked(history).models == history.models
        assert self.asked(amended).models != history.models

    def test_an_ask_without_a_model_does_not_end_their_time(self):
        history = self.asked(self.started())
        between = history.then(Asked((Point(self.POOL.point(119)),), "random"))
        assert self.asked(self.told(between), 1).models == history.models

    def test_results_told_while_it_was_thinking_count_as_new(self):
        started = self.started()
        description = propose(started, self.RECIPE, request()).models[0].describe()
        more = tuple(Point(self.POOL.point(i)) for i in range(60, 66))  # more than a tenth of 40
        later = started.then(Added(more, tuple(map(self.f, more))))
        batch = (Point(self.POOL.point(119)),)
        knew_all = later.then(Asked(batch, "auto", (description,)))
        knew_some = later.then(Asked(batch, "auto", (description,), after=1))
        assert self.asked(knew_all).models == (description,)
        assert self.asked(knew_some).models != (description,)

    def test_hyper_parameters_without_results_do_not_stand(self):
        fitted = propose(self.started(), self.RECIPE, request()).models[0].describe()
        description = {**fitted, "variance": 3.0}
        asked = History().then(Asked((Point(self.POOL.point(119)),), "auto", (description,)))
        points = tuple(Point(self.POOL.point(i)) for i in range(40))
        history = asked.then(Added(points, tuple(map(self.f, points))))
        assert self.asked(history).models != history.models

    def test_what_was_remembered_does_not_change_a_batch(self):
        """Through batches told, failed and left open, and a fit in between."""
        recall, history = self.SMALL(), self.started()
        for step in range(5):
            grown = self.asked(history, recall=recall)
            assert grown.events[-1] == self.asked(history).events[-1]
            history = grown if step == 1 else self.told(grown)
            if step == 2:
                history = self.asked(history, 1, recall)
                history = history.then(Failed((len(history) - 1,), "crash"))
        assert len({str(e.models) for e in history.events if isinstance(e, Asked)}) > 1

    def test_sampled_hyper_parameters_stay_together(self):
        recipe = Recipe(self.POOL, Outcomes.of("max"), GP(samples=2), seed=0)
        made = propose(self.started(), recipe, request())
        models = tuple(model.describe() for model in made.models)
        history = self.told(
            self.started().then(Asked(tuple(map(Point, made.points)), "auto", models))
        )
        assert propose(history, recipe, request()).models == made.models


def test_an_ask_makes_three_beliefs_and_encodes_its_results_once(monkeypatch):
    """At the data, about all candidates, and about those that are left with the summits climbed."""
    from covey.gp import Posterior

    space = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})
    study = covey.Study(space, seed=0)
    first = study.ask(20)
    study.tell(first, [t.point["x"] - t.point["y"] ** 2 for t in first])
    beliefs, encoded = [], []
    belief, encode = Posterior.belief, covey.Space.encode

    def counted(self, at, *options):
        beliefs.append(len(at))
        return belief(self, at, *options)

    def encoding(self, points):
        encoded.append(len(points))
        return encode(self, points)

    monkeypatch.setattr(Posterior, "belief", counted)
    monkeypatch.setattr(covey.Space, "encode", encoding)
    study.ask(4)
    assert len(beliefs) == 3
    assert beliefs[0] == 20 < min(beliefs[1:])
    assert encoded.count(20) == 2  # for the fit, and as what is not to be proposed again


@pytest.mark.parametrize("strategy", ["auto", "est-dpp-sample", "est-dpp-max", "b-est"])
def test_of_all_candidates_on_a_device_little_is_fetched_or_worked_out_here(strategy, monkeypatch):
    """A few numbers a candidate come to the host, and no distribution function is taken there."""
    torch = pytest.importorskip("torch", reason="install torch to test tensors")
    import scipy.special

    rows = np.random.default_rng(0).random((3000, 6))
    pool = covey.Pool(rows)
    study = covey.Study(pool, seed=1, strategy=strategy, precision="float32")  # torch's, on a host
    study.add([pool.point(i) for i in range(40)], np.sin(6.0 * rows[:40]).sum(axis=1))
    study.ask(2, strategy="random")  # under way
    left, fetched, here = len(rows) - 42, [], []
    numpy, log_ndtr = torch.Tensor.numpy, scipy.special.log_ndtr
    monkeypatch.setattr(torch.Tensor, "numpy", lambda t: fetched.append(t.numel()) or numpy(t))
    monkeypatch.setattr(scipy.special, "log_ndtr", lambda z: here.append(np.size(z)) or log_ndtr(z))
    study.ask(4)
    assert sum(count for count in fetched if count >= left) <= 8 * left
    assert not [count for count in here if count >= left]
