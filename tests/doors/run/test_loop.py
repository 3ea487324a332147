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
    "wrong", [{"batch": 0}, {"rounds": True}, {"batch": 2.5}, {"workers": 0}, {"workers": "many"}]
)
def test_bad_sizes_are_named(wrong):
    with pytest.raises(StrategyError, match="got"):
        covey.maximize(bowl, SPACE, **wrong)


def test_a_small_pool_is_run_to_its_end():
    pool = covey.Pool([{"a": i} for i in range(10)])
    result = covey.maximize(lambda p: -abs(p["a"] - 7), pool, batch=4, rounds=5, seed=0)
    assert result.point == {"a": 7}
    assert len(result.study.history.told) == 10


def test_bad_workers_leave_no_file(tmp_path):
    with pytest.raises(StrategyError, match="workers"):
        covey.maximize(bowl, SPACE, workers=0, journal=tmp_path / "run.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_sent_to_other_processes_is_named():
    with ProcessPoolExecutor(1) as pool, pytest.raises(StrategyError, match="top level"):
        covey.maximize(lambda p: 0.0, SPACE, workers=pool)


def dies(point):
    import os

    if point["x"] > 0.0:
        os._exit(1)
    return bowl(point)


def test_a_dead_worker_harms_no_point(tmp_path):
    path = tmp_path / "run.jsonl"
    with ProcessPoolExecutor(1) as pool, pytest.raises(EvaluationError, match="executor broke"):
        covey.maximize(dies, SPACE, batch=6, rounds=2, workers=pool, journal=path, seed=0)
    study = covey.Study.load(path)
    assert study.history.failed == ()
    assert study.history.pending == ()


def test_a_value_that_is_no_number_fails(caplog):
    result = covey.maximize(
        lambda p: "1.5" if p["x"] > 0 else bowl(p), SPACE, batch=6, rounds=1, seed=0
    )
    assert all(t.point["x"] > 0 for t in result.study.history.failed)
    assert result.study.history.failed
