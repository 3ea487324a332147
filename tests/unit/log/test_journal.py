from __future__ import annotations

import errno
import gc
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from covey import disk
from covey.errors import JournalConflict, JournalError
from covey.log.journal import Journal, read


def fail_with(number: int):
    def fail(*_args, **_kwargs):
        raise OSError(number, os.strerror(number))

    return fail


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.jsonl"


@pytest.fixture
def journal(path):
    with Journal.create(path, {"study": "demo"}) as journal:
        yield journal


def numbers(path) -> list[int]:
    return [event["n"] for event in read(path).events]


def test_what_is_appended_is_read_again(journal, path):
    assert [journal.append({"n": n}) for n in (10, 20)] == [1, 2]
    with Journal.open(str(path)) as again:
        assert again.header == journal.header
        assert again.header["study"] == "demo"
        assert [event["n"] for event in again.events] == [10, 20]
        assert (again.seq, again.path) == (2, path)
        assert again.append({"n": 30}) == 3
    assert numbers(path) == [10, 20, 30]
    assert repr(journal) == f"Journal({str(path)!r}, seq=2)"
    assert journal.events == []


def test_a_new_journal_is_never_put_over_an_old_one(journal, path):
    journal.append({"n": 1})
    with pytest.raises(JournalError, match="exists already"):
        Journal.create(path, {})
    assert numbers(path) == [1]


@pytest.mark.parametrize("start", [Journal.open, read])
def test_what_cannot_be_opened_says_why(start, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    for name, message in [
        ("missing", "there is no journal at"),
        ("no/where", "there is no journal at"),
        ("", "is a directory"),
        ("empty", "is empty"),
        ("table.csv", "is not a covey journal"),
        ("table.csv/deeper", r"cannot (open|read) .*: Not a directory"),
        ("a\0b", r"cannot (open|read) .*: .*null"),
    ]:
        with pytest.raises(JournalError, match=message):
            start(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "table.csv"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("no/where", "no directory"), ("", "is a directory"), ("a\0b", "cannot create .*null")],
)
def test_what_cannot_be_created_says_why(tmp_path, name, message):
    with pytest.raises(JournalError, match=message):
        Journal.create(tmp_path / name, {})
    assert list(tmp_path.iterdir()) == []


def test_a_failed_opening_leaks_no_descriptor(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for start in (Journal.open, read):
        with pytest.raises(JournalError):
            start(tmp_path / "empty")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_a_forgotten_journal_closes_its_file(path):
    def opened() -> list[str]:  # of this journal alone: other tests open and forget as they like
        links = Path("/proc/self/fd").iterdir()
        return [name for link in links if (name := _target(link)).startswith(str(path))]

    journal = Journal.create(path, {})
    assert opened()
    del journal
    gc.collect()
    assert opened() == []


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:  # closed since it was listed
        return ""


def test_a_closed_journal_says_so(journal):
    journal.close()
    journal.close()
    with pytest.raises(JournalError, match="was closed; open it again"):
        journal.append({"n": 1})


def test_a_torn_line_is_repaired_by_the_next_append_and_kept(journal, path, caplog):
    journal.append({"n": 1})
    with path.open("ab") as file:
        file.write(b'{"seq":2,"at":"2')
    size = path.stat().st_size
    with Journal.open(path) as again:
        assert [event["n"] for event in again.events] == [1]
        assert path.stat().st_size == size  # opening alone changes nothing
        with caplog.at_level(logging.WARNING, logger="covey"):
            assert again.append({"n": 2}) == 2
    assert numbers(path) == [1, 2]
    aside = path.with_name("run.jsonl.torn-1")
    assert aside.read_bytes() == b'{"seq":2,"at":"2'
    assert "cut off a torn line of 16 bytes" in caplog.text
    assert aside.name in caplog.text


def test_a_tail_that_cannot_be_kept_is_not_cut(journal, path, monkeypatch):
    with path.open("ab") as file:
        file.write(b'{"seq":1')
    with monkeypatch.context() as patch:
        patch.setattr("covey.log.journal.keep_aside", fail_with(errno.ENOSPC))
        with pytest.raises(JournalError, match=r"cannot write to .*: No space left on device"):
            journal.append({"n": 1})
    assert path.read_bytes().endswith(b'{"seq":1')
    assert journal.append({"n": 1}) == 1


def test_two_journals_on_one_file_conflict(journal, path):
    with Journal.open(path) as other:
        other.append({"n": 1})
        other.append({"n": 2})
        before = path.read_bytes()
        with pytest.raises(JournalConflict, match=r"somebody else has added 2 event\(s\)"):
            journal.append({"n": 3})
        assert path.read_bytes() == before
        assert other.append({"n": 4}) == 3
    assert numbers(path) == [1, 2, 4]


def test_a_conflict_and_a_torn_line_cut_nothing(journal, path):
    with Journal.open(path) as other:
        other.append({"n": 1})
    with path.open("ab") as file:
        file.write(b"{")
    before = path.read_bytes()
    with pytest.raises(JournalConflict, match=r"added 1 event\(s\)"):
        journal.append({"n": 3})
    assert path.read_bytes() == before


def test_garbage_that_somebody_appended_is_reported_by_line_and_byte(journal, path):
    journal.append({"n": 1})
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"garbage\n")
    with pytest.raises(JournalError, match=rf"line 3 \(byte {size}\) is damaged") as caught:
        journal.append({"n": 2})
    assert not isinstance(caught.value, JournalConflict)
    assert path.read_bytes().endswith(b"garbage\n")


def test_nothing_is_acknowledged_into_a_file_that_went_away(journal, path):
    journal.append({"n": 1})
    for act in (lambda: path.write_bytes(b""), path.unlink):
        act()
        with pytest.raises(JournalError, match=r"has shrunk from|was deleted, moved or replaced"):
            journal.append({"n": 2})
    with Journal.create(path, {}), pytest.raises(JournalError, match="was deleted, moved or rep"):
        journal.append({"n": 2})
    assert numbers(path) == []


def test_a_journal_keeps_its_place_when_the_process_moves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with Journal.create("run.jsonl", {}) as journal:
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert journal.append({"n": 1}) == 1
    assert numbers(tmp_path / "run.jsonl") == [1]


def test_a_symbolic_link_leads_to_the_journal(journal, path, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(path)
    with Journal.open(link) as linked:
        assert linked.append({"n": 1}) == 1
    assert numbers(path) == [1]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EIO])
def test_a_failed_write_is_rolled_back_and_the_next_append_works(
    journal, path, monkeypatch, number
):
    journal.append({"n": 1})
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail_with(number))
        with pytest.raises(JournalError, match="cannot write to") as caught:
            journal.append({"n": 2})
        assert caught.value.__cause__.errno == number
    assert path.read_bytes() == before
    assert journal.append({"n": 2}) == 2
    assert numbers(path) == [1, 2]


def test_a_failed_flush_poisons_the_handle_for_good(journal, path, monkeypatch):
    journal.append({"n": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_with(errno.EIO))
        with pytest.raises(JournalError, match="Input/output error"):
            journal.append({"n": 2})
    for _ in range(2):  # never retried: a second fsync that succeeds proves nothing
        with pytest.raises(JournalError, match=r"not be flushed to disk\. Open the journal"):
            journal.append({"n": 2})
    with Journal.open(path) as again:
        assert again.append({"n": 2}) == 2
    assert numbers(path) == [1, 2]


def test_a_write_that_cannot_be_undone_poisons_the_handle(journal, path, monkeypatch):
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: real(fd, data[:9]))
        patch.setattr(os, "ftruncate", fail_with(errno.EIO))
        with pytest.raises(JournalError, match="only 9 of"):
            journal.append({"n": 1})
    with pytest.raises(JournalError, match=r"could not be undone\. Open the journal again"):
        journal.append({"n": 1})
    with Journal.open(path) as again:
        assert again.append({"n": 1}) == 1
    assert numbers(path) == [1]


def test_an_interrupt_leaves_the_event_out(journal, path, monkeypatch):
    real = os.write

    def interrupted(fd, data):
        real(fd, data)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            journal.append({"n": 1})
    assert numbers(path) == []
    assert journal.append({"n": 2}) == 1


def test_a_signal_handler_cannot_append_into_an_append(journal, path, monkeypatch):
    caught = []

    def handler(*_):
        with pytest.raises(JournalError, match="a signal handler cannot use it") as error:
            journal.append({"n": 99})
        caught.append(error)

    real, old = os.write, signal.signal(signal.SIGUSR1, handler)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(
                os,
                "write",
                lambda fd, data: (os.kill(os.getpid(), signal.SIGUSR1), real(fd, data))[1],
            )
            assert journal.append({"n": 1}) == 1
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert len(caught) == 1
    assert numbers(path) == [1]


def test_what_is_believed_is_flushed_first(journal, path, monkeypatch):
    """Its writer may have died before it could; a repeated key is acknowledged all the same."""
    flushed = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (flushed.append(os.fstat(fd).st_ino), real(fd)))
    with Journal.open(path) as other:
        assert flushed == [path.stat().st_ino, path.parent.stat().st_ino]
        other.append({"n": 1})
        flushed.clear()
        assert [event["n"] for event in journal.read(journal.seq)] == [1]
        assert flushed == [path.stat().st_ino]
        assert journal.read(journal.seq) == []
        assert len(flushed) == 1


def test_what_cannot_be_flushed_is_not_believed(journal, path, monkeypatch):
    with Journal.open(path) as other:
        other.append({"n": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_with(errno.EIO))
        with pytest.raises(JournalError, match="cannot open"):
            Journal.open(path)
        with pytest.raises(JournalError, match="cannot read"):
            journal.read(journal.seq)
    with pytest.raises(JournalError, match="could not be flushed"):
        journal.append({"n": 2})


def test_the_acknowledgement_comes_after_the_flush(journal, monkeypatch):
    calls = []
    for name in ("write", "fsync"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *a, real=real, name=name: (calls.append(name), real(*a))[1]
        )
    calls.append(journal.append({"n": 1}))
    assert calls == ["write", "fsync", 1]


def test_a_bad_event_writes_nothing(journal, path):
    before = path.read_bytes()
    for event in ({"n": float("nan")}, {"seq": 1}, {"n": object()}):
        with pytest.raises(JournalError):
            journal.append(event)
    assert path.read_bytes() == before
    assert journal.append({"n": 1}) == 1


def test_a_read_only_journal_can_still_be_read(journal, path, monkeypatch):
    journal.append({"n": 1})
    real = os.open

    def denied(name, flags, *rest):
        if flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        return real(name, flags, *rest)

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(JournalError, match=r"cannot open .*: Permission denied"):
        Journal.open(path)
    assert numbers(path) == [1]


def test_append_waits_for_the_lock(journal, path):
    fd = os.open(path, os.O_RDWR)
    done = threading.Event()
    thread = threading.Thread(target=lambda: (journal.append({"n": 1}), done.set()))
    try:
        with disk.locked(fd, path):
            thread.start()
            assert not done.wait(0.2)
            assert numbers(path) == []
        assert done.wait(120)
    finally:
        thread.join()
        os.close(fd)
    assert numbers(path) == [1]


def test_threads_share_one_journal(journal, path):
    def work(start):
        for n in range(start, start + 10):
            journal.append({"n": n})

    threads = [threading.Thread(target=work, args=(10 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers(path)) == list(range(40))
    assert journal.seq == 40


def test_processes_that_race_to_create_one_journal_leave_one_winner(path):
    code = (
        "import sys\nfrom covey.log import Journal\nfrom covey.errors import JournalError\n"
        "sys.stdin.read(1)\n"
        "try:\n    Journal.create(sys.argv[1], {'by': sys.argv[2]}); print('won')\n"
        "except JournalError as error:\n    print('exists' if 'exists' in str(error) else error)\n"
    )
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path), str(k)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for k in range(4)
    ]
    for racer in racers:
        racer.stdin.write("x")
        racer.stdin.flush()
    said = [racer.communicate()[0].strip() for racer in racers]
    assert sorted(said) == ["exists"] * 3 + ["won"]
    assert read(path).header["by"] == str(said.index("won"))


def test_a_forked_child_is_refused(journal, path, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: -7)
    with pytest.raises(JournalError, match=r"opened by process \d+ and cannot be used in its chi"):
        journal.append({"n": 1})
    monkeypatch.undo()
    assert journal.append({"n": 1}) == 1
    assert numbers(path) == [1]


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system"
)
def test_a_real_child_is_refused_even_while_the_parent_appends(path):
    code = """
import os, sys, threading
from covey.log import Journal
journal = Journal.create(sys.argv[1], {})
held, done = threading.Event(), threading.Event()
def append_for_long():
    with journal._mutex:
        held.set()
        done.wait()
thread = threading.Thread(target=append_for_long)
thread.start()
held.wait()
child = os.fork()  # inherits a mutex that nobody there will ever release
if child == 0:
    try:
        journal.append({"n": 1})
    except OSError as error:
        os._exit(7 if "in its child" in str(error) else 1)
    os._exit(0)
status = os.waitpid(child, 0)[1]
done.set()
sys.exit(os.waitstatus_to_exitcode(status))
"""
    result = subprocess.run([sys.executable, "-c", code, str(path)], timeout=300, check=False)
    assert result.returncode == 7


def test_whoever_asks_keeps_nobody_from_writing(path):
    mine, theirs = Journal.create(path, {}), Journal.open(path)
    with mine.asking():
        theirs.append({"by": "them"})
    assert [event["by"] for event in mine.read(0)] == ["them"]
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name, f"{path.name}.ask"]


def test_what_goes_wrong_while_one_asks_is_not_said_of_the_journal(path):
    journal = Journal.create(path, {})
    with pytest.raises(ValueError, match="mine"), journal.asking():
        raise ValueError("mine")


def test_where_no_turn_can_be_waited_for_one_asks_all_the_same(path, tmp_path):
    """Nothing rests on it but that nobody starves; and no link is followed."""
    journal, elsewhere = Journal.create(path, {}), tmp_path / "elsewhere"
    path.with_name(f"{path.name}.ask").symlink_to(elsewhere)
    with journal.asking():
        assert journal.append({"n": 1}) == 1
    assert not elsewhere.exists()


def test_what_was_read_before_is_read_again(path):
    """An interrupt may have come between a log and who believes it."""
    with Journal.create(path, {}) as journal, Journal.open(path) as other:
        for n in range(3):
            journal.append({"n": n})
        for since in range(4):
            assert [event["n"] for event in journal.read(since)] == [0, 1, 2][since:]
            assert [event["n"] for event in other.read(since)] == [0, 1, 2][since:]
        with pytest.raises(JournalConflict):
            journal.append({"n": 3}, 2)
