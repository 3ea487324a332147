from __future__ import annotations

import os

import pytest

from covey.space.reading import Source


def test_a_source_is_a_file_at_a_moment(tmp_path):
    file = tmp_path / "pool.csv"
    file.write_text("x\n1\n")
    before = Source.of(file)
    assert (before.path, before.size) == (str(file), 4)
    assert Source.of(file) == before
    os.utime(file, ns=(1, 1))
    assert Source.of(file) != before
    file.unlink()
    with pytest.raises(FileNotFoundError):
        Source.of(file)


def test_a_relative_path_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "pool.csv"
    file.write_text("x\n1\n")
    assert Source.of(file.relative_to(tmp_path)).path == str(file)


def test_rows_of_a_csv_file_are_found_by_their_lines(tmp_path):
    file = tmp_path / "pool.csv"
    file.write_text("x\n1\n\n2\n")
    source = Source.of(file)
    assert source.where(1) == f"line 4 of {file}"
    file.unlink()
    assert source.where(1) == "row 1 (the first is row 0)"


@pytest.mark.parametrize("name", ["a.parquet", "a.pq", "a.PARQUET"])
def test_the_name_says_what_a_file_is(name):
    source = Source(name, 0, 0)
    assert source.is_parquet
    assert source.where(1) == f"row 1 (the first is row 0) of {name}"
    assert not Source("a.csv", 0, 0).is_parquet
