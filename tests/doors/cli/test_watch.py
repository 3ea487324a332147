"""`covey status` and `covey watch` while a run is at work: the same facts from the journal."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path

import pytest
from rich.console import Console

import covey.cli.watch as watching
from covey.cli.settings import read_settings
from covey.cli.watch import Reader, keys, picture
from covey.history import Began, Dispatched, Failed, Reported, Told
from covey.log.header import reopen as real
from covey.log.running import Runs, folder_of, runs_of

PLAN = {"total": 12, "batch": 3, "asynchronous": False, "slots": 4, "until": None}


@pytest.fixture
def at_work(study):
    """A study that this process runs: one told, one failed, one in a slot; the rest is to come."""
    with ExitStack() as stack:
        assert study("ask").code == 0
        opened = read_settings(Path("covey.toml")).study()
        runs = Runs(opened.journal)
        runs.id = "0a1b2c3d"
        stack.enter_context(runs.entered())
        opened.note(Began(runs.id, 1, "here", {**PLAN, "cost": "dollars", "purse": 20.0}))
        for id, slot in ((0, 0), (1, 1), (2, 2)):
            opened.note(Dispatched(id, 1, f"covey-0a1b2c3d-{id}-a1", 0, slot, str(slot + 4)))
        opened.tell(0, 0.75)
        opened.note(Failed((1,), "CUDA out of \x1b[31mmemory"))
        opened.note(Reported(2, 1, 30, 0.5))
        yield study, opened


def drawn(width=100) -> str:
    console = Console(file=io.StringIO(), record=True, width=width)
    console.print(picture(Reader(read_settings(Path("covey.toml")))()))
    return console.export_text()


def test_status_says_who_runs_it_and_how_far(at_work):
    call, _ = at_work
    out = call("status").out
    assert f"run: process {os.getpid()} on " in out
    assert "so far: 2 of 12 done, 1 failed, 0 of 20 dollars spent, about " in out
    assert "  slot 2 (GPU 6): trial 2, for " in out
    assert ", 0.5 at step 30" in out
    assert "covey watch" in out.splitlines()[-1]


def test_status_as_json(at_work):
    call, _ = at_work
    found = call("status", "--json").json["run"]
    assert found["pid"] == os.getpid()
    assert (found["done"], found["total"], found["slots"], found["running"]) == (2, 12, 4, 1)
    assert (found["costly"], found["spent"], found["purse"]) == ("dollars", 0.0, 20.0)
    (one,) = found["under_way"]
    assert (one["id"], one["slot"], one["gpu"], one["step"], one["value"]) == (2, 2, "6", 30, 0.5)
    assert found["left"] >= 0.0


def test_several_runs_are_named_with_what_each_has(at_work):
    call, opened = at_work
    opened.note(Began("4e5f6a7b", 77, "node2", {"slots": 2}))
    opened.ask(1)
    opened.note(Dispatched(3, 1, "covey-4e5f6a7b-3-a1", 0, 0, None))
    entry = {"pid": 77, "host": "node2", "since": "9", "kernel": "another"}
    other = folder_of(opened.journal) / "4e5f6a7b"
    other.write_text(f"{1:020d}\n{json.dumps(entry)}")
    out, run = call("status").out, call("status", "--json").json["run"]
    text = drawn(width=140)
    other.unlink()
    assert "joined by: process 77 on node2" in out
    assert re.search(r"slot 0: trial 3, for .*, by process 77 on node2", out)
    assert re.search(rf"trial 2, for .*, by process {os.getpid()} on ", out)
    assert [one["pid"] for one in run["joined"]] == [77]
    assert run["slots"] == 6
    assert {one["id"]: one["by"] for one in run["under_way"]}[3] == "process 77 on node2"
    assert "and by process 77 on node2" in text
    assert re.search(r"^0 +3 +\d+ s .*process 77 on node2", text, re.MULTILINE)
    assert "joined by" not in call("status").out


def test_a_run_that_joined_and_is_left_alone_is_shown(study):
    assert study("ask").code == 0
    opened = read_settings(Path("covey.toml")).study()
    with Runs(opened.journal, join=True).entered():
        assert f"run: process {os.getpid()} on " in study("status").out
    assert "run: " not in study("status").out


def test_the_picture_shows_the_same_and_obeys_no_escape(at_work):
    text = drawn()
    assert f"run by process {os.getpid()}" in text
    assert "2 of 12 done, 1 failed" in text
    assert "best: 0.75 (trial 0)" in text
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line[:1].isdigit()}
    assert rows["2"][1:3] == ["6", "2"]
    assert rows["2"][5:7] == ["30", "0.5"]
    assert [rows[slot][1] for slot in "013"] == ["free"] * 3
    assert "CUDA out of [31mmemory" in text
    assert "q ends this view" in text
    assert max(map(len, drawn(60).splitlines())) <= 60


def test_trouble_is_said_by_both(at_work):
    call, opened = at_work
    opened.ask(4)
    for id in (3, 4, 5):
        opened.fail(id, f"trial {id}: no CUDA-capable device")
    said = "the last 3 evaluations in a row failed alike: trial 5: no CUDA-capable device"
    assert said in call("status").out
    assert call("status", "--json").json["trouble"] == said
    assert said in drawn()


def test_when_nobody_runs_it(study):
    assert "nothing was asked yet" in study("watch").out
    study("ask")
    out = study("watch").out  # it ends by itself: nothing will change
    assert out.splitlines()[0] == "0 done, 0 running"
    assert "nobody runs it" in drawn()
    assert study("status", "--json").json["run"] is None


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--rounds", "1"], 0, "the budget of 3 evaluations is used up"),
        (["--target", "0.5"], 0, "the target 0.5 is reached by trial "),
        (["--plateau", "3"], 0, " evaluations brought nothing better"),
        (["--rounds", "2"], 1, "the first 4 evaluations failed alike; the last one: the command"),
    ],
)
def test_status_says_why_and_when_the_last_run_ended(study, words, code, said):
    works = "print(1.0)" if code == 0 else "import sys; sys.exit('no such data')"
    assert study("status", "--json").json.get("last_run") is None
    done = study("run", "--batch", "4" if code else "3", *words, "--", sys.executable, "-c", works)
    assert done.code == code
    (line,) = [line for line in study("status").out.splitlines() if line.startswith("last run: ")]
    assert line.startswith("last run: ended 20")
    assert f"(process {os.getpid()} on " in line
    assert said in line
    last = study("status", "--json").json["last_run"]
    assert last["since"] <= last["ended"]
    assert said in last["why"]
    assert "nobody runs it; the last run ended 20" in " ".join(drawn().split())
    assert study("status").out.endswith(", or covey run -- COMMAND as before\n")


@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGKILL])
def test_status_says_that_a_run_was_interrupted_or_killed(study, signal_):
    Path("f.py").write_text("import time\ntime.sleep(60)\nprint(1.0)\n")
    heard = ["env", "--default-signal=INT"]  # the jobs of a script ignore Ctrl-C
    words = [*heard, sys.executable, "-m", "covey", "run", "--workers", "1"]
    runner = subprocess.Popen([*words, "--", sys.executable, "f.py"], stderr=subprocess.DEVNULL)
    while not [*Path("covey.jsonl.work").glob("*/alive")]:
        time.sleep(0.02)
    runner.send_signal(signal_)
    assert runner.wait(300) == (130 if signal_ == signal.SIGINT else -9)
    out = study("status").out
    if signal_ == signal.SIGINT:
        assert re.search(r"last run: ended \S+ \(process .*\): Ctrl-C\n", out)
        return
    assert f"last run: process {runner.pid} on " in out
    assert "ended without a word: it was killed, or its machine went down" in out
    assert study("status", "--json").json["last_run"]["ended"] is None
    study("cancel", "0-2")  # so that the next run ends what is still there
    study("run", "--rounds", "1", "--batch", "1", "--", sys.executable, "-c", "print(1.0)")


def test_a_journal_is_read_again_only_when_it_has_changed(at_work, monkeypatch):
    _, opened = at_work
    look, read = Reader(read_settings(Path("covey.toml"))), []
    monkeypatch.setattr("covey.log.header.reopen", lambda *a, **k: read.append(1) or real(*a, **k))
    assert look().standing.done == look().standing.done == 2
    assert len(read) == 1
    opened.tell(2, 0.5)
    assert look().standing.done == 3
    assert len(read) == 2


def test_lines_while_it_runs(study):
    """A run of another process, watched to its end."""
    Path("f.py").write_text("import time\ntime.sleep(0.3)\nprint(1.0)\n")
    words = [sys.executable, "-m", "covey", "run", "--rounds", "2", "--workers", "2"]
    runner = subprocess.Popen([*words, "--", sys.executable, "f.py"], stderr=subprocess.DEVNULL)
    while not Path("covey.jsonl").exists() or not runs_of(Path("covey.jsonl")):  # it has just begun
        time.sleep(0.02)
    lines = study("watch", "--every", "0.1", "--json").out.splitlines()
    assert runner.wait(300) == 0
    found = [json.loads(line) for line in lines]
    done = [one["run"]["done"] for one in found[:-1]]
    assert done == sorted(done)
    assert {one["run"]["pid"] for one in found[:-1]} == {runner.pid}
    assert found[-1]["run"] is None
    assert found[-1]["trials"] == {"told": 6}
    slots = {one["slot"] for view in found[:-1] for one in view["run"]["under_way"]}
    assert slots <= {0, 1}


def test_q_ends_it_at_a_terminal(at_work):
    """As somebody sees it: on a terminal of its own, until a key is pressed."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "covey", "watch", "--every", "0.1"]
    shown = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text, until = b"", time.monotonic() + 300

    def more() -> bytes:
        with suppress(OSError):  # how the end of a terminal is told
            if select.select([ours], [], [], 0.1)[0]:
                return os.read(ours, 65_536)
        return b""

    while b"q ends this view" not in text and time.monotonic() < until:
        text += more()
    assert shown.poll() is None
    os.write(ours, b"q")
    while shown.poll() is None and time.monotonic() < until:
        text += more()
    assert shown.wait(60) == 0
    assert b"slot" in text
    os.close(ours)


def test_without_a_terminal_there_are_no_keys(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("q"))
    with keys() as pressed:
        assert pressed(0.0) == ""


def test_the_view_is_drawn_until_q_is_pressed(at_work, monkeypatch):
    """In this process: a key that means nothing first, then q; the last look is printed below."""
    call, opened = at_work
    opened.note(Told((2,), (0.5,), (), ({"stopped": 30},)))
    pressed, drawn_views = iter(["x", "", "q"]), []
    monkeypatch.setattr(watching, "keys", lambda: nullcontext(lambda seconds: next(pressed)))
    monkeypatch.setattr(watching, "picture", lambda view: drawn_views.append(view) or "")
    monkeypatch.setattr(watching, "_in_lines", lambda *_, **__: pytest.fail("it is a terminal"))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    out = call("watch").out
    assert len(drawn_views) == 3
    assert "so far: 3 of 12 done, 1 failed, 1 stopped early, " in out
    assert "trials: 1 failed, 2 told, 1 of them stopped early" in out


def test_ctrl_c_ends_the_view_with_a_last_look(at_work, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(watching, "_in_lines", interrupted)
    done = at_work[0]("watch")
    assert done.code == 0
    assert f"run: process {os.getpid()} on " in done.out


def test_status_of_a_damaged_journal_says_what_precedes_the_damage(study):
    study("ask")
    study("tell", "0=0.5")
    study("tell", "1=0.7")
    path = Path("covey.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:-1], lines[-1].replace(b"0.7", b"0.8")]))
    for command in ("status", "watch"):
        done = study(command)
        assert done.code == 6
        assert "best: 0.5 (trial 0)" in done.out
    assert "what follows is only what precedes the damage" in study("status").err
