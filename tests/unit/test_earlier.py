"""Earlier studies: read, matched, kept in the header, and weighed by the results."""

from __future__ import annotations

import json

import numpy as np
import pytest

import covey
from covey.earlier import MOST, Earlier, earlier_studies
from covey.errors import JournalError, JournalMismatch, SpaceError
from covey.outcomes import Outcomes
from covey.report import card
from covey.space import Choice, Integer, Pool, Real, Space

SPACE = Space({"x": Real(0, 1), "y": Real(0, 1)})


def summit(point, at=0.3):
    return -((point["x"] - at) ** 2) - (point.get("y", 0.6) - 0.6) ** 2


def made(path, f=summit, space=SPACE, count=16, **options):
    study = covey.Study(space, seed=5, journal=path, **options)
    batch = study.ask(count, strategy="sobol")
    study.tell(batch, [f(trial.point) for trial in batch])
    return path


@pytest.fixture
def old(tmp_path):
    return made(tmp_path / "old.jsonl")


def told(study, rounds=2, f=summit):
    for _ in range(rounds):
        batch = study.ask(4)
        study.tell(batch, [f(trial.point) for trial in batch])
    return study


def points(study):
    return [dict(trial.point) for trial in study.history.trials]


def test_a_source_that_agrees_counts_and_one_that_contradicts_does_not(tmp_path, old):
    against = made(tmp_path / "against.jsonl", lambda p: -summit(p))
    weights, said = {}, ""
    for path in (old, against):
        study = told(covey.Study(SPACE, seed=0, prior=[path]))
        study.ask(4)
        weights |= study.diagnostics.prior
        said += " ".join(card(study).notes)
    assert weights["old.jsonl"] > 0.3
    assert weights["against.jsonl"] == 0.0
    assert "old.jsonl counts with weight" in said
    assert "against.jsonl counts for nothing" in said


def test_what_a_weight_changes_is_said_beside_it(tmp_path, old):
    """The weight of a study whose mean hardly varies at the results says little."""
    level = made(tmp_path / "level.jsonl", lambda p: float(p["x"] > 0.85) - 0.01 * p["y"])
    found = {}
    for path in (old, level):
        study = covey.Study(SPACE, seed=2, prior=[path])
        near = [{"x": x, "y": y} for x in (0.1, 0.25, 0.4) for y in (0.4, 0.6, 0.8)]
        study.add(near, [summit(point) for point in near])
        study.ask(4)
        found[path.name] = study.diagnostics
        moved = study.diagnostics.influence[path.name]
        assert f"moves what is expected by {moved:.2f} standard" in " ".join(card(study).notes)
    assert found["level.jsonl"].prior["level.jsonl"] > 0.1
    assert found["level.jsonl"].influence["level.jsonl"] < 0.1
    assert found["old.jsonl"].influence["old.jsonl"] > 0.2


def test_the_first_batch_is_the_design_as_it_was(old):
    study, plain = covey.Study(SPACE, seed=0, prior=[old]), covey.Study(SPACE, seed=0)
    assert [t.point for t in study.ask(4)] == [t.point for t in plain.ask(4)]
    assert "is found from the results" in " ".join(card(study).notes)


def test_the_log_needs_no_other_file(tmp_path, old):
    journal = tmp_path / "new.jsonl"
    study = told(covey.Study(SPACE, seed=0, prior=[old], journal=journal))
    expected = points(study)
    again = told(covey.Study(SPACE, seed=0, prior=[old]), 2)
    assert points(again) == expected
    following = [t.point for t in again.ask(4)]
    del study
    old.unlink()
    study = covey.Study(SPACE, seed=0, prior=[old], journal=journal)
    assert [t.point for t in study.ask(4)] == following
    assert covey.Study.load(journal, read_only=True).recipe.earlier[0].name == "old.jsonl"
    with pytest.raises(JournalMismatch, match=r"\['old\.jsonl'\]"):
        covey.Study(SPACE, seed=0, prior=["other.jsonl"], journal=journal)


def test_without_a_prior_the_header_is_as_it_was(tmp_path):
    path = made(tmp_path / "plain.jsonl")
    assert "prior" not in json.loads(path.read_text().splitlines()[0])


def test_spaces_may_differ(tmp_path):
    """A parameter more there, one more here, another range, an option that is gone."""
    theirs = Space({"x": Real(0, 2), "kind": Choice(["a", "b", "c"]), "z": Real(0, 1)})

    def f(p):
        return -((p["x"] - 0.5) ** 2) - (p["z"] - 0.7) ** 2 + (p["kind"] == "b")

    old = made(tmp_path / "old.jsonl", f, theirs, 40)
    ours = Space({"x": Real(0, 1), "kind": Choice(["b", "a"]), "w": Real(0, 1)})
    (study,) = earlier_studies([old], Outcomes.of("max"))
    mean = study.mean_in(ours, covey.GP())
    grid = [{"x": x, "kind": k, "w": 0.2} for x in (0.0, 0.5, 1.0) for k in ("a", "b")]
    values = mean.mean(ours.encode(grid))
    assert np.argmax(values) == 3
    moved = ours.encode([{**point, "w": 0.9} for point in grid])
    np.testing.assert_allclose(mean.mean(moved), values, atol=1e-12)
    assert len(mean.posterior.data) < 40  # those with the option c are left out


@pytest.mark.parametrize(
    ("parameter", "x", "expected"),
    [
        (Real(0, 2), 3.0, 1.5),
        (Real(1, 100, log=True), 1000.0, 1.5),
        (Integer(1, 4), 5, 1.125),
        (Real(0, 1, step=0.5), 0.25, 1 / 3),
    ],
)
def test_numbers_outside_the_range_lie_where_the_scale_goes_on(parameter, x, expected):
    assert parameter.place([x])[0, 0] == pytest.approx(expected)


def test_a_number_without_a_place_on_a_log_scale_is_refused():
    with pytest.raises(SpaceError, match="log"):
        Real(1, 100, log=True).place([-1.0])


def test_a_pool_takes_a_prior(tmp_path, old):
    rng = np.random.default_rng(0)
    rows = [{"x": float(a), "y": float(b)} for a, b in rng.random((60, 2))]
    study = told(covey.Study(Pool(rows), seed=0, prior=[old]))
    study.ask(2)
    assert study.diagnostics.prior["old.jsonl"] > 0.2


def test_the_goal_of_the_source_is_respected(tmp_path):
    low = made(tmp_path / "low.jsonl", lambda p: -summit(p), goal="min")
    study = told(covey.Study(SPACE, seed=0, prior=[low]))
    study.ask(2)
    assert study.diagnostics.prior["low.jsonl"] > 0.3


def test_outcomes_are_matched_by_name(tmp_path):
    def two(p):
        return {"yield": summit(p), "cost": p["x"]}

    old = made(tmp_path / "old.jsonl", two, goal={"yield": "max", "cost": "min"})
    plain = made(tmp_path / "plain.jsonl")
    study = told(covey.Study(SPACE, {"cost": "min", "yield": "max"}, seed=0, prior=[old]), f=two)
    study.ask(2)
    assert study.diagnostics.prior["old.jsonl"] > 0.2
    named = covey.Study(SPACE, {"yield": "max"}, seed=0, prior=[old, plain])
    assert [dict(e.goal) for e in named.recipe.earlier] == [{"yield": "max"}] * 2
    with pytest.raises(JournalError, match="the outcomes yield, cost, and this study value"):
        covey.Study(SPACE, seed=0, prior=[old])
    with pytest.raises(JournalError, match=r"plain.jsonl .* outcomes value, and this study"):
        covey.Study(SPACE, {"yield": "max", "cost": "min"}, seed=0, prior=[plain])


def test_of_many_results_the_best_and_some_others_are_kept(tmp_path):
    old = made(tmp_path / "old.jsonl", count=400)
    (study,) = earlier_studies([old], Outcomes.of("max"))
    assert (len(study.points), study.told) == (MOST, 400)
    every = sorted((summit(t.point) for t in covey.Study.load(old).history.told), reverse=True)
    kept = {values["value"] for values in study.values}
    assert set(every[:100]) <= kept
    assert min(kept) < every[200]
    assert Earlier.from_description(json.loads(json.dumps(study.describe()))) == study


def test_bad_priors_are_refused(tmp_path, old):
    few = made(tmp_path / "few.jsonl", count=2)
    strange = made(tmp_path / "strange.jsonl", lambda p: p["q"], Space({"q": Real(0, 1)}))
    (tmp_path / "again").mkdir()
    twice = made(tmp_path / "again" / "old.jsonl")
    text = tmp_path / "text.jsonl"
    text.write_text("hello\n")
    for prior, error, said in [
        (str(old), JournalError, "a list of paths"),
        ([7], JournalError, "one of them is 7"),
        ([tmp_path / "none.jsonl"], JournalError, "none.jsonl"),
        ([text], JournalError, "text.jsonl"),
        ([few], JournalError, "holds 2 results that count"),
        ([strange], SpaceError, "have the parameters q, and this study has x, y"),
        ([old, twice], JournalError, "two files called old.jsonl"),
    ]:
        with pytest.raises(error, match=said):
            covey.Study(SPACE, seed=0, prior=prior, journal=tmp_path / "new.jsonl")
        assert not (tmp_path / "new.jsonl").exists()


def test_a_damaged_header_is_refused():
    with pytest.raises(JournalError, match="earlier studies"):
        Earlier.from_description({"name": "old"})


def test_a_parameter_that_is_held_from_now_on_plays_no_part(tmp_path):
    space = covey.Space({"y": covey.Real(0, 1), "x": covey.Real(0, 1)})
    path = tmp_path / "last-year.jsonl"
    old = covey.Study(space, seed=0, journal=path)
    batch = old.ask(9)
    old.tell(batch, [trial.point["y"] for trial in batch])
    study = covey.Study(space, seed=0, prior=[path])
    batch = study.ask(9)
    study.tell(batch, [trial.point["y"] for trial in batch])
    study.extend(covey.Space({"y": covey.Real(0, 1), "x": covey.Choice([0.5])}), "held")
    assert study.ask(1)[0].point["x"] == 0.5


def test_an_extension_that_leaves_a_prior_no_place_is_refused(tmp_path):
    path = tmp_path / "last-year.jsonl"
    old = covey.Study(covey.Space({"x": covey.Choice(["u", "v"])}), seed=0, journal=path)
    old.add([{"x": "u"}, {"x": "v"}, {"x": "u"}], [1.0, 2.0, 3.0])
    study = covey.Study(covey.Space({"x": covey.Choice(["u", "v"])}), seed=0, prior=[path])
    with pytest.raises(covey.errors.SpaceError, match=r"last-year\.jsonl is no prior"):
        study.extend(covey.Space({"x": covey.Choice(["w", "z"])}), "other reagents")
    assert study.space.parameters["x"].options == ("u", "v")


def test_a_prior_knows_options_by_their_features(tmp_path):
    numbers = {name: [float(i), float(i * i)] for i, name in enumerate("abcde")}
    space = Space({"ligand": Choice(list("abcde"), features=numbers), "x": Real(0, 1)})
    path = made(tmp_path / "old.jsonl", lambda p: p["x"] - numbers[p["ligand"]][0], space, 12)
    study = covey.Study(space, seed=0, prior=[path])
    for _ in range(3):
        batch = study.ask(4)
        study.tell(batch, [t.point["x"] - numbers[t.point["ligand"]][0] for t in batch])
    study.ask(1)
    assert study.diagnostics.prior["old.jsonl"] > 0.2
