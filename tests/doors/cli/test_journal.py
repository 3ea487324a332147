from pathlib import Path

import pytest


@pytest.fixture
def damaged(study):
    study("ask")
    study("tell", "0=1.5", "1=2.5")
    lines = Path("covey.jsonl").read_bytes().splitlines(keepends=True)
    lines[-1] = lines[-1].replace(b"2.5", b"3.5")  # the others' times and points may hold a 2.5 too
    Path("covey.jsonl").write_bytes(b"".join(lines))
    return study


def test_a_whole_journal_verifies(study):
    study("ask")
    assert "1 event in" in study("journal", "verify", "covey.jsonl").out
    found = study("journal", "verify", "covey.jsonl", "--json").json
    assert (found["events"], found["damage"], found["torn_bytes"]) == (1, None, 0)


def test_damage_is_exit_6_with_line_and_byte_everywhere(damaged):
    done = damaged("journal", "verify", "covey.jsonl", "--json")
    assert done.code == 6
    assert done.json["damage"]["line"] == 3
    for words in (["ask"], ["tell", "2=1"]):
        done = damaged(*words)
        assert done.code == 6
        assert "line 3 (byte" in done.err
    for words in (["status"], ["export"], ["ask", "--dry-run"], ["tell", "2=1", "--dry-run"]):
        done = damaged(*words)  # what precedes it can still be looked at
        assert done.out
        assert "line 3 (byte" in done.err
    assert damaged("status").code == damaged("export", "--json").code == 6
    assert damaged("tell", "2=1", "--dry-run").code == 6  # as it would end


def test_repair_writes_a_new_file(damaged):
    before = Path("covey.jsonl").read_bytes()
    assert damaged("journal", "repair", "covey.jsonl", "--out", "m.jsonl", "--dry-run").code == 0
    assert not Path("m.jsonl").exists()
    done = damaged("journal", "repair", "covey.jsonl", "--out", "m.jsonl")
    assert done.code == 0
    assert "1 event written" in done.out
    assert Path("covey.jsonl").read_bytes() == before
    assert damaged("journal", "verify", "m.jsonl").code == 0
    assert damaged("journal", "repair", "covey.jsonl", "--out", "m.jsonl").code == 1
    dry = ["journal", "repair", "covey.jsonl", "--out", "m.jsonl", "--dry-run", "--json"]
    assert damaged(*dry).code == 3


def test_a_torn_tail_is_no_damage(study):
    study("ask")
    with Path("covey.jsonl").open("ab") as file:
        file.write(b'{"seq":2,')
    done = study("journal", "verify", "covey.jsonl")
    assert done.code == 0
    assert "torn line of 9 bytes" in done.err
    assert study("journal", "repair", "covey.jsonl", "--out", "m.jsonl").code == 0
    assert study("tell", "0=1").code == 0
    assert study("journal", "repair", "covey.jsonl", "--out", "n.jsonl", "--json").code == 0
