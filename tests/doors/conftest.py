"""What tests of every door share."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest
import typer.main


@pytest.fixture(autouse=True, scope="session")
def _commands_built_once() -> Iterator[None]:
    """Typer builds all commands at each call of the program: most of the time of a test of one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield
