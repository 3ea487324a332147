"""Abalone: every row an arm, the oldest the optimum."""

from __future__ import annotations

import hashlib
import os

import pytest
from papers.kathuria2016.data import FILES, Source
from papers.kathuria2016.problems.abalone import abalone

ROWS = "M,0.5,0.4,0.1,0.5,0.2,0.1,0.15,15\nF,0.3,0.2,0.1,0.2,0.1,0.1,0.07,7\n"
ROWS += "I,0.3,0.2,0.1,0.2,0.1,0.1,0.07,4\n"


def test_the_sex_is_three_columns_and_the_value_is_rings(tmp_path, monkeypatch):
    known = hashlib.sha256(ROWS.encode()).hexdigest()
    monkeypatch.setitem(FILES, "abalone/abalone.data", Source("", known))
    (tmp_path / "abalone").mkdir()
    (tmp_path / "abalone" / "abalone.data").write_text(ROWS)
    problem = abalone(tmp_path)
    assert (problem.space.size, problem.space.width, problem.optimum) == (3, 10, 15.0)
    # The last two snails differ in their sex alone.
    assert [problem.evaluate(problem.space.point(i)) for i in range(3)] == [15.0, 7.0, 4.0]


def test_the_real_table_has_one_oldest_snail():
    if "COVEY_DATA" not in os.environ:
        pytest.skip("COVEY_DATA names no folder with abalone/abalone.data")
    problem = abalone()
    values = [problem.evaluate(problem.space.point(i)) for i in range(problem.space.size)]
    assert len(values) == 4177
    assert values.count(problem.optimum) == 1
    assert values.index(29.0) == 480
    assert problem.noise == 0.0
