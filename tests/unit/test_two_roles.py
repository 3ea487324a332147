"""The default: exploit while a pick promises a gain, else explore where a sceptic sees a chance."""

from dataclasses import replace

import numpy as np
import pytest

from covey import two_roles
from covey.baselines import Hallucinated
from covey.belief import Belief
from covey.errors import StrategyError
from covey.gp import Model, condition, observe
from covey.kernels import Matern52, SquaredExponential
from covey.policies import EST, UCB, judge
from covey.testing import StrategyContract
from covey.two_roles import TwoRoles


class TestTheDefault(StrategyContract):
    def make_strategy(self):
        return TwoRoles()


def fitted(kernel, n: int = 200, pending: int = 0, seed: int = 0, noise: float = 1e-4) -> Belief:
    rng = np.random.default_rng(seed)
    seen = rng.random((12, len(kernel.lengths)))
    values = np.sin(5.0 * seen[:, 0]) + seen[:, 1]
    data = observe(seen, values, np.full(12, np.nan))
    under_way = rng.random((pending, seen.shape[1])) if pending else None
    posterior = condition((Model(kernel, noise, 0.0),), data, under_way)
    belief = posterior.belief(rng.random((n, seen.shape[1])))
    return replace(belief, told=(posterior.belief(seen).mean, np.zeros(12)))


@pytest.mark.parametrize("kind", [SquaredExponential, Matern52])
def test_a_sceptic_has_the_same_data_and_shorter_length_scales(kind):
    """The referee is a model with these length-scales from the start."""
    belief = fitted(kind((0.6, 0.4), 1.3), pending=3)
    other = fitted(kind((0.3, 0.2), 1.3), pending=3)
    np.testing.assert_allclose(belief.doubted(2.0).std, other.std, rtol=1e-9)
    np.testing.assert_array_equal(belief.doubted(2.0).mean, belief.mean)
    assert np.abs(belief.std / other.std - 1.0).max() > 0.1  # the control: they differ at all


def test_doubting_and_looking_commute():
    belief = fitted(Matern52((0.6, 0.4)))
    first, then = belief.after_looking_at([3, 70]).doubted(2.0), belief.doubted(2.0)
    np.testing.assert_allclose(first.std, then.after_looking_at([3, 70]).std, rtol=1e-9)


def test_to_doubt_by_one_changes_nothing():
    belief = fitted(Matern52((0.6, 0.4)))
    np.testing.assert_allclose(belief.doubted(1.0).std, belief.std, rtol=1e-9)


def test_without_length_scales_a_sceptic_has_wider_bands():
    root = np.random.default_rng(1).standard_normal((30, 30))
    belief = Belief.dense(np.zeros((30, 1)), np.zeros(30), root @ root.T, 0.1)
    sceptic = belief.doubted(3.0)
    np.testing.assert_allclose(sceptic.std, 3.0 * belief.std)
    np.testing.assert_allclose(sceptic.columns([4, 7]), 9.0 * belief.columns([4, 7]))
    some = sceptic.on([1, 5, 9])
    np.testing.assert_allclose(
        some.after_looking_at([0]).std, sceptic.after_looking_at([1], on=[1, 5, 9]).std
    )


@pytest.mark.parametrize("seed", range(4))
def test_where_any_gain_is_enough_it_is_hallucinated_upper_bounds(seed):
    belief = fitted(Matern52((0.5, 0.5)), seed=seed)
    ours = TwoRoles(width=2.0, gain=0.0).choose(belief, 8, np.random.default_rng(0))
    assert (
        ours.indices == Hallucinated(UCB(4.0)).choose(belief, 8, np.random.default_rng(1)).indices
    )
    assert {why.split(":")[0] for why in ours.reasons} == {"exploits"}


def test_where_no_gain_is_enough_the_first_exploits_and_others_are_est_on_the_sceptic():
    belief = fitted(Matern52((0.5, 0.5)))
    chosen = TwoRoles(gain=1e9).choose(belief, 5, np.random.default_rng(0))
    roles = [why.split(":")[0] for why in chosen.reasons]
    assert roles == ["exploits"] + ["explores"] * 4
    m = max(float(belief.told[0].max()), float(belief.mean[chosen.indices[0]]))
    sceptic, taken = belief.doubted(2.0), []
    for pick in chosen.indices:
        if taken:
            scores = judge(EST(target=m + 0.1), sceptic).scores.copy()
            scores[taken] = -np.inf
            assert pick == int(np.argmax(scores))
            m = max(m, float(belief.mean[pick]))
        taken.append(pick)
        sceptic = sceptic.after_looking_at([pick])


def test_where_no_candidate_is_as_good_as_the_best_known_others_explore_all_the_same():
    """As in pools and grids, whose known points may not be proposed again."""
    belief = replace(fitted(Matern52((0.5, 0.5))), told=(np.array([5.0]), np.zeros(1)))
    reasons = TwoRoles(gain=1e9).choose(belief, 5, np.random.default_rng(0)).reasons
    assert [why.split(":")[0] for why in reasons] == ["exploits"] + ["explores"] * 4


def test_the_place_in_an_ask_plays_no_part():
    """The third pick of a batch is the first of an ask with the first two under way."""
    kernel = Matern52((0.5, 0.5))
    belief = fitted(kernel)
    batch = TwoRoles(gain=30.0).choose(belief, 6, np.random.default_rng(0)).indices
    for k in range(1, 6):
        pending = list(batch[:k])
        later = replace(
            belief.after_looking_at(pending),
            under_way=belief.at[pending],
            awaited=belief.mean[pending],
            resolution=np.full(2, 1e-9),
        )
        assert TwoRoles(gain=30.0).choose(later, 1, np.random.default_rng(k)).indices == (batch[k],)


def in_a_large_pool(monkeypatch, places: int, under_way: int, k: int) -> np.ndarray:
    """Picks, rounded, from a pool of 200 rows at so many places, of which 20 rows are listed."""
    monkeypatch.setattr(two_roles, "_LISTED", 20)
    grid = np.linspace(0.0, 1.0, places)
    at = np.repeat(np.column_stack([grid, grid]), 200 // places, axis=0)
    pending = np.column_stack([grid, grid])[:under_way]
    about = condition((Model(Matern52((0.5, 0.5)), 1e-4, 0.0),), belief_data(), pending)
    seen = replace(about.belief(at), resolution=np.full(2, 0.01))
    if under_way:
        seen = replace(seen, under_way=pending, awaited=about.belief(pending).mean)
    return at[list(TwoRoles().choose(seen, k, np.random.default_rng(0)).indices)]


def belief_data():
    seen = np.random.default_rng(0).random((12, 2))
    return observe(seen, np.sin(5.0 * seen[:, 0]), np.full(12, np.nan))


def test_a_short_list_that_has_copies_alone_is_left(monkeypatch):
    picks = in_a_large_pool(monkeypatch, places=10, under_way=0, k=8)
    assert len(np.unique(picks, axis=0)) == 8


@pytest.mark.parametrize("under_way", [9, 10])
def test_a_large_pool_whose_places_are_under_way_still_yields_a_batch(monkeypatch, under_way):
    picks = in_a_large_pool(monkeypatch, places=10, under_way=under_way, k=25)
    assert len(picks) == 25


def test_more_noise_makes_less_worth_exploiting():
    def exploiting(noise: float) -> int:
        belief = fitted(Matern52((0.5, 0.5)), noise=noise)
        reasons = TwoRoles().choose(belief, 10, np.random.default_rng(0)).reasons
        return sum(why.startswith("exploits") for why in reasons)

    assert exploiting(1e-6) >= 9
    assert exploiting(0.5) <= 3


def test_candidates_that_hardly_count_are_not_explored():
    belief = fitted(Matern52((0.5, 0.5)))
    weight = np.where(belief.at[:, 0] < 0.5, 1.0, 0.01)
    chosen = TwoRoles(gain=1e9).choose(replace(belief, weight=weight), 6, np.random.default_rng(0))
    assert (weight[list(chosen.indices)] == 1.0).all()


@pytest.mark.parametrize("kind", [SquaredExponential, Matern52])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_halved_length_scales_cost_at_most_two_to_the_d_in_variance(kind, d):
    """σ² + s² <= 2^d (σ'² + s²): the reason for the factor 2^-p of a gain."""
    rng, most = np.random.default_rng(d), 0.0
    for _ in range(20):
        seen, at = rng.random((rng.integers(1, 15), d)), rng.random((50, d))
        noise = 10.0 ** rng.uniform(-6, 0)
        lengths = tuple(rng.uniform(0.1, 2.0, d))
        left = []
        for share in (1.0, 0.5):
            kernel = kind(tuple(share * length for length in lengths))
            gram = kernel(seen, seen) + noise * np.eye(len(seen))
            cross = kernel(seen, at)
            left.append(1.0 - np.einsum("ij,ij->j", cross, np.linalg.solve(gram, cross)) + noise)
        most = max(most, float((left[0] / left[1]).max()))
    assert most <= 2.0**d * (1.0 + 1e-9)


@pytest.mark.parametrize("wrong", [{"width": -1.0}, {"gain": -0.1}, {"reach": 0.0}, {"doubt": 0.5}])
def test_impossible_numbers_are_refused(wrong):
    name, value = next(iter(wrong.items()))
    with pytest.raises(StrategyError, match=f"{name}.*{value}"):
        TwoRoles(**wrong)
