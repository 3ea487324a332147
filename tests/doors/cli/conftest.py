"""The command line as a user meets it: words in; exit code, stdout and stderr out."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass

import pytest

from covey.cli import main


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run `covey WORDS...` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words, stdin=""):
        monkeypatch.setattr(sys, "argv", ["covey", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as end:
            main()
        caught = capsys.readouterr()
        return Done(int(end.value.code or 0), caught.out, caught.err)

    return run


@pytest.fixture
def study(call):
    """A folder with a study of three parameters, nothing asked yet."""
    words = ["--real", "lr=1e-5:0.1:log", "--integer", "layers=1:8", "--choice", "opt=adam,sgd"]
    assert call("init", *words, "--batch", "3", "--seed", "1").code == 0
    return call
