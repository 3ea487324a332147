import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import covey
from covey.history import Point, Trial
from covey.learn import understand
from covey.report import card, write_page
from covey.report.slices import axes_of, diversity, edges, model_slices


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
    space = covey.Space(
        {"c": covey.Choice(list(range(300)), ordered=False), "x": covey.Real(0.0, 1.0)}
    )
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


# Axes


def test_axes_of_a_space():
    space = covey.Space(
        {
            "lr": covey.Real(1e-5, 1e-1, log=True),
            "few": covey.Integer(1, 4),
            "many": covey.Integer(0, 10_000),
            "opt": covey.Choice(["adam", "sgd"]),
            "only": covey.Choice(["this"]),
            "vast": covey.Choice(list(range(500)), ordered=False),
        }
    )
    axes = {axis.name: axis for axis in axes_of(space)}
    assert list(axes) == ["lr", "few", "many", "opt", "vast"]
    assert axes["lr"].ends == (1e-5, 1e-1)
    assert axes["lr"].log
    assert axes["lr"].values[0] == 1e-5
    assert axes["lr"].values[-1] == 1e-1
    assert axes["few"].values == (1, 2, 3, 4)
    assert len(axes["many"].values) == 41
    assert axes["opt"].values == ("adam", "sgd")
    assert axes["opt"].ends is None
    assert (len(axes["vast"].values), axes["vast"].size) == (200, 500)


def test_axes_of_a_pool():
    rows = [
        {"t": i, "ph": i / 7, "dye": ("red", "blue")[i % 2], "wet": i % 3 == 0, "same": 1.0, "n": i}
        for i in range(60)
    ]
    axes = {axis.name: axis for axis in axes_of(covey.Pool(rows, labels=["n"]))}
    assert list(axes) == ["t", "ph", "dye", "wet"]
    assert len(axes["t"].values) == 41
    assert axes["t"].ends == (0.0, 59.0)
    assert set(axes["dye"].values) == {"red", "blue"}
    assert set(axes["wet"].values) == {True, False}


def test_an_axis_of_a_pool_in_logs():
    doses = [{"dose": 10.0 ** (-i / 20)} for i in range(61)]
    (axis,) = axes_of(covey.Pool(doses, log=["dose"]))
    assert axis.log
    assert (axis.values[0], axis.values[-1]) == (1e-3, 1.0)
    assert axis.values[20] == pytest.approx(10**-1.5)


def test_a_small_pool_is_taken_value_by_value():
    (axis,) = axes_of(covey.Pool([{"t": 3}, {"t": 1}, {"t": 2}]))
    assert axis.values == (1, 2, 3)


# Optima at the edge of the space


SPACE = covey.Space(
    {
        "lr": covey.Real(1e-5, 1e-1, log=True),
        "layers": covey.Integer(1, 8),
        "flag": covey.Integer(0, 1),
        "opt": covey.Choice(["adam", "sgd"]),
    }
)
INSIDE = {"lr": 1e-3, "layers": 4, "flag": 0, "opt": "adam"}


def test_a_point_inside_touches_nothing():
    assert edges(SPACE, INSIDE, [INSIDE]) == ()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"lr": 1e-5}, "lr sits at its lower bound 1e-05: widen it?"),
        ({"lr": 1.05e-5}, "lr is next to its lower bound 1e-05: widen it?"),
        ({"lr": 1e-1}, "lr sits at its upper bound 0.1: widen it?"),
        ({"layers": 8}, "layers sits at its upper bound 8: widen it?"),
        ({"layers": 1}, "layers sits at its lower bound 1: widen it?"),
    ],
)
def test_an_end_is_named(changed, words):
    (found,) = edges(SPACE, INSIDE | changed, [INSIDE, INSIDE | changed])
    assert found.words == words
    assert (found.others, found.of) == (1, 2)


def test_near_is_one_in_a_hundred_as_the_model_sees_it():
    assert edges(SPACE, INSIDE | {"lr": 1.2e-5}, []) == ()


def test_a_pool_asks_for_candidates():
    pool = covey.Pool([{"t": t, "name": str(t)} for t in range(5)], labels=["name"])
    (found,) = edges(pool, {"t": 4, "name": "4"}, [])
    assert found.words == "t sits at the largest in the pool 4: add candidates beyond it?"
    (found,) = edges(pool, {"t": -2}, [])
    assert found.words == "t lies beyond the smallest in the pool 0: add candidates beyond it?"


# Diversity of a batch


SQUARE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})


def trials_at(rows, status="told"):
    return [Trial(i, Point(x=x, y=y), Point(value=1.0), status) for i, (x, y) in enumerate(rows)]


coordinates = st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0])


@given(st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=12), st.integers(0, 11))
def test_against_all_pairs(rows, cut):
    """The k-d tree finds what comparing all pairs finds, equal points included."""
    cut = min(cut, len(rows) - 1)
    found = diversity(SQUARE, trials_at(rows), range(cut, len(rows)))
    at = np.array(rows)
    gaps = np.linalg.norm(at[:, None] - at[None], axis=2)
    batch = [(gaps[i, j], i, j) for i in range(cut, len(rows)) for j in range(i + 1, len(rows))]
    assert (found.pair is None) == (not batch)
    if found.pair is not None:
        assert found.pair.distance == pytest.approx(min(batch)[0])
        assert gaps[found.pair.id, found.pair.other] == pytest.approx(found.pair.distance)
        assert found.pair.id < found.pair.other
    across = gaps[cut:, :cut]
    assert (found.earlier is None) == (across.size == 0)
    if found.earlier is not None:
        assert found.earlier.distance == pytest.approx(across.min())
        assert found.repeats == np.count_nonzero(across.min(axis=1) == 0.0)
    assert found.duplicates == len(rows) - cut - len(set(rows[cut:]))


def test_options_with_features_are_no_directions_of_their_own_alone(tmp_path):
    said = []
    for features in (None, {"a": [1.0, 2.0], "b": [3.0, 9.0], "c": [5.0, 1.0]}):
        study = covey.Study(
            covey.Space({"c": covey.Choice(["a", "b", "c"], features=features)}), seed=0
        )
        study.tell(study.ask(2), [1.0, 2.0])
        assert card(study).diversity.described == (features is not None)
        write_page(card(study), tmp_path / "page.html")
        said.append("where its features put it" in (tmp_path / "page.html").read_text())
    assert said == [False, True]


def test_what_was_never_run_does_not_count():
    trials = [*trials_at([(0.0, 0.0), (0.5, 0.5)]), Trial(2, Point(x=0.5, y=0.5), status="lost")]
    found = diversity(SQUARE, trials, [1, 2])
    assert (found.points, found.pair, found.duplicates) == (1, None, 0)


def test_no_batch_at_all():
    found = diversity(SQUARE, [], [])
    assert (found.points, found.width, found.pair, found.earlier) == (0, 2, None, None)


def test_along_a_part_of_a_mixture_the_others_make_up():
    space = covey.Space(
        {"a": covey.Real(0, 1), "b": covey.Real(0, 1), "c": covey.Real(0, 0.4)},
        where=[covey.Mixture(["a", "b", "c"], step=0.05)],
    )
    study = covey.Study(space, seed=0)
    batch = study.ask(8)
    study.tell(batch, [trial.point["b"] for trial in batch])
    study.add([{"a": 0.5, "b": 0.5, "c": 0.0}], [2.0])
    found = {one.name: one for one in sliced(study)}
    assert found["a"].at[0] == 0.0
    assert found["a"].at[-1] == 1.0
    assert len(found["a"].at) == 21
    assert found["a"].tied == ("b", "c")
    from covey.report.figures import of_slice

    assert "To make up for it, b, c change too." in of_slice(found["a"])
    # Nothing of c is no end that could be wider, but its 0.4 would be.
    assert edges(space, {"a": 1.0, "b": 0.0, "c": 0.0}, []) == ()
    (edge,) = edges(space, {"a": 0.3, "b": 0.3, "c": 0.4}, [])
    assert (edge.name, edge.side) == ("c", "upper")
