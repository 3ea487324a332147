"""First batches cover the candidates, by greedy choice."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from covey import Pool, Study, dpp
from covey.design import covering, most_candidates


def distances(at, others):
    return np.sqrt(np.square(at[:, None] - others).sum(axis=-1))


def brute(at, k, start):
    """Greedy, with all gains computed for every row."""
    apart, chosen = distances(at, at), [start]
    while len(chosen) < k:
        near = apart[chosen].min(axis=0)
        gains = np.maximum(near - apart, 0.0).sum(axis=1)
        gains[chosen] = -np.inf
        chosen.append(int(np.argmax(gains)))
    return chosen


@pytest.mark.parametrize("seed", range(20))
def test_lazy_greedy_is_greedy(seed):
    at = np.random.default_rng(seed).random((150, 3))
    found = covering(at, 12, np.random.default_rng(seed))
    assert found == brute(at, 12, found[0])


def test_greedy_gains_as_much_as_it_promises():
    """At least 1 - 1/e of the best three rows; in fact nearly all of it."""
    shares = []
    for seed in range(30):
        at, there = np.random.default_rng(seed).random((14, 2)), np.array([[0.5, 0.5]])
        before = distances(there, at)[0]

        def gain(rows, at=at, before=before):
            return (before - np.minimum(before, distances(at[list(rows)], at).min(axis=0))).sum()

        best = max(gain(rows) for rows in combinations(range(14), 3))
        shares.append(gain(covering(at, 3, np.random.default_rng(0), covered=there)) / best)
    assert min(shares) >= 1.0 - 1.0 / np.e
    assert np.mean(shares) > 0.9


def test_what_is_covered_already_needs_no_other_row():
    """Two clusters, one of them covered: the first row is of the other, whatever the seed."""
    rng = np.random.default_rng(0)
    at = np.vstack([0.1 * rng.random((40, 2)), 0.9 + 0.1 * rng.random((20, 2))])
    firsts = [covering(at, 1, np.random.default_rng(s), covered=at[:1])[0] for s in range(20)]
    assert min(firsts) >= 40
    at_random = [covering(at, 1, np.random.default_rng(s))[0] for s in range(20)]
    assert min(at_random) < 40  # the control: nothing is covered


def test_rows_of_a_first_batch_are_not_all_at_the_edges():
    """The most different rows, by greedy determinants, are: the control."""
    at = np.random.default_rng(0).random((2000, 4))

    def edges(rows):
        return float(np.mean((np.abs(at[rows] - 0.5) > 0.45).any(axis=1)))

    kernel = np.eye(len(at)) + 100.0 * np.exp(-(distances(at, at) ** 2))
    everywhere = edges(np.arange(len(at)))
    assert edges(covering(at, 24, np.random.default_rng(0))) < everywhere
    assert edges(dpp.maximize(kernel, 24)) > 0.9 > everywhere


def test_rows_alike_are_still_different_rows():
    at = np.repeat([[0.2], [0.8]], 5, axis=0)
    assert sorted(covering(at, 10, np.random.default_rng(0))) == list(range(10))


def test_all_rows_are_chosen_if_there_are_fewer_than_asked_for():
    """Where nothing is left to gain, and nothing is left at all."""
    for at in (np.zeros((3, 2)), np.arange(3.0)[:, None], np.zeros((3, 0))):
        for covered in (None, at[:0], at):
            found = covering(at, 5, np.random.default_rng(0), covered)
            assert sorted(found) == [0, 1, 2]


def test_of_very_many_rows_some_are_looked_at():
    at = np.random.default_rng(0).random((30_000, 2))
    found = covering(at, 9, np.random.default_rng(0))
    assert len({*found}) == 9
    assert distances(at[found], at).min(axis=0).max() < 0.45
    assert (most_candidates(9), most_candidates(1000)) == (4096, 10_000)


def test_a_second_batch_before_any_result_covers_what_the_first_left():
    rows = [{"a": i / 99} for i in range(100)]
    study = Study(Pool(rows), seed=0)
    first, second = study.ask(3), study.ask(3)
    both = np.sort([t.point["a"] for t in (*first, *second)])
    assert np.diff(both).min() > 0.03
    assert all("stands for candidates" in why for why in study.diagnostics.reasons)
