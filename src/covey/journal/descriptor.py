"""What a forked child does not keep: open files, the locks on them, and locks between threads."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress


class Descriptor:
    """An open file; closed by ``close``, when it is forgotten, and in every forked child.

    A lock lives as long as any copy of the descriptor it was taken on. A worker that was forked
    from a study would keep the journal locked after the study was killed.
    """

    __slots__ = ("__weakref__", "close", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.close = weakref.finalize(self, os.close, fd)  # the second time it does nothing
        _open.add(self)


_open: weakref.WeakSet[Descriptor] = weakref.WeakSet()


def _close_all() -> None:
    for descriptor in list(_open):
        descriptor.close()


class Mutex:
    """A lock between threads, which its holder may take again; free in every forked child.

    There, the thread that held it does not exist, and would never let it go.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self.renew()
        _mutexes.add(self)

    def renew(self) -> None:
        """Forget whoever holds it."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        with suppress(RuntimeError):  # of a child that was forked while inside
            self._lock.release()


_mutexes: weakref.WeakSet[Mutex] = weakref.WeakSet()


def _renew_all() -> None:
    for mutex in list(_mutexes):
        mutex.renew()


_at_fork: Callable[..., None] | None = getattr(os, "register_at_fork", None)
if _at_fork is not None:  # Windows does not fork
    _at_fork(after_in_child=_close_all)
    _at_fork(after_in_child=_renew_all)
