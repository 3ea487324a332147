import threading

import numpy as np
import pytest

from covey import arrays as chunks
from covey.arrays import each_chunk, reporting_chunks


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("per_row", [1, 2**11, 2**20])
def test_chunks_cover_every_row_once_and_in_order(n, per_row):
    rows = np.arange(float(n))
    assert np.array_equal(np.concatenate([[], *each_chunk(rows.__getitem__, rows, per_row)]), rows)


def test_a_chunk_is_small_where_a_row_takes_much():
    rows = np.zeros(10_000)
    sizes = [part.stop - part.start for part in each_chunk(lambda part: part, rows, 2**20)]
    assert max(sizes) == 64
    assert len(list(each_chunk(lambda part: part, rows, 1))) == 1


def test_the_number_of_cores_changes_nothing(monkeypatch):
    rows = np.random.default_rng(0).random((500, 3))

    def work(part):
        return np.sin(rows[part]).sum()

    made = []
    for cores in (1, 3):
        monkeypatch.setattr(chunks, "cores", lambda cores=cores: cores)
        made.append(list(each_chunk(work, rows, 2**20)))
    assert made[0] == made[1]


def test_chunks_are_worked_on_side_by_side(monkeypatch):
    monkeypatch.setattr(chunks, "cores", lambda: 2)
    meet = threading.Barrier(2, timeout=10.0)  # broken unless two threads are inside at once
    rows = np.zeros(128)
    assert len(list(each_chunk(lambda part: meet.wait(), rows, 2**20))) == 2


def test_a_failure_is_raised_and_stops_the_rest(monkeypatch):
    monkeypatch.setattr(chunks, "cores", lambda: 2)
    done = []

    def work(part):
        if part.start == 64:
            raise KeyboardInterrupt
        done.append(part)

    with pytest.raises(KeyboardInterrupt):
        list(each_chunk(work, np.zeros(64 * 1000), 2**20))
    assert len(done) < 20


def test_progress_is_reported_to_whoever_asked():
    rows, seen = np.zeros(1000), []
    with reporting_chunks(seen.append):
        list(each_chunk(lambda part: None, rows, 2**20))
    assert sum(seen) == 1000
    assert len(seen) == 16
    list(each_chunk(lambda part: None, rows, 2**20))
    assert sum(seen) == 1000
