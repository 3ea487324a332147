import os
import stat
from pathlib import Path

import pytest

from covey.cli.output import Output, Stop


def test_what_cannot_be_written_is_said(tmp_path):
    with pytest.raises(Stop, match="cannot write"):
        Output(Path("/proc/a.csv")).write("x")
    with pytest.raises(Stop, match="is a folder"):
        Output(tmp_path).write("x")
    with pytest.raises(Stop, match="there is no folder"):
        Output(tmp_path / "no" / "a.csv").write("x")


def test_a_file_is_replaced_where_nothing_is_lost(tmp_path):
    path = tmp_path / "a.csv"
    for before in (None, "", "new"):
        if before is not None:
            path.write_text(before)
        Output(path).write("new")
        assert path.read_text() == "new"
    path.write_text("mine")
    with pytest.raises(Stop, match=r"a\.csv holds something .* name another file"):
        Output(path).write("new")
    Output(path, ours=lambda file: file.read() == b"mine").write("new")
    assert path.read_text() == "new"


def test_a_file_that_fills_while_the_command_works_is_kept(tmp_path):
    path = tmp_path / "a.csv"
    output = Output(path)
    output.require_free()
    path.write_text("mine")
    with pytest.raises(Stop, match="is kept"):
        output.write("new")
    assert path.read_text() == "mine"


def test_a_link_does_not_hide_what_is_behind_it(tmp_path):
    (tmp_path / "a").write_text("mine")
    (tmp_path / "link").symlink_to("a")
    with pytest.raises(Stop, match="is kept"):
        Output(tmp_path / "link").write("new")
    with pytest.raises(Stop, match="still needed"):
        Output(tmp_path / "link", (tmp_path / "a",)).require_place()


def test_a_journal_that_does_not_exist_yet_is_not_written_over_either(study):
    assert study("ask", "--out", "covey.jsonl").code == 2
    assert not Path("covey.jsonl").exists()


@pytest.mark.parametrize("words", [("ask",), ("next",), ("export",)])
def test_a_workbook_is_not_promised(study, words):
    study("ask")
    done = study(*words, "--out", "plate.xlsx")
    assert done.code == 2
    assert "name it plate.csv" in done.err
    assert not Path("plate.xlsx").exists()


def test_a_device_is_written_into_by_every_command(study):
    study("ask")
    out = "/dev/null"
    if os.geteuid() == 0:  # who alone can destroy the real one, and can make another
        os.mknod("null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        out = "null"
    for words in (("ask",), ("next", "--batch", "2"), ("export",), ("report",)):
        assert study(*words, "--out", out).code == 0, words
        assert stat.S_ISCHR(Path(out).stat().st_mode)


def test_a_plate_that_was_not_measured_yet_is_not_replaced_by_another(call):
    """Files only: there is no journal that knows what is on the plate in the laboratory."""
    words = ("next", "--real", "x=0:1", "--batch", "2", "--out", "p.csv")
    assert call(*words).code == 0
    blank = Path("p.csv").read_text()
    assert call(*words).code == 0  # the same plate: nothing is lost
    done = call(*words, "--seed", "5")
    assert done.code == 3
    assert "p.csv holds something" in done.err
    assert Path("p.csv").read_text() == blank


def test_an_export_is_made_again_but_not_over_results_that_were_typed_into_it(study):
    study("ask")
    assert study("export", "--out", "all.csv").code == 0
    study("tell", "0=1.5", "1=failed")
    assert study("export", "--out", "all.csv").code == 0
    kept = Path("all.csv").read_text().replace("2,pending,,", "2,pending,7.5,")
    assert "7.5" in kept
    Path("all.csv").write_text(kept)
    assert study("export", "--out", "all.csv").code == 3
    assert Path("all.csv").read_text() == kept


def test_a_note_typed_into_an_export_is_kept(study):
    study("ask")
    assert study("export", "--out", "all.csv").code == 0
    lines = Path("all.csv").read_text().splitlines()
    place = lines[0].split(",").index("reason")
    cells = lines[1].split(",")
    cells[place] = "spilt"
    kept = "\n".join([lines[0], ",".join(cells), *lines[2:]]) + "\n"
    Path("all.csv").write_text(kept)
    assert study("export", "--out", "all.csv").code == 3
    assert Path("all.csv").read_text() == kept


def test_a_blank_sheet_of_an_earlier_batch_makes_room_for_the_next(study):
    study("ask", "--out", "batch.csv")
    study("tell", "0=1", "1=2", "2=3")
    assert study("ask", "--out", "batch.csv").code == 0
    assert Path("batch.csv").read_text().splitlines()[1].startswith("3,")


def test_force_replaces_what_describes_a_study_and_nothing_else(call):
    Path("covey.toml").write_text("[study]\ngoal = max  # no TOML\n")
    assert call("init", "--real", "x=0:1").code == 3
    assert call("init", "--real", "x=0:1", "--force").code == 0
    Path("pyproject.toml").write_text('[project]\nname = "mine"\n')
    assert call("init", "--real", "x=0:1", "--force", "--config", "pyproject.toml").code == 3
    assert "mine" in Path("pyproject.toml").read_text()


def test_a_dry_run_of_ask_prints_the_sheet_and_writes_none(study):
    done = study("ask", "--dry-run", "--out", "batch.csv")
    assert done.code == 0
    assert done.out.startswith("id,lr,layers,opt,value\n0,")
    assert not Path("batch.csv").exists()


def test_a_sheet_whose_results_were_told_gives_way_to_the_next_batch(study):
    """The same name batch after batch; but not over a value that the journal does not know."""
    assert study("ask", "--out", "batch.csv").code == 0
    path = Path("batch.csv")
    head, *rows = path.read_text().splitlines()
    filled = [row + str(i) for i, row in enumerate(rows)]
    path.write_text("\n".join([head, *filled]) + "\n")
    assert study("ask", "--out", "batch.csv").code == 3  # nothing of it was told yet
    assert study("tell", "batch.csv").code == 0
    assert study("ask", "--out", "batch.csv").code == 0
    again = path.read_text()
    assert again.splitlines()[1] not in filled
    path.write_text("\n".join([head, filled[0] + "5", *filled[1:]]) + "\n")
    assert study("ask", "--out", "batch.csv").code == 3  # 05 was told, and here is 055
