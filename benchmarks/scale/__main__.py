"""`make bench-scale`: an ask over pools of up to a million rows, as Markdown tables and a plot.

python -m benchmarks.scale [--largest 1000000] [--peer] [--plot FILE]
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.scale import peer
from benchmarks.scale.ask import apart
from benchmarks.scale.problem import DIMENSION, RESULTS

SIZES = (10_000, 100_000, 1_000_000)
# objective, strategy, batch, seconds hoped for at a million on two cores
CASES = (
    ("smooth", "ucb-dpp-max", 10, 15.0),
    ("smooth", "ucb-dpp-sample", 10, 15.0),
    ("smooth", "ucb-dpp-max", 100, 30.0),
    ("smooth", "ucb-dpp-sample", 100, 30.0),
    ("rough", "ucb-dpp-max", 10, 15.0),
    ("rough", "ucb-dpp-sample", 10, 15.0),
    ("rough", "ucb-dpp-max", 100, 120.0),
    ("rough", "ucb-dpp-sample", 100, 120.0),
    ("rough", "est-dpp-sample", 100, 120.0),
    ("smooth", "auto", 100, 30.0),
    ("rough", "auto", 100, 120.0),
    ("rough", "ucb-dpp-max", 1000, None),
    ("rough", "ucb-dpp-sample", 1000, None),
    ("rough", "auto", 1000, None),
)


def main(arguments: list[str]) -> None:
    """Print the tables as they come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--peer", action="store_true", help="BoTorch on 1e5 rows beside ours")
    parser.add_argument("--plot", type=Path, help="where to draw seconds over n")
    options = parser.parse_args(arguments)
    say = sys.stdout.write
    say(
        f"{DIMENSION} inputs, {RESULTS} results, {os.cpu_count()} cores of {platform.machine()}\n\n"
    )
    made = []
    for line, row in _asks(options.largest):
        say(line)
        sys.stdout.flush()
        made.append(row)
    if options.peer:
        say(_against_peer(min(100_000, options.largest)))
    if options.plot:
        from benchmarks.scale.plot import draw

        draw(made, options.plot)


def _asks(largest: int) -> Iterator[tuple[str, dict[str, Any]]]:
    head = "| objective | strategy | B | n | region | seconds | hoped | peak MiB | by | stages |\n"
    line = head + "|---|" + "---|" * 9 + "\n"
    for objective, strategy, k, hoped in CASES:
        for n in (size for size in SIZES if size <= largest):
            row = apart(n, k, strategy, objective)
            stages = ", ".join(f"{name} {took:.1f}" for name, took in row["stages"].items())
            target = f"{hoped:.0f}" if hoped and n == SIZES[-1] else ""
            line += (
                f"| {objective} | {strategy} | {k} | {n} | {row['region'] or ''} | "
                f"{row['seconds']:.1f} | {target} | {row['peak_mib']:.0f} | "
                f"{row['sampler']} {row['error'] or ''} | {stages} |\n"
            )
            yield line, row
            line = ""


def _against_peer(n: int) -> str:
    ours = apart(n, 10, "auto", "smooth")
    ours_max = apart(n, 10, "ucb-dpp-max", "smooth")
    chosen = [row["seconds"] - row["stages"]["fit"] for row in (ours, ours_max)]
    theirs = peer.seconds(n, 10, "smooth")
    return (
        f"\n{peer.name()} over {n} rows, B = 10, without its fit: {theirs:.1f} s; ours without "
        f"our fit: auto {chosen[0]:.2f} s ({theirs / chosen[0]:.0f} times faster), ucb-dpp-max "
        f"{chosen[1]:.2f} s ({theirs / chosen[1]:.0f} times)\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
