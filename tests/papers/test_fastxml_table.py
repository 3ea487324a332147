"""The table of FastXML: made once, gone on with after a stop, and a pool to choose from."""

from __future__ import annotations

import argparse
import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix

pytest.importorskip("numba", reason="numba is not installed: pip install numba")

from papers.kathuria2016.data import DataError
from papers.kathuria2016.fastxml import table
from papers.kathuria2016.fastxml.forest import Points, precision, train
from papers.kathuria2016.fastxml.settings import GRID, Cuts, Grid, Settings
from papers.kathuria2016.problems.fastxml import PARAMETERS, from_table

SMALL = Grid((0.5, 2.0), (0.3, 3.0), Cuts((1, 2), (2, 10), (1, 4)))


def points(seed):
    rng = np.random.default_rng(seed)
    x = (rng.random((60, 12)) < 0.3).astype(float)
    return Points(csr_matrix(x), csr_matrix(x[:, :5] * (rng.random((60, 5)) < 0.7)))


DATA = (points(0), points(1))


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "tables" / "toy.jsonl"
    list(table.make("toy", made, SMALL, 3, DATA))
    return made


def test_a_line_has_what_made_it(path):
    lines = table.read(path)
    assert [(row["bias"], row["log_loss_coeff"]) for row in lines] == SMALL.pairs
    assert np.shape(lines[0]["hits"]) == (2, 2, 2)
    assert lines[0]["seed"] == 3
    assert {"numba", "numpy", "covey", "python"} <= set(lines[0]["versions"])
    assert lines[0]["command"] == "python -m papers.kathuria2016 table toy --seed 3"


def test_a_stopped_table_is_gone_on_with(path):
    whole = path.read_text().splitlines(keepends=True)
    path.write_text("".join(whole[:2]) + whole[2][:40])
    assert len(table.read(path)) == 2
    made = list(table.make("toy", path, SMALL, 3, DATA))
    assert [row["hits"] for row in made] == [json.loads(line)["hits"] for line in whole[2:]]
    assert [row["hits"] for row in table.read(path)] == [json.loads(s)["hits"] for s in whole]
    assert list(table.make("toy", path, SMALL, 3, DATA)) == []


def test_another_table_is_not_mixed_in(path):
    with pytest.raises(DataError, match="holds another table"):
        list(table.make("toy", path, SMALL, 4, DATA))


def test_the_pool_looks_up_what_training_gives(path):
    problem = from_table("toy", "Toy", path, trainings=4)
    pool = problem.space
    assert pool.size == 32
    assert pool.labels == PARAMETERS
    for i in (0, 13, 31):
        point = pool.point(i)
        settings = Settings(**{name: point[name] for name in PARAMETERS})
        truth = 100.0 * precision(train(DATA[0], settings, seed=3), DATA[1])
        assert problem.evaluate(point) == pytest.approx(truth)
    values = [problem.evaluate(pool.point(i)) for i in range(pool.size)]
    assert max(values) == problem.optimum == problem.grid
    assert min(values) < problem.optimum


def test_parameters_are_seen_in_logs(path):
    pool = from_table("toy", "Toy", path, trainings=4).space
    assert pool.inputs == tuple(f"log_{name}" for name in PARAMETERS)
    assert (pool.rows.min(axis=0) == 0.0).all()
    assert (pool.rows.max(axis=0) == 1.0).all()


def test_an_unfinished_table_is_no_problem_yet(path):
    with pytest.raises(DataError, match=r"4 of 49 trainings.*papers.kathuria2016 table toy"):
        from_table("toy", "Toy", path)


def test_the_grid_holds_the_defaults():
    default = Settings()
    assert (default.bias, default.log_loss_coeff) in GRID.pairs
    assert default.num_tree in GRID.cuts.num_tree
    assert default.max_leaf in GRID.cuts.max_leaf
    assert default.lbl_per_leaf in GRID.cuts.lbl_per_leaf


def test_the_command_makes_a_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(table, "GRID", SMALL)
    monkeypatch.setattr(table, "load", lambda name, folder: DATA)
    parser = argparse.ArgumentParser()
    table.declare(parser)
    out = tmp_path / "bibtex.jsonl"
    options = parser.parse_args(["bibtex", "--out", str(out), "--data", "FOLDER"])
    assert table.run(options) == 0
    assert len(table.read(out)) == 4
    assert "4/4" in capsys.readouterr().out
