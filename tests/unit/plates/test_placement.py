"""Placement: rules over ten thousand random layouts, uniform controls, balance, determinism."""

import numpy as np
import pytest

from covey import Control, Layout
from covey.errors import SpaceError
from covey.plates.layout import Grid
from covey.plates.placement import balance_of, placed, scaffold_of

CHI2_95 = 141.1  # 99.9 % quantile of chi squared with 95 degrees of freedom


def random_layout(rng):
    """Some layout, or None where it would leave no well."""
    rows, columns = int(rng.integers(2, 9)), int(rng.integers(2, 13))
    grid = Grid(rows, columns)
    by = [None, "plate", "row", "column"][rng.integers(4)]
    reserved = [grid.name(w) for w in rng.choice(len(grid), size=rng.integers(0, 4))]
    fixed = [w for w in rng.permutation(len(grid)).tolist() if grid.name(w) not in reserved][:2]
    controls = {"blank": int(rng.integers(1, 6))} if rng.random() < 0.7 else {}
    if rng.random() < 0.3:
        controls["ref"] = Control([grid.name(w) for w in fixed])
    order = ["random", "blocked", "listed", "mirrored"][rng.integers(4)]
    try:
        return Layout(
            plate=(rows, columns),
            shared={} if by is None else {"t": by},
            controls=controls,
            replicates=int(rng.integers(1, 4)),
            reserved=reserved,
            edge=["use", "controls", "empty"][rng.integers(3)],
            order=order,
        )
    except SpaceError:
        return None


def check_rules(layout, scaffold, found):
    grid, wells = layout.grid, found.wells
    used = [*wells.reshape(-1).tolist(), *(w for w, _, _ in scaffold.controls)]
    assert len(set(used)) == len(used), "a well is used twice"
    assert layout.usable[used].all(), "a reserved well is used"
    held = {name: 0 for name in layout.controls}
    for well, name, replicate in scaffold.controls:
        held[name] += 1
        given = layout.controls[name].wells
        if not isinstance(given, int):
            assert grid.name(well) == grid.name(grid.index(given[replicate - 1]))
    assert held == {name: c.count for name, c in layout.controls.items()}
    assert wells.shape == (scaffold.points, layout.copies)
    if layout.blocks_by is not None:
        of = grid.row if layout.blocks_by == "row" else grid.column
        first = 0
        for block, places in zip(scaffold.blocks, scaffold.places, strict=True):
            some = wells[first : first + places]
            assert {*some.reshape(-1).tolist()} <= {*block}
            shared = {*of(some).reshape(-1).tolist()}
            assert len(shared) == 1, f"points of one {layout.blocks_by} stand in several"
            first += places
    assert sorted(found.order.values()) == list(range(1, len(used) + 1))
    if layout.order == "mirrored":
        assert np.all(wells[:, 0] + wells[:, 1] == len(grid) - 1)
    if layout.order == "blocked":
        runs = sorted(found.order, key=found.order.get)
        assert np.all(np.diff(grid.column(runs)) >= 0)


@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_random_layouts_keep_every_rule(part):
    rng, made = np.random.default_rng(part), 0
    for _ in range(1000):
        layout = random_layout(rng)
        if layout is None:
            continue
        try:
            scaffold = scaffold_of(layout, rng)
        except SpaceError:  # no block has room for all copies of a point
            assert layout.blocks_by is not None or layout.order == "mirrored"
            continue
        check_rules(
            layout, scaffold, placed(layout, scaffold, np.zeros((scaffold.points, 0)), rng, 1)
        )
        made += 1
    assert made > 500


def test_the_rules_would_catch_a_well_used_twice_and_one_reserved():
    layout = Layout(plate=24, reserved=["A1"])
    scaffold = scaffold_of(layout, np.random.default_rng(0))
    found = placed(layout, scaffold, np.zeros((scaffold.points, 0)), np.random.default_rng(0), 1)
    for wrong in (found.wells[1, 0], 0):
        broken = found.wells.copy()
        broken[0, 0] = wrong
        with pytest.raises(AssertionError, match=r"twice|reserved"):
            check_rules(layout, scaffold, type(found)(broken, found.order, 0.0, None))


def counts_of(draw):
    counts = np.zeros(96)
    for seed in range(2000):
        for well in draw(np.random.default_rng([seed, 1, 7])):
            counts[well] += 1
    return counts


def chi2(counts):
    expected = counts.sum() / len(counts)
    return float((np.square(counts - expected) / expected).sum())


def test_controls_stand_in_every_well_equally_often():
    layout = Layout(controls={"blank": 4})
    counts = counts_of(lambda rng: [w for w, _, _ in scaffold_of(layout, rng).controls])
    assert chi2(counts) < CHI2_95


def test_controls_all_on_one_side_would_be_noticed():
    """A mutant: the controls in the left half only."""
    left = [w for w in range(96) if w % 12 < 6]
    assert chi2(counts_of(lambda rng: rng.choice(left, 4, replace=False))) > 10 * CHI2_95


def test_no_quadrant_and_no_third_of_a_plate_is_without_controls():
    layout, grid = Layout(controls={"blank": 4}), Grid(8, 12)
    for seed in range(300):
        wells = [w for w, _, _ in scaffold_of(layout, np.random.default_rng(seed)).controls]
        quadrants = {(w // 12 < 4, w % 12 < 6) for w in wells}
        assert len(quadrants) == 4
        assert {*(grid.column(wells) // 4).tolist()} == {0, 1, 2}


def test_a_plate_turned_or_swapped_shows_by_its_controls():
    layout, rng, seen = Layout(controls={"blank": 4}), np.random.default_rng(0), set()
    for _ in range(60):
        scaffold = scaffold_of(layout, rng, seen)
        turned = {(layout.grid.turned(w), name) for w, name in scaffold.pattern}
        assert turned != scaffold.pattern
        assert scaffold.pattern not in seen
        seen.add(scaffold.pattern)


def test_rim_controls_stand_on_the_rim_and_all_around_it():
    layout = Layout(controls={"blank": 8}, edge="controls")
    for seed in range(50):
        wells = [w for w, _, _ in scaffold_of(layout, np.random.default_rng(seed)).controls]
        assert layout.grid.rim[wells].all()
        assert len({(w // 12 < 4, w % 12 < 6) for w in wells}) == 4


@pytest.mark.parametrize(("size", "most"), [(96, 0.2), (384, 0.09), (1536, 0.05)])
def test_factors_hardly_follow_rows_columns_rim_and_order(size, most):
    layout, rng = Layout(plate=size, controls={"blank": 4}), np.random.default_rng(0)
    scaffold = scaffold_of(layout, rng)
    features = rng.random((scaffold.points, 5))
    found = placed(layout, scaffold, features, rng)
    assert found.correlation < most
    once = [placed(layout, scaffold, features, rng, 1).correlation for _ in range(9)]
    assert found.correlation < np.median(once)
    listed = placed(Layout(plate=size, order="listed"), scaffold, np.sort(features, axis=0), rng)
    assert listed.correlation > 0.9  # the control: sorted points in wells as listed


def test_copies_keep_apart():
    layout, rng = Layout(replicates=2), np.random.default_rng(1)
    scaffold = scaffold_of(layout, rng)
    near = [placed(layout, scaffold, np.zeros((48, 0)), rng, tries).distance for tries in (1, 200)]
    assert near[1] >= near[0] >= 1.0


def test_the_same_seed_gives_the_same_layout_and_another_one_another():
    layout = Layout(controls={"blank": 4}, replicates=2)

    def draw(seed):
        rng = np.random.default_rng([seed, 1, 7])
        scaffold = scaffold_of(layout, rng)
        found = placed(layout, scaffold, np.arange(scaffold.points, dtype=float)[:, None], rng, 20)
        return scaffold, found.wells.tolist(), found.order

    assert draw(3) == draw(3)
    assert draw(3) != draw(4)


def test_a_balance_counts_roles():
    balance = balance_of(Grid(2, 3), [(0, "sample"), (1, "sample"), (5, "blank")], 0.1, 2.0)
    assert balance.rim == {"sample": (2, 2), "blank": (1, 1)}
    assert balance.rows == {"sample": [2, 0], "blank": [0, 1]}
    assert balance.columns["blank"] == [0, 0, 1]
    assert "2.0 wells apart" in str(balance)
