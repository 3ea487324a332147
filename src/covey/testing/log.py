"""What every log must do: `covey.log.log.Log` as tests, for a log of your own.

    from covey.testing import LogContract

    class TestMyLog(LogContract):
        def make_log(self, header):
            self.address = ...
            return MyLog.create(self.address, header)

        def open_log(self):
            return MyLog.open(self.address)

pytest does the rest. Handles are used from several threads, as those of several processes are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from covey.errors import JournalConflict, JournalError
from covey.log.journal import event_line, parse_events
from covey.log.log import Log

_HEADER = {"goal": "max", "of": "a contract"}
_PATIENCE = 30.0  # seconds to wait before a test fails
_MOMENT = 0.2  # seconds in which something must not happen


class LogContract:
    """Inherit from it, say how your log is made and opened, and let pytest run it."""

    def make_log(self, header: Mapping[str, Any]) -> Log:
        """A new, empty log."""
        raise NotImplementedError

    def open_log(self) -> Log:
        """Another handle on the log that was made last."""
        raise NotImplementedError

    @pytest.fixture
    def log(self) -> Log:
        """A new log."""
        return self.make_log(_HEADER)

    def test_a_new_log_is_empty_and_knows_its_header(self, log: Log) -> None:
        assert isinstance(log, Log)
        assert log.name
        assert log.read(0) == []
        for handle in (log, self.open_log()):
            assert {name: handle.header[name] for name in _HEADER} == _HEADER

    def test_events_are_numbered_from_one_and_read_in_order(self, log: Log) -> None:
        assert [log.append({"n": n}, n) for n in range(3)] == [1, 2, 3]
        for handle in (log, self.open_log()):
            assert [(e["seq"], e["n"]) for e in handle.read(0)] == [(1, 0), (2, 1), (3, 2)]

    @pytest.mark.parametrize("since", range(4))
    def test_what_follows_on_a_number_is_read_from_there(self, log: Log, since: int) -> None:
        for n in range(3):
            log.append({"n": n}, n)
        for handle in (log, self.open_log()):
            for _ in range(2):  # reading takes nothing away
                assert [event["seq"] for event in handle.read(since)] == [1, 2, 3][since:]

    def test_what_one_handle_writes_the_other_reads(self, log: Log) -> None:
        other = self.open_log()
        log.append({"n": "mine"}, 0)
        assert [event["n"] for event in other.read(0)] == ["mine"]
        other.append({"n": "theirs"}, 1)
        assert [event["n"] for event in log.read(1)] == ["theirs"]
        assert [event["n"] for event in log.read(0)] == ["mine", "theirs"]

    def test_an_event_does_not_follow_on_what_its_writer_has_not_read(self, log: Log) -> None:
        other = self.open_log()
        log.append({"n": 0}, 0)
        for handle in (other, log):
            with pytest.raises(JournalConflict):
                handle.append({"n": 1}, 0)
        assert [event["n"] for event in log.read(0)] == [0]
        assert other.append({"n": 1}, 1) == 2  # whichever handle has read it

    def test_the_line_is_the_line_of_a_journal(self, log: Log) -> None:
        event = {"type": "told", "v": 1, "ids": [0], "values": [0.1], "key": "naïve ☂"}
        log.append(event, 0)
        (read,) = self.open_log().read(0)
        (line,), _, torn = parse_events([event_line(1, event)], 0, 0, log.name)
        assert not torn
        assert {**read, "at": line["at"]} == line

    @pytest.mark.parametrize("event", [{"x": float("nan")}, {"x": object()}, {"seq": 3}])
    def test_what_is_no_event_is_refused_and_leaves_nothing(self, log: Log, event: Any) -> None:
        with pytest.raises(JournalError):
            log.append(event, 0)
        assert log.read(0) == []
        assert log.append({"n": 1}, 0) == 1

    def test_what_was_read_cannot_change_the_log(self, log: Log) -> None:
        log.append({"ids": [0]}, 0)
        other = self.open_log()
        other.read(0)[0]["n"] = "edited"
        assert "n" not in self.open_log().read(0)[0]

    def test_many_writers_leave_no_gap_and_lose_nothing(self, log: Log) -> None:
        def write(by: int) -> None:
            handle, seq, left = self.open_log(), 0, list(range(10))
            while left:
                seq += len(handle.read(seq))
                with suppress(JournalConflict):
                    seq = handle.append({"by": by, "n": left[0]}, seq)
                    left.pop(0)

        _all(*(partial(write, by) for by in range(4)))
        events = log.read(0)
        assert [event["seq"] for event in events] == list(range(1, 41))
        for by in range(4):
            assert [event["n"] for event in events if event["by"] == by] == list(range(10))

    def test_those_who_ask_take_turns_and_nobody_else_waits(self, log: Log) -> None:
        other, theirs = self.open_log(), threading.Event()

        def ask() -> None:
            with other.asking():
                theirs.set()

        asks = threading.Thread(target=ask, daemon=True)
        with log.asking():
            asks.start()
            assert not theirs.wait(_MOMENT)
            _all(lambda: self.open_log().append({"n": 0}, 0))
            assert [event["n"] for event in log.read(0)] == [0]
        assert theirs.wait(_PATIENCE)
        asks.join(_PATIENCE)

    def test_a_turn_ends_when_what_was_done_in_it_fails(self, log: Log) -> None:
        with pytest.raises(ZeroDivisionError), log.asking():
            _ = 1 // 0
        with self.open_log().asking():
            assert log.read(0) == []

    def test_who_asks_may_ask_within(self, log: Log) -> None:
        with log.asking(), log.asking():
            assert log.append({"n": 0}, 0) == 1

    def test_one_run_at_a_time(self, log: Log) -> None:
        other = self.open_log()
        with log.running():
            with pytest.raises(JournalConflict), other.running():
                pytest.fail("two run one log")
            assert other.append({"n": 0}, 0) == 1
        with other.running():
            assert [event["n"] for event in log.read(0)] == [0]

    def test_closing_twice_is_harmless(self, log: Log) -> None:
        log.append({"n": 0}, 0)
        other = self.open_log()
        other.close()
        other.close()
        assert [event["n"] for event in log.read(0)] == [0]


def _all(*works: Callable[[], object]) -> None:
    """Call all of these at once, each in a thread; raise what one of them raises."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_PATIENCE)
        assert not thread.is_alive(), "it waits in vain"
    for error in errors:
        raise error
