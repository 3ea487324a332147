"""What the paper says of all its experiments together."""

from __future__ import annotations

from papers.kathuria2016.claims import Claim
from papers.kathuria2016.sentences.terms import (
    ALL,
    BATCHED,
    BUT_ROBOT,
    DPP,
    LP,
    MAX,
    SAMPLE,
    SIZES,
    SUM,
    each,
    same,
)

SAMPLING = Claim(
    "sampling from the DPP has less regret than maximising it",
    "abstract; section 5",
    same("sample", "max"),
    ALL,
)
EXPLORING = Claim(
    "the DPP methods have less regret than their batched counterparts",
    "abstract",
    same("max", "batched") + same("sample", "batched"),
    ALL,
)
PENALISING = Claim(
    "sampling has less regret than LP-UCB, but for robot",
    "abstract; section 4, last paragraph",
    each(SAMPLE, LP),
    BUT_ROBOT,
)
GROWING = Claim(
    "the lead of sampling over maximising grows with the batch",
    "section 4, robot and Delicious; as intuition in general",
    same("sample", "max"),
    ALL,
    sort="leads",
    moments=SIZES,
)
SAMPLED_SUM = Claim(
    "sampling has less cumulative regret than maximising (as the bounds suggest)",
    "section 3.3; section 5",
    same("sample", "max"),
    ALL,
    moments=SUM,
)
EXPLORED_SUM = Claim(
    "the DPP methods have less cumulative regret than their batched counterparts "
    "(as the bounds suggest)",
    "section 3.3, after its theorem",
    same("max", "batched") + same("sample", "batched"),
    ALL,
    moments=SUM,
)

HEADLINES = (SAMPLING, EXPLORING, PENALISING, GROWING, SAMPLED_SUM, EXPLORED_SUM)
"""What a reader takes home; the findings begin with these."""

_LAST = "section 4, end of its last paragraph"
_EXISTING = (*BATCHED[:1], *LP)  # and UCB-PE; B-EST is the authors' own

GENERAL: tuple[Claim, ...] = (
    Claim(
        "the DPP methods are superior to BUCB, UCB-PE (UCB-DPP-MAX) and LP-UCB, or competitive",
        "section 1.1",
        each(DPP, _EXISTING) + each((*MAX[1:], *SAMPLE), MAX[:1]),
        ALL,
        sort="competitive",
    ),
    Claim(
        "sampling has less regret than all other methods",
        "section 5",
        each(SAMPLE, MAX + BATCHED + LP),
        ALL,
    ),
    Claim(
        "on all problems but robot the lead of sampling over LP-UCB is larger at B = 10",
        _LAST,
        each(SAMPLE, LP),
        BUT_ROBOT,
        sort="leads",
        moments=SIZES,
    ),
)
"""The other general ones."""
