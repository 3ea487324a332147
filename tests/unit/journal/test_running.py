import os
import socket
import subprocess
import sys

import pytest

from covey.errors import JournalConflict, JournalError
from covey.journal import holder, lock_path, running

HOLD = """
import sys, time
from pathlib import Path
from covey.journal import running
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
