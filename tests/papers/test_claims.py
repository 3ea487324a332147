"""Claims: what holds in made-up runs is found to hold, what does not is not, and chance is open."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from papers.kathuria2016.claims import MOMENTS, SIZED, Claim, Verdict, judged
from papers.kathuria2016.entrants import ENTRANTS
from papers.kathuria2016.judge import SIDES, START, cells, entrant, field, score
from papers.kathuria2016.problems import PROBLEMS
from papers.kathuria2016.sentences import CLAIMS, HEADLINES, UNJUDGED

TWO = (("ucb", "sample"), ("ucb", "max"))
SAMPLES_LESS = Claim("", "", (TWO,), ("branin", "cosines"), (5, 10))


def made_up(level, *, problems=("branin", "cosines"), batches=(5, 10), seeds=40, noise=0.4):
    """Runs of two entrants a side; ``level(kind, problem, batch)`` is where a regret ends.

    A run has 20 looks and begins at a regret of 10; within it the regret falls evenly in logs.
    """
    rows = []
    for problem, batch, seed in product(problems, batches, range(seeds)):
        for name, one in ENTRANTS.items():
            if one.rule == "ucb" and one.kind in ("sample", "max"):
                rng = np.random.default_rng([seed, batch, *name.encode(), *problem.encode()])
                end = level(one.kind, problem, batch) * np.exp(noise * rng.standard_normal())
                curve = np.geomspace(10.0, end, 20 // batch + 1).tolist()
                rows.append(
                    {
                        "entrant": name, "problem": problem, "batch": batch, "seed": seed,
                        "evaluations": 20, "samples": 5, "title": problem, "grid": None,
                        "recommendation": "anywhere", "seen": curve, "told": curve,
                        "anywhere": curve, "cumulative": np.cumsum(curve).tolist(),
                        "seconds": 1.0, "cpu": 2.0, "version": "covey 0+0",
                    }
                )  # fmt: skip
    return cells(rows)


def counts(verdict):
    return len(verdict.pro), len(verdict.contra), len(verdict.open)


def rule(claim, table, moment="end", side="paper"):
    return judged(claim, side, moment, table).ruling


@pytest.mark.parametrize(
    ("pro", "contra", "open_", "ruling"),
    [
        (3, 0, 2, "holds"),
        (2, 0, 2, "not decided"),
        (0, 0, 4, "not decided"),
        (3, 2, 4, "holds in part"),
        (3, 2, 5, "not decided"),
        (2, 2, 0, "does not hold"),
        (0, 3, 2, "does not hold"),
        (0, 2, 2, "not decided"),
        (0, 1, 20, "not decided"),  # the controls: one of many decides nothing, either way
        (1, 0, 20, "not decided"),
        (0, 0, 0, "solved by all"),
    ],
)
def test_the_rule(pro, contra, open_, ruling):
    bouts = [("bout",) * n for n in (pro, contra, open_)]
    for solved in ((), ("bout",) * 50):  # which do not count
        assert Verdict(SAMPLES_LESS, "paper", "end", *bouts, solved).ruling == ruling


def test_a_claim_that_holds():
    table = made_up(lambda kind, *_: 0.5 if kind == "sample" else 1.0)
    for side, moment in product(SIDES, ("quarter", "end")):
        verdict = judged(SAMPLES_LESS, side, moment, table)
        assert verdict.ruling == "holds"
        assert verdict.side == side
    assert {bout.cell for bout in verdict.pro} == {
        "branin 5", "branin 10", "cosines 5", "cosines 10"
    }  # fmt: skip
    assert verdict.pro[0].medians[0] < verdict.pro[0].medians[1]
    assert verdict.pro[0].runs == 40


def test_a_claim_that_does_not_hold_and_one_that_holds_in_part():
    backwards = made_up(lambda kind, *_: 2.0 if kind == "sample" else 1.0)
    assert rule(SAMPLES_LESS, backwards) == "does not hold"

    def one_exception(kind, problem, batch):
        worse = (problem, batch) == ("cosines", 10)
        return (2.0 if worse else 0.5) if kind == "sample" else 1.0

    verdict = judged(SAMPLES_LESS, "paper", "end", made_up(one_exception))
    assert verdict.ruling == "holds in part"
    assert [bout.cell for bout in verdict.contra] == ["cosines 10"]


def test_chance_is_open():
    """The negative control: of many claims about equals at most a twentieth or so are decided."""
    rulings = []
    for i in range(40):
        level = 1.0 + i  # other numbers, since seeds are fixed
        table = made_up(lambda *_, level=level: level, problems=(f"p{i}",), seeds=12)
        rulings.append(rule(Claim("", "", (TWO,), (f"p{i}",)), table))
    assert rulings.count("not decided") >= 35


def test_many_cells_ask_for_more_evidence():
    """Holm: what one cell alone would decide is open among many."""

    def level(kind, problem, batch):
        return 0.72 if (kind, problem, batch) == ("sample", "branin", 5) else 1.0

    problems = ("branin", *(f"p{i}" for i in range(12)))
    table = made_up(level, problems=problems)
    alone = Claim("", "", (TWO,), ("branin",), (5,))
    assert rule(alone, table) == "holds"
    among = judged(Claim("", "", (TWO,), problems), "paper", "end", table)
    assert "branin 5" not in {bout.cell for bout in among.pro}


def test_close_and_competitive_need_evidence_too():
    close = Claim("", "", (TWO,), ("branin",), (5,), "close", ("end",))
    near = Claim("", "", (TWO,), ("branin",), (5,), "competitive", ("end",))
    equals = made_up(lambda *_: 1.0, noise=0.1)
    assert rule(close, equals) == rule(near, equals) == "holds"
    better = made_up(lambda kind, *_: 0.2 if kind == "sample" else 1.0, noise=0.1)
    assert rule(close, better) == "does not hold"
    assert rule(near, better) == "holds"
    worse = made_up(lambda kind, *_: 4.0 if kind == "sample" else 1.0, noise=0.1)
    assert rule(close, worse) == rule(near, worse) == "does not hold"
    few = made_up(lambda *_: 1.0, noise=2.0, seeds=5)
    assert rule(close, few) == rule(near, few) == "not decided"


@pytest.mark.parametrize("sort", ["less", "close", "competitive", "gains", "leads", "steady"])
def test_what_both_have_solved_does_not_count(sort):
    sized = sort in SIZED
    claim = Claim("", "", (TWO,), ("branin",), sort=sort)
    moment = "looks" if sized else "end"
    table = made_up(lambda kind, *_: 1e-8 if kind == "sample" else 1e-5)
    verdict = judged(claim, "paper", moment, table)
    assert verdict.ruling == "solved by all"
    assert len(verdict.solved) == (1 if sized else 2)
    assert verdict.bouts == ()
    # The control: one method that has not solved it is enough.
    table = made_up(lambda kind, *_: 1e-8 if kind == "sample" else 1e-2)
    assert judged(claim, "paper", moment, table).solved == ()


def test_solved_problems_take_no_evidence_from_the_others():
    """Neither by their number nor by Holm's factor; one batch size unsolved keeps the claim."""

    def level(kind, problem, _):
        if problem == "branin":
            return 0.72 if kind == "sample" else 1.0
        return 1e-6

    problems = ("branin", *(f"p{i}" for i in range(12)))
    claim = Claim("", "", (TWO,), problems, (5,))
    table = made_up(level, problems=problems)
    assert judged(claim, "paper", "end", table).ruling == "holds"
    assert len(judged(claim, "paper", "end", table).solved) == 12
    assert judged(claim, "paper", "quarter", table).solved == ()
    open_ = made_up(lambda *x: max(level(*x), 0.5), problems=problems)
    assert judged(claim, "paper", "end", open_).ruling == "not decided"
    half = made_up(lambda kind, _, batch: 1.0 if batch == 5 and kind == "max" else 1e-6)
    grown = Claim("", "", (TWO,), ("branin",), sort="gains")
    assert judged(grown, "paper", "looks", half).solved == ()


def test_a_lead_that_does_not_grow_much_is_steady():
    steady = Claim("", "", (TWO,), ("branin",), sort="steady", moments=("looks",))

    def leads(five, ten):
        return made_up(
            lambda kind, _, b: (ten if b == 10 else five) if kind == "sample" else 1.0, noise=0.1
        )

    assert rule(steady, leads(0.9, 0.8), "looks") == "holds"
    assert rule(steady, leads(0.3, 0.3), "looks") == "holds"
    assert rule(steady, leads(0.5, 1.5), "looks") == "holds"  # it shrinks
    assert rule(steady, leads(0.9, 0.1), "looks") == "does not hold"
    assert rule(steady, leads(0.9, 0.4), "looks") == "not decided"


def test_the_start_is_a_tenth_of_the_looks():
    row = {"recommendation": "seen", "seen": list(range(21))}
    assert score(row, START) == 2  # of 20 batches
    assert score(row | {"seen": list(range(11))}, START) == 1


def test_lp_ucb_is_the_one_the_paper_ran():
    for side in SIDES:
        assert entrant(("ucb", "lp"), side).name == "lp-ucb-4"
        assert entrant(("ucb", "max"), side).side == side
    everyone = {name: {} for name in ENTRANTS}
    assert "lp-ucb" not in field(everyone, "paper")
    assert len(field(everyone, "paper")) == len(field(everyone, "practice")) == 7
    assert field({"lp-ucb-4": {}}, "paper") == []  # nobody of the paper's own has run


def test_a_lead_that_grows_with_the_batch():
    gains = Claim("", "", (TWO,), ("branin",), sort="gains", moments=("looks", "batches"))
    leads = Claim("", "", (TWO,), ("branin",), sort="leads", moments=("looks", "batches"))

    def grows(kind, _, batch):
        return (0.2 if batch == 10 else 0.9) if kind == "sample" else 1.0

    table = made_up(grows, noise=0.1)
    assert rule(gains, table, "looks") == rule(leads, table, "looks") == "holds"
    verdict = judged(leads, "paper", "looks", table)
    assert [bout.cell for bout in verdict.pro] == ["branin"]

    def shrinks(kind, _, batch):
        return (0.9 if batch == 10 else 0.2) if kind == "sample" else 1.0

    table = made_up(shrinks, noise=0.1)
    assert rule(gains, table, "looks") == rule(leads, table, "looks") == "does not hold"

    def catches_up(kind, _, batch):
        return (1.5 if batch == 10 else 3.0) if kind == "sample" else 1.0

    table = made_up(catches_up, noise=0.1)
    assert rule(gains, table, "looks") == "holds"
    assert rule(leads, table, "looks") == "does not hold"  # it is behind all the same


def test_after_as_many_batches_the_smaller_batch_has_had_fewer_looks():
    """Both sizes end alike, so that the lead after as many looks is the same."""
    gains = Claim("", "", (TWO,), ("branin",), sort="gains", moments=("looks", "batches"))
    table = made_up(lambda kind, *_: 0.1 if kind == "sample" else 1.0, noise=0.05)
    looks, batches = (judged(gains, "paper", moment, table).bouts[0] for moment in gains.moments)
    before, after = looks.medians
    assert before == pytest.approx(after, rel=0.05)
    # B = 5 after two of its four batches: the curves, even in logs, are half way down.
    halfway = np.sqrt(10.0 * 0.1) - np.sqrt(10.0 * 1.0)
    assert batches.medians == pytest.approx((halfway, -0.9), rel=0.05)


def test_what_was_not_run_has_no_verdict():
    table = made_up(lambda *_: 1.0, problems=("branin",), batches=(5,), seeds=3)
    assert judged(Claim("", "", (TWO,), ("robot",)), "paper", "end", table) is None
    sizes = Claim("", "", (TWO,), ("branin",), sort="leads", moments=("looks",))
    assert judged(sizes, "paper", "looks", table) is None  # one size says nothing of sizes
    others = Claim("", "", ((("est", "max"), ("ucb", "max")),), ("branin",))
    assert judged(others, "paper", "end", table) is None
    partly = Claim("", "", (TWO,), ("branin", "robot"))
    assert len(judged(partly, "paper", "end", table).bouts) == 1


def test_the_papers_sentences_are_well_formed():
    whos = {(e.rule, e.kind) for e in ENTRANTS.values()}
    assert len(CLAIMS) > 40
    assert len(set(CLAIMS)) == len(CLAIMS)
    assert set(HEADLINES) <= set(CLAIMS)
    for claim in CLAIMS:
        assert set(claim.problems) <= set(PROBLEMS)
        assert set(claim.batches) <= {5, 10}
        assert {who for pair in claim.pairs for who in pair} <= whos
        assert all(one != other for one, other in claim.pairs)
        sizes = claim.sort in SIZED
        assert set(claim.moments) <= ({"looks", "batches"} if sizes else set(MOMENTS))
        assert not set(claim.moments) & {"looks", "batches"} or sizes
        assert claim.where.startswith(("abstract", "section"))
    assert {name for claim in CLAIMS for name in claim.problems} == set(PROBLEMS)
    assert any("PPES" in words for words, _, _ in UNJUDGED)
