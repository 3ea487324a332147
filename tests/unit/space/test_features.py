"""Options described by numbers: read, reduced, and searched by how alike they are."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import covey
from covey.candidates import candidate_set, excluded
from covey.errors import JournalMismatch, SpaceError
from covey.space import Choice, Integer, Real, Space, space_from_description
from covey.space.features import MOST_COLUMNS, options_in, reduced
from covey.testing import ParameterContract

SOLVENTS = {"THF": [66.0, 7.6], "DMF": [153.0, 36.7], "water": [100.0, 80.1], "DME": [85.0, 7.2]}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "solvents.csv"
    rows = [f"{name},{boils},{permittivity}" for name, (boils, permittivity) in SOLVENTS.items()]
    path.write_text("\n".join(["solvent,boils,permittivity", *rows]) + "\n")
    return path


class TestDescribed(ParameterContract):
    def parameter(self):
        return Choice(list(SOLVENTS), features=SOLVENTS)

    def values(self):
        return list(SOLVENTS)

    def strangers(self):
        return ["toluene", None, 3]


class TestDescribedNumbers(ParameterContract):
    """Options that are numbers have no order of their own then."""

    def parameter(self):
        return Choice([3, 1, 2], features={3: [0.0, 1.0], 1: [1.0, 1.0], 2: [5.0, 2.0]})

    def values(self):
        return [3, 1, 2]

    def strangers(self):
        return [4, "x"]


def test_a_file_a_dict_and_frames_say_the_same(file):
    options = ["water", "THF", "DMF"]
    columns = {"solvent": list(SOLVENTS), "b": [r[0] for r in SOLVENTS.values()]}
    columns["p"] = [r[1] for r in SOLVENTS.values()]
    by_name = {name: {"b": row[0], "p": row[1]} for name, row in SOLVENTS.items()}
    frame = pd.DataFrame(columns)
    expected = Choice(options, features=SOLVENTS)
    for given in (
        file,
        str(file),
        by_name,
        frame,
        frame.set_index("solvent"),
        pl.DataFrame(columns),
    ):
        assert Choice(options, features=given) == expected
    assert Choice(options, features={**SOLVENTS, "THF": [67.0, 7.6]}) != expected
    assert options_in(file) == list(SOLVENTS)


def test_distances_are_those_of_the_standardised_columns():
    """Up to one factor, and the widest column spans [0, 1]."""
    rng = np.random.default_rng(0)
    raw = rng.standard_normal((9, 3)) * [1.0, 50.0, 1e-3] + [0.0, 1e4, 0.0]
    at, words = reduced(raw)
    z = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    ratio = np.linalg.norm(at[1:] - at[0], axis=1) / np.linalg.norm(z[1:] - z[0], axis=1)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    assert (at.min(), at.max(), words) == (0.0, 1.0, "3 columns")


def test_near_copies_and_constant_columns_are_left_out():
    x, y = np.random.default_rng(1).standard_normal((2, 8))
    columns = np.column_stack([x, -3.0 * x + 1e-3 * y, y, np.full(8, 7.0), np.full(8, 0.1) * 3])
    at, words = reduced(columns)
    np.testing.assert_array_equal(at, reduced(np.column_stack([x, y]))[0])
    assert words == "2 of 5 columns"


def test_many_columns_become_principal_components():
    rng = np.random.default_rng(2)
    at, words = reduced(rng.standard_normal((30, 40)))
    assert at.shape == (30, MOST_COLUMNS)
    assert words.startswith("8 principal components of 40 columns, ")
    few, _ = reduced(rng.standard_normal((4, 40)))
    assert few.shape == (4, 3)  # four points span three dimensions
    assert list(at.std(axis=0)) == sorted(at.std(axis=0), reverse=True)


def test_a_column_of_huge_numbers_does_not_overflow():
    assert np.isfinite(reduced(np.array([[1e300, 1.0], [-1e300, 2.0], [3e299, 5.0]]))[0]).all()


def test_a_near_copy_stays_where_it_alone_tells_options_apart():
    given = {"a": [0.0, 0.0], "b": [0.0, 0.01], "c": [1.0, 1.0], "d": [2.0, 2.0]}
    assert Choice(list(given), features=given).features.words == "2 columns"
    assert Choice(["a", "c", "d"], features=given).features.words == "1 of 2 columns"


def test_every_option_has_a_direction_of_its_own():
    """So that no two are copies however alike; of many options it would outgrow the features."""
    given = {"a": [0.0], "b": [1e-6], "c": [1.0]}
    at = Choice(list(given), features=given).encode(list(given))
    np.testing.assert_allclose(at[:, :1], [[0.0], [1e-6], [1.0]], atol=1e-9)
    np.testing.assert_array_equal(at[:, 1:], 0.3 * np.eye(3))
    many = {str(i): [float(i)] for i in range(101)}
    assert Choice(list(many), features=many).width == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"THF": [1.0]}, r"'DMF'.*THF"),
        ({"THF": [1.0], "DMF": [1.0, 2.0]}, r"'THF'.*'DMF'"),
        ({"THF": [1.0], "DMF": [float("nan")]}, r"'column 1'.*'DMF' \(row 1\)"),
        ({"THF": [1.0], "DMF": ["warm"]}, r"'warm'.*'DMF'"),
        ({"THF": [1.0], "DMF": [1.0]}, "the same for all options"),
        ({}, "is empty"),
        ([[1.0], [2.0]], "got list"),
        (7, "got int"),
        ("absent.csv", r"'absent\.csv'"),
    ],
)
def test_bad_features_are_refused(given, message):
    with pytest.raises(SpaceError, match=message):
        Choice(["THF", "DMF"], features=given)


def test_a_file_with_semicolons_and_decimal_commas_describes_the_same(tmp_path):
    pointed, german = tmp_path / "points.csv", tmp_path / "commas.csv"
    pointed.write_text("lig,mass\n007,476.7\n7,410.5\nPPh3,262.3\n")
    german.write_text("lig;mass\n007;476,7\n7;410,5\nPPh3;262,3\n")
    options = ["007", "7", "PPh3"]
    assert Choice(options, features=german) == Choice(options, features=pointed)


def test_a_file_that_lacks_an_option_is_named_with_it(file):
    with pytest.raises(SpaceError) as refused:
        Choice(["THF", "Water"], features=file)
    said = str(refused.value)
    assert str(file) in said
    assert "'Water'" in said
    assert "Did you mean 'water'?" in said


def test_a_bad_cell_is_named_by_its_line(file):
    file.write_text(file.read_text().replace("36.7", "n/a"))
    with pytest.raises(SpaceError, match=r"'permittivity'.*'n/a'.*'DMF' \(line 3"):
        Choice(["THF", "DMF"], features=file)
    Choice(["THF", "water"], features=file)  # rows of other options may hold anything


def test_two_rows_for_an_option_are_refused(file):
    file.write_text(file.read_text() + "THF,1,2\n")
    with pytest.raises(SpaceError, match=r"'THF' \(line 2"):
        Choice(["THF", "DMF"], features=file)
    with pytest.raises(SpaceError, match=r"solvents\.csv.*'THF'"):
        options_in(file)


def test_options_with_equal_features_are_refused_by_name():
    given = {"THF": [1.0, 2.0], "oxolane": [1.0, 2.0], "water": [0.0, 0.0]}
    with pytest.raises(SpaceError, match=r"'THF'.*'oxolane'"):
        Choice(list(given), features=given)


def test_an_order_and_features_exclude_each_other():
    with pytest.raises(SpaceError, match="not both"):
        Choice(["THF", "DMF"], ordered=True, features=SOLVENTS)


def test_a_single_option_may_have_features():
    assert Choice(["THF"], features=SOLVENTS).encode(["THF"]).tolist() == [[0.5]]


def test_a_description_needs_no_file(file):
    space = Space({"solvent": Choice(["THF", "water", "DMF"], features=file)})
    file.unlink()
    text = json.dumps(space.describe())
    assert space_from_description(json.loads(text)) == space
    assert pickle.loads(pickle.dumps(space)) == space
    assert "described by 2 columns" in space.parameters["solvent"].words()


@pytest.mark.parametrize(
    "harm",
    [
        {"at": [[0.0], [0.0], [1.0]]},
        {"at": [[0.0], [1.0]]},
        {"at": [[0.0], [2.0], [1.0]]},
        {"at": 7},
    ],
)
def test_a_damaged_description_is_refused(harm):
    described = Space({"s": Choice(["THF", "DMF", "DME"], features=SOLVENTS)}).describe()
    described["parameters"][0]["features"] |= harm
    with pytest.raises(SpaceError, match="damaged"):
        space_from_description(described)


def test_columns_of_a_described_choice_share_a_length_scale():
    described = Choice(["THF", "DMF", "water"], features=SOLVENTS)
    space = Space({"x": Real(0, 1), "s": described, "k": Choice(["a", "b"]), "n": Integer(1, 3)})
    assert space.groups == (0, *(1,) * 5, 2, 3, 4)
    assert Space({"x": Real(0, 1), "k": Choice(["a", "b"])}).groups is None


def test_fair_draws_give_each_option_its_share():
    """The nearest option to a uniform point would not: the last lies apart from nine close ones."""
    given = {str(i): [0.01 * i, 0.1 * (i % 2)] for i in range(9)} | {"9": [1.0, 1.0]}
    space = Space({"o": Choice(list(given), features=given), "x": Real(0, 1)})
    uniform = np.random.default_rng(0).random((4000, space.width))
    fair = np.bincount(space.condensed(space.snap(space.drawn(uniform)))[:, 0].astype(int))
    nearest = np.bincount(space.condensed(space.snap(uniform))[:, 0].astype(int), minlength=10)
    assert (fair.min(), fair.max()) > (340, 0)
    assert fair.max() < 460
    assert nearest.min() < 200  # the control
    history = covey.Study(space, seed=0).history
    offered = candidate_set(space, {}, excluded(history, 0)).scattered(1, np.random.default_rng(0))
    counts = np.bincount([int(p["o"]) for p in offered.points(range(len(offered)))], minlength=10)
    assert counts.min() > 80


def test_a_filtered_or_sorted_frame_is_read_by_its_first_column():
    """Only a named index, or one of texts, names options; the others count rows."""
    names = ["z", "c", "a", "b"]
    frame = pd.DataFrame({"o": names, "size": [9.0, 3.0, 1.0, 2.0], "ph": [1.0, 5.0, 2.0, 7.0]})
    rows = {row["o"]: [row["size"], row["ph"]] for _, row in frame.iterrows()}
    expected = Choice(["a", "b", "c"], features=rows).features.at
    for given in (frame[frame.o != "z"], frame.sort_values("o"), frame.sort_values("ph")):
        assert np.array_equal(Choice(["a", "b", "c"], features=given).features.at, expected)
    texts = frame[["size", "ph"]].set_axis(names)
    assert np.array_equal(Choice(["a", "b", "c"], features=texts).features.at, expected)
    numbered = pd.DataFrame({"size": [3.0, 1.0]}, index=pd.Index([10, 20], name="plate"))
    assert Choice([10, 20], features=numbered).features.at[0, 0] == 1.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("s,boils\n", "a line for each candidate or option"),
        ("", "a line for each candidate or option"),
    ],
)
def test_a_file_of_features_that_cannot_be_read_says_what_to_do(tmp_path, text, said):
    path = tmp_path / "features.csv"
    path.write_text(text)
    with pytest.raises(SpaceError, match=said):
        Choice(["THF"], features=path)


def test_a_study_goes_on_without_the_file_and_with_other_rounding(tmp_path, file):
    space = Space({"s": Choice(["THF", "DMF", "DME", "water"], features=file), "x": Real(0, 1)})
    journal = tmp_path / "run.jsonl"
    study = covey.Study(space, seed=0, journal=journal)
    batch = study.ask(12)
    study.tell(batch, [trial.point["x"] for trial in batch])
    rounded = {n: [a * (1 + 1e-9), b * (1 - 1e-9)] for n, (a, b) in SOLVENTS.items()}
    again = Space({"s": Choice(["THF", "DMF", "DME", "water"], features=rounded), "x": Real(0, 1)})
    other = {**rounded, "THF": [70.0, 7.6]}
    third = Space({"s": Choice(["THF", "DMF", "DME", "water"], features=other), "x": Real(0, 1)})
    del study
    file.unlink()
    points = [t.point for t in covey.Study.load(journal).ask(3)]
    assert len({p["s"] for p in points}) >= 1
    covey.Study(again, seed=0, journal=journal)
    with pytest.raises(JournalMismatch, match="another space"):
        covey.Study(third, seed=0, journal=journal)
