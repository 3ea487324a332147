"""No two points of a batch are alike, of the default or of a DPP: each differs somewhere."""

import math
from dataclasses import replace

import numpy as np
import pytest

import covey
from covey import Choice, Integer, Pool, Real, Space
from covey.baselines import Hallucinated
from covey.belief import Belief
from covey.policies import UCB, Restless
from covey.spread import SpreadUCB
from covey.strategies import DPP

BEFORE = Hallucinated(UCB(beta=4.0), scout=Restless())  # the default of 0.1

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
def test_of_the_default_before_more_were(case):
    """The negative control."""
    found, asked = copies(*CASES[case], BEFORE)
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


def test_a_resolution_of_nought_lets_a_batch_polish():
    found, asked = copies(REALS, branin, "auto", resolution=0.0)
    assert found > 0.1 * asked


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


def belief_with_levels(n: int = 300) -> Belief:
    """One real column and an option of two, of which a model is sure that the first is better."""
    rng = np.random.default_rng(0)
    option = rng.integers(2, size=n)
    at = np.column_stack([rng.random(n), 1.0 - option, option])
    mean = 5.0 - 4.0 * option - np.square(at[:, 0] - 0.5)
    gaps = np.square(at[:, None] - at).sum(axis=2)
    belief = Belief.dense(at, mean, 0.01 * np.exp(-gaps / 0.02), 1e-6, best=5.0)
    return Belief(
        belief.at,
        belief.parts,
        belief.best,
        resolution=np.full(3, 0.01),
        levels=(slice(1, 3),),
    )


def options_of(strategy) -> set[float]:
    belief = belief_with_levels()
    chosen = strategy.choose(belief, 8, np.random.default_rng(0))
    return set(belief.at[list(chosen.indices), 1])


def test_some_dissent_from_the_option_that_a_model_is_sure_of():
    assert options_of(SpreadUCB()) == {0.0, 1.0}


def test_upper_bounds_alone_would_not():
    """The negative control."""
    assert options_of(SpreadUCB(dissent=0.0, gain=-10.0)) == {1.0}


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


def beside_told(space, study, batch) -> int:
    """Points of a batch within the resolution of one told before it."""
    asked = {trial.id for trial in batch}
    told = [trial.point for trial in study.history.told if trial.id not in asked]
    if not told:
        return 0
    gaps = np.abs(space.encode([t.point for t in batch])[:, None] - space.encode(told)).max(axis=2)
    return int((gaps.min(axis=1) < 0.01).sum())


@pytest.mark.parametrize("case", ["reals", "levels and options"])
def test_at_most_two_points_of_a_batch_polish(case):
    space, f = CASES[case]
    study, found = covey.Study(space, seed=1), []
    for _ in range(9):
        batch = study.ask(6)
        study.tell(batch, [f(trial.point) for trial in batch])
        found.append(beside_told(space, study, batch))
    assert max(found) <= 2


def test_of_the_default_before_more_did():
    """The negative control."""
    study, found = covey.Study(REALS, strategy=BEFORE, seed=1), []
    for _ in range(9):
        batch = study.ask(6)
        study.tell(batch, [branin(trial.point) for trial in batch])
        found.append(beside_told(REALS, study, batch))
    assert max(found) > 2


def test_known_points_everywhere_do_not_make_a_batch_of_copies():
    space, x = Space({"x": Real(0.0, 1.0)}), (np.arange(60) + 0.5) / 60
    study = covey.Study(space, seed=0)
    study.add([{"x": float(v)} for v in x], np.sin(9.0 * x) + 0.3 * x)
    at = space.encode([trial.point for k in (10, 4) for trial in study.ask(k)])
    assert alike(at) == 0


def test_two_fifths_of_a_batch_take_another_option():
    space = Space({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0), "c": Choice(["a", "b"])})
    study = covey.Study(space, seed=0)
    for _ in range(2):
        batch = study.ask(40)
        study.tell(batch, [-((t.point["x"] - 0.3) ** 2) - (t.point["c"] == "a") for t in batch])
    assert sum(trial.point["c"] == "a" for trial in batch) >= 15


def test_a_parameter_that_is_fixed_does_not_dissent():
    study = after_some(MIXED, network, "auto")
    study.ask(6, fixed={"layers": 5, "opt": "adam"})
    assert not any(why.startswith("takes another level") for why in study.diagnostics.reasons)


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


def test_each_option_has_its_turn_however_little_the_model_thinks_of_it():
    """Of the points that dissent the fewest results decide; by bounds alone one is never tried."""
    space = Space({"x": Real(0.0, 1.0), "solvent": Choice(["a", "b", "c", "d"])})
    worth = {"a": 1.0, "b": 0.9, "c": 0.8, "d": 0.0}

    def tried(strategy) -> int:
        study = covey.Study(space, seed=0, strategy=strategy)
        study.add(
            [{"x": x, "solvent": s} for s in "abcd" for x in (0.1, 0.4, 0.7)],
            [worth[s] - (x - 0.5) ** 2 for s in "abcd" for x in (0.1, 0.4, 0.7)],
        )
        for _ in range(6):
            batch = study.ask(5)
            study.tell(
                batch, [worth[t.point["solvent"]] - (t.point["x"] - 0.5) ** 2 for t in batch]
            )
        return sum(t.point["solvent"] == "d" for t in study.history.trials[12:])

    assert tried("auto") >= 4
    assert tried(BEFORE) < 4  # the negative control


def in_ten_inputs(boxed: int, told: int = 80) -> tuple[tuple[int, ...], int]:
    """A batch, and how many of its points by upper bound are outside the box of the best results.

    The last ``told`` results are those that keep the limits.
    """
    rng = np.random.default_rng(0)
    seen = rng.random((60, 10))
    at = np.vstack([rng.random((800, 10)), rng.uniform(0.3, 0.7, (200, 10))])
    centre = 0.5 + 0.1 * rng.standard_normal((20, 10))
    known = np.vstack([seen, centre])
    mean = -np.square(known - 0.5).sum(axis=1)
    gaps = np.square(at[:, None] - at).sum(axis=2)
    dense = Belief.dense(at, -np.square(at - 0.5).sum(axis=1), np.exp(-gaps / 2.0), 1e-6, 0.0)
    belief = replace(
        dense, resolution=np.full(10, 0.01), seen_at=known, told=(mean[-told:], np.zeros(told))
    )
    chosen = SpreadUCB(width=4.0, boxed=boxed, explore=0.0).choose(belief, 10, rng)
    best = known[np.argsort(-mean)[:20]]
    low, high = best.min(axis=0), best.max(axis=0)
    margin = 0.1 * (high - low)
    picks = at[
        [i for i, why in zip(chosen.indices, chosen.reasons, strict=True) if "has the" in why]
    ]
    outside = ((picks < low - margin) | (picks > high + margin)).any(axis=1)
    return tuple(chosen.indices), int(outside.sum())


def test_in_ten_inputs_upper_bounds_stay_near_the_best_results():
    assert in_ten_inputs(boxed=10)[1] == 0


def test_without_the_box_they_do_not():
    """The negative control."""
    assert in_ten_inputs(boxed=11)[1] > 0


def test_there_is_no_box_where_some_results_break_limits():
    """Their places would be taken for those of others: the box would be a wrong one."""
    assert in_ten_inputs(boxed=10, told=20)[0] == in_ten_inputs(boxed=11, told=20)[0]


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


def test_a_box_leaves_out_what_is_held_fixed():
    space = Space({f"x{i}": Real(0.0, 1.0) for i in range(11)})
    study = covey.Study(space, seed=0)
    for _ in range(3):
        batch = study.ask(8, fixed={"x0": 0.5})
        study.tell(batch, [-sum((v - 0.5) ** 2 for v in trial.point.values()) for trial in batch])
    seen = space.encode([trial.point for trial in study.history.told])
    best = seen[np.argsort([-trial.value for trial in study.history.told])[:22], 1:]
    batch = study.ask(8, fixed={"x0": 0.9})
    boxed = [
        trial
        for trial, why in zip(batch, study.diagnostics.reasons, strict=True)
        if "near the best results" in why
    ]
    margin = 0.1 * (best.max(axis=0) - best.min(axis=0)) + 1e-9
    at = space.encode([trial.point for trial in boxed])[:, 1:]
    assert len(at)
    assert ((at >= best.min(axis=0) - margin) & (at <= best.max(axis=0) + margin)).all()


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
