"""Pools in files, as a user meets them: all readers agree, mistakes are named, nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import covey
from covey.errors import JournalMismatch, SpaceError

TEXT = "id,t,x,note\n" + "".join(f"C{i},{i},{(i * 7 % 20) / 8},é{i}\n" for i in range(20))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pool.csv"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_all_readers_agree(file, tmp_path):
    pytest.importorskip("pyarrow", reason="pip install 'covey[parquet]'")
    pool = covey.Pool(file, inputs=["t", "x"])
    frame = pl.read_csv(file)
    frame.write_parquet(tmp_path / "pool.parquet")
    rows = frame.to_dicts()
    others = [rows, frame, pd.read_csv(file), pd.DataFrame(rows), tmp_path / "pool.parquet"]
    for other in others:
        again = covey.Pool(other, inputs=["t", "x"])
        assert again.fingerprint == pool.fingerprint
        assert [again.point(i) for i in range(20)] == rows
        np.testing.assert_array_equal(again.rows, pool.rows)
    assert covey.Pool(np.array(frame[["t", "x"]])).rows.tolist() == pool.rows.tolist()


def test_a_study_goes_on_with_its_file(file, tmp_path):
    journal = tmp_path / "run.jsonl"
    study = covey.Study(covey.Pool(file, labels=["id", "note"]), seed=0, journal=journal)
    batch = study.ask(3)
    again = covey.Study.load(journal)
    assert [trial.point for trial in again.history.pending] == [trial.point for trial in batch]
    again.tell(again.history.pending, [1.0, 2.0, 3.0])


def test_a_file_that_changes_between_ask_and_tell(file, tmp_path):
    """The log stays as it is; with the file put back, or a copy of it, the study goes on."""
    journal = tmp_path / "run.jsonl"
    pool = covey.Pool(file, labels=["id", "note"])
    study = covey.Study(pool, seed=0, journal=journal)
    batch = study.ask(3)
    written = journal.read_bytes()
    file.write_text(TEXT.replace("C5,5,", "C5,55,"), encoding="utf-8")

    with pytest.raises(SpaceError, match=r"pool\.csv has changed"):
        pool.verify_source()
    with pytest.raises(SpaceError, match=r"pool.csv is not the file .* The log is as it was"):
        covey.Study.load(journal)
    with pytest.raises(JournalMismatch, match="another space"):
        covey.Study.load(journal, space=covey.Pool(file, labels=["id", "note"]))
    assert journal.read_bytes() == written

    copy = tmp_path / "copy.csv"
    copy.write_text(TEXT, encoding="utf-8")
    covey.Study.load(journal, space=covey.Pool(copy, labels=["id", "note"])).tell(batch[0], 1.0)
    file.write_text(TEXT, encoding="utf-8")
    pool.verify_source()
    again = covey.Study.load(journal)
    again.tell(batch[1:], [2.0, 3.0])
    assert [trial.value for trial in again.history.told] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (("", ""), {"inputs": ["z"]}, "unknown column 'z'; .*pool.csv has id, t, x, note"),
        (("C7,7,", "C7,seven,"), {}, "line 9 of .*pool.csv has 'seven' in the input 't', where 19"),
        (("C7,7,", "C7,,"), {}, r"line 9 of .*pool.csv has nothing .* in the input 't'"),
        (("C7,7,", "C7,nan,"), {}, "line 9 of .*pool.csv has nan in the input 't'"),
        (("C7,7,", "C7,inf,"), {}, "line 9 of .*pool.csv has inf in the input 't'"),
        (("C7,7,", "C7,7"), {}, "line 9 of .*pool.csv has 3 cells, the header has 4"),
    ],
)
def test_a_mistake_is_named_by_file_line_and_column(file, change, options, message):
    file.write_text(TEXT.replace(*change), encoding="utf-8")
    with pytest.raises(SpaceError, match=message):
        covey.Pool(file, **({"labels": ["id", "note"]} | options))


def test_a_row_written_twice_is_one_candidate(file):
    file.write_text(TEXT + "D,3,0.125,again\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"line 5 of .*pool.csv and line 22 of .*have the same"):
        pool = covey.Pool(file, labels=["id", "note"])
    assert pool.size == 20


MEMORY = """
import resource, sys
import numpy, covey
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
pool = covey.Pool(sys.argv[1], labels=["id"])
print(peak() - before, pool.size, pool.fingerprint)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "pool.csv"
    rng, n = np.random.default_rng(0), 150_000
    frame = pl.DataFrame({f"x{j}": rng.random(n) for j in range(6)})
    frame.with_columns(id=pl.Series([f"molecule-{i:020d}" for i in range(n)])).write_csv(path)
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted otherwise elsewhere")
def test_reading_takes_little_more_memory_than_the_pool(large):
    """150 000 rows of 6 numbers and a name: 25 MB in the end, some 120 as a list of strings."""
    command = [sys.executable, "-c", MEMORY, str(large)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak, rows, _ = done.stdout.split()
    assert float(peak) < 80.0  # 49 when written
    assert rows == "150000"


@pytest.mark.skipif(os.name == "nt", reason="signals differ")
def test_an_interrupt_while_reading_leaves_nothing_behind(large):
    code = "import covey; print('go', flush=True)\n"
    code += f"while True: covey.Pool({str(large)!r}, labels=['id'])"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.readline()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert "Warning" not in errors
    assert [path.name for path in large.parent.iterdir()] == ["pool.csv"]


def test_reading_warns_of_nothing(large):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pool = covey.Pool(large, labels=["id"])
    assert pool.locate([pool.point(149_999)]).tolist() == [149_999]


@pytest.mark.parametrize("step", ["ask", "tell"])
def test_a_file_that_changes_between_ask_and_tell_is_named_and_nothing_is_written(step, tmp_path):
    path, journal = tmp_path / "pool.csv", tmp_path / "run.jsonl"
    path.write_text("a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(50)), encoding="utf-8")
    study = covey.Study(covey.Pool(path), seed=0, journal=journal)
    batch = study.ask(3)
    path.write_text("a,b\n" + "".join(f"{i},{i % 5}\n" for i in range(50)), encoding="utf-8")
    before = journal.read_bytes()
    with pytest.raises(SpaceError, match=r"pool\.csv"):
        study.ask(2) if step == "ask" else study.tell(batch, [1.0, 2.0, 3.0])
    assert journal.read_bytes() == before
    assert len(study.history.pending) == 3
    path.write_text("a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(50)), encoding="utf-8")
    study.tell(batch, [1.0, 2.0, 3.0])  # as it was: the values are taken after all
    assert len(study.history.told) == 3


def test_labels_are_carried_as_they_are_spelled(tmp_path):
    path = tmp_path / "wells.csv"
    path.write_text("well,plate,lot,dose,x\n007,1,2.50,1E5,01\n008,2,2.5,8E1,02\n,3,,,03\n")
    pool = covey.Pool(path, labels=["well", "plate", "lot", "dose"])
    carried = {"well": "007", "plate": 1, "lot": "2.50", "dose": "1E5"}
    assert pool.point(0) == {**carried, "x": 1}
    assert pool.point(2) == {"well": None, "plate": 3, "lot": None, "dose": None, "x": 3}
    assert covey.Pool(path, inputs=["x"]).point(0) == {**carried, "x": 1}


def test_numbers_of_rows_that_pandas_wrote_are_no_input(tmp_path):
    pytest.importorskip("pyarrow", reason="pip install 'covey[parquet]'")
    frame = pd.DataFrame({"id": list("abcd"), "x": [1.0, 2.0, 3.0, 4.0]})
    for i, written in enumerate((frame, frame[frame.x != 3], frame.set_index("id"))):
        written.to_parquet(tmp_path / f"{i}.parquet")
    pools = [covey.Pool(tmp_path / f"{i}.parquet", labels=["id"]) for i in range(3)]
    assert [pool.inputs for pool in pools] == [("x",)] * 3
    assert pools[1].point(2) == {"id": "d", "x": 4.0}
    assert pools[2].point(2) == {"x": 3.0, "id": "c"}


def test_another_file_behind_a_journal_is_named(file, tmp_path):
    journal = tmp_path / "run.jsonl"
    covey.Study(covey.Pool(file, labels=["id", "note"]), seed=0, journal=journal).ask(2)
    file.write_text(TEXT.replace("C3,3", "C3,30"), encoding="utf-8")
    with pytest.raises(JournalMismatch, match=r"pool\.csv may have changed"):
        covey.Study(covey.Pool(file, labels=["id", "note"]), journal=journal)
