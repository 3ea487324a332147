"""Conditional spaces: one study of the whole beside one for each branch, and Optuna's TPE.

    python -m benchmarks.conditional RESULTS.jsonl --seeds 16

Three problems. ``pipeline`` is a pipeline of scikit-learn on its diabetes data: a scaler, perhaps
principal components, and one of three regressors with parameters of its own; the value is R² by
five fixed folds. ``optimiser`` and ``layers`` are functions whose best value is 0. A run is 60 or
64 evaluations in batches of two for each branch; a branch is an option of the first parameter.
Regret is the best value of a run below 0, of the pipeline below the best of all runs in the file.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, Protocol

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

import covey
from benchmarks.race.optimisers import version_of
from benchmarks.race.runner import add_missing, by_cell
from covey import Choice, Integer, Real, Space

EVALUATIONS = 60


@dataclass(frozen=True)
class Problem:
    """Something to maximise; the first parameter of its space is the one that branches."""

    space: Space
    f: Callable[[Mapping[str, Any]], float]

    @property
    def switch(self) -> str:
        """The parameter whose options are the branches."""
        return self.space.names[0]

    @property
    def options(self) -> list[Any]:
        """The branches."""
        return self.space.parameters[self.switch].examples(100)

    @property
    def batch(self) -> int:
        """Two points for each branch."""
        return 2 * len(self.options)


RATE = Real(1e-5, 1.0, log=True)


def optimiser(point: Mapping[str, Any]) -> float:
    """Three optimisers, the best of which is the hardest to set."""
    if point["method"] == "sgd":
        miss = 0.4 * (math.log10(point["lr"]) + 1.3) ** 2
        miss += 0.1 if not point["momentum"] else 3.0 * (point["mu"] - 0.85) ** 2
        return -0.05 - miss
    if point["method"] == "adam":
        miss = 0.3 * (math.log10(point["lr"]) + 2.6) ** 2 + 4.0 * (point["beta"] - 0.8) ** 2
        miss += 0.5 * (math.log10(point["decay"]) + 4.0) ** 2 / 4.0
        return -miss
    return -0.15 - abs(math.log2(point["memory"]) - 4.0) / 10.0


def layers(point: Mapping[str, Any]) -> float:
    """A network whose every layer has a width; three layers are best."""
    n = point["layers"]
    best = (7.0, 6.0, 5.0, 4.0)
    miss = sum((math.log2(point[f"units{i}"]) - best[i - 1]) ** 2 for i in range(1, n + 1))
    rate = (math.log10(point["lr"]) + 3.0 - 0.3 * (n - 3)) ** 2
    return -0.15 * abs(n - 3) - 0.1 * miss / n - 0.2 * rate


@cache
def _data() -> tuple[Any, Any, Any]:
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import KFold

    x, y = load_diabetes(return_X_y=True)
    return x, y, KFold(5, shuffle=True, random_state=0)


def pipeline(point: Mapping[str, Any]) -> float:
    """R² of a pipeline by five fixed folds; evaluated once for each point of a process."""
    return _scored(tuple(sorted(point.items())))


@cache
def _scored(items: tuple[tuple[str, Any], ...]) -> float:
    from sklearn.decomposition import PCA
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.model_selection import cross_val_score
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import QuantileTransformer, StandardScaler
    from sklearn.svm import SVR

    p = dict(items)
    steps: list[Any] = []
    if p["scaler"] != "none":
        scalers = {"standard": StandardScaler(), "quantile": QuantileTransformer(n_quantiles=100)}
        steps.append(scalers[p["scaler"]])
    if p["pca"] == "yes":
        steps.append(PCA(p["components"], random_state=0))
    if p["model"] == "svr":
        more = {"degree": p["degree"]} if p["kernel"] == "poly" else {}
        steps.append(SVR(kernel=p["kernel"], C=p["C"], gamma=p["gamma"], max_iter=20_000, **more))
    elif p["model"] == "forest":
        steps.append(
            RandomForestRegressor(
                40,
                max_depth=p["depth"],
                min_samples_leaf=p["leaf"],
                max_features=p["share"],
                random_state=0,
            )
        )
    else:
        weights = p["weights"]
        steps.append(KNeighborsRegressor(p["neighbours"], weights=weights, p=p["power"]))
    x, y, folds = _data()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a support vector machine that stops early is a bad one
        score = cross_val_score(make_pipeline(*steps), x, y, cv=folds)
    return max(float(score.mean()), -1.0)


def _units(i: int) -> Integer:
    return Integer(4, 512, log=True, when={"layers": list(range(i, 5))})


PROBLEMS = {
    "optimiser": Problem(
        Space(
            {
                "method": Choice(["sgd", "adam", "lbfgs"]),
                "lr": replace(RATE, when={"method": ["sgd", "adam"]}),
                "momentum": Choice([False, True], ordered=False, when={"method": "sgd"}),
                "mu": Real(0.0, 0.99, when={"momentum": True}),
                "beta": Real(0.5, 0.999, when={"method": "adam"}),
                "decay": Real(1e-6, 1e-2, log=True, when={"method": "adam"}),
                "memory": Integer(1, 64, log=True, when={"method": "lbfgs"}),
            }
        ),
        optimiser,
    ),
    "layers": Problem(
        Space(
            {
                "layers": Integer(1, 4),
                "lr": RATE,
                **{f"units{i}": _units(i) for i in range(1, 5)},
            }
        ),
        layers,
    ),
    "pipeline": Problem(
        Space(
            {
                "model": Choice(["svr", "forest", "knn"]),
                "scaler": Choice(["none", "standard", "quantile"]),
                "pca": Choice(["no", "yes"]),
                "components": Integer(1, 10, when={"pca": "yes"}),
                "kernel": Choice(["rbf", "poly"], when={"model": "svr"}),
                "C": Real(1e-2, 1e4, log=True, when={"model": "svr"}),
                "gamma": Real(1e-4, 1e1, log=True, when={"model": "svr"}),
                "degree": Integer(2, 4, when={"kernel": "poly"}),
                "depth": Integer(1, 16, when={"model": "forest"}),
                "leaf": Integer(1, 32, log=True, when={"model": "forest"}),
                "share": Real(0.1, 1.0, when={"model": "forest"}),
                "neighbours": Integer(1, 64, log=True, when={"model": "knn"}),
                "weights": Choice(["uniform", "distance"], when={"model": "knn"}),
                "power": Real(1.0, 4.0, when={"model": "knn"}),
            }
        ),
        pipeline,
    ),
}


class Entrant(Protocol):
    """Maximises in batches."""

    def ask(self) -> Sequence[Mapping[str, Any]]:
        """The next batch."""
        ...

    def tell(self, values: Sequence[float]) -> None:
        """Its values."""
        ...


class Whole:
    """One study of the conditional space."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self._study = covey.Study(problem.space, seed=seed)
        self._batch = problem.batch

    def ask(self) -> list[Mapping[str, Any]]:
        """One ask."""
        self._trials = self._study.ask(self._batch)
        return [trial.point for trial in self._trials]

    def tell(self, values: Sequence[float]) -> None:
        """All at once."""
        self._study.tell(self._trials, values)


class Each:
    """One study for each branch, which share the budget evenly."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self._problem = problem
        self._studies = {
            option: covey.Study(_branch(problem, option), seed=1000 * seed + i)
            for i, option in enumerate(problem.options)
        }

    def ask(self) -> list[Mapping[str, Any]]:
        """Two points of each branch."""
        self._trials = {option: study.ask(2) for option, study in self._studies.items()}
        switch = self._problem.switch
        return [
            {switch: option, **trial.point} for option, ts in self._trials.items() for trial in ts
        ]

    def tell(self, values: Sequence[float]) -> None:
        """To each its own."""
        for i, (option, trials) in enumerate(self._trials.items()):
            self._studies[option].tell(trials, values[2 * i : 2 * i + 2])


def _branch(problem: Problem, option: Any) -> Space:
    """The space under one option, without the parameter that branches."""
    kept: dict[str, Any] = {}
    for name, parameter in problem.space.parameters.items():
        when = dict(parameter.when or {})
        here = option in when.pop(problem.switch, [option])
        if name != problem.switch and here and all(parent in kept for parent in when):
            kept[name] = replace(parameter, when=when or None)
    return Space(kept)


class Tpe:
    """Optuna's TPE on the same define-by-run space, a batch at a time."""

    def __init__(self, problem: Problem, seed: int, **options: Any) -> None:
        import warnings

        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._problem = problem
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some options are experimental
            sampler = optuna.samplers.TPESampler(seed=seed, **options)
        self._study = optuna.create_study(direction="maximize", sampler=sampler)

    def ask(self) -> list[Mapping[str, Any]]:
        """Trials in turn, none told yet."""
        from covey.integrations.spaces.optuna import suggest

        self._trials = [self._study.ask() for _ in range(self._problem.batch)]
        return [suggest(trial, self._problem.space) for trial in self._trials]

    def tell(self, values: Sequence[float]) -> None:
        """One by one."""
        for trial, value in zip(self._trials, values, strict=True):
            self._study.tell(trial, value)


ENTRANTS: dict[str, Callable[[Problem, int], Entrant]] = {
    "covey": Whole,
    "covey, a study a branch": Each,
    "tpe": Tpe,
    "tpe, grouped": lambda problem, seed: Tpe(
        problem, seed, multivariate=True, group=True, constant_liar=True
    ),
}


class Cell(NamedTuple):
    """One run."""

    entrant: str
    problem: str
    seed: int


def race(cell: Cell) -> list[dict[str, Any]]:
    """Its row, one."""
    problem = PROBLEMS[cell.problem]
    entrant = ENTRANTS[cell.entrant](problem, cell.seed)
    began, best, seconds = -math.inf, [], 0.0
    for _ in range(-(-EVALUATIONS // problem.batch)):
        start = time.process_time()
        points = entrant.ask()
        seconds += time.process_time() - start
        values = [problem.f(point) for point in points]
        entrant.tell(values)
        began = max(began, *values)
        best.append(began)
    row = {**cell._asdict(), "best": best, "seconds": round(seconds, 2)}
    return [{**row, "version": version_of("covey-auto")}]


def table(rows: dict[Cell, dict[str, Any]]) -> Iterator[str]:
    """Median regret after half the evaluations and after all, by problem and entrant."""
    yield "problem | entrant | runs | median half-way | median | 90 % | s a run"
    yield "---|---|---|---|---|---|---"
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for cell, row in rows.items():
        groups[cell.problem, cell.entrant].append(row)
    for problem, entrant in product(PROBLEMS, ENTRANTS):
        some = groups[problem, entrant]
        if not some:
            continue
        every = [row["best"][-1] for cell, row in rows.items() if cell.problem == problem]
        top = max(every) if problem == "pipeline" else 0.0
        half, last = (np.array([top - row["best"][i] for row in some]) for i in (_half(some), -1))
        yield (
            f"{problem} | {entrant} | {len(some)} | {np.median(half):.2g} | "
            f"{np.median(last):.2g} | {np.quantile(last, 0.9):.2g} | "
            f"{np.mean([row['seconds'] for row in some]):.1f}"
        )


def _half(rows: Sequence[Mapping[str, Any]]) -> int:
    return len(rows[0]["best"]) // 2 - 1


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--entrants", nargs="*", default=list(ENTRANTS))
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--first", type=int, default=100, help="the first seed")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    order = product(range(args.first, args.first + args.seeds), args.problems, args.entrants)
    wanted = [Cell(e, p, i) for i, p, e in order]
    add_missing(race, wanted, args.path, args.workers)
    print("\n".join(table(by_cell(args.path, Cell))))


if __name__ == "__main__":
    main()
