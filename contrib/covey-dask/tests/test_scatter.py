from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import Plain, posterior_of, uniform
from covey.errors import StrategyError
from covey.large.lowrank import HeldRows
from covey_dask import scatter
from covey_dask.scatter import RemoteLayer, Scattered, Summary, remote_belief, shuffled_parts


@given(st.integers(1, 60), st.integers(1, 9))
def test_every_row_is_dealt_once(n, parts):
    made = shuffled_parts(n, parts)
    assert sorted(np.concatenate(made).tolist()) == list(range(n))
    assert len(made) == min(n, parts)
    sizes = [len(part) for part in made]
    assert max(sizes) - min(sizes) <= 1
    assert all((np.diff(part) > 0).all() for part in made)


def test_a_sorted_pool_is_shared_evenly():
    """A tenth of the rows, those that matter, must not lie with one worker."""
    for part in shuffled_parts(4000, 4):
        assert 60 < np.sum(part < 400) < 140


def test_rows_are_sent_once_and_in_turn():
    plain, rows = Plain(workers=2), uniform(30)
    deal = Scattered(plain, rows, 3)
    assert plain.sent == []
    futures = deal.futures()
    assert [options["workers"] for options in plain.sent] == [
        ["worker-0"],
        ["worker-1"],
        ["worker-0"],
    ]
    for future, places in zip(futures, deal.places, strict=True):
        np.testing.assert_array_equal(future.value, rows[places])
    assert deal.futures() == futures
    assert len(plain.sent) == 3


def test_what_is_lost_is_sent_again_and_nothing_else():
    plain = Plain()
    deal = Scattered(plain, uniform(30), 3)
    first = deal.futures()
    first[1].status = "cancelled"
    again = deal.futures()
    assert (again[0], again[2]) == (first[0], first[2])
    assert again[1] is not first[1]
    np.testing.assert_array_equal(again[1].value, first[1].value)


def test_what_was_forgotten_is_sent_anew():
    plain = Plain()
    deal = Scattered(plain, uniform(30), 3)
    deal.futures()
    deal.forget()
    deal.futures()
    assert len(plain.sent) == 6


def test_without_workers_there_is_nobody_to_send_to():
    with pytest.raises(StrategyError, match="no workers"):
        Scattered(Plain(workers=0), uniform(30), 3).futures()


class Rows:
    """All of V in one hand, and a list of what was asked for."""

    def __init__(self, belief):
        self.parts = belief.parts
        self.asked = []

    def summary(self):
        return Summary([(part.mean, part.explained.squares) for part in self.parts], None)

    def columns(self, member, cols):
        self.asked.append(("columns", len(cols)))
        return self.parts[member].explained.of(cols)

    def product(self, member, cols, weights):
        self.asked.append(("product", "all" if cols is None else len(cols)))
        every = slice(None) if cols is None else cols
        return self.parts[member].explained.product(every, weights)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(scatter, "LOCAL", 10)


def pair(posterior, n=60, memory=2**30):
    at = uniform(n)
    whole = posterior.belief(at, round=4)
    keeper = Rows(whole)
    return whole, remote_belief(keeper, posterior, at, 4, memory), keeper


def test_it_says_what_the_posterior_says(posterior, few):
    whole, far, keeper = pair(posterior)
    np.testing.assert_array_equal(far.mean, whole.mean)
    np.testing.assert_allclose(far.std, whole.std, rtol=1e-12)
    assert (far.best, far.round, far.looks) == (whole.best, whole.round, whole.looks)
    assert keeper.asked == []


def test_columns_for_all_are_made_afar_and_few_of_them_here(posterior, few):
    whole, far, keeper = pair(posterior)
    some = np.array([7, 3])
    np.testing.assert_allclose(far.columns(some), whole.columns(some), atol=1e-12)
    assert set(keeper.asked) == {("product", "all")}
    keeper.asked.clear()
    here = np.arange(10)
    kernel = far.information()
    np.testing.assert_allclose(
        kernel.block(here, some), whole.information().block(here, some), atol=1e-10
    )
    assert keeper.asked == []


def test_a_look_is_worked_out_afar(posterior, few):
    whole, far, _ = pair(posterior)
    region = np.arange(5, 55)
    seen, there = whole.after_looking_at([2], on=region), far.after_looking_at([2], on=region)
    np.testing.assert_allclose(there.var, seen.var, atol=1e-12)
    twice = there.after_looking_at([1]).after_looking_at([4, 5])
    np.testing.assert_allclose(
        twice.var, seen.after_looking_at([1]).after_looking_at([4, 5]).var, atol=1e-11
    )


def test_a_subset_is_held_here_if_it_is_small(few):
    posterior = posterior_of()
    whole, far, keeper = pair(posterior)
    layer = far.parts[0].explained.layers[0]
    small, large = layer.on(np.arange(5)), layer.on(np.arange(20, 50))
    assert isinstance(small, HeldRows)
    assert isinstance(large, RemoteLayer)
    weights = np.random.default_rng(0).random((len(layer), 2))
    expected = whole.parts[0].explained.product(np.arange(22, 40), weights)
    np.testing.assert_allclose(large.product(slice(2, 20), weights), expected, atol=1e-12)
    assert keeper.asked == [("product", 18)]
    nested = large.on(np.arange(3, 20))  # its names are those of the keepers
    expected = whole.parts[0].explained.product(np.arange(23, 40), weights)
    np.testing.assert_allclose(nested.product(slice(None), weights), expected, atol=1e-12)


def test_what_does_not_fit_is_not_held():
    _, far, _ = pair(posterior_of(), memory=8 * 13 * 3 * 30)
    layer = far.parts[0].explained.layers[0]
    assert isinstance(layer.on(np.arange(30)), HeldRows)
    assert isinstance(layer.on(np.arange(31)), RemoteLayer)


def test_many_dear_columns_are_fetched(monkeypatch):
    monkeypatch.setattr(scatter, "_LITTLE", 13**2 * 4)
    whole, far, keeper = pair(posterior_of())
    layer = far.parts[0].explained.layers[0]
    for some in (np.arange(4), np.arange(4, 9)):
        expected = whole.parts[0].explained.of(some)
        np.testing.assert_allclose(layer.of(some), expected, atol=1e-12)
    assert keeper.asked == [("columns", 5)]
