import fcntl
import importlib
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from covey.errors import JournalConflict, JournalError
from covey.log import Runs, running, runs_of

module = importlib.import_module("covey.log.running")  # the package has a function of this name
folder_of = module.folder_of

HOLD = """
import sys, time
from pathlib import Path
from covey.log import running
with running(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("a log")
    return path


@pytest.fixture
def other(journal):
    """Another process that runs the journal."""
    words = [sys.executable, "-c", HOLD, str(journal)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def runner(journal):
    """Who runs the journal."""
    living = [run for run in runs_of(journal).values() if run.lives]
    return living[0] if living else None


def refused(journal, words, error=JournalError):
    with pytest.raises(error, match=words), running(journal):
        pytest.fail("it ran")


def test_a_second_run_is_told_who_holds_it_and_a_killed_one_holds_nothing(journal, other):
    refused(journal, f"by process {other.pid} on .*, since 20", JournalConflict)
    other.kill()
    other.wait()
    with running(journal):
        assert len(runs_of(journal)) == 1  # what the killed one left is gone
    with running(journal):
        pass
    assert not folder_of(journal).exists()


def test_whoever_looks_learns_who_runs_it_and_disturbs_nobody(journal, other):
    assert (runner(journal).pid, runner(journal).host) == (other.pid, socket.gethostname())
    assert runner(journal).since.startswith("20")
    other.kill()
    other.wait()
    assert len(runs_of(journal)) == 1  # what it wrote stays behind; only the lock counts
    assert runner(journal) is None


def test_of_runs_that_begin_at_once_one_is_first(journal):
    """Neither two, nor none, because each saw the others: all begin while the first ones look."""
    begin, outcomes, done = threading.Barrier(8), [], threading.Event()

    def run():
        begin.wait()
        try:
            with running(journal):
                outcomes.append("ran")
                done.wait(60)
        except JournalConflict:
            outcomes.append("refused")
        if len(outcomes) == 8:
            done.set()

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    while len(outcomes) < 8:
        done.wait(0.01)
    done.set()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["ran", *["refused"] * 7]


def test_a_run_waits_for_whoever_writes_to_the_journal(journal):
    """Its lock is what makes one of two runs the first."""
    began = threading.Event()

    def run():
        with running(journal):
            began.set()

    with journal.open("rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        thread = threading.Thread(target=run)
        thread.start()
        assert not began.wait(0.1)
        assert not runs_of(journal)
    assert began.wait(60)
    thread.join()


def test_a_run_without_a_journal_is_an_error(tmp_path):
    refused(tmp_path / "run.jsonl", "no journal at")
    refused(tmp_path / "no" / "run.jsonl", "no journal at")
    with Runs().entered() as alone:
        assert alone.living == []


def test_a_link_and_what_it_leads_to_share_one_folder(journal):
    link = journal.with_name("link.jsonl")
    link.symlink_to(journal)
    assert folder_of(link) == folder_of(journal)
    with running(journal):
        refused(link, "is being run by process", JournalConflict)


@pytest.mark.parametrize("text", ["", "7", "0\n", "0\n[]", '0\n{"pid": "x"}', '0\n{"pid": 1}'])
def test_a_run_that_was_killed_as_it_wrote_its_entry_is_in_nobodys_way(journal, text):
    folder_of(journal).mkdir()
    (folder_of(journal) / "0a1b2c3d").write_text(text)
    assert runner(journal) is None
    with running(journal):
        assert runner(journal).pid == os.getpid()


def test_a_run_that_has_no_entry_yet_is_not_taken_for_dead(journal):
    """Another run may look between the making of the file and its first line."""
    folder_of(journal).mkdir()
    (folder_of(journal) / "0a1b2c3d").touch()
    runs = Runs(journal)
    runs.look(now=True)
    assert runs.lives("0a1b2c3d")
    assert [str(run) for run in runs.living] == ["another process"]
    assert (folder_of(journal) / "0a1b2c3d").exists()


def test_files_of_another_kind_are_no_runs_and_are_kept(journal):
    folder_of(journal).mkdir()
    (folder_of(journal) / "README").write_text("mine")
    os.mkfifo(folder_of(journal) / "0a1b2c3d")
    assert runner(journal) is None  # and does not wait for a writer
    (folder_of(journal) / "0a1b2c3d").unlink()
    with running(journal):
        pass
    assert (folder_of(journal) / "README").read_text() == "mine"


@pytest.mark.parametrize("make", [Path.symlink_to, Path.hardlink_to, Path.write_text])
def test_a_folder_that_is_a_link_or_a_file_is_refused_and_what_it_leads_to_is_kept(journal, make):
    precious = journal.with_name("precious")
    if make is Path.symlink_to:
        precious.mkdir()
    else:
        precious.write_text("mine")
    make(folder_of(journal), "mine" if make is Path.write_text else precious)
    refused(journal, r"run\.jsonl\.runs is (a link|no folder).*[Dd]elete it")
    assert list(precious.iterdir()) == [] if precious.is_dir() else precious.read_text() == "mine"


@pytest.mark.parametrize("whose", ["mine", "of the owner of the journal", "of another user"])
def test_a_folder_of_another_user_is_refused(journal, monkeypatch, whose):
    """Whoever may write there may also stand in the way; the owner of the journal is trusted."""
    folder_of(journal).mkdir()
    uid = journal.stat().st_uid
    real = Path.lstat(folder_of(journal))
    theirs = uid + (whose == "of another user")
    monkeypatch.setattr(
        Path, "lstat", lambda path: os.stat_result((*real[:4], theirs, *real[5:10]))
    )
    monkeypatch.setattr(os, "geteuid", lambda: uid + 2 * (whose != "mine"))
    if whose == "of another user":
        refused(journal, f"belongs to another user \\(uid {theirs}\\)")
    else:
        with running(journal):
            assert len(runs_of(journal)) == 1


def test_a_journal_known_by_two_names_is_not_run(journal, tmp_path):
    """The runs by one name would not see those by the other."""
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


# In the middle of an upgrade.


@pytest.mark.parametrize("left", ["", '{"pid": 7, "host": "a", "since": "b", "plan": {}}'])
def test_what_a_run_of_an_older_version_left_is_in_nobodys_way(journal, left):
    journal.with_name("run.jsonl.lock").write_text(left)
    folder_of(journal).mkdir()
    entry = '{"pid": 7, "host": "a", "since": "b", "kernel": "%s", "plan": {}}'
    (folder_of(journal) / "0a1b2c3d").write_text(f"{1:020d}\n{entry % module.kernel()}")
    with running(journal):
        assert [run.pid for run in runs_of(journal).values()] == [os.getpid()]


def test_a_run_of_an_older_version_is_not_run_beside(journal):
    with journal.with_name("run.jsonl.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused(journal, r"0\.2", JournalConflict)
    with running(journal):
        pass
