import numpy as np
import pytest

import covey
from covey.learn import understand
from covey.report.slices import model_slices


def sliced(study, point=None):
    rng = np.random.default_rng([study.seed, study.history.asked_count])
    posterior = understand(study.history, study.recipe, rng, waiting=False)
    return model_slices(posterior, study.recipe, point or study.best.point)


def test_a_slice_says_what_predict_says(falling):
    best = falling.best
    for one in sliced(falling):
        if one.numeric:
            cast = int if one.name == "layers" else float
            points = [{**best.point, one.name: cast(x)} for x in one.at]
        else:
            points = [{**best.point, one.name: x} for x in one.at]
        said = falling.predict(points)
        assert [f.mean for f in one.expected] == pytest.approx(said.mean.tolist())
        assert [f.std for f in one.expected] == pytest.approx(said.std.tolist())
        assert one.spread == pytest.approx(np.ptp(said.mean))
        assert one.here in one.at


def test_the_most_important_come_first(rising):
    found = sliced(rising)
    assert {one.name for one in found} == {"lr", "layers", "opt"}
    assert found[0].name == "lr"
    assert [one.spread for one in found] == sorted([one.spread for one in found], reverse=True)


def test_six_at_most():
    space = covey.Space({f"x{i}": covey.Real(0.0, 1.0) for i in range(9)})
    study = covey.Study(space, seed=0)
    batch = study.ask(12)
    study.tell(batch, [t.point["x7"] for t in batch])
    found = sliced(study)
    assert len(found) == 6
    assert found[0].name == "x7"


def test_forbidden_values_are_left_out():
    space = covey.Space(
        {"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)},
        where=[covey.Linear({"x": 1, "y": 1}, upper=1.0), lambda p: p["y"] != 0.0],
    )
    study = covey.Study(space, seed=0)
    study.add([{"x": 0.5, "y": 0.25}, {"x": 0.1, "y": 0.1}], [2.0, 1.0])
    found = {one.name: one for one in sliced(study)}
    assert max(found["x"].at) == pytest.approx(0.75)
    assert max(found["y"].at) == pytest.approx(0.5)
    assert min(found["y"].at) > 0.0
    assert found["x"].left_out == 10


def test_a_pool_is_sliced_between_its_rows(pooled):
    found = {one.name: one for one in sliced(pooled)}
    assert set(found) == {"t", "solvent"}  # labels are unseen
    assert found["t"].expected[0].mean > found["t"].expected[-1].mean
    assert not found["solvent"].numeric


def test_of_many_options_the_best_and_the_likely_are_kept():
    space = covey.Space({"c": covey.Choice(list(range(300))), "x": covey.Real(0.0, 1.0)})
    study = covey.Study(space, seed=0)
    study.add([{"c": 250, "x": 0.5}, {"c": 7, "x": 0.5}, {"c": 8, "x": 0.5}], [3.0, 2.0, 1.0])
    one = next(s for s in sliced(study) if s.name == "c")
    assert len(one.at) == 12
    assert {"250", "7"} <= set(one.at)
    assert one.here == "250"
    assert one.left_out == 288


def test_options_that_do_not_like_to_be_compared():
    space = covey.Space({"a": covey.Choice([np.zeros(2), np.ones(2)])})
    study = covey.Study(space, seed=0)
    batch = study.ask(2)
    study.tell(batch, [1.0, 2.0])
    (one,) = sliced(study)
    assert len(one.at) == 2
