"""A group of commands that names the nearest one when a name is mistyped."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from covey.cli.exits import ExitCode, Stop
from covey.errors import did_you_mean

# Newer versions of typer carry a click of their own; by way of its public subclass, this is the
# root of command line errors in either case.
ClickException: type[Exception] = typer.BadParameter.__mro__[2]


class Suggesting(TyperGroup):
    """Says which command was perhaps meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As typer does it, with a suggestion."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            known = self.list_commands(ctx)
            raise Stop(
                ExitCode.USAGE,
                f"there is no command {args[0]!r}; there are {', '.join(known)}."
                f"{did_you_mean(args[0], known)}",
            )
        return super().resolve_command(ctx, args)
