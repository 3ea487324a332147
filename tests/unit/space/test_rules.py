"""Rules with a category: `Implies`, its table file, and candidates that keep to it."""

import json
import pickle

import numpy as np
import pytest

import covey
from covey import Choice, Implies, Integer, Real, Space
from covey.candidates import Exclusions, candidate_set
from covey.errors import SpaceError
from covey.space import read_rules, space_from_description
from covey.space.rules import into_rules

PARAMETERS = {
    "solvent": Choice(["THF", "DMF", "water"]),
    "T": Real(20.0, 120.0),
    "base": Choice(["KOH", "NaOH", "none"]),
    "n": Integer(1, 40),
}


def space(*rules) -> Space:
    return Space(PARAMETERS, where=list(rules))


THF = Implies({"solvent": "THF"}, {"T": (None, 60), "base": ["KOH", "NaOH"]})


def keeps(point) -> bool:
    """THF by hand."""
    return point["solvent"] != "THF" or (point["T"] <= 60.0 and point["base"] != "none")


def test_feasible_and_check_agree_with_the_rule_by_hand():
    where = space(THF)
    points = where.decode(np.random.default_rng(0).random((300, where.width)))
    verdicts = where.feasible(where.encode(points)).tolist()
    assert verdicts == [keeps(point) for point in points]
    assert 20 < verdicts.count(False) < 280
    for point, allowed in zip(points, verdicts, strict=True):
        if allowed:
            assert where.check(point) == point
        else:
            with pytest.raises(SpaceError, match=r"'solvent'.*'THF'"):
                where.check(point)


def test_both_ends_belong_to_a_range():
    where = space(Implies({"solvent": ["THF", "DMF"]}, {"T": (33.3, 60), "n": {"low": 7}}))
    for t in (33.3, 60.0):
        point = {"solvent": "DMF", "T": t, "base": "none", "n": 7}
        assert where.check(point) == point
        assert where.feasible(where.encode([point]))[0]


def test_it_comes_back_from_its_description():
    where = space(THF, Implies({"base": ["KOH", "none"], "solvent": "water"}, {"n": (3, 5)}))
    again = space_from_description(json.loads(json.dumps(where.describe())))
    assert again == where == pickle.loads(pickle.dumps(where))
    assert again.fingerprint == where.fingerprint != space().fingerprint
    assert str(THF) == "when solvent is 'THF': T <= 60 and base is 'KOH' or 'NaOH'"


@pytest.mark.parametrize(
    ("when", "then", "words"),
    [
        ({"solvent": "THS"}, {"T": (None, 60)}, r"'solvent'.*'THF'"),
        ({"solvnt": "THF"}, {"T": (None, 60)}, r"'solvnt'.*'solvent'"),
        ({"T": 20.0}, {"n": (None, 6)}, r"'when T is 20\.0: n <= 6': 'T'"),
        ({"solvent": "THF"}, {"T": (None, 10)}, "no value of 'T'"),
        ({"solvent": "THF"}, {"n": (1.2, 1.8)}, r"'n'.*'THF'"),
        ({"solvent": "THF"}, {"base": (None, 10)}, "'base' is no number"),
        ({"solvent": "THF"}, {"base": ["NaOHH"]}, r"'base'.*'NaOH'"),
    ],
)
def test_a_rule_that_the_space_cannot_keep_is_refused(when, then, words):
    with pytest.raises(SpaceError, match=words):
        space(Implies(when, then))


@pytest.mark.parametrize(
    ("when", "then"),
    [
        ({}, {"T": (None, 60)}),
        ({"solvent": "THF"}, {}),
        ({"solvent": "THF"}, {"T": (None, None)}),
        ({"solvent": "THF"}, {"T": (60, 20)}),
        ({"solvent": "THF"}, {"solvent": ["DMF"]}),
        ({"solvent": "THF"}, {"T": {"upper": 60}}),
    ],
)
def test_a_rule_has_a_form(when, then):
    with pytest.raises(SpaceError):
        Implies(when, then)


def test_candidates_fill_a_tight_rule_evenly():
    tight = space(Implies({"solvent": "THF"}, {"T": (59.0, 60.0), "n": (38, 39), "base": "KOH"}))
    where = candidate_set(tight, {}, Exclusions((), 0, 0))
    at = where.scattered(1024, np.random.default_rng(0)).at
    points = tight.decode(at)
    assert tight.feasible(at).all()
    thf = [point for point in points if point["solvent"] == "THF"]
    assert len(thf) > 250  # by rejection, one in three thousand of a third would be left
    t = np.array([point["T"] for point in thf])
    assert 59.0 <= t.min() < 59.05
    assert 59.95 < t.max() <= 60.0
    assert abs(np.mean(t) - 59.5) < 0.05
    assert {38, 39} == {point["n"] for point in thf}
    assert 0.4 < np.mean([point["n"] == 38 for point in thf]) < 0.6


def test_a_study_walks_along_the_border_of_a_rule():
    study = covey.Study(space(THF), seed=0)
    for _ in range(5):
        batch = study.ask(6)
        assert all(keeps(trial.point) for trial in batch)
        values = [t.point["T"] / 100 + (t.point["solvent"] == "THF") for t in batch]
        study.tell(batch, values)
    assert study.best.point["T"] == pytest.approx(60.0, abs=0.5)


def test_what_is_absent_silences_only_its_own_part_of_a_rule():
    where = Space(
        {**PARAMETERS, "time": Real(1, 9, when={"base": "KOH"})},
        where=[Implies({"solvent": "THF"}, {"T": (None, 60), "time": (None, 3)})],
    )
    cold = {"solvent": "THF", "T": 30.0, "base": "none", "n": 1}
    assert where.feasible(where.encode([cold, {**cold, "T": 90.0}])).tolist() == [True, False]
    with pytest.raises(SpaceError, match="T is 90"):
        where.check({**cold, "T": 90.0})


def written(folder, text):
    path = folder / "rules.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_rules_are_read_from_a_table(tmp_path):
    text = "when,is,parameter,low,high,options\nsolvent,THF,T,,60,\n\nsolvent,DMF,base,,,KOH|none\n"
    assert read_rules(written(tmp_path, text), PARAMETERS) == [
        Implies({"solvent": "THF"}, {"T": (None, 60)}),
        Implies({"solvent": "DMF"}, {"base": ["KOH", "none"]}),
    ]


def test_rules_are_read_in_the_dialect_of_a_spreadsheet(tmp_path):
    text = "Our rules\n\nwhen;is;parameter;low;high\nsolvent;THF;T;20,5;60\n"
    for encoding in ("utf-8", "utf-16"):
        path = tmp_path / "rules.csv"
        path.write_text(text, encoding=encoding)
        assert read_rules(path, PARAMETERS) == [Implies({"solvent": "THF"}, {"T": (20.5, 60)})]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty; its first line"),
        ("when,is,parameter,low,hihg\n", r"rules\.csv:1: 'hihg'.*'high'"),
        ("when,is,low,high\n", r"rules\.csv:1.*'parameter'"),
        ("when,is,parameter,low,high\nsolvent,THF,T,,60\nsolvent,TFH,T,,60\n", r":3: .*'THF'"),
        ("when,is,parameter,low,high\nsolvnt,THF,T,,60\n", r":2: .*'solvent'"),
        ("when,is,parameter,low,high\nsolvent,THF,T,,warm\n", r"rules\.csv:2.*'high': 'warm'"),
        ("when,is,parameter,low,high\nsolvent,THF,T,,\n", ":2: .*neither end"),
        ("when,is,parameter,low,high\nsolvent,,T,,3\n", r"rules\.csv:2.*'is'"),
        ("when,is,parameter,low,high\nsolvent,THF,T,,60,7\n", ":2: 6 cells, but 5"),
        ("when,is,parameter,low,high\nsolvent,THF,T,,10\n", ":2: .*no value of 'T'"),
    ],
)
def test_a_wrong_cell_is_named_by_its_line(tmp_path, text, words):
    with pytest.raises(SpaceError, match=words):
        read_rules(written(tmp_path, text), PARAMETERS)


def test_a_rule_moves_no_candidate_where_its_condition_is_absent():
    made = Space(
        {
            "model": Choice(["tree", "net"]),
            "opt": Choice(["sgd", "adam"], when={"model": "net"}),
            "T": Real(0, 100),
        },
        where=[Implies({"opt": "sgd"}, {"T": (None, 10)})],
    )
    trees = made.encode([{"model": "tree", "T": t} for t in (5.0, 50.0, 100.0)])
    for spread in (False, True):
        np.testing.assert_array_equal(into_rules(made, trees, spread=spread), trees)
    net = made.encode([{"model": "net", "opt": "sgd", "T": 5.0}])
    net[:, -1] = 0.9
    assert made.decode(into_rules(made, net, spread=False))[0]["T"] == 10.0


def test_single_values_of_a_continuous_parameter_are_no_range():
    parameters = {"solvent": Choice(["THF", "DMF"]), "T": Real(20, 120)}
    with pytest.raises(SpaceError, match=r"\{'low': 20, 'high': 60\}"):
        Space(parameters, where=[Implies({"solvent": "THF"}, {"T": [20, 60]})])


def test_candidates_move_to_named_values_of_very_many():
    made = Space(
        {"solvent": Choice(["THF", "DMF"]), "N": Integer(1, 20_000)},
        where=[Implies({"solvent": "THF"}, {"N": [5, 7]})],
    )
    moved = into_rules(made, made.encode([{"solvent": "THF", "N": 900}]), spread=True)
    assert made.decode(moved) == [{"solvent": "THF", "N": 7}]
