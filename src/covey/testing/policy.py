"""`PolicyContract`: what strategies rely on in a `covey.policies.Policy`, as tests to inherit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from covey.arrays import Array
from covey.baselines import Hallucinated
from covey.policies import Policy, frozen, judge
from covey.space import Real, Space
from covey.strategies import DPP
from covey.study import Study
from covey.testing.beliefs import contents, example_belief, usual_beliefs, written_into

_LAST_ROUND = 40  # the latest round at which a width is tested


class PolicyContract:
    """Tests of any policy; say in `make_policy` how yours is made.

    class TestMine(PolicyContract):
        def make_policy(self):
            return Mine()
    """

    def make_policy(self) -> Policy:
        """A new policy."""
        raise NotImplementedError("a contract needs make_policy(self), which returns yours.")

    def test_it_gives_every_candidate_a_finite_score(self) -> None:
        """Scores (n,), of each member of a belief and of all together."""
        for kind, belief in usual_beliefs().items():
            for one in (*belief.members, belief):
                scores = np.asarray(judge(self.make_policy(), one).scores)
                assert scores.shape == (len(one),), f"of {kind}, scores are {scores.shape}"
                assert np.isfinite(scores).all(), f"of {kind}, scores are {scores}"

    def test_its_width_is_not_negative(self) -> None:
        """Of this round and of the next: the relevance region is built with both."""
        for kind, belief in usual_beliefs().items():
            for t in (1, 3, _LAST_ROUND):
                found = judge(self.make_policy(), replace(belief, round=t))
                for width in (found.width, found.next_width):
                    assert 0.0 <= width < np.inf, f"of {kind} in round {t}, a width is {width}"

    def test_it_is_a_pure_function_of_the_belief(self) -> None:
        """The same belief, the same scores, whatever was judged between."""
        policy = self.make_policy()
        for kind, belief in usual_beliefs().items():
            first = judge(policy, belief).scores.copy()
            judge(policy, example_belief(9, seed=2))
            again = judge(policy, belief).scores
            assert np.array_equal(first, again), f"of {kind}, scores changed when asked again"

    def test_it_does_not_write_into_the_belief(self) -> None:
        """Neither judging nor freezing does."""
        policy = self.make_policy()
        for kind, belief in usual_beliefs().items():
            before = contents(belief)
            for fixed, member in zip(frozen(policy, belief), belief.members, strict=True):
                fixed.judge(member)
            changed = written_into(belief, before)
            assert not changed, f"with {kind} it has written into {', '.join(changed)}"

    def test_freezing_where_it_stands_changes_no_score(self) -> None:
        """What is fixed for a batch is what it would have estimated at its start."""
        policy = self.make_policy()
        for kind, belief in usual_beliefs().items():
            for fixed, member in zip(frozen(policy, belief), belief.members, strict=True):
                scores = fixed.judge(member).scores
                _alike(scores, policy.judge(member).scores, f"frozen at {kind}, scores")

    def test_what_is_frozen_stays_as_it_is(self) -> None:
        """Frozen again, at the start of a batch or later in it, it scores as before."""
        for kind, belief in usual_beliefs().items():
            member = belief.members[0]
            [fixed] = frozen(self.make_policy(), member)
            later = member.after_looking_at([0])
            for when in (member, later):
                [again] = frozen(fixed, when)
                what = f"of {kind}, scores of what was frozen twice"
                _alike(again.judge(later).scores, fixed.judge(later).scores, what)

    def test_batches_and_studies_can_be_built_on_it(self) -> None:
        """As the first point of a DPP batch, and as every point of a hallucinated one."""
        for strategy in (DPP(self.make_policy(), then="max"), Hallucinated(self.make_policy())):
            for kind, belief in usual_beliefs().items():
                k = 1 + len(belief) // 4
                chosen = strategy.choose(belief, k, np.random.default_rng(0)).indices
                assert len(set(chosen)) == k, f"of {kind}, {strategy} chose {chosen}"
            study = Study(Space({"x": Real(0.0, 1.0)}), strategy=strategy, seed=0)
            for _ in range(3):
                batch = study.ask(2)
                study.tell(batch, [-((t.point["x"] - 0.4) ** 2) for t in batch])


def _alike(found: Array, expected: Array, what: str) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=f"{what} differ")
