import pytest

from covey.errors import JournalDamaged, JournalError
from covey.log.journal import Journal, read, repair


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
