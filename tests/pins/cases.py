"""What is pinned: every strategy on every kind of space, and the settings that change a batch."""

from __future__ import annotations

import hashlib
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.pins.features import FEATURES

import covey
from covey.catalog import STRATEGIES

HERE = Path(__file__).parent
FROZEN = HERE.parent / "reliability" / "golden" / "0.1.0.jsonl"
Case = Callable[[], list[Any]]


def _reals() -> covey.Space:
    return covey.Space({f"x{i}": covey.Real(-1.0, 2.0) for i in range(3)})


def _mixed() -> covey.Space:
    return covey.Space(
        {
            "rate": covey.Real(1e-5, 1e-1, log=True),
            "layers": covey.Integer(1, 8),
            "kind": covey.Choice(["a", "b", "c"]),
            "size": covey.Choice([16, 32, 64], ordered=True),
        },
        where=[covey.Linear({"layers": 1, "rate": 10}, upper=6.0), lambda p: p["kind"] != "b"],
    )


def _grid() -> covey.Space:
    return covey.Space({"i": covey.Integer(0, 20), "j": covey.Integer(0, 20, step=2)})


def _array() -> covey.Pool:
    return covey.Pool(np.random.default_rng(0).random((300, 3)))


def _table() -> covey.Pool:
    rng = np.random.default_rng(1)
    return covey.Pool(
        [
            {"name": f"dye {i}", "ph": float(rng.uniform(4, 9)), "acid": "abc"[i % 3]}
            for i in range(120)
        ],
        labels=["name"],
    )


SPACES = {"reals": _reals, "mixed": _mixed, "grid": _grid, "array": _array, "table": _table}


def value(point: dict[str, Any]) -> float:
    """Some smooth function of any point."""
    numbers = [
        v if isinstance(v, int | float) else len(str(v)) + 0.1 * ord(str(v)[0])
        for k, v in point.items()
        if k != "name"
    ]
    return sum(math.sin(1.7 * (i + 1) * v) - 0.1 * v * v for i, v in enumerate(numbers))


def _rounds(study: covey.Study, rounds: int = 3, k: int = 4, start: int = 12) -> list[Any]:
    if start:
        study.tell(first := study.ask(start, strategy="sobol"), [value(t.point) for t in first])
    found = []
    for _ in range(rounds):
        batch = study.ask(k)
        found.append([t.point for t in batch])
        study.tell(batch, [value(t.point) for t in batch])
    return found


def _usual(space: str, strategy: str) -> Case:
    return lambda: _rounds(covey.Study(SPACES[space](), strategy=strategy, seed=7))


def _settings(space: str, **options: Any) -> Case:
    return lambda: _rounds(covey.Study(SPACES[space](), seed=7, **options), rounds=2)


def _pending() -> list[Any]:
    study = covey.Study(_reals(), goal="min", seed=3)
    first = study.ask(12)
    study.tell(first[:9], [value(t.point) for t in first[:9]], sem=[0.1, *[None] * 8])
    held = study.ask(3, fixed={"x0": 0.5})
    study.cancel(held[0])
    study.enqueue([{"x0": 0.0, "x1": 0.0, "x2": 0.0}])
    study.add([{"x0": 1.0, "x1": 1.0, "x2": 1.0}] * 2, [0.3, 0.4])
    return [[t.point for t in held], [t.point for t in study.ask(4)]]


def _replayed() -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(FROZEN, Path(folder) / "run.jsonl"))
        study = covey.Study.load(path)
        return [[t.point for t in study.ask(3)], [t.point for t in study.ask(2)]]


def _many() -> list[Any]:
    """More results than hyper-parameters are learnt from, and a pool beyond the short lists."""
    rng = np.random.default_rng(5)
    pool, at = covey.Pool(rng.random((30_000, 2))), rng.random((1100, 2))
    study = covey.Study(pool, seed=1)
    points = [{"x0": a, "x1": b} for a, b in at.tolist()]
    study.add(points, [value(p) for p in points])
    return _rounds(study, rounds=2, k=10, start=0)


def cases() -> Iterator[tuple[str, Case]]:
    """Every pinned case by name."""
    for space in SPACES:
        for strategy in STRATEGIES:
            yield f"{space}/{strategy}", _usual(space, strategy)
    yield "reals/min", _settings("reals", goal="min")
    yield "reals/sampled", _settings("reals", gp=covey.GP(samples=3))
    yield "reals/noise", _settings("reals", gp=covey.GP("squared-exponential", noise=0.01))
    yield "reals/straight", _settings("reals", gp=covey.GP(warp=False))
    yield "array/torch", _settings("array", device="cpu")
    yield "array/float32", _settings("array", device="cpu", precision="float32")
    yield "reals/first", lambda: [[t.point for t in covey.Study(_reals(), seed=2).ask(5)]]
    yield "array/first", lambda: [[t.point for t in covey.Study(_array(), seed=2).ask(5)]]
    yield "pending", _pending
    yield "replayed", _replayed
    yield "many", _many
    yield from FEATURES.items()


def machine() -> str:
    """What the last bits of a batch depend on, beside the code."""
    import scipy.linalg  # loads a BLAS of its own
    import threadpoolctl

    blas = sorted(
        f"{i.get('internal_api')} {i.get('version')} {i.get('architecture')}"
        for i in threadpoolctl.threadpool_info()
        if i.get("user_api") == "blas"
    )
    said = f"numpy {np.__version__}, scipy {scipy.__version__}, {', '.join(dict.fromkeys(blas))}"
    return f"{said} ({hashlib.sha256(said.encode()).hexdigest()[:8]})"
