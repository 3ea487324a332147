"""R8: damage is detected and named by line and byte; nobody sees a traceback."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.reliability.mutants import planted
from tests.reliability.verdict import PLAIN, Broken, demand, times

import covey
from covey.errors import CoveyError, JournalDamaged, JournalError
from covey.log.journal import Journal, read

SPACE = covey.Space({"x": covey.Real(0.0, 1.0), "c": covey.Choice(["a", "b"])})
BELIEVED = "damage was believed"
PLACE = "the damage is said to be somewhere else"


def written(path: Path, rounds: int = 30) -> bytes:
    """The journal of a study: batches and their results, about 10 kB."""
    study = covey.Study(SPACE, strategy="random", seed=0, journal=path)
    for n in range(rounds):
        trials = study.enqueue([{"x": n / 40, "c": "a"}, {"x": 0.5, "c": "b"}], key=f"batch {n}")
        study.tell(trials, [0.1 * n, 0.2], sem=[None, 0.01])
    study._log.log.close()
    return path.read_bytes()


def judge(path: Path, truth: list[dict[str, Any]], first_bad: int, name: object) -> None:
    """Reading stops at this line, says so, and shows what precedes it; nothing is changed."""
    before = path.read_bytes()
    try:
        seen = read(path)
    except JournalDamaged as error:
        line, offset = error.line, error.offset
        demand(line == first_bad, PLACE, name, line, first_bad)
        demand(offset == len(b"".join(before.splitlines(True)[: line - 1])), PLACE, name, offset)
    except JournalError:
        demand(first_bad == 1, PLACE, name)
        return
    else:
        demand(seen.events == truth and not seen.torn, BELIEVED, name)
        raise Broken(f"{BELIEVED}: {name} changed nothing")
    try:
        covey.Study.load(path)
    except CoveyError:
        pass
    else:
        raise Broken(f"{BELIEVED}: {name} was opened to write")
    if first_bad > 1:
        shown = read(path, prefix=True)
        demand(shown.events == truth[: first_bad - 2], "what precedes the damage is not shown")
    demand(path.read_bytes() == before, "reading changed the file", name)


def check_flips(folder: Path, flips: int) -> int:
    """One flipped bit, anywhere: always seen, always where it is."""
    path = folder / "run"
    data = written(path)
    truth = read(path).events
    places = random.Random(0).sample(range(8 * len(data)), min(flips, 8 * len(data)))
    for place in [*places, *range(8 * len(data) - 8, 8 * len(data))]:  # the last newline as well
        damaged = bytearray(data)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        judge(path, truth, data[: place // 8].count(b"\n") + 1, f"bit {place}")
    return len(places)


def test_every_flipped_bit_is_detected_where_it_is(ram):
    """R8. Zero of 3000 bounds the rate of belief at 0.1 % (95 %)."""
    assert check_flips(ram, times(3000)) >= 3000


def damages(data: bytes) -> Iterator[tuple[str, bytes, int]]:
    """What is done to files: a name, the file after it, and the first line that is wrong."""
    lines = data.splitlines(keepends=True)
    head, rest = b"".join(lines[:6]), b"".join(lines[8:])
    one, two = lines[6:8]
    yield "swapped", head + two + one + rest, 7
    yield "doubled", head + one + one + two + rest, 8
    yield "missing", head + two + rest, 7
    yield "joined", head + one[:-1] + two + rest, 7
    yield "split", head + one[:20] + b"\n" + one[20:] + two + rest, 7
    yield "blank line", head + b"\n" + one + two + rest, 7
    yield "last line doubled", data + lines[-1], len(lines) + 1
    yield "garbage appended", data + b"garbage\n", len(lines) + 1
    yield "windows newlines", data.replace(b"\n", b"\r\n"), 1
    yield "byte order mark", b"\xef\xbb\xbf" + data, 1
    yield "one NUL", head + one[:30] + b"\0" + one[31:] + two + rest, 7
    yield "one NUL more", head + one[:30] + b"\0" + one[30:] + two + rest, 7
    yield "all NUL", b"\0" * len(data), 1
    yield "two headers", lines[0] + data, 2
    yield "a line of 10 MB", head + b"x" * 10_000_000 + b"\n" + one + two + rest, 7
    yield "a line of 10 MB of braces", head + b"[" * 10_000_000 + b"\n" + one + two + rest, 7
    yield "re-indented", b"\n".join(json.dumps(json.loads(x)).encode() for x in lines) + b"\n", 1
    yield "a number rounded", data.replace(b"0.30000000000000004", b"0.3"), 9
    yield "newest first", lines[0] + b"".join(reversed(lines[1:])), 2
    yield "UTF-16", data.decode().encode("utf-16"), 1
    for size in (512, 4096):
        for start in range(0, len(data) - size, 512):
            zeroed = data[:start] + b"\0" * size + data[start + size :]
            yield f"{size} zeros at {start}", zeroed, data[:start].count(b"\n") + 1


def check_damages(folder: Path) -> int:
    path, count = folder / "run", 0
    data = written(path)
    truth = read(path).events
    for name, damaged, first_bad in damages(data):
        demand(damaged != data, "no damage was done", name)
        path.write_bytes(damaged)
        judge(path, truth, first_bad, name)
        count += 1
    return count


def test_every_damage_we_can_name_is_detected(ram):
    assert check_damages(ram) > 30


@pytest.mark.parametrize(
    ("check", "defect"),
    [
        ("flips", "no checksum"),
        ("flips", "a lost newline is a torn line"),
        ("damages", "no checksum"),
        ("damages", "no seq"),
    ],
)
def test_damage_would_catch(ram, check, defect):
    with pytest.raises(Broken, match=f"{BELIEVED}|{PLACE}"), planted(defect):
        check_flips(ram, 100) if check == "flips" else check_damages(ram)


def test_what_cannot_be_seen_is_at_least_kept_and_reported(ram, caplog):
    """A block of zeros up to the end of the file looks like a write that lost its power.

    The lines before are intact, the loss is reported, and its bytes are kept aside.
    """
    path = ram / "run"
    data = written(path)
    for size in (1, 512, 4096):
        path.write_bytes(data[:-size] + b"\0" * size)
        caplog.clear()
        with caplog.at_level("WARNING", logger="covey"):
            try:
                with Journal.open(path) as journal:
                    kept = len(journal.events)
                    journal.append({"type": "x", "v": 1, "ignorable": True})
            except JournalDamaged:
                assert size == 1  # only the newline is gone: the seal of the line shows it
                continue
        assert "never acknowledged" in caplog.text
        lines = data.splitlines(keepends=True)
        aside = path.with_name("run.torn-1").read_bytes()
        assert b"".join(lines[: kept + 1]) + aside == data[:-size] + b"\0" * size
        path.with_name("run.torn-1").unlink()


# ---------------------------------------------------------------- sealed nonsense

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
anything = st.recursive(
    leaves, lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=3), x, max_size=3)
)
EVENT = ("seq", "at", "type", "v", "key", "ids", "points", "values", "sems", "strategy", "models")
HEADER = ("covey", "min_reader", "space", "fingerprint", "goal", "strategy", "seed", "gp")
changes = st.tuples(st.just(0), st.sampled_from(HEADER), anything) | st.tuples(
    st.integers(1, 6), st.sampled_from(EVENT), anything
)


def resealed(line: bytes, name: str, value: Any) -> bytes:
    fields = json.loads(line)
    del fields["crc"]
    fields[name] = value
    body = json.dumps(fields, separators=(",", ":")).encode()[:-1]
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def check_nonsense(folder: Path, examples: int, shrink: bool = True) -> None:
    """A journal may come by mail: its checksums prove nothing about its sense."""
    path = folder / "run"
    lines = written(path, rounds=3).splitlines(keepends=True)

    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]

    @settings(max_examples=examples, phases=phases, **PLAIN)
    @given(changes)
    def load(change: tuple[int, str, Any]) -> None:
        at, name, value = change
        path.write_bytes(
            b"".join([*lines[:at], resealed(lines[at], name, value), *lines[at + 1 :]])
        )
        try:
            covey.Study.load(path)
        except CoveyError:
            return
        except Exception as error:
            raise Broken(f"a traceback: {name} = {value!r}: {error!r}") from error

    load()


def test_well_sealed_nonsense_gives_no_traceback(ram):
    check_nonsense(ram, times(500))


def test_nonsense_would_catch_a_trusting_reader(ram):
    with pytest.raises(Broken, match="a traceback"), planted("headers are trusted"):
        check_nonsense(ram, 500, shrink=False)
