"""Rows on disk: packed and not, once a run; packing is deterministic and loses nothing."""

from __future__ import annotations

import gzip
import json

from papers.kathuria2016.__main__ import main
from papers.kathuria2016.race import Run
from papers.kathuria2016.results import (
    append,
    appending,
    file_of,
    missing,
    pack,
    packed,
    read,
    read_all,
    run_of,
)


def row(seed, **more):
    fields = {"entrant": "bucb", "problem": "branin", "batch": 5, "evaluations": 20, "samples": 5}
    return {**fields, "seed": seed, "anywhere": [1.0, 0.5], **more}


def put(folder, *rows):
    with appending(folder, ["branin"]) as files:
        for each in rows:
            append(files["branin"], each)


def seeds(folder):
    return [each["seed"] for each in read_all(folder, ["branin"])]


def test_rows_are_read_from_both_files_and_each_run_once(tmp_path):
    put(tmp_path, row(0), row(1), row(2, error="ValueError()"))
    assert pack(tmp_path, "branin") == packed(tmp_path, "branin")
    put(tmp_path, row(1, anywhere=[9.0, 9.0]), row(2), row(3))
    rows = read_all(tmp_path, ["branin", "cosines"])
    assert [each["seed"] for each in rows] == [0, 1, 2, 3]
    assert rows[1]["anywhere"] == [1.0, 0.5]  # the packed one


def test_what_is_packed_is_not_run_again(tmp_path):
    put(tmp_path, row(0), row(1, error="ValueError()"))
    wanted = [run_of(row(0)), run_of(row(1)), Run("bucb", "branin", 5, 0, 20, 10)]
    assert missing(wanted, tmp_path) == wanted[1:]
    pack(tmp_path, "branin")
    assert missing(wanted, tmp_path) == wanted[1:]


def test_a_row_without_a_ground_has_the_ends_and_other_grounds_are_other_runs(tmp_path):
    assert "ground" not in row(0)
    assert run_of(row(0)).ground == "ends"
    put(tmp_path, row(0), row(0, ground="finite", least=0.3))
    wanted = [Run("bucb", "branin", 5, 0, 20, 5, kind) for kind in ("ends", "finite", "clouds")]
    assert missing(wanted, tmp_path) == wanted[2:]
    before = read_all(tmp_path, ["branin"])
    pack(tmp_path, "branin")
    put(tmp_path, row(0, ground="clouds"))
    assert read_all(tmp_path, ["branin"])[:2] == before
    assert missing(wanted, tmp_path) == []


def test_packing_is_deterministic_and_can_be_repeated(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    put(first, row(0), row(1), row(2))
    put(second, row(2), row(0))
    pack(first, "branin")
    pack(second, "branin")
    put(second, row(1))
    pack(second, "branin")
    ours, theirs = (packed(folder, "branin").read_bytes() for folder in (first, second))
    assert ours == theirs
    assert ours[4:8] == b"\0\0\0\0"  # no time in it
    assert [json.loads(line)["seed"] for line in gzip.decompress(ours).splitlines()] == [0, 1, 2]
    assert sorted(path.name for path in second.iterdir()) == ["branin.jsonl.gz"]


def test_nothing_is_packed_into_no_file(tmp_path):
    assert pack(tmp_path, "branin") is None
    put(tmp_path, row(0, error="ValueError()"))
    assert pack(tmp_path, "branin") is None
    assert file_of(tmp_path, "branin").exists()
    assert read(packed(tmp_path, "branin")) == []


def test_the_command_packs_all(tmp_path, capsys):
    put(tmp_path, row(0))
    assert main(["pack", "--out", str(tmp_path)]) == 0
    assert "branin.jsonl.gz" in capsys.readouterr().err
    assert seeds(tmp_path) == [0]


def test_a_line_torn_within_a_letter_is_passed_over(tmp_path):
    whole = json.dumps(row(0)).encode() + b"\n"
    file_of(tmp_path, "branin").write_bytes(whole + '{"title": "β'.encode()[:-1])
    assert seeds(tmp_path) == [0]
