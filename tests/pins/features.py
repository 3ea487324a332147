"""Batches of what 0.2 brought: mixtures, conditions, goals, failures, plates and the rest."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import covey
from covey import Choice, Implies, Integer, Layout, Mixture, Pool, Real, Space, Study
from covey.history.events import Reported, Told

Point = Mapping[str, Any]
Batch = list[covey.Trial]


def wave(point: Point) -> float:
    """A smooth function with several summits, of any point; words count by their length."""
    terms = (x if isinstance(x, int | float) else len(str(x)) for x in point.values())
    return sum(math.cos(1.3 * (i + 1) * x) - 0.07 * x * x for i, x in enumerate(terms))


def tell_values(study: Study, batch: Batch) -> None:
    study.tell(batch, [wave(trial.point) for trial in batch])


def run_batches(
    study: Study,
    batches: int = 3,
    size: int = 5,
    tell: Callable[[Study, Batch], None] = tell_values,
) -> list[Any]:
    points = []
    for _ in range(batches):
        batch = study.ask(size)
        points.append([dict(trial.point) for trial in batch])
        tell(study, batch)
    return points


def unit(*names: str) -> dict[str, Real]:
    return {name: Real(0.0, 1.0) for name in names}


SQUARE = Space(unit("x", "y"))


def mixture_in_steps() -> list[Any]:
    parts = Mixture(["water", "acid", "salt"], total=1.0, parts=(1, 2), least=0.05, step=0.05)
    space = Space(unit("water", "acid", "salt", "speed"), where=[parts])
    return run_batches(Study(space, seed=11))


def mixture() -> list[Any]:
    space = Space(unit("a", "b", "c"), where=[Mixture(["a", "b", "c"], total=1.0)])
    return run_batches(Study(space, seed=11))


def conditions() -> list[Any]:
    space = Space(
        {
            "model": Choice(["tree", "net"]),
            "depth": Integer(1, 12, when={"model": "tree"}),
            "rate": Real(1e-4, 1.0, log=True, when={"model": "net"}),
        }
    )
    return run_batches(Study(space, seed=11))


def rules() -> list[Any]:
    boils = Implies({"solvent": "THF"}, {"T": {"high": 60}})
    space = Space({"solvent": Choice(["THF", "DMF"]), "T": Real(20, 120)}, where=[boils])
    return run_batches(Study(space, seed=11))


def steps() -> list[Any]:
    return run_batches(
        Study(Space({"T": Real(20, 80, step=5), "c": Real(0.1, 1, step=0.05)}), seed=2)
    )


def descriptors() -> list[Any]:
    features = {"a": [1, 2], "b": [2, 1], "c": [5, 5], "d": [6, 4]}
    space = Space({"ligand": Choice(list(features), features=features), "x": Real(0, 1)})
    return run_batches(Study(space, seed=11))


def two_goals(**options: Any) -> list[Any]:
    goals = {"gain": "max", "cost": "min"}
    study = Study(SQUARE, goal=goals, limits={"heat": ("<=", 1.2)}, seed=11, **options)

    def tell(study: Study, batch: Batch) -> None:
        values = []
        for trial in batch:
            x, y = trial.point.values()
            values.append({"gain": x + math.sin(2 * y), "cost": x * x, "heat": x + 0.5 * y})
        study.tell(batch, values)

    return run_batches(study, tell=tell)


def four_goals() -> list[Any]:
    names = ("a", "b", "c", "d")
    worst = dict.fromkeys(names, -1.0)
    study = Study(SQUARE, goal=dict.fromkeys(names, "max"), worst=worst, seed=11)

    def tell(study: Study, batch: Batch) -> None:
        study.tell(
            batch,
            [
                {
                    n: math.sin((i + 1) * t.point["x"]) + i * t.point["y"]
                    for i, n in enumerate(names)
                }
                for t in batch
            ],
        )

    return run_batches(study, batches=2, tell=tell)


def one_goal_with_a_limit() -> list[Any]:
    study = Study(SQUARE, limits={"sum": ("<=", 0.8)}, seed=11)

    def tell(study: Study, batch: Batch) -> None:
        study.tell(
            batch, [{"value": wave(t.point), "sum": t.point["x"] + t.point["y"]} for t in batch]
        )

    return run_batches(study, tell=tell)


def failures() -> list[Any]:
    def tell(study: Study, batch: Batch) -> None:
        for trial in batch:
            if trial.point["x"] > 0.7:
                study.fail(trial)
            else:
                study.tell(trial, wave(trial.point))

    return run_batches(Study(SQUARE, seed=11), batches=4, size=6, tell=tell)


def stopped_trials() -> list[Any]:
    """Trials with curves, of which two thirds were stopped at their third step."""
    study = Study(SQUARE, seed=11)

    def tell(study: Study, batch: Batch) -> None:
        for trial in batch:
            whole = trial.id % 3 == 0
            curve = [(s, wave(trial.point) * (1 - math.exp(-s / 4))) for s in (1, 3, 9)]
            curve = curve if whole else curve[:2]
            for step, value in curve:
                study.note(Reported(trial.id, 1, step, value))
            step, value = curve[-1]
            study.note(Told((trial.id,), (value,), (), (None if whole else {"stopped": step},)))

    return run_batches(study, batches=4, size=6, tell=tell)


def extended_space() -> list[Any]:
    study = Study(Space({"T": Real(20, 80), "solvent": Choice(["water", "THF"])}), seed=11)
    before = run_batches(study, batches=2)
    wider = {"T": Real(30, 120), "solvent": Choice(["water", "THF", "DMF"])}
    study.extend(Space({**wider, "p": Real(0.5, 4, log=True)}), "wider", values={"p": 1.0})
    return before + run_batches(study, batches=2)


def narrowed_pool() -> list[Any]:
    rows = [{"x": i / 40, "y": (i * 7 % 41) / 41} for i in range(41)]
    study = Study(Pool(rows), seed=11)
    before = run_batches(study, batches=2)
    study.extend(Pool(rows[:30]), "sold out")
    return before + run_batches(study, batches=2)


def prior() -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "earlier.jsonl"
        run_batches(Study(SQUARE, seed=5, journal=journal))
        return run_batches(Study(SQUARE, seed=11, prior=[journal]))


def plates() -> list[Any]:
    space = Space(
        {
            "ph": Real(4, 9),
            "ligand": Choice(["X", "S", "P"]),
            "ul": Real(1, 20, step=0.5),
        }
    )
    layout = Layout(plate=24, distinct={"ligand": 2}, total={"ul": 150}, replicates=2)
    study, wells = Study(space, seed=11), []
    for _ in range(2):
        (plate,) = study.ask_plates(1, layout)
        wells.append([[w.name, w.trial, w.order, dict(w.point or {})] for w in plate.wells])
        study.tell_plate(plate.name, {w.name: wave(w.point) for w in plate.used})
    return wells


def plates_of_two_outcomes() -> list[Any]:
    """A goal and a limit that are read in the same wells, of which one is marked."""
    layout = Layout(plate=24, controls={"blank": 2}, replicates=2)
    study = Study(SQUARE, goal={"gain": "max"}, limits={"heat": ("<=", 0.9)}, seed=11)
    for _ in range(2):
        (plate,) = study.ask_plates(1, layout)
        points = {well.name: well.point or {"x": 0.5, "y": 0.0} for well in plate.used}
        study.tell_plate(
            plate,
            {
                well: {"gain": wave(point) + i % 3, "heat": point["x"] + 0.1 * (i % 2)}
                for i, (well, point) in enumerate(points.items())
            },
        )
        study.mark_wells(plate, plate.used[3].name, "bubble")
    return [dict(trial.point) for trial in study.history]


def plate_in_blocks() -> list[Any]:
    layout = Layout(plate=24, controls={"blank": 2}, order="blocked")
    (plate,) = Study(SQUARE, seed=11).ask_plates(1, layout)
    return [[w.name, w.trial, dict(w.point or {})] for w in plate.wells]


def corrected() -> list[Any]:
    study = Study(SQUARE, seed=11)
    run_batches(study, batches=2)
    study.exclude([1, 2], "spilt")
    study.amend(3, 9.0, "misread")
    study.include([1], "was dry")
    return run_batches(study, batches=1)


def twelve_inputs() -> list[Any]:
    return run_batches(
        Study(Space(unit(*(f"x{i}" for i in range(12)))), seed=11), batches=4, size=8
    )


def large_pool(strategy: str = "auto") -> Callable[[], list[Any]]:
    def run() -> list[Any]:
        pool = Pool(np.random.default_rng(3).random((100_000, 2)))
        study = Study(pool, strategy=strategy, seed=11)
        first = study.ask(16, strategy="random")
        tell_values(study, first)
        return run_batches(study, batches=1, size=8)

    return run


FEATURES: dict[str, Callable[[], list[Any]]] = {
    "mixture": mixture,
    "mixture in steps": mixture_in_steps,
    "conditions": conditions,
    "rules": rules,
    "steps": steps,
    "descriptors": descriptors,
    "two goals and a limit, with worst": lambda: two_goals(worst={"gain": -1.0, "cost": 2.0}),
    "four goals, with worst": four_goals,
    "one goal and a limit": one_goal_with_a_limit,
    "failures": failures,
    "stopped trials": stopped_trials,
    "extended space": extended_space,
    "narrowed pool": narrowed_pool,
    "prior": prior,
    "plates": plates,
    "plates of two outcomes": plates_of_two_outcomes,
    "plate in blocks": plate_in_blocks,
    "corrected": corrected,
    "twelve inputs": twelve_inputs,
    "large pool": large_pool(),
    "large pool, ucb-dpp-max": large_pool("ucb-dpp-max"),
    "large pool, est-dpp-sample": large_pool("est-dpp-sample"),
    "large pool, bucb": large_pool("bucb"),
}
