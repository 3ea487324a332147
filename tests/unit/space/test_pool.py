from __future__ import annotations

import json
import os
import pickle

import numpy as np
import pytest

from covey.errors import SpaceError
from covey.space import Pool, Real, Space, space_from_description
from covey.space import pool as pool_module

ROWS = [
    {"t": 20, "solvent": "water", "wet": True, "id": "A1"},
    {"t": 40, "solvent": "acetone", "wet": True, "id": "A2"},
    {"t": 30, "solvent": "water", "wet": False, "id": "A3"},
]


@pytest.fixture
def plate():
    return Pool(ROWS, labels=["id"])


def test_inputs_are_scaled_or_one_hot_and_labels_unseen(plate):
    assert plate.names == ("t", "solvent", "wet", "id")
    assert plate.inputs == ("t", "solvent", "wet")
    assert plate.labels == ("id",)
    assert (plate.size, plate.width) == (3, 5)
    np.testing.assert_array_equal(plate.rows, [[0, 0, 1, 0, 1], [1, 1, 0, 0, 1], [0.5, 0, 1, 1, 0]])
    assert plate.rows.dtype == np.float64
    assert plate.columns_of("solvent") == slice(1, 3)
    with pytest.raises(SpaceError, match=r"'solvant'.*'solvent'"):
        plate.columns_of("solvant")


def test_columns_in_neither_role_are_carried_too():
    plate = Pool(ROWS, inputs=["wet", "t"])
    assert plate.inputs == ("wet", "t")
    assert plate.labels == ("solvent", "id")
    assert plate.point(0) == ROWS[0]
    np.testing.assert_array_equal(plate.rows[:, 2], [0, 1, 0.5])


def test_a_point_is_a_row_in_python_scalars(plate):
    assert [plate.point(i) for i in range(3)] == ROWS
    assert [type(value) for value in plate.point(np.int64(0)).values()] == [int, str, bool, str]
    for i in (3, -1):
        with pytest.raises(SpaceError, match=f"no candidate {i}; this pool has 0 to 2"):
            plate.point(i)


def test_an_array_of_candidates():
    pool = Pool(np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]]))
    assert pool.names == ("x0", "x1")
    np.testing.assert_array_equal(pool.rows, [[0, 0.5], [0.5, 0.5], [1, 0.5]])


def test_candidates_cannot_be_overwritten(plate):
    with pytest.raises(ValueError, match="read-only"):
        plate.rows[0, 0] = 3.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": []}, "at least one row"),
        ({"rows": ROWS, "labels": ["t", "solvent", "wet", "id"]}, r"t, solvent, wet, id.*inputs"),
        ({"rows": ROWS, "inputs": []}, r"t, solvent, wet, id.*inputs"),
        ({"rows": ROWS, "inputs": ["tt"]}, r"'tt'.*'t'"),
        ({"rows": ROWS, "labels": ["wett"]}, r"'wett'.*'wet'"),
        ({"rows": ROWS, "inputs": ["t"], "labels": ["t"]}, r"^t .*input.*label"),
        (
            {"rows": ROWS, "inputs": "t"},
            r"'t'.*\['t'\]",
        ),
        ({"rows": ROWS, "labels": "id"}, r"'id'.*\['id'\]"),
        ({"rows": [{"x": 1}, {}]}, r"row 1.* x"),
        ({"rows": np.array([[1.0], [np.nan]])}, r"row 1.*nan.*'x0'"),
        ({"rows": np.array([[1.0], [np.inf]])}, r"row 1.*inf.*'x0'"),
        (
            {"rows": [{"x": 1}, {"x": None}]},
            r"row 1.*None.*'x'",
        ),
    ],
)
def test_a_pool_refuses(arguments, message):
    with pytest.raises(SpaceError, match=message):
        Pool(**arguments)


def test_labels_may_be_missing_or_anything():
    pool = Pool([{"x": 0, "y": None}, {"x": 1, "y": [2]}], labels=["y"])
    assert pool.point(1) == {"x": 1, "y": [2]}


def test_text_with_too_many_values_is_refused_before_memory_runs_out(monkeypatch):
    monkeypatch.setattr(pool_module, "_MOST_CELLS", 50)
    rows = [{"smiles": f"C{i}", "x": i} for i in range(10)]
    with pytest.raises(SpaceError, match=r"'smiles'.*10.*\['smiles'\]"):
        Pool(rows)
    assert Pool(rows, labels=["smiles"]).width == 1


def test_identical_rows_are_one_candidate():
    rows = [*ROWS, {**ROWS[1], "id": "B1"}, {**ROWS[0], "id": "B2"}, ROWS[0]]
    with pytest.warns(
        UserWarning, match=r"rows 1 and 3 have the same inputs.*\(3 in all\) are left out"
    ) as caught:
        plate = Pool(rows, labels=["id"])
    assert caught[0].filename == __file__
    assert plate.size == 3
    assert [plate.point(i) for i in range(3)] == ROWS
    assert plate.locate([{**ROWS[1], "id": "B1"}]).tolist() == [1]


def test_the_model_cannot_tell_zeros_apart():
    with pytest.warns(UserWarning, match="rows 1 and 2"):
        assert Pool(np.array([[1.0], [0.0], [-0.0]])).size == 2


def test_encode_goes_on_beyond_the_pool(plate):
    point = {"t": 60, "solvent": "water", "wet": False}
    np.testing.assert_array_equal(plate.encode([point]), [[2, 0, 1, 1, 0]])
    assert plate.encode([]).shape == (0, 5)
    np.testing.assert_array_equal(plate.encode(ROWS), plate.rows)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (ROWS[0], r"got one dict.*encode\(\[point\]\)"),
        ([{"t": 20, "wet": True}], r"'solvent'.*wet"),
        ([{**ROWS[0], "solvent": "watre"}], r"'solvent': 'watre'.*'acetone', 'water'"),
        ([{**ROWS[0], "t": "hot"}], r"'t'.*'hot'"),
    ],
)
def test_encode_says_what_is_wrong(plate, points, message):
    with pytest.raises(SpaceError, match=message):
        plate.encode(points)


def test_locate_finds_candidates_and_nothing_else(plate):
    elsewhere = {"t": 25, "solvent": "water", "wet": True}
    found = plate.locate([ROWS[2], elsewhere, {**ROWS[0], "t": np.float64(20.0)}])
    assert found.tolist() == [2, -1, 0]
    assert found.dtype == np.intp
    assert plate.locate([]).shape == (0,)


def test_locate_is_not_fooled_by_a_constant_column():
    pool = Pool(np.array([[1.0, 5.0], [2.0, 5.0]]))
    assert pool.locate([{"x0": 1, "x1": 5}, {"x0": 1, "x1": 6}]).tolist() == [0, -1]


def test_every_row_of_a_large_pool_is_found():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 3)) * [1e-9, 1.0, 1e9]
    pool = Pool(rows)
    points = [{"x0": a, "x1": b, "x2": c} for a, b, c in rows[::100].tolist()]
    np.testing.assert_array_equal(pool.locate(points), np.arange(0, 20_000, 100))


def test_check_gives_the_full_row_of_the_pool(plate):
    assert plate.check({"wet": False, "t": 30.0, "solvent": np.str_("water")}) == ROWS[2]
    with pytest.raises(SpaceError, match=r"id='A3'.*'wrong'"):
        plate.check({**ROWS[2], "id": "wrong"})


def test_check_of_a_point_elsewhere_needs_its_inputs_only(plate):
    point = {"wet": False, "t": 31, "solvent": "water"}
    assert plate.check(point) == point
    assert list(plate.check(point)) == ["t", "solvent", "wet"]
    assert plate.check({**point, "id": np.str_("new")}) == {**point, "id": "new"}
    assert plate.check({"t": 31}, partial=True) == {"t": 31}


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ([20], r"\{'x0': 0\.5\}.*\[20\]"),
        ({**ROWS[0], "temp": 1}, r"'temp'.*wet"),
        ({"t": 20}, "'solvent'"),
        ({**ROWS[0], "t": float("nan")}, r"'t'.*got nan"),
        ({**ROWS[0], "wet": 1}, r"'wet'.*False"),
    ],
)
def test_check_says_what_is_wrong(plate, point, message):
    with pytest.raises(SpaceError, match=message):
        plate.check(point)


def test_matching_holds_inputs_and_labels():
    pool = Pool(
        [{**row, "n": i, "ok": i > 0, "any": [i]} for i, row in enumerate(ROWS)],
        labels=["id", "n", "ok", "any"],
    )
    cases = [
        ({}, [1, 1, 1]),
        ({"solvent": "water"}, [1, 0, 1]),
        ({"solvent": "water", "wet": True}, [1, 0, 0]),
        ({"t": 40.0}, [0, 1, 0]),
        ({"t": 41}, [0, 0, 0]),
        ({"id": "A3"}, [0, 0, 1]),
        ({"n": 1.0}, [0, 1, 0]),
        ({"n": "1"}, [0, 0, 0]),
        ({"n": True}, [0, 0, 0]),
        ({"ok": True}, [0, 1, 1]),
        ({"ok": 1}, [0, 0, 0]),
        ({"any": [2]}, [0, 0, 1]),
    ]
    for fixed, expected in cases:
        mask = pool.matching(fixed)
        assert mask.dtype == np.bool_
        assert mask.astype(int).tolist() == expected, fixed
    with pytest.raises(SpaceError, match=r"'q'.*wet.*ok"):
        pool.matching({"q": 1})
    with pytest.raises(SpaceError, match="'solvent': 'oil'"):
        pool.matching({"solvent": "oil"})


def test_json_round_trip(plate):
    for row in ROWS:
        assert plate.from_json(json.loads(json.dumps(plate.to_json(row)))) == row
    elsewhere = {"t": 0.1 + 0.2, "solvent": "water", "wet": True}
    assert plate.from_json(json.loads(json.dumps(plate.to_json(elsewhere)))) == elsewhere
    assert plate.from_json({"t": 20}, partial=True) == {"t": 20}


def test_labels_json_cannot_hold_come_back_from_the_pool():
    pool = Pool([{"x": 0, "y": float("nan"), "z": [1]}, {"x": 1, "y": 2.0, "z": 1}], inputs=["x"])
    written = pool.to_json(pool.point(0))
    assert written == {"x": 0}
    again = pool.from_json(written)
    assert np.isnan(again["y"])
    assert again["z"] == [1]


def test_description_and_fingerprint(plate, tmp_path):
    described = plate.describe()
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    assert described["kind"] == "pool"
    assert described["columns"] == ["t", "solvent", "wet", "id"]
    assert described["inputs"] == ["t", "solvent", "wet"]
    assert described["n"] == 3
    assert described["opaque"] is True
    assert "path" not in described
    others = [
        Pool(ROWS[::-1], labels=["id"]),
        Pool(ROWS[:2], labels=["id"]),
        Pool(ROWS, inputs=["t", "wet"]),
        Pool(ROWS, inputs=["solvent", "t", "wet"]),
        Pool([{**row, "id": i} for i, row in enumerate(ROWS)], labels=["id"]),
        Pool([{**row, "t": row["t"] + 1} for row in ROWS], labels=["id"]),
    ]
    assert len({pool.fingerprint for pool in [plate, *others]}) == 7
    assert Pool([{**row, "t": float(row["t"])} for row in ROWS], labels=["id"]) == plate


def test_a_file_may_move_and_stay_the_same_pool(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("t,s\n1,u\n2,v\n")
    a, b = Pool(tmp_path / "a.csv"), Pool(tmp_path / "b.csv")
    assert a.describe()["path"] != b.describe()["path"]
    assert a.describe()["opaque"] is False
    assert a == b
    assert a == Pool([{"t": 1, "s": "u"}, {"t": 2, "s": "v"}])
    assert hash(a) == hash(b)
    assert a != "pool"


def changed(path, text, **options):
    """A pool of a file, and the file with another content at another time."""
    path.write_text("id,t,s\na,1,u\nb,2,v\n\nc,3,u\n")
    pool = Pool(path, labels=["id"], **options)
    pool.verify_source()
    path.write_text(text)
    os.utime(path, ns=(1, 1))
    return pool


@pytest.mark.parametrize(
    "text",
    [
        "id,t,s\na,1,u\nb,2,v\nc,4,u\n",
        "id,t,s\na,1,u\nB,2,v\nc,3,u\n",  # a label
        "id,t,s\na,1,u\nb,2,v\n",
        "id,t,s\nc,3,u\na,1,u\nb,2,v\n",
        "id,t\na,1\nb,2\nc,3\n",
        "id,t,s,z\na,1,u,1\nb,2,v,1\nc,3,u,1\n",
        "id,t,s\na,1,u\nb,,v\nc,3,u\n",
        "",
    ],
)
def test_a_file_that_has_changed_is_named(tmp_path, text):
    pool = changed(tmp_path / "pool.csv", text)
    with pytest.raises(SpaceError, match=r"pool\.csv has changed"):
        pool.verify_source()
    assert pool.point(2) == {"id": "c", "t": 3, "s": "u"}  # the rows are as they were


def test_a_file_that_was_touched_or_laid_out_anew_is_the_same(tmp_path, monkeypatch):
    pool = changed(tmp_path / "pool.csv", 'id,t,s\r\na,1.0,u\r\n"b",2,v\r\nc,3,u\r\n')
    pool.verify_source()
    monkeypatch.setattr(pool_module, "read_rows", None)  # known by now: not read again
    pool.verify_source()


def test_a_file_that_is_gone_is_noted_once(tmp_path, caplog):
    path = tmp_path / "pool.csv"
    pool = changed(path, "")
    path.unlink()
    pool.verify_source()
    pool.verify_source()
    assert len(caplog.messages) == 1
    assert "cannot look at" in caplog.messages[0]
    path.write_text("id,t,s\n")
    with pytest.raises(SpaceError, match=r"pool\.csv has changed"):
        pool.verify_source()


def test_rows_in_memory_have_no_file_to_change(plate):
    plate.verify_source()


def test_a_pool_pickles(plate):
    again = pickle.loads(pickle.dumps(plate))
    assert again == plate
    np.testing.assert_array_equal(again.rows, plate.rows)


def test_a_pool_prints_its_columns(plate):
    assert repr(plate) == "Pool(3 candidates, inputs=['t', 'solvent', 'wet'], labels=['id'])"
    assert repr(Pool(np.eye(2))) == "Pool(2 candidates, inputs=['x0', 'x1'])"


def test_a_missing_label_does_not_contradict_itself():
    pool = Pool([{"a": 1.0, "note": float("nan")}, {"a": 2.0, "note": 3.0}], labels=["note"])
    assert pool.check(pool.point(0))["a"] == 1.0


# Columns in logs

DOSES = [{"dose": dose, "dye": "red"} for dose in (0.001, 0.01, 1.0)]


def test_a_column_may_be_seen_in_logs():
    pool = Pool(DOSES, labels=["dye"], log=["dose"])
    np.testing.assert_allclose(pool.rows[:, 0], [0.0, 1 / 3, 1.0])
    assert pool.log == ("dose",)
    assert pool.locate(DOSES).tolist() == [0, 1, 2]
    assert repr(pool) == "Pool(3 candidates, inputs=['dose'], labels=['dye'], log=['dose'])"
    assert pool != Pool(DOSES, labels=["dye"])
    assert "log" not in Pool(DOSES).describe()


def test_every_row_of_many_is_found_in_logs():
    x = np.random.default_rng(0).lognormal(size=(2000, 1))
    pool = Pool(x, log=["x0"])
    assert pool.locate([{"x0": float(v)} for v in x[:, 0]]).tolist() == list(range(2000))


def test_a_pool_in_logs_is_built_again_from_its_description(tmp_path):
    path = tmp_path / "doses.csv"
    path.write_text("dose,t\n0.1,1\n1,2\n10,3\n")
    pool = Pool(path, log=["dose"])
    again = space_from_description(json.loads(json.dumps(pool.describe())))
    assert again == pool
    np.testing.assert_array_equal(again.rows, pool.rows)
    pool.verify_source()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"log": "dose"}, r"'dose'.*\['conc'\]"),
        ({"log": ["dos"]}, r"'dos'.*'dose'"),
        ({"log": ["dye"]}, r"log .*'dye'"),
        ({"log": ["dye"], "labels": ["dye"]}, r"'dye'.* dose"),
    ],
)
def test_a_column_that_cannot_be_in_logs_is_refused(arguments, reason):
    with pytest.raises(SpaceError, match=reason):
        Pool(DOSES, **arguments)


def test_a_log_scale_needs_numbers_above_zero():
    with pytest.raises(SpaceError, match=r"row 1.*0\.0.*'dose'"):
        Pool([{"dose": 1.0}, {"dose": 0.0}], log=["dose"])
    with pytest.raises(SpaceError, match=r"'dose'.*got -1\.0"):
        Pool(DOSES, log=["dose"]).encode([{"dose": -1.0, "dye": "red"}])


def test_a_constant_column_in_logs():
    assert (
        Pool([{"c": 3.0, "t": 1}, {"c": 3.0, "t": 2}], log=["c"]).rows[:, 0].tolist() == [0.5] * 2
    )


def test_a_pool_says_of_itself_what_a_space_may_have():
    """So whoever is given either asks it, and not of which class it is."""
    table, space = Pool([{"x": 1.0, "note": "a"}], labels=["note"]), Space({"x": Real(0, 1)})
    nothing = (table.presence, table.parameters, table.constraints, table.mixtures)
    assert nothing == (None, {}, (), ())
    assert (space.inputs, table.inputs) == (("x",), ("x",))
    assert (space.path, table.path) == (None, None)
    for either in (space, table):
        either.verify_source()
