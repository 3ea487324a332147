from __future__ import annotations

from collections import Counter
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chisquare
from tests.unit.cluster.conftest import posterior_of, uniform

from covey import dpp
from covey.catalog import STRATEGIES
from covey.cluster import afar
from covey.cluster.afar import belief_afar
from covey.cluster.batch import choose
from covey.cluster.deal import Deal
from covey.cluster.team import Team
from covey.policies import EST, UCB
from covey.strategies import DPP

MODELLED = [name for name, make in STRATEGIES.items() if make().needs_model]
N, K = 300, 8


@pytest.fixture
def few(monkeypatch):
    """Regions of more than forty rows are large."""
    monkeypatch.setattr(afar, "HERE", 40)
    monkeypatch.setattr("covey.cluster.batch._FEW", 64)


def case(plain, members=1, parts=3):
    rows, posterior = uniform(N), posterior_of(members)
    team = Team.of(plain, Deal(plain, rows, parts), np.arange(N), posterior, 2**30)
    plain.tasks.clear()
    return posterior.belief(rows, 2), belief_afar(team, posterior, rows, 2, 2**30), team


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("name", MODELLED)
def test_every_strategy_chooses_what_it_would_on_one_machine(name, members, plain, few):
    belief, far, team = case(plain, members)
    strategy = STRATEGIES[name]()
    here = strategy.choose(belief, K, np.random.default_rng(5))
    there = choose(strategy, far, K, np.random.default_rng(5), team, 16)
    assert there.indices == here.indices
    assert there.width == pytest.approx(here.width)
    assert (there.sampler, there.error) == (here.sampler, here.error)
    assert (there.region is None) == (here.region is None)
    if here.region is not None:
        assert there.region.tolist() == here.region.tolist()


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_however_many_parts_there_are(parts, plain, few):
    belief, far, team = case(plain, parts=parts)
    strategy = DPP(UCB(), then="max")
    here = strategy.choose(belief, 20, np.random.default_rng(0))
    assert choose(strategy, far, 20, np.random.default_rng(0), team, 16).indices == here.indices


def test_greedy_on_a_large_region_goes_by_core_sets(plain, few):
    _, far, team = case(plain)
    found = choose(DPP(UCB(), then="max"), far, K, np.random.default_rng(0), team, 16)
    assert found.sampler == "greedy"
    assert {"region", "core_set", "check"} <= set(plain.tasks)


def test_a_small_region_is_chosen_from_here(plain):
    _, far, team = case(plain)
    choose(DPP(UCB(), then="max"), far, K, np.random.default_rng(0), team, 16)
    assert "core_set" not in plain.tasks


def test_without_checks_it_says_what_it_did(plain, few):
    _, far, team = case(plain)
    found = choose(DPP(UCB(), then="max"), far, K, np.random.default_rng(0), team, 0)
    assert found.sampler == f"greedy on core-sets, the first 0 of {K - 1} picks proven"
    assert len(set(found.indices)) == K
    assert "check" not in plain.tasks


@pytest.mark.parametrize("then", ["max", "sample"])
@pytest.mark.parametrize("k", [1, 2])
def test_batches_of_one_and_two(k, then, plain, few):
    belief, far, team = case(plain)
    strategy = DPP(EST(), then=then)
    here = strategy.choose(belief, k, np.random.default_rng(5))
    there = choose(strategy, far, k, np.random.default_rng(5), team, 16)
    assert there.indices == here.indices


@pytest.mark.parametrize(("found", "method"), [("walk", "walk"), ("mixture", "auto")])
def test_a_few_rows_tell_how_a_large_region_is_drawn_from(found, method, plain, few, monkeypatch):
    """To try the mixture on all rows takes hundreds of columns, one by one."""
    tried = []
    prepare = dpp.prepare

    def spy(kernel, k, how="auto", **options):
        tried.append((len(kernel.diagonal), k, how))
        return SimpleNamespace(method=found) if len(tried) == 1 else prepare(kernel, k, how)

    monkeypatch.setattr(dpp, "prepare", spy)
    _, far, team = case(plain)
    drawn = choose(DPP(UCB()), far, K, np.random.default_rng(0), team, 16)
    assert tried == [(64, K - 1, "auto"), (len(drawn.region) - 1, K - 1, method)]
    assert drawn.sampler.startswith("walk") == (method == "walk")
    assert drawn.error <= 0.01


def test_what_is_drawn_by_name_is_drawn_so(plain, few):
    _, far, team = case(plain)
    found = choose(DPP(UCB(), method="spectral"), far, K, np.random.default_rng(0), team, 16)
    assert found.sampler == "spectral"


def test_draws_of_a_large_region_follow_the_kernel(plain, monkeypatch):
    """Against all pairs enumerated; and uniform pairs do not pass for such draws."""
    monkeypatch.setattr(afar, "HERE", 5)
    rows, posterior = uniform(9), posterior_of(noise=1e-3)
    belief = posterior.belief(rows, 2)
    team = Team.of(plain, Deal(plain, rows, 2), np.arange(9), posterior, 2**30)
    far = belief_afar(team, posterior, rows, 2, 2**30)
    draws = [
        choose(DPP(UCB(), method="walk"), far, 3, np.random.default_rng(i), team, 16).indices
        for i in range(600)
    ]
    head = draws[0][0]
    rest = [i for i in range(9) if i != head]
    kernel = belief.after_looking_at([head]).information()
    pairs = list(combinations(rest, 2))
    weights = np.exp([dpp.log_determinant(kernel, list(pair)) for pair in pairs])

    def agreement(drawn):
        seen = Counter(tuple(sorted(pair)) for pair in drawn)
        return chisquare(
            [seen[pair] for pair in pairs], len(drawn) * weights / weights.sum()
        ).pvalue

    rng = np.random.default_rng(0)
    assert agreement([batch[1:] for batch in draws]) > 1e-3
    assert agreement([rng.choice(rest, 2, replace=False).tolist() for _ in range(600)]) < 1e-3
