import logging
import math
import threading
import time
from concurrent.futures import ProcessPoolExecutor

import pytest

import covey
from covey.errors import EvaluationError, StrategyError

SPACE = covey.Space({"x": covey.Real(-1.0, 1.0)})


def bowl(point):
    return point["x"] ** 2


def test_maximize_and_minimize():
    low = covey.minimize(bowl, SPACE, batch=4, rounds=4, seed=0)
    assert low.value < 1e-3
    assert low.value == bowl(low.point)
    high = covey.maximize(bowl, SPACE, batch=4, rounds=4, seed=0)
    assert high.value > 0.99
    assert len(high.study.history.told) == 16


def test_the_number_of_workers_does_not_matter():
    def slow(point):
        time.sleep(0.01 * abs(point["x"]))
        return bowl(point)

    runs = [covey.minimize(slow, SPACE, batch=4, rounds=3, workers=w, seed=1) for w in (1, 4)]
    trials = [[(t.point, t.value) for t in run.study.history.trials] for run in runs]
    assert trials[0] == trials[1]


def test_evaluations_run_in_parallel():
    together = threading.Barrier(3, timeout=10)

    def f(point):
        together.wait()
        return bowl(point)

    assert covey.minimize(f, SPACE, batch=3, rounds=1, workers=3, seed=0).value >= 0.0


def test_an_executor_of_ones_own():
    with ProcessPoolExecutor(2) as pool:
        result = covey.minimize(bowl, SPACE, batch=2, rounds=2, workers=pool, seed=0)
        assert pool.submit(bowl, {"x": 1.0}).result() == 1.0  # still open
    assert len(result.study.history.told) == 4


def test_failures_become_failed_trials(caplog):
    def fragile(point):
        if point["x"] > 0.0:
            raise OSError("no such sample")
        return math.nan if point["x"] > -0.2 else bowl(point)

    with caplog.at_level(logging.WARNING, logger="covey"):
        result = covey.maximize(fragile, SPACE, batch=8, rounds=2, seed=0)
    failed = result.study.history.failed
    assert failed
    assert all(t.point["x"] > -0.2 for t in failed)
    assert "no such sample" in caplog.text
    assert result.study.history.pending == ()


def test_a_batch_that_fails_whole_stops_the_run():
    def broken(point):
        raise KeyError("oops")

    with pytest.raises(EvaluationError, match=r"all 3 evaluations.*oops") as caught:
        covey.maximize(broken, SPACE, batch=3, rounds=2, seed=0)
    assert isinstance(caught.value.__cause__, KeyError)


def test_ctrl_c_leaves_the_log_clean_and_the_run_can_go_on(tmp_path):
    path = tmp_path / "run.jsonl"

    def interrupted(point):
        raise KeyboardInterrupt

    covey.maximize(bowl, SPACE, batch=3, rounds=1, seed=0, journal=path)
    with pytest.raises(KeyboardInterrupt):
        covey.maximize(interrupted, SPACE, batch=3, rounds=2, workers=1, journal=path)
    study = covey.Study.load(path)
    assert study.history.pending == ()
    assert len(study.history.told) == 3
    assert [t.status for t in study.history.trials[3:]] == ["cancelled"] * 3


def test_a_broken_run_takes_up_what_was_pending(tmp_path):
    path = tmp_path / "run.jsonl"
    covey.Study(SPACE, seed=0, journal=path).ask(3)  # as if the machine had died here
    result = covey.maximize(bowl, SPACE, batch=3, rounds=2, journal=path)
    assert [t.status for t in result.study.history.trials] == ["told"] * 6


@pytest.mark.parametrize(
    "wrong", [{"batch": 0}, {"rounds": 0}, {"batch": 2.5}, {"workers": 0}, {"workers": "many"}]
)
def test_bad_sizes_are_named(wrong):
    with pytest.raises(StrategyError, match="got"):
        covey.maximize(bowl, SPACE, **wrong)
