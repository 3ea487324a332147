from __future__ import annotations

import logging
import os
import signal
import threading

import pytest

from covey.run.loop import Interrupt


def press():
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_is_noted_and_the_second_obeyed_at_once(caplog):
    before = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        interrupt.check()
        with caplog.at_level(logging.WARNING, logger="covey"):
            press()
        assert interrupt.pressed
        assert "Ctrl-C again kills" in caplog.text
        with pytest.raises(KeyboardInterrupt):
            interrupt.check()
        with pytest.raises(KeyboardInterrupt):
            press()
        assert interrupt.twice
        for _ in range(5):
            press()  # what runs is being killed, and that is not broken off
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_that_fails_in_the_midst_of_it_is_no_matter(monkeypatch):
    """As logging does, if Ctrl-C comes while another line is being written."""

    def reentrant(*_):
        raise RuntimeError("reentrant call inside <_io.BufferedWriter>")

    monkeypatch.setattr("covey.run.loop._log.warning", reentrant)
    with Interrupt() as interrupt:
        press()
        assert interrupt.pressed


def test_elsewhere_it_does_nothing():
    found = []

    def enter():
        with Interrupt():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGINT)]


def test_who_ignores_it_goes_on_ignoring_it():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupt() as interrupt:
            press()
            assert not interrupt.pressed
    finally:
        signal.signal(signal.SIGINT, before)
