"""Optimisers of the race, ours and the peers', behind one small interface."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Protocol

import covey
from benchmarks.race.problems import Points, Problem
from covey import GP, Study
from covey.baselines import Hallucinated
from covey.catalog import STRATEGIES
from covey.policies import UCB
from covey.selection import Strategy
from covey.strategies import DPP


class Optimiser(Protocol):
    """Maximises; the first batch is told to it, so that it makes no random design of its own."""

    def tell(self, points: Points, values: Sequence[float]) -> None:
        """Results of the last batch (or of the first, shared one)."""
        ...

    def ask(self, batch: int) -> Points:
        """The next batch."""
        ...


class Covey:
    """One of our strategies."""

    def __init__(
        self, problem: Problem, seed: int, strategy: str | Strategy, gp: GP | None = None
    ) -> None:
        self._study = Study(problem.space, strategy=strategy, seed=seed, gp=gp or GP())

    def tell(self, points: Points, values: Sequence[float]) -> None:
        """The first batch is added, later ones are told."""
        pending = self._study.history.pending
        if pending:
            self._study.tell(pending, values)
        else:
            self._study.add(points, values)

    def ask(self, batch: int) -> Points:
        """One ask."""
        return [dict(trial.point) for trial in self._study.ask(batch)]


PEERS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "botorch": ("botorch", "BoTorch", ("botorch", "gpytorch", "torch")),
    "hebo": ("hebo", "Hebo", ("HEBO", "GPy", "pymoo", "torch")),
    "turbo": ("turbo", "Turbo", ("botorch", "gpytorch", "torch")),
    "optuna-gp": ("optuna", "Optuna", ("optuna", "torch")),
    "vizier": ("vizier", "Vizier", ("google-vizier", "jax")),
}
"""Name -> its file under ``peers``, its class there, and the packages that make its version."""

OURS: Mapping[str, str | Strategy] = {
    **{f"covey-{name}": name for name in STRATEGIES},
    # As the paper has them: the width of Theorem 2.1, which by name is a constant 2.
    "covey-ucb-dpp-max-theory": DPP(UCB("theory"), then="max"),
    "covey-ucb-dpp-sample-theory": DPP(UCB("theory"), then="sample"),
    "covey-bucb-theory": Hallucinated(UCB("theory")),
}

OPTIMISERS = (*OURS, *PEERS)
"""Everything that can be entered, by name."""


def enter(name: str, problem: Problem, seed: int) -> Optimiser:
    """An optimiser at the start line."""
    if name not in PEERS:
        return Covey(problem, seed, OURS[name])
    file, peer, _ = PEERS[name]
    made: Callable[[Problem, int], Optimiser] = getattr(
        import_module(f"benchmarks.race.peers.{file}"), peer
    )
    return made(problem, seed)


@cache
def version_of(name: str) -> str:
    """What raced: versions of a peer's packages; of ours, the version and a hash of the source."""
    if name not in PEERS:
        return f"covey {covey.__version__}+{_source()}"
    return ", ".join(f"{package} {_installed(package)}" for package in PEERS[name][2])


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "?"


_DOORS = ("cli", "integrations", "report", "run")  # which do not choose points


def _source() -> str:
    """Eight digits of a hash over the files that choose: the same source, the same batches."""
    folder = Path(covey.__file__).parent
    digest = hashlib.sha256()
    paths = (p for p in folder.rglob("*.py") if p.relative_to(folder).parts[0] not in _DOORS)
    for path in sorted(paths):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:8]
