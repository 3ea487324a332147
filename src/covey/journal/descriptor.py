"""Descriptor: an open file, and a lock with it, that a forked child does not keep."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable


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


_at_fork: Callable[..., None] | None = getattr(os, "register_at_fork", None)
if _at_fork is not None:  # Windows does not fork
    _at_fork(after_in_child=_close_all)
