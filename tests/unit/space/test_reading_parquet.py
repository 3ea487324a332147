from __future__ import annotations

import datetime
import sys

import numpy as np
import pytest

from covey.errors import MissingExtraError, SpaceError
from covey.space import reading as reading_parquet
from covey.space.reading import read_parquet, read_rows
from covey.space.table import TEXT

DAY = datetime.date(2024, 1, 1)
ROWS = [
    {"t": i, "x": i / 7, "dye": "rgb"[i % 3], "note": None if i == 5 else f"n{i}", "ok": i > 2}
    for i in range(9)
]


@pytest.fixture
def pa():
    return pytest.importorskip("pyarrow", reason="pip install 'covey[parquet]'")


def write(pa, path, rows):
    from pyarrow import parquet

    parquet.write_table(rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("size", [2, 1000])
def test_the_same_columns_whatever_the_batch(pa, tmp_path, monkeypatch, size):
    monkeypatch.setattr(reading_parquet, "_PARQUET_ROWS", size)
    rows = [{**row, "gap": None if row["t"] < 4 else row["t"], "day": DAY} for row in ROWS]
    table = read_rows(write(pa, tmp_path / "pool.parquet", rows))
    assert [table.row(i) for i in range(9)] == rows
    kinds = {name: column.dtype for name, column in table.columns.items()}
    assert kinds == {
        "t": np.int64,
        "x": np.float64,
        "dye": TEXT,
        "note": TEXT,
        "ok": np.bool_,
        "gap": np.object_,
        "day": np.object_,
    }
    assert table.sha256() == read_rows(rows).sha256()
    assert table.path == str(tmp_path / "pool.parquet")


def test_small_and_odd_types(pa, tmp_path):
    columns = {
        "f": pa.array([1.5, 2.5], pa.float32()),
        "u": pa.array([1, 2**64 - 1], pa.uint64()),
        "d": pa.array(["a", "b"]).dictionary_encode(),
        "i": pa.array([1, 2], pa.int8()),
    }
    read_back = read_parquet(write(pa, tmp_path / "a.pq", pa.table(columns)))
    assert {name: column.tolist() for name, column in read_back.items()} == {
        "f": [1.5, 2.5],
        "u": [1, 2**64 - 1],
        "d": ["a", "b"],
        "i": [1, 2],
    }


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"'covey\[parquet\]'"):
        read_parquet(tmp_path / "pool.parquet")


@pytest.mark.parametrize("keep", [0, 2, 100, 0.5, -1])
def test_a_file_that_is_cut_short(pa, tmp_path, keep):
    path = write(pa, tmp_path / "pool.parquet", ROWS)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(SpaceError, match=r"pool.parquet is not a Parquet file .* copy it, again"):
        read_parquet(path)


def test_a_file_damaged_in_the_middle(pa, tmp_path):
    path = write(pa, tmp_path / "pool.parquet", ROWS)
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + b"\xff" * 60 + whole[64:])
    with pytest.raises(SpaceError, match=r"pool.parquet is not a Parquet file that can be read"):
        read_parquet(path)


def test_a_file_without_rows_or_with_one_name_twice(pa, tmp_path):
    empty = pa.table({"x": pa.array([], pa.float64())})
    with pytest.raises(SpaceError, match=r"pool\.parquet .*1 columns.* 0 rows"):
        read_parquet(write(pa, tmp_path / "pool.parquet", empty))
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    with pytest.raises(SpaceError, match=r"pool\.parquet.*'x'"):
        read_parquet(write(pa, tmp_path / "pool.parquet", twice))


def test_a_parquet_file_with_a_flipped_bit_is_ours_to_refuse(tmp_path, pa):
    """A name or a text that is no UTF-8 any more."""
    whole = tmp_path / "pool.parquet"
    write(pa, whole, [{"temperature": 1.0, "dye": "solvent"}, {"temperature": 2.0, "dye": "b"}])
    data = whole.read_bytes()
    broken = tmp_path / "broken.parquet"
    refused = 0
    for place in (i for i in range(len(data)) if data[i : i + 7] in (b"tempera", b"solvent")):
        broken.write_bytes(data[:place] + bytes([data[place] ^ 0x80]) + data[place + 1 :])
        try:
            read_parquet(broken)
        except SpaceError:
            refused += 1
    assert refused


def test_a_note_of_pandas_that_makes_no_sense_is_passed_over(tmp_path, pa):
    from pyarrow import parquet

    table = pa.table({"a": [1.0, 2.0]})
    for note in (b"{", b"[]", b"\xff", b'{"columns": [1]}', b'{"index_columns": 3}', b"null"):
        file = tmp_path / "pool.parquet"
        parquet.write_table(table.replace_schema_metadata({b"pandas": note}), file)
        assert list(read_parquet(file)) == ["a"]
