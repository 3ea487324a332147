"""Several goals and limits: the hypervolume of the front, beside qLogNEHVI and NSGA-II.

    python -m benchmarks.outcomes run --peers covey,qlognehvi,nsga2 --seeds 10 --workers 16 \
        --rows outcomes.jsonl
    python -m benchmarks.outcomes table outcomes.jsonl

Six problems: ZDT1 and ZDT2 (two goals, 6 inputs), DTLZ2 (three, 6), BNH (two goals and two limits),
vehicle crash safety (three goals; Liao et al. 2008) and a disc brake (two goals and four limits;
Osyczka & Kundu 1995). Every peer starts from the same 16 Sobol points and then asks for batches.
Counted is the hypervolume of what keeps the limits, above a reference point that every peer knows.
`run` adds a row a run, and goes on where it stopped. Peers: `pip install botorch optuna`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, Protocol

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

import covey
from benchmarks.race.runner import read
from covey.arrays import Array
from covey.hypervolume import hypervolume

FIRST = 16  # points of the design that all peers share

# The problems. Goals are minimised; slacks of at least 0 keep the limits.


@dataclass(frozen=True)
class Problem:
    """Goals to minimise and limits to keep, on a box."""

    bounds: tuple[tuple[float, float], ...]
    worst: tuple[float, ...]  # the reference point
    goals: Callable[[Array], Array]  # (n, d) -> (n, m)
    slacks: Callable[[Array], Array] | None = None  # (n, d) -> (n, c)

    def values(self, x: Array) -> tuple[Array, Array]:
        """Goals (n, m) and slacks (n, c)."""
        return self.goals(x), np.zeros((len(x), 0)) if self.slacks is None else self.slacks(x)

    def volume(self, x: Array) -> float:
        """The hypervolume of those of the points (n, d) that keep the limits."""
        goals, slacks = self.values(x)
        return hypervolume(-goals[(slacks >= 0.0).all(axis=1)], -np.array(self.worst))

    def design(self, seed: int) -> Array:
        """The first points, scrambled Sobol."""
        from scipy.stats import qmc

        low, high = np.array(self.bounds).T
        unit = qmc.Sobol(len(self.bounds), scramble=True, rng=seed).random(FIRST)
        return low + (high - low) * unit


def zdt1(x: Array) -> Array:
    """Zitzler, Deb & Thiele 2000: a convex front."""
    g = 1.0 + 9.0 * x[:, 1:].mean(axis=1)
    return np.column_stack([x[:, 0], g * (1.0 - np.sqrt(x[:, 0] / g))])


def zdt2(x: Array) -> Array:
    """Zitzler, Deb & Thiele 2000: a concave front."""
    g = 1.0 + 9.0 * x[:, 1:].mean(axis=1)
    return np.column_stack([x[:, 0], g * (1.0 - np.square(x[:, 0] / g))])


def dtlz2(x: Array) -> Array:
    """Deb, Thiele, Laumanns & Zitzler 2002: an eighth of a sphere."""
    g = 1.0 + np.square(x[:, 2:] - 0.5).sum(axis=1)
    a, b = 0.5 * np.pi * x[:, 0], 0.5 * np.pi * x[:, 1]
    return np.column_stack([g * np.cos(a) * np.cos(b), g * np.cos(a) * np.sin(b), g * np.sin(a)])


def bnh(x: Array) -> Array:
    """Binh & Korn 1997."""
    a, b = x.T
    return np.column_stack([4.0 * a**2 + 4.0 * b**2, (a - 5.0) ** 2 + (b - 5.0) ** 2])


def bnh_slacks(x: Array) -> Array:
    """Two circles: inside the one, outside the other."""
    a, b = x.T
    return np.column_stack([25.0 - (a - 5.0) ** 2 - b**2, (a - 8.0) ** 2 + (b + 3.0) ** 2 - 7.7])


def vehicle(x: Array) -> Array:
    """Mass, acceleration and intrusion in a crash, by thicknesses of five parts (Liao 2008)."""
    a, b, c, d, e = x.T
    mass = 1640.2823 + 2.3573285 * a + 2.3220035 * b + 4.5688768 * c + 7.7213633 * d + 4.4559504 * e
    acceleration = (
        6.5856 + 1.15 * a - 1.0427 * b + 0.9738 * c + 0.8364 * d - 0.3695 * a * d
        + 0.0861 * a * e + 0.3628 * b * d - 0.1106 * a**2 - 0.3437 * c**2 + 0.1764 * d**2
    )  # fmt: skip
    intrusion = (
        -0.0551 + 0.0181 * a + 0.1024 * b + 0.0421 * c - 0.0073 * a * b + 0.024 * b * c
        - 0.0118 * b * d - 0.0204 * c * d - 0.008 * c * e - 0.0241 * b**2 + 0.0109 * d**2
    )  # fmt: skip
    return np.column_stack([mass, acceleration, intrusion])


def brake(x: Array) -> Array:
    """Mass and stopping time of a disc brake: radii, force, number of surfaces."""
    inner, outer, force, surfaces = x.T
    area, solid = outer**2 - inner**2, outer**3 - inner**3
    mass = 4.9e-5 * area * (surfaces - 1.0)
    return np.column_stack([mass, 9.82e6 * area / (force * surfaces * solid)])


def brake_slacks(x: Array) -> Array:
    """Distance of the radii, pressure, temperature and torque."""
    inner, outer, force, surfaces = x.T
    area, solid = outer**2 - inner**2, outer**3 - inner**3
    return np.column_stack(
        [
            outer - inner - 20.0,
            0.4 - force / (3.14 * area),
            1.0 - 2.22e-3 * force * solid / area**2,
            2.66e-2 * force * surfaces * solid / area - 900.0,
        ]
    )


UNIT = ((0.0, 1.0),)
PROBLEMS = {
    "zdt1": Problem(UNIT * 6, (1.1, 1.1), zdt1),
    "zdt2": Problem(UNIT * 6, (1.1, 1.1), zdt2),
    "dtlz2": Problem(UNIT * 6, (1.1, 1.1, 1.1), dtlz2),
    "bnh": Problem(((0.0, 5.0), (0.0, 3.0)), (140.0, 50.0), bnh, bnh_slacks),
    "vehicle": Problem(((1.0, 3.0),) * 5, (1864.72022, 11.81993945, 0.2903999384), vehicle),
    "brake": Problem(
        ((55.0, 80.0), (75.0, 110.0), (1000.0, 3000.0), (11.0, 20.0)),
        (5.7771, 3.9651),
        brake,
        brake_slacks,
    ),
}


# The peers: each is told results and asks for a batch.


class Peer(Protocol):
    """Asks for batches of points (k, d), and is told goals (k, m) and slacks (k, c)."""

    def tell(self, x: Array, goals: Array, slacks: Array, /) -> None:
        """Results of the points."""

    def ask(self, k: int, /) -> Array:
        """The next points."""


class Covey:
    """A study with a strategy by name."""

    def __init__(self, problem: Problem, seed: int, strategy: str = "auto") -> None:
        goals = [f"f{j}" for j in range(len(problem.worst))]
        self._limits = [f"c{j}" for j in range(problem.values(problem.design(0))[1].shape[1])]
        self._names = [f"x{i}" for i in range(len(problem.bounds))]
        self._goals = goals
        self.study = covey.Study(
            covey.Space(
                {n: covey.Real(*b) for n, b in zip(self._names, problem.bounds, strict=True)}
            ),
            goal=dict.fromkeys(goals, "min"),
            limits=dict.fromkeys(self._limits, (">=", 0.0)) or None,
            worst=dict(zip(goals, problem.worst, strict=True)),
            strategy=strategy,
            seed=seed,
        )
        self._asked: list[Any] = []

    def tell(self, x: Array, goals: Array, slacks: Array, /) -> None:
        """Results of the points, those asked for or others."""
        names = [*self._goals, *self._limits]
        rows = np.hstack([goals, slacks])
        values = [dict(zip(names, map(float, row), strict=True)) for row in rows]
        if self._asked:
            self.study.tell(self._asked, values)
        else:
            points = [dict(zip(self._names, map(float, row), strict=True)) for row in x]
            self.study.add(points, values)

    def ask(self, k: int, /) -> Array:
        """The next batch."""
        self._asked = self.study.ask(k)
        return np.array([[t.point[name] for name in self._names] for t in self._asked])


class QLogNEHVI:
    """BoTorch's, as its tutorial has it: independent processes, one point after the other."""

    def __init__(self, problem: Problem, seed: int) -> None:
        import torch

        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self._problem, self._torch = problem, torch
        self._x = torch.zeros((0, len(problem.bounds)), dtype=torch.float64)
        self._y: Any = None
        self._m = len(problem.worst)

    def tell(self, x: Array, goals: Array, slacks: Array, /) -> None:
        """Goals and constraints as BoTorch has them: maximised, and kept where not positive."""
        tensor = self._torch.tensor
        y = tensor(np.hstack([-goals, -slacks]))
        self._x = self._torch.cat([self._x, tensor(x)])
        self._y = y if self._y is None else self._torch.cat([self._y, y])

    def ask(self, k: int, /) -> Array:
        """Fit, and optimise the acquisition."""
        from botorch.acquisition.multi_objective.logei import (
            qLogNoisyExpectedHypervolumeImprovement,
        )
        from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import ModelListGP, SingleTaskGP
        from botorch.models.transforms import Normalize, Standardize
        from botorch.optim import optimize_acqf
        from botorch.sampling import SobolQMCNormalSampler
        from gpytorch.mlls import SumMarginalLogLikelihood

        torch, m = self._torch, self._m
        bounds = torch.tensor(np.array(self._problem.bounds).T)
        columns = range(self._y.shape[1])
        model = ModelListGP(
            *(
                SingleTaskGP(
                    self._x,
                    self._y[:, j : j + 1],
                    input_transform=Normalize(self._x.shape[1], bounds=bounds),
                    outcome_transform=Standardize(1),
                )
                for j in columns
            )
        )
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        kept = [lambda z, j=j: z[..., j] for j in columns if j >= m]
        acquisition = qLogNoisyExpectedHypervolumeImprovement(
            model,
            ref_point=(-np.array(self._problem.worst)).tolist(),
            X_baseline=self._x,
            sampler=SobolQMCNormalSampler(torch.Size([128])),
            objective=IdentityMCMultiOutputObjective(outcomes=list(range(m))),
            constraints=kept or None,
            prune_baseline=True,
        )
        found, _ = optimize_acqf(
            acquisition,
            bounds=bounds,
            q=k,
            num_restarts=10,
            raw_samples=256,
            sequential=True,
            options={"batch_limit": 5, "maxiter": 200},
        )
        return found.detach().numpy()


class NSGA2:
    """Optuna's, with the population of the first points."""

    def __init__(self, problem: Problem, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        limited = problem.slacks is not None

        def violations(trial: Any) -> list[float]:
            return [-slack for slack in trial.user_attrs["slacks"]]

        sampler = optuna.samplers.NSGAIISampler(
            seed=seed, population_size=FIRST, constraints_func=violations if limited else None
        )
        self._study = optuna.create_study(
            sampler=sampler, directions=["minimize"] * len(problem.worst)
        )
        self._problem, self._open = problem, list[Any]()

    def tell(self, x: Array, goals: Array, slacks: Array, /) -> None:
        """Results of the trials asked for; of others, which are enqueued first."""
        if not self._open:
            for row in x:
                self._study.enqueue_trial({f"x{i}": float(v) for i, v in enumerate(row)})
            self.ask(len(x))
        for trial, values, slack in zip(self._open, goals, slacks, strict=True):
            trial.set_user_attr("slacks", slack.tolist())
            self._study.tell(trial, values.tolist())

    def ask(self, k: int, /) -> Array:
        """The next trials."""
        self._open = [self._study.ask() for _ in range(k)]
        bounds = self._problem.bounds
        return np.array(
            [[t.suggest_float(f"x{i}", *b) for i, b in enumerate(bounds)] for t in self._open]
        )


class Sobol:
    """The next points of a scrambled Sobol sequence."""

    def __init__(self, problem: Problem, seed: int) -> None:
        from scipy.stats import qmc

        self._low, self._high = np.array(problem.bounds).T
        self._engine = qmc.Sobol(len(problem.bounds), scramble=True, rng=seed)
        self._engine.fast_forward(FIRST)

    def tell(self, x: Array, goals: Array, slacks: Array, /) -> None:
        """Nothing is learnt."""

    def ask(self, k: int, /) -> Array:
        """The next points."""
        return self._low + (self._high - self._low) * self._engine.random(k)


def peer_of(name: str, problem: Problem, seed: int) -> Peer:
    """The peer of this name; ``covey:NAME`` is covey with another strategy."""
    made: dict[str, Callable[[Problem, int], Peer]] = {
        "covey": Covey,
        "qlognehvi": QLogNEHVI,
        "nsga2": NSGA2,
        "sobol": Sobol,
    }
    if name.startswith("covey:"):
        return Covey(problem, seed, name.removeprefix("covey:"))
    if name not in made:
        sys.exit(f"unknown peer {name!r}; there are {', '.join(made)} and covey:STRATEGY")
    return made[name](problem, seed)


# Runs, and their rows.


class Run(NamedTuple):
    """One peer on one problem."""

    peer: str
    problem: str
    batch: int
    seed: int
    rounds: int


def evaluate(run: Run) -> dict[str, Any]:
    """The row of a run: hypervolume after each batch, and seconds spent in asking."""
    problem = PROBLEMS[run.problem]
    peer, x = peer_of(run.peer, problem, run.seed), problem.design(run.seed)
    peer.tell(x, *problem.values(x))
    volumes, seconds = [problem.volume(x)], []
    for _ in range(run.rounds):
        began = time.perf_counter()
        new = peer.ask(run.batch)
        seconds.append(time.perf_counter() - began)
        peer.tell(new, *problem.values(new))
        x = np.vstack([x, new])
        volumes.append(problem.volume(x))
    return {**run._asdict(), "volumes": volumes, "seconds": seconds}


def run_all(runs: list[Run], path: Path, workers: int) -> None:
    """Run what has no row yet, in processes of their own; one row a run."""
    done = {Run(*(row[name] for name in Run._fields)) for row in read(path)}
    left = [run for run in runs if run not in done]
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    with pool, path.open("a", encoding="utf-8") as rows:
        jobs = {pool.submit(evaluate, run): run for run in left}
        for i, job in enumerate(as_completed(jobs), start=1):
            try:
                rows.write(json.dumps(job.result()) + "\n")
                rows.flush()
            except Exception as error:  # a peer that is missing, or out of memory
                print(f"{jobs[job]}: {type(error).__name__}: {error}", file=sys.stderr)
            print(f"{i}/{len(left)} {jobs[job]}", file=sys.stderr)


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Median final hypervolume of each peer, its share of qLogNEHVI's, and seconds of a run."""
    cells: dict[tuple[str, int], dict[str, list[dict[str, Any]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in rows:
        cells[row["problem"], row["batch"]][row["peer"]].append(row)
    peers = sorted({row["peer"] for row in rows})
    lines = [f"| problem | {' | '.join(peers)} |", "|---" * (1 + len(peers)) + "|"]
    for (problem, batch), each in sorted(cells.items()):
        beside = [row["volumes"][-1] for row in each.get("qlognehvi", ())]
        texts = [f"{problem}, B = {batch}"]
        for peer in peers:
            if peer not in each:
                texts.append("-")
                continue
            final = float(np.median([row["volumes"][-1] for row in each[peer]]))
            spent = float(np.mean([sum(row["seconds"]) for row in each[peer]]))
            share = f", {100.0 * final / float(np.median(beside)):.1f} %" if beside else ""
            texts.append(f"{final:.5g}{share}, {spent:.1f} s, n = {len(each[peer])}")
        lines.append(f"| {' | '.join(texts)} |")
    return lines


def main() -> None:
    """Parse, and run or print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outcomes")
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="run what is missing; stop and start at will")
    run.add_argument("--peers", default="covey,nsga2,sobol", help="names, with commas between")
    run.add_argument("--problems", default=",".join(PROBLEMS))
    run.add_argument("--batch", type=int, default=8)
    run.add_argument("--rounds", type=int, default=10)
    run.add_argument("--seeds", type=int, default=10)
    run.add_argument("--workers", type=int, default=2)
    run.add_argument("--rows", type=Path, required=True)
    shown = verbs.add_parser("table", help="print a Markdown table")
    shown.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    if options.verb == "table":
        print("\n".join(table([row for path in options.files for row in read(path)])))
        return
    runs = [
        Run(peer, problem, options.batch, seed, options.rounds)
        for seed in range(options.seeds)
        for problem in options.problems.split(",")
        for peer in options.peers.split(",")
    ]
    run_all(runs, options.rows, options.workers)


if __name__ == "__main__":
    main()
