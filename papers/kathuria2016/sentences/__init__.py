"""Sentences: every comparison the paper makes of its experiments, in our words, as claims.

A sentence about a whole curve is judged early and late; one with "starts out" at the
start; one with "comes close" late. "Much", "considerable" and the like are not judged: sizes are in
the tables.
"""

from __future__ import annotations

from papers.kathuria2016.claims import Claim
from papers.kathuria2016.sentences.general import GENERAL, HEADLINES
from papers.kathuria2016.sentences.real import ON_DATA
from papers.kathuria2016.sentences.synthetic import ON_FUNCTIONS

__all__ = ["CLAIMS", "HEADLINES", "UNJUDGED"]

CLAIMS: tuple[Claim, ...] = (*HEADLINES, *GENERAL, *ON_FUNCTIONS, *ON_DATA)
"""The general ones first, then in the order of the paper."""

UNJUDGED: tuple[tuple[str, str, str], ...] = (
    ("PPES is much better than BUCB and UCB-PE", "section 1.2", "PPES is out of scope"),
    ("PPES is slow, and does not scale beyond B = 5", "section 4", "PPES is out of scope"),
    (
        "UCB-PE is almost always better than simulation matching",
        "section 4",
        "simulation matching is out of scope",
    ),
    (
        "batches of the DPP methods are more diverse globally, which explains the gain with B",
        "section 4",
        "an explanation; the rows hold regrets, not batches",
    ),
    (
        "sampling allows for uncertainty, which explains that it is better",
        "section 4",
        "an explanation",
    ),
    (
        "LP-UCB does well on robot because its function is Lipschitz",
        "section 4",
        "an explanation",
    ),
)
"""What cannot be judged here: what it says, where, and why not."""
