"""The command line: thin commands that open doors when they are called."""

from covey.cli.app import main

__all__ = ["main"]
