import numpy as np
import pytest

from covey.errors import HistoryError
from covey.history.events import (
    finite_value,
    points_of,
    sized,
    standard_error,
    text,
    trial_ids,
    whole,
)


def test_numbers_of_any_kind_become_floats():
    for value in (3, np.float32(3), np.array(3.0)):
        assert finite_value(value, "it", "hint") == 3.0


@pytest.mark.parametrize(
    ("value", "words"),
    [(np.nan, "finite"), (1e300, "Rescale"), ("3", "real number"), (True, "real number")],
)
def test_what_is_no_value_is_named(value, words):
    with pytest.raises(HistoryError, match=f"it.*{words}"):
        finite_value(value, "it", "hint")


def test_the_rest_of_an_event_is_checked_too():
    assert standard_error(None, "it") is None
    with pytest.raises(HistoryError, match="sem must be from 0"):
        standard_error(-1.0, "it")
    with pytest.raises(HistoryError, match="twice"):
        trial_ids([1, 1])
    with pytest.raises(HistoryError, match="no point"):
        points_of([])
    with pytest.raises(HistoryError, match="2 trials but 1 value"):
        sized([1.0], 2, "trial", "value")
    with pytest.raises(HistoryError, match="must be a string"):
        text(3, "reason")
    assert whole(0, "attempt") == 0
    for wrong in (-1, True, 1.0):
        with pytest.raises(HistoryError, match="attempt must be a whole number"):
            whole(wrong, "attempt")
