from __future__ import annotations

import numpy as np
import pytest

from covey.errors import SpaceError
from covey.space import pool as roles
from covey.space.pool import chosen_inputs, refuse_too_wide
from covey.space.reading import Source
from covey.space.table import OneHot, Scaled, Table

TABLE = Table({name: np.arange(2) for name in "tsx"}, Source("pool.csv", 1, 1))


def test_all_columns_are_inputs_but_for_labels():
    assert chosen_inputs(TABLE, None, ()) == ("t", "s", "x")
    assert chosen_inputs(TABLE, None, ["s"]) == ("t", "x")
    assert chosen_inputs(TABLE, ["x", "t", "x"], ()) == ("x", "t")


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (["z"], (), "unknown column 'z'; pool.csv has t, s, x"),
        (None, ["T"], r"unknown column 'T'; pool.csv has t, s, x. Did you mean 't'\?"),
        ("t", (), r"inputs must be a list of columns, got 't'; write \['t'\]"),
        (["t"], ["t"], "t cannot be both an input and a label"),
        ([], (), "no inputs are left"),
    ],
)
def test_roles_are_checked(inputs, labels, message):
    with pytest.raises(SpaceError, match=message):
        chosen_inputs(TABLE, inputs, labels)


def test_what_does_not_fit_is_refused(monkeypatch):
    features = {"t": Scaled(0.0, 1.0), "s": OneHot(tuple("abcd"))}
    monkeypatch.setattr(roles, "_MOST_CELLS", 50)
    refuse_too_wide(features, 10)
    with pytest.raises(SpaceError, match=r"more than 2 GiB; the input 's' alone needs 4 columns"):
        refuse_too_wide(features, 11)
