import fcntl
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from covey.errors import JournalConflict, JournalError
from covey.log import running
from covey.log.running import holder, lock_path, note_plan

HOLD = """
import sys, time
from pathlib import Path
from covey.log import running
with running(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_run_is_told_who_holds_it_and_a_killed_one_holds_nothing(tmp_path):
    journal = tmp_path / "run.jsonl"
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(journal)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout.readline() == "held\n"
        who = f"by process {other.pid} on .*, since 20"
        with pytest.raises(JournalConflict, match=who), running(journal):
            pass
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    with running(journal):
        assert lock_path(journal).exists()
    with running(journal):
        pass


def test_a_holder_that_has_not_signed_yet_is_another_process(tmp_path):
    journal = tmp_path / "run.jsonl"
    with running(journal):
        lock_path(journal).write_text("{")
        with pytest.raises(JournalConflict, match="by another process"), running(journal):
            pass


def test_a_lock_that_cannot_be_made_is_an_error_of_ours(tmp_path):
    with pytest.raises(JournalError, match="cannot lock"), running(tmp_path / "no" / "run.jsonl"):
        pass


def test_a_link_and_what_it_leads_to_share_one_lock(tmp_path):
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "run.jsonl")
    assert lock_path(link) == lock_path(tmp_path / "run.jsonl")
    with (
        running(tmp_path / "run.jsonl"),
        pytest.raises(JournalConflict, match="is being run by process"),
        running(link),
    ):
        pass


def test_whoever_looks_learns_who_runs_it_and_disturbs_nobody(tmp_path):
    journal = tmp_path / "run.jsonl"
    assert holder(journal) is None
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(journal)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout.readline() == "held\n"
        who = holder(journal)
        assert (who.pid, who.host) == (other.pid, socket.gethostname())
        assert who.since.startswith("20")
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    assert lock_path(journal).exists()
    assert holder(journal) is None  # what it wrote stays behind; only the lock counts


def test_what_is_no_lock_holds_nothing(tmp_path):
    journal = tmp_path / "run.jsonl"
    for text in ("", "{", "[]", '{"pid": "x"}', '{"pid": 1}'):
        lock_path(journal).write_text(text)
        assert holder(journal) is None
    with running(journal):
        lock_path(journal).write_text("{")
        assert holder(journal).pid == 0  # it has only just begun
    lock_path(journal).unlink()
    os.mkfifo(lock_path(journal))
    assert holder(journal) is None  # and does not wait for a writer


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("a log")
    return path


def refused(journal, words):
    with pytest.raises(JournalError, match=words), running(journal):
        pytest.fail("it ran")


@pytest.mark.parametrize("make", [Path.symlink_to, Path.hardlink_to])
def test_a_lock_that_is_a_link_is_refused_and_what_it_leads_to_is_kept(journal, make):
    precious = journal.with_name("precious.txt")
    precious.write_text("mine")
    make(lock_path(journal), precious)
    refused(journal, r"run\.jsonl\.lock is (a link|known by 2 names).*[Dd]elete it")
    assert precious.read_text() == "mine"


def test_a_link_to_nothing_makes_no_file(journal):
    lock_path(journal).symlink_to(journal.with_name("new.txt"))
    refused(journal, "is a link")
    assert not journal.with_name("new.txt").exists()


def test_a_lock_that_is_no_plain_file_is_refused_at_once(journal):
    os.mkfifo(lock_path(journal))
    refused(journal, "is no plain file")
    lock_path(journal).unlink()
    lock_path(journal).mkdir()
    refused(journal, "cannot lock|is no plain file")


def test_a_file_of_something_else_is_no_lock_and_is_kept(journal):
    lock_path(journal).write_text("dependencies of my project")
    refused(journal, "holds something else.*[Dd]elete it")
    assert lock_path(journal).read_text() == "dependencies of my project"


@pytest.mark.parametrize("left", ["", '{"pid": 7, "ho', '{"pid": 7, "host": "a", "since": "b"}'])
def test_what_a_killed_run_left_is_a_lock(journal, left):
    lock_path(journal).write_text(left)
    with running(journal):
        assert f'"pid": {os.getpid()}' in lock_path(journal).read_text()


def test_a_lock_of_another_user_is_refused(journal, monkeypatch):
    """Whoever may write a lock may also wait for somebody to trust it; his own journal is his."""
    lock_path(journal).write_text("")
    owner = journal.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with running(journal):  # the journal's owner ran it before
        pass
    stranger = journal.with_name("theirs.jsonl")  # not there: no owner to trust
    lock_path(stranger).write_text("")
    refused(stranger, f"belongs to another user \\(uid {owner}\\)")


def test_a_journal_known_by_two_names_is_not_run(journal, tmp_path):
    """Each name would have a lock of its own."""
    (tmp_path / "elsewhere").mkdir()
    other = tmp_path / "elsewhere" / "copy.jsonl"
    other.hardlink_to(journal)
    for name in (journal, other):
        refused(name, "2 names.*hard links")
    other.unlink()
    with running(journal):
        pass


def test_the_name_a_journal_was_staged_under_is_no_second_one(journal):
    """A kill in the moment of creation leaves it; the file is the same, and so nothing is lost."""
    staged = journal.with_name(f"{journal.name}.new-0123abcd")
    staged.hardlink_to(journal)
    with running(journal):
        assert not staged.exists()
        assert journal.read_text() == "a log"


@pytest.mark.parametrize("defect", [False, True])
def test_whoever_looks_keeps_nobody_from_running(journal, monkeypatch, defect):
    """To look is to hold the lock for a moment; here the moment in which a run wants it."""
    module = sys.modules["covey.log.running"]
    real, looks = module.try_lock, iter([True, True])

    def looked_at(fd):
        looking = os.open(lock_path(journal), os.O_RDONLY)
        if next(looks, False):
            fcntl.flock(looking, fcntl.LOCK_SH)
        taken = real(fd)
        os.close(looking)
        return taken

    monkeypatch.setattr(module, "try_lock", looked_at)
    if defect:
        monkeypatch.setattr(module, "_LOOKS", 0)
        with pytest.raises(JournalConflict), running(journal):
            pass
    else:
        with running(journal):
            assert next(looks, False) is False


def test_a_plan_is_noted_by_the_holder_alone(journal):
    note_plan(journal, {"total": 5})  # nobody runs it
    assert holder(journal) is None
    with running(journal):
        note_plan(journal, {"total": 5, "batch": 2})
        who = holder(journal)
        assert (who.pid, who.plan) == (os.getpid(), {"total": 5, "batch": 2})
        note_plan(journal, {"cost": "x" * 5000})  # too long to be read again
        assert holder(journal).plan == {"total": 5, "batch": 2}
        assert "plan" not in str(who)
    with running(journal):
        assert holder(journal).plan == {}
