from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
import weakref
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from covey import disk
from covey.disk import Descriptor, Mutex, write_whole
from covey.errors import JournalConflict, JournalError


def fail_with(number: int):
    def fail(*_args, **_kwargs):
        raise OSError(number, os.strerror(number))

    return fail


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_errors_of_the_system_become_ours():
    with (
        pytest.raises(JournalError, match=r"^cannot write x: No space left on device\.$"),
        disk.reporting("write x"),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with (
        pytest.raises(JournalError, match=r"^cannot open x: embedded null byte\.$"),
        disk.reporting("open x"),
    ):
        raise ValueError("embedded null byte")
    with pytest.raises(JournalConflict, match=r"^mine$"), disk.reporting("open x"):
        raise JournalConflict("mine")


def test_a_published_file_is_whole_and_has_the_rights_of_any_new_file(tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    disk.publish(tmp_path / "new", b"data")
    assert (tmp_path / "new").read_bytes() == b"data"
    assert (tmp_path / "new").stat().st_mode == plain.stat().st_mode
    assert names(tmp_path) == ["new", "plain"]


@pytest.mark.parametrize("links", [True, False])
def test_publishing_never_replaces_a_file(tmp_path, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", fail_with(errno.EPERM))
    path = tmp_path / "run"
    disk.publish(path, b"first")
    with pytest.raises(JournalError, match=r"exists already; continue it with Study\.load"):
        disk.publish(path, b"second")
    assert path.read_bytes() == b"first"
    assert names(tmp_path) == ["run"]


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("broken", ["write", "fsync", "link", "replace"])
def test_a_failed_publication_leaves_nothing(tmp_path, monkeypatch, links, broken):
    if not links:
        monkeypatch.setattr(os, "link", fail_with(errno.EPERM))
    monkeypatch.setattr(os, broken, fail_with(errno.EIO))
    survives = (broken == "link") or (broken == "replace" and links)
    if survives:
        disk.publish(tmp_path / "run", b"data")
        assert (tmp_path / "run").read_bytes() == b"data"
    else:
        with pytest.raises(OSError, match="Input/output error"):
            disk.publish(tmp_path / "run", b"data")
        assert names(tmp_path) == []


def test_a_name_that_cannot_be_made_durable_is_taken_back(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "sync_directory", fail_with(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        disk.publish(tmp_path / "run", b"data")
    assert names(tmp_path) == []


def test_a_folder_that_cannot_be_flushed_is_no_error_and_one_that_fails_is(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", fail_with(errno.EINVAL))
    disk.sync_directory(tmp_path)
    monkeypatch.setattr(os, "fsync", fail_with(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        disk.sync_directory(tmp_path)


def test_publishing_flushes_the_file_before_its_name_and_the_folder_after(tmp_path, monkeypatch):
    calls = []
    real_fsync, real_link = os.fsync, os.link

    def fsync(fd):
        calls.append("folder" if os.path.isdir(f"/proc/self/fd/{fd}") else "file")  # noqa: PTH112
        real_fsync(fd)

    def link(*args):
        calls.append("name")
        real_link(*args)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "link", link)
    disk.publish(tmp_path / "run", b"data")
    assert calls == ["file", "name", "folder"]


def test_publishing_needs_a_folder_and_a_file_name(tmp_path):
    with pytest.raises(JournalError, match="missing is no directory; create it before"):
        disk.publish(tmp_path / "missing" / "run", b"data")
    with pytest.raises(JournalError, match="is a directory; name a file for the journal"):
        disk.publish(tmp_path, b"data")


def test_only_regular_files_are_opened(tmp_path):
    with pytest.raises(JournalError, match="there is no journal at"):
        disk.open_existing(tmp_path / "missing", os.O_RDONLY)
    with pytest.raises(JournalError, match="is a directory; a journal is a file"):
        disk.open_existing(tmp_path, os.O_RDONLY)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(JournalError, match="is no regular file"):
        disk.open_existing(tmp_path / "pipe", os.O_RDONLY)


def test_a_descriptor_is_not_inherited(tmp_path):
    (tmp_path / "run").write_bytes(b"")
    fd = disk.open_existing(tmp_path / "run", os.O_RDWR)
    assert not os.get_inheritable(fd)
    os.close(fd)


def test_whether_an_open_file_still_bears_its_name(tmp_path):
    path = tmp_path / "folder" / "run"
    path.parent.mkdir()
    path.write_bytes(b"data")
    fd = disk.open_existing(path, os.O_RDWR)
    assert disk.is_at(fd, path)
    path.rename(tmp_path / "moved")
    assert not disk.is_at(fd, path)
    path.write_bytes(b"data")
    assert not disk.is_at(fd, path)
    path.unlink()
    path.parent.rmdir()
    path.parent.write_bytes(b"")
    assert not disk.is_at(fd, path)
    os.close(fd)


def test_a_short_write_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "write", lambda _fd, data: len(data) - 1)
    with pytest.raises(OSError, match="only 3 of 4 bytes were taken; the disk may be full"):
        disk.write_once(-1, b"data")


def test_what_is_kept_aside_overwrites_nothing(tmp_path):
    kept = [disk.keep_aside(tmp_path / "run", data) for data in (b"one", b"two")]
    assert names(tmp_path) == ["run.torn-1", "run.torn-2"]
    assert [path.read_bytes() for path in kept] == [b"one", b"two"]


def test_without_flock_or_directory_handles_it_still_works(tmp_path, monkeypatch):
    """As on Windows, in a fresh copy of the module."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    monkeypatch.delattr(os, "O_DIRECTORY")
    monkeypatch.delattr(os, "O_CLOEXEC")
    spec = spec_from_file_location("disk_elsewhere", disk.__file__)
    elsewhere = module_from_spec(spec)
    spec.loader.exec_module(elsewhere)
    elsewhere.publish(tmp_path / "run", b"data")
    with elsewhere.locked(-1, Path("run")):
        pass
    assert (tmp_path / "run").read_bytes() == b"data"
    with pytest.raises(ValueError, match="descriptor"), disk.locked(-1, Path("run")):
        pass


def test_whoever_waits_for_a_lock_is_told_for_whom_and_goes_on_waiting(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(disk, "_PATIENCE", 0.05)
    path, seen = tmp_path / "run", []
    mine, theirs = (os.open(path, os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert disk.try_lock(theirs)
    free = threading.Timer(0.5, lambda: (seen.append(len(caplog.records)), os.close(theirs)))
    free.start()
    with disk.locked(mine, path):
        free.join()
    os.close(mine)
    assert seen == [1]  # while it waited, and once
    (said,) = caplog.records
    assert said.levelname == "WARNING"
    assert str(path) in said.getMessage()
    if sys.platform == "linux":
        assert f"process {os.getpid()} (" in said.getMessage()


def test_a_script_without_any_logging_sees_what_it_waits_for(tmp_path):
    """Which would else look as if it hung."""
    path = tmp_path / "run"
    mine = os.open(path, os.O_RDWR | os.O_CREAT)
    assert disk.try_lock(mine)
    script = (
        "import sys; from pathlib import Path; from covey import disk\n"
        "disk._PATIENCE = 0.05\n"
        "with open(sys.argv[1], 'r+b') as file: disk.take_lock(file.fileno(), Path(sys.argv[1]))"
    )
    words = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as waiting:
        assert f"{path} is locked by " in waiting.stderr.readline()
        os.close(mine)
    assert waiting.returncode == 0


def test_a_short_wait_is_not_worth_a_word(tmp_path, caplog):
    path = tmp_path / "run"
    mine, theirs = (os.open(path, os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert disk.try_lock(theirs)
    threading.Timer(0.05, os.close, (theirs,)).start()
    with disk.locked(mine, path):
        pass
    os.close(mine)
    assert caplog.records == []


@pytest.mark.parametrize(
    "locks",
    [None, "", "nonsense\n1: POSIX ADVISORY WRITE 1 08:01:{ino} 0 EOF\n", "1: -> FLOCK\n"],
)
def test_a_holder_that_nobody_knows_is_another_process(tmp_path, monkeypatch, locks):
    path = tmp_path / "run"
    path.touch()
    if locks is not None:
        (tmp_path / "locks").write_text(locks.format(ino=path.stat().st_ino))
    monkeypatch.setattr(disk, "_LOCKS", tmp_path / "locks")
    with path.open() as file:
        assert disk.holder_of(file.fileno()) is None


@pytest.mark.parametrize(("pid", "said"), [(0, None), (2**22 + 1, "process 4194305")])
def test_a_holder_out_of_sight_has_no_name(tmp_path, monkeypatch, pid, said):
    path = tmp_path / "run"
    path.touch()
    line = f"4: FLOCK  ADVISORY  WRITE {pid} fd:01:{path.stat().st_ino} 0 EOF\n"
    (tmp_path / "locks").write_text(line)
    monkeypatch.setattr(disk, "_LOCKS", tmp_path / "locks")
    with path.open() as file:
        assert disk.holder_of(file.fileno()) == said


def test_what_a_killed_creator_left_is_removed_when_nobody_can_be_at_it(tmp_path):
    journal = tmp_path / "run[1].jsonl"
    old, new = (tmp_path / f"run[1].jsonl.new-{digits}" for digits in ("0a1b2c3d", "4e5f6071"))
    others = [tmp_path / n for n in ("run1.jsonl.new-0a1b2c3d", "run[1].jsonl.new-mine", "run")]
    link = tmp_path / "run[1].jsonl.new-99999999"
    link.symlink_to(others[0])
    for path in (old, new, *others):
        path.touch()
        if path != new:
            os.utime(path, (0, 0))
    disk.remove_staged(journal)
    assert names(tmp_path) == sorted(path.name for path in (new, link, *others))


# File descriptors and locks


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "_open", weakref.WeakSet())  # others may have files open
    return Descriptor(os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT))


def test_closing_twice_is_harmless(file):
    assert is_open(file.fd)
    file.close()
    assert not is_open(file.fd)
    file.close()
    assert not file.close.alive


def test_a_forgotten_file_is_closed(file, tmp_path):
    fd = Descriptor(os.open(tmp_path / "file", os.O_RDWR)).fd
    assert not is_open(fd)


def test_a_child_closes_all_of_them(file, tmp_path):
    """What is done in a forked child; that it is done there is shown in tests/reliability."""
    other = Descriptor(os.open(tmp_path / "file", os.O_RDWR))
    disk._close_all()
    assert not is_open(file.fd)
    assert not is_open(other.fd)


def test_a_lock_between_threads_is_free_in_a_child(monkeypatch):
    """What is done in a forked child, whoever held it."""
    monkeypatch.setattr(disk, "_mutexes", weakref.WeakSet())
    mutex, taken, leave = Mutex(), threading.Event(), threading.Event()

    def hold():
        with mutex:
            taken.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    disk._renew_all()
    with mutex, mutex:
        leave.set()
        thread.join()  # and whoever held it lets go of what it held, in silence


# Files that are written whole or not at all


def test_links_are_followed_and_modes_kept(tmp_path):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to("target.csv")
    write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_link_that_leads_nowhere_yet_is_filled(tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to("target.csv")
    write_whole(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "target.csv").read_text() == "new"


def test_a_link_that_leads_to_itself_is_an_error(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="loop"):
        write_whole(tmp_path / "loop", "new")
    assert [p.name for p in tmp_path.iterdir()] == ["loop"]


def test_a_new_file_has_the_mode_that_the_user_wants(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "a", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_device_is_written_into_and_not_replaced():
    write_whole(Path("/dev/null"), "gone")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_pipe_is_written_into_and_not_replaced(tmp_path):
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "new" * 100_000)
    reader.join(timeout=300)
    assert heard == ["new" * 100_000]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_no_link_is_written_through_even_where_the_name_is_guessed(tmp_path, monkeypatch):
    """Somebody plants a link under the very name that the draft will have."""
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    monkeypatch.setattr(os, "urandom", bytes)
    planted = tmp_path / f".covey-{'0' * 16}.tmp"
    planted.symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "b.csv", "new")
    assert victim.read_text() == "precious"
    assert planted.is_symlink()
    assert not (tmp_path / "b.csv").exists()


def test_the_name_of_the_draft_cannot_be_foreseen(tmp_path, monkeypatch):
    seen = []
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda a, b: (seen.append(a.name), replace(a, b)))
    for _ in range(3):
        write_whole(tmp_path / "b.csv", "new")
    assert len(set(seen)) == 3
    assert not any(str(os.getpid()) == name.split(".")[-1] for name in seen)


def test_what_fails_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_text("old")

    def full(_fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_may_be_as_long_as_names_can_be(tmp_path):
    path = tmp_path / ("n" * 255)
    write_whole(path, "new")
    assert path.read_text() == "new"
