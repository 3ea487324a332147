import covey
from covey.report.slices import axes_of


def test_axes_of_a_space():
    space = covey.Space(
        {
            "lr": covey.Real(1e-5, 1e-1, log=True),
            "few": covey.Integer(1, 4),
            "many": covey.Integer(0, 10_000),
            "opt": covey.Choice(["adam", "sgd"]),
            "only": covey.Choice(["this"]),
            "vast": covey.Choice(list(range(500))),
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


def test_a_small_pool_is_taken_value_by_value():
    (axis,) = axes_of(covey.Pool([{"t": 3}, {"t": 1}, {"t": 2}]))
    assert axis.values == (1, 2, 3)
