"""Several goals and limits: the hypervolume of the front, beside qLogNEHVI and NSGA-II.

    python -m benchmarks.outcomes run --peers covey,covey-learnt,qlognehvi,nsga2 --seeds 10 \
        --workers 16 --rows outcomes.jsonl
    python -m benchmarks.outcomes table outcomes.jsonl
    python -m benchmarks.outcomes table --beside covey outcomes.jsonl

The problems are in `benchmarks.tradeoffs`; only Covey runs the network, which has options and
failures. Every peer starts from the same 16 Sobol points and then asks for batches. Counted is the
hypervolume of what keeps the limits, above a reference point that every peer knows but
``covey-learnt``, which nobody tells it. `run` adds a row a run, and goes on where it stopped.
``qlognehvi-quick`` is optimised with less effort. Peers: `pip install botorch optuna`.
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
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, Protocol

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

import covey
from benchmarks.race.runner import read
from benchmarks.tradeoffs import PROBLEMS, Problem
from covey.arrays import Array

FIRST = 16  # points of the design that all peers share

# The peers: each is told results and asks for a batch.


class Peer(Protocol):
    """Asks for batches of points (k, d), and is told goals (k, m) and slacks (k, c)."""

    def tell(self, x: Array, goals: Array, slacks: Array, /) -> None:
        """Results of the points."""

    def ask(self, k: int, /) -> Array:
        """The next points."""


class Covey:
    """A study with a strategy by name, which is told the reference point or learns one."""

    def __init__(
        self, problem: Problem, seed: int, strategy: str = "auto", *, told: bool = True
    ) -> None:
        goals = [f"f{j}" for j in range(len(problem.worst))]
        limits = [f"c{j}" for j in range(problem.values(problem.design(0, 1))[1].shape[1])]
        self._problem, self._names = problem, [*goals, *limits]
        self.study = covey.Study(
            problem.space,
            goal=dict.fromkeys(goals, "min"),
            limits=dict.fromkeys(limits, (">=", 0.0)) or None,
            worst=dict(zip(goals, problem.worst, strict=True)) if told else None,
            strategy=strategy,
            seed=seed,
        )
        self._asked: list[Any] = []

    def tell(self, x: Array, goals: Array, slacks: Array, /) -> None:
        """Results of the points, those asked for or others."""
        rows = np.hstack([goals, slacks])
        values = [dict(zip(self._names, map(float, row), strict=True)) for row in rows]
        well = np.isfinite(rows).all(axis=1)
        if not self._asked:
            chosen = np.flatnonzero(well)
            self.study.add([self._problem.point(x[i]) for i in chosen], [values[i] for i in chosen])
        for trial, value, ended in zip(self._asked, values, well, strict=bool(self._asked)):
            if ended:
                self.study.tell(trial, value)
            else:
                self.study.fail(trial, "out of memory, or without an end")

    def ask(self, k: int, /) -> Array:
        """The next batch."""
        self._asked = self.study.ask(k)
        return np.array([self._problem.row(trial.point) for trial in self._asked])


class Effort(NamedTuple):
    """How hard an acquisition is optimised."""

    restarts: int = 10
    raw_samples: int = 256
    draws: int = 128
    steps: int = 200


QUICK = Effort(4, 64, 64, 60)  # a fifth of the time, where cores are few


class QLogNEHVI:
    """BoTorch's, as its tutorial has it: independent processes, one point after the other."""

    def __init__(self, problem: Problem, seed: int, effort: Effort = Effort()) -> None:  # noqa: B008
        import torch

        self._effort = effort
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
            sampler=SobolQMCNormalSampler(torch.Size([self._effort.draws])),
            objective=IdentityMCMultiOutputObjective(outcomes=list(range(m))),
            constraints=kept or None,
            prune_baseline=True,
        )
        found, _ = optimize_acqf(
            acquisition,
            bounds=bounds,
            q=k,
            num_restarts=self._effort.restarts,
            raw_samples=self._effort.raw_samples,
            sequential=True,
            options={"batch_limit": 5, "maxiter": self._effort.steps},
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
        "covey-learnt": lambda problem, seed: Covey(problem, seed, told=False),
        "qlognehvi": QLogNEHVI,
        "qlognehvi-quick": lambda problem, seed: QLogNEHVI(problem, seed, QUICK),
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
    first: int = FIRST


def evaluate(run: Run) -> dict[str, Any]:
    """The row of a run: hypervolume after each batch, and seconds spent in asking."""
    problem = PROBLEMS[run.problem]
    peer = peer_of(run.peer, problem, run.seed)
    new = problem.design(run.seed, run.first) if run.first else np.zeros((0, len(problem.bounds)))
    goals, slacks = problem.values(new)
    volumes, seconds = [problem.volume(goals, slacks)], []
    for _ in range(run.rounds):
        if len(new):
            peer.tell(new, goals[-len(new) :], slacks[-len(new) :])
        began = time.perf_counter()
        new = peer.ask(run.batch)
        seconds.append(time.perf_counter() - began)
        more = problem.values(new)
        goals, slacks = np.vstack([goals, more[0]]), np.vstack([slacks, more[1]])
        volumes.append(problem.volume(goals, slacks))
    return {**run._asdict(), "volumes": volumes, "seconds": seconds}


def run_all(runs: list[Run], path: Path, workers: int) -> None:
    """Run what has no row yet, in processes of their own; one row a run."""
    done = {Run(**{name: row[name] for name in Run._fields if name in row}) for row in read(path)}
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


def table(rows: list[dict[str, Any]], beside: str) -> list[str]:
    """Mean final hypervolume of each peer, and its share of another's on the seeds of both."""
    finals: dict[tuple[str, int, int], dict[str, dict[int, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for row in rows:
        cell = finals[row["problem"], row["batch"], row.get("first", FIRST)]
        cell[row["peer"]][row["seed"]] = row["volumes"][-1]
    peers = sorted({row["peer"] for row in rows})
    lines = [f"| problem | {' | '.join(peers)} |", "|---" * (1 + len(peers)) + "|"]
    for (problem, batch, first), each in sorted(finals.items()):
        texts = [f"{problem}, {first} and batches of {batch}"]
        for peer in peers:
            own, other = each[peer], each[beside]
            both = own.keys() & other.keys()
            share = sum(own[i] for i in both) / sum(other[i] for i in both) if both else 0.0
            said = f", {share:.1%} of {beside} on {len(both)}" if both and peer != beside else ""
            mean = f"{np.mean([*own.values()]):.5g}, n = {len(own)}" if own else "-"
            texts.append(mean + said)
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
    run.add_argument("--first", type=int, default=FIRST, help="0: batches from the first on")
    run.add_argument("--seeds", type=int, default=10)
    run.add_argument("--from", type=int, default=0, dest="start", help="the first seed")
    run.add_argument("--workers", type=int, default=2)
    run.add_argument("--rows", type=Path, required=True)
    shown = verbs.add_parser("table", help="print a Markdown table")
    shown.add_argument("--beside", default="qlognehvi", help="the peer to compare with")
    shown.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    if options.verb == "table":
        print(
            "\n".join(table([row for path in options.files for row in read(path)], options.beside))
        )
        return
    runs = [
        Run(peer, problem, options.batch, seed, options.rounds, options.first)
        for seed in range(options.start, options.start + options.seeds)
        for problem in options.problems.split(",")
        for peer in options.peers.split(",")
    ]
    run_all(runs, options.rows, options.workers)


if __name__ == "__main__":
    main()
