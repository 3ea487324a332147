"""EngineContract: what a run relies on in an engine, as tests to inherit.

The promise is `covey.run.task.Engine`: tasks go in, each comes back by `poll` as one of succeeded,
failed, timed-out (put down to the point), killed by a signal (to the point, if it happens again) or
lost (to the machine).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

from covey.history import Trial
from covey.run.api import minimize
from covey.run.task import Engine, Function, Outcome, Task, name_of
from covey.space import Real, Space

_SLOW = 1.5  # seconds of an evaluation that is still running when it is checked


class EngineContract:
    """Tests of any engine; say in `make_engine` how yours is made, and what else it promises.

    class TestMine(EngineContract):
        own_process = True

        def make_engine(self, folder):
            return Mine()

    Attributes:
        own_process: whether each evaluation has a process that can be stopped and harms no other.
        found_again: whether evaluations outlive the engine, and one made anew in the same folder
            finds them.
        patience: seconds to wait for an outcome.
    """

    own_process: ClassVar[bool] = False
    found_again: ClassVar[bool] = False
    patience: ClassVar[float] = 60.0

    def make_engine(self, folder: Path) -> Engine:
        """A new engine with room for two at once, closed after each test.

        What it keeps, it may keep in the folder.
        """
        raise NotImplementedError("a contract needs make_engine(self, folder), yours.")

    def setup_method(self) -> None:
        """No engine is open before a test."""
        self._engines: list[Engine] = []

    def teardown_method(self) -> None:
        """Close every engine after a test."""
        for engine in reversed(self._engines):
            engine.close()

    def test_it_has_what_a_run_asks_for(self, tmp_path: Path) -> None:
        """The protocol; and at least one slot, or None if it queues by itself."""
        engine = self._open(tmp_path)
        assert isinstance(engine, Engine), f"{engine!r} lacks one of the methods of an Engine"
        assert engine.slots is None or engine.slots >= 1, f"slots are {engine.slots}"

    def test_values_come_back_each_under_its_name_and_once(self, tmp_path: Path) -> None:
        """Six tasks at once: each value, sem and metric comes back once, under its task's name."""
        engine = self._open(tmp_path)

        def f(point: dict[str, Any]) -> dict[str, Any]:
            return {"value": 2.0 * point["x"], "sem": 0.25, "latency": 3}

        tasks = [_task(f, {"x": float(i)}) for i in range(6)]
        found = self._ends(engine, tasks)
        for i, task in enumerate(tasks):
            one = found[task.name]
            assert (one.status, one.value, one.sem) == ("succeeded", 2.0 * i, 0.25), one
            assert one.metrics == {"latency": 3}, one
        assert engine.poll(0.0) == [], "what was said once is said again"

    def test_points_and_seeds_arrive_as_they_are(self, tmp_path: Path) -> None:
        """Tuples, text of any kind, None and truth values, and the seed of the task."""
        point = {"t": (1, 2), "s": "ä'\"; rm", "n": None, "b": True}

        def f(given: dict[str, Any], seed: int) -> float:
            return float(seed if given == point and given["b"] is True else -1)

        task = _task(f, point, seed=123)
        found = self._ends(self._open(tmp_path), [task])[task.name]
        assert found.value == 123.0, f"{point} with seed 123 arrived changed: {found}"

    def test_a_failure_is_the_points_doing(self, tmp_path: Path) -> None:
        """What f raises, and what is no finite number: failed, with the words."""
        engine = self._open(tmp_path)

        def raises(point: dict[str, Any]) -> float:
            raise OSError("no such sample")

        cases: list[tuple[Callable[..., Any], str]] = [
            (raises, "OSError: no such sample"),
            (lambda point: float("nan"), "nan"),
            (lambda point: None, "None"),
            (lambda point: "1.5", "'1.5'"),
        ]
        tasks = [_task(f) for f, _ in cases]
        found = self._ends(engine, tasks)
        for task, (_, words) in zip(tasks, cases, strict=True):
            one = found[task.name]
            assert (one.status, one.value) == ("failed", None), one
            assert words in one.reason, f"{words!r} is not in the reason: {one}"

    def test_a_loss_is_not_the_points_doing(self, tmp_path: Path) -> None:
        """An evaluation that is interrupted is lost, and may be tried again."""

        def f(point: dict[str, Any]) -> float:
            raise KeyboardInterrupt

        task = _task(f)
        found = self._ends(self._open(tmp_path), [task])[task.name]
        assert (found.status, found.value) == ("lost", None), found

    def test_a_killed_evaluation_says_so_and_harms_no_other(self, tmp_path: Path) -> None:
        """If each has a process of its own."""
        _only_if(self.own_process, "evaluations share a process")

        def dies(point: dict[str, Any]) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        def lives(point: dict[str, Any]) -> float:
            time.sleep(0.3)
            return 1.0

        tasks = [_task(lives), _task(dies), _task(lives)]
        found = self._ends(self._open(tmp_path), tasks)
        assert [found[task.name].status for task in tasks] == ["succeeded", "killed", "succeeded"]

    def test_beyond_its_time_limit_it_is_timed_out(self, tmp_path: Path) -> None:
        """A result that comes all the same is a second outcome of the same name."""
        engine = self._open(tmp_path)
        task = _task(_sleeping(_SLOW), timeout=0.5)
        found = self._ends(engine, [task])[task.name]
        assert found.status == "timed-out", found
        self._late(engine, [task])

    def test_what_is_cancelled_comes_back_as_lost(self, tmp_path: Path) -> None:
        """Running or waiting; once for each. An unknown name is ignored."""
        engine = self._open(tmp_path)
        tasks = [_task(_sleeping(_SLOW)) for _ in range(engine.slots or 4)]
        for task in tasks:
            engine.submit(task)
        time.sleep(0.5 * _SLOW)
        engine.cancel([task.name for task in tasks])
        engine.cancel(["nobody"])
        found = self._wait(engine, tasks)
        assert {outcome.status for outcome in found.values()} == {"lost"}, found
        self._late(engine, tasks)

    def test_what_is_cancelled_ends(self, tmp_path: Path) -> None:
        """If each has a process of its own: it does no more once it was reported lost."""
        _only_if(self.own_process, "what runs in a shared process cannot be stopped")
        engine, beat, long = self._open(tmp_path), tmp_path / "beat", 2.0 * self.patience

        def f(point: dict[str, Any]) -> None:
            until = time.monotonic() + long  # not for ever: perhaps it cannot be stopped
            while time.monotonic() < until:
                beat.touch()
                time.sleep(0.05)

        task = _task(f)
        engine.submit(task)
        _until(beat.exists, self.patience, "an evaluation did not begin")
        engine.cancel([task.name])
        engine.cancel([task.name])
        assert self._wait(engine, [task])[task.name].status == "lost"

        def silent() -> bool:
            beat.unlink(missing_ok=True)
            time.sleep(0.3)
            return not beat.exists()

        _until(silent, self.patience, "a cancelled evaluation goes on")

    def test_it_waits_no_longer_than_it_was_told(self, tmp_path: Path) -> None:
        """With no task running, and with one that takes longer."""
        engine = self._open(tmp_path)
        for out in (None, _task(_sleeping(_SLOW))):
            if out is not None:
                engine.submit(out)
            began = time.monotonic()
            assert engine.poll(0.2) == [], "there is an outcome of nothing"
            took = time.monotonic() - began
            assert 0.15 < took < self.patience, f"poll(0.2) took {took:.2f} s"
        if out is not None:
            self._wait(engine, [out])

    def test_the_next_engine_finds_what_this_one_left_or_says_not(self, tmp_path: Path) -> None:
        """What `adopt` names comes back, evaluated once; what it does not name never does."""
        went = tmp_path / "went"

        def f(point: dict[str, Any]) -> float:
            time.sleep(point["x"])
            with went.open("a") as file:
                file.write("x")
            return float(point["x"])

        first, tasks = self._open(tmp_path), [_task(f, {"x": 0.0}), _task(f, {"x": _SLOW})]
        for task in tasks:
            first.submit(task)
        _until(went.exists, self.patience, "an evaluation did not begin")
        self._engines.remove(first)
        first.close()
        second = self._open(tmp_path)
        known = second.adopt(tasks)
        assert known <= {task.name for task in tasks}, f"it adopts what nobody asked for: {known}"
        if self.found_again:
            assert len(known) == 2, f"of two evaluations the next engine found {sorted(known)}"
        found = self._wait(second, [task for task in tasks if task.name in known])
        for task in tasks:
            if task.name in known:
                assert found[task.name].value == task.point["x"], found[task.name]
                assert went.read_text() == "xx", "an evaluation that was adopted was done again"
        assert second.poll(0.0) == [], "there is an outcome of what was not adopted"

    def test_what_was_never_handed_out_is_not_adopted(self, tmp_path: Path) -> None:
        """Else a run would wait for it without end."""
        done = _task(lambda point: 1.0)
        self._ends(self._open(tmp_path), [done])
        assert self._open(tmp_path).adopt([_task(lambda point: 1.0)]) == set()
        assert self._open(tmp_path).adopt([]) == set()

    def test_a_run_is_the_same_as_with_threads(self, tmp_path: Path) -> None:
        """Two batches of three with a journal; afterwards the engine is open, and has no more."""
        engine = self._open(tmp_path)

        def f(point: dict[str, Any], seed: int) -> float:
            return float(point["x"] ** 2 + seed % 2)

        def trials(workers: Engine | Executor, journal: Path | None) -> list[Trial]:
            space = Space({"x": Real(-1.0, 1.0)})
            result = minimize(f, space, batch=3, rounds=2, seed=0, workers=workers, journal=journal)
            return list(result.study.history.trials)

        with ThreadPoolExecutor(1) as threads:
            assert trials(engine, tmp_path / "run.jsonl") == trials(threads, None)
        assert engine.poll(0.0) == []

    def _open(self, folder: Path) -> Engine:
        engine = self.make_engine(folder)
        self._engines.append(engine)
        return engine

    def _ends(self, engine: Engine, tasks: list[Task]) -> dict[str, Outcome]:
        """Their outcomes, submitted at most as many at once as there are slots."""
        found: dict[str, Outcome] = {}
        some = engine.slots or len(tasks)
        for low in range(0, len(tasks), some):
            for task in tasks[low : low + some]:
                engine.submit(task)
            found |= self._wait(engine, tasks[low : low + some])
        return found

    def _wait(self, engine: Engine, tasks: list[Task]) -> dict[str, Outcome]:
        """The first outcome of each, and none of other tasks."""
        found: dict[str, Outcome] = {}
        names, until = {task.name for task in tasks}, time.monotonic() + self.patience
        while set(found) < names:
            assert time.monotonic() < until, (
                f"after {self.patience:g} s there is no outcome of {len(names) - len(found)} tasks"
            )
            for outcome in engine.poll(0.5):
                assert outcome.name in names, f"nobody asked for {outcome}"
                found.setdefault(outcome.name, outcome)
        return found

    def _late(self, engine: Engine, tasks: list[Task]) -> None:
        """Check that only tasks that were given up, and could not be stopped, end late."""
        until = time.monotonic() + 2.0 * _SLOW
        while time.monotonic() < until:
            for late in engine.poll(0.5):
                assert not self.own_process, f"it was stopped, and yet there is {late}"
                assert late.name in {task.name for task in tasks}, f"nobody asked for {late}"
                assert late.status == "succeeded", f"it had ended, and ends again: {late}"


def _task(
    f: Callable[..., Any],
    point: Mapping[str, Any] | None = None,
    *,
    seed: int = 7,
    timeout: float | None = None,
) -> Task:
    """A first attempt at trial 0 of some run."""
    name = name_of(os.urandom(4).hex(), 0, 1)
    return Task(0, 1, name, {"x": 1.5} if point is None else point, seed, timeout, Function(f))


def _sleeping(seconds: float) -> Callable[[dict[str, Any]], float]:
    def f(point: dict[str, Any]) -> float:
        time.sleep(seconds)
        return 1.0

    return f


def _until(what: Callable[[], bool], within: float, otherwise: str) -> None:
    until = time.monotonic() + within
    while not what():
        assert time.monotonic() < until, f"{otherwise}, after {within:g} s"
        time.sleep(0.05)


def _only_if(promised: bool, why: str) -> None:
    if not promised:
        import pytest

        pytest.skip(why)
