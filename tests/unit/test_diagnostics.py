import math
import re

import numpy as np
import pytest

import covey
from covey.catalog import STRATEGIES
from covey.diagnostics import certificate, explain, information_gain
from covey.policies import EST, UCB
from covey.strategies import DPP
from covey.two_roles import TwoRoles


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
    for strategy in (DPP(UCB()), DPP(EST(), then="max"), TwoRoles()):
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


def test_the_default_says_who_exploits_and_who_explores():
    space = covey.Space({"x": covey.Real(0.0, 1.0), "n": covey.Integer(1, 4)})
    study = covey.Study(space, seed=0)
    for _ in range(4):
        batch = study.ask(8)
        study.tell(batch, [-((trial.point["x"] - 0.3) ** 2) for trial in batch])
    study.ask(5)
    first, *_, last = study.diagnostics.reasons
    assert first.startswith("exploits")
    assert last.startswith("explores")
