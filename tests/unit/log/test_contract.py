"""Both logs of ours keep the contract that a third one is held to; a defective one does not."""

import pytest

from covey.log.journal import Journal
from covey.log.log import MemoryLog
from covey.testing import LogContract


class TestJournal(LogContract):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path):
        self.path = tmp_path / "run.jsonl"

    def make_log(self, header):
        return Journal.create(self.path, header)

    def open_log(self):
        return Journal.open(self.path)


class TestMemoryLog(LogContract):
    def make_log(self, header):
        self.made = MemoryLog(header)
        return self.made

    def open_log(self):
        return self.made


class Careless(MemoryLog):
    """Follows on whatever there is."""

    def append(self, event, after):
        return super().append(event, len(self._lines))


def test_a_log_without_conflicts_would_be_caught():
    contract, log = TestMemoryLog(), Careless()
    contract.made = log
    with pytest.raises(pytest.fail.Exception):
        contract.test_an_event_does_not_follow_on_what_its_writer_has_not_read(log)


class Hasty(MemoryLog):
    """Lets everybody ask at once."""

    def asking(self):
        from contextlib import nullcontext

        return nullcontext()


def test_a_log_without_turns_would_be_caught():
    contract, log = TestMemoryLog(), Hasty()
    contract.made = log
    with pytest.raises(AssertionError):
        contract.test_those_who_ask_take_turns_and_nobody_else_waits(log)
