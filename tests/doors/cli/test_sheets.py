import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.cli import sheets
from covey.cli.exits import Stop


@given(st.lists(st.text(st.characters(exclude_categories=["C", "Z"])), min_size=1, max_size=4))
def test_what_is_written_reads_back(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("sheet") / "a.csv"
    names = [f"n{i}" for i in range(len(texts))]
    path.write_text(
        sheets.write([*names, "x"], [dict(zip(names, texts, strict=True)) | {"x": 1.5}])
    )
    found, (row,) = sheets.read(str(path))
    assert found == [*names, "x"]
    assert [row.cells[n] for n in names] == texts
    assert row.cells["x"] == "1.5"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-x", "@cmd", "=cmd|'/c calc'!A1"])
def test_no_cell_is_a_formula(text):
    assert f"'{text[0]}" in sheets.write(["a"], [{"a": text}])
    assert sheets.write(["a"], [{"a": -1.5}]) == "a\n-1.5\n"


def test_what_is_no_sheet_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(Stop, match="UTF-8"):
        sheets.read(str(path))
    path.write_text('a,b\n"1,2')
    with pytest.raises(Stop, match="not CSV"):
        sheets.read(str(path))
    with pytest.raises(Stop, match="cannot read"):
        sheets.read(str(tmp_path))


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfid,value\r\n1,2\r\n")
    assert sheets.read(str(path))[0] == ["id", "value"]
