"""The contract of strategies catches each defect it speaks of, and passes a sound strategy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.doors.testing.verdict import failed

from covey.policies import UCB, judge
from covey.testing import StrategyContract

PURE = "test_it_is_a_pure_function_of_its_arguments"
JOURNAL = "test_a_study_goes_on_from_its_journal_as_if_it_had_never_stopped"


class Sound:
    """Scores become indices."""

    needs_model = True

    def choose(self, belief, k, rng, /):
        return np.argsort(-judge(UCB(4.0), belief).scores, kind="stable")[:k]


class Repeats(Sound):
    def choose(self, belief, k, rng, /):
        return rng.integers(len(belief), size=k)


class OneTooFew(Sound):
    def choose(self, belief, k, rng, /):
        return super().choose(belief, max(1, k - 1), rng)


class FirstMemberOnly(Sound):
    def choose(self, belief, k, rng, /):
        (part,) = belief.parts
        return np.argsort(-part.mean)[:k]


class OfDistinctPlaces(Sound):
    def choose(self, belief, k, rng, /):
        return np.unique(belief.at, axis=0, return_index=True)[1][:k]


class NeedsTwo(Sound):
    def choose(self, belief, k, rng, /):
        return super().choose(belief, k, rng) if np.ptp(belief.at[:, 0]) > 0.0 else [1]


class Remembers(Sound):
    """Begins where it ended, which no log knows."""

    def __init__(self):
        self.turn = 0

    def choose(self, belief, k, rng, /):
        self.turn += 1
        return np.roll(np.arange(len(belief)), -self.turn)[:k]


class HasItsOwnGenerator(Sound):
    def choose(self, belief, k, rng, /):
        return np.random.default_rng().permutation(len(belief))[:k]


class WritesTheMean(Sound):
    def choose(self, belief, k, rng, /):
        chosen = super().choose(belief, k, rng)
        belief.parts[0].mean[chosen] = 0.0
        return chosen


class SaysItNeedsNone(Sound):
    needs_model = False


class NobodyKnows(Sound):
    needs_model = None


def contract_of(strategy):
    class Contract(StrategyContract):
        def make_strategy(self):
            return strategy()

    return Contract


def test_a_sound_strategy_passes(tmp_path):
    assert failed(contract_of(Sound), tmp_path) == set()


@pytest.mark.parametrize(
    ("strategy", "named"),
    [
        (Repeats, "test_it_chooses_distinct_candidates_however_many"),
        (OneTooFew, "test_it_chooses_distinct_candidates_however_many"),
        (FirstMemberOnly, "test_it_chooses_distinct_candidates_however_many"),
        (OfDistinctPlaces, "test_it_chooses_distinct_candidates_however_many"),
        (NeedsTwo, "test_it_chooses_distinct_candidates_however_many"),
        (Remembers, PURE),
        (Remembers, JOURNAL),
        (HasItsOwnGenerator, PURE),
        (HasItsOwnGenerator, JOURNAL),
        (WritesTheMean, "test_it_does_not_write_into_the_belief"),
        (SaysItNeedsNone, "test_without_need_of_a_model_it_looks_at_places_only"),
        (NobodyKnows, "test_it_has_what_a_study_asks_for"),
    ],
)
def test_a_defect_is_caught(strategy, named, tmp_path):
    assert named in failed(contract_of(strategy), tmp_path, only=[named])


def test_a_contract_without_a_strategy_says_what_it_needs(tmp_path):
    with pytest.raises(NotImplementedError, match="make_strategy"):
        StrategyContract().make_strategy()
