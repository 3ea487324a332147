from __future__ import annotations

import numpy as np
import pytest
from tests.unit.cluster.conftest import Plain, posterior_of, uniform

from covey.cluster.coreset import Chosen, check, core_set
from covey.cluster.deal import Deal
from covey.cluster.team import Team


@pytest.fixture
def case(posterior, plain):
    """Sixty rows in four parts, some of them gone, and the team of the rest."""
    rows = uniform(60)
    left = np.setdiff1d(np.arange(60), [3, 17, 40])
    team = Team.of(plain, Deal(plain, rows, 4), left, posterior, 2**30)
    return team, posterior.belief(rows[left]), plain


def test_together_they_know_every_row_in_its_place(case):
    team, belief, _ = case
    assert (len(team), team.size) == (4, 57)
    for (mean, squares), part in zip(team.summary(), belief.parts, strict=True):
        np.testing.assert_allclose(mean, part.mean, rtol=1e-12)
        np.testing.assert_allclose(squares, part.explained.squares, rtol=1e-12)


def test_v_is_one_matrix_whoever_has_its_columns(case):
    team, belief, plain = case
    explained = belief.parts[0].explained
    weights = np.random.default_rng(0).random((13, 2))
    some = np.array([50, 2, 2, 31])
    whole = explained.product(slice(None), weights)
    np.testing.assert_allclose(team.product(0, None, weights), whole, atol=1e-12)
    np.testing.assert_allclose(team.product(0, some, weights), whole[some], atol=1e-12)
    np.testing.assert_allclose(team.columns(0, some), explained.of(some), atol=1e-12)
    plain.tasks.clear()
    team.columns(0, np.array([5]))
    assert plain.tasks == ["columns"]  # only who has it is asked


def test_a_region_is_a_team_of_its_own(case):
    team, belief, _ = case
    inside = np.arange(20, 50)
    region = team.region(inside, belief.on([7]))
    seen = belief.after_looking_at([7], on=inside)
    assert region.size == 30
    for (_, squares), part in zip(region.summary(), seen.parts, strict=True):
        np.testing.assert_allclose(squares, part.explained.squares, rtol=1e-9)


def test_parts_without_a_row_of_it_are_left_out(posterior, plain):
    rows = uniform(60)
    deal = Deal(plain, rows, 4)
    left = np.concatenate([deal.places[0], deal.places[2][:5]])
    team = Team.of(plain, deal, np.sort(left), posterior, 2**30)
    assert (len(team), team.size) == (2, 20)
    one = np.flatnonzero(np.isin(np.sort(left), deal.places[2]))
    assert len(team.region(one, posterior.belief(rows[:1]))) == 1


def test_core_sets_and_checks_name_rows_of_the_whole(case):
    team, belief, _ = case
    core = team.core_sets(3)
    assert len(core) == 12
    assert core.tolist() == sorted(set(core.tolist()))
    whole = Team.of(Plain(), Deal(Plain(), belief.at, 1), np.arange(57), posterior_of(), 2**30)
    assert whole.core_sets(3).tolist() == core_set(posterior_of().belief(belief.at), 3).tolist()
    picks = np.array([5, 11, 30])
    every = np.arange(3)
    some = belief.on(picks)
    chosen = Chosen(some, np.linalg.cholesky(some.information().block(every, every)))
    kernels = [part.prior.kernel for part in belief.parts]
    expected = check(kernels, belief, chosen, picks)
    found = team.check(picks, chosen)
    best = np.array([one.gains for one in found]).argmax(axis=0)
    assert [int(found[i].where[step]) for step, i in enumerate(best)] == expected.where.tolist()
    assert not set(picks) & {int(i) for one in found for i in one.where}


def test_what_all_need_is_sent_to_all_and_the_memory_is_shared(posterior):
    plain = Plain(workers=2)
    Team.of(plain, Deal(plain, uniform(60), 4), np.arange(60), posterior, 2**30)
    assert sum(bool(options.get("broadcast")) for options in plain.sent) == 1
    assert plain.tasks == ["of"] * 4
