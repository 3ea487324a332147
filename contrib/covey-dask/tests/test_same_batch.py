"""Random studies, each asked on one machine and with a cluster: the batches are the same."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from covey import GP, Layout, Pool, Study
from covey.catalog import STRATEGIES
from covey_dask import DaskProposer, scatter

MODELLED = [name for name, make in STRATEGIES.items() if make().needs_model]
CHANGES = ("none", "less", "more")
LAYOUTS = {
    "plain": Layout(plate=24),
    "shared": Layout(plate=24, shared={"kind": "plate"}),
    "blocks": Layout(plate=24, shared={"kind": "column"}, distinct={"kind": 3}),
}


@pytest.fixture(scope="module")
def threads():
    """A client of two workers that are threads of this process."""
    from distributed import Client, LocalCluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
        with LocalCluster(**options, dashboard_address=None) as cluster, Client(cluster) as client:
            yield client


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Regions of more than thirty rows are large."""
    monkeypatch.setattr(scatter, "LOCAL", 30)


def value(point, shift):
    bump = 2.0 * np.exp(-20.0 * ((point["x"] - 0.3) ** 2 + (point["y"] - 0.4) ** 2))
    return float(bump + np.sin(5.0 * point["x"] + shift) + 0.3 * (point["kind"] == "b"))


def study_of(seed, strategy="auto"):
    """A random pool, results, and perhaps failures, pending trials, an exclusion; the rows left."""
    rng = np.random.default_rng(seed)
    at, kinds = rng.random((int(rng.integers(150, 200)), 2)), "abc"
    rows = [{"x": x, "y": y, "kind": kinds[i % 3]} for i, (x, y) in enumerate(at.tolist())]
    gp = GP(samples=2) if rng.random() < 0.2 else None
    goal = "max" if rng.random() < 0.5 else "min"
    study = Study(Pool(rows), goal, seed=seed, strategy=strategy, gp=gp)
    batch = study.ask(20, strategy="random")
    fails = batch[: int(rng.choice([0, 2, 8]))]
    told = batch[len(fails) : 18]
    study.tell(told, [value(t.point, seed) for t in told])
    if fails:
        study.fail(fails)
    if rng.random() < 0.5:
        study.cancel(batch[18:])
    if rng.random() < 0.3:
        study.exclude(told[:1], "a slip")
    return study, rows


def change(study, rows, how):
    """Take away rows near the best results, or add some; "none" leaves the pool as it is."""
    if how == "less":
        left = [r for r in rows if abs(r["x"] - 0.3) > 0.2 or abs(r["y"] - 0.4) > 0.2]
        pending = [dict(trial.point) for trial in study.history.pending]
        left += [point for point in pending if point not in left]
        study.extend(Pool(left), "sold out")
    elif how == "more":
        more = [{"x": i / 40.0, "y": 1.0 - i / 40.0, "kind": "c"} for i in range(1, 40)]
        study.extend(Pool([*rows, *more]), "new in stock")


def asked(seed, strategy, how, layout=None, client=None):
    """Two batches of a random study, the pool being changed before the first and the second."""
    study, rows = study_of(seed, strategy)

    def ask():
        if layout is None:
            return [trial.point for trial in study.ask(6)]
        plates = study.ask_plates(1, LAYOUTS[layout])
        return [plate.map() for plate in plates]

    def both():
        first = ask()
        change(study, rows, how[1])
        return [first, ask()]

    change(study, rows, how[0])
    if client is None:
        return both()
    with DaskProposer(study, client, parts=3):
        return both()


@pytest.mark.parametrize("strategy", MODELLED)
def test_a_batch_of_any_strategy_is_that_of_one_machine(strategy, threads):
    """Before and after the best rows are taken away."""
    how, seed = ("none", "less"), MODELLED.index(strategy)
    assert asked(seed, strategy, how, client=threads) == asked(seed, strategy, how)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("how", CHANGES)
def test_so_are_plates(layout, how, threads):
    seed = 3 * CHANGES.index(how) + list(LAYOUTS).index(layout)
    strategy = ("auto", "est-dpp-max", "ucb-dpp-sample", "b-est")[seed % 4]
    alone = asked(seed, strategy, (how, "none"), layout)
    assert [len(plates) for plates in alone] == [1, 1]
    assert asked(seed, strategy, (how, "none"), layout, threads) == alone


def told_by(study, names):
    """The study with twelve results of these outcomes, or of its one value."""
    for i, trial in enumerate(study.ask(12, strategy="random")):
        each = {name: value(trial.point, shift) for shift, name in enumerate(names)}
        study.tell(trial, each or value(trial.point, i))
    return study


def test_several_outcomes_a_prior_and_fixed_values_are_no_exception(threads, tmp_path):
    rows = study_of(1)[1]
    told_by(Study(Pool(rows), seed=1, journal=tmp_path / "before.jsonl"), ())
    kinds = (
        ({"goal": {"a": "max", "b": "min"}, "limits": {"c": ("<=", 1.0)}}, "abc"),
        ({"goal": {"a": "max"}}, "a"),
        ({"prior": [tmp_path / "before.jsonl"]}, ""),
    )
    for options, names in kinds:
        alone, study = (told_by(Study(Pool(rows), seed=2, **options), names) for _ in range(2))
        with DaskProposer(study, threads):
            found = study.ask(4, fixed={"kind": "a"})
        assert [t.point for t in found] == [t.point for t in alone.ask(4, fixed={"kind": "a"})]


@pytest.mark.parametrize("strategy", ["auto", "b-est"])
def test_a_belief_about_other_rows_is_found_out(strategy, threads, monkeypatch):
    """The control: a cluster that mixes up which row is which chooses others."""
    remote_belief = scatter.remote_belief

    def mixed(*args):
        belief = remote_belief(*args)
        return replace(belief, parts=tuple(replace(p, mean=p.mean[::-1]) for p in belief.parts))

    monkeypatch.setattr("covey_dask.proposer.remote_belief", mixed)
    how = ("none", "none")
    assert asked(0, strategy, how, client=threads) != asked(0, strategy, how)
