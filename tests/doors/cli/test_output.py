"""What a command writes: files, text, tables, and exit codes."""

import json
import os
import re
import stat
import sys
import unicodedata
from pathlib import Path

import pytest

import covey
from covey.cli.output import ExitCode, Output, Stop, code_of, printable, say, table, table_cell
from covey.errors import (
    EvaluationError,
    ExhaustedError,
    HistoryError,
    JournalConflict,
    JournalDamaged,
    JournalError,
)


def test_what_cannot_be_written_is_said(tmp_path):
    with pytest.raises(Stop, match=r"/proc/a\.csv"):
        Output(Path("/proc/a.csv")).write("x")
    with pytest.raises(Stop, match="is a folder"):
        Output(tmp_path).write("x")
    with pytest.raises(Stop, match="/no;"):
        Output(tmp_path / "no" / "a.csv").write("x")


def test_a_file_that_is_there_is_kept_unless_forced(tmp_path):
    path = tmp_path / "a.csv"
    Output(path).write("old")
    for before in ("", "old"):
        path.write_text(before)
        with pytest.raises(Stop, match=r"a\.csv .* --force"):
            Output(path).write("new")
        assert path.read_text() == before
    Output(path, force=True).write("new")
    assert path.read_text() == "new"


def test_what_is_needed_is_not_replaced_by_force_either(tmp_path):
    (tmp_path / "covey.toml").write_text("mine")
    (tmp_path / "run.jsonl").write_text('{"covey":1}')
    for output in (
        Output(tmp_path / "covey.toml", (tmp_path / "covey.toml",), force=True),
        Output(tmp_path / "run.jsonl", force=True),
    ):
        before = output.path.read_text()
        with pytest.raises(Stop, match=output.path.name):
            output.write("new")
        assert output.path.read_text() == before


def test_a_file_that_appears_while_the_command_works_is_kept(tmp_path):
    path = tmp_path / "a.csv"
    output = Output(path)
    output.require_free()
    path.write_text("mine")
    with pytest.raises(Stop, match=r"a\.csv .* --force"):
        output.write("new")
    assert path.read_text() == "mine"


def test_a_link_does_not_hide_what_is_behind_it(tmp_path):
    (tmp_path / "a").write_text("mine")
    (tmp_path / "link").symlink_to("a")
    with pytest.raises(Stop, match="--force"):
        Output(tmp_path / "link").write("new")
    with pytest.raises(Stop, match="still needed"):
        Output(tmp_path / "link", (tmp_path / "a",)).require_place()


def test_a_journal_that_does_not_exist_yet_is_not_written_over_either(study):
    assert study("ask", "--out", "covey.jsonl").code == 2
    assert not Path("covey.jsonl").exists()


@pytest.mark.parametrize("words", [("ask",), ("next",), ("export",)])
def test_another_kind_of_workbook_is_not_promised(study, words):
    study("ask")
    done = study(*words, "--out", "plate.ods")
    assert done.code == 2
    assert "name it plate.xlsx or plate.csv" in done.err
    assert not Path("plate.ods").exists()


def test_a_device_is_written_into_by_every_command(study):
    study("ask")
    out = "/dev/null"
    if os.geteuid() == 0:  # who alone can destroy the real one, and can make another
        os.mknod("null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        out = "null"
    for words in (("ask",), ("next", "--batch", "2"), ("export",), ("report",)):
        assert study(*words, "--out", out).code == 0, words
        assert stat.S_ISCHR(Path(out).stat().st_mode)


@pytest.mark.parametrize(
    "words",
    [
        ("ask", "--out", "file.csv"),
        ("next", "--batch", "2", "--out", "file.csv"),
        ("export", "--out", "file.csv"),
        ("report", "--out", "file.html"),
        ("demo", "--batch", "2", "--rounds", "1", "--out", "file.png"),
    ],
    ids=lambda words: words[0],
)
def test_every_command_keeps_a_file_unless_it_is_forced(study, words):
    study("ask")
    path = Path(words[-1])
    path.write_text("typed by hand")
    done = study(*words)
    assert done.code == 3
    assert path.name in done.err
    assert "--force" in done.err
    assert path.read_text() == "typed by hand"
    assert study(*words, "--force").code == 0
    assert b"typed by hand" not in path.read_bytes()


def test_a_file_that_is_kept_is_found_before_anything_is_asked(study):
    Path("batch.csv").write_text("id,value\n")
    assert study("ask", "--out", "batch.csv").code == 3
    assert not Path("covey.jsonl").exists()


def test_a_dry_run_of_ask_prints_the_sheet_and_writes_none(study):
    done = study("ask", "--dry-run", "--out", "batch.csv")
    assert done.code == 0
    assert done.out.startswith("id,lr,layers,opt,value\n0,")
    assert not Path("batch.csv").exists()


# Text and tables


def test_names_cannot_command_the_terminal():
    assert printable("a\x1b]0;x\x07b\u202ec") == "a]0;xbc"
    assert "\x1b" not in table(["\x1b[2J"], [["\x1b[31m"]])


def test_numbers_for_people():
    assert [table_cell(v) for v in (1.23456789, 3, None, "x")] == ["1.235", "3", "", "x"]


def test_talk_does_not_need_a_listener(monkeypatch):
    class Gone:
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr("sys.stderr", Gone())
    say("anybody there?")


EVIL = "a\x1b]0;owned\x07\x1b[2J\x9b31m\rb"
"""Sets the title, clears the screen, turns red, goes back to the start of the line."""


def quiet(text: str) -> bool:
    return not any(unicodedata.category(c) == "Cc" and c not in "\n\t" for c in text)


@pytest.fixture
def evil(call):
    """A study whose name, option, journal and failure all try to command the terminal."""
    option, name = json.dumps(EVIL), json.dumps(f"n{EVIL}")
    Path("covey.toml").write_text(
        f"[study]\njournal = {json.dumps(f'log{EVIL}.jsonl')}\nseed = 0\nbatch = 2\n\n"
        f'[parameters.{name}]\ntype = "choice"\noptions = [{option}, "c", "d", "e"]\n',
        encoding="utf-8",
    )
    return call


WORDS = [
    ["ask"],
    ["ask", "--fix", f"n{EVIL}={EVIL}z"],
    ["tell", "0=1", "1=2"],
    ["tell", f"0={EVIL}"],
    ["tell", "sheet.csv"],
    ["tell", EVIL],
    ["status"],
    ["best"],
    ["run", "--rounds", "2", "--batch", "2", "--", "echo", "3"],
    ["run", "--dry-run", "--", "echo", "{x.n" + EVIL + "}"],
    ["run", "--", EVIL],
    ["export"],
    ["export", "--out", f"{EVIL}/out.csv"],
    ["next", "--batch", "2"],
    ["next", "--choice", f"n={EVIL},b", "--batch", "1"],
    ["init", "--dry-run", "--choice", f"n{EVIL}={EVIL},b"],
    ["journal", "verify", f"log{EVIL}.jsonl"],
    ["journal", "repair", f"log{EVIL}.jsonl", "--out", f"new{EVIL}.jsonl"],
    ["doctor"],
    ["report", "--out", f"{EVIL}.html"],
    ["status", "--config", EVIL],
    [EVIL],
    ["ask", f"--{EVIL}"],
]


@pytest.mark.parametrize("words", WORDS, ids=lambda words: " ".join(words).replace(EVIL, "EVIL"))
def test_no_command_sends_control_characters_to_a_terminal(evil, words, monkeypatch):
    evil("ask")
    Path("sheet.csv").write_text(f'id,value,"n{EVIL}"\n0,"{EVIL}",\n', newline="")
    evil("tell", "0=1")
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    done = evil(*words)
    assert quiet(done.out), done.out
    assert quiet(done.err.replace("\r\x1b[K", "")), done.err  # our own line that is rewritten


@pytest.mark.parametrize("words", [["run", "--rounds", "2", "--", "echo", "3"], ["doctor"]])
def test_what_is_for_people_has_none_through_a_pipe_either(evil, words):
    done = evil(*words)
    assert done.code == 0, done.err
    assert quiet(done.out)


def test_a_sheet_through_a_pipe_is_exact(evil):
    evil("ask")
    assert EVIL in evil("export").out


def test_one_is_one(call):
    """A study of batches of one, from beginning to end: no "1 batches", no "1 trials are"."""
    said = []

    def saying(*words):
        done = call(*words)
        said.append(done.out + done.err)
        return done

    call("init", "--real", "x=0:1", "--batch", "1", "--seed", "0")
    Path("one.csv").write_text("x,value\n0.5,1\n")
    Path("none.csv").write_text("x,value\n0.5,\n")
    Path("odd.csv").write_text("id,value\n0\n")
    for words in (
        ["status"],
        ["ask", "--out", "batch.csv"],
        ["ask"],
        ["status"],
        ["tell", "odd.csv"],
        ["tell", "0=failed"],
        ["ask", "--dry-run"],
        ["ask"],
        ["tell", "1=1"],
        ["ask", "--new", "--batch", "1"],
        ["tell", "2=1", "--dry-run"],
        ["export", "--out", "all.csv"],
        ["next", "--in", "one.csv", "--out", "plate.csv"],
        ["next", "--in", "none.csv", "--batch", "1"],
        ["run", "--dry-run", "--rounds", "1", "--", "echo", "{x.x}"],
        ["run", "--rounds", "1", "--", "echo", "{x.x}"],
        ["journal", "verify", "covey.jsonl"],
        ["doctor"],
    ):
        saying(*words)
    call("init", "--force", "--real", "x=0:1", "--batch", "1", "--seed", "0")
    Path("covey.jsonl").unlink()
    for flags in ([], ["--async"]):
        saying("run", "--rounds", "1", *flags, "--", "false", "{x.x}")
    saying("journal", "verify", "covey.jsonl")
    nouns = "batches|points|trials|results|rows|events|evaluations|failures|cells|columns"
    wrong = re.findall(rf"(?:^|[^\d.])1 (?:{nouns})\b.*|all 1 .*|last 1 .*", "\n".join(said))
    assert wrong == []


# Exit codes


def test_each_error_has_its_code():
    assert covey.ExitCode is ExitCode
    for error, code in (
        (JournalDamaged("x"), 6),
        (JournalConflict("x"), 3),
        (JournalError("x"), 1),
        (ExhaustedError("x"), 7),
        (HistoryError("x"), 5),
        (EvaluationError("x"), 1),
    ):
        assert code_of(error) == code
