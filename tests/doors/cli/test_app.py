"""The command itself: help, examples that run, errors in one line."""

import fcntl
import os
import re
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import covey
from covey import disk

COMMANDS = ["init", "ask", "tell", "status", "best", "run", "next", "export", "report", "doctor"]
COMMANDS += ["logs", "demo", "journal verify", "journal repair"]
COMMANDS += ["add", "amend", "exclude", "include", "fail", "cancel", "retry", "note", "extend"]


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


WRITES = [
    ["init", "--real", "z=0:1", "--config", "other.toml"],
    ["ask", "--new"],
    ["tell", "0=1.5"],
    ["add", "results.csv"],
    ["fail", "0-1", "--reason", "too hot"],
    ["cancel", "1,2"],
    ["note", "0", "cloudy"],
    ["run", "--rounds", "2", "--", "echo", "{x.lr}"],
    ["next", "--in", "results.csv", "--batch", "2", "--out", "plate.csv"],
    ["next", "--in", "results.csv", "--batch", "2", "--journal", "plates.jsonl"],
]


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("words", WRITES, ids=lambda words: words[0])
def test_what_writes_can_be_tried_dry(study, words, tmp_path):
    assert study("ask").code == 0
    (tmp_path / "results.csv").write_text("lr,layers,opt,value\n0.01,3,adam,1.5\n")
    before = files(tmp_path)
    assert study(words[0], "--dry-run", *words[1:]).code == 0
    assert files(tmp_path) == before
    assert study(*words).code == 0
    assert files(tmp_path) != before  # the control: in earnest it writes


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"demo"}))
def test_what_is_shown_can_be_had_as_json(call, command):
    assert "--json" in call(*command.split(), "--help").out


def test_a_mistyped_command_is_guessed(call):
    done = call("aks")
    assert done.code == 2
    assert "Did you mean 'ask'?" in done.err
    done = call("journal", "verfy", "--json")
    assert done.code == 2
    assert "verify" in done.err


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
    """In a folder as its reader would have it: a study, a pending batch, some files."""
    words = command.split()
    found = examples(call, *words)
    assert found
    if words not in (["init"], []):
        space = ["--real", "lr=1e-5:0.1:log", "--integer", "layers=1:8", "--choice", "opt=adam,sgd"]
        call("init", *space, "--batch", "3")
        call("ask", *(["--out", "batch.csv"] if words != ["ask"] else []))
    if words == ["retry"]:
        call("fail", "0-2")
    elif words not in (["init"], [], ["tell"], ["ask"]):
        call("tell", "0=0.5", "1=0.7")
    if words == ["include"]:
        call("exclude", "0", "--reason", "wrong vial")
    if words == ["extend"]:
        with Path("covey.toml").open("a") as file:
            file.write('[parameters.pressure]\ntype = "real"\nlow = 0.5\nhigh = 2.0\n')
    Path("square.py").write_text(
        "import sys\nx = float(sys.argv[1].split('=')[1])\nprint(-(x - 0.01) ** 2)\n"
    )
    rows = "".join(f"{x / 1000},{i},adam,{x}\n" for i, x in enumerate(range(1, 8), start=1))
    Path("results.csv").write_text("lr,layers,opt,value\n" + rows)
    rows = "".join(f"dye {i},{i},{i * i}\n" for i in range(20))
    Path("candidates.csv").write_text("id,a,b\n" + rows)
    Path("ligands.csv").write_text("ligand,cone,pKa\nXPhos,256,3.1\nSPhos,240,4.0\nPPh3,145,2.7\n")
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
    from covey.cli import watch

    def interrupted(*_):
        raise KeyboardInterrupt

    call("init", "--real", "x=0:1")
    monkeypatch.setattr(watch, "read_settings", interrupted)
    done = call("status")
    assert done.code == 130
    assert "safe" in done.err


def write_settings(parameter='type = "real"\nlow = 0\nhigh = 1\n', more=""):
    Path("covey.toml").write_text(f"{more}\n[parameters.x]\n{parameter}", encoding="utf-8")


DIGITS = "9" * 5000

WRONG_FILES = {
    "a type that is a list": {"parameter": 'type = ["real"]\nlow = 0\nhigh = 1\n'},
    "a type that is a table": {"parameter": "type = {a = 1}\nlow = 0\nhigh = 1\n"},
    "lists within lists": {"more": f"[run]\ncommand = {'[' * 5000}{']' * 5000}"},
    "tables within tables": {"more": f"[run]\ncommand = {'{a=' * 5000}1{'}' * 5000}"},
    "an integer of 5000 digits": {"parameter": f'type = "integer"\nlow = 0\nhigh = {DIGITS}\n'},
    "a seed of 5000 digits": {"more": f"[study]\nseed = 0x{DIGITS}"},
    "a batch of 5000 digits": {"more": f"[study]\nbatch = -0x{DIGITS}"},
}


@pytest.mark.parametrize("wrong", WRONG_FILES)
def test_a_file_that_makes_no_sense_is_refused_in_a_sentence(call, wrong):
    write_settings(**WRONG_FILES[wrong])
    done = call("ask")
    assert done.code == 5
    assert done.err.startswith("covey: covey.toml")
    assert done.err.count("\n") == 1
    assert "defect" not in done.err  # it is the file that is wrong, not covey
    assert not Path("covey.jsonl").exists()


@pytest.mark.parametrize("number", ["9" * 5000, "１" * 5000])
def test_an_id_of_thousands_of_digits_is_no_trial(study, number):
    study("ask")
    Path("r.csv").write_text(f"id,value\n{number},1\n")
    for words in ([f"{number}=1"], ["r.csv"]):
        done = study("tell", *words)
        assert done.code == 5
        assert "an id is a whole number" in done.err
        assert "defect" not in done.err


NOT_UTF8 = "a\udcff"  # what Python makes of the byte 0xff of a command line


@pytest.mark.parametrize(
    "words",
    [
        ["init", "--real", f"{NOT_UTF8}=0:1"],
        ["init", "--choice", f"c={NOT_UTF8},b"],
        ["init", "--real", "x=0:1", "--", "echo", NOT_UTF8],
        ["init", "--dry-run", "--real", f"{NOT_UTF8}=0:1"],
        ["next", "--real", f"{NOT_UTF8}=0:1", "--out", "plate.csv"],
        ["next", "--choice", f"c={NOT_UTF8},b", "--out", "plate.csv"],
    ],
    ids=" ".join,
)
def test_words_that_are_not_utf_8_are_refused_before_anything_is_written(call, words):
    done = call(*words)
    assert done.code in (2, 5)
    assert "not UTF-8" in done.err
    assert list(Path().iterdir()) == []


def test_a_name_with_a_delete_character_is_written_as_it_can_be_read(call):
    assert call("init", "--real", "a\x7f=0:1", "--choice", "b=c\x7f,d").code == 0
    done = call("ask", "--json")
    assert done.code == 0, done.err
    assert "\x7f" not in done.out
    assert set(done.json["trials"][0]["point"]) == {"a\x7f", "b"}


ENDLESS = Path("/dev/zero")


@pytest.mark.skipif(not ENDLESS.exists(), reason="no endless file here")
@pytest.mark.parametrize(
    "words",
    [["tell", "/dev/zero"], ["status", "--config", "/dev/zero"], ["next", "--in", "/dev/zero"]],
    ids=" ".join,
)
def test_a_file_without_end_is_refused_after_a_bounded_look(study, words):
    study("ask")
    done = study(*words)
    assert done.code == 5
    assert "/dev/zero" in done.err
    assert "larger than" in done.err


def test_a_sheet_may_still_come_through_a_pipe(study):
    study("ask")
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_text("id,value\n0,1.5\n"))
    writer.start()
    done = study("tell", "pipe")
    writer.join()
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("odd"), 5),
        (TypeError("odd"), 5),
        (RecursionError("odd"), 5),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "odd"), 5),
        (MemoryError(), 1),
        (KeyError("odd"), 1),
        (AssertionError("odd"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_nobody_thought_of_is_one_sentence_and_where_to_report_it(
    call, monkeypatch, error, code
):
    from covey.cli import watch

    def surprised(*_):
        raise error

    call("init", "--real", "x=0:1")
    monkeypatch.setattr(watch, "read_settings", surprised)
    done = call("status")
    assert done.code == code
    assert done.err.count("\n") == 1
    assert type(error).__name__ in done.err
    assert "test_app.py" in done.err  # where it was raised
    assert "covey doctor" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--workers", "0"], "--workers"),
        (["ask", "--batch", "many"], "--batch"),
        (["ask", "--label", "x"], "--label"),
        (["next", "--seed", "-1"], "--seed"),
        (["journal", "repair", "x"], "--out"),
        (["tell"], "results"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_wrong_option_is_named_in_a_sentence_that_ends(call, words, said):
    done = call(*words)
    assert done.code == 2
    assert said in done.err.lower()  # the lowest typer writes RESULTS
    assert re.search(r"[^.]\. See --help\.\n$", done.err)


def test_what_a_row_does_wrong_is_a_sentence_of_its_own(study):
    Path("r.csv").write_text("lr,layers,opt,value\n9,1,adam,1\n")
    done = study("next", "--in", "r.csv")
    assert done.code == 5
    assert re.search(r"[^.]\. Nothing was recorded\. --skip-unknown .*[^.]\.\n$", done.err)


def test_a_command_that_waits_for_a_locked_journal_says_so(study, monkeypatch):
    study("ask", "--out", "batch.csv")
    theirs = os.open("covey.jsonl", os.O_RDWR)
    fcntl.flock(theirs, fcntl.LOCK_EX)
    warn = disk._warn_of_lock

    def warn_and_release(fd, path):
        warn(fd, path)
        os.close(theirs)

    monkeypatch.setattr(disk, "_PATIENCE", 0.05)
    monkeypatch.setattr(disk, "_warn_of_lock", warn_and_release)
    done = study("tell", "0=1.5")
    assert done.code == 0
    assert f"covey.jsonl is locked by process {os.getpid()}" in done.err


def test_the_version_and_where_the_exit_codes_are(call):
    assert call("--version").out.startswith("covey ")
    assert "6 journal" in call("--help").out.replace("\n ", "")


def test_the_config_may_come_from_the_environment(study, monkeypatch, tmp_path):
    (tmp_path / "covey.toml").rename(tmp_path / "other.toml")
    assert study("status").code == 3
    assert study("status", "--config", "other.toml").code == 0
    monkeypatch.setenv("COVEY_CONFIG", "other.toml")
    assert study("status").code == 0
