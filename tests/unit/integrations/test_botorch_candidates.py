"""Candidates within bounds: inside, feasible, distinct, and good."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pip install 'covey[botorch]'")
pytest.importorskip("botorch", reason="pip install 'covey[botorch]'")

from botorch.models import SingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP

from covey.errors import ExhaustedError, StrategyError
from covey.integrations.botorch_candidates import (
    Region,
    Upper,
    apart,
    feasible,
    new_rows,
    promising,
)
from covey.integrations.botorch_covariance import View

D = torch.double
BOX = torch.tensor([[-2.0, 0.0, 5.0], [2.0, 1.0, 9.0]], dtype=D)
NONE = BOX[:0]


def under(total):
    """x0 + x1 <= total, as BoTorch writes it."""
    return (torch.tensor([0, 1]), torch.tensor([-1.0, -1.0], dtype=D), -total)


def model(kind=SingleTaskGP, scale=1.0):
    g = torch.Generator().manual_seed(4)
    X = BOX[0] + (BOX[1] - BOX[0]) * torch.rand(12, 3, generator=g, dtype=D)
    with torch.no_grad():
        unit = (X - BOX[0]) / (BOX[1] - BOX[0])
        Y = scale * -(unit - 0.6).square().sum(-1, True)
    from botorch.models.transforms import Normalize

    return kind(X, Y, input_transform=Normalize(3, bounds=BOX))


def rng(seed=0):
    return np.random.default_rng(seed)


def inside(X):
    return bool(((BOX[0] <= X) & (BOX[1] >= X)).all())


def test_scattered_points_fill_the_box():
    X = Region(BOX).scattered(256, rng())
    unit = (X - BOX[0]) / (BOX[1] - BOX[0])
    assert X.shape == (256, 3)
    assert inside(X)
    counts = torch.histc(unit[:, 0], 8, 0.0, 1.0)
    assert counts.min() >= 28  # Sobol: 32 in each eighth, up to its scrambling
    assert torch.equal(X, Region(BOX).scattered(256, rng()))
    assert not torch.equal(X, Region(BOX).scattered(256, rng(1)))


def test_what_is_held_is_held_and_what_is_rounded_is_rounded():
    region = Region(BOX, fixed={1: 0.25}, post=lambda X: X.round(decimals=1))
    X = region.scattered(64, rng())
    assert (X[:, 1] == 0.2).all()  # after the rounding
    assert torch.equal(X, X.round(decimals=1))


@pytest.mark.parametrize(("total", "fixed"), [(0.0, {}), (-1.9, {}), (-1.5, {1: 0.4})])
def test_constraints_hold_even_where_few_points_obey(total, fixed):
    region = Region(BOX, [under(total)], fixed)
    X = region.scattered(128, rng())
    assert len(X) >= 64
    assert inside(X)
    assert feasible(X, region.constraints).all()
    assert (X[:, :2].sum(-1) <= total + 1e-8).all()
    if fixed:
        assert (X[:, 1] == 0.4).all()


def test_upper_is_what_it_says():
    view = View(model())
    X = Region(BOX).scattered(5, rng())
    mean, variance = view.moments(X)
    expected = (mean[0] + 2.0 * variance[0].sqrt()) / 3.0
    torch.testing.assert_close(Upper(view, 2.0, 3.0)(X.unsqueeze(1)), expected)


@pytest.mark.parametrize("scale", [1.0, 1e-7])
def test_promising_candidates_have_climbed_to_the_summit(scale):
    """The mean is best near 0.6 of each side; a Sobol set alone comes nowhere as near."""
    view = View(model(scale=scale))
    found = promising(view, Region(BOX), 4, NONE, rng())
    wide = Region(BOX).scattered(2048, rng())
    best, sobol = view.moments(found)[0].max().item(), view.moments(wide)[0].max().item()
    spread = view.moments(wide)[0].std().item()
    assert best > sobol + 1e-4 * spread
    assert inside(found)
    assert len(new_rows(found, NONE)) == len(found) > 2048


def test_an_ensemble_is_climbed_too():
    found = promising(View(model(EnsembleMapSaasSingleTaskGP)), Region(BOX), 2, NONE, rng())
    assert inside(found)


def test_a_constrained_climb_ends_inside():
    region = Region(BOX, [under(-0.5)], {2: 6.0})
    found = promising(View(model()), region, 4, NONE, rng())
    assert feasible(found, region.constraints).all()
    assert (found[:, 2] == 6.0).all()


def test_a_constrained_climb_goes_on_along_the_edge():
    """The summit is outside: who climbs past the constraint and is dropped ends short of it."""
    view = View(model())
    found = promising(view, Region(BOX, [under(0.0)]), 4, NONE, rng())
    best = found[view.moments(found)[0][0].argmax()]
    assert best[:2].sum().item() == pytest.approx(0.0, abs=1e-6)


def test_hardly_different_points_count_once_unless_all_are_needed():
    X = torch.tensor([[0.0, 0.5, 6.0], [1e-6, 0.5, 6.0], [1.0, 0.5, 6.0], [1.0, 0.5, 6.0]], dtype=D)
    assert apart(X, NONE, Region(BOX), 2).tolist() == [X[0].tolist(), X[2].tolist()]
    assert apart(X, NONE, Region(BOX), 3).tolist() == X[:3].tolist()
    assert apart(X, X[2:3], Region(BOX), 1).tolist() == [X[0].tolist()]


def test_new_rows_are_the_first_of_their_kind():
    X = torch.tensor([[1.0], [0.0], [-0.0], [2.0], [1.0]])
    assert new_rows(X, torch.tensor([[2.0]])).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        (torch.rand(3, 2), r"2 x d tensor, lower then upper; got \(3, 2\)"),
        ([(0, 1)], "got list"),
        (torch.tensor([[1.0], [0.0]]), "the lower ones first"),
        (torch.tensor([[0.0], [torch.inf]]), "finite"),
    ],
)
def test_malformed_bounds_are_refused(bounds, reason):
    with pytest.raises(StrategyError, match=reason):
        Region(bounds)


def test_constraints_across_the_batch_are_refused():
    across = (torch.tensor([[0, 1], [1, 1]]), torch.ones(2), 0.0)
    with pytest.raises(StrategyError, match="between the points of a batch"):
        Region(BOX, [across])


def test_columns_may_be_counted_from_the_end():
    assert Region(BOX, fixed={-1: 6.0}).fixed == {2: 6.0}
    with pytest.raises(StrategyError, match=r"columns \[3\]; there are 3"):
        Region(BOX, fixed={3: 6.0})


def test_nothing_feasible_is_said():
    nowhere = Region(BOX, post=lambda X: X[:0])
    with pytest.raises(ExhaustedError, match="no point within the bounds"):
        promising(View(model()), nowhere, 1, NONE, rng())


# Equalities


def summing_to(total):
    """x0 + x1 + x2 = total, as BoTorch writes it."""
    return (torch.tensor([0, 1, 2]), torch.ones(3, dtype=D), total)


def test_equalities_hold_wherever_points_come_from():
    equal = (summing_to(7.0),)
    region = Region(BOX, (under(1.0),), equalities=equal)
    wide = region.scattered(128, rng())
    assert len(wide) > 100
    climbed = promising(View(model(), None), region, 4, NONE, rng())
    for X in (wide, climbed):
        assert inside(X)
        assert bool(feasible(X, (under(1.0),), equal).all())
        assert float((X.sum(dim=-1) - 7.0).abs().max()) <= 1e-8
    assert not bool(feasible(torch.tensor([[0.0, 0.5, 5.0]], dtype=D), (), equal).any())


def test_what_is_fixed_stays_where_the_rest_makes_up():
    region = Region(BOX, fixed={0: 1.0}, equalities=(summing_to(7.5),))
    for X in (region.scattered(32, rng()), promising(View(model(), None), region, 4, NONE, rng())):
        assert len(X) >= 8
        assert bool((X[:, 0] == 1.0).all())
        assert float((X.sum(dim=-1) - 7.5).abs().max()) <= 1e-8


def test_the_summit_on_a_plane_is_climbed_to():
    """f falls with the distance to the point at 0.6 of the box; the plane does not hold it."""
    region = Region(BOX, equalities=(summing_to(7.0),))
    X = promising(View(model(), None), region, 4, NONE, rng())
    found = model().posterior(X)
    best = X[found.mean.squeeze(-1).argmax()]
    # By Lagrange, in units of the sides 4, 1 and 4: 0.6 less a multiple of (4, 1, 4), times 33.
    unit = 0.6 - (4 * 0.6 + 0.6 + 4 * 0.6 - (7.0 - 3.0)) / 33.0 * torch.tensor([4.0, 1.0, 4.0])
    aim = BOX[0] + (BOX[1] - BOX[0]) * unit.to(D)
    assert float(aim.sum()) == pytest.approx(7.0)
    there = model().posterior(aim[None]).mean.item()
    assert found.mean.max().item() >= there - 0.02
    assert bool(((best - aim).abs() <= 0.25 * (BOX[1] - BOX[0])).all())
