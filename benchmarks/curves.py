"""What early stopping saves of a whole search: steps of training until 95 % of the best.

    python -m benchmarks.curves run ROWS.jsonl --task made --seeds 20 --workers 2
    python -m benchmarks.curves run ROWS.jsonl --task digits --seeds 10 --workers 2
    python -m benchmarks.curves table benchmarks/results/curves.jsonl.gz

``made``: accuracies over 50 epochs as a function of seven hyper-parameters, for each seed of a
data set of its own. ``digits``: networks that are really trained, for 27 epochs, on the digits of
scikit-learn. Both are in trainings.py. Eight workers are played out by `play`, alike for every
method: whoever is free asks for one point, and each epoch is reported, which may end the training.
Only trainings that came to their end count. A row a run, appended as runs end: it resumes.

95 % of the best is 95 % of the way from the median of random points to the best that is known.
"""

from __future__ import annotations

import argparse
import heapq
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Protocol

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

import covey
from benchmarks.race.runner import append_rows, read
from benchmarks.trainings import TASKS, Digits, Training
from covey import learn
from covey.history import Reported, Told
from covey.run.stopping import Halving, MedianRule, StoppingRule, to_stop

WIDE = 8  # workers
MOST = 300  # trainings of one run
FULL = 100  # whole trainings whose steps a run may use
LONG = 24  # those that it uses at least; it ends then, or as soon as it has 99 % of the best


# Who chooses and who stops.


class Searcher(Protocol):
    """Chooses points one at a time, and says of each report whether to stop."""

    def ask(self) -> tuple[int, Mapping[str, Any]]:
        """A number for a training, and its point."""
        ...

    def report(self, id: int, step: int, value: float) -> bool:
        """Take a value before the end; whether the training is to stop, and is told so."""
        ...

    def tell(self, id: int, step: int, value: float) -> None:
        """Take the value at the end."""
        ...


class Ours:
    """A study with a rule, led as by `covey.run`."""

    def __init__(self, task: Training, seed: int, rule: StoppingRule | None) -> None:
        self._study = covey.Study(task.space, goal=task.goal, seed=seed)
        self._rule, self._sign = rule, 1.0 if task.goal == "max" else -1.0

    def ask(self) -> tuple[int, Mapping[str, Any]]:
        """A number for a training, and its point."""
        (trial,) = self._study.ask(1)
        return trial.id, trial.point

    def report(self, id: int, step: int, value: float) -> bool:
        """Take a value before the end; whether it is stopped."""
        self._study.note(Reported(id, 1, step, value))
        # The median rule is slow to compute, and looks at every fifth step.
        if self._rule is None or not (self._rule.needs(step - 1, step) or step % 5 == 0):
            return False
        if id not in to_stop(self._study.history, self._rule, self._sign):
            return False
        self._study.note(Told((id,), (value,), (), ({"stopped": step},)))
        return True

    def tell(self, id: int, step: int, value: float) -> None:
        """Take the value at the end."""
        self._study.note(Reported(id, 1, step, value))
        self._study.tell(id, value)


class Optuna:
    """Optuna's TPE, with a constant liar for what runs, and a pruner."""

    def __init__(self, task: Training, seed: int, pruned: bool) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._spread = {
            name: (
                optuna.distributions.IntDistribution(p.low, p.high, log=p.log)
                if isinstance(p, covey.Integer)
                else optuna.distributions.FloatDistribution(p.low, p.high, log=p.log)
            )
            for name, p in task.space.parameters.items()
        }
        hyperband = optuna.pruners.HyperbandPruner(1, task.steps, 3)
        self._study = optuna.create_study(
            direction="maximize" if task.goal == "max" else "minimize",
            sampler=optuna.samplers.TPESampler(seed=seed, constant_liar=True),
            pruner=hyperband if pruned else optuna.pruners.NopPruner(),
        )
        self._open: dict[int, Any] = {}
        self._pruned = optuna.trial.TrialState.PRUNED

    def ask(self) -> tuple[int, Mapping[str, Any]]:
        """A number for a training, and its point."""
        trial = self._study.ask(self._spread)
        self._open[trial.number] = trial
        return trial.number, trial.params

    def report(self, id: int, step: int, value: float) -> bool:
        """Take a value before the end; whether it is stopped."""
        self._open[id].report(value, step)
        if not self._open[id].should_prune():
            return False
        self._study.tell(self._open.pop(id), state=self._pruned)
        return True

    def tell(self, id: int, step: int, value: float) -> None:
        """Take the value at the end."""
        self._open[id].report(value, step)
        self._study.tell(self._open.pop(id), value)


class AtFaceValue(Ours):
    """The same, with stopped trainings learnt as if they had ended."""

    def ask(self) -> tuple[int, Mapping[str, Any]]:
        """A number for a training, and its point."""
        before, learn.expected_ends = learn.expected_ends, lambda *_: {}
        try:
            return super().ask()
        finally:
            learn.expected_ends = before


METHODS: dict[str, Callable[[Training, int], Searcher]] = {
    "covey": lambda task, seed: Ours(task, seed, None),
    "covey asha, face": lambda task, seed: AtFaceValue(task, seed, Halving()),
    "covey asha": lambda task, seed: Ours(task, seed, Halving()),
    "covey first=2": lambda task, seed: Ours(task, seed, Halving(2)),
    "covey first=3, face": lambda task, seed: AtFaceValue(task, seed, Halving(3)),
    "covey first=3": lambda task, seed: Ours(task, seed, Halving(3)),
    "covey reduction=2": lambda task, seed: Ours(task, seed, Halving(1, 2)),
    "covey reduction=4": lambda task, seed: Ours(task, seed, Halving(1, 4)),
    "covey median, face": lambda task, seed: AtFaceValue(task, seed, MedianRule()),
    "covey median": lambda task, seed: Ours(task, seed, MedianRule()),
    "optuna": lambda task, seed: Optuna(task, seed, pruned=False),
    "optuna hyperband": lambda task, seed: Optuna(task, seed, pruned=True),
}


# Eight workers, played out.


def play(task: Training, searcher: Searcher, seed: int) -> Iterator[tuple[int, float, float]]:
    """Steps run by all, the time, and the value, whenever a training came to its end.

    A step takes 1 of time, times a pace of the training's own between 3/4 and 4/3. Whoever is free
    asks; the time of an ask does not count.
    """
    rng = np.random.default_rng([seed, 13])
    events: list[tuple[float, int]] = []
    running: dict[int, tuple[Mapping[str, Any], Callable[[int], float], float, int]] = {}
    now, steps, begun = 0.0, 0, 0

    def start() -> None:
        nonlocal begun
        id, point = searcher.ask()
        pace = (4.0 / 3.0) ** rng.uniform(-1.0, 1.0)
        running[id] = point, task.curve(point, 1000 * seed + begun), pace, 0
        heapq.heappush(events, (now + pace, id))
        begun += 1

    for _ in range(WIDE):
        start()
    while events and steps < FULL * task.steps:
        now, id = heapq.heappop(events)
        point, curve, pace, done = running[id]
        done, steps = done + 1, steps + 1
        value = curve(done)
        if done == task.steps:
            searcher.tell(id, done, value)
            yield steps, now, task.final(point, value)
        elif not searcher.report(id, done, value):
            running[id] = point, curve, pace, done
            heapq.heappush(events, (now + pace, id))
            continue
        del running[id]
        if begun < MOST:
            start()


@dataclass(frozen=True)
class Cell:
    """One run."""

    task: str
    method: str
    seed: int


def run(cell: Cell) -> list[dict[str, Any]]:
    """Its row: after how many steps, and when, the best that had ended became how good."""
    task = TASKS[cell.task](cell.seed)
    searcher = METHODS[cell.method](task, cell.seed)
    sign = 1.0 if task.goal == "max" else -1.0
    found: list[tuple[int, float, float]] = []
    middle, best = task.ends
    enough = middle + 0.99 * (best - middle)
    for steps, now, value in play(task, searcher, cell.seed):
        if not found or sign * value > sign * found[-1][2]:
            found.append((steps, round(now, 2), round(value, 6)))
        if steps >= LONG * task.steps and sign * found[-1][2] >= sign * enough:
            break
    return [{**vars(cell), "ends": task.ends, "found": found}]


# The table.


def reached(row: dict[str, Any], share: float, place: int = 0) -> float:
    """Steps (place 0) or time (1) until this share of the way from the middle to the best."""
    middle, best = row["ends"]
    goal = middle + share * (best - middle)
    return next((f[place] for f in row["found"] if (f[2] - goal) * (best - middle) >= 0), math.inf)


def regret(row: dict[str, Any], steps: int) -> float:
    """What is left of the way to the best after so many steps; 1 before anything ended."""
    middle, best = row["ends"]
    values = [f[2] for f in row["found"] if f[0] <= steps]
    return (best - values[-1]) / (best - middle) if values else 1.0


def saved(rows: list[dict[str, Any]], plain: Mapping[int, dict[str, Any]], share: float) -> float:
    """How many times less training than without stopping: the geometric mean over the seeds.

    What was not reached counts as all the steps that a run may use.
    """
    most = FULL * TASKS[rows[0]["task"]].steps
    pairs = [(reached(plain[row["seed"]], share), reached(row, share)) for row in rows]
    return math.exp(sum(math.log(min(a, most) / min(b, most)) for a, b in pairs) / len(pairs))


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each method of each task."""
    for name in dict.fromkeys(row["task"] for row in rows):
        own = [row for row in rows if row["task"] == name]
        if name == "digits":  # the best that is known is the best of all rows
            best = min(row["found"][-1][2] for row in own)
            own = [{**row, "ends": (Digits.ends[0], best)} for row in own]
        plain = {row["seed"]: row for row in own if row["method"] == "covey"}
        yield f"{name}, best known {own[0]['ends'][1]:.4f}" if name == "digits" else name
        yield (
            f"{'':22} seeds  to 95 %  reached  less  time | to 98 %  reached  less | "
            f"regret after {LONG // 2}  {LONG} trainings"
        )
        for method in METHODS:
            some = [r for r in own if r["method"] == method and r["seed"] in plain]
            if not some:
                continue
            parts = []
            for share in (0.95, 0.98):
                took = [reached(row, share) for row in some]
                count = sum(map(math.isfinite, took))
                parts.append(f"{median(took):7.0f}  {count:7d}  {saved(some, plain, share):4.1f}")
            clock = median(reached(row, 0.95, 1) for row in some)
            steps = TASKS[name].steps
            left = [median(regret(r, k * steps) for r in some) for k in (LONG // 2, LONG)]
            yield (
                f"{method:22} {len(some):5d}  {parts[0]} {clock:5.0f} | {parts[1]} | "
                f"{left[0]:15.3f} {left[1]:7.3f}"
            )


def random_digits(count: int = 400) -> float:
    """The median value of random networks."""
    task, rng = Digits(0), np.random.default_rng(3)
    ends = []
    for i, point in enumerate(task.space.decode(task.space.drawn(rng.random((count, 7))))):
        curve = task.curve(point, 10**6 + i)
        ends.append([curve(step) for step in range(task.steps)][-1])
    return median(ends)


def main() -> None:
    """Run what is missing, or print the table, or the median of random networks."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("rows", type=Path)
    runs.add_argument("--task", choices=TASKS, default="made")
    runs.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    runs.add_argument("--seeds", type=int, default=20)
    runs.add_argument("--workers", type=int, default=2)
    commands.add_parser("table").add_argument("rows", type=Path, nargs="+")
    commands.add_parser("digits")
    given = parser.parse_args()
    if given.command == "table":
        lines = table([row for path in given.rows for row in read(path)])
        sys.stdout.write("\n".join(lines) + "\n")
    elif given.command == "digits":
        sys.stdout.write(f"{random_digits():.3f}\n")
    else:
        done = {Cell(row["task"], row["method"], row["seed"]) for row in read(given.rows)}
        wanted = [Cell(given.task, m, s) for s, m in product(range(given.seeds), given.methods)]
        missing = [cell for cell in wanted if cell not in done]
        for count, total, left in append_rows(run, missing, given.rows, given.workers):
            sys.stderr.write(f"\r{count} of {total}, {left:.0f} s left ")


if __name__ == "__main__":
    main()
