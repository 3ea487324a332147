"""One run: what all entrants share, what a row holds, and what is offered to them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from papers.kathuria2016 import race as racing
from papers.kathuria2016.entrants import ENTRANTS, PAPER_GP
from papers.kathuria2016.ground import GROUNDS, apart, clouds, ground
from papers.kathuria2016.problem import Problem
from papers.kathuria2016.race import Run, least, race, recommendation, start, version
from scipy.stats import chi2_contingency
from tests.laws.test_dpp_max_is_pure_exploration import PureExploration

from covey import Pool, Real, Space, dpp
from covey.arrays import one_thread
from covey.catalog import STRATEGIES
from covey.gp import condition, fit, observe
from covey.policies import EST, UCB

SHORT = {"evaluations": 10, "samples": 2}


def noisy(space):
    return Problem("made-up", "Made up", space, lambda point: point["x"], 1.0, 0.1, "here")


BOX = Space({"x": Real(0.0, 2.0)})
ROWS = Pool([{"x": i / 7.0} for i in range(8)])


def test_the_paper_and_practice_have_seven_entrants_each():
    sides = [entrant.side for entrant in ENTRANTS.values()]
    assert sides == ["paper"] * 7 + ["practice"] * 7
    assert [n for n, e in ENTRANTS.items() if e.rule == "ucb" and e.side == "paper"] == [
        "bucb",
        "ucb-dpp-max",
        "ucb-dpp-sample",
        "lp-ucb",
    ]
    assert ENTRANTS["est-dpp-sample"].strategy.first == EST("a", "observed")
    assert ENTRANTS["ucb-dpp-sample"].strategy.method == "walk"
    assert ENTRANTS["lp-ucb-4"].strategy.first == UCB(4.0)
    assert (PAPER_GP.kernel, PAPER_GP.mean, PAPER_GP.samples, PAPER_GP.priors) == (
        "squared-exponential",
        "zero",
        5,
        "paper",
    )


def test_the_papers_est_is_not_the_one_a_study_has_by_name():
    for name in ("est-dpp-max", "est-dpp-sample", "b-est"):
        ours, theirs = STRATEGIES[name]().first, ENTRANTS[name].strategy.first
        assert (ours, theirs) == (EST("n", "mean"), EST("a", "observed"))
        assert ENTRANTS[name.replace("est", "estn")].strategy.first == ours
    assert STRATEGIES["est-pe"]().first == EST("n", "mean")
    page = Path(racing.__file__).with_name("README.md").read_text(encoding="utf-8")
    assert '`DPP(EST("a", "observed"), then="sample")`' in page


@pytest.mark.parametrize("space", [BOX, ROWS], ids=["space", "pool"])
def test_all_share_the_first_point_and_the_noise_by_index(space):
    task = noisy(space)
    runs = [Run(name, "made-up", batch, 3) for name in ("bucb", "lp-ucb") for batch in (5, 10)]
    starts = [start(task, run) for run in runs]
    for each in starts:
        np.testing.assert_array_equal(each.at, starts[0].at)
        np.testing.assert_array_equal(each.noise, starts[0].noise)
        assert each.values[0] == each.true[0] + each.noise[0]
    other = start(task, replace(runs[0], seed=4))
    assert not np.array_equal(other.noise, starts[0].noise)
    assert starts[0].noise.std() == pytest.approx(0.1, rel=0.3)


def test_a_row_is_the_run_again():
    run = Run("est-dpp-sample", "cosines", 5, 0, **SHORT)
    first, again = race(run), race(run)
    for row in (first, again):
        row.pop("seconds"), row.pop("cpu")
    assert first == again
    assert first["recommendation"] == "anywhere"
    assert race(replace(run, seed=1))["seen"] != first["seen"]


@pytest.mark.parametrize("name", ENTRANTS)
def test_curves_are_regrets(name):
    row = race(Run(name, "cosines", 5, 1, **SHORT))
    curves = np.array([row[key] for key in ("seen", "told", "anywhere", "cumulative")])
    assert curves.shape == (4, 3)
    assert np.all(curves >= 0.0)
    seen, told, _, cumulative = curves
    assert np.all(np.diff(seen) <= 0.0)
    assert np.all(told >= seen)
    assert np.all(np.diff(cumulative) >= 5.0 * seen[1:])
    assert seen[0] == told[0] == cumulative[0]
    assert row["version"].startswith("covey ")


def test_pure_exploration_is_dpp_max(monkeypatch):
    run = Run("ucb-dpp-max", "branin", 5, 0, **SHORT)
    exploring = replace(ENTRANTS[run.entrant], strategy=PureExploration(UCB()))
    ours = race(run)
    monkeypatch.setitem(racing.ENTRANTS, run.entrant, exploring)
    theirs = race(run)
    assert ours["cumulative"] == theirs["cumulative"]
    assert ours["anywhere"] == theirs["anywhere"]


def test_nothing_is_looked_at_twice():
    task = replace(noisy(ROWS), noise=0.0)
    run = Run("ucb-dpp-sample", "made-up", 2, 0, evaluations=6, samples=2)
    looks = start(task, run)
    curves = racing._curves(run, task, looks)
    assert len(np.unique(looks.at, axis=0)) == 7
    assert curves["seen"][-1] == pytest.approx(1.0 - max(looks.true))


def test_what_is_recommended():
    assert recommendation(noisy(ROWS)) == "anywhere"
    assert recommendation(replace(noisy(ROWS), noise=0.0)) == "seen"
    assert recommendation(replace(noisy(BOX), noise=0.0)) == "anywhere"


def posterior_of(f, at):
    values = np.array([f(x) for x in at])
    data = observe(at, values, np.full(len(at), np.nan))
    models = fit(data, replace(PAPER_GP, samples=2), np.random.default_rng(0))
    return condition(models, data)


def test_ascents_leave_the_grid_behind():
    where = ground(Space({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)}), 0)
    at = where.rows[:30]
    with one_thread():
        posterior = posterior_of(lambda x: -np.square(x - 0.4).sum(), at)
        summits = where.summits(posterior, where.rows)
    mean = posterior.belief(np.vstack([where.rows, summits])).mean
    assert mean[-len(summits) :].max() > mean[: len(where.rows)].max()
    assert len(where.left(at)) == len(where.rows) - 30
    assert len(ground(ROWS, 0).summits(posterior, ROWS.rows)) == 0


def test_points_hardly_different_are_left_out():
    at = np.array([[0.5, 0.5], [0.5, 0.50001], [0.2, 0.2], [0.9, 0.9]])
    np.testing.assert_array_equal(apart(at, np.array([[0.2, 0.2]])), [0, 3])
    # One that is left out keeps no other away: the third is near the second alone.
    chain = np.array([[0.5, 0.5], [0.5, 0.50008], [0.5, 0.50016]])
    np.testing.assert_array_equal(apart(chain, np.array([[0.2, 0.2]])), [0, 2])
    assert len(apart(at[:0], at)) == 0


SQUARE = Space({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)})


@pytest.fixture(scope="module")
def hill():
    """A posterior on a hill at (0.4, 0.4), after thirty looks."""
    with one_thread():
        return posterior_of(lambda x: -np.square(x - 0.4).sum(), ground(SQUARE, 0).rows[:30])


def test_a_ground_says_what_is_added_to_x(hill):
    def added(kind):
        where = ground(SQUARE, 0, kind)
        np.testing.assert_array_equal(where.rows, ground(SQUARE, 0).rows)
        with one_thread():
            return where.added(hill, where.rows, np.random.default_rng(0))

    assert len(added("finite")) == 0
    assert len(added("ends")) == 15
    everything = added("clouds")
    assert len(everything) == 15 + 5 * 400
    np.testing.assert_array_equal(everything[15:], clouds(hill, np.random.default_rng(0)))
    assert set(GROUNDS) == {"ends", "finite", "clouds"}


def test_clouds_lie_round_the_best_looks_at_every_scale(hill):
    at = clouds(hill, np.random.default_rng(0))
    looks = hill.data.at
    best = looks[np.argsort(-hill.belief(looks).mean)[:5]]
    away = np.abs(at - np.repeat(best, 400, axis=0)).max(axis=1)
    assert at.min() >= 0.0
    assert at.max() <= 1.0
    assert np.median(away) < 0.05
    assert np.quantile(away, [0.05, 0.95]) == pytest.approx([2e-3, 0.35], rel=0.5)
    # The control: round the worst looks there is no cloud.
    worst = looks[np.argmin(hill.belief(looks).mean)]
    assert np.mean(np.abs(at - worst).max(axis=1) < 0.05) < 0.01


@pytest.mark.parametrize("kind", GROUNDS)
def test_looks_are_on_the_ground_of_the_run(kind):
    task = replace(noisy(SQUARE), noise=0.0)
    run = Run("bucb-4", "made-up", 5, 0, evaluations=15, samples=2, ground=kind)
    looks = start(task, run)
    np.testing.assert_array_equal(looks.at, start(task, replace(run, ground="ends")).at)
    racing._curves(run, task, looks)
    on_x = (looks.at[:, None] == looks.ground.rows).all(axis=2).any(axis=1)
    assert on_x.all() == (kind == "finite")


def test_a_row_names_its_ground_and_x_alone_the_least_regret_there_is():
    run = Run("bucb-4", "cosines", 5, 0, evaluations=5, samples=2)
    rows = {kind: race(replace(run, ground=kind)) for kind in GROUNDS}
    assert {kind: row["ground"] for kind, row in rows.items()} == {kind: kind for kind in GROUNDS}
    assert {kind for kind, row in rows.items() if "least" in row} == {"finite"}
    row = rows["finite"]
    assert 0.0 < row["least"] <= min(row["seen"])
    task = replace(noisy(BOX), noise=0.0, optimum=2.0)
    where = start(task, replace(run, problem="made-up"))
    assert least(where) == pytest.approx(2.0 * (1.0 - where.ground.rows.max()))


def test_the_walk_draws_what_the_papers_chain_draws():
    """A batch of the race, on few enough candidates for the chain's provable number of steps."""
    where = ground(Space({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)}), 0)
    with one_thread():
        posterior = posterior_of(lambda x: np.sin(6.0 * x.sum()), where.rows[:3])
        few = posterior.belief(where.rows[20:32]).information()
        kernel = few.columns(np.arange(12))
    rng = np.random.default_rng(0)

    def drawn(sampler):
        """How often each item is the one taken at random from a draw, for three hundred draws."""
        taken = [rng.choice(sampler.draw(rng)) for _ in range(300)]
        return np.bincount(taken, minlength=12)

    by = {name: dpp.prepare(kernel, 3, name, epsilon=0.01) for name in ("walk", "swap")}
    counts = {name: drawn(sampler) for name, sampler in by.items()}
    assert by["walk"].error == by["swap"].error == 0.01
    assert by["walk"].steps < by["swap"].steps

    def agree(a, b):
        both = np.array([a, b])
        return chi2_contingency(both[:, both.sum(axis=0) > 0]).pvalue

    assert agree(counts["walk"], counts["swap"]) > 1e-3
    greedy = np.bincount(rng.choice(dpp.maximize(kernel, 3), 300), minlength=12)
    assert agree(counts["walk"], greedy) < 1e-3


def test_the_version_is_of_the_races_own_source_too(monkeypatch):
    read = []

    def reading(path):
        read.append("/".join(path.parts[-2:]))
        return real(path)

    real, before = Path.read_bytes, version.__wrapped__()  # not the cached one, of earlier source
    monkeypatch.setattr(Path, "read_bytes", reading)
    assert version.__wrapped__() == before
    ours = {f"kathuria2016/{name}.py" for name in ("race", "ground", "entrants", "problem")}
    assert ours | {"problems/robot.py", "dpp/greedy.py"} <= set(read)
    changed = {"ground.py": b"#"}
    monkeypatch.setattr(Path, "read_bytes", lambda path: real(path) + changed.get(path.name, b""))
    assert version.__wrapped__() != before
