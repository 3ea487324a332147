"""R21: where a journal may be, and what is said where it may not."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.reliability.alone import alone
from tests.reliability.mutants import planted
from tests.reliability.verdict import Broken, demand, stored

import covey
from covey import disk as network
from covey.errors import CoveyError, JournalConflict, JournalError
from covey.log import running
from covey.log.journal import Journal, read
from covey.log.running import folder_of

SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})


def study_at(path: Path) -> covey.Study:
    return covey.Study(SPACE, strategy="random", seed=0, journal=path)


def refused(path: Path, *words: str) -> None:
    """Neither created nor opened: a message with these words, and no file that was not there."""
    before = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    try:
        study_at(path)
    except CoveyError as error:
        for word in words:
            demand(word in str(error), "the message is not clear", word, error)
    else:
        raise Broken(f"it was not refused: {path}")
    after = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    demand(before == after, "something was left behind", after)


def works(path: Path) -> None:
    """Created, written, loaded, written, read, run."""
    study_at(path).add([{"x": 0.1}], [1.0])
    covey.Study.load(path).add([{"x": 0.2}], [2.0])
    demand(len(covey.Study.load(path, read_only=True).history) == 2, "results are missing", path)
    with running(path):
        pass


# ---------------------------------------------------------------- network drives


def check_network(folder: Path, kind: str) -> None:
    """A drive of this kind is refused by name; unless that is forced."""
    mount = str(folder).replace(" ", "\\040")
    with pytest.MonkeyPatch.context() as patch:
        mounts = folder.parent / "mounts"
        mounts.write_text(f"/dev/root / ext4 rw 0 0\nserver:/x {mount} {kind} rw 0 0\n")
        patch.setattr(network, "_MOUNTS", mounts)
        patch.delenv(network.FORCE, raising=False)
        refused(folder / "run.jsonl", "network drive", kind, network.FORCE, str(folder))
        patch.setenv(network.FORCE, "1")
        works(folder / "run.jsonl")
        patch.delenv(network.FORCE)
        refused(folder / "run.jsonl", "network drive")
        demand(len(read(folder / "run.jsonl").events) == 2, "it cannot be read any more")


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "fuse.rclone"])
@pytest.mark.parametrize("name", ["plain", "two words", "größe"])
def test_network_drives_are_refused_unless_forced(ram, kind, name):
    (ram / name).mkdir()
    check_network(ram / name, kind)


def test_places_would_catch_a_network_drive(ram):
    (ram / "far").mkdir()
    with pytest.raises(Broken, match="was not refused"), planted("network drives accepted"):
        check_network(ram / "far", "nfs4")


# ---------------------------------------------------------------- odd names and missing folders


@pytest.mark.parametrize(
    "name",
    ["two words", "new\nline", "emoji 🐦", "größe", "-dash", "%d%s{}", "a" * 200, "\udcff.jsonl"],
)
def test_odd_names_work(ram, name):
    works(ram / name)


def check_refusals(folder: Path) -> None:
    """Whatever is no journal, and cannot become one."""
    (folder / "folder").mkdir()
    (folder / "file").write_text("mine")
    (folder / "empty").write_bytes(b"")
    os.mkfifo(folder / "pipe")
    refused(folder / "missing" / "run", "is no directory", "create it")
    refused(folder / "folder", "is a directory")
    refused(folder / "file", "not a covey journal")
    refused(folder / "empty", "empty")
    refused(folder / "pipe", "no regular file")
    refused(folder / "file" / "run", "file")
    refused(folder / ("a" * 300), "cannot look for", os.strerror(errno.ENAMETOOLONG))
    for path in (folder / "folder", folder / "file", folder / "empty"):
        for start in (Journal.open, lambda p: Journal.create(p, {})):
            try:
                start(path)
            except JournalError:
                continue
            raise Broken(f"it was not refused: {path}")
    demand((folder / "file").read_text() == "mine", "a file of somebody else was changed")


def test_what_cannot_be_a_journal_is_refused_with_a_reason(ram):
    check_refusals(ram)


def test_places_would_catch_a_journal_that_replaces_a_file(ram):
    with pytest.raises(Broken), planted("a new journal replaces an old one"):
        check_refusals(ram)


# ---------------------------------------------------------------- links


def check_links(folder: Path) -> None:
    """A journal by two names is one journal, and one run."""
    (folder / "deep").mkdir()
    real, link = folder / "deep" / "run.jsonl", folder / "link.jsonl"
    works(real)
    link.symlink_to(real)
    covey.Study.load(link).add([{"x": 0.3}], [3.0])
    covey.Study.load(real).add([{"x": 0.4}], [4.0])
    with link.open("ab") as file:
        file.write(b'{"seq":5')
    covey.Study.load(link).add([{"x": 0.5}], [5.0])
    demand(len(stored(real)) == 5, "a link leads somewhere else")
    demand(link.is_symlink(), "the link was replaced")
    with running(real):
        try:
            with running(link):
                raise Broken("a second run was let in by another name")
        except JournalConflict:
            pass


def test_a_link_and_what_it_leads_to_are_one_journal(ram):
    check_links(ram)
    assert folder_of(ram / "link.jsonl") == folder_of(ram / "deep" / "run.jsonl")


def test_places_would_catch_a_lock_for_each_name(ram):
    with pytest.raises(Broken, match="by another name"), planted("a lock for each name"):
        check_links(ram)


def test_a_link_to_a_new_place_is_a_new_journal_there(ram):
    (ram / "link").symlink_to(ram / "real")
    refused(ram / "link", "exists already")


# ---------------------------------------------------------------- read-only folders


@pytest.fixture
def sealable(tmp_path):
    """A folder that a process in a namespace of its own can mount read-only, even for root."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare on this system")
    mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(tmp_path)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"a folder cannot be mounted read-only here: {done.stderr.strip()}")
    return tmp_path


def check_read_only(folder: Path) -> None:
    """A read-only disk can be read from, and every attempt to write says why not."""
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    works(folder / "run")
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    refused(folder / "new", "cannot create", os.strerror(errno.EROFS))
    refused(folder / "run", "cannot open", os.strerror(errno.EROFS))
    demand(len(covey.Study.load(folder / "run", read_only=True).history) == 2, "not readable")
    try:
        with running(folder / "run"):
            raise Broken("a run began on a read-only disk")
    except JournalError as error:
        demand(os.strerror(errno.EROFS) in str(error), "the message is not clear", error)


def test_a_read_only_disk_is_read_and_not_written(sealable):
    alone(check_read_only, sealable, under=("unshare", "-rm"))


@pytest.mark.skipif(os.geteuid() == 0, reason="no folder is read-only to root; the test above is")
def test_a_read_only_folder_says_so(tmp_path):
    works(tmp_path / "run")
    tmp_path.chmod(0o555)
    try:
        refused(tmp_path / "new", "cannot create", os.strerror(errno.EACCES))
        covey.Study.load(tmp_path / "run").add([{"x": 0.3}], [3.0])  # the file itself may change
    finally:
        tmp_path.chmod(0o755)
