from pathlib import Path

import pytest

from covey import disk
from covey.disk import FORCE, drive_kind, refuse_network
from covey.errors import JournalError

MOUNTS = """\
/dev/root / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb /home/ann/local\\040disk ext4 rw 0 0
host:/ /mnt/far fuse.sshfs rw 0 0
lustre /scratch lustre rw,flock 0 0
broken
server:/data /mnt/größe nfs rw 0 0
//server/share /late cifs rw 0 0
tmpfs /late tmpfs rw 0 0
"""


@pytest.fixture(autouse=True)
def mounts(tmp_path, monkeypatch):
    file = tmp_path / "mounts"
    file.write_text(MOUNTS, encoding="utf-8")
    monkeypatch.setattr(disk, "_MOUNTS", file)
    monkeypatch.delenv(FORCE, raising=False)
    return file


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/run.jsonl", "ext4"),
        ("/home/ann/run.jsonl", "nfs4"),
        ("/home/ann/local disk/run.jsonl", "ext4"),
        ("/homestead/run.jsonl", "ext4"),
        ("/mnt/far/run.jsonl", "fuse.sshfs"),
        ("/mnt/größe/run.jsonl", "nfs"),
        ("/late/run.jsonl", "tmpfs"),  # what is mounted last hides what was there
    ],
)
def test_the_deepest_mount_decides(path, kind):
    assert drive_kind(Path(path)) == kind


@pytest.mark.parametrize("path", ["/home/ann/run.jsonl", "/mnt/far/run.jsonl"])
def test_a_network_drive_is_refused_unless_forced(path, monkeypatch):
    with pytest.raises(JournalError, match=r"network drive .*COVEY_NETWORK_JOURNAL=1"):
        refuse_network(Path(path))
    monkeypatch.setenv(FORCE, "1")
    refuse_network(Path(path))


@pytest.mark.parametrize("path", ["/srv/run.jsonl", "/scratch/run.jsonl", "/late/run.jsonl"])
def test_local_and_cluster_drives_are_fine(path):
    refuse_network(Path(path))


def test_where_the_system_does_not_say_nothing_is_refused(mounts):
    mounts.unlink()
    assert drive_kind(Path("/home/ann")) == ""
    refuse_network(Path("/home/ann/run.jsonl"))
