"""Arguments of the time when a host's points came in batches, which are still taken."""

from __future__ import annotations

import warnings


def warn_of_unused(of: str, **given: object) -> None:
    """Warn of arguments that have no effect any more, those that are given."""
    names = [f"{name}=" for name, value in given.items() if value is not None]
    if names:
        warnings.warn(
            f"{of} no longer uses {' and '.join(names)}: every point is chosen as it is asked for, "
            "from all that is known by then. Leave it out; it is an error from Covey 0.4 on.",
            FutureWarning,
            stacklevel=3,
        )
