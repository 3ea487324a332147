from __future__ import annotations

import os
import threading
import weakref

import pytest

from covey.log import disk as descriptor
from covey.log.disk import Descriptor, Mutex


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(descriptor, "_open", weakref.WeakSet())  # others may have files open
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
    descriptor._close_all()
    assert not is_open(file.fd)
    assert not is_open(other.fd)


def test_a_lock_between_threads_is_free_in_a_child(monkeypatch):
    """What is done in a forked child, whoever held it."""
    monkeypatch.setattr(descriptor, "_mutexes", weakref.WeakSet())
    mutex, taken, leave = Mutex(), threading.Event(), threading.Event()

    def hold():
        with mutex:
            taken.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    descriptor._renew_all()
    with mutex, mutex:
        leave.set()
        thread.join()  # and whoever held it lets go of what it held, in silence
