"""Mixtures: Covey beside qLogNEI with equality constraints (BoTorch), and uniform points.

    python -m benchmarks.mixtures run --peers covey,qlognei,uniform --seeds 10 --rows mixtures.jsonl
    python -m benchmarks.mixtures table mixtures.jsonl
    python -m benchmarks.mixtures spread

Two response surfaces of the literature on mixtures, taken as the truth, and one that is harder:

- yarn: the elongation of yarn of polyethylene, polystyrene and polypropylene, a quadratic in three
  parts (Cornell 2002, Experiments with Mixtures, 3rd edition, chapter 2). Its coefficients follow
  from the data that the R package mixexp prints, and a test computes them.
- flare: the light of flares of magnesium, sodium nitrate, strontium nitrate and binder, a quadratic
  in four parts between bounds (McLean and Anderson 1966, Technometrics 8, 447-454). Quoted from
  memory, as the paper was not at hand; the maximum given with it, 397.5 at (0.5233, 0.2299, 0.1668,
  0.08), is that of this formula.
- hartmann6: the usual function of six inputs, made up for this table, on the simplex.

Every peer starts from the same two batches of uniform points. Counted is the regret as a share of
the range of the function, and how many evaluations it takes to come within a thousandth of it.
`run` adds a row a run, and goes on where it stopped. The peer: `pip install botorch`. `spread` says
how far uniform points are from uniform, and how long they take.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

import covey
from benchmarks.race.runner import read
from covey.arrays import Array
from covey.space.flat import Flat
from covey.space.polytope import Polytope

CLOSE = 1e-3  # of the range

# The problems: to be maximised, of shares that sum to 1.


def yarn(x: Array) -> Array:
    """Elongation, in thousandths of the length; the maximum is on the edge without the second."""
    a, b, c = x.T
    return 11.7 * a + 9.4 * b + 16.4 * c + 19.0 * a * b + 11.4 * a * c - 9.6 * b * c


def flare(x: Array) -> Array:
    """Light, in thousands of candles."""
    a, b, c, d = x.T
    alone = -1558.0 * a - 2351.0 * b - 2426.0 * c + 14372.0 * d
    with_a = 8300.0 * a * b + 8076.0 * a * c - 6625.0 * a * d
    return alone + with_a + 3213.0 * b * c - 16998.0 * b * d - 17127.0 * c * d


_HARTMANN_A = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
_HARTMANN_P = 1e-4 * np.array(
    [
        [1312.0, 1696.0, 5569.0, 124.0, 8283.0, 5886.0],
        [2329.0, 4135.0, 8307.0, 3736.0, 1004.0, 9991.0],
        [2348.0, 1451.0, 3522.0, 2883.0, 3047.0, 6650.0],
        [4047.0, 8828.0, 8732.0, 5743.0, 1091.0, 381.0],
    ]
)


def hartmann6(x: Array) -> Array:
    """Four bumps in the cube, here cut by the simplex."""
    squares = (_HARTMANN_A * (x[:, None, :] - _HARTMANN_P) ** 2).sum(axis=2)
    return np.asarray(np.exp(-squares) @ np.array([1.0, 1.2, 3.0, 3.2]))


@dataclass(frozen=True)
class Problem:
    """Something to maximise over shares between bounds, with its maximum and minimum there."""

    f: Callable[[Array], Array]
    bounds: tuple[tuple[float, float], ...]
    top: float
    bottom: float

    @property
    def names(self) -> list[str]:
        """The parts."""
        return [f"x{i}" for i in range(len(self.bounds))]

    @property
    def space(self) -> covey.Space:
        """The mixture, as Covey has it."""
        parts = {n: covey.Real(*ends) for n, ends in zip(self.names, self.bounds, strict=True)}
        return covey.Space(parts, where=[covey.Mixture(self.names)])

    def uniform(self, count: int, rng: np.random.Generator) -> Array:
        """Uniform points (count, p)."""
        return self.shares(self.space.decode(Flat(self.space, {}).draw(count, rng)))

    def shares(self, points: list[dict[str, Any]]) -> Array:
        """Points as rows."""
        return np.array([[point[name] for name in self.names] for point in points])


PROBLEMS = {
    "yarn": Problem(yarn, ((0.0, 1.0),) * 3, 17.3844299471, 9.2239583333),
    "flare": Problem(
        flare, ((0.4, 0.6), (0.1, 0.5), (0.1, 0.5), (0.03, 0.08)), 397.4686494901, 61.9543020297
    ),
    "hartmann6": Problem(hartmann6, ((0.0, 1.0),) * 6, 1.5150271070, 0.0001346019),
}


# The peers.


class Peer(Protocol):
    """Is told results and asked for batches."""

    def tell(self, x: Array, y: Array, /) -> None:
        """Take in the values (n,) at points (n, p)."""
        ...

    def ask(self, k: int, /) -> Array:
        """The next points (k, p)."""
        ...


class Covey:
    """A study with its default strategy."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.study = problem, covey.Study(problem.space, seed=seed)
        self.asked: list[Any] | None = None

    def tell(self, x: Array, y: Array, /) -> None:
        """Tell the batch, or add points that were chosen elsewhere."""
        if self.asked is not None:
            self.study.tell(self.asked, y.tolist())
            return
        points = [dict(zip(self.problem.names, row, strict=True)) for row in x.tolist()]
        self.study.add(points, y.tolist())

    def ask(self, k: int, /) -> Array:
        """The next batch."""
        self.asked = self.study.ask(k)
        return self.problem.shares([dict(trial.point) for trial in self.asked])


class QLogNEI:
    """BoTorch: a Gaussian process with its defaults, and qLogNEI under an equality constraint."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.seed, self.round = problem, seed, 0
        self.x, self.y = np.empty((0, len(problem.bounds))), np.empty(0)

    def tell(self, x: Array, y: Array, /) -> None:
        """Keep them."""
        self.x, self.y = np.vstack([self.x, x]), np.concatenate([self.y, y])

    def ask(self, k: int, /) -> Array:
        """The points that together are expected to improve most."""
        import torch
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Normalize, Standardize
        from botorch.optim import optimize_acqf
        from botorch.sampling import SobolQMCNormalSampler
        from gpytorch.mlls import ExactMarginalLogLikelihood

        self.round += 1
        seed = 1000 * self.seed + self.round
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        x, y = torch.from_numpy(self.x), torch.from_numpy(self.y[:, None])
        bounds = torch.tensor(self.problem.bounds, dtype=torch.double).T
        p = x.shape[1]
        model = SingleTaskGP(
            x,
            y,
            input_transform=Normalize(p, bounds=bounds),
            outcome_transform=Standardize(1),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            sampler = SobolQMCNormalSampler(torch.Size([128]), seed=seed)
            found, _ = optimize_acqf(
                qLogNoisyExpectedImprovement(model, x, sampler=sampler, prune_baseline=True),
                bounds=bounds,
                q=k,
                num_restarts=5,
                raw_samples=128,
                equality_constraints=[
                    (torch.arange(p), torch.ones(p, dtype=torch.double), 1.0),
                ],
                sequential=True,
                options={"maxiter": 100},
            )
        return np.asarray(found.detach().numpy())


class Uniform:
    """Points drawn uniformly."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.rng = problem, np.random.default_rng([seed, 1])

    def tell(self, x: Array, y: Array, /) -> None:
        """They change nothing."""

    def ask(self, k: int, /) -> Array:
        """k more."""
        return self.problem.uniform(k, self.rng)


PEERS: dict[str, Callable[[Problem, int], Peer]] = {
    "covey": Covey,
    "qlognei": QLogNEI,
    "uniform": Uniform,
}


# Runs.


class Run(NamedTuple):
    """One peer on one problem from one first batch."""

    peer: str
    problem: str
    batch: int
    seed: int
    rounds: int


def evaluate(run: Run) -> dict[str, Any]:
    """The row of a run: the regret after each evaluation, and the seconds of each ask."""
    problem = PROBLEMS[run.problem]
    peer = PEERS[run.peer](problem, run.seed)
    x = problem.uniform(2 * run.batch, np.random.default_rng([run.seed, 0]))
    values, seconds, off = [], [], 0.0
    for _ in range(run.rounds + 1):
        y = problem.f(x)
        off = max(off, float(np.abs(x.sum(axis=1) - 1.0).max()))
        values += y.tolist()
        peer.tell(x, y)
        if len(seconds) == run.rounds:
            break
        began = time.perf_counter()
        x = peer.ask(run.batch)
        seconds.append(round(time.perf_counter() - began, 3))
    best = np.maximum.accumulate(values)
    regrets = ((problem.top - best) / (problem.top - problem.bottom)).tolist()
    return {**run._asdict(), "regrets": regrets, "seconds": seconds, "off": off}


def run_all(runs: list[Run], path: Path) -> None:
    """Run what has no row yet, one row a run."""
    done = {Run(*(row[name] for name in Run._fields)) for row in read(path)}
    with path.open("a", encoding="utf-8") as rows:
        for run in runs:
            if run not in done:
                rows.write(json.dumps(evaluate(run)) + "\n")
                rows.flush()
                print(run, file=sys.stderr)


def looks(row: dict[str, Any]) -> float:
    """Evaluations until the regret is small; infinite if it never is."""
    small = np.flatnonzero(np.array(row["regrets"]) <= CLOSE)
    return float(small[0]) + 1.0 if len(small) else float("inf")


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Median regret at the end, median evaluations until it is small, seconds of an ask."""
    cells: dict[tuple[str, int, int], dict[str, list[dict[str, Any]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in rows:
        cells[row["problem"], row["batch"], row["rounds"]][row["peer"]].append(row)
    peers = [name for name in PEERS if any(row["peer"] == name for row in rows)]
    lines = [f"| problem | {' | '.join(peers)} |", "|---" * (1 + len(peers)) + "|"]
    for (problem, batch, rounds), each in cells.items():
        texts = [f"{problem}, {rounds} batches of {batch}"]
        for peer in peers:
            if peer not in each:
                texts.append("-")
                continue
            final = float(np.median([max(row["regrets"][-1], 0.0) for row in each[peer]]))
            until = float(np.median([looks(row) for row in each[peer]]))
            shown = f"{until:.0f} looks" if np.isfinite(until) else "never"
            spent = float(np.mean([np.mean(row["seconds"]) for row in each[peer]]))
            texts.append(f"{final:.2g}, {shown}, {spent:.2g} s, n = {len(each[peer])}")
        lines.append(f"| {' | '.join(texts)} |")
    return lines


# Uniform points.


def distance(parts: int, lower: float, upper: float, seed: int) -> float:
    """Kolmogorov-Smirnov distance of a coordinate of 1000 points whose sum is between bounds.

    Of a uniform point with sum(x) <= 1 it is Beta(1, p), of one with sum(x) = 1 Beta(1, p - 1).
    """
    from scipy.stats import beta, kstest

    names = [f"x{i}" for i in range(parts)]
    rule = covey.Linear(dict.fromkeys(names, 1.0), lower, upper)
    polytope = Polytope([(name, 0.0, 1.0) for name in names], [rule])
    x = polytope.draw(1000, np.random.default_rng(seed))["x0"]
    return float(kstest(x, beta(1, parts if lower < 0.0 else parts - 1).cdf).statistic)


def seconds_of_points(high: float, more: list[Any], **options: Any) -> float:
    """Seconds for 2,048 points of a mixture of twenty parts, the least of three times."""
    names = [f"x{i}" for i in range(20)]
    where = [covey.Mixture(names, **options), *more]
    flat = Flat(covey.Space({name: covey.Real(0.0, high) for name in names}, where), {})
    draw, times = flat.draw_within if more else flat.draw, []
    for seed in range(3):
        began = time.perf_counter()
        draw(2048, np.random.default_rng(seed))
        times.append(time.perf_counter() - began)
    return min(times)


def spread() -> list[str]:
    """A line for each kind of sum and number of parts, and the seconds of points."""
    kinds = {"<= 1": (-np.inf, 1.0), "nearly 1": (0.9995, 1.0005), "= 1": (1.0, 1.0)}
    lines = []
    for kind, ends in kinds.items():
        for parts in (3, 12, 20):
            found = [distance(parts, *ends, seed) for seed in range(8)]
            lines.append(f"sum {kind}, {parts} parts: distance {np.median(found):.3f}")
    tight = [covey.Linear({"x0": 1.0, "x1": 1.0}, upper=0.1)]
    cells: dict[str, tuple[float, list[Any], dict[str, Any]]] = {
        "broken sticks": (1.0, [], {}),
        "upper bounds": (0.15, [], {}),
        "upper bounds, in steps": (0.15, [], {"step": 0.01}),
        "a linear constraint": (1.0, tight, {}),
        "a linear constraint, 2 to 5 parts": (0.6, tight, {"parts": (2, 5), "least": 0.01}),
    }
    for name, (high, more, options) in cells.items():
        lines.append(f"{name}: {seconds_of_points(high, more, **options):.3f} s")
    return lines


def main() -> None:
    """Parse, and run or print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixtures")
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="run what is missing; stop and start at will")
    run.add_argument("--peers", default="covey,uniform", help="names, with commas between")
    run.add_argument("--problems", default=",".join(PROBLEMS))
    run.add_argument("--batch", type=int, default=4)
    run.add_argument("--rounds", type=int, default=5)
    run.add_argument("--seeds", type=int, default=10)
    run.add_argument("--rows", type=Path, required=True)
    shown = verbs.add_parser("table", help="print a Markdown table")
    shown.add_argument("files", nargs="+", type=Path)
    verbs.add_parser("spread", help="how uniform points are, and the seconds they take")
    options = parser.parse_args()
    if options.verb == "spread":
        print("\n".join(spread()))
        return
    if options.verb == "table":
        print("\n".join(table([row for path in options.files for row in read(path)])))
        return
    runs = [
        Run(peer, problem, options.batch, seed, options.rounds)
        for seed in range(options.seeds)
        for problem in options.problems.split(",")
        for peer in options.peers.split(",")
    ]
    run_all(runs, options.rows)


if __name__ == "__main__":
    main()
