"""Constraints by which pip installs the lowest versions that pyproject.toml allows.

`python .ci/lowest.py EXTRA,EXTRA` prints a line for each dependency of the base and the extras.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?>=([0-9.]+)")


def lowest(extras: Sequence[str]) -> Iterator[str]:
    """Each dependency pinned to its lower bound, sorted by name."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    for requirement in sorted(
        {*project["dependencies"], *(r for e in extras for r in optional[e])}
    ):
        found = _REQUIREMENT.match(requirement)
        if found is None:
            sys.exit(f"{requirement} has no lower bound, such as {requirement}>=1.0")
        yield f"{found[1]}=={found[2]}"


if __name__ == "__main__":
    for line in lowest(sys.argv[1].split(",")):
        sys.stdout.write(f"{line}\n")
