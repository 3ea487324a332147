import json
import sys
import unicodedata
from pathlib import Path

import pytest

from covey.cli.voice import number, printable, say, table


def test_names_cannot_command_the_terminal():
    assert printable("a\x1b]0;x\x07b\u202ec") == "a]0;xbc"
    assert "\x1b" not in table(["\x1b[2J"], [["\x1b[31m"]])


def test_numbers_for_people():
    assert [number(v) for v in (1.23456789, 3, None, "x")] == ["1.235", "3", "", "x"]


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
