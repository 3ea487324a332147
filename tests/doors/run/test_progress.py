from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.doors.run.scripted import Scripted, value

import covey
from covey.history import Dispatched
from covey.run.api import run
from covey.run.loop import Progress

SPACE = covey.Space({"x": covey.Real(-1.0, 1.0)})


def test_a_run_says_how_far_it_is():
    study = covey.Study(SPACE, goal="min", seed=0)
    study.add([{"x": 0.9}], [0.81])  # from elsewhere: not part of the run
    seen: list[Progress] = []
    with ThreadPoolExecutor(1) as pool:
        run(study, lambda p: p["x"] ** 2, batch=3, rounds=2, workers=pool, watch=seen.append)
    assert {progress.total for progress in seen} == {6}
    done = [progress.done for progress in seen]
    assert done == sorted(done)
    assert done[-1] == 6
    assert seen[-1].best == study.best.value
    assert seen[-1].left == 0.0
    assert seen[-1].waiting_for == "nothing more"
    some = next(progress for progress in seen if progress.running)
    assert "of this batch (trial" in some.waiting_for
    assert some.failed == 0


class Slow(Scripted):
    """Two at a time; each takes ten seconds of a clock that a poll moves on."""

    def __init__(self, monkeypatch, known=()):
        self.now = 1000.0
        self.begun: dict[str, float] = {}
        super().__init__(self.answered, slots=2, known=known)
        monkeypatch.setattr("time.monotonic", lambda: self.now)

    def submit(self, task):
        self.begun[task.name] = self.now
        super().submit(task)

    def poll(self, seconds):
        self.now += 1.0
        return super().poll(seconds)

    def answered(self, task):
        return value(task) if self.now >= self.begun.get(task.name, 0.0) + 10.0 else []


def test_the_time_left_is_what_is_left_by_what_one_takes(monkeypatch):
    """It stays as it is while one waits, and is not guessed before anything has ended."""
    study = covey.Study(SPACE, goal="min", seed=0)
    seen: list[Progress] = []
    run(study, abs, batch=4, rounds=2, workers=Slow(monkeypatch), watch=seen.append)
    assert {p.left for p in seen if p.done == 0} == {None}
    for done in (2, 4, 6, 8):
        assert {p.left for p in seen if p.done == done} == {(8 - done) * 10.0 / 2}


def test_results_that_were_waiting_do_not_make_a_run_look_quick(monkeypatch, tmp_path):
    """After a crash two results are found at once, which does not say what one takes."""
    study = covey.Study(SPACE, goal="min", seed=0, journal=tmp_path / "run.jsonl")
    names = []
    for trial in study.ask(4)[:2]:
        names.append(f"covey-before-{trial.id}-a1")
        study.note(Dispatched(trial.id, 1, names[-1], 0))
    seen: list[Progress] = []
    run(study, abs, batch=4, rounds=2, workers=Slow(monkeypatch, names), watch=seen.append)
    assert {p.left for p in seen if p.done == 2} == {None}
    assert {p.left for p in seen if p.done == 4} == {20.0}
