import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import covey
from covey.history import Point, Trial
from covey.report.slices import diversity

SPACE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})


def trials_at(rows, status="told"):
    return [Trial(i, Point(x=x, y=y), 1.0, status) for i, (x, y) in enumerate(rows)]


coordinates = st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0])


@given(st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=12), st.integers(0, 11))
def test_against_all_pairs(rows, cut):
    """The k-d tree finds what comparing all pairs finds, equal points included."""
    cut = min(cut, len(rows) - 1)
    found = diversity(SPACE, trials_at(rows), range(cut, len(rows)))
    at = np.array(rows)
    gaps = np.linalg.norm(at[:, None] - at[None], axis=2)
    batch = [(gaps[i, j], i, j) for i in range(cut, len(rows)) for j in range(i + 1, len(rows))]
    assert (found.pair is None) == (not batch)
    if found.pair is not None:
        assert found.pair.distance == pytest.approx(min(batch)[0])
        assert gaps[found.pair.id, found.pair.other] == pytest.approx(found.pair.distance)
        assert found.pair.id < found.pair.other
    across = gaps[cut:, :cut]
    assert (found.earlier is None) == (across.size == 0)
    if found.earlier is not None:
        assert found.earlier.distance == pytest.approx(across.min())
        assert found.repeats == np.count_nonzero(across.min(axis=1) == 0.0)
    assert found.duplicates == len(rows) - cut - len(set(rows[cut:]))


def test_what_was_never_run_does_not_count():
    trials = [*trials_at([(0.0, 0.0), (0.5, 0.5)]), Trial(2, Point(x=0.5, y=0.5), status="lost")]
    found = diversity(SPACE, trials, [1, 2])
    assert (found.points, found.pair, found.duplicates) == (1, None, 0)


def test_no_batch_at_all():
    found = diversity(SPACE, [], [])
    assert (found.points, found.width, found.pair, found.earlier) == (0, 2, None, None)
