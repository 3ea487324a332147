"""Layouts: names of wells, what is refused, and that what is written down is read back."""

import json

import numpy as np
import pytest

from covey import Choice, Control, Integer, Layout, Pool, Real, Space, Study
from covey.errors import SpaceError
from covey.plates.layout import SIZES, Grid

SPACE = Space({"t": Real(20, 80), "ml": Real(0, 5), "kind": Choice(["a", "b"])})


@pytest.mark.parametrize("size", [*SIZES.values(), (5, 7), (1, 1)])
def test_every_well_has_a_name_that_is_read_back(size):
    grid = Grid(*size)
    names = [grid.name(w) for w in range(len(grid))]
    assert len({*names}) == len(grid)
    for w, name in enumerate(names):
        letters, number = name.rstrip("0123456789"), name.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        for written in (name, name.lower(), f"{letters}{int(number):02d}", f" {name} "):
            assert grid.index(written) == w
        assert grid.index((w // size[1] + 1, w % size[1] + 1)) == w
        assert grid.turned(grid.turned(w)) == w


def test_wells_do_not_wrap_around_at_the_end_of_a_row():
    """The mutant of sequencescape #2905: A13 of an 8 x 12 plate is not B1."""
    grid = Grid(8, 12)
    assert (grid.name(11), grid.name(12)) == ("A12", "B1")
    for wrong in ("A13", "I1", "A0", "AA1", (0, 1), (1, 13), "", "1A", 7, "A1.5"):
        with pytest.raises(SpaceError, match="well"):
            grid.index(wrong)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"plate": 97}, "97"),
        ({"plate": (40, 3)}, "32 rows"),
        ({"plate": 6, "controls": {"blank": 6}}, r"6 wells, 0 .*6 controls: 0"),
        ({"plate": 6, "controls": {"blank": 7}}, "7 controls: -1 left"),
        ({"plate": 6, "edge": "empty"}, "6 reserved or on an empty rim"),
        ({"plate": 6, "replicates": 7}, "at 7 wells a point"),
        ({"controls": {"blank": Control(["A1"])}, "reserved": ["A1"]}, "A1 is to stay empty"),
        ({"controls": {"a": Control(["B2"]), "b": Control(["B02"])}}, r"B02 .* a and b"),
        ({"controls": {"a": Control(["B2", "b2"])}}, r"b2 .* a;"),
        ({"controls": {"a": 0}}, r"'a'.*got 0"),
        ({"controls": {"a:b": 1}}, "'a:b'"),
        ({"shared": {"t": "plates"}}, "'plate'"),
        ({"shared": {"t": "row", "ml": "column"}}, "strip plots"),
        ({"reserved": "A1"}, r"reserved.*'A1'"),
        ({"reserved": ["column 13"]}, "column 13"),
        ({"reserved": ["row I"]}, "'row I'"),
        ({"edge": "rim"}, "'rim'"),
        ({"order": "mirrored"}, "replicates=2"),
        ({"order": "mirrored", "replicates": 2, "controls": {"a": 3}}, "even number"),
        ({"replicates": 0}, "replicates"),
        ({"distinct": {"kind": 0}}, r"'kind'.*got 0"),
        ({"total": {"ml": float("nan")}}, r"'ml'.*got nan"),
        ({"effects": ["well"]}, "effects"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(given, said):
    with pytest.raises(SpaceError, match=said) as error:
        Layout(**given)
    assert str(error.value).rstrip().endswith((".", "?"))


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        (Layout(shared={"temp": "plate"}), r"'temp'.*ml"),
        (Layout(distinct={"Kind": 2}), r"'Kind'.*'kind'"),
        (Layout(total={"kind": 2.0}), "'kind'"),
        (Layout(controls={"c": Control(2, at={"t": 1})}), r"'c'.*'ml'"),
    ],
)
def test_names_and_points_are_checked_against_the_space(layout, said):
    with pytest.raises(SpaceError, match=said):
        layout.against(SPACE)


def test_a_parameter_that_may_be_absent_is_not_shared():
    space = Space({"kind": Choice(["a", "b"]), "ml": Real(0, 5, when={"kind": "a"})})
    with pytest.raises(SpaceError, match=r"'ml'.*`when`"):
        Layout(shared={"ml": "plate"}).against(space)
    Layout(shared={"kind": "plate"}, total={"ml": 50.0}).against(space)


def test_a_total_is_of_any_numbers():
    """As of linear constraints: options in order that are numbers have a sum, others have none."""
    doses, bare = (Choice([0.5, 1.0, 2.0], ordered=one) for one in (True, False))
    Layout(total={"dose": 4.0}).against(Space({"dose": doses}))
    with pytest.raises(SpaceError, match="'dose'"):
        Layout(total={"dose": 4.0}).against(Space({"dose": bare}))


def test_a_total_over_a_pool_is_checked_by_its_values():
    pool = Pool([{"ml": 1.0, "kind": "a"}, {"ml": 2.0, "kind": "b"}])
    Layout(total={"ml": 9.0}).against(pool)
    with pytest.raises(SpaceError, match="'kind'"):
        Layout(total={"kind": 9.0}).against(pool)


def test_a_layout_is_read_back_from_what_is_written_down():
    layout = Layout(
        plate=(8, 12),
        shared={"t": "plate", "kind": "column"},
        distinct={"kind": 2},
        total={"ml": 50.0},
        controls={"blank": 4, "ref": Control(["D6", "E7"], at={"t": 30, "ml": 1.0, "kind": "a"})},
        replicates=2,
        reserved=("A1", "column 12"),
        edge="controls",
        order="blocked",
        effects=("plate", "day"),
    )
    written = json.loads(json.dumps(layout.describe()))
    assert Layout.from_description(written) == layout
    assert Layout.from_description(Layout().describe()) == Layout()
    assert Layout.from_description({"controls": {"blank": 4}}).control_count == 4
    with pytest.raises(SpaceError, match="'replicates'"):
        Layout.from_description({"replicate": 2})


def test_rim_and_capacity_of_the_usual_plate():
    assert int(Grid(8, 12).rim.sum()) == 36
    assert Layout(edge="empty").capacity == 60
    assert Layout(reserved=["A1", "row A", "column 12"]).capacity == 96 - 12 - 7
    assert Layout(replicates=3, spread="plates").points == 96
    assert np.all(Layout(reserved=["H12"]).usable == (np.arange(96) != 95))


@pytest.mark.parametrize("by", ["plate", "row", "column"])
def test_a_control_has_no_value_of_its_own_of_what_wells_share(by):
    space = Space({"t": Integer(20, 30), "x": Real(0.0, 1.0)})
    layout = Layout(plate=6, shared={"t": by}, controls={"ref": Control(1, {"t": 25, "x": 0.5})})
    study = Study(space, seed=1)
    for fixed in (None, {"t": 24}):
        with pytest.raises(
            SpaceError, match=f"control 'ref' is at t 25, but wells share t by {by}"
        ):
            study.ask_plates(1, layout, fixed=fixed)
    (plate,) = study.ask_plates(1, layout, fixed={"t": 25})
    assert {well.point["t"] for well in plate.used} == {25}
