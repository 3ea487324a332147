"""No two points of a batch are alike, of the default or of a DPP: each differs somewhere."""

import math
from dataclasses import replace

import numpy as np
import pytest

import covey
from covey import Choice, Integer, Pool, Real, Space
from covey.baselines import Hallucinated
from covey.belief import Belief
from covey.policies import UCB
from covey.strategies import DPP

BOUNDS = Hallucinated(UCB(beta=4.0))  # upper bounds in turn, as they are

REALS = Space({"x": Real(-5.0, 10.0), "y": Real(0.0, 15.0)})
MIXED = Space(
    {
        "lr": Real(1e-5, 1e-1, log=True),
        "layers": Integer(1, 8),
        "opt": Choice(["adam", "sgd"]),
    }
)
WHOLE = Space({"a": Integer(0, 400), "b": Integer(0, 400)})
ROWS = np.random.default_rng(0).random((600, 2))
CROWDED = Pool(np.vstack([ROWS, ROWS[:300] + 1e-3]))  # half of the rows have a near-copy


def network(point) -> float:
    """A rate whose best value, and a number of layers, are soon known."""
    miss = (math.log10(point["lr"]) + 2.5) ** 2 + 0.2 * abs(point["layers"] - 5)
    return -miss - 0.3 * (point["opt"] == "sgd")


def branin(point) -> float:
    x, y = point["x"], point["y"]
    return (
        -((y - 5.1 / (4.0 * math.pi**2) * x**2 + 5.0 / math.pi * x - 6.0) ** 2)
        - 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(x)
        - 10.0
    )


def near(point) -> float:
    """A bowl in the columns of a pool or of integers, with its top inside."""
    values = list(point.values())
    scale = 400.0 if max(values) > 2.0 else 1.0
    return -sum((value / scale - 0.37) ** 2 for value in values)


CASES = {
    "reals": (REALS, branin),
    "levels and options": (MIXED, network),
    "integers": (WHOLE, near),
    "a pool": (CROWDED, near),
}


def alike(at: np.ndarray, share: float = 0.01) -> int:
    """Points (k, d) within the share, in every coordinate, of another."""
    gaps = np.abs(at[:, None] - at).max(axis=2) + np.eye(len(at))
    return int((gaps.min(axis=1) < share).sum())


def copies(space, f, strategy, k: int = 6, rounds: int = 9, **options) -> tuple[int, int]:
    """Copies, and points, of all batches that a model chose."""
    study = covey.Study(space, strategy=strategy, seed=1, **options)
    found = asked = 0
    for t in range(rounds):
        batch = study.ask(k)
        study.tell(batch, [f(trial.point) for trial in batch])
        if t > 1:
            found += alike(space.encode([trial.point for trial in batch]))
            asked += k
    return found, asked


@pytest.mark.parametrize("case", CASES)
def test_at_most_a_tenth_of_the_points_are_copies(case):
    found, asked = copies(*CASES[case], "auto")
    assert found <= 0.1 * asked


@pytest.mark.parametrize("case", CASES)
def test_of_upper_bounds_alone_more_are(case):
    """The negative control."""
    found, asked = copies(*CASES[case], BOUNDS)
    assert found > 0.1 * asked


DPPS = ("ucb-dpp-max", "ucb-dpp-sample", "est-dpp-max", "est-dpp-sample")


@pytest.mark.parametrize("strategy", DPPS)
@pytest.mark.parametrize("case", CASES)
def test_of_a_dpp_at_most_a_tenth_are_copies(case, strategy):
    found, asked = copies(*CASES[case], strategy)
    assert found <= 0.1 * asked


def test_of_dpp_ts_at_most_a_tenth_are_copies():
    found, asked = copies(CROWDED, near, "dpp-ts")
    assert found <= 0.1 * asked


@pytest.mark.parametrize(
    ("case", "strategy"),
    [
        ("levels and options", "est-dpp-max"),
        ("levels and options", "est-dpp-sample"),
        ("integers", "est-dpp-sample"),
        ("a pool", "dpp-ts"),
    ],
)
def test_of_the_papers_more_are(case, strategy):
    """The negative control: a resolution of nought is the paper's strategy as it stands."""
    found, asked = copies(*CASES[case], strategy, resolution=0.0)
    assert found > 0.1 * asked


@pytest.mark.parametrize("strategy", DPPS)
def test_a_dpp_does_not_ask_again_for_what_is_under_way(strategy):
    study = after_some(WHOLE, near, strategy)
    at = WHOLE.encode([trial.point for _ in range(4) for trial in study.ask(4)])
    assert alike(at) == 0


@pytest.mark.parametrize("strategy", DPPS)
def test_a_plate_of_96_by_a_dpp_holds_no_copies(strategy):
    at = CROWDED.encode([t.point for t in after_some(CROWDED, near, strategy).ask(96)])
    assert alike(at) <= 9


def smooth_belief(n: int = 60) -> Belief:
    """Candidates on a line, many of them closer than a hundredth, and a noise that lets them in."""
    at = np.sort(np.random.default_rng(3).random((n, 1)), axis=0)
    cov = np.exp(-np.square(at - at.T) / 0.05)
    return Belief.dense(at, np.zeros(n), cov, noise=1.0)


@pytest.mark.parametrize("then", ["max", "sample"])
def test_a_batch_of_a_dpp_that_holds_no_copies_is_the_papers(then):
    paper = smooth_belief()
    ours = replace(paper, resolution=np.array([0.01]))
    changed = 0
    for seed in range(40):
        chosen, as_in_paper = (
            DPP(UCB(), then=then).choose(belief, 6, np.random.default_rng(seed)).indices
            for belief in (ours, paper)
        )
        assert alike(paper.at[list(chosen)]) == 0
        if alike(paper.at[list(as_in_paper)]):
            changed += 1
        else:
            assert chosen == as_in_paper
    assert (changed > 0) == (then == "sample")  # the control: there are copies to put back


@pytest.mark.parametrize("then", ["max", "sample"])
def test_of_a_dpp_too_where_copies_are_all_that_is_left_they_are_taken(then):
    belief = replace(smooth_belief(12), resolution=np.array([0.5]))
    chosen = DPP(UCB(), then=then).choose(belief, 8, np.random.default_rng(0)).indices
    assert len(set(chosen)) == 8


def test_with_a_resolution_of_nought_the_model_alone_keeps_points_apart():
    found, asked = copies(REALS, branin, "auto", resolution=0.0)
    assert 0 < found <= 0.1 * asked
    assert copies(REALS, branin, "auto")[0] == 0


def test_a_coarser_resolution_keeps_points_farther_apart():
    study = covey.Study(REALS, seed=1, resolution=0.1)
    for _ in range(6):
        batch = study.ask(6)
        study.tell(batch, [branin(trial.point) for trial in batch])
    assert alike(REALS.encode([trial.point for trial in batch]), 0.1) == 0


def test_a_journal_keeps_its_resolution(tmp_path):
    path = tmp_path / "run.jsonl"
    covey.Study(REALS, seed=0, journal=path, resolution=0.05)
    assert covey.Study.load(path).recipe.resolution == 0.05
    with pytest.raises(covey.errors.JournalMismatch, match="resolution"):
        covey.Study(REALS, journal=path, resolution=0.1)


@pytest.mark.parametrize("resolution", [-0.1, 1.0, "fine", True])
def test_a_resolution_is_a_share(resolution):
    with pytest.raises(covey.errors.StrategyError, match="resolution"):
        covey.Study(REALS, resolution=resolution)


def after_some(space, f, strategy) -> covey.Study:
    study = covey.Study(space, strategy=strategy, seed=2)
    for _ in range(5):
        batch = study.ask(8)
        study.tell(batch, [f(trial.point) for trial in batch])
    return study


@pytest.mark.parametrize("case", CASES)
def test_points_under_way_are_not_asked_for_again(case):
    """Four batches in a row, none of them told: they are as different as one batch."""
    space, f = CASES[case]
    study = after_some(space, f, "auto")
    at = space.encode([trial.point for _ in range(4) for trial in study.ask(4)])
    assert alike(at) <= 1


@pytest.mark.parametrize("case", CASES)
def test_a_plate_of_96_holds_no_copies(case):
    space, f = CASES[case]
    at = space.encode([trial.point for trial in after_some(space, f, "auto").ask(96)])
    assert alike(at) <= 9


def test_where_copies_are_all_that_is_left_they_are_asked_for():
    space = Space({"x": Real(0.0, 1.0)})
    study = covey.Study(space, seed=0, resolution=0.3)
    study.add([{"x": x} for x in (0.1, 0.5, 0.8)], [0.1, 0.5, 0.2])
    assert len({trial.point["x"] for trial in study.ask(12)}) == 12


def test_the_temperature_of_the_best_row_is_not_repeated():
    """Candidates around a point move in all of its columns."""
    space = Space({f"x{i}": Real(0.0, 1.0) for i in range(6)})
    study = covey.Study(space, seed=3)
    for _ in range(6):
        batch = study.ask(12)
        told = [-sum((v - 0.37) ** 2 for v in trial.point.values()) for trial in batch]
        study.tell(batch, told)
        at = space.encode([trial.point for trial in batch])
    inside = [column[(column > 0.0) & (column < 1.0)] for column in at.T]
    assert all(len(np.unique(column)) == len(column) for column in inside)


def test_known_points_everywhere_do_not_make_a_batch_of_copies():
    space, x = Space({"x": Real(0.0, 1.0)}), (np.arange(60) + 0.5) / 60
    study = covey.Study(space, seed=0)
    study.add([{"x": float(v)} for v in x], np.sin(9.0 * x) + 0.3 * x)
    at = space.encode([trial.point for k in (10, 4) for trial in study.ask(k)])
    assert alike(at) == 0


@pytest.mark.parametrize("integer", [Integer(1, 100), Integer(1, 64, log=True), Integer(0, 3)])
def test_another_level_is_no_copy(integer):
    space = Space({"n": integer})
    at = np.sort(space.encode([{"n": n} for n in range(integer.low, integer.high + 1)])[:, 0])
    assert np.diff(at).min() > space.resolution(0.01)[0]


def test_rows_of_a_pool_unlike_those_under_way_come_first():
    study = covey.Study(CROWDED, seed=1)
    at = CROWDED.encode([trial.point for _ in range(5) for trial in study.ask(8)])
    assert alike(at) <= 4


def test_the_resolution_that_is_meant_may_be_said(tmp_path):
    covey.Study(REALS, seed=0, journal=tmp_path / "run.jsonl")
    covey.Study(REALS, journal=tmp_path / "run.jsonl", resolution=0.01)


def test_thompson_draws_that_repel_keep_away_from_points_under_way():
    at = np.linspace(0.0, 1.0, 101)[:, None]
    cov = np.exp(-np.square(at - at.T) / 0.02)
    belief = replace(
        Belief.dense(at, np.zeros(101), cov, 1e-3),
        resolution=np.array([0.025]),
        under_way=np.array([[0.5]]),
    )
    for seed in range(30):
        chosen = covey.strategies.DPPThompson().choose(belief, 3, np.random.default_rng(seed))
        assert np.abs(at[list(chosen.indices), 0] - 0.5).min() >= 0.025


LINE = Space({"x": Real(0.0, 1.0)})


@pytest.mark.parametrize("seed", range(6))
def test_no_two_points_of_a_first_batch_are_copies(seed):
    assert alike(LINE.encode([t.point for t in covey.Study(LINE, seed=seed).ask(50)])) == 0


@pytest.mark.parametrize("seed", range(6))
def test_of_the_plain_sequence_some_are(seed):
    """The negative control."""
    study = covey.Study(LINE, seed=seed, resolution=0.0)
    assert alike(LINE.encode([t.point for t in study.ask(50)])) > 0


def test_a_first_batch_that_holds_no_copies_is_the_sequence():
    plain, study = (covey.Study(REALS, seed=3, resolution=share) for share in (0.0, None))
    assert [t.point for t in study.ask(30)] == [t.point for t in plain.ask(30)]


def test_design_points_keep_away_from_points_told_and_under_way():
    study = covey.Study(LINE, seed=0)
    study.tell(study.ask(20), [1.0] * 20)  # equal results: no model yet
    study.ask(15)
    study.ask(15)
    assert alike(LINE.encode([t.point for t in study.history.trials])) == 0


def test_a_first_batch_of_more_points_than_fit_has_them_all():
    at = LINE.encode([t.point for t in covey.Study(LINE, seed=0).ask(150)])
    assert len(np.unique(at)) == 150
