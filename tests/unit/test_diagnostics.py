import math
import re

import numpy as np
import pytest

import covey
from covey import dpp
from covey.catalog import STRATEGIES
from covey.diagnostics import (
    batched_est_bound,
    certificate,
    dpp_max_bound,
    dpp_sample_bound,
    est_bound,
    explain,
    information_gain,
    ucb_bound,
    zeta_width,
)
from covey.policies import EST, UCB
from covey.spread import SpreadUCB
from covey.strategies import DPP


def test_bounds_by_hand():
    per_nat = 1.0 / math.log1p(1.0 / 0.01)
    assert ucb_bound(100, 4.0, 30.0, 0.01) == pytest.approx(math.sqrt(8 * 100 * 4 * 30 * per_nat))
    zeta = 2 * math.log(math.pi**2 * 100**2 / 0.3)
    assert est_bound(100, 2.0, 30.0, 0.01) == pytest.approx(
        (2 + math.sqrt(zeta)) * math.sqrt(2 * 100 * 30 * per_nat)
    )
    assert batched_est_bound(10.0, 2.0, 3.0, 5) == 50.0
    assert zeta_width(100) == pytest.approx(math.sqrt(2 * math.log(math.pi**2 * 1e4 / 0.15)))
    assert dpp_max_bound(100, 2.0, 30.0, 0.01) == pytest.approx(
        math.sqrt(36 * per_nat * 100 * 4 * 30)
    )


def test_the_size_of_the_papers_bound():
    """MATH 8.2: n = 1000, T = 20, B = 5, σ² = 0.01, γ = 30 gives 876, a vacuous 8.8 per query."""
    beta = 2 * math.log(1000 * math.pi**2 * 20**2 / (6 * 0.05))
    assert dpp_max_bound(100, math.sqrt(beta), 30.0, 0.01) == pytest.approx(876, rel=0.01)


def test_the_entropy_bound_is_never_the_smaller():
    """MATH E18: log C(n, k) ≥ H, so DPP-SAMPLE's bound is DPP-MAX's."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        a = rng.standard_normal((8, 8))
        kernel = np.eye(8) + a @ a.T
        spread = math.log(math.comb(8, 3)) - dpp.entropy(kernel, 3)
        assert spread >= -1e-9
        assert dpp_sample_bound(50, 2.0, 10.0, 0.1, spread) == dpp_max_bound(50, 2.0, 10.0, 0.1)
    # The control: with the sum over t dropped, as printed, the minimum can be the entropy bound.
    assert dpp_sample_bound(50, 2.0, 10.0, 0.1, -8.0) < dpp_max_bound(50, 2.0, 10.0, 0.1)


def test_explain_tells_what_happened(make_belief):
    belief = make_belief(0)
    strategy = DPP(UCB(beta=4.0), then="max")
    chosen = strategy.choose(belief, 4, np.random.default_rng(0))
    told = explain(belief, chosen, "mine", lambda v: 7.0 + 3.0 * v, {"fit": 0.5})
    assert (told.strategy, told.batch, told.candidates, told.width) == ("mine", 4, 40, 2.0)
    assert told.region == len(chosen.region)
    assert told.log_determinant == pytest.approx(told.greedy_log_determinant)
    assert told.information == pytest.approx(information_gain(belief, chosen.indices))
    assert told.certificate == pytest.approx(3 * certificate(belief, 2.0, chosen.indices).max())
    assert 0.0 < told.repulsive < 1.0
    assert told.seconds == {"fit": 0.5}


def test_a_drawn_batch_has_at_most_the_greedy_determinant_or_so(make_belief):
    belief = make_belief(0)
    for seed in range(5):
        chosen = DPP(UCB()).choose(belief, 4, np.random.default_rng(seed))
        told = explain(belief, chosen, "", None, {})
        assert told.certificate is None
        assert told.log_determinant <= told.greedy_log_determinant / (1 - math.exp(-1)) + 1e-9


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_point_of_a_batch_has_its_reason(strategy):
    space = covey.Space({"x": covey.Real(0.0, 1.0), "n": covey.Integer(1, 4)})
    study = covey.Study(space, strategy=strategy, seed=0)
    batch = study.ask(8)
    study.tell(batch, [trial.point["x"] + trial.point["n"] for trial in batch])
    assert len(set(study.diagnostics.reasons)) == 1  # of a design
    batch = study.ask(5)
    assert len(study.diagnostics.reasons) == 5
    assert all(study.diagnostics.reasons)


def test_each_points_part_of_the_determinant_adds_up_to_the_information(make_belief):
    belief = make_belief(0)
    for strategy in (DPP(UCB()), DPP(EST(), then="max"), SpreadUCB()):
        chosen = strategy.choose(belief, 6, np.random.default_rng(0))
        told = explain(belief, chosen, "", None, {})
        assert sum(told.nats) == pytest.approx(told.information)
        for b in range(1, 6):
            seen = belief.after_looking_at(chosen.indices[:b], on=[chosen.indices[b]])
            assert told.nats[b] == pytest.approx(0.5 * math.log1p(seen.var[0] / seen.noise))


def test_a_dpp_says_what_came_first_and_what_was_drawn_from_where(make_belief):
    chosen = DPP(UCB(beta=4.0)).choose(make_belief(0), 4, np.random.default_rng(0))
    first, *rest = chosen.reasons
    assert first == "first: the largest upper bound (UCB, width 2)"
    assert len(set(rest)) == 1
    assert re.fullmatch(r"drawn .* determinant from \d+ relevant candidates", rest[0])


def test_a_restarted_study_knows_the_reasons(tmp_path):
    space = covey.Space({"x": covey.Real(0.0, 1.0), "n": covey.Integer(1, 4)})
    study = covey.Study(space, strategy="est-dpp-sample", seed=0, journal=tmp_path / "run.jsonl")
    batch = study.ask(8)
    study.tell(batch, [trial.point["x"] + trial.point["n"] for trial in batch])
    design, batch = batch, study.ask(5)
    said = [study.history.why(trial) for trial in batch]
    again = covey.Study.load(tmp_path / "run.jsonl", read_only=True).history
    assert [again.why(trial) for trial in batch] == said
    assert all(why.endswith(" nats given those before it") for why in said)
    assert again.batches[-1].reasons == study.diagnostics.reasons
    assert again.batches[-1].nats == pytest.approx(study.diagnostics.nats, rel=1e-2)
    assert not any(again.why(trial) for trial in design)  # the name of the strategy says it


def test_the_default_says_who_scouts_polishes_and_dissents():
    space = covey.Space({"x": covey.Real(0.0, 1.0), "n": covey.Integer(1, 4)})
    study = covey.Study(space, seed=0)
    batch = study.ask(8)
    study.tell(batch, [trial.point["x"] + trial.point["n"] for trial in batch])
    study.ask(5)
    first, *_, last = study.diagnostics.reasons
    assert first.startswith("scouts")
    assert last.startswith("takes another level")
