"""The lines of a journal: written, parsed, and repaired."""

from __future__ import annotations

import io
import json
import re
import zlib
from datetime import UTC, datetime, timedelta

import pytest

from covey.errors import JournalDamaged, JournalError
from covey.log.journal import (
    FORMAT,
    Journal,
    event_line,
    header_line,
    parse,
    parse_events,
    read,
    repair,
)

HEADER = header_line({"study": "demo"})
LINES = [event_line(seq, {"type": "told", "ids": [seq]}) for seq in (1, 2, 3)]
WHOLE = HEADER + b"".join(LINES)


def parsed(data: bytes):
    return parse(io.BytesIO(data), "run.jsonl")


def sealed(body: bytes) -> bytes:
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def refuses(message: str):
    return pytest.raises(JournalError, match=re.escape(message))


def test_the_bytes_of_a_line():
    """The format is final: journals on disk must stay readable."""
    line = event_line(3, {"type": "told", "v": 1, "values": [0.1, 1e-300], "by": "Zoë"})
    body, crc = line[:-19], line[-11:-3]
    assert re.fullmatch(
        rb'\{"seq":3,"at":"[-0-9T:.]+\+00:00","type":"told","v":1,"values":\[0\.1,1e-300\],'
        rb'"by":"Zo\\u00eb","crc":"[0-9a-f]{8}"\}\n',
        line,
    )
    assert int(crc, 16) == zlib.crc32(body)
    assert line.startswith(body + b',"crc":"')
    assert json.loads(line)["by"] == "Zoë"


def test_the_bytes_of_a_header():
    fields = json.loads(HEADER)
    assert list(fields) == ["covey", "min_reader", "study", "created", "crc"]
    assert (fields["covey"], fields["min_reader"]) == (FORMAT, FORMAT) == (1, 1)
    assert HEADER.startswith(b'{"covey":1,"min_reader":1,')
    age = datetime.now(UTC) - datetime.fromisoformat(fields["created"])
    assert timedelta(0) <= age + timedelta(seconds=1) < timedelta(days=1)


def test_reading_gives_back_what_was_written():
    contents = parsed(WHOLE)
    assert contents.header["study"] == "demo"
    assert [(e["seq"], e["ids"]) for e in contents.events] == [(1, [1]), (2, [2]), (3, [3])]
    assert all("crc" not in event for event in [contents.header, *contents.events])
    assert (contents.size, contents.torn) == (len(WHOLE), b"")


@pytest.mark.parametrize("text", ["\ud800", "\u2028", "\x85", "\x00", "\r\n", "😀"])
def test_any_text_survives_on_one_line(text):
    line = event_line(1, {"note": text})
    assert line.count(b"\n") == 1
    assert line.isascii()
    assert parsed(HEADER + line).events[0]["note"] == text


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), object(), {1, 2}, b"bytes"])
def test_what_is_not_json_is_refused(odd):
    with refuses("this cannot be written as JSON"):
        event_line(1, {"x": odd})


def test_a_circle_is_refused():
    circle: list[object] = []
    circle.append(circle)
    with refuses("this cannot be written as JSON"):
        event_line(1, {"x": circle})


def test_names_of_the_journal_itself_are_reserved():
    with refuses("the journal itself writes seq, crc; use another name"):
        event_line(1, {"seq": 9, "crc": "x"})
    with refuses("the journal itself writes min_reader"):
        header_line({"min_reader": 0})


def test_an_empty_file_is_no_journal():
    with refuses("run.jsonl is empty, so it is no journal"):
        parsed(b"")


@pytest.mark.parametrize(
    "data", [b"lr,value\n0.1,3\n", b'{"type":1}\n', b"\xef\xbb\xbf" + HEADER, b"\x00" * 4096, b"\n"]
)
def test_another_file_is_no_journal(data):
    with refuses("run.jsonl is not a covey journal: it starts with"):
        parsed(data)


@pytest.mark.parametrize("cut", [1, 5, 9, 40, len(HEADER) - 1])
def test_a_header_cut_short_holds_no_event(cut):
    with refuses("run.jsonl has no complete header"):
        parsed(HEADER[:cut])


def test_a_newer_format_is_told_from_damage():
    newer = sealed(HEADER[:-19].replace(b'"min_reader":1', b'"min_reader":2'))
    for data in (newer, b'{"covey":2,"min_reader":2,"seal":"blake3:00"}\n'):
        with refuses("needs one that reads format 2, this one reads up to 1. Upgrade it"):
            parsed(data)
    with refuses("line 1 (byte 0) is damaged: its checksum does not match"):
        parsed(HEADER.replace(b"demo", b"dema"))
    with refuses("line 1 (byte 0) is damaged: its checksum does not match"):
        parsed(b'{"covey":[\n')
    assert parsed(sealed(HEADER[:-19].replace(b'"covey":1', b'"covey":2'))).events == []


def test_damage_is_reported_by_line_and_byte():
    at = len(HEADER) + len(LINES[0])
    for line in (LINES[1].replace(b"told", b"tolt"), b"\n", b"{}\n", LINES[1][:-1] + b"\r\n"):
        with refuses(f"run.jsonl: line 3 (byte {at}) is damaged: its checksum does not match"):
            parsed(HEADER + LINES[0] + line + LINES[2])


def test_lines_are_numbered_without_gaps():
    at = len(HEADER)
    for lines, line, byte, expected, got in [
        (LINES[1:], 2, at, 1, 2),
        ([LINES[0], LINES[0]], 3, at + len(LINES[0]), 2, 1),
        ([LINES[1], LINES[0]], 2, at, 1, 2),
        ([sealed(b'{"at":"now"')], 2, at, 1, None),
    ]:
        with refuses(
            f"line {line} (byte {byte}) is damaged: event {expected} was expected, this is {got}"
        ):
            parsed(HEADER + b"".join(lines))


@pytest.mark.parametrize("body", [b'{"seq":1,"x":', b'{"seq":1,"x":' + b"[" * 100_000])
def test_a_good_checksum_does_not_excuse_bad_json(body):
    with refuses("line 2 (byte"):
        parsed(HEADER + sealed(body))


@pytest.mark.parametrize(
    "torn",
    [b"{", LINES[2][:-1], LINES[2][:30], b"\x00" * 64],
    ids=["one byte", "all but the newline", "a part", "zeros"],
)
def test_what_follows_the_last_newline_is_torn(torn):
    contents = parsed(HEADER + LINES[0] + LINES[1] + torn)
    assert len(contents.events) == 2
    assert contents.torn == torn
    assert contents.size == len(HEADER + LINES[0] + LINES[1])


@pytest.mark.parametrize("rest", [b"\x0b", b"\x00", b"\x0b" + LINES[2][:30]])
def test_a_whole_line_that_lost_its_newline_is_damage_not_a_torn_line(rest):
    """Else one flipped bit would make an acknowledged event look as if it never was."""
    with refuses("line 3 (byte"):
        parsed(HEADER + LINES[0] + LINES[1][:-1] + rest)


def test_text_that_looks_like_a_seal_does_not_confuse_a_torn_line():
    line = event_line(1, {"note": 1, "crc-like": 2})[:-20] + b',"crc":"00000000"},"more'
    assert parsed(HEADER + line).torn == line


def test_a_later_part_is_verified_alone():
    size = len(HEADER) + len(LINES[0])
    events, end, torn = parse_events(io.BytesIO(LINES[1] + b"{"), 1, size, "run.jsonl")
    assert [event["seq"] for event in events] == [2]
    assert (end, torn) == (size + len(LINES[1]), b"{")


# Repair of a damaged journal


@pytest.fixture
def damaged(tmp_path):
    path = tmp_path / "run.jsonl"
    with Journal.create(path, {"study": 1}) as journal:
        for i in range(5):
            journal.append({"n": i})
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b'"n":2', b'"n":7')
    path.write_bytes(b"".join(lines))
    return path


def test_what_precedes_the_damage_goes_to_a_new_file(damaged, tmp_path):
    before = damaged.read_bytes()
    with pytest.raises(JournalDamaged) as caught:
        read(damaged)
    assert caught.value.line == 4
    assert before[: caught.value.offset].count(b"\n") == 3
    contents = repair(damaged, tmp_path / "good.jsonl")
    assert str(contents.damage) == str(caught.value)
    assert damaged.read_bytes() == before
    good = read(tmp_path / "good.jsonl")
    assert [event["n"] for event in good.events] == [0, 1]
    with Journal.open(tmp_path / "good.jsonl") as journal:
        assert journal.append({"n": 9}) == 3


def test_a_torn_tail_is_left_behind(tmp_path):
    path = tmp_path / "run.jsonl"
    with Journal.create(path, {}) as journal:
        journal.append({"n": 0})
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"seq":2,"at"')
    contents = repair(path, tmp_path / "good.jsonl")
    assert contents.damage is None
    assert contents.torn == b'{"seq":2,"at"'
    assert (tmp_path / "good.jsonl").read_bytes() == whole


def test_nothing_is_ever_overwritten(damaged, tmp_path):
    (tmp_path / "good.jsonl").write_text("mine")
    with pytest.raises(JournalError, match="exists already"):
        repair(damaged, tmp_path / "good.jsonl")
    with pytest.raises(JournalError, match="never changed"):
        repair(damaged, damaged)


def test_a_damaged_header_cannot_be_mended(tmp_path):
    path = tmp_path / "run.jsonl"
    Journal.create(path, {"study": 1}).close()
    path.write_bytes(path.read_bytes().replace(b'"study":1', b'"study":2'))
    with pytest.raises(JournalDamaged, match="line 1"):
        repair(path, tmp_path / "good.jsonl")
    assert not (tmp_path / "good.jsonl").exists()
