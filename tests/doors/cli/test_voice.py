import json
import re
import sys
import unicodedata
from pathlib import Path

import pytest

from covey.cli.output import printable, say, table, table_cell


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
