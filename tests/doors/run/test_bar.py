"""The bar of a run: on a terminal, in a notebook, and nowhere else."""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

import covey
from covey.run import Progress, maximize
from covey.run.bar import in_notebook, progress_words

SPACE = covey.Space({"x": covey.Real(-1.0, 1.0)})


class Terminal(io.StringIO):
    def isatty(self):
        return True


def go(**options):
    with ThreadPoolExecutor(2) as threads:
        return maximize(
            lambda p: p["x"], SPACE, batch=2, rounds=3, workers=threads, seed=0, **options
        )


def test_a_line_in_words():
    far = Progress(3, 12, 2, 1, 0.123456789, "trial 4", 75.0, 4.5, "the last 3 failed")
    assert progress_words(far) == (
        "3/12 done, 2 running, 1 failed, best 0.123457, 4.5 spent, about 1 min 15 s left; "
        "the last 3 failed"
    )
    assert progress_words(Progress(0, 4, 1, 0, None, "trial 0", None), waiting=True) == (
        "0/4 done, 1 running, 0 failed, best -; waiting for trial 0"
    )


@pytest.mark.parametrize("progress", [None, True])
def test_it_is_shown_at_a_terminal(monkeypatch, progress):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    go(progress=progress)
    assert "6/6 done" in sys.stderr.getvalue()


def test_silence(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    go(progress=False)
    assert sys.stderr.getvalue() == ""
    seen = []
    go(watch=seen.append)  # whoever watches wants no bar
    assert sys.stderr.getvalue() == ""
    assert seen
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    go()
    assert sys.stderr.getvalue() == ""


def test_whoever_watches_may_have_both(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    seen = []
    go(watch=seen.append, progress=True)
    assert seen[-1].done == 6
    assert "6/6 done" in sys.stderr.getvalue()


def test_in_a_notebook(monkeypatch):
    pages = []
    handle = SimpleNamespace(update=pages.append)
    shell = SimpleNamespace(kernel=object())
    fake = SimpleNamespace(get_ipython=lambda: shell)
    display = SimpleNamespace(HTML=str, display=lambda page, display_id: handle)
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    assert in_notebook()
    go()
    assert "6/6 done" in pages[-1]
    assert 'value="1.0000"' in pages[-1]
    assert len(pages) == len(set(pages))
    pages.clear()
    go(progress=False)
    assert not pages
    shell = None
    assert not in_notebook()
