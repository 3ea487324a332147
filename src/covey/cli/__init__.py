"""The `covey` command line; each command imports what it needs when it is called."""

from covey.cli.app import main

__all__ = ["main"]
