"""R3 and R7: a line cut anywhere costs nobody an event."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.reliability.alone import Child, alone
from tests.reliability.mutants import planted
from tests.reliability.verdict import SCALE, Broken, demand, stored

from covey.errors import JournalError
from covey.log import journal as lines
from covey.log.journal import Journal, read

SIZES = (0, 700, 4200) if SCALE < 10 else (0, 700, 4200, 36000)  # of a result, and of batches
OLD = "an event that was acknowledged before is gone"
NEW = "an event that was acknowledged after is gone"


def started(path: Path) -> bytes:
    """A journal with two events, the bytes of it."""
    with Journal.create(path, {"study": "demo"}) as journal:
        for n in range(2):
            journal.append({"n": n})
    return path.read_bytes()


def judge_after_death(path: Path, whole: bytes, line: bytes, cut: int) -> None:
    """Two more writers come, one after the other; all they and the first two wrote is there."""
    acked, numbers = [0, 1], []
    for n in (10, 11):
        try:
            with Journal.open(path) as journal:
                numbers = [event["n"] for event in journal.events]
                journal.append({"n": n})
        except JournalError as error:
            raise Broken(f"the next writer was refused after {cut} bytes: {error}") from error
        demand(numbers[:2] == [0, 1], OLD, f"after {cut} bytes")
        acked.append(n)
    expected = acked if cut < len(line) else [0, 1, 99, 10, 11]
    found = [event["n"] for event in stored(path)]
    demand(found == expected, NEW, f"after {cut} bytes", found)
    demand(path.read_bytes().startswith(whole), OLD)
    aside = path.with_name(f"{path.name}.torn-1")
    kept = aside.read_bytes() if aside.exists() else b""
    demand(kept == (line[:cut] if cut < len(line) else b""), "torn bytes were not kept aside")
    aside.unlink(missing_ok=True)


def check_cuts(folder: Path, sizes: tuple[int, ...] = SIZES) -> int:
    """A writer dies after k bytes of a line, for every k."""
    path = folder / "run"
    whole, count = started(path), 0
    for size in sizes:
        line = lines.event_line(3, {"n": 99, "pad": "x" * size})
        for cut in range(len(line) + 1):
            path.write_bytes(whole + line[:cut])
            judge_after_death(path, whole, line, cut)
            count += 1
    return count


def die_after(_: int, path: Path, cut: int) -> None:
    """The same in earnest: this process ends in the middle of its write."""
    real = os.write

    def write(fd: int, data: bytes) -> int:
        real(fd, data[:cut])
        os._exit(9)

    with Journal.open(path) as journal:
        os.write = write
        journal.append({"n": 99})


def check_deaths(folder: Path) -> int:
    path = folder / "run"
    whole = started(path)
    length = len(lines.event_line(3, {"n": 99}))
    for cut in range(length + 1):
        path.write_bytes(whole)
        Child(die_after, path, cut).reports()
        line = path.read_bytes()[len(whole) :]
        demand(len(line) == cut, "the writer did not die where it should", cut, len(line))
        judge_after_death(path, whole, line.ljust(length, b"?"), cut)
    return length


def test_a_line_cut_after_any_byte_costs_nobody_an_event(ram):
    """R3: old events intact, the new one whole or absent, the next two readable."""
    assert check_cuts(ram) > 5_000


def test_a_writer_that_dies_after_any_byte_costs_nobody_an_event(ram):
    assert alone(check_deaths, ram) > 50


@pytest.mark.parametrize(
    ("defect", "verdict"),
    [
        ("no tail repair", "refused|cannot be read"),
        ("torn bytes thrown away", "not kept aside"),
        ("no newline needed", "refused|not kept aside"),
    ],
)
def test_cuts_would_catch(ram, defect, verdict):
    with pytest.raises(Broken, match=verdict), planted(defect):
        check_cuts(ram, sizes=(0,))


def check_truncation(folder: Path, events: int, cuts: int) -> int:
    """Cut the file at every byte of its last lines: exactly the complete ones survive."""
    path = folder / "run"
    with Journal.create(path, {"study": "demo"}) as journal:
        for n in range(events):
            journal.append({"n": n, "pad": "x" * (n % 5) * 40})
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(ends[-1 - cuts], len(whole) + 1):
        path.write_bytes(whole[:cut])
        survivors = sum(end <= cut for end in ends[1:])
        found = [event["n"] for event in stored(path)]
        demand(found == list(range(survivors)), "not exactly the complete lines", cut, found)
        with Journal.open(path) as journal:
            seq = journal.append({"n": survivors})
        demand(seq == survivors + 1, "the next number is wrong", cut, seq)
        demand(len(stored(path)) == survivors + 1, NEW, cut)
        path.with_name("run.torn-1").unlink(missing_ok=True)
    return len(whole) - ends[-1 - cuts]


def test_truncation_anywhere_leaves_exactly_the_complete_lines(ram):
    """R7: every byte of the last three lines; of a thousand, by night."""
    events, cuts = (20, 3) if SCALE < 10 else (1000, 1000)
    assert check_truncation(ram, events, cuts) > 285


@pytest.mark.parametrize("defect", ["no newline needed", "no tail repair"])
def test_truncation_would_catch(ram, defect):
    with pytest.raises((Broken, JournalError)) as caught, planted(defect):
        check_truncation(ram, 20, 3)
    assert defect == "no tail repair" or "not exactly" in str(caught.value)


def test_a_header_cut_anywhere_says_so(ram):
    """A journal appears whole or not at all; but a copy of it may be cut."""
    path = ram / "run"
    header = started(path).split(b"\n")[0]
    for cut in range(len(header) + 1):
        path.write_bytes(header[:cut])
        with pytest.raises(JournalError, match=r"is empty|no complete header"):
            read(path)
