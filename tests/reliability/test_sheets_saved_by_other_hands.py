"""Sheets saved by other hands: whatever a spreadsheet made of a filled sheet, no command loses it.

Each way of saving keeps the three values that somebody typed in. `tell` takes the sheet or refuses
it; after that every command that writes a file is pointed at it, and it stays as it is, byte for
byte.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from covey.cli import main

VALUES = ("1.25", "2.5", "3.75")
SPACE = ("--real", "x=0:1", "--choice", "solvent=DMF,water")


@pytest.fixture
def covey(tmp_path, monkeypatch):
    """Run `covey WORDS...` in an empty folder; its exit code."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["covey", *words])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0)

    return run


def filled(sheet: str) -> str:
    first, *rows = sheet.splitlines()
    lines = [first, *(row + value for row, value in zip(rows, VALUES, strict=True))]
    return "\n".join(lines) + "\n"


def noted(text: str) -> str:
    return text.replace(VALUES[0], f"{VALUES[0]},the stirrer stopped")


def trailing(text: str) -> str:
    return "".join(f"{line},,\n" for line in text.splitlines())


WAYS = {
    "as it was written": lambda text: text.encode(),
    "with semicolons": lambda text: text.replace(",", ";").replace(".", ",").encode(),
    "in an old code page": lambda text: f"{text},,,größe\n".encode("cp1252"),
    "as Unicode text": lambda text: text.replace(",", "\t").encode("utf-16"),
    "with a note beside a row": lambda text: noted(text).encode(),
    "with a column renamed": lambda text: text.replace("value", "Value").encode(),
    "with a title above": lambda text: f"Plate 7\n{text}".encode(),
    "with trailing commas": lambda text: trailing(text).encode(),
    "with tabs": lambda text: text.replace(",", "\t").encode(),
    "with line ends of Windows": lambda text: text.replace("\n", "\r\n").encode(),
    "with a byte order mark": lambda text: text.encode("utf-8-sig"),
    "as a workbook": lambda text: b"PK\x03\x04" + text.encode(),
}
VERBS = {
    "ask": ("ask", "--out", "b.csv"),
    "ask for more": ("ask", "--new", "--out", "b.csv"),
    "next": ("next", "--batch", "3", "--out", "b.csv"),
    "next with the same columns": (
        *("next", "--real", "id=0:9", *SPACE, "--batch", "3", "--out", "b.csv"),
    ),
    "export": ("export", "--out", "b.csv"),
    "report": ("report", "--out", "b.csv"),
    "init": ("init", *SPACE, "--config", "b.csv"),
}


@pytest.fixture
def asked(covey):
    assert covey("init", *SPACE, "--batch", "3", "--seed", "0") == 0
    assert covey("ask", "--out", "b.csv") == 0
    return covey


@pytest.mark.parametrize("way", WAYS)
def test_a_filled_sheet_outlives_every_command(asked, way):
    sheet = Path("b.csv")
    kept = WAYS[way](filled(sheet.read_text()))
    sheet.write_bytes(kept)
    told = asked("tell", "b.csv")
    assert told in (0, 5)
    assert (told == 0) == (way in TAKEN)
    for name, words in VERBS.items():
        code = asked(*words)
        assert sheet.read_bytes() == kept, name
        assert code in (2, 3), name
    assert asked("journal", "verify", "covey.jsonl") == 0


KNOWN = (
    "as it was written",
    "with semicolons",
    "as Unicode text",
    "with trailing commas",
    "with tabs",
    "with line ends of Windows",
    "with a byte order mark",
)
TAKEN = (*KNOWN, "with a column renamed", "with a title above")


@pytest.mark.parametrize("words", VERBS.values(), ids=VERBS)
def test_what_is_no_sheet_at_all_is_kept_too(asked, words):
    """A control: the guard does not know sheets, it knows what would be lost."""
    for kept in (b"dear diary\n", b"\x00\xff" * 50, b'{"a": 1}\n', b"id,x,solvent,value\n0,?,?,\n"):
        Path("b.csv").write_bytes(kept)
        assert asked(*words) in (2, 3)
        assert Path("b.csv").read_bytes() == kept


@pytest.mark.parametrize("words", VERBS.values(), ids=VERBS)
def test_a_journal_is_never_written_over(asked, words):
    """Not that of the study, nor a copy or another study's under any name."""
    kept = Path("covey.jsonl").read_bytes()
    Path("b.csv").write_bytes(kept)
    assert asked(*words) in (2, 3)
    assert Path("b.csv").read_bytes() == kept
    assert asked(*[word.replace("b.csv", "covey.jsonl") for word in words]) in (2, 3)
    assert Path("covey.jsonl").read_bytes() == kept


@pytest.mark.parametrize("name", [n for n in VERBS if n != "ask for more"])
def test_with_force_any_file_is_replaced_and_without_it_none(asked, name):
    """The other control: a guard that refuses everything would pass all of the above."""
    out, words = Path("again.csv"), [w.replace("b.csv", "again.csv") for w in VERBS[name]]
    assert asked(*words) == 0
    first = out.read_bytes()
    assert asked(*words) in (2, 3)
    assert out.read_bytes() == first
    assert asked(*words, "--force") == 0
    assert len(out.read_bytes()) == len(first)
