"""The same study with a host's own sampler and with Covey in it: result and seconds, as a table."""

from __future__ import annotations

import os

# Read once, when the first BLAS loads; workers of Ray inherit them.
os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS")})
os.environ |= {  # before Ray is imported: no reports, and quiet
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
}

import argparse
import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from statistics import median
from typing import Any

from covey.bench import hartmann6

BATCH = 8
PROBLEM = hartmann6()
NAMES = PROBLEM.space.names

Run = Callable[[int, int], float]  # seed, rounds -> result


@dataclass(frozen=True)
class Host:
    """A library, what Covey's extra for it is called, and the optimisers to run in it."""

    package: str
    module: str
    extra: str
    measure: str
    entries: Callable[[], Mapping[str, Run]]


def _best_regret(values: list[float]) -> float:
    return PROBLEM.regret(max(values))


# --- Optuna


def _optuna(sampler: Callable[[int], Any], seed: int, rounds: int) -> float:
    import optuna

    of = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in NAMES}
    study = optuna.create_study(direction="maximize", sampler=sampler(seed))
    for _ in range(rounds):
        trials = [study.ask(of) for _ in range(BATCH)]
        for trial in trials:
            study.tell(trial, PROBLEM.f(trial.params))
    return PROBLEM.regret(study.best_value)


def optuna_entries() -> Mapping[str, Run]:
    """TPE and the Gaussian process of Optuna, asked eight times before they are told."""
    import optuna

    from covey.integrations.optuna import CoveySampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    of = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in NAMES}
    samplers: dict[str, Callable[[int], Any]] = {
        "TPESampler": lambda seed: optuna.samplers.TPESampler(seed=seed),
        "GPSampler": lambda seed: optuna.samplers.GPSampler(seed=seed),
        "**CoveySampler**": lambda seed: CoveySampler(seed=seed, search_space=of),
    }
    return {name: partial(_optuna, sampler) for name, sampler in samplers.items()}


# --- scikit-learn


def _sklearn(ours: bool, seed: int, rounds: int) -> float:
    from scipy.stats import loguniform
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import RandomizedSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    from covey.integrations.sklearn import CoveySearchCV

    space = {
        "svr__C": loguniform(1e-2, 1e4),
        "svr__gamma": loguniform(1e-5, 1e1),
        "svr__epsilon": loguniform(1e-2, 1e2),
        "svr__kernel": ["rbf", "sigmoid"],
    }
    model = make_pipeline(StandardScaler(), SVR())
    search: Any
    if ours:
        search = CoveySearchCV(model, space, n_batches=rounds, batch_size=BATCH, random_state=seed)
    else:
        search = RandomizedSearchCV(model, space, n_iter=rounds * BATCH, random_state=seed)
    return float(search.fit(*load_diabetes(return_X_y=True)).best_score_)


def sklearn_entries() -> Mapping[str, Run]:
    """A support vector machine on diabetes: four parameters, five folds."""
    return {
        "RandomizedSearchCV": partial(_sklearn, False),
        "**CoveySearchCV**": partial(_sklearn, True),
    }


# --- BoTorch


def _botorch(choose: Callable[[Any, Any, Any, int], Any], seed: int, rounds: int) -> float:
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.utils.sampling import draw_sobol_samples
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(seed)
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).repeat(1, len(NAMES))
    x = draw_sobol_samples(bounds, n=1, q=BATCH, seed=seed)[0]
    y = _values(x)
    for turn in range(1, rounds):
        model = SingleTaskGP(x, y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        new = choose(model, y, bounds, 1000 * seed + turn)
        x, y = torch.cat([x, new]), torch.cat([y, _values(new)])
    return _best_regret(y[:, 0].tolist())


def _values(x: Any) -> Any:
    import torch

    rows = [dict(zip(NAMES, row, strict=True)) for row in x.tolist()]
    return torch.tensor([[PROBLEM.f(row)] for row in rows], dtype=torch.float64)


def _qlogei(model: Any, y: Any, bounds: Any, seed: int) -> Any:
    import torch
    from botorch.acquisition.logei import qLogExpectedImprovement
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler

    sampler = SobolQMCNormalSampler(torch.Size([128]), seed=seed)
    score = qLogExpectedImprovement(model, best_f=y.max(), sampler=sampler)
    options = {"num_restarts": 10, "raw_samples": 256, "sequential": True}
    return optimize_acqf(score, bounds, q=BATCH, **options)[0].detach()


def _dpp(strategy: str, model: Any, y: Any, bounds: Any, seed: int) -> Any:
    from covey.integrations.botorch import optimize_dpp

    del y
    return optimize_dpp(model, bounds, q=BATCH, strategy=strategy, seed=seed)[0]


def botorch_entries() -> Mapping[str, Run]:
    """One loop, one model, the same first batch; only the line that chooses differs."""
    import torch

    torch.set_num_threads(1)
    return {
        "optimize_acqf, qLogEI": partial(_botorch, _qlogei),
        "**optimize_dpp**, est-dpp-sample": partial(_botorch, partial(_dpp, "est-dpp-sample")),
        "**optimize_dpp**, auto": partial(_botorch, partial(_dpp, "auto")),
    }


# --- Ray Tune


def _ray(search: Callable[[int], Any], seed: int, rounds: int) -> float:
    from ray import tune

    f = PROBLEM.f
    with tempfile.TemporaryDirectory() as storage:
        tuner = tune.Tuner(
            lambda config: {"value": f(config)},
            param_space={name: tune.uniform(0.0, 1.0) for name in NAMES},
            tune_config=tune.TuneConfig(
                metric="value",
                mode="max",
                search_alg=search(seed),
                num_samples=rounds * BATCH,
                max_concurrent_trials=4,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(storage_path=storage, verbose=0),
        )
        return PROBLEM.regret(tuner.fit().get_best_result().metrics["value"])


def ray_entries() -> Mapping[str, Run]:
    """A real local Ray, four trials at a time: most of the seconds are Ray's own."""
    import ray
    from ray.tune.search.basic_variant import BasicVariantGenerator

    from covey.integrations.ray import CoveySearch

    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    searches: dict[str, Callable[[int], Any]] = {
        "BasicVariantGenerator": lambda seed: BasicVariantGenerator(random_state=seed),
        "OptunaSearch": _optuna_in_ray,
        "**CoveySearch**": lambda seed: CoveySearch(seed=seed),
    }
    if find_spec("optuna") is None:
        del searches["OptunaSearch"]
    return {name: partial(_ray, search) for name, search in searches.items()}


def _optuna_in_ray(seed: int) -> Any:
    import optuna
    from ray.tune.search.optuna import OptunaSearch

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return OptunaSearch(seed=seed)


# --- Ax


def _ax(strategy: Callable[[int], Any] | None, seed: int, rounds: int) -> float:
    from ax.api.client import Client
    from ax.api.configs import RangeParameterConfig

    client = Client(random_seed=seed)
    client.configure_experiment(
        [RangeParameterConfig(name=n, parameter_type="float", bounds=(0.0, 1.0)) for n in NAMES]
    )
    client.configure_optimization(objective="value")
    if strategy is not None:
        client.set_generation_strategy(strategy(seed))
    values: list[float] = []
    while len(values) < rounds * BATCH:  # Ax may give fewer than it was asked for
        left = min(BATCH, rounds * BATCH - len(values))
        for index, parameters in client.get_next_trials(max_trials=left).items():
            values.append(PROBLEM.f(parameters))
            client.complete_trial(index, raw_data={"value": values[-1]})
    return _best_regret(values)


def ax_entries() -> Mapping[str, Run]:
    """Ax's client with what it does by itself, and with our node."""
    import torch
    from ax.generation_strategy.generation_strategy import GenerationStrategy
    from ax.utils.common.logger import set_ax_logger_levels

    from covey.integrations.ax import CoveyNode

    torch.set_num_threads(1)
    set_ax_logger_levels(logging.ERROR)
    return {
        "default": partial(_ax, None),
        "**CoveyNode**": partial(
            _ax, lambda seed: GenerationStrategy(nodes=[CoveyNode(seed=seed)])
        ),
    }


HOSTS = {
    "optuna": Host("optuna", "optuna", "optuna", "regret", optuna_entries),
    "sklearn": Host("scikit-learn", "sklearn", "sklearn", "score", sklearn_entries),
    "botorch": Host("botorch", "botorch", "botorch", "regret", botorch_entries),
    "ray": Host("ray", "ray", "ray", "regret", ray_entries),
    "ax": Host("ax-platform", "ax", "ax", "regret", ax_entries),
}


# --- the table


@contextmanager
def quiet() -> Iterator[None]:
    """Without the hosts' warnings about themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def rows(host: Host, seeds: int, rounds: int) -> Iterator[str]:
    """One line of the table for each optimiser of a host."""
    where = f"{host.package} {version(host.package)}"
    for name, run in host.entries().items():
        results, seconds = [], []
        for seed in range(seeds):
            start = time.perf_counter()
            results.append(run(seed, rounds))
            seconds.append(time.perf_counter() - start)
            print(f"{where}, {name}, seed {seed}: {results[-1]:.4g}", file=sys.stderr)
        low, high = min(results), max(results)
        yield (
            f"| {where} | {name} | {host.measure} | {median(results):.4f} | "
            f"{low:.4f} to {high:.4f} | {median(seconds):.1f} |"
        )


def main() -> None:
    """Print the table, host by host."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="studies for each optimiser")
    parser.add_argument("--rounds", type=int, default=6, help=f"batches of {BATCH} in a study")
    parser.add_argument("--only", nargs="+", choices=list(HOSTS), default=list(HOSTS))
    parser.add_argument("--quick", action="store_true", help="one seed, two rounds: does it run?")
    chosen = parser.parse_args()
    seeds, rounds = (1, 2) if chosen.quick else (chosen.seeds, chosen.rounds)
    print(
        f"{rounds} batches of {BATCH}; seeds 0 to {seeds - 1}. Regret: Hartmann-6, less is better."
    )
    print(
        "Score: R² of a support vector machine on diabetes, more is better. Seconds: wall, a study."
    )
    print("\n| host | optimiser | measure | median | range | seconds |\n|---|---|---|---|---|---|")
    missing = []
    for host in (HOSTS[name] for name in chosen.only):
        if find_spec(host.module) is None:
            missing.append(f"left out: {host.package} (pip install 'covey[{host.extra}]')")
            continue
        with quiet():
            for row in rows(host, seeds, rounds):
                print(row, flush=True)
    print("\n".join(["", *missing]) if missing else "")


if __name__ == "__main__":
    main()
