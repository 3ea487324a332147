"""Choosing under a layout: every rule kept, and not worse than need be."""

from itertools import combinations

import numpy as np
import pytest

from covey import Choice, Control, Integer, Layout, Linear, Pool, Real, Space, Study, dpp
from covey.belief import Belief
from covey.design import covering, even
from covey.errors import ExhaustedError, HistoryError, SpaceError
from covey.plates.choosing import (
    Draft,
    Offer,
    PlateOrder,
    by_spread,
    by_upper_bounds,
    choose,
    drafted,
    looked_at,
)
from covey.plates.placement import Scaffold
from covey.plates.spreading import in_spread, settled

SPACE = Space(
    {
        "t": Integer(20, 70, step=10),
        "x": Real(0.0, 1.0),
        "ml": Real(0.0, 4.0),
        "kind": Choice(["a", "b", "c", "d"]),
    }
)


def f(point):
    warm = -(((point["t"] - 50) / 50) ** 2)
    return warm - (point["x"] - 0.3) ** 2 - 0.1 * point["ml"] + 0.1 * (point["kind"] == "b")


def fill(study, plates):
    for plate in plates:
        study.tell_plate(plate, {w.name: f(w.point) if w.point else 0.0 for w in plate.used})


LAYOUTS = {
    "plate": Layout(plate=24, shared={"t": "plate"}, controls={"blank": 2}),
    "column": Layout(plate=24, shared={"t": "column"}, controls={"blank": 2}),
    "both": Layout(plate=24, shared={"t": "plate", "kind": "row"}, replicates=2),
    "budgets": Layout(plate=24, distinct={"kind": 2}, total={"ml": 20.0}, replicates=2),
    "all": Layout(plate=24, shared={"t": "plate"}, distinct={"kind": 2}, total={"ml": 30.0}),
    "blocks": Layout(plate=24, shared={"t": "column"}, distinct={"kind": 3}, total={"ml": 90.0}),
    "tight": Layout(plate=24, shared={"t": "column"}, total={"ml": 20.0}),
    "few": Layout(plate=24, shared={"t": "column"}, distinct={"t": 2}),
    "real": Layout(plate=12, shared={"x": "plate"}),
    "sets": Layout(plate=12, shared={"t": "plate"}, replicates=2, spread="plates"),
}


def check_plate(plate, history):
    layout, points = plate.layout, {i: history[i].point for i in plate.trials}
    assert len({repr(sorted(p.items())) for p in points.values()}) == len(points)
    for name, by in layout.shared.items():
        key = {"plate": lambda w: 0, "row": lambda w: w.row, "column": lambda w: w.column}[by]
        groups = {}
        for well in plate.used:
            if well.trial is not None:
                groups.setdefault(key(well), set()).add(well.point[name])
        assert all(len(values) == 1 for values in groups.values())
    for name, most in layout.distinct.items():
        assert len({p[name] for p in points.values()}) <= most
    for name, most in layout.total.items():
        used = sum(w.point[name] for w in plate.used if w.trial is not None)
        assert used <= most * (1.0 + 1e-8)
    counts = {}
    for well in plate.used:
        if well.trial is not None:
            counts[well.trial] = counts.get(well.trial, 0) + 1
    assert set(counts.values()) == {layout.copies}


@pytest.mark.parametrize("name", LAYOUTS)
def test_plates_keep_their_layout_with_and_without_a_model(name):
    layout = LAYOUTS[name]
    study = Study(SPACE, seed=3)
    for _ in range(2):
        plates = study.ask_plates(2, layout)
        assert [plate.name for plate in plates] == [p.name for p in study.plates[-2:]]
        for plate in plates:
            check_plate(plate, study.history)
        assert sum(len(p.trials) for p in plates) // (2 if name == "sets" else 1) == len(
            {i for p in plates for i in p.trials}
        )
        fill(study, plates)
    assert not study.history.pending


def test_points_stand_where_their_row_or_column_has_the_value_that_they_share():
    """Against blocks that follow the order of a table and not the wells (skpr #62).

    The values differ from block to block and change from study to study, so that an order in which
    they happen to agree cannot save it.
    """
    differ = 0
    for seed in range(3):
        for by in ("row", "column"):
            study = Study(SPACE, seed=seed)
            layout = Layout(
                plate=(3, 5), shared={"t": by}, controls={"blank": 2}, replicates=seed % 2 + 1
            )
            (plate,) = study.ask_plates(1, layout, strategy="random")
            check_plate(plate, study.history)
            of = {"row": lambda w: w.row, "column": lambda w: w.column}[by]
            held = {of(w): w.point["t"] for w in plate.used if w.trial is not None}
            differ += len({*held.values()}) > 1
    assert differ >= 3  # where all blocks have one value, nothing would show


def test_one_plate_on_which_nothing_is_shared_is_a_plain_ask():
    for told in (False, True):
        studies = [Study(SPACE, seed=5) for _ in range(2)]
        if told:
            for study in studies:
                first = study.ask(20)
                study.tell(first, [f(t.point) for t in first])
        (plate,) = studies[0].ask_plates(1, Layout(plate=12, controls={"blank": 2}))
        batch = studies[1].ask(10)
        assert [studies[0].history[i].point for i in plate.trials] == [t.point for t in batch]


def test_the_same_seed_gives_the_same_plates():
    def ask(seed):
        study = Study(SPACE, seed=seed)
        return [plate.table() for plate in study.ask_plates(2, LAYOUTS["all"])]

    assert ask(1) == ask(1)
    assert ask(1) != ask(2)


def test_a_key_gives_the_same_plates_again_and_another_layout_is_refused(tmp_path):
    study = Study(SPACE, seed=1, journal=tmp_path / "s.jsonl")
    first = study.ask_plates(2, LAYOUTS["column"], key="week 12")
    events = len(study.history.events)
    again = Study.load(tmp_path / "s.jsonl").ask_plates(2, LAYOUTS["column"], key="week 12")
    assert [p.table() for p in first] == [p.table() for p in again]
    assert len(study.history.events) == events
    with pytest.raises(HistoryError, match=r"used before.*2 plates by auto"):
        study.ask_plates(2, LAYOUTS["plate"], key="week 12")
    with pytest.raises(HistoryError, match=r"used before.* plates? by auto"):
        study.ask_plates(1, LAYOUTS["column"], key="week 12")


def test_a_pool_has_its_levels():
    rows = [{"t": t, "x": x / 20} for t in (20, 30, 40) for x in range(20)]
    rows += [{"t": 50, "x": x / 20} for x in range(4)]  # too few for a plate
    study = Study(Pool(rows), seed=0)
    layout = Layout(plate=6, shared={"t": "plate"})
    for _ in range(3):
        plates = study.ask_plates(2, layout)
        for plate in plates:
            assert len({study.history[i].point["t"] for i in plate.trials}) == 1
            assert 50 not in {study.history[i].point["t"] for i in plate.trials}
            values = {w.name: -((w.point["x"] - 0.5) ** 2) - w.point["t"] for w in plate.used}
            study.tell_plate(plate, values)
    with pytest.raises(ExhaustedError, match=r"p10 .*6 points"):
        study.ask_plates(4, layout)
    with pytest.raises(ExhaustedError, match="asked for 30 points"):
        study.ask_plates(5, layout)
    assert len(study.plates) == 6


def test_a_shared_factor_that_a_constraint_forbids_is_said():
    space = Space(
        {"t": Real(0.0, 1.0), "x": Real(0.0, 1.0), "y": Real(0.0, 1.0)},
        where=[Linear({"t": 1.0, "x": 1.0}, upper=0.5)],
    )
    study = Study(space, seed=0)
    with pytest.raises(SpaceError, match="no value of t, which the layout shares"):
        study.ask_plates(1, Layout(plate=6, shared={"t": "plate"}), fixed={"x": 0.9})
    assert not study.history.events


def test_levels_that_a_constraint_forbids_are_not_chosen():
    space = Space(
        {"t": Integer(0, 5), "x": Real(0.0, 1.0)}, where=[Linear({"t": 1.0, "x": 1.0}, upper=2.5)]
    )
    study = Study(space, seed=0)
    for _ in range(2):
        (plate,) = study.ask_plates(1, Layout(plate=12, shared={"t": "plate"}))
        ts = {study.history[i].point["t"] for i in plate.trials}
        assert len(ts) == 1
        assert max(ts) <= 2
        study.tell_plate(plate, {w.name: w.point["x"] + w.point["t"] for w in plate.used})


@pytest.mark.parametrize(
    ("layout", "count", "said"),
    [
        (Layout(plate=6, total={"ml": -1.0}), 1, r"ml .* -1 "),
        (Layout(plate=6, replicates=2, spread="plates"), 3, r"2 plates .*-n 2"),
        (Layout(plate=6), 0, "number of plates"),
        ("96", 1, "'96'"),
        (Layout(plate=6, controls={"r": Control(1, at={"t": 1})}), 1, r"'r'.*'ml'"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_recorded(layout, count, said):
    study = Study(SPACE, seed=0)
    with pytest.raises((SpaceError, ExhaustedError), match=said):
        study.ask_plates(count, layout)
    assert not study.history.events


def test_parameters_that_may_be_absent_stand_on_plates():
    space = Space(
        {"kind": Choice(["a", "b"]), "ml": Real(0, 5, when={"kind": "a"}), "x": Real(0, 1)}
    )
    study = Study(space, seed=0)
    layout = Layout(plate=12, shared={"kind": "plate"}, total={"ml": 40.0})
    for _ in range(2):
        for plate in study.ask_plates(2, layout):
            assert len({study.history[i].point["kind"] for i in plate.trials}) == 1
            assert plate.map()
            study.tell_plate(plate, {w.name: w.point["x"] for w in plate.used})


def test_several_goals_are_asked_for_on_plates():
    study = Study(SPACE, goal={"yield": "max", "cost": "min"}, seed=0)
    layout = Layout(plate=12, shared={"t": "plate"})
    for _ in range(2):
        (plate,) = study.ask_plates(1, layout)
        check_plate(plate, study.history)
        read = {w.name: {"yield": f(w.point), "cost": w.point["ml"]} for w in plate.used}
        study.tell_plate(plate, read)
    assert len(study.front) >= 1
    assert study.history[0].values.keys() == {"yield", "cost"}


def test_distinct_is_chosen_nearly_as_well_as_by_enumeration():
    """On 200 small cases the determinant by greedy masks is at least 0.8 of the best, in logs."""
    rng, ratios = np.random.default_rng(0), []
    layout = Layout(plate=(1, 3), distinct={"kind": 2})
    (draft,) = drafted(PlateOrder(layout, 1), 0, 0)
    assert draft.places == (3,)
    for _ in range(200):
        at = rng.random((9, 2))
        ids = rng.permutation(np.arange(9) % 4)
        gaps = np.square(at[:, None] - at).sum(axis=-1)
        belief = Belief.dense(at, np.zeros(9), np.exp(-np.sqrt(gaps)), 0.01)
        offer = Offer(np.zeros(9, dtype=int), np.zeros(9, dtype=int), {"kind": ids})

        def pick(seen: Belief, k: int):
            return dpp.maximize(seen.information(), k)

        chosen = choose(offer, layout, [draft], belief, pick, by_upper_bounds).picks[0]
        assert len({*ids[chosen].tolist()}) <= 2
        kernel = belief.information().columns(np.arange(9))
        allowed = [s for s in combinations(range(9), 3) if len({*ids[list(s)].tolist()}) <= 2]
        blocks = np.array([kernel[np.ix_(s, s)] for s in allowed])
        best = float(np.linalg.slogdet(blocks)[1].max())
        ratios.append(float(np.linalg.slogdet(kernel[np.ix_(chosen, chosen)])[1]) / best)
    assert min(ratios) >= 0.8
    assert np.mean(ratios) > 0.96


def _columns(ids, k):
    """All ways to fill two columns with k rows each, every column of one id."""
    full = [s for s in combinations(range(len(ids)), k) if len({*ids[list(s)].tolist()}) == 1]
    return [(*a, *b) for a, b in combinations(full, 2) if not {*a} & {*b}]


def test_columns_keep_a_total_whenever_they_can():
    """By enumeration: 300 small cases, in some of which no plate keeps the total."""
    rng, outcomes = np.random.default_rng(0), []
    layout = Layout(plate=(2, 2), shared={"t": "column"}, total={"ml": 1.2})
    (draft,) = drafted(PlateOrder(layout, 1), 0, 0)
    assert draft.places == (2, 2)
    for _ in range(300):
        ids, ml = rng.integers(0, 3, 8), np.round(rng.random(8), 1)
        belief = Belief.dense(rng.random((8, 2)), ml, 0.01 * np.eye(8), 0.1)  # much is good
        offer = Offer(np.zeros(8, dtype=int), ids, amounts={"ml": ml})
        best = min((ml[list(s)].sum() for s in _columns(ids, 2)), default=np.inf)
        try:
            picks = choose(offer, layout, [draft], belief, _most, by_upper_bounds).picks[0]
        except ExhaustedError:
            assert best > 1.2 + 1e-9
        else:
            assert len({*picks}) == 4
            assert ml[picks].sum() <= 1.2 + 1e-9
            assert len({*ids[picks[:2]].tolist()}) == len({*ids[picks[2:]].tolist()}) == 1
        outcomes.append(best <= 1.2 + 1e-9)
    assert 50 < sum(outcomes) < 250


def _most(seen: Belief, k: int):
    return np.argsort(-np.asarray(seen.mean), kind="stable")[:k].tolist()


def test_values_of_columns_are_ranked_by_their_own_coordinates():
    """Where a plate shares a value too, ids of columns are no ids of plates."""
    at = np.array([[p / 9, c / 2] for p in range(10) for c in range(3)])
    columns = slice(0, 1), slice(1, 2)
    offer = Offer(
        np.repeat(np.arange(10), 3),
        np.arange(30),
        plate_columns=columns[:1],
        block_columns=columns,
    )
    seen = at[[0, 1]]  # the first two of three values of columns
    rank = by_spread(offer, seen, np.random.default_rng(0))
    belief = Belief(at, (), best=0.0)
    scores = rank(belief, offer.block, np.arange(30) < 3).scores
    assert max(scores, key=scores.__getitem__) == 2
    scores = rank(belief, offer.plate, np.ones(30, dtype=bool)).scores
    assert max(scores, key=scores.__getitem__) in (6, 7)  # that most others are near


def test_shared_values_are_spread_before_bounds_choose():
    values = [np.linspace(0.0, 1.0, 15)[:, None]]
    rng = np.random.default_rng(0)
    order = in_spread(values, [np.zeros((0, 1))], rng)
    assert order[0] == 7
    assert {*order.tolist()} == {*range(15)}
    assert np.diff(np.sort(order[:4])).min() >= 2
    none, ends = [np.zeros((0, 1))], [np.array([[1.0], [1.0], [0.0]])]
    assert 5 <= in_spread(values, ends, rng)[0] <= 9
    assert not settled(values, none)
    assert not settled(values, ends)
    assert settled(values, [values[0][:4]])
    assert settled([np.array([[0.0], [1.0]])], ends)  # two options, both seen


def test_each_of_several_shared_parameters_is_seen_at_four_values():
    """Corners of a square would be far apart, and two values of each."""
    values = [some.reshape(-1, 1) / 4.0 for some in np.indices((5, 5)).astype(float)]
    rng = np.random.default_rng(0)
    order = in_spread(values, [np.zeros((0, 1))] * 2, rng)[:4]
    assert [len({*some[order, 0].tolist()}) for some in values] == [4, 4]


def test_the_first_plates_spread_what_they_share_and_say_so():
    """Values rise with t, so that bounds alone would stay at the end of the range."""
    rows = [{"t": float(t), "x": x / 7} for t in range(15) for x in range(8)]
    study = Study(Pool(rows), seed=0)
    shared, reasons = [], []
    for _ in range(6):
        (plate,) = study.ask_plates(1, Layout(plate=6, shared={"t": "plate"}))
        shared.append(plate.held["t"])
        reasons += study.history.events[-1].reasons[:1]  # none without a model
        rise = {w.name: w.point["t"] + (w.point["x"] - 0.4) ** 2 for w in plate.used}
        study.tell_plate(plate, rise)
    first = sorted(shared[:4])
    assert np.diff(first).min() >= 2
    assert first[0] <= 4
    assert first[-1] >= 10
    assert min(shared[4:]) >= 10
    assert ["to spread" in said for said in reasons] == [True] * 3 + [False] * 2
    assert ["upper bounds" in said for said in reasons] == [False] * 3 + [True] * 2


LIGANDS = [f"L{i}" for i in range(10)]


@pytest.mark.parametrize("told", [None, {name: [i % 3, i // 3] for i, name in enumerate(LIGANDS)}])
@pytest.mark.parametrize("step", [None, 0.05])
def test_a_first_plate_is_even_in_options_and_ranges(told, step):
    shares = []
    for seed in range(2):
        space = Space(
            {
                "t": Real(40, 110, step=5),
                "conc": Real(0.0, 1.0, step=step),
                "ligand": Choice(LIGANDS, features=told),
                "base": Choice(["a", "b", "c", "d"]),
            }
        )
        layout = Layout(plate=24, shared={"t": "plate"}, controls={"blank": 4})
        (plate,) = Study(space, seed=seed).ask_plates(1, layout)
        points = [well.point for well in plate.used if well.trial is not None]
        assert {p["ligand"] for p in points} == {*LIGANDS}
        assert max(np.unique([p["ligand"] for p in points], return_counts=True)[1]) <= 4
        assert {p["base"] for p in points} == {*"abcd"}
        shares.append([[p["conc"] < 0.2, p["conc"] > 0.8] for p in points])
    assert np.mean(shares, axis=(0, 1)).min() >= 0.1


def test_rows_that_stand_for_others_are_not_even():
    """The rule for pools, which leaves out the outer parts of a range."""
    names = {"ligand": LIGANDS, "base": [*"abcd"], "solvent": [*"abcd"]}
    space = Space({"conc": Real(0.0, 1.0)} | {n: Choice(some) for n, some in names.items()})
    rng = np.random.default_rng(0)
    at = space.snap(rng.random((1000, space.width)))
    values = [at[:, space.columns_of(name)] for name in space.names]
    conc = at[:, space.columns_of("conc")][:, 0]
    for rows, is_even in ((even(values, 20, rng), True), (covering(at, 20, rng), False)):
        outer = [(conc[rows] < 0.2).mean(), (conc[rows] > 0.8).mean()]
        assert (min(outer) >= 0.1) == is_even


def test_the_level_with_the_highest_mean_of_five_is_chosen():
    """One lucky bound does not decide: four good ones do."""
    mean = np.array([5.0, 0.0, 0.0, 0.0, 0.0, 3.0, 3.0, 3.0, 3.0, 3.0])
    belief = Belief.dense(np.zeros((10, 1)), mean, 0.01 * np.eye(10), 0.1)
    ids = np.repeat([0, 1], 5)
    ranks = by_upper_bounds(belief, ids, np.ones(10, dtype=bool)).scores
    assert ranks[1] > ranks[0]
    scaffold = Scaffold((), ((0, 1),), (2,))
    draft = Draft(("p1",), (scaffold,), (np.random.default_rng(0),))
    offer = Offer(ids, ids)
    layout = Layout(plate=(1, 2), shared={"t": "plate"})
    found = choose(offer, layout, [draft], belief, lambda b, k: range(k), by_upper_bounds)
    assert {*ids[found.picks[0]].tolist()} == {1}


def test_points_of_a_plate_are_awaited_by_the_next():
    """Else the default would exploit beside the best on every plate anew."""
    mean = np.linspace(0.0, 1.0, 6)
    belief = Belief.dense(np.linspace(0.0, 1.0, 6)[:, None], mean, 0.1 * np.eye(6), 0.1)
    once = looked_at(belief, [4, 1])
    assert once.awaited.tolist() == mean[[4, 1]].tolist()
    some = looked_at(once, [0], on=np.array([2, 3, 5]))
    assert some.awaited.tolist() == mean[[4, 1, 0]].tolist()
    assert len(some.under_way) == 3
