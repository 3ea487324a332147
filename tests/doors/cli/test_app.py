"""The command itself: help, examples that run, errors in one line."""

import fcntl
import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import covey

COMMANDS = ["init", "ask", "tell", "status", "best", "run", "next", "export", "report", "doctor"]
COMMANDS += ["demo", "journal verify", "journal repair"]


def examples(call, *words):
    lines = call(*words, "--help").out.splitlines()
    return [line.strip() for line in lines if line.strip().startswith("covey ")]


def test_version(call):
    assert call("--version").out == f"covey {covey.__version__}\n"


def test_help_names_the_commands_and_the_exit_codes(call):
    done = call("--help")
    assert done.code == 0
    for command in COMMANDS:
        assert command.split()[0] in done.out
    for code in covey.ExitCode:
        assert f"{code.value} " in done.out
    assert call() == done


def test_help_is_light():
    """No NumPy, let alone SciPy, for a help text."""
    code = (
        "import sys; sys.argv = ['covey', '--help']\n"
        "from covey.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('heavy:', [m for m in ('numpy', 'scipy', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "heavy: []" in done.stdout


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_example_in_the_help_runs(call, command):
    """In a folder as its reader would have it: a study, an open batch, some files."""
    words = command.split()
    found = examples(call, *words)
    assert found
    if words not in (["init"], []):
        space = ["--real", "lr=1e-5:0.1:log", "--integer", "layers=1:8", "--choice", "opt=adam,sgd"]
        call("init", *space, "--batch", "3")
        call("ask", "--out", "batch.csv")
    if words not in (["init"], [], ["tell"], ["ask"]):
        call("tell", "0=0.5", "1=0.7")
    Path("square.py").write_text(
        "import sys\nx = float(sys.argv[1].split('=')[1])\nprint(-(x - 0.01) ** 2)\n"
    )
    rows = "".join(f"{x / 1000},{i},adam,{x}\n" for i, x in enumerate(range(1, 8), start=1))
    Path("results.csv").write_text("lr,layers,opt,value\n" + rows)
    rows = "".join(f"{i},{i},{i * i}\n" for i in range(20))
    Path("candidates.csv").write_text("id,a,b\n" + rows)
    for line in found:
        given = [sys.executable if w == "python" else w for w in shlex.split(line)[1:]]
        done = call(*given)
        assert done.code == 0, (line, done.err)


def test_our_errors_are_one_line_with_an_exit_code(call):
    done = call("demo", "--out", "no/x.png")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("covey: there is no folder")
    assert done.err.count("\n") == 1
    assert call("status").code == 3
    assert call("ask", "--dryrun").code == 2
    assert call("tell").code == 2


def test_errors_are_json_where_data_is(call):
    import json

    done = call("status", "--json")
    assert done.out == ""
    assert json.loads(done.err)["error"] == "conflict"


def test_an_interrupt_has_a_code_of_its_own(call, monkeypatch):
    from covey.cli import look

    def interrupted(*_):
        raise KeyboardInterrupt

    call("init", "--real", "x=0:1")
    monkeypatch.setattr(look, "status", interrupted)
    done = call("status")
    assert done.code == 130
    assert "safe" in done.err


def test_a_command_that_waits_for_a_locked_journal_says_so(study, monkeypatch):
    study("ask", "--out", "batch.csv")
    monkeypatch.setattr("covey.journal.disk._PATIENCE", 0.05)
    theirs = os.open("covey.jsonl", os.O_RDWR)
    fcntl.flock(theirs, fcntl.LOCK_EX)
    threading.Timer(0.5, os.close, (theirs,)).start()
    done = study("tell", "0=1.5")
    assert done.code == 0
    assert f"covey.jsonl is locked by process {os.getpid()}" in done.err
