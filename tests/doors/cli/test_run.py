"""`covey run`, as it is meant to be used: killed, started again, run twice at once."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import covey
from covey.cli.run import Watch
from covey.log import runs_of
from covey.run.plan import Progress

KILLS = int(os.environ.get("COVEY_KILLS", "8"))

# Each evaluation signs a file when it ends; the sleep gives a kill something to interrupt.
OBJECTIVE = """
import os, sys, time
x, trial = float(sys.argv[1].split("=")[1]), sys.argv[2]
time.sleep(0.05)
fd = os.open("ended", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(fd, (trial + "\\n").encode())
print("some talk")
print(-(x - 0.3) ** 2)
"""


@pytest.fixture
def folder(call):
    command = ["--", sys.executable, "f.py", "--x={x.x}", "{id}"]
    call("init", "--real", "x=0:1", "--batch", "4", "--seed", "5", *command)
    Path("f.py").write_text(OBJECTIVE)
    return call


def trials(path="covey.jsonl"):
    return [
        (t.id, t.status, t.value) for t in covey.Study.load(path, read_only=True).history.trials
    ]


def test_a_run_from_the_file(folder):
    done = folder("run", "--rounds", "2", "--json")
    assert done.code == 0, done.err
    assert done.json["value"] <= 0.0
    assert Counter(status for _, status, _ in trials()) == {"told": 8}
    assert len(Path("ended").read_text().split()) == 8
    again = folder("run", "--rounds", "2")  # nothing is left to do
    assert again.code == 0
    assert "raise --rounds" in again.err
    assert len(Path("ended").read_text().split()) == 8


@pytest.mark.parametrize("retries", [0, 1])
def test_what_a_signal_kills_fails_after_its_retries(call, retries):
    """As many as the file says, or the command line."""
    code = 'case "$1" in 0.[0-4]*) echo "$1";; *) kill -9 $$;; esac'
    call(
        "init",
        "--real",
        "x=0:1",
        "--batch",
        "6",
        "--seed",
        "5",
        "--",
        "sh",
        "-c",
        code,
        "sh",
        "{x.x}",
    )
    Path("covey.toml").write_text(Path("covey.toml").read_text() + "retries = 0\n")
    done = call("run", "--rounds", "1", *(["--retries", "1"] if retries else []))
    assert done.code == 0, done.err
    history = covey.Study.load("covey.jsonl", read_only=True).history
    assert Counter(trial.status for trial in history.trials) == {"told": 3, "failed": 3}
    for trial in history.trials:
        assert trial.status == ("failed" if trial.point["x"] >= 0.5 else "told")
        assert len(history.attempts(trial.id)) == 1 + retries * (trial.status == "failed")
    assert "SIGKILL" in history.failed[0].reason


def test_a_dry_run_shows_json_where_that_is_wanted(folder):
    shown = folder("run", "--dry-run", "--rounds", "3", "--json").json
    assert (shown["schema"], shown["dry_run"], shown["rounds"]) == ("covey.run/1", True, 3)
    assert shown["command"]
    assert not Path("covey.jsonl").exists()


def test_a_dry_run_shows_the_command(folder):
    done = folder("run", "--dry-run", "--rounds", "3")
    assert done.out.startswith(f"{sys.executable} f.py --x=0.")
    assert "3 batches of 4" in done.err
    assert not Path("covey.jsonl").exists()


def test_what_cannot_be_run_says_why(call):
    call("init", "--real", "x=0:1")
    assert call("run").code == 2
    done = call("run", "--", "python", "f.py", "{x.y}")
    assert done.code == 5
    assert "x.y" in done.err
    missing = call("run", "--rounds", "1", "--batch", "2", "--", "no-such-program", "{x.x}")
    assert missing.code == 3
    Path("f.sh").write_text("#!/bin/sh\necho 1\n")
    done = call("run", "--rounds", "1", "--batch", "2", "--", "./f.sh", "{x.x}")
    assert done.code == 3
    assert "chmod +x ./f.sh" in done.err
    assert not Path("covey.jsonl").exists()


def test_a_typo_in_the_name_of_the_script_is_taken_back_by_a_retry(folder):
    """The user's way back: read the message, retry, type it right, run again."""
    done = folder("run", "--rounds", "2", "--", sys.executable, "nope.py", "--x={x.x}", "{id}")
    assert done.code == 1
    assert "No such file" in done.err
    assert "covey retry 0,1,2,3" in done.err
    assert [status for _, status, _ in trials()] == ["failed"] * 4
    assert folder("retry", "0,1,2,3").code == 0
    assert folder("run", "--rounds", "2").code == 0
    assert [status for _, status, _ in trials()] == ["told"] * 8


def test_failed_trials_are_run_again_once_they_are_retried(folder):
    Path("f.py").write_text("import sys\nsys.exit('seen before')\n")
    assert folder("ask").code == 0
    assert folder("fail", "0", "--reason", "the command ended with status 1: seen before").code == 0
    assert folder("run", "--rounds", "1").code == 1  # of a known kind: all of them have failed
    assert [status for _, status, _ in trials()] == ["failed"] * 4
    Path("f.py").write_text(OBJECTIVE)
    done = folder("retry", "0-3", "--json")
    assert done.json["ids"] == [0, 1, 2, 3]
    assert folder("run", "--rounds", "2").code == 0
    assert [status for _, status, _ in trials()] == ["told"] * 8


def test_a_small_space_ends_a_run_early_and_it_says_so(call):
    call("init", "--integer", "n=1:3", "--batch", "2", "--", "echo", "{x.n}")
    done = call("run", "--rounds", "5")
    assert done.code == 0
    assert "exhausted after 3 of 10" in done.err


def test_a_command_runs_where_its_file_is(call):
    Path("sub").mkdir()
    Path("sub/f.py").write_text("print(1.0)")
    command = ["--", sys.executable, "f.py", "{x.x}"]
    call("init", "--config", "sub/covey.toml", "--real", "x=0:1", "--batch", "1", *command)
    done = call("run", "--config", "sub/covey.toml", "--rounds", "1")
    assert done.code == 0, done.err


def start(*words):
    heard = ["env", "--default-signal=INT"]  # the jobs of a script ignore Ctrl-C
    command = [*heard, sys.executable, "-m", "covey", "run", "--rounds", "4", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_killed_again_and_again_it_ends_as_if_undisturbed(folder):
    """Every value once, no evaluation that ended repeated, the same trials in the end."""
    undisturbed = start()
    undisturbed.communicate(timeout=300)
    assert undisturbed.returncode == 0
    expected = trials()
    moments = random.Random(7)
    for _ in range(0, KILLS, 8):  # a fresh study each time: most of a life should be work
        for name in ("covey.jsonl", "ended"):
            Path(name).unlink()
        for _ in range(8):
            run = start()
            time.sleep(moments.uniform(0.1, 1.6))
            run.send_signal(signal.SIGKILL)
            run.communicate()
        last = start()
        _, err = last.communicate(timeout=300)
        assert last.returncode == 0, err
        assert trials() == expected
        assert max(Counter(Path("ended").read_text().split()).values()) == 1


def test_a_second_run_is_told_who_holds_the_journal(folder):
    Path("f.py").write_text(OBJECTIVE.replace("0.05", "600"))
    first = start()
    try:
        while not runs_of(Path("covey.jsonl")):
            time.sleep(0.02)
        second = start("--json")
        _, err = second.communicate(timeout=300)
        assert second.returncode == 3
        assert f"process {first.pid} on " in json.loads(err.splitlines()[-1])["message"]
    finally:
        first.send_signal(signal.SIGINT)
        out, err = first.communicate(timeout=300)
    assert first.returncode == 130
    assert out == ""
    assert "run the same command again" in err
    assert all(status in ("told", "pending") for _, status, _ in trials())


def test_status_knows_that_a_run_is_at_work(folder):
    Path("f.py").write_text(OBJECTIVE.replace("0.05", "600"))
    first = start("--workers", "2")
    try:
        until = time.monotonic() + 300
        found = None
        while not (found and found["running"]):
            assert time.monotonic() < until
            found = folder("status", "--json").json.get("run")
        assert found["pid"] == first.pid
        assert found["running"] in (1, 2)
        out = folder("status").out
        assert re.search(rf"run: process {first.pid} on .*, since 20.*, [12] running", out)
        assert "next: covey run is at work" in out
        assert "covey tell" not in out
    finally:
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=300)
    assert "at work" not in folder("status").out
    assert folder("status", "--json").json["run"] is None


def test_progress_is_a_line_now_and_then_without_a_terminal(capsys):
    watch = Watch()
    for done in range(5):
        watch(Progress(done, 4, 1, 0, None if done < 1 else 0.5, "trial 3", 12.0))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2  # the first and the last
    assert lines[0] == "0/4 done, 1 running, 0 failed, best -, about 12 s left; waiting for trial 3"
    Watch(quiet=True)(Progress(1, 4, 1, 0, None, "x", None))
    assert capsys.readouterr().err == ""


def test_on_a_terminal_one_line_is_rewritten(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    watch = Watch()
    watch(Progress(1, 2, 1, 0, 0.5, "trial 1", None))
    watch(Progress(2, 2, 0, 0, 0.5, "nothing", None))
    assert capsys.readouterr().err.count("\r\x1b[K") == 2


@pytest.mark.parametrize(
    "words",
    [
        ["--", "echo", "{x.y}"],
        ["--", "echo", "{slots}"],
        ["--timeout", "0", "--", "echo", "{x.x}"],
        ["--config", "workers.toml", "--", "echo", "{x.x}"],
        ["--config", "rounds.toml", "--", "echo", "{x.x}"],
    ],
    ids=" ".join,
)
def test_what_cannot_run_leaves_no_journal(call, words):
    call("init", "--real", "x=0:1")
    text = Path("covey.toml").read_text()
    Path("workers.toml").write_text(text + "\nworkers = 0\n")
    Path("rounds.toml").write_text(text + "\nrounds = 0\n")
    done = call("run", *words)
    assert done.code == 5
    assert not Path("covey.jsonl").exists()


def test_a_placeholder_that_is_no_parameter_is_not_suggested(call):
    call("init", "--real", "lr=0:1")
    assert "Did you mean 'x.slot'" not in call("run", "--", "echo", "{slots}").err
    assert "{x.lr}, if lr is one" in call("run", "--", "echo", "{lr}").err
    assert "Did you mean 'seed'?" in call("run", "--", "echo", "{sed}").err


def test_a_batch_that_fails_shows_the_command_to_try_by_hand(call):
    call("init", "--real", "x=0.5:0.75", "--batch", "2", "--seed", "0")
    done = call("run", "--rounds", "1", "--", "false", "--x={x.x}", "a b")
    assert done.code == 1
    assert re.search(r"Try it by hand: false --x=0\.\d+ 'a b'$", done.err.strip())
    Path("covey.jsonl").unlink()
    done = call("run", "--rounds", "1", "--", "false")
    assert re.search(r"""by hand: echo '{"x": 0\.\d+}' \| false$""", done.err.strip())


def test_after_init_with_a_command_the_advice_is_to_run_it(call):
    assert "covey run" in call("init", "--real", "x=0:1", "--", "echo", "{x.x}").err
    assert "next: covey run" in call("status").out
    call("run", "--rounds", "1")
    assert "next: covey run" in call("status").out
    assert "covey ask" in call("init", "--force", "--real", "x=0:1").err


def test_a_run_that_took_up_what_was_open_does_not_say_that_there_was_nothing_to_do(call):
    call("init", "--real", "x=0:1", "--batch", "2", "--seed", "0")
    call("ask")
    words = ("run", "--rounds", "1", "--", "echo", "{x.x}")
    assert "used up before" not in call(*words).err
    assert "used up before" in call(*words).err


def test_more_rounds_are_not_the_advice_where_the_space_is_exhausted(call):
    call("init", "--integer", "n=1:3", "--batch", "2", "--seed", "0")
    for _ in range(2):
        done = call("run", "--rounds", "5", "--", "echo", "{x.n}")
        assert "exhausted after 3 of 10" in done.err
        assert "used up before" not in done.err
