"""The contract of policies catches each defect it speaks of, and passes a sound policy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.doors.testing.verdict import failed

from covey.policies import Judgement
from covey.testing import PolicyContract


@dataclass(frozen=True)
class Sound:
    """Probability of improvement over the best mean, which is fixed for a batch."""

    target: float | None = None

    def judge(self, belief, /):
        target = self.best(belief) if self.target is None else self.target
        return Judgement((belief.mean - target) / belief.std, 1.0, 1.0)

    def frozen_at(self, belief, /):
        return self if self.target is not None else replace(self, target=self.best(belief))

    def best(self, belief):
        return float(belief.mean.max()) + 1e-3


class Scalar(Sound):
    def judge(self, belief, /):
        return Judgement(super().judge(belief).scores.max(), 1.0, 1.0)


class Infinite(Sound):
    def judge(self, belief, /):
        scores = np.where(np.arange(len(belief)) == 0, -np.inf, belief.mean)
        return Judgement(scores, 1.0, 1.0)


class Negative(Sound):
    def judge(self, belief, /):
        return Judgement(belief.mean, 1.0, -1.0)


class Moody(Sound):
    calls = 0

    def judge(self, belief, /):
        type(self).calls += 1
        return Judgement(belief.mean + self.calls, 1.0, 1.0)


class Writes(Sound):
    def judge(self, belief, /):
        belief.parts[0].mean[0] += 1.0
        return super().judge(belief)


class ThawsWhenFrozenAgain(Sound):
    def best(self, belief):
        return float((belief.mean + belief.std).max())

    def frozen_at(self, belief, /):
        return replace(self, target=self.best(belief))


class FreezesSomethingElse(Sound):
    def frozen_at(self, belief, /):
        return replace(self, target=0.0)


def contract_of(policy):
    class Contract(PolicyContract):
        def make_policy(self):
            return policy()

    return Contract


class EstimatesNothing:
    """Judges, and has nothing to freeze."""

    def judge(self, belief, /):
        return Judgement((belief.mean - belief.best - 0.1) / belief.std, 1.0, 1.0)


class OfBefore(EstimatesNothing):
    """Written for an earlier version, which asked for both."""

    only_falls = True

    def frozen_at(self, belief, /):
        return self


@pytest.mark.parametrize("policy", [Sound, EstimatesNothing, OfBefore])
def test_a_sound_policy_passes(policy, tmp_path):
    assert failed(contract_of(policy), tmp_path) == set()


@pytest.mark.parametrize(
    ("policy", "named"),
    [
        (Scalar, "test_it_gives_every_candidate_a_finite_score"),
        (Infinite, "test_it_gives_every_candidate_a_finite_score"),
        (Negative, "test_its_width_is_not_negative"),
        (Moody, "test_it_is_a_pure_function_of_the_belief"),
        (Writes, "test_it_does_not_write_into_the_belief"),
        (ThawsWhenFrozenAgain, "test_what_is_frozen_stays_as_it_is"),
        (FreezesSomethingElse, "test_freezing_where_it_stands_changes_no_score"),
        (object, "test_batches_and_studies_can_be_built_on_it"),
    ],
)
def test_a_defect_is_caught(policy, named, tmp_path):
    assert named in failed(contract_of(policy), tmp_path, only=[named])
