import math
from dataclasses import replace

import numpy as np
import pytest

from covey.baselines import (
    Hallucinated,
    LocalPenalization,
    PureExploration,
    Random,
    Sobol,
    Thompson,
)
from covey.policies import EST, UCB, Restless


def test_hallucination_written_the_slow_way(make_belief):
    """BUCB: μ + √β_t σ_{t-1}, t counting evaluations, σ after the picks so far."""
    belief, rng = make_belief(0), np.random.default_rng(0)
    batch, seen = [], belief
    for b in range(4):
        beta = 2 * math.log(40 * math.pi**2 * (belief.looks + b + 1) ** 2 / 0.3)
        scores = belief.mean + math.sqrt(beta) * seen.std
        scores[batch] = -np.inf
        batch.append(int(np.argmax(scores)))
        seen = seen.after_looking_at(batch[-1:])
    assert list(Hallucinated(UCB()).choose(belief, 4, rng).indices) == batch


def test_b_est_written_the_slow_way(make_belief):
    """B-EST: m̂ once per batch, ν anew with the shrunken σ."""
    belief, rng = make_belief(3), np.random.default_rng(0)
    target, batch, seen = EST().maximum(belief), [], belief
    for _ in range(4):
        ratio = (target - belief.mean) / seen.std
        ratio[batch] = np.inf
        batch.append(int(np.argmin(ratio)))
        seen = seen.after_looking_at(batch[-1:])
    assert list(Hallucinated(EST()).choose(belief, 4, rng).indices) == batch


def test_a_restless_batch_leaves_a_summit_that_is_known(make_belief):
    """Point by point: UCB while a bound promises a gain, then where a gain is likeliest."""
    belief, rng = make_belief(0), np.random.default_rng(0)
    known = float(np.sort(belief.mean + 2.0 * belief.std)[-2])  # one candidate promises a gain
    nearly = replace(belief, told=(np.array([known]), np.array([0.1])))
    seen, batch = nearly, []
    for _ in range(4):
        upper = seen.mean + 2.0 * seen.std - known - 1e-3
        scores = np.where(upper > 0.0, upper, (seen.mean - known - 1e-2) / seen.std)
        scores[batch] = -np.inf
        batch.append(int(np.argmax(scores)))
        seen = nearly.after_looking_at(batch)
    chosen = Hallucinated(Restless(beta=4.0)).choose(nearly, 4, rng).indices
    assert list(chosen) == batch
    assert chosen[0] == int(np.argmax(belief.mean + 2.0 * belief.std))
    bored = replace(belief, told=(np.array([1e3]), np.array([0.1])))
    explores = Hallucinated(Restless(beta=4.0)).choose(bored, 4, rng).indices
    assert explores != Hallucinated(UCB(beta=4.0)).choose(bored, 4, rng).indices


def test_a_scout_chooses_the_first_point_only(make_belief):
    belief, rng = make_belief(0), np.random.default_rng(0)
    bored = replace(belief, told=(np.array([1e3]), np.array([0.1])))
    plain = Hallucinated(UCB(beta=4.0)).choose(bored, 4, rng).indices
    scouted = Hallucinated(UCB(beta=4.0), scout=Restless()).choose(bored, 4, rng).indices
    assert scouted[0] == int(np.argmax(Restless().judge(bored).scores)) != plain[0]
    seen, batch = bored.after_looking_at(scouted[:1]), [scouted[0]]
    for _ in range(3):
        scores = seen.mean + 2.0 * seen.std
        scores[batch] = -np.inf
        batch.append(int(np.argmax(scores)))
        seen = seen.after_looking_at(batch[-1:])
    assert list(scouted) == batch


@pytest.mark.parametrize(
    ("values", "width", "ready"),
    [
        ([1.0], 1, False),
        ([1.0, 2.0], 1, True),  # two for each input ...
        ([1.0] * 9 + [2.0], 50, True),  # ... but no more than the design
        ([1.0] * 8 + [2.0], 50, False),
        ([0.0] * 40, 2, False),  # equal results say nothing, however many
        ([5.0, 5.0 * (1.0 + 1e-14)] * 20, 2, False),
        ([-1e308, 1e308] * 5, 2, True),
    ],
)
def test_a_design_waits_for_results_that_differ(values, width, ready):
    assert Hallucinated(Restless(), design=10).ready(np.array(values), width) is ready
    assert Hallucinated(UCB()).ready(np.array(values), width)  # the paper's begins at once


def test_widening_explores_more(make_belief):
    belief, rng = make_belief(1), np.random.default_rng(0)
    wide = Hallucinated(UCB(beta=1.0), widen=50.0).choose(belief, 5, rng).indices
    narrow = Hallucinated(UCB(beta=1.0)).choose(belief, 5, rng).indices
    assert belief.var[list(wide)].sum() > belief.var[list(narrow)].sum()


def test_two_stages(make_belief):
    """Until a batch can learn at most C the picks are by variance; then C' = exp(C)."""
    belief, rng = make_belief(2), np.random.default_rng(0)
    first = Hallucinated(UCB(beta=1.0), budget=0.1).choose(belief, 3, rng).indices
    assert first[0] == int(np.argmax(belief.var))
    calm = replace(belief, parts=tuple(replace(p, noise=1e6) for p in belief.parts))
    second = Hallucinated(UCB(beta=1.0), budget=0.1).choose(calm, 3, rng)
    assert second.width == pytest.approx(math.exp(0.1))


def test_pure_exploration_reports_its_region(make_belief):
    chosen = PureExploration(UCB()).choose(make_belief(0), 3, np.random.default_rng(0))
    assert chosen.region is not None
    assert len(chosen.indices) == 3


def test_thompson_picks_maximisers_of_draws(make_belief):
    belief = make_belief(0)
    draws = belief.draw(np.random.default_rng(7), 3)
    chosen = Thompson().choose(belief, 3, np.random.default_rng(7)).indices
    assert chosen[0] == int(np.argmax(draws[0]))


def test_local_penalisation_far_below_zero(make_belief):
    """softplus of very negative scores must not underflow into a tie."""
    belief = make_belief(0)
    low = replace(belief, parts=tuple(replace(p, mean=p.mean - 1000.0) for p in belief.parts))
    expected = LocalPenalization().choose(low, 1, np.random.default_rng(0)).indices[0]
    assert expected == int(np.argmax(UCB(beta=4.0).judge(low).scores))


def test_the_model_free(make_belief):
    belief = make_belief(0)
    assert Sobol().choose(belief, 3, np.random.default_rng(0)).indices == (0, 1, 2)
    drawn = Random().choose(belief, 40, np.random.default_rng(0)).indices
    assert sorted(drawn) == list(range(40))
    assert not Random.needs_model
    assert not Sobol.needs_model
