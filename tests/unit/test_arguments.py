import numpy as np
import pytest

from covey.arguments import checked_gp, checked_path, checked_seed, each, ids_of, sequence_of
from covey.errors import HistoryError, JournalError, StrategyError
from covey.gp import GP
from covey.history import Point, Trial


def test_trials_and_ids_are_the_same_to_a_caller():
    trial = Trial(3, Point(x=1.0))
    assert ids_of(trial) == ids_of(3) == ids_of([trial]) == ids_of(np.array([3])) == (3,)
    assert ids_of(np.int64(3)) == (3,)


def test_one_error_stands_for_all():
    assert each(None, 3) == ()
    assert each(0.1, 2) == (0.1, 0.1)
    assert each([0.1, None], 2) == (0.1, None)


def test_several_values_are_a_sequence():
    assert sequence_of(np.array([1.0, 2.0]), "values") == (1.0, 2.0)
    with pytest.raises(HistoryError, match=r"needs a list of values; got 1\.0"):
        sequence_of(1.0, "values")


def test_seeds():
    assert checked_seed(np.int64(4)) == 4
    assert checked_seed(None) >= 0
    for wrong in (-1, 1.5, True, "0"):
        with pytest.raises(StrategyError, match="whole number >= 0"):
            checked_seed(wrong)


@pytest.mark.parametrize("wrong", [None, 1.5, {1, 2}, {1: 2}, "0"])
def test_trials_come_in_order(wrong):
    with pytest.raises(HistoryError, match="a list of these in order"):
        ids_of(wrong)


def test_a_process_and_a_path():
    assert checked_gp(None) == GP()
    assert checked_path(None) is None
    assert str(checked_path("run.jsonl")) == "run.jsonl"
    with pytest.raises(StrategyError, match=r"covey.GP"):
        checked_gp("matern")
    with pytest.raises(JournalError, match=r"run\.jsonl"):
        checked_path(3)
