"""What early stopping saves and loses, played out: `python -m benchmarks.stopping`.

Sixty-four trainings of 27 steps, eight at a time. Each rises to a level of its own at a pace of its
own, so that curves cross, with some noise. A rule sees only what is reported.
"""

from __future__ import annotations

import math
import random
import sys

from covey.history import Reported
from covey.run import Halving, MedianRule
from covey.run.stopping import StoppingRule

_COUNT, _STEPS, _WIDE, _NOISE, _SEEDS = 64, 27, 8, 0.01, 20


def play(rule: StoppingRule | None, seed: int) -> tuple[float, float]:
    """The share of all steps that were run, and how far the best that ended is from the best."""
    rng = random.Random(seed)
    level = [rng.random() for _ in range(_COUNT)]
    pace = [rng.uniform(4.0, 12.0) for _ in range(_COUNT)]
    waiting, running = list(range(_COUNT)), dict[int, int]()
    reports: list[Reported] = []
    ended: set[int] = set()
    while waiting or running:
        while waiting and len(running) < _WIDE:
            running[waiting.pop(0)] = 0
        for id in list(running):
            running[id] += 1
            value = level[id] * (1.0 - math.exp(-running[id] / pace[id])) + rng.gauss(0.0, _NOISE)
            reports.append(Reported(id, 1, running[id], value))
            if running[id] == _STEPS:
                ended.add(id)
                del running[id]
        for id in rule.stopped(reports, 1.0) if rule is not None else ():
            running.pop(id, None)
    final = [level[id] * (1.0 - math.exp(-_STEPS / pace[id])) for id in range(_COUNT)]
    best = max((final[id] for id in ended), default=0.0)
    return len(reports) / (_COUNT * _STEPS), max(final) - best


def main() -> None:
    """Print a line for each rule."""
    rules = [None, Halving(), Halving(first=3), MedianRule(), MedianRule(first=5)]
    for rule in rules:
        found = [play(rule, seed) for seed in range(_SEEDS)]
        steps = sum(share for share, _ in found) / _SEEDS
        lost = sum(loss for _, loss in found) / _SEEDS
        kept = sum(loss == 0.0 for _, loss in found)
        name = "nothing is stopped" if rule is None else str(rule)
        sys.stdout.write(
            f"{name:34} {steps:5.0%} of the steps, the best kept in {kept} of {_SEEDS}, "
            f"{lost:.3f} lost on average\n"
        )


if __name__ == "__main__":
    main()
