"""The size of the rounds of a walk."""

from __future__ import annotations

from covey.dpp.walk import Pace, RoundResult


def test_a_round_has_proposals_for_all_its_positions():
    pace = Pace((4, 12, 48), most=32, k=9, n=1000)
    assert (pace.positions, pace.proposals, pace.anchored) == (32, 36, False)


def test_few_acceptances_make_fewer_positions_and_more_proposals():
    pace = Pace((4, 12, 48, 192), most=32, k=9, n=1000)
    pace.adjust(RoundResult(2, 36), 32, 1.0)
    assert (pace.positions, pace.proposals) == (5, 81)
    pace.adjust(RoundResult(0, 81), 5, 1.0)
    assert (pace.positions, pace.proposals) == (1, 88)


def test_proposals_stay_within_the_sizes_of_the_blocks():
    pace = Pace((4, 12), most=32, k=9, n=1000)
    assert pace.proposals == 12
    pace.adjust(RoundResult(1, 1), 32, 1.0)
    assert pace.proposals == 4


def test_a_pass_is_due_when_all_blocks_were_refused_in_a_row():
    pace = Pace((4, 12), most=1, k=9, n=1000)
    pace.adjust(RoundResult(0, 12), 1, 1.0)
    assert not pace.anchored
    pace.adjust(RoundResult(1, 12), 1, 1.0)
    pace.adjust(RoundResult(0, 12), 1, 1.0)
    assert not pace.anchored
    pace.adjust(RoundResult(0, 12), 1, 1.0)
    assert pace.anchored
    assert (pace.positions, pace.proposals) == (2, 8)


def test_without_blocks_every_round_is_a_pass():
    pace = Pace((), most=32, k=40, n=1000)
    for _ in range(3):
        assert (pace.anchored, pace.positions) == (True, 10)
        pace.adjust(RoundResult(10, 12), 10, 0.9)


def test_a_pass_that_does_not_suffice_is_followed_by_one_for_fewer_positions():
    pace = Pace((), most=32, k=40, n=1000)
    for positions in (10, 5, 2, 1, 1):
        assert pace.positions == positions
        pace.adjust(RoundResult(0, 40), positions, 1e-9)


def test_passes_go_on_only_while_they_bring_more_than_proposals():
    for share, again in ((1e-6, True), (0.5, False)):
        pace = Pace((2,), most=8, k=8, n=1000)
        pace.adjust(RoundResult(0, 2), 8, 1.0)
        pace.adjust(RoundResult(2, 3), 2, share)
        assert pace.anchored is again
