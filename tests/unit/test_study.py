import logging
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from tests.play import SPACE, f, play, points_of

import covey
from covey.errors import (
    CoveyError,
    ExhaustedError,
    HistoryError,
    SpaceError,
    StrategyError,
)
from covey.history import Excluded
from covey.policies import UCB
from covey.strategies import DPP


@pytest.fixture
def study():
    return covey.Study(SPACE, seed=0)


class TestAsking:
    def test_trials_are_pending_and_numbered(self, study):
        batch = study.ask(3)
        assert [t.id for t in batch] == [0, 1, 2]
        assert {t.status for t in batch} == {"pending"}
        assert {t.value for t in batch} == {None}

    def test_another_strategy_for_one_batch(self, study):
        play(study)
        study.ask(2, strategy="random")
        assert study.diagnostics.strategy == "random"
        study.ask(2)
        assert study.diagnostics.strategy == "auto"
        study.ask(2, strategy=DPP(UCB(), then="max"))
        assert study.diagnostics.strategy == "DPP"

    def test_fixed_parameters_for_one_batch(self, study):
        play(study)
        assert {t.point["x"] for t in study.ask(4, fixed={"x": 0.1})} == {0.1}
        assert len({t.point["x"] for t in study.ask(4)}) > 1

    def test_several_asks_before_a_tell_do_not_crowd(self, study):
        """Asynchronous use: what is pending shapes what comes next."""
        play(study)
        first = study.ask(4)
        second = study.ask(4)
        points = [tuple(p.values()) for p in points_of([*first, *second])]
        assert len(set(points)) == 8
        alone = play(covey.Study(SPACE, seed=0))
        alone.cancel(alone.ask(4))
        assert points_of(alone.ask(4)) != points_of(second)

    def test_wrong_numbers_of_points(self, study):
        for k in (0, -1, 2.0, True, "3", None):
            with pytest.raises(StrategyError, match="whole number of points, at least 1"):
                study.ask(k)
        assert len(study.history) == 0

    @pytest.mark.parametrize("k", [100_001, 10**30])
    def test_more_points_than_can_be_drawn_at_once_are_refused(self, k):
        parts = {name: covey.Real(0.0, 1.0) for name in "abc"}
        blend = covey.Space(parts, where=[covey.Mixture([*parts], total=1.0)])
        with pytest.raises(StrategyError, match=f"at most 100000 points; got {k}"):
            covey.Study(blend, seed=0).ask(k)

    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            ({"strategy": "randon"}, StrategyError, "'random'"),
            ({"fixed": {"z": 1.0}}, SpaceError, "z"),
            ({"fixed": {"x": 2.0}}, SpaceError, r"'x': 2\.0.*\[0\.0, 1\.0\]"),
        ],
    )
    def test_a_bad_ask_leaves_no_trace(self, study, call, error, message):
        with pytest.raises(error, match=message):
            study.ask(2, **call)
        assert study.history.events == ()

    def test_a_cancelled_point_of_a_pool_is_free_again(self):
        study = covey.Study(covey.Pool([{"a": 1}, {"a": 2}]), seed=0)
        study.cancel(study.ask(2))
        assert {t.point["a"] for t in study.ask(2)} == {1, 2}

    def test_a_failed_point_of_a_pool_is_not(self):
        study = covey.Study(covey.Pool([{"a": 1}, {"a": 2}]), seed=0)
        study.fail(study.ask(1))
        study.ask(1)
        with pytest.raises(ExhaustedError):
            study.ask(1)

    def test_more_than_a_small_grid_holds(self):
        space = covey.Space({"i": covey.Integer(1, 3), "c": covey.Choice(["a", "b"])})
        study = covey.Study(space, seed=0)
        assert len({tuple(t.point.items()) for t in study.ask(6)}) == 6
        with pytest.raises(ExhaustedError, match=r"before: 0"):
            study.ask(1)


class TestTelling:
    def test_one_trial_or_its_id_or_a_batch(self, study):
        a, b, c, d = study.ask(4)
        study.tell(a, 1.0)
        study.tell(b.id, 2)
        study.tell([c, d.id], np.array([3.0, 4.0]))
        assert [t.value for t in study.history.trials] == [1.0, 2.0, 3.0, 4.0]

    def test_known_standard_errors(self, study):
        a, b, c = study.ask(3)
        study.tell([a, b], [1.0, 2.0], sem=[0.1, None])
        study.tell(c, 3.0, sem=0.2)
        assert [t.sem for t in study.history.trials] == [0.1, None, 0.2]
        d, e = study.ask(2)
        study.tell([d, e], [0.0, 0.0], sem=0.3)
        assert [t.sem for t in study.history.trials[3:]] == [0.3, 0.3]

    @pytest.mark.parametrize("bad", [math.nan, math.inf, None, "high", True, 1j])
    def test_values_must_be_finite_numbers(self, study, bad):
        batch = study.ask(2)
        before = study.history.events
        with pytest.raises(HistoryError):
            study.tell(batch, [1.0, bad])
        assert study.history.events == before  # all or nothing
        study.tell(batch, [1.0, 2.0])

    @pytest.mark.parametrize(
        ("trials", "values", "message"),
        [
            ([0, 1], [1.0], "2 trials but 1 value"),
            ([0, 1], 1.0, r"got 1\.0"),
            ([7], [1.0], "trial 7"),
            ([0, 0], [1.0, 2.0], "0"),
            ([], [], "no trial"),
        ],
    )
    def test_what_does_not_fit_is_named(self, study, trials, values, message):
        study.ask(2)
        with pytest.raises(HistoryError, match=message):
            study.tell(trials, values)
        assert study.best is None

    def test_telling_twice(self, study):
        (trial,) = study.ask(1)
        study.tell(trial, 1.5)
        with pytest.raises(HistoryError, match=r"trial 0.*1\.5"):
            study.tell(trial, 2.5)

    def test_amending_keeps_both_in_the_log(self, study):
        (trial,) = study.ask(1)
        study.tell(trial, 1.5)
        study.amend(trial, 2.5, "unit was wrong")
        assert study.best.value == 2.5
        assert [type(e).__name__ for e in study.history.events] == ["Asked", "Told", "Amended"]

    def test_a_trial_of_another_study_is_refused(self, study):
        other = covey.Study(SPACE, seed=1)
        mine, theirs = study.ask(1), other.ask(1)
        for call in (lambda t: study.tell(t, [1.0]), study.fail, study.cancel):
            with pytest.raises(HistoryError, match="not of this study"):
                call(theirs)
        study.tell(mine, [1.0])

    def test_a_standard_error_is_amended_with_its_value_or_kept(self, study):
        (trial,) = study.ask(1)
        study.tell(trial, 2.0, sem=0.5)
        study.amend(trial, 3.0, "a typo")
        assert (study.history[0].value, study.history[0].sem) == (3.0, 0.5)
        study.amend(trial, 3.0, "it was measured five times", sem=0.1)
        assert (study.history[0].value, study.history[0].sem) == (3.0, 0.1)
        with pytest.raises(HistoryError, match=r"got -1\.0"):
            study.amend(trial, 3.0, "a typo", sem=-1.0)

    def test_amending_takes_one_trial(self, study):
        study.tell(study.ask(2), [1.0, 2.0])
        with pytest.raises(HistoryError, match=r"\[0, 1\]"):
            study.amend([0, 1], 3.0, "both")

    def test_values_too_large_to_square_are_refused(self, study):
        (trial,) = study.ask(1)
        with pytest.raises(HistoryError, match=r"got 1e\+200"):
            study.tell(trial, 1e200)

    def test_enqueued_points_are_pending_and_not_asked_again(self, study):
        mine = study.enqueue([{"x": 0.5, "y": 0.5}] * 2)
        assert [t.origin for t in mine] == ["enqueued", "enqueued"]
        study.tell(mine, [1.0, 1.2])
        assert all(t.point != {"x": 0.5, "y": 0.5} for t in study.ask(8))

    def test_results_from_elsewhere(self, study):
        study.add([{"x": 0.1, "y": 0.2}, {"x": 0.9, "y": 0.9}], [1.0, 2.0], sem=[0.1, 0.1])
        assert study.best.value == 2.0
        with pytest.raises(HistoryError, match="2"):
            study.add([{"x": 0.1, "y": 0.2}, {"x": 0.3, "y": 0.9}], [1.0])
        with pytest.raises(SpaceError, match=r"\[point\]"):
            study.add({"x": 0.1, "y": 0.2}, [1.0])
        assert len(study.history) == 2


class TestLooking:
    def test_best_follows_the_goal(self):
        for goal, value in (("max", 3.0), ("min", 1.0)):
            study = covey.Study(SPACE, goal=goal, seed=0)
            assert study.best is None
            study.tell(study.ask(3), [1.0, 3.0, 2.0])
            assert study.best.value == value

    def test_predictions_and_recommendations(self):
        study = play(covey.Study(SPACE, seed=0), rounds=5, k=4)
        point = study.history.trials[3].point
        mean, std = study.predict([point])
        assert mean[0] == pytest.approx(f(point), abs=0.1)
        assert std[0] < 0.2
        assert study.recommend().trial.value > study.best.value - 1e-3
        assert f(study.recommend(anywhere=True).point) > 1.8

    def test_predicting_does_not_change_what_comes_next(self):
        plain, curious = play(covey.Study(SPACE, seed=0)), play(covey.Study(SPACE, seed=0))
        curious.predict([{"x": 0.5, "y": 0.5}])
        curious.recommend(anywhere=True)
        assert points_of(plain.ask(3)) == points_of(curious.ask(3))

    def test_what_is_pending_or_failed_teaches_nothing(self, study):
        play(study)
        before = study.predict([{"x": 0.5, "y": 0.5}])
        study.enqueue([{"x": 0.5, "y": 0.5}])
        study.fail(study.enqueue([{"x": 0.51, "y": 0.5}]))
        after = study.predict([{"x": 0.5, "y": 0.5}])
        assert after.std[0] == pytest.approx(before.std[0])

    def test_nothing_is_certified_while_trials_are_open(self, study):
        play(study)
        study.ask(2)
        assert study.diagnostics.certificate > 0.0
        study.ask(2)
        assert study.diagnostics.certificate is None

    def test_a_pool_recommends_its_own(self):
        study = covey.Study(covey.Pool([{"a": i / 9} for i in range(10)]), seed=0)
        study.add([{"a": 0.5}, {"a": 0.0}, {"a": 1.0}], [5.0, 1.0, 2.0])
        assert study.best.point == {"a": 0.5}
        assert study.recommend().point == {"a": 1.0}

    def test_nothing_told_nothing_to_say(self, study):
        for call in (lambda: study.predict([{"x": 0.5, "y": 0.5}]), study.recommend):
            with pytest.raises(HistoryError, match="nothing has been told"):
                call()

    def test_repr(self, study):
        assert repr(study) == "Study(goal='max', strategy='auto', History(0 trials))"


class TestMaking:
    @pytest.mark.parametrize(
        ("wrong", "error"),
        [
            ({"space": {"x": (0, 1)}}, SpaceError),
            ({"goal": "maximise"}, StrategyError),
            ({"strategy": "best"}, StrategyError),
            ({"seed": -1}, StrategyError),
            ({"seed": 0.5}, StrategyError),
        ],
    )
    def test_bad_settings_are_refused(self, wrong, error):
        with pytest.raises(error) as caught:
            covey.Study(**{"space": SPACE, **wrong})
        assert isinstance(caught.value, CoveyError)

    def test_a_seed_is_drawn_and_kept(self):
        assert covey.Study(SPACE).seed != covey.Study(SPACE).seed


class Mine:
    """A strategy as a user would write it."""

    needs_model = True

    def choose(self, belief, k, rng):
        return np.argsort(-belief.mean)[:k]


def test_a_strategy_of_ones_own():
    study = play(covey.Study(SPACE, strategy=Mine(), seed=0))
    assert study.diagnostics.strategy == "Mine"
    with pytest.raises(StrategyError, match="needs_model"):
        covey.Study(SPACE, strategy=Mine)
    with pytest.raises(StrategyError, match="needs_model"):
        covey.Study(SPACE, strategy=object())


def test_threads_of_the_machine_do_not_change_the_batch():
    """The same points whatever the number of BLAS threads."""
    code = (
        "import covey, numpy as np\n"
        "space = covey.Space({f'x{i}': covey.Real(0, 1) for i in range(6)})\n"
        "study = covey.Study(space, seed=0)\n"
        "for _ in range(4):\n"
        "    batch = study.ask(8)\n"
        "    study.tell(batch, [float(np.sin(5 * sum(t.point.values()))) for t in batch])\n"
        "print([t.point for t in study.history.trials])"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OMP_NUM_THREADS": n, "OPENBLAS_NUM_THREADS": n},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for n in ("1", "2")
    ]
    assert said[0] == said[1]


def test_it_logs_under_covey_and_prints_nothing(study, caplog, capsys):
    with caplog.at_level(logging.INFO, logger="covey"):
        study.ask(2)
    assert [r.name for r in caplog.records] == ["covey"]
    assert "chose 2 points by auto" in caplog.text
    assert capsys.readouterr() == ("", "")


def test_no_points_are_predicted_as_none(study):
    study.tell(study.ask(3), [1.0, 2.0, 3.0])
    mean, std = study.predict([])
    assert mean.shape == std.shape == (0,)


@pytest.mark.parametrize("library", ["pandas", "polars"])
class TestFrames:
    """A frame is a list of points by another name; one column for each parameter."""

    def frame(self, library, **columns):
        return pytest.importorskip(library).DataFrame(columns)

    def test_its_rows_are_points(self, library):
        space = covey.Space(
            {"x": covey.Real(0.0, 1.0), "n": covey.Integer(1, 9), "c": covey.Choice(["a", "b"])}
        )
        points = [{"x": 0.1, "n": 2, "c": "a"}, {"x": 0.7, "n": 5, "c": "b"}]
        by_frame, by_list = (covey.Study(space, seed=0) for _ in range(2))
        frame = self.frame(library, x=[0.1, 0.7], n=[2, 5], c=["a", "b"])
        by_frame.add(frame, [1.0, 2.0])
        by_frame.enqueue(frame)
        by_list.add(points, [1.0, 2.0])
        by_list.enqueue(points)
        assert by_frame.history.events == by_list.history.events
        np.testing.assert_array_equal(by_frame.predict(frame), by_list.predict(points))

    def test_of_a_pool_too(self, library):
        pool = covey.Pool([{"a": i, "name": f"row {i}"} for i in range(5)], labels=["name"])
        study = covey.Study(pool, seed=0)
        (trial,) = study.add(self.frame(library, a=[3]), [1.0])
        assert trial.point["name"] == "row 3"

    def test_a_column_too_many_or_too_few_is_named(self, library, study):
        with pytest.raises(SpaceError, match="value"):
            study.predict(self.frame(library, x=[0.1], y=[0.2], value=[3.0]))
        with pytest.raises(SpaceError, match="y"):
            study.predict(self.frame(library, x=[0.1]))
        with pytest.raises(SpaceError, match="'x'"):
            study.predict(self.frame(library, x=[None], y=[0.2]))


def test_a_trial_is_a_snapshot_and_the_history_has_the_newest(study):
    (trial,) = study.ask(1)
    study.tell(trial, 1.0)
    assert trial.value is None
    assert study.history.trial(trial.id).value == study.history[trial.id].value == 1.0


def test_a_plain_result_has_no_other_name_than_value(study):
    (trial,) = study.ask(1)
    named = "'y' was not declared; the outcomes are value"
    with pytest.raises(HistoryError, match=f"trial 0: {named}"):
        study.tell(trial, {"y": 1.0})
    with pytest.raises(HistoryError, match=f"trial 0: {named}"):
        study.tell([trial], [{"y": 1.0}])
    with pytest.raises(HistoryError, match=f"point 1 of 1: {named}"):
        study.add([trial.point], [{"y": 1.0}])
    study.tell(trial, {"value": 2.0})
    with pytest.raises(HistoryError, match=f"trial 0: {named}"):
        study.amend(trial, {"y": 1.0}, "typo")
    assert study.history[0].values == {"value": 2.0}


def test_a_prediction_after_an_exclusion_is_that_of_a_study_without_the_result():
    points = [{"x": x / 7, "y": x / 9} for x in range(6)]
    values = [f(point) for point in points]
    study, other = covey.Study(SPACE, seed=0), covey.Study(SPACE, seed=0)
    study.add(points, [*values[:5], 99.0])
    study.predict(points)  # so that there is a model to forget
    study.note(Excluded((5,), "the bubble was measured"))
    other.add(points[:5], values[:5])
    np.testing.assert_array_equal(study.predict(points).mean, other.predict(points).mean)
    assert study.best == other.best
    assert study.recommend().trial == other.recommend().trial
