"""`StrategyContract`: what a study relies on in a strategy, as tests to inherit.

It tests `covey.selection.Strategy`: k distinct indices, a pure function of its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from covey.belief import Belief
from covey.selection import Strategy, checked_selection
from covey.space import Choice, Integer, Linear, Pool, Real, Space
from covey.study import Study
from covey.testing.beliefs import contents, example_belief, usual_beliefs, written_into

_SEED = 7


class StrategyContract:
    """Tests of any strategy; say in `make_strategy` how yours is made.

    class TestMine(StrategyContract):
        def make_strategy(self):
            return Mine()
    """

    def make_strategy(self) -> Strategy:
        """A new strategy; two of them are to choose alike."""
        raise NotImplementedError("a contract needs make_strategy(self), which returns yours.")

    def test_it_has_what_a_study_asks_for(self) -> None:
        """The protocol: `needs_model`, which is true or false, and `choose`."""
        strategy = self.make_strategy()
        assert isinstance(strategy, Strategy), f"{strategy!r} lacks needs_model or choose"
        assert isinstance(strategy.needs_model, bool), f"needs_model is {strategy.needs_model!r}"

    def test_it_chooses_distinct_candidates_however_many(self) -> None:
        """One, some and all of them; of equal ones, and of a belief with several members too."""
        strategy = self.make_strategy()
        for kind, belief in usual_beliefs().items():
            n = len(belief)
            for k in sorted({1, 1 + n // 4, n}):
                indices = _chosen(strategy, belief, k)
                assert len(set(indices)) == k, f"of {kind}, {k} were wanted; it chose {indices}"

    def test_it_is_a_pure_function_of_its_arguments(self) -> None:
        """The same belief, k and state of the generator: the same batch, whatever came between."""
        strategy, other = self.make_strategy(), example_belief(9, seed=2)
        for kind, belief in usual_beliefs().items():
            k = 1 + len(belief) // 4
            first = _chosen(strategy, belief, k)
            _chosen(strategy, other, 4)
            assert _chosen(strategy, belief, k) == first, f"of {kind} it chose anew, asked again"
            new = _chosen(self.make_strategy(), belief, k)
            assert new == first, f"of {kind} a new strategy chose {new}, the old one {first}"

    def test_it_does_not_write_into_the_belief(self) -> None:
        """Others will read it: the diagnostics, and the next strategy."""
        strategy = self.make_strategy()
        for kind, belief in usual_beliefs().items():
            before = contents(belief)
            _chosen(strategy, belief, 1 + len(belief) // 4)
            changed = written_into(belief, before)
            assert not changed, f"with {kind} it has written into {', '.join(changed)}"

    def test_without_need_of_a_model_it_looks_at_places_only(self) -> None:
        """A study then offers places and nothing else: a belief without members."""
        strategy = self.make_strategy()
        if strategy.needs_model:
            return
        belief = example_belief()
        bare = Belief(belief.at, (), best=0.0)
        assert _chosen(strategy, bare, 5) == _chosen(strategy, belief, 5), (
            "it says that it needs no model, and its batch depends on one"
        )

    def test_a_study_goes_on_from_its_journal_as_if_it_had_never_stopped(
        self, tmp_path: Path
    ) -> None:
        """Each batch by a new process: the strategy carries nothing that is not in the log."""
        pool = Pool([{"x": i / 7.0, "y": j / 7.0} for i in range(8) for j in range(8)])
        whole = Study(pool, strategy=self.make_strategy(), seed=0)
        journal = tmp_path / "run.jsonl"
        Study(pool, strategy=self.make_strategy(), seed=0, journal=journal)
        for batch in range(4):
            loaded = Study.load(journal, space=pool, strategy=self.make_strategy())
            for study in (whole, loaded):
                trials = study.ask(4)
                study.tell(trials, [t.point["x"] - t.point["y"] ** 2 for t in trials])
            ours, theirs = _points(whole), _points(loaded)
            assert ours == theirs, f"batch {batch + 1} differs after the study was loaded again"

    def test_what_is_pending_is_not_chosen_again(self) -> None:
        """Two asks before a tell."""
        pool = Pool([{"a": i, "b": i % 3} for i in range(24)])
        study = Study(pool, strategy=self.make_strategy(), seed=0)
        first = study.ask(3)
        study.tell(first, [float(t.point["a"]) for t in first])
        study.ask(3)
        study.ask(3)
        _all_differ(_points(study))

    def test_a_pool_is_used_up_to_its_last_row(self) -> None:
        """As many as are left, every one of them once."""
        pool = Pool([{"a": i, "b": i % 3} for i in range(9)])
        study = Study(pool, strategy=self.make_strategy(), seed=0)
        study.tell(study.ask(4), [0.0, 1.0, 2.0, 3.0])
        study.ask(5)
        found = sorted(point["a"] for point in _points(study))
        assert found == list(range(9)), f"of nine rows it used {found}"

    def test_a_study_of_mixed_parameters_with_constraints_runs(self) -> None:
        """Batches of three, from the first, when nothing is known, to the third."""
        space = Space(
            {
                "rate": Real(1e-5, 1e-1, log=True),
                "layers": Integer(1, 8),
                "kind": Choice(["a", "b", "c"]),
            },
            where=[Linear({"layers": 1, "rate": 10}, upper=6.0)],
        )
        study = Study(space, strategy=self.make_strategy(), seed=0)
        for _ in range(3):
            batch = study.ask(3)
            study.tell(batch, [t.point["layers"] - t.point["rate"] for t in batch])
        _all_differ(_points(study))

    def test_outcomes_that_are_all_equal_give_a_batch(self) -> None:
        """As from an assay that finds nothing at first."""
        space = Space({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)})
        study = Study(space, strategy=self.make_strategy(), seed=0)
        study.tell(study.ask(6), [2.5] * 6)
        study.ask(4)
        _all_differ(_points(study))


def _chosen(strategy: Strategy, belief: Belief, k: int) -> tuple[int, ...]:
    """Its choice with a generator that is always in the same state."""
    chosen = strategy.choose(belief, k, np.random.default_rng(_SEED))
    return checked_selection(chosen, k, len(belief)).indices


def _points(study: Study) -> list[dict[str, Any]]:
    return [dict(trial.point) for trial in study.history.trials]


def _all_differ(points: Iterable[dict[str, Any]]) -> None:
    seen = [tuple(point.items()) for point in points]
    twice = {point for point in seen if seen.count(point) > 1}
    assert not twice, f"asked for twice: {sorted(map(str, twice))}"
