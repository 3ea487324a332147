"""The errata of the paper name tests: those exist, and every number has its row."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ERRATA = ROOT / "papers" / "kathuria2016" / "ERRATA.md"
ROW = re.compile(r"^\| (E\d+) \|(.*)\|$", re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def missing(text):
    """The tests named in a text that are nowhere."""
    return [
        f"{path}::{name}"
        for path, name in NAMED.findall(text)
        if name not in functions_of(ROOT / path)
    ]


def functions_of(path):
    """The functions that a file defines; none if there is no file."""
    if not path.exists():
        return set()
    return {n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)}


def test_every_test_the_errata_name_exists():
    text = ERRATA.read_text()
    assert text.count("::test_") == len(NAMED.findall(text)) > 30
    assert missing(text) == []


@pytest.mark.parametrize("name", ["test_errata.py::test_nothing", "test_nothing.py::missing"])
def test_a_test_that_does_not_exist_is_noticed(name):
    good = "`tests/papers/test_errata.py::test_every_test_the_errata_name_exists`"
    assert missing(f"{good}, `tests/papers/{name}`") == [f"tests/papers/{name}"]


def test_every_number_has_one_row_that_says_how_it_is_known():
    rows = ROW.findall(ERRATA.read_text())
    numbers = [number for number, _ in rows]
    assert sorted(numbers, key=lambda e: int(e[1:])) == [f"E{i}" for i in range(1, 30)]
    for number, row in rows:
        how = row.rsplit(" | ", 1)[1]
        assert NAMED.search(how) or how.strip() in ("a matter of notation", "not decided"), number


def test_every_test_of_the_errata_is_in_the_table():
    """What the two files of laws test, the table lists."""
    named = {name for _, name in NAMED.findall(ERRATA.read_text())}
    for file in ("test_the_papers_misprints.py", "test_theorems_that_do_not_go_through.py"):
        found = {n for n in functions_of(ROOT / "tests" / "laws" / file) if n.startswith("test_")}
        assert found <= named
