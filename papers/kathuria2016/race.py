"""One run: one entrant on one problem, from a first point and with a noise that all share."""

from __future__ import annotations

import hashlib
import time
import zlib
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import covey
from covey import Pool
from covey.arrays import Array, Indices, one_thread
from covey.belief import Belief
from covey.gp import Model, Posterior, condition, fit, observe
from covey.selection import checked_selection
from papers.kathuria2016.entrants import ENTRANTS, PAPER_GP
from papers.kathuria2016.ground import Ground, Kind, apart, ground
from papers.kathuria2016.problem import Problem
from papers.kathuria2016.problems import problem


@dataclass(frozen=True)
class Run:
    """What decides a run, and nothing else does."""

    entrant: str
    problem: str
    batch: int
    seed: int
    evaluations: int = 100  # after the first point
    samples: int = PAPER_GP.samples  # of the hyper-parameters, an ask
    ground: Kind = "ends"

    @property
    def rounds(self) -> int:
        """Batches."""
        return self.evaluations // self.batch


@dataclass
class Looks:
    """What was looked at so far: where, the true values, and what was seen of them."""

    task: Problem
    ground: Ground
    noise: Array
    at: Array = field(init=False)
    true: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.at = self.ground.rows[:0]

    def add(self, at: Array) -> None:
        """Look at some points (k, d)."""
        self.true += [self.task.evaluate(self.ground.point(row)) for row in at]
        self.at = np.vstack([self.at, at])

    @property
    def values(self) -> Array:
        """With noise, which depends on the index of a look alone."""
        return np.array(self.true) + self.noise[: len(self.true)]


def start(task: Problem, run: Run) -> Looks:
    """The ground, the noise and the first point: by problem and seed, whoever runs."""
    rng = np.random.default_rng([run.seed, zlib.crc32(run.problem.encode())])
    where = ground(task.space, run.seed, run.ground)
    first = int(rng.integers(len(where.rows)))
    looks = Looks(task, where, task.noise * rng.standard_normal(1 + run.rounds * run.batch))
    looks.add(where.rows[[first]])
    return looks


def race(run: Run) -> dict[str, Any]:
    """The row of a run: regrets after each batch, the first entry after the first point.

    ``seen`` is the regret of the best point looked at, ``told`` of the point of best mean among
    these, ``anywhere`` of the point of best mean on the whole ground; ``recommendation`` names the
    one that counts as immediate regret. ``cumulative`` adds up the regrets of all looks.
    ``least`` is, on X alone, the regret of its best point, below which nobody can come.
    """
    task = problem(run.problem)
    began, cpu = time.perf_counter(), time.process_time()
    with one_thread():
        looks = start(task, run)
        curves = _curves(run, task, looks)
    return {
        **asdict(run),
        "title": task.title,
        "recommendation": recommendation(task),
        "grid": None if task.grid is None else task.optimum - task.grid,
        **{name: [_short(x) for x in curve] for name, curve in curves.items()},
        **({"least": _short(least(looks))} if run.ground == "finite" else {}),
        "seconds": round(time.perf_counter() - began, 2),
        "cpu": round(time.process_time() - cpu, 2),
        "version": version(),
    }


def _short(regret: float) -> float:
    return float(f"{regret:.6g}")


def least(looks: Looks) -> float:
    """The regret of the best point of X."""
    task, where = looks.task, looks.ground
    return task.optimum - max(task.evaluate(where.point(row)) for row in where.rows)


def recommendation(task: Problem) -> str:
    """Which point an algorithm recommends.

    The paper does not say, so this is our choice: that of best mean anywhere, as in PES and PPES,
    whose words about regret the paper repeats; and where a look at one of finitely many arms
    leaves no doubt about it, the best one seen, as Contal et al. have it.
    """
    return "seen" if isinstance(task.space, Pool) and task.noise == 0.0 else "anywhere"


def _curves(run: Run, task: Problem, looks: Looks) -> dict[str, list[float]]:
    strategy, gp = ENTRANTS[run.entrant].strategy, replace(PAPER_GP, samples=run.samples)
    curves: dict[str, list[float]] = {"seen": [], "told": [], "anywhere": [], "cumulative": []}
    models: tuple[Model, ...] = ()
    for t in range(1, run.rounds + 2):
        rng = np.random.default_rng([run.seed, t])
        data = observe(looks.at, looks.values, np.full(len(looks.at), np.nan))
        models = fit(data, gp, rng, models)  # the chain goes on where the last batch left it
        posterior = condition(models, data)
        # A generator of its own: what is offered must not depend on what an entrant drew.
        belief, fresh = _offered(posterior, looks, t, np.random.default_rng([run.seed, t, 1]))
        curves["seen"].append(task.optimum - max(looks.true))
        for name, value in _recommended(belief, looks).items():
            curves[name].append(abs(task.optimum - value))
        curves["cumulative"].append(sum(task.optimum - value for value in looks.true))
        if t <= run.rounds:
            seen = len(looks.at)
            told = (belief.mean[:seen], belief.std[:seen])
            offered = replace(belief.on(fresh), told=told)
            chosen = checked_selection(
                strategy.choose(offered, run.batch, rng), run.batch, len(offered)
            )
            looks.add(offered.at[list(chosen.indices)])
    return curves


def _offered(
    posterior: Posterior, looks: Looks, t: int, rng: np.random.Generator
) -> tuple[Belief, Indices]:
    """The belief about all looks, the rest of X and what is added to it; what may come next."""
    known = np.vstack([looks.at, looks.ground.left(looks.at)])
    added = looks.ground.added(posterior, known, rng)
    belief = posterior.belief(np.vstack([known, added]), t)
    new = len(known) + apart(added, known)
    return belief, np.concatenate([np.arange(len(looks.at), len(known)), new])


def _recommended(belief: Belief, looks: Looks) -> dict[str, float]:
    """The true values at the points of best mean, among the looks and anywhere."""
    told = int(np.argmax(belief.mean[: len(looks.at)]))
    anywhere = looks.ground.point(belief.at[int(np.argmax(belief.mean))])
    return {"told": looks.true[told], "anywhere": looks.task.evaluate(anywhere)}


@cache
def version() -> str:
    """What raced: the package's version, and eight digits of a hash over its source and ours."""
    package, here = Path(covey.__file__).parent, Path(__file__).parent
    ours = [here / f"{name}.py" for name in ("race", "ground", "entrants", "problem")]
    found = {package: package.rglob("*.py"), here: [*ours, *(here / "problems").glob("*.py")]}
    digest = hashlib.sha256()
    for folder, paths in found.items():
        for path in sorted(paths):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return f"covey {covey.__version__}+{digest.hexdigest()[:8]}"
