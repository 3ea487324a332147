import pytest

from covey import Integer, Pool, Real, Space
from covey.cli.sheets import fixed_from_text, point_from_text
from covey.errors import SpaceError
from covey.space import Choice

SPACE = Space({"x": Real(0, 1), "n": Integer(1, 9), "c": Choice([True, 2, "2x", None])})


def test_text_becomes_values():
    cells = {"x": "0.5", "n": "3.0", "c": "None", "other": "?"}
    assert point_from_text(SPACE, cells) == {"x": 0.5, "n": 3, "c": None}
    assert point_from_text(SPACE, cells | {"c": "2"})["c"] == 2
    assert fixed_from_text(SPACE, {"c": "True"}) == {"c": True}


def test_mistakes_are_named():
    with pytest.raises(SpaceError, match="no column 'n'"):
        point_from_text(SPACE, {"x": "0.5"})
    with pytest.raises(SpaceError, match="x: 'a' is not a number"):
        point_from_text(SPACE, {"x": "a", "n": "1", "c": "2"})
    with pytest.raises(SpaceError, match="z"):
        fixed_from_text(SPACE, {"z": "1"})


def test_rows_of_a_pool_are_found_by_their_inputs():
    pool = Pool([{"t": 20, "dye": "1", "hot": True}, {"t": 40, "dye": "2", "hot": False}])
    cells = {"t": "40", "dye": "2", "hot": "false"}
    assert point_from_text(pool, cells) == {"t": 40, "dye": "2", "hot": False}
    assert fixed_from_text(pool, {"t": "40", "dye": "x"}) == {"t": 40.0, "dye": "x"}
    with pytest.raises(SpaceError, match="no column 't'"):
        point_from_text(pool, {"dye": "2"})
    with pytest.raises(SpaceError, match="t: 'warm' is not a number"):
        point_from_text(pool, cells | {"t": "warm"})


def test_blanks_tell_options_apart_where_they_must_and_are_passed_over_elsewhere():
    space = Space({"c": Choice(["a", " a", "'=x", "=x"]), "d": Choice(["b"])})
    assert point_from_text(space, {"c": " a", "d": " b "}) == {"c": " a", "d": "b"}
    assert point_from_text(space, {"c": "a", "d": "b"})["c"] == "a"
    pool = Pool([{"dye": " red"}, {"dye": "blue"}])
    assert point_from_text(pool, {"dye": " red"}) == {"dye": " red"}
    assert point_from_text(pool, {"dye": " blue "}) == {"dye": "blue"}


def test_an_option_is_found_as_a_spreadsheet_writes_it():
    options = Choice([True, False, 1.0, "2.50", None, "x"])
    space = Space({"c": options})

    def found(text):
        return point_from_text(space, {"c": text})["c"]

    assert [found(t) for t in ("TRUE", "false", "1", "2.5", "", " x ")] == list(options.options)
    with pytest.raises(SpaceError, match="'X' is not an option"):
        found("X")


def test_options_that_look_alike_are_not_guessed():
    space = Space({"c": Choice([1, "1", True, "True"])})
    for text in ("1", "True"):
        with pytest.raises(SpaceError, match="look alike"):
            point_from_text(space, {"c": text})
    assert point_from_text(Space({"c": Choice([1, 1.0])}), {"c": "1.0"})["c"] == 1.0
