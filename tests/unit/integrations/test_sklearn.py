from __future__ import annotations

import logging
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import loguniform, randint, uniform

from covey import Integer, Pool, Real, Space
from covey.catalog import strategy_of
from covey.errors import ExhaustedError, SpaceError, StrategyError
from covey.space import Choice

sklearn = pytest.importorskip("sklearn", reason="pip install 'covey[sklearn]'")
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer, r2_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RandomizedSearchCV,
    ShuffleSplit,
    cross_val_score,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from covey.integrations.sklearn import CoveySearchCV

ROOT = Path(__file__).parents[3]
IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
SPACE = Space({"C": Real(1e-2, 1e2, log=True), "gamma": Real(1e-4, 1e1, log=True)})


def search(estimator=None, space=SPACE, **options):
    options = {"n_batches": 2, "batch_size": 3, "cv": 3, "random_state": 0, **options}
    return CoveySearchCV(SVC() if estimator is None else estimator, space, **options)


class Probe(RegressorMixin, BaseEstimator):
    """Scores as a known function of its parameter; no data needed."""

    def __init__(self, x=0.0, at=0.3, broken=None):
        self.x = x
        self.at = at
        self.broken = broken

    def fit(self, X, y=None, sample_weight=None):
        if self.broken is not None and self.broken(self.x):
            raise ValueError("broken here")
        self.weight_ = None if sample_weight is None else float(np.sum(sample_weight))
        return self

    def predict(self, X):
        return np.full(len(X), self.x)

    def score(self, X, y=None, sample_weight=None):
        return -((self.x - self.at) ** 2)


LINE = Space({"x": Real(0, 1)})
NOTHING = np.zeros((12, 1)), np.zeros(12)


# --- what a search is


def test_the_results_have_the_usual_columns_and_the_batch():
    ours = search(return_train_score=True).fit(*IRIS)
    theirs = RandomizedSearchCV(
        SVC(),
        {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-4, 1e1)},
        n_iter=6,
        cv=3,
        return_train_score=True,
    ).fit(*IRIS)
    assert set(ours.cv_results_) == set(theirs.cv_results_) | {"batch"}
    assert ours.cv_results_["batch"].tolist() == [0, 0, 0, 1, 1, 1]
    assert len(ours.cv_results_["params"]) == 6
    assert all(SPACE.check(point) == point for point in ours.cv_results_["params"])
    assert ours.n_batches_ == 2
    best = ours.cv_results_["mean_test_score"].max()
    assert ours.best_score_ == best
    assert ours.cv_results_["params"][ours.best_index_] == ours.best_params_
    assert ours.best_params_["C"] == ours.best_estimator_.C
    assert ours.score(*IRIS) == ours.best_estimator_.score(*IRIS)
    assert cross_val_score(SVC(**ours.best_params_), *IRIS, cv=3).mean() == pytest.approx(best)


def test_it_learns_from_the_batches_before():
    """A point of its last batch is at the optimum, and none of a random search's is."""

    def distances(strategy):
        found = search(Probe(), LINE, n_batches=4, batch_size=4, strategy=strategy, cv=2)
        results = found.fit(*NOTHING).cv_results_
        away = np.abs(np.array([p["x"] for p in results["params"]]) - 0.3)
        return [away[results["batch"] == b].min() for b in (0, 3)]

    first, last = distances("auto")
    assert last < first / 5
    first, last = distances("random")
    assert not last < first / 5


@pytest.mark.parametrize(
    "space",
    [
        {"C": loguniform(1e-2, 1e2), "degree": randint(1, 4), "kernel": ["rbf", "poly"]},
        {"C": Real(1e-2, 1e2, log=True), "tol": uniform(1e-4, 1e-2), "degree": Integer(1, 3)},
        Space({"C": Real(1e-2, 1e2, log=True), "kernel": Choice(["rbf", "linear"])}),
        Pool([{"C": 10.0**i, "name": f"run {i}"} for i in range(-2, 3)], labels=["name"]),
    ],
    ids=["scipy", "mixed", "Space", "Pool"],
)
def test_spaces_of_every_kind(space):
    found = search(space=space).fit(*IRIS)
    names = space if isinstance(space, dict) else getattr(space, "inputs", space.names)
    assert set(found.best_params_) == set(names)
    assert found.best_score_ > 0.9


def test_a_pipeline_and_estimators_as_options():
    pipe = Pipeline([("scale", StandardScaler()), ("model", SVC())])
    svc, logistic = SVC(), LogisticRegression(max_iter=10_000)
    space = {"model": [svc, logistic], "model__C": loguniform(1e-2, 1e2), "scale": ["passthrough"]}
    found = search(pipe, space).fit(*IRIS)
    assert found.best_params_["model"] in (svc, logistic)
    assert found.best_estimator_["scale"] == "passthrough"
    assert found.best_estimator_["model"] is not found.best_params_["model"]
    assert "n_features_in_" not in vars(svc)  # what was given stays unfitted


def test_without_y_and_with_a_transformer():
    found = search(KMeans(n_init=1, random_state=0), {"n_clusters": randint(2, 6)})
    assert found.fit(IRIS[0]).transform(IRIS[0]).shape == (150, found.best_params_["n_clusters"])


# --- settings and state


def test_the_seed_decides():
    points = [
        search(random_state=state).fit(*IRIS).cv_results_["params"]
        for state in (0, 0, np.random.RandomState(0), 1)
    ]
    assert points[0] == points[1]
    assert points[0] == points[2]
    assert points[0] != points[3]


def test_a_random_state_moves_on_and_none_follows_numpy():
    moving = search(random_state=np.random.RandomState(3))
    assert moving.fit(*IRIS).best_params_ != moving.fit(*IRIS).best_params_
    state = np.random.get_state()  # noqa: NPY002 - the generator scikit-learn uses
    try:
        drawn = []
        for _ in range(2):
            np.random.seed(7)  # noqa: NPY002
            drawn.append(search(random_state=None).fit(*IRIS).cv_results_["params"])
    finally:
        np.random.set_state(state)  # noqa: NPY002
    assert drawn[0] == drawn[1]


def test_jobs_change_nothing():
    alone = search().fit(*IRIS)
    together = search(n_jobs=2, pre_dispatch="all").fit(*IRIS)
    assert alone.cv_results_["params"] == together.cv_results_["params"]
    np.testing.assert_array_equal(
        alone.cv_results_["mean_test_score"], together.cv_results_["mean_test_score"]
    )


def test_clone_and_parameters():
    strategy = strategy_of("est-dpp-max")[1]
    given = search(strategy=strategy, refit=False, n_batches=7)
    copy = clone(given)
    assert copy is not given
    assert copy.space == given.space
    assert copy.get_params()["n_batches"] == 7
    assert copy.get_params()["estimator__C"] == 1.0
    copy.set_params(batch_size=2, n_batches=1, estimator__kernel="linear", space=LINE)
    assert (copy.batch_size, copy.estimator.kernel, copy.space) == (2, "linear", LINE)
    assert given.batch_size == 3
    with pytest.raises(ValueError, match="Invalid parameter 'n_iter'"):
        copy.set_params(n_iter=3)


@pytest.mark.parametrize("space", [SPACE, {"C": loguniform(1e-2, 1e2)}], ids=["Space", "dict"])
def test_pickling_before_and_after(space):
    before = pickle.loads(pickle.dumps(search(space=space)))
    fitted = before.fit(*IRIS)
    after = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(after.predict(IRIS[0]), fitted.predict(IRIS[0]))
    assert after.best_params_ == fitted.best_params_
    assert after.fit(*IRIS).best_params_ == fitted.best_params_


def test_fit_leaves_the_space_as_it_was():
    before = pickle.dumps(SPACE)
    search().fit(*IRIS)
    assert pickle.dumps(SPACE) == before


def test_the_html_shows_the_estimator():
    found = search(make_pipeline(StandardScaler(), SVC()), {"svc__C": loguniform(0.1, 10)})
    assert "estimator: Pipeline" in found._repr_html_()
    assert "best_estimator_: Pipeline" in found.fit(*IRIS)._repr_html_()


def test_without_refit_there_is_no_estimator():
    found = search(refit=False).fit(*IRIS)
    assert found.best_params_ == found.cv_results_["params"][found.best_index_]
    with pytest.raises(AttributeError, match="has no attribute 'predict'"):
        found.predict(IRIS[0])


# --- scores


def test_every_batch_is_scored_on_the_same_folds():
    """A shuffling splitter is asked once, as in a random search."""

    class Counting(ShuffleSplit):
        asked = 0

        def split(self, X, y=None, groups=None):
            Counting.asked += 1
            return super().split(X, y, groups)

    found = search(n_batches=4, cv=Counting(3, test_size=0.5)).fit(*IRIS)
    assert Counting.asked == 1
    assert (found.n_batches_, found.n_splits_) == (4, 3)


@pytest.mark.parametrize("splits", [list, iter], ids=["list", "iterator"])
def test_folds_may_be_listed(splits):
    ours = search(cv=splits(list(KFold(3).split(*IRIS)))).fit(*IRIS)
    theirs = cross_val_score(SVC(**ours.best_params_), *IRIS, cv=KFold(3))
    assert ours.best_score_ == pytest.approx(theirs.mean())


def test_failed_fits_are_failed_trials_and_nan_in_the_results(monkeypatch):
    studies = watched(monkeypatch)
    found = search(Probe(broken=lambda x: x > 0.6), LINE, n_batches=3, batch_size=4)
    with pytest.warns(FitFailedWarning), pytest.warns(UserWarning, match="non-finite"):
        found.fit(*NOTHING)
    tried = np.array([point["x"] for point in found.cv_results_["params"]])
    assert 0 < (tried > 0.6).sum() < len(tried)
    np.testing.assert_array_equal(np.isnan(found.cv_results_["mean_test_score"]), tried > 0.6)
    assert found.best_params_["x"] <= 0.6
    assert [t.point["x"] for t in studies[0].history.failed] == list(tried[tried > 0.6])
    assert len(studies[0].history.told) == (tried <= 0.6).sum()


def watched(monkeypatch):
    """The studies that searches make from now on."""
    studies, make = [], CoveySearchCV._study

    def remember(self):
        studies.append(make(self))
        return studies[-1]

    monkeypatch.setattr(CoveySearchCV, "_study", remember)
    return studies


@pytest.mark.parametrize("score", [np.nan, np.inf, -np.inf])
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_score_that_is_not_finite_fails_the_candidate(monkeypatch, score):
    studies = watched(monkeypatch)
    found = search(scoring=lambda model, X, y: score if model.C > 1 else model.score(X, y))
    found.fit(*IRIS)
    assert {t.point["C"] > 1 for t in studies[0].history.failed} == {True}
    assert {t.point["C"] > 1 for t in studies[0].history.told} == {False}


def test_a_disaster_does_not_blind_the_search():
    """One score of -1e9 where x > 0.9; the rest is found as if it were not there."""

    def score(model, X, y):
        return -1e9 if model.x > 0.9 else -((model.x - 0.3) ** 2)

    found = search(Probe(), LINE, scoring=score, n_batches=4, batch_size=4, cv=2).fit(*NOTHING)
    assert found.cv_results_["mean_test_score"].min() == -1e9  # the results keep it
    assert abs(found.best_params_["x"] - 0.3) < 0.02
    last = [p["x"] for p in found.cv_results_["params"]][-4:]
    assert np.min(np.abs(np.array(last) - 0.3)) < 0.01


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_a_later_batch_that_fails_as_a_whole_does_not_end_the_search():
    seen = []

    def broken(x):
        if x not in seen:
            seen.append(x)
        return seen.index(x) in (1, 2)

    found = search(Probe(broken=broken), LINE, n_batches=5, batch_size=1, cv=2)
    with pytest.warns(FitFailedWarning, match="batch 1 is missing from cv_results_"):
        found.fit(*NOTHING)
    assert found.cv_results_["batch"].tolist() == [0, 3, 4]
    assert found.n_batches_ == 5


def test_a_first_batch_that_fails_as_a_whole_is_an_error():
    with pytest.raises(ValueError, match="All the 9 fits failed"):
        search(Probe(broken=lambda x: True), LINE).fit(*NOTHING)
    with pytest.raises(ValueError, match=r"^broken here"):
        search(Probe(broken=lambda x: True), LINE, error_score="raise").fit(*NOTHING)


def test_a_mistyped_parameter_is_an_error_in_any_batch():
    with pytest.raises(ValueError, match="Invalid parameter 'c'"):
        search(space={"c": [1, 2]}).fit(*IRIS)


@pytest.mark.parametrize(
    "scoring",
    [
        {"near": lambda m, X, y: -abs(m.x - 0.2), "far": lambda m, X, y: -abs(m.x - 0.9)},
        lambda m, X, y: {"near": -abs(m.x - 0.2), "far": -abs(m.x - 0.9)},
    ],
    ids=["dict", "callable"],
)
@pytest.mark.parametrize(("refit", "optimum"), [("near", 0.2), ("far", 0.9)])
def test_with_several_metrics_refit_names_the_one_to_search_by(scoring, refit, optimum):
    found = search(Probe(), LINE, scoring=scoring, refit=refit, n_batches=4, cv=2).fit(*NOTHING)
    assert found.best_params_["x"] == pytest.approx(optimum, abs=0.05)
    late = np.array([point["x"] for point in found.cv_results_["params"]])[-3:]
    assert np.median(np.abs(late - optimum)) < 0.2


@pytest.mark.parametrize("refit", [False, lambda results: 0], ids=["False", "callable"])
@pytest.mark.parametrize(
    "scoring",
    [["accuracy", "f1_macro"], lambda m, X, y: {"accuracy": 1.0, "f1_macro": 1.0}],
    ids=["list", "callable"],
)
def test_several_metrics_without_a_name_are_refused(scoring, refit):
    with pytest.raises(StrategyError, match="several metrics, accuracy, f1_macro"):
        search(scoring=scoring, refit=refit).fit(*IRIS)


def test_one_metric_may_come_in_a_list_or_be_named_score():
    assert "mean_test_accuracy" in search(scoring=["accuracy"], refit=False).fit(*IRIS).cv_results_
    scoring = {"score": make_scorer(r2_score), "other": make_scorer(r2_score)}
    found = search(Ridge(), {"alpha": loguniform(0.1, 10)}, scoring=scoring, refit="other")
    assert found.fit(*DIABETES).best_score_ == found.cv_results_["mean_test_other"].max()


def test_refit_may_be_a_function_of_the_results():
    found = search(refit=lambda results: int(np.argmin(results["param_C"]))).fit(*IRIS)
    assert found.best_params_["C"] == min(p["C"] for p in found.cv_results_["params"])
    assert found.best_params_["C"] == found.best_estimator_.C


# --- the ends of a search


@pytest.mark.parametrize(("size", "batches"), [(6, 2), (7, 3)])
def test_an_exhausted_space_ends_the_search_with_a_note(caplog, size, batches):
    caplog.set_level(logging.INFO, logger="covey")
    found = search(Ridge(), {"alpha": list(range(1, size + 1))}, n_batches=9).fit(*DIABETES)
    assert sorted(p["alpha"] for p in found.cv_results_["params"]) == list(range(1, size + 1))
    assert found.n_batches_ == batches
    assert "the space is exhausted; the search ends in batch 3 of 9" in caplog.text


def test_a_continuous_space_without_points_is_an_error():
    empty = Space({"x": Real(0, 1)}, where=[lambda point: False])
    with pytest.raises(ExhaustedError):
        search(Probe(), empty).fit(*NOTHING)


@pytest.mark.parametrize(
    ("wrong", "error", "reason"),
    [
        ({"n_batches": 0}, StrategyError, "n_batches must be a whole number >= 1; got 0"),
        ({"n_batches": True}, StrategyError, "got True"),
        ({"batch_size": 2.5}, StrategyError, "batch_size must be a whole number"),
        ({"strategy": "rndom"}, StrategyError, "Did you mean 'random'"),
        ({"space": {"C": [1.0, 1.0]}}, SpaceError, "parameter 'C'"),
        ({"space": {}}, SpaceError, "at least one parameter"),
        ({"space": [{"C": [1]}, {"gamma": [1]}]}, SpaceError, "a name in all of them"),
        ({"random_state": "x"}, ValueError, "cannot be used to seed"),
        ({"scoring": ["accuracy", "f1_macro"]}, ValueError, "refit must be set to a scorer key"),
    ],
)
def test_mistakes_are_found_before_the_first_fit(wrong, error, reason):
    class Unfit(SVC):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("it was fitted")

    with pytest.raises(error, match=reason):
        search(Unfit(), error_score="raise", **wrong).fit(*IRIS)


# --- metadata


def test_groups_and_fit_parameters_pass():
    groups = np.repeat(np.arange(4), 3)
    found = search(Probe(), LINE, cv=GroupKFold(4))
    found.fit(*NOTHING, groups=groups, sample_weight=np.ones(12))
    assert found.n_splits_ == 4
    assert found.best_estimator_.weight_ == 12.0
    with pytest.raises(ValueError, match="groups"):
        search(Probe(), LINE, cv=GroupKFold(4)).fit(*NOTHING)


def test_metadata_is_routed():
    groups = np.repeat(np.arange(4), 3)
    with sklearn.config_context(enable_metadata_routing=True):
        probe = Probe().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        found = search(probe, LINE, cv=GroupKFold(4))
        found.fit(*NOTHING, groups=groups, sample_weight=np.full(12, 2.0))
    assert found.best_estimator_.weight_ == 24.0


# --- the host's own checks

# Each with its reason; scikit-learn's own searches fail the same one.
EXPECTED = {
    "check_supervised_y_2d": "Ridge takes a column for several outputs, so that nothing warns",
}


@pytest.mark.parametrize(
    ("estimator", "space", "expected"),
    [
        (Ridge(), {"alpha": [0.1, 1.0]}, EXPECTED),
        (LogisticRegression(), Space({"C": Real(0.1, 1.0, log=True)}), {}),
        (make_pipeline(PCA(), Ridge()), {"ridge__alpha": [0.1, 1.0]}, EXPECTED),
        (make_pipeline(PCA(), LogisticRegression()), {"logisticregression__C": [0.1, 1.0]}, {}),
    ],
    ids=["Ridge", "LogisticRegression", "PCA-Ridge", "PCA-LogisticRegression"],
)
@pytest.mark.filterwarnings("ignore")  # the checks provoke scikit-learn's own
def test_the_estimator_checks_pass_but_for_a_list_that_is_exact(estimator, space, expected):
    small = search(estimator, space, batch_size=2, cv=2, error_score="raise")
    report = check_estimator(small, on_fail=None, on_skip=None)
    assert len([check for check in report if check["status"] == "passed"]) > 40
    assert {c["check_name"] for c in report if c["status"] == "failed"} == set(expected)


# --- installing, and the example


def test_without_scikit_learn_the_import_says_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None; import covey.integrations.sklearn"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "this needs scikit-learn: pip install 'covey[sklearn]'" in done.stderr
    assert "MissingExtraError" in done.stderr


def test_the_example_runs():
    script = ROOT / "examples" / "with_sklearn.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert "best of batch 4" in done.stdout
    assert float(done.stdout.rsplit(" ", 1)[1]) > 0.45


def test_a_list_of_dicts_is_searched_branch_by_branch():
    rate = loguniform(1e-2, 1e2)
    branches = [{"kernel": ["linear"], "C": rate}, {"kernel": ["rbf"], "C": rate, "gamma": rate}]
    found = search(space=branches).fit(*IRIS)
    for params in found.cv_results_["params"]:
        assert ("gamma" in params) == (params["kernel"] == "rbf")
    assert {params["kernel"] for params in found.cv_results_["params"]} == {"linear", "rbf"}
