"""What a few pivots explain of L - I; how it is used is tested with the mixture."""

from __future__ import annotations

import numpy as np
import pytest

from covey.dpp import greedy
from covey.dpp import mixture as truncation
from covey.dpp.kernel import adapt
from covey.dpp.mixture import TruncationGoal
from covey.dpp.mixture import truncated as truncate
from covey.errors import NumericsError


class ByBlock:
    """A kernel by blocks, which counts passes over all of its items."""

    def __init__(self, matrix):
        self.matrix, self.diagonal, self.passes = matrix, matrix.diagonal().copy(), 0

    def columns(self, cols):
        return self.block(np.arange(len(self.matrix)), cols)

    def block(self, rows, cols):
        self.passes += len(rows) == len(self.matrix)
        return self.matrix[np.ix_(rows, cols)]

    def on(self, items):
        return ByBlock(self.matrix[np.ix_(items, items)])


def smooth(n, length, noise=0.1):
    at = np.random.default_rng(0).random((n, 1))
    return np.eye(n) + np.exp(-0.5 * ((at - at.T) / length) ** 2) / noise


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(greedy, "LARGE", 100)
    monkeypatch.setattr(truncation, "_FEW", 50)


@pytest.mark.usefixtures("few")
def test_pivots_among_few_explain_all():
    L = smooth(300, 0.2)
    source = ByBlock(L)
    found = truncate(adapt(source), TruncationGoal(4, 40, 0.1, 5.0), hurry=False)
    rest = (L - np.eye(300) - found.rows.T @ found.rows).diagonal()
    assert rest.min() > -1e-9
    assert found.excess == pytest.approx(np.log1p(np.sort(rest.clip(min=0.0))[-4:]).sum())
    assert found.excess < 1.0
    assert source.passes == 2  # the rows, and the witnesses


@pytest.mark.usefixtures("few")
def test_the_rows_are_those_of_a_cholesky_factor_of_all():
    L = smooth(300, 0.2)
    found = truncate(adapt(ByBlock(L)), TruncationGoal(4, 40, 0.1, 5.0), hurry=False)
    explained = found.rows.T @ found.rows
    pivots = [int(np.argmax(np.isclose(explained.diagonal(), L.diagonal() - 1.0, atol=1e-9)))]
    np.testing.assert_allclose(explained[pivots], (L - np.eye(300))[pivots], atol=1e-6)


@pytest.mark.usefixtures("few")
def test_a_rank_that_few_show_to_be_high_costs_no_pass():
    source = ByBlock(np.eye(300) * 101.0)
    with pytest.raises(NumericsError, match="low rank: with rank 20"):
        truncate(adapt(source), TruncationGoal(4, 20, 0.1, 1.5), hurry=False)
    assert source.passes == 0


@pytest.mark.usefixtures("few")
def test_what_the_few_do_not_show_is_found_by_the_pass():
    L = np.eye(300)
    L[7, 7] = 1.5  # large enough to be looked at
    L[100:200, 100:200] += 50.0 * np.eye(100)
    with pytest.raises(NumericsError, match="low rank"):
        truncate(adapt(ByBlock(L)), TruncationGoal(4, 60, 0.1, 1.5), hurry=False)


@pytest.mark.usefixtures("few")
def test_the_identity_needs_no_pivot():
    assert truncate(
        adapt(ByBlock(np.eye(300))), TruncationGoal(4, 9, 0.1, 1.5), hurry=True
    ).rows.shape == (
        0,
        300,
    )
