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


def test_a_file_is_replaced_where_nothing_is_lost(tmp_path):
    path = tmp_path / "a.csv"
    for before in (None, "", "new"):
        if before is not None:
            path.write_text(before)
        Output(path).write("new")
        assert path.read_text() == "new"
    path.write_text("mine")
    with pytest.raises(Stop, match=r"a\.csv holds something .* name another file"):
        Output(path).write("new")
    Output(path, ours=lambda file: file.read() == b"mine").write("new")
    assert path.read_text() == "new"


def test_a_file_that_fills_while_the_command_works_is_kept(tmp_path):
    path = tmp_path / "a.csv"
    output = Output(path)
    output.require_free()
    path.write_text("mine")
    with pytest.raises(Stop, match="is kept"):
        output.write("new")
    assert path.read_text() == "mine"


def test_a_link_does_not_hide_what_is_behind_it(tmp_path):
    (tmp_path / "a").write_text("mine")
    (tmp_path / "link").symlink_to("a")
    with pytest.raises(Stop, match="is kept"):
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


def test_a_plate_that_was_not_measured_yet_is_not_replaced_by_another(call):
    """Files only: there is no journal that knows what is on the plate in the laboratory."""
    words = ("next", "--real", "x=0:1", "--batch", "2", "--out", "p.csv")
    assert call(*words).code == 0
    blank = Path("p.csv").read_text()
    assert call(*words).code == 0  # the same plate: nothing is lost
    done = call(*words, "--seed", "5")
    assert done.code == 3
    assert "p.csv holds something" in done.err
    assert Path("p.csv").read_text() == blank


def test_an_export_is_made_again_but_not_over_results_that_were_typed_into_it(study):
    study("ask")
    assert study("export", "--out", "all.csv").code == 0
    study("tell", "0=1.5", "1=failed")
    assert study("export", "--out", "all.csv").code == 0
    kept = Path("all.csv").read_text().replace("2,pending,,", "2,pending,7.5,")
    assert "7.5" in kept
    Path("all.csv").write_text(kept)
    assert study("export", "--out", "all.csv").code == 3
    assert Path("all.csv").read_text() == kept


def test_a_note_typed_into_an_export_is_kept(study):
    study("ask")
    assert study("export", "--out", "all.csv").code == 0
    lines = Path("all.csv").read_text().splitlines()
    place = lines[0].split(",").index("reason")
    cells = lines[1].split(",")
    cells[place] = "spilt"
    kept = "\n".join([lines[0], ",".join(cells), *lines[2:]]) + "\n"
    Path("all.csv").write_text(kept)
    assert study("export", "--out", "all.csv").code == 3
    assert Path("all.csv").read_text() == kept


def test_a_blank_sheet_of_an_earlier_batch_makes_room_for_the_next(study):
    study("ask", "--out", "batch.csv")
    study("tell", "0=1", "1=2", "2=3")
    assert study("ask", "--out", "batch.csv").code == 0
    assert Path("batch.csv").read_text().splitlines()[1].startswith("3,")


def test_force_replaces_what_describes_a_study_and_nothing_else(call):
    Path("covey.toml").write_text("[study]\ngoal = max  # no TOML\n")
    assert call("init", "--real", "x=0:1").code == 3
    assert call("init", "--real", "x=0:1", "--force").code == 0
    Path("pyproject.toml").write_text('[project]\nname = "mine"\n')
    assert call("init", "--real", "x=0:1", "--force", "--config", "pyproject.toml").code == 3
    assert "mine" in Path("pyproject.toml").read_text()


def test_a_dry_run_of_ask_prints_the_sheet_and_writes_none(study):
    done = study("ask", "--dry-run", "--out", "batch.csv")
    assert done.code == 0
    assert done.out.startswith("id,lr,layers,opt,value\n0,")
    assert not Path("batch.csv").exists()


def test_a_sheet_whose_results_were_told_gives_way_to_the_next_batch(study):
    """The same name batch after batch; but not over a value that the journal does not know."""
    assert study("ask", "--out", "batch.csv").code == 0
    path = Path("batch.csv")
    head, *rows = path.read_text().splitlines()
    filled = [row + str(i) for i, row in enumerate(rows)]
    path.write_text("\n".join([head, *filled]) + "\n")
    assert study("ask", "--out", "batch.csv").code == 3  # nothing of it was told yet
    assert study("tell", "batch.csv").code == 0
    assert study("ask", "--out", "batch.csv").code == 0
    again = path.read_text()
    assert again.splitlines()[1] not in filled
    path.write_text("\n".join([head, filled[0] + "5", *filled[1:]]) + "\n")
    assert study("ask", "--out", "batch.csv").code == 3  # 05 was told, and here is 055


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
