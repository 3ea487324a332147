from __future__ import annotations

import csv

import pytest

from covey.errors import SpaceError
from covey.space.reading_csv import first_record, line_of, records, start_of


def written(tmp_path, data: bytes):
    file = tmp_path / "pool.csv"
    file.write_bytes(data)
    return file


def test_rows_begin_on_lines_whatever_comes_between(tmp_path):
    file = written(tmp_path, b'\xef\xbb\xbf\n"a\nb",c\n1,2\n\n\n"3\n\n",4\r\n5,6')
    assert [line_of(file, row) for row in range(4)] == [4, 7, 10, None]


def test_a_byte_order_mark_is_passed_over_once(tmp_path):
    file = written(tmp_path, b"\xef\xbb\xbfx,y\n")
    assert start_of(file) == 3
    assert first_record(file) == ["x", "y"]
    assert first_record(written(tmp_path, b"\n\nx\n")) == ["x"]
    assert first_record(written(tmp_path, b"\n\n")) == []


def test_records_go_on_from_a_byte(tmp_path):
    with records(written(tmp_path, b"x,y\n1,2\n3,4\n"), 8) as reader:
        assert list(reader) == [["3", "4"]]


def test_what_is_no_text_is_named_by_its_line(tmp_path):
    file = written(tmp_path, b"x,y\n1,\xc3\xa9\n2,\xe9\n")
    with (
        pytest.raises(SpaceError, match=r"line 3 of .*pool.csv is not CSV text in UTF-8"),
        records(file, 0) as reader,
    ):
        list(reader)
    assert line_of(file, 5) is None


def test_a_quote_that_is_not_closed(tmp_path):
    file = written(tmp_path, b'x\n"' + b"a" * (csv.field_size_limit() + 1))
    with (
        pytest.raises(SpaceError, match=r"field larger than .*a quote that is not closed"),
        records(file, 0) as reader,
    ):
        list(reader)


def test_a_file_that_is_gone_has_no_lines(tmp_path):
    assert line_of(tmp_path / "gone.csv", 0) is None
