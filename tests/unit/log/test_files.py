import os
import secrets
import stat
import threading
from pathlib import Path

import pytest

from covey.log.disk import write_whole


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
    reader.join(timeout=30)
    assert heard == ["new" * 100_000]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_no_link_is_written_through_even_where_the_name_is_guessed(tmp_path, monkeypatch):
    """Somebody plants a link under the very name that the draft will have."""
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    monkeypatch.setattr(secrets, "token_hex", lambda n: "0" * 2 * n)
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
