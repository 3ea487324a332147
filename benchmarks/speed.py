"""CPU seconds of covey on one thread, beside its targets and its peers, as one Markdown table."""

from __future__ import annotations

import os

# Read once, when the first BLAS loads; a child interpreter inherits them.
os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS")})
os.environ.update(NUMEXPR_NUM_THREADS="1", VECLIB_MAXIMUM_THREADS="1")

import argparse
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from covey import Choice, Integer, Real, Space, Study, dpp
from covey.arrays import Array
from covey.belief import Belief
from covey.bench import hartmann6
from covey.gp import GP, Model, condition, fit, observe

T = TypeVar("T")

BATCH = 10
PICKS = BATCH - 1  # k of the k-DPP: all of a batch but its first point
SLOW = 5000  # items from which DPPy draws once only


@dataclass(frozen=True)
class Row:
    """One measurement, beside what was hoped for."""

    seconds: float
    note: str = ""
    target: float | None = None
    factor: float | None = None  # the target, as a multiple of the peer's speed
    peer: str = ""
    peer_seconds: float | None = None


@dataclass(frozen=True)
class Case:
    """Something to measure, and the name ``--only`` looks at."""

    name: str
    measure: Callable[[], Row]


def cpu_seconds(fresh: Callable[[], T], act: Callable[[T], object], most: int = 9) -> float:
    """Median CPU seconds of ``act`` on an object that keeps nothing from an earlier call."""
    times: list[float] = []
    if most > 1:  # else the caller has warmed up
        act(fresh())
    while len(times) < most and (len(times) < 3 or sum(times) < 2.0):
        given = fresh()
        start = time.process_time()
        act(given)
        times.append(time.process_time() - start)
    return statistics.median(times)


def noisy_data(n: int, d: int) -> tuple[Array, Array]:
    """A smooth function of d variables that do not matter equally, with noise of sd 0.1."""
    rng = np.random.default_rng(0)
    x = rng.random((n, d))
    smooth = np.sin(4.0 * x @ np.linspace(1.0, 0.2, d)) + np.square(x - 0.5).sum(axis=1)
    return x, smooth + 0.1 * rng.standard_normal(n)


def fit_row(n: int, target: float | None, again: bool) -> Row:
    """Standardise and fit; ``again`` starts from the fit to all but the last batch."""
    x, y = noisy_data(n, 6)
    rng = np.random.default_rng(0)  # a fit to one most probable model draws nothing from it

    def learn(told: int, last: tuple[Model, ...] = ()) -> tuple[Model, ...]:
        return fit(observe(x[:told], y[:told], np.full(told, np.nan)), GP(), rng, last)

    last = learn(n - BATCH) if again else ()
    return Row(cpu_seconds(lambda: last, partial(learn, n)), target=target)


def fit_cases(quick: bool) -> Iterator[Case]:
    """Fits from the priors' start, and from the last hyper-parameters."""
    for n, target in ((40, None),) if quick else ((200, 0.3), (1000, 8.0)):
        yield Case(f"gp fit, n={n}, 6-d, from scratch", partial(fit_row, n, target, False))
        yield Case(f"gp fit, n={n}, 6-d, refit after a batch", partial(fit_row, n, target, True))


def told_study(n: int) -> Study:
    """A study of Hartmann-6 with n values told, the last batch of them asked for by itself."""
    problem = hartmann6()
    study = Study(problem.space, seed=0)
    at = np.random.default_rng(0).random((n - BATCH, problem.space.width))
    points = problem.space.decode(at)
    study.add(points, [problem.f(point) for point in points])
    batch = study.ask(BATCH)
    study.tell(batch, [problem.f(trial.point) for trial in batch])
    return study


def ask_row(k: int, n: int, target: float | None, peer: bool) -> Row:
    """One ask: fit, candidates, belief and choice, with the log's last hyper-parameters."""
    seconds = cpu_seconds(partial(told_study, n), lambda study: study.ask(k))
    study = told_study(n)
    study.ask(k)
    account: Any = study.diagnostics
    say(", ".join(f"{stage} {spent:.3f}" for stage, spent in account.seconds.items()))
    row = Row(seconds, account.sampler, target)
    if not (peer and find_spec("botorch")):
        return row
    name = f"BoTorch {version('botorch')} qLogEI, sequential"
    return replace(row, peer=name, peer_seconds=botorch_seconds(k, told_study(n)))


def first_ask_row(width: int, target: float | None) -> Row:
    """The first ask of a study that was given 1,000 results: there is no fit to start from."""
    kinds = (Real(0.0, 1.0), Integer(0, 20), Choice(["a", "b", "c"]))
    space = Space({f"x{i}": kinds[i % 3] for i in range(width)})
    rng = np.random.default_rng(0)
    at = rng.random((1000, space.width))
    slopes = np.linspace(3.0, 0.5, space.width)
    values = np.exp(np.sin(at * slopes).sum(axis=1) / 3.0) + 0.05 * rng.standard_normal(1000)

    def fresh() -> Study:
        study = Study(space, seed=0)
        study.add(space.decode(at), values)
        return study

    return Row(cpu_seconds(fresh, lambda study: study.ask(BATCH), most=1), target=target)


def botorch_seconds(k: int, study: Study) -> float:
    """CPU seconds of a fit and k points of qLogEI on the same data, once."""
    torch, told = import_module("torch"), study.history.told
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.from_numpy(study.space.encode([trial.point for trial in told]))
    y = torch.tensor([[trial.value] for trial in told], dtype=torch.double)
    botorch_ask(1, x[:20], y[:20])
    return cpu_seconds(lambda: None, lambda _: botorch_ask(k, x, y), most=1)


def botorch_ask(k: int, x: Any, y: Any) -> object:
    """The next k points by BoTorch, greedily one after the other: its quicker way."""
    torch, optim = import_module("torch"), import_module("botorch.optim")
    model = import_module("botorch.models").SingleTaskGP(x, y)
    loss = import_module("gpytorch.mlls").ExactMarginalLogLikelihood(model.likelihood, model)
    import_module("botorch.fit").fit_gpytorch_mll(loss)
    sampler = import_module("botorch.sampling").SobolQMCNormalSampler(torch.Size([128]), seed=0)
    logei = import_module("botorch.acquisition.logei").qLogExpectedImprovement
    box = torch.stack([torch.zeros_like(x[0]), torch.ones_like(x[0])])
    options = {"q": k, "num_restarts": 10, "raw_samples": 256, "sequential": True}
    return optim.optimize_acqf(logei(model, best_f=y.max(), sampler=sampler), box, **options)


def ask_cases(quick: bool, peers: bool) -> Iterator[Case]:
    """Asks of a study that has asked before."""
    sizes = ((5, 20, None),) if quick else ((10, 100, 0.5), (10, 500, None), (100, 100, None))
    for k, n, target in sizes:
        peer = peers and (k, n) == (10, 100)
        yield Case(f"ask({k}), n={n}, 6-d", partial(ask_row, k, n, target, peer))
    for width in () if quick else (10, 20):
        name = f"first ask({BATCH}), n=1000, {width} mixed parameters"
        yield Case(name, partial(first_ask_row, width, 5.0))


def smooth_kernel(n: int) -> Array:
    """Squared-exponential in 6-d, length 0.3, plus 1e-8 on the diagonal: hardly of low rank."""
    x = np.random.default_rng(0).random((n, 6))
    norms = np.square(x).sum(axis=1)
    distance = np.maximum(np.add.outer(norms, norms) - 2.0 * (x @ x.T), 0.0)
    return np.asarray(np.exp(distance / (-2.0 * 0.3**2)) + 1e-8 * np.eye(n))


def belief_about(n: int, d: int) -> Belief:
    """What 50 noisy observations leave open at n random candidates."""
    x, y = noisy_data(50, d)
    data = observe(x, y, np.full(len(x), np.nan))
    posterior = condition(fit(data, GP(), np.random.default_rng(0)), data)
    return posterior.belief(np.random.default_rng(1).random((n, d)))


def whole(belief: Belief) -> Array:
    """The belief's kernel as the dense matrix that DPPy needs."""
    kernel = belief.information().columns(np.arange(len(belief)))
    return (kernel + kernel.T) / 2.0


def sample_row(fresh: Callable[[], Any], dense: Callable[[], Array], factor: float | None) -> Row:
    """Prepare and draw once by method "auto"; DPPy does the same with the dense matrix."""
    rng = np.random.default_rng(0)
    seconds = cpu_seconds(fresh, lambda kernel: dpp.prepare(kernel, PICKS).draw(rng))
    sampler: Any = dpp.prepare(fresh(), PICKS)
    size = f"{sampler.steps} steps" if sampler.steps else f"rank {sampler.rank}"
    row = Row(seconds, f"{sampler.method}, {size}, error <= {sampler.error:g}", factor=factor)
    if not find_spec("dppy"):
        return row
    return replace(row, peer=f"DPPy {version('dppy')}, exact", peer_seconds=dppy_seconds(dense()))


def dppy_seconds(kernel: Array) -> float:
    """CPU seconds of DPPy's first exact draw, eigendecomposition included, checks excluded."""
    make = import_module("dppy.finite_dpps").FiniteDPP
    make("likelihood", L=np.eye(20)).sample_exact_k_dpp(size=PICKS, random_state=0)
    return cpu_seconds(
        lambda: make("likelihood", L=kernel),
        lambda process: process.sample_exact_k_dpp(size=PICKS, random_state=0),
        most=1 if len(kernel) >= SLOW else 3,
    )


def sample_cases(quick: bool) -> Iterator[Case]:
    """A kernel given whole, and beliefs given by columns, all drawn from by method "auto"."""

    def squared(n: int, factor: float | None) -> Row:
        kernel = smooth_kernel(n)
        return sample_row(lambda: kernel, lambda: kernel, factor)

    def posterior(d: int, n: int, factor: float | None) -> Row:
        about = partial(belief_about, n, d)
        return sample_row(lambda: about().information(), lambda: whole(about()), factor)

    kinds: list[tuple[str, Callable[[int, float | None], Row]]] = [("SE 6-d, dense", squared)]
    kinds += [(f"I + posterior/noise {d}-d, columns", partial(posterior, d)) for d in (2, 6)]
    for kind, measure in kinds:
        for n, factor in ((600, None),) if quick else ((1000, None), (2000, 20), (5000, 100)):
            yield Case(f"k-dpp, k={PICKS}, N={n}, {kind}", partial(measure, n, factor))


def import_row(statement: str, target: float | None, tries: int) -> Row:
    """CPU seconds of a statement in fresh interpreters that have imported numpy: the best."""
    code = "import numpy; from time import process_time as cpu; start = cpu(); "
    command = [sys.executable, "-c", f"{code}{statement}; print(cpu() - start)"]
    said = [subprocess.run(command, capture_output=True, check=True) for _ in range(tries)]
    return Row(min(float(done.stdout) for done in said), "over import numpy", target)


def help_row(tries: int) -> Row:
    """Wall seconds of the command line's help, from start to exit of the process: the best."""

    def once() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "covey", "--help"], capture_output=True, check=True)
        return time.perf_counter() - start

    return Row(min(once() for _ in range(tries)), "wall, as python -m covey", 0.3)


def start_cases(quick: bool) -> Iterator[Case]:
    """What a user waits for before anything happens."""
    tries = 1 if quick else 5
    for statement, target in (("import covey", None), ("from covey import Study", 0.3)):
        yield Case(statement, partial(import_row, statement, target, tries))
    yield Case("covey --help", partial(help_row, tries))


def say(text: str) -> None:
    """Progress, apart from the table."""
    print(text, file=sys.stderr, flush=True)


def line(name: str, row: Row) -> str:
    """A row of the table; ratio is the peer's seconds over ours."""
    ratio = row.peer_seconds / row.seconds if row.peer_seconds is not None else None
    target = row.peer_seconds / row.factor if row.factor and row.peer_seconds else row.target
    hoped = "-" if target is None else f"{target:.3g}"
    hoped += f" (peer/{row.factor:g})" if row.factor else ""
    cells = (
        f"{name}; {row.note}" if row.note else name,
        f"{row.seconds:.3g}",
        f"{hoped} missed" if target is not None and row.seconds > target else hoped,
        row.peer or "-",
        "-" if row.peer_seconds is None else f"{row.peer_seconds:.3g}",
        "-" if ratio is None else f"{ratio:.0f}x",
    )
    return f"| {' | '.join(cells)} |"


def arguments() -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="PREFIX", help="rows that begin like this")
    parser.add_argument("--peers", action="store_true", help="also slow peers (BoTorch)")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    return parser.parse_args()


def main() -> None:
    """Measure case by case and print as rows come."""
    wanted = arguments()
    about = ", ".join(f"{name} {version(name)}" for name in ("covey", "numpy", "scipy"))
    say(f"{about}, Python {platform.python_version()}, {platform.machine()}, one thread")
    print("| what | covey s | target s | peer | peer s | ratio |\n|---|---|---|---|---|---|")
    quick, asks = wanted.quick, ask_cases(wanted.quick, wanted.peers)
    for case in chain(fit_cases(quick), asks, sample_cases(quick), start_cases(quick)):
        if case.name.startswith(wanted.only):
            say(f"{case.name} ...")
            print(line(case.name, case.measure()), flush=True)


if __name__ == "__main__":
    main()
