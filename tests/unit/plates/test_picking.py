"""Pick lists: golden files for every profile, and volumes that are checked."""

from pathlib import Path

import pytest

from covey import Choice, Layout, Real, Space, Study
from covey.errors import SpaceError
from covey.plates.machines import PROFILES
from covey.plates.picking import Dispense, pick_list, read_stocks

GOLDEN = Path(__file__).parent / "golden"
SPACE = Space({"ligand": Choice(["XPhos", "SPhos"]), "ul": Real(0.0, 10.0, step=0.5)})
STOCKS = [
    {"material": "XPhos", "plate": "S1", "plate_type": "384PP", "well": "A1", "slot": "4",
     "concentration": 10, "unit": "mM", "volume_ul": 60, "dead_ul": 15},
    {"material": "SPhos", "plate": "S1", "plate_type": "384PP", "well": "A2", "slot": "4",
     "concentration": 10, "unit": "mM", "volume_ul": 60, "dead_ul": 15},
    {"material": "DMSO", "plate": "S2", "plate_type": "reservoir", "well": "A1", "slot": "5",
     "volume_ul": 500},
]  # fmt: skip
RULES = [
    Dispense("{ligand}", volume="{ul}"),
    {"material": "DMSO", "up_to": 20, "role": "all"},
]


def a_plate():
    study = Study(SPACE, seed=0)
    points = [
        {"ligand": "XPhos", "ul": 5.0},
        {"ligand": "SPhos", "ul": 2.5},
        {"ligand": "XPhos", "ul": 10.0},
        {"ligand": "SPhos", "ul": 1.0},
    ]
    from covey.history import Asked, Point

    layout = Layout(plate=6, controls={"blank": 1}, reserved=["B3"], order="listed")
    wells = [["p1", w, i, 1, i + 1] for i, w in enumerate(("A1", "A2", "A3", "B1"))]
    plates = {
        "layout": layout.describe(),
        "wells": wells,
        "controls": [["p1", "B2", "blank", 1, 5]],
    }
    study.note(Asked(tuple(map(Point, points)), "auto", plates=plates))
    return study.plate("p1")


@pytest.mark.parametrize("profile", PROFILES)
def test_golden_pick_lists(profile):
    made = pick_list(a_plate(), profile, STOCKS, RULES, {"type": "corning_6", "slot": "2"})
    assert made.table() == (GOLDEN / f"{profile}.csv").read_text()
    assert not made.rounded


def test_volumes_are_in_nanolitres_for_an_echo_and_in_multiples_of_its_step():
    rules = [Dispense("DMSO", volume=1.2341)]
    made = pick_list(a_plate(), "echo", STOCKS, rules)
    assert {t.volume for t in made.transfers} == {1.235}
    assert len(made.rounded) == 4
    assert made.table().splitlines()[1].endswith(",1235")


def test_concentrations_become_volumes():
    rules = [Dispense("XPhos", concentration=0.5, of=100.0)]
    made = pick_list(a_plate(), "generic", STOCKS, rules)
    assert {t.volume for t in made.transfers} == {5.0}


def test_a_second_source_well_is_used_when_the_first_is_empty():
    stocks = [{"material": "D", "plate": "S", "well": w, "volume_ul": 10} for w in ("A1", "A2")]
    made = pick_list(a_plate(), "generic", stocks, [Dispense("D", volume=5.0)])
    assert [t.source.well for t in made.transfers] == ["A1", "A1", "A2", "A2"]


@pytest.mark.parametrize(
    ("stocks", "rules", "profile", "said"),
    [
        (STOCKS, [Dispense("XPhos", volume=0.001)], "echo", r"0\.001.*mM"),
        (STOCKS, [Dispense("XPhos", volume=0.2)], "opentrons", r"A1: 0\.2"),
        (STOCKS, [Dispense("XPhos", volume=20.0)], "echo", r"XPhos.*80 µL.*35 µL"),
        (STOCKS, [Dispense("water", volume=1.0)], "echo", "'water'"),
        (STOCKS, [Dispense("{ligan}", volume=1.0)], "echo", "'ligand'"),
        (STOCKS, [Dispense("{ligand}", volume=1.0, role="blank")], "echo", r"B2: .*\{ligand\}"),
        (STOCKS, [Dispense("DMSO", volume="{ligand}")], "echo", "'XPhos'"),
        (STOCKS, [Dispense("DMSO", volume=-1.0)], "echo", r"got -1\.0"),
        (STOCKS, [*RULES[:1], Dispense("DMSO", up_to=3.0)], "echo", r"well A1: 5 µL.*3 µL.*DMSO"),
        (STOCKS, [Dispense("DMSO", concentration=1.0, of=10.0)], "echo", r"A1.*concentration"),
        (STOCKS, [], "echo", "nothing says what is dispensed"),
        (STOCKS, RULES, "ecko", r"'ecko'.*'echo'"),
        ([{"material": "XPhos"}], RULES, "echo", r"stocks:2: .* plate"),
        ([], RULES, "echo", "no stocks"),
        (
            [*STOCKS, {"material": "water", "plate": "S1", "well": "A1", "volume_ul": 1}],
            RULES,
            "echo",
            r"S1 A1.*XPhos",
        ),
    ],
)
def test_what_cannot_be_dispensed_is_refused(stocks, rules, profile, said):
    with pytest.raises(SpaceError, match=said):
        pick_list(a_plate(), profile, stocks, rules)


@pytest.mark.parametrize(
    "wrong", [{}, {"material": "x"}, {"material": "x", "volume": 1, "up_to": 2}, {"materiel": "x"}]
)
def test_rules_that_make_no_sense_are_refused(wrong):
    with pytest.raises(SpaceError):
        Dispense.from_table(wrong)


def test_a_table_of_stocks_is_read(tmp_path):
    path = tmp_path / "stocks.csv"
    path.write_text("Material;plate;well;volume_ul;dead_ul\nXPhos;S1;A1;60;15\n")
    assert read_stocks(path)[0]["XPhos"][0].left == 45.0
    path.write_text("material;plate;well\nXPhos;S1;A1\n")
    with pytest.raises(SpaceError, match="'volume_ul'"):
        read_stocks(path)


def test_a_role_that_the_plate_has_not_is_refused():
    with pytest.raises(SpaceError, match=r"'blnk'.*'blank'"):
        pick_list(a_plate(), "generic", STOCKS, [Dispense("DMSO", volume=1, role="blnk")])
    made = pick_list(a_plate(), "generic", STOCKS, [Dispense("DMSO", volume=1, role="blank")])
    assert [t.well for t in made.transfers] == ["B2"]
    for name in ("sample", "all"):
        with pytest.raises(SpaceError, match=f"no control is named '{name}'"):
            Layout(controls={name: 1})
