"""Block by block a file is read as in one piece, whether it is as it should be or not."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.errors import SpaceError
from covey.space import reading_csv
from covey.space.reading_csv import read_csv
from covey.space.table import Table, as_column

LIMIT = 500

ODD = {
    "plain": "x,s\n1,a\n2,b\n",
    "quotes": 'x,s\n1,"a, b"\n2,"say ""so"""\n3,""\n4,"""q"""\n',
    "lines in cells": 'x,s\n1,"a\nb"\n2,"c\r\nd"\n3,"\n"\n',
    "quotes where they should not be": 'x,s\n1,a"b\n2,"a"b\n3, "c"\n4,d""\n',
    "a quote not closed": 'x,s\n1,a\n2,"b\n3,c\n',
    "empty cells": "x,s\n1,\n,b\n, \n",
    "integers with gaps": "x,y\n1,1\n,2\n3,\n",
    "late text": "x,y\n" + "1,2\n" * 20 + "a,3\n",
    "underscores": "x,y\n1_000,1\n2_000,2_0\n",
    "a byte order mark": "\ufeffx,s\n1,a\n",
    "a mark and quotes": '\ufeff"x","s"\n1,a\n',
    "windows": "x,s\r\n1,a\r\n\r\n2,b\r\n",
    "old mac": "x,s\r1,a\r2,b\r",
    "mixed ends": "x,s\n1,a\r2,b\r\n3,c",
    "blank lines": "\n\nx,s\n\n1,a\n\n\n2,b\n\n",
    "blank lines of one column": '\nx\n1\n\n2\n""\n\n',
    "spaces": "x,s\n1 , a\n 2,b \n\t3,\t\n",
    "a line of spaces": "x,s\n1,a\n  \n",
    "too few": "x,y,z\n1,2,3\n4,5\n",
    "too many": "x,y\n1,2\n3,4,5\n",
    "trailing commas": "x,y\n1,2,\n",
    "booleans": "x,b\n1,True\n2,false\n",
    "unicode": "x,größe\n1,é\n2,\U0001f9ea\n٣,\u2028\n4,\u00a0\n",
    "signs": "x,y\n+1,+1.5\n-2,-.5\n-0,5.\n",
    "large integers": f"x,y\n{2**63},{2**63 - 1}\n1,{-(2**63)}\n",
    "huge": f"x,y\n{'9' * 400},1e999\n1.5,-1e999\n",
    "hexadecimal": "x,y\n0x1F,1\n2,0X1\n",
    "no numbers": "x,y\nnan(1),nan\nnan,NaN\n",
    "infinities": "x,y\ninf,Infinity\n-INF,+inf\n",
    "zeros before": "x,y\n007,00.5\n010,1e05\n",
    "zero bytes": "x,s\n1,a\0\n2,\0\n",
    "a header only": "x,s\n",
    "a header without its end": "x,s",
    "no end": "x,s\n1,a",
    "one cell": "x\n1",
    "a long cell": "x,s\n1," + "a" * (LIMIT + 1) + "\n",
    "a cell just right": 'x,s\n1,"' + "a" * (LIMIT - 1) + '"\n',
    "bytes that are not text": b"x,s\n1,\xc3\xa9\n2,\xe9\n",
    "half a surrogate": b"x,s\n1,\xed\xa0\x80\n",
}


@pytest.fixture
def _limit():
    """Cells of 128 KiB would do as well, but take long."""
    usual = csv.field_size_limit(LIMIT)
    yield
    csv.field_size_limit(usual)


def outcome(file: Path) -> object:
    """All that can be seen of a file as it is read."""
    try:
        table = Table(read_csv(file))
    except SpaceError as error:
        return str(error)
    columns = table.columns.items()
    return [(n, str(c.dtype), str(c.tolist()), table.sha256()) for n, c in columns]


def whole(text: str) -> object:
    """The plain way: all rows of csv at once, all cells of a column at once."""
    header, *rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    seen = []
    for j, name in enumerate(header):
        cells = [row[j] for row in rows]
        filled = iter(_values([cell for cell in cells if cell.strip()]))
        column = as_column([next(filled) if cell.strip() else None for cell in cells])
        seen.append((name, str(column.dtype), str(column.tolist())))
    return seen


def _values(cells: list[str]) -> list[object]:
    for parse in (int, float):
        try:
            numbers = list(map(parse, cells))
        except ValueError:
            continue
        return cells if "_" in "".join(cells) else numbers
    return cells


@pytest.mark.usefixtures("_limit")
@pytest.mark.parametrize("name", ODD)
def test_every_size_of_block_reads_the_same(tmp_path, monkeypatch, name):
    file = tmp_path / "pool.csv"
    data = ODD[name]
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    plain = outcome(file)
    for rows in (1, 7, 64):
        monkeypatch.setattr(reading_csv, "_ROWS", rows)
        assert outcome(file) == plain
    if isinstance(data, str) and not isinstance(plain, str):
        assert [column[:3] for column in plain] == whole(data.removeprefix("\ufeff"))


ALPHABET = st.sampled_from([*'a1,"\n', "\r", "\r\n", " ", ".", "é", "-", "_", "2,3\n", ',"b",'])


@given(st.lists(ALPHABET, max_size=40), st.integers(1, 40))
def test_every_size_of_block_reads_the_same_whatever_the_text(pieces, rows):
    data = ("x,y\n1,2\n" + "".join(pieces)).encode()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        file = Path(folder) / "pool.csv"
        file.write_bytes(data)
        plain = outcome(file)
        patch.setattr(reading_csv, "_ROWS", rows)
        assert outcome(file) == plain
