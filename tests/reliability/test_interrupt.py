"""Ctrl-C at any line of an append leaves a journal that can be read and gone on with."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.reliability.mutants import planted
from tests.reliability.verdict import Broken, demand, stored

from covey.errors import JournalConflict, JournalDamaged, JournalError
from covey.log import journal
from covey.log.journal import Journal


class Interrupt:
    """Raises KeyboardInterrupt at the k-th line that is run in the file of the journal."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, kind: str, _: Any) -> Any:
        if frame.f_code.co_filename != journal.__file__:
            return None
        if kind == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


def interrupted_at(writer: Journal, at: int) -> bool:
    old = sys.gettrace()
    sys.settrace(Interrupt(at))
    try:
        writer.append({"n": 1})
        return False
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(old)


def check_interrupts(folder: Path) -> int:
    """Interrupt an append at each line in turn; then go on with the same handle, and a new one."""
    for at in itertools.count(1):
        path = folder / f"run-{at}"
        with Journal.create(path, {}) as writer:
            writer.append({"n": 0})
            if not interrupted_at(writer, at):
                return at - 1
            try:
                writer.append({"n": 2})
            except JournalConflict:  # the interrupted event is there, and was never acknowledged
                demand([event["n"] for event in writer.read(writer.seq)] == [1], "it is not there")
                writer.append({"n": 2})
            except JournalDamaged as error:
                raise Broken(f"an interrupt looks like damage: {error}") from error
            except JournalError as error:
                demand("signal handler" in str(error), "no clear message", error)
        found = [event["n"] for event in stored(path)]
        demand(found in ([0], [0, 1], [0, 2], [0, 1, 2]), "an event was lost", at, found)
        with Journal.open(path) as again:
            again.append({"n": 3})
        demand(len(stored(path)) == len(found) + 1, "the next event is gone", at)
    return 0


def test_an_interrupt_at_any_line_of_an_append_does_no_harm(ram):
    assert check_interrupts(ram) > 20


def test_interrupts_would_catch_a_position_that_moves_in_two_steps(ram):
    defect = "position moves in two steps"
    with pytest.raises(Broken, match="looks like damage"), planted(defect):
        check_interrupts(ram)
