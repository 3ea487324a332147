"""Interrupt: the first Ctrl-C is noted and obeyed between two steps, the second at once.

The second is the last: what it asks for is to kill what runs, and that is not broken off half way.
"""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

_log = logging.getLogger("covey")


class Interrupt:
    """While it is entered, Ctrl-C does not break off in the middle of writing the log.

    Signals reach only the main thread; elsewhere, and where Ctrl-C is ignored, it does nothing.
    """

    def __init__(self) -> None:
        self.pressed = False
        self.twice = False
        self._before: Any = None

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, None):
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self.pressed:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.twice:
            return
        if self.pressed:
            self.twice = True
            raise KeyboardInterrupt
        self.pressed = True
        # In the midst of another line on the same stream, logging raises RuntimeError.
        with suppress(OSError, RuntimeError):
            _log.warning("stopping; Ctrl-C again kills what runs at once")
