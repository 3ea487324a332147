"""Slots: every evaluation has a place of its own, and no two ever share one."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import random
import signal
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.doors.run.scripted import Scripted, nothing, value

import covey
from covey.errors import StrategyError
from covey.history import Dispatched, event_from_json, event_to_json
from covey.run import Command, Outcome, Retries, run
from covey.run.api import crew_of
from covey.run.dispatcher import Dispatcher
from covey.run.plan import Plan
from covey.run.process import Process
from covey.run.slots import Places, Slot, gpu_slots
from covey.run.task import Function

SPACE = covey.Space({"x": covey.Real(-1.0, 1.0)})
CALL = Function(abs)
H200 = "GPU {}: NVIDIA H200 (UUID: GPU-{}0a1b2c3d)"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine on which nvidia-smi lists so many GPUs; None: there is no such program."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    def has(count: int | None, status: int = 0) -> None:
        if count is not None:
            listed = "\n".join(H200.format(i, i) for i in range(count))
            program = tmp_path / "nvidia-smi"
            program.write_text(f"#!/bin/sh\necho '{listed}'\nexit {status}\n")
            program.chmod(0o700)

    return has


# ---------------------------------------------------------------- who holds which


@pytest.mark.parametrize("gpus", [(), ("0", "1", "2"), ("0", "1", "2") * 2])
def test_no_number_is_held_twice(gpus):
    """Against a referee that keeps every number that was given out and not freed."""
    rng, places, held = random.Random(4), Places(len(gpus) or 5, gpus), {}
    given = 0
    for step in range(2000):
        if places.has_room and rng.random() < 0.55:
            slot = places.take(str(step))
            assert slot.number not in held.values()
            assert slot.gpu == (gpus[slot.number] if gpus else None)
            held[str(step)] = slot.number
            given += 1
        elif held:
            name = rng.choice(sorted(held))
            places.free(name)
            del held[name]
        assert places.has_room == (len(held) < places.count)
        on = Counter(gpus[number] for number in held.values()) if gpus else Counter([0])
        assert max(on.values(), default=0) <= max(1, len(gpus) // 3)
    assert given > 500
    while places.has_room:
        places.take(f"more {len(held)} {random.random()}")
    with pytest.raises(StrategyError, match="taken"):
        places.take("one too many")


def test_the_emptiest_gpu_comes_first():
    places = Places(6, ("0", "1", "2") * 2)
    names = "abcdef"
    assert [places.take(name).number for name in names] == [0, 1, 2, 3, 4, 5]
    for name in "abce":  # what is left: d on GPU 0, f on GPU 2
        places.free(name)
    assert places.take("g") == Slot(1, "1")  # not slot 0, whose GPU has d
    assert places.take("h") == Slot(0, "0")


def test_what_an_earlier_run_started_keeps_its_place():
    places = Places(2)
    places.occupy("old", Slot(0))
    assert places.take("new") == Slot(1)
    assert not places.has_room
    places.free("old")
    assert places.take("newer") == Slot(0)


def test_a_gpu_counts_more_than_the_number_it_had():
    places = Places(3, ("4", "5", "6"))
    places.occupy("old", Slot(0, "6"))  # the earlier run had other GPUs, and 6 came first
    assert [places.take(name).gpu for name in "ab"] == ["4", "5"]
    assert not places.has_room


def test_what_has_no_place_here_counts_all_the_same():
    places = Places(2, ("0", "1"))
    places.occupy("elsewhere", Slot(7, "7"))
    places.occupy("older journal", Slot(None))
    assert not places.has_room
    places.free("elsewhere")
    assert places.take("a") == Slot(0, "0")
    assert not places.has_room


def test_an_engine_with_a_queue_has_no_numbers():
    places = Places(None)
    assert places.has_room
    assert places.take("a") == Slot(None)
    places.occupy("b", Slot(3))
    assert places.has_room


# ---------------------------------------------------------------- which GPUs


@pytest.mark.parametrize(
    ("gpus", "per_gpu", "expected"),
    [
        (2, 1, "0 1"),
        ("2", 1, "0 1"),
        ("2,", 1, "2"),
        ([0, 3], 1, "0 3"),
        ("0, 3", 1, "0 3"),
        (2, 2, "0 1 0 1"),
        (["GPU-30a1"], 2, "GPU-30a1 GPU-30a1"),
    ],
)
def test_gpus_are_counted_or_named(machine, gpus, per_gpu, expected):
    machine(4)
    assert gpu_slots(gpus, per_gpu) == tuple(expected.split())


@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        (5, r"no GPU 4 here; nvidia-smi lists 0, 1, 2, 3\."),
        ([0, 9], "no GPU 9 here"),
        (["GPU-9"], "no GPU GPU-9 here"),
        ([0, 0], "named twice; per_gpu=2"),
        (0, "whole number >= 1"),
        ("0", "--gpus 0,"),
        (True, "whole number >= 1"),
        (1.5, "got 1.5"),
        ("", "got ''"),
        ([], r"got \[\]"),
        (["0;rm"], "0;rm"),
    ],
)
def test_gpus_that_are_not_there(machine, gpus, said):
    machine(4)
    with pytest.raises(StrategyError, match=said):
        gpu_slots(gpus)


@pytest.mark.parametrize("per_gpu", [0, 1.5, True, "2"])
def test_a_share_is_a_whole_number(machine, per_gpu):
    machine(4)
    with pytest.raises(StrategyError, match="per_gpu must be a whole number >= 1"):
        gpu_slots(2, per_gpu)


@pytest.mark.parametrize("status", [None, 9])
def test_it_says_if_it_cannot_check(machine, caplog, status):
    machine(None if status is None else 0, status or 0)
    with caplog.at_level(logging.WARNING, logger="covey"):
        assert len(gpu_slots(64)) == 64
    assert "could not be checked" in caplog.text


@pytest.mark.parametrize("gpus", ["-1", "-1,", [-1], "x,", "cuda:0,", ["0", "-1"]])
def test_what_cuda_takes_for_no_gpu_is_refused_where_nothing_can_be_checked(machine, gpus):
    """With CUDA_VISIBLE_DEVICES=-1 evaluations would train on the CPU, and nobody would say so."""
    machine(None)
    with pytest.raises(StrategyError, match="which"):
        gpu_slots(gpus)


def test_only_what_a_scheduler_allows(machine, monkeypatch):
    machine(8)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3,5")
    assert gpu_slots(2) == ("2", "3")
    assert gpu_slots([5]) == ("5",)
    with pytest.raises(StrategyError, match=r"4 GPUs wanted, but CUDA_VISIBLE_DEVICES=2,3,5"):
        gpu_slots(4)
    with pytest.raises(StrategyError, match=r"no GPU 0 here; CUDA_VISIBLE_DEVICES=2,3,5 allows"):
        gpu_slots([0])
    for none in ("", "-1", "NoDevFiles"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", none)
        with pytest.raises(StrategyError, match="allows 0"):
            gpu_slots(1)


def test_workers_and_slots_fit(machine):
    machine(4)
    assert crew_of(None, Plan(), CALL).workers == 4
    both = crew_of(None, Plan(gpus=3, per_gpu=2), CALL)
    assert (both.workers, both.gpus) == (6, ("0", "1", "2") * 2)
    assert crew_of(2, Plan(gpus=3), CALL).workers == 2
    with pytest.raises(StrategyError, match=r"7 workers, but 6 slots: 3 GPUs with 2 each"):
        crew_of(7, Plan(gpus=3, per_gpu=2), CALL)
    with pytest.raises(StrategyError, match="per_gpu=2 needs gpus"):
        crew_of(7, Plan(per_gpu=2), CALL)
    with ThreadPoolExecutor(1) as threads:
        with pytest.raises(StrategyError, match=r"RayEngine\(num_gpus=1\)"):
            crew_of(threads, Plan(gpus=1), CALL)
        with pytest.raises(StrategyError, match="has no number"):
            crew_of(threads, Plan(), Command(["echo", "{slot}"]))


# ---------------------------------------------------------------- the dispatcher


def dispatcher_of(study, answer, slots=2, gpus=()):
    engine = Scripted(answer, slots=slots)
    return Dispatcher(study, engine, CALL, None, Retries(wait=0.0), gpus), engine


def test_the_log_knows_the_slot(tmp_path):
    study = covey.Study(SPACE, seed=0, journal=tmp_path / "run.jsonl")
    dispatcher, engine = dispatcher_of(study, value, gpus=("3", "5"))
    dispatcher.admit(study.ask(2))
    dispatcher.work(0.0)
    assert [(task.slot, task.gpu) for task in engine.tasks] == [(0, "3"), (1, "5")]
    again = covey.Study.load(study.journal, read_only=True).history
    logged = [event for event in again.events if isinstance(event, Dispatched)]
    assert [(event.slot, event.gpu) for event in logged] == [(0, "3"), (1, "5")]
    plain = event_to_json(Dispatched(0, 1, "a", 0), dict, 0)
    assert "slot" not in plain
    assert "gpu" not in plain
    assert event_from_json(plain, dict) == Dispatched(0, 1, "a", 0)


@pytest.mark.parametrize("defect", [False, True])
def test_a_slot_is_free_when_its_process_is_dead(tmp_path, monkeypatch, defect):
    """A trial is told by hand; its process takes its time to die."""
    study = covey.Study(SPACE, seed=0, journal=tmp_path / "run.jsonl")
    dispatcher, engine = dispatcher_of(study, nothing)
    monkeypatch.setattr(engine, "cancel", engine.cancelled.extend)  # it ignores SIGTERM
    if defect:
        real = Dispatcher._withdraw

        def withdraw(self):
            for name, task in self._open.items():
                if not self._pending(task.id):
                    self._places.free(name)
            real(self)

        monkeypatch.setattr(Dispatcher, "_withdraw", withdraw)
    dispatcher.admit(study.ask(4))
    dispatcher.work(0.0)
    covey.Study.load(study.journal).tell(0, 1.0)
    for _ in range(3):
        dispatcher.work(0.0)
    assert engine.cancelled == [engine.tasks[0].name]
    started = [task.slot for task in engine.tasks]
    assert started == ([0, 1, 0] if defect else [0, 1])
    engine.ready.append(Outcome(engine.tasks[0].name, "lost", reason="it was cancelled"))
    dispatcher.work(0.0)
    dispatcher.work(0.0)
    assert [task.slot for task in engine.tasks][2] == 0


# ---------------------------------------------------------------- real processes


def crowded(slots: Path):
    """An evaluation that holds the lock of its slot, as does what it started, and then dies."""

    def claim(slot):
        file = os.open(slots / slot, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            (slots / "clash").touch()

    def f(point):
        slot = os.environ["COVEY_SLOT"]
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "47"[int(slot) % 2]
        claim(slot)
        (slots / f"trial-{os.environ['COVEY_TRIAL']}").write_text(slot)
        if os.fork() == 0:  # it outlives a parent that is killed, and holds the lock with it
            time.sleep(20.0)
        time.sleep(0.05)
        if point["x"] > 0.5:
            os.kill(os.getpid(), signal.SIGKILL)
        if point["x"] > 0.0:
            os._exit(3)
        if point["x"] > -0.5:
            raise ValueError(f"odd: {point['x']}")
        os.killpg(0, signal.SIGKILL)

    return f


@pytest.mark.parametrize("defect", [False, True])
def test_evaluations_that_die_in_any_way_never_share_a_slot(tmp_path, machine, monkeypatch, defect):
    machine(None)
    if defect:
        monkeypatch.setattr(Process, "_clear_up", lambda self: None)
        monkeypatch.setattr(Process, "_await_group", lambda self: None)
    slots = tmp_path / "slots"
    slots.mkdir()
    study = covey.Study(SPACE, seed=0, journal=tmp_path / "run.jsonl")
    study.enqueue([{"x": x} for x in (0.9, 0.3, -0.3, -0.9, 0.6)])
    options = {"gpus": "4,7", "retries": Retries(lost=0, wait=0.0)}
    with pytest.raises(covey.errors.EvaluationError):
        run(study, crowded(slots), batch=1, rounds=1, **options)
    used = {path.read_text() for path in slots.glob("trial-*")}
    assert used == {"0", "1"}
    assert (slots / "clash").exists() == defect


def test_a_command_is_told_its_slot(tmp_path, machine):
    machine(2)
    code = (
        "import json,os,sys;print(json.dumps({'value': 1.0, 'argument': sys.argv[1], "
        "'slot': os.environ['COVEY_SLOT'], 'gpu': os.environ['CUDA_VISIBLE_DEVICES']}))"
    )
    study = covey.Study(SPACE, seed=0, journal=tmp_path / "run.jsonl")
    command = Command([sys.executable, "-c", code, "{slot}", "{x.x}"][:-1])
    run(study, command, batch=4, rounds=1, gpus=2, per_gpu=2)
    for trial in study.history.told:
        found = study.history.metrics(trial)
        sent = study.history.attempts(trial)[-1]
        assert (found["argument"], found["slot"]) == (str(sent.slot), str(sent.slot))
        assert found["gpu"] == sent.gpu == str(sent.slot % 2)


def test_the_command_line(tmp_path, machine):
    from typer.testing import CliRunner

    from covey.cli.app import app

    machine(4)
    os.chdir(tmp_path)
    text = '[parameters.x]\ntype = "real"\nlow = 0\nhigh = 1\n[run]\n'
    Path("covey.toml").write_text(f'{text}command = ["echo", "1"]\ngpus = [1, 3]\nper_gpu = 2\n')
    said = CliRunner().invoke(app, ["run", "--dry-run", "--json"])
    assert json.loads(said.stdout.splitlines()[0])["workers"] == 4
    said = CliRunner().invoke(app, ["run", "--dry-run", "--json", "--gpus", "3"])
    assert json.loads(said.stdout.splitlines()[0])["workers"] == 6
    refused = CliRunner().invoke(app, ["run", "--gpus", "5"])
    assert "no GPU 4 here" in str(refused.exception)
    assert not Path("covey.jsonl").exists()
