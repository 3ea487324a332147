import numpy as np
import pytest

from covey.gp import observe, outgrown

AT = np.random.default_rng(0).random((60, 2))
VALUES = np.sin(5.0 * AT[:, 0]) + AT[:, 1]
NAN = np.full(60, np.nan)


def looks(n, values=VALUES, **options):
    return observe(AT[:n], values[:n], NAN[:n], **options)


@pytest.mark.parametrize(("n", "stale"), [(50, False), (55, False), (56, True)])
def test_a_tenth_more_results_outgrow_a_fit(n, stale):
    assert outgrown(looks(n), looks(50)) is stale


def test_so_do_results_that_move_the_units():
    values = VALUES.copy()
    values[50] += 20.0
    assert outgrown(looks(51, values), looks(50, values))
    values[50] = VALUES[50]
    assert not outgrown(looks(51, values), looks(50, values))


def test_so_does_another_bend():
    assert outgrown(looks(50, np.exp(3.0 * VALUES), warped=True), looks(50, np.exp(3.0 * VALUES)))


def test_so_do_amended_values():
    values = VALUES.copy()
    values[:10] *= -1.0
    assert outgrown(looks(50, values), looks(50))
    values[1:10] *= -1.0  # one of fifty is not enough
    assert not outgrown(looks(50, values), looks(50))


def test_so_does_a_standard_error_that_came_to_be_known():
    sems = NAN.copy()
    sems[3] = 0.1
    assert outgrown(observe(AT[:50], VALUES[:50], sems[:50]), looks(50))


def test_results_between_the_old_ones_are_no_matter():
    """As when an old trial is told late."""
    some = np.delete(np.arange(50), [3, 17])
    then = observe(AT[some], VALUES[some], NAN[some])
    assert not outgrown(looks(50), then)
