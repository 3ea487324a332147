"""What the paper says of Branin-Hoo, the mixture of cosines and Hartmann-6."""

from __future__ import annotations

from papers.kathuria2016.claims import Claim
from papers.kathuria2016.sentences.terms import (
    BATCHED,
    DPP,
    EARLY,
    LATE,
    LP,
    MAX,
    SAMPLE,
    SIZES,
    SYNTHETIC,
    each,
    same,
)

_FIRST = "section 4, synthetic functions, figure 1"

ON_FUNCTIONS: tuple[Claim, ...] = (
    Claim(
        "sampling has less regret than all other methods",
        f"{_FIRST}; appendix 5",
        each(SAMPLE, MAX + BATCHED + LP),
        SYNTHETIC,
    ),
    Claim(
        "sampling has much less regret than maximising and batching by the same rule",
        f"{_FIRST}; appendix 5",
        same("sample", "max") + same("sample", "batched"),
        SYNTHETIC,
    ),
    Claim(
        "Branin, B = 5: LP-UCB begins worse than the DPP methods",
        _FIRST,
        each(DPP, LP),
        ("branin",),
        (5,),
        moments=EARLY,
    ),
    Claim(
        "Branin, B = 5: LP-UCB soon does better than maximising",
        _FIRST,
        each(LP, MAX),
        ("branin",),
        (5,),
    ),
    Claim(
        "Branin, B = 5: LP-UCB comes close to sampling",
        _FIRST,
        each(LP, SAMPLE),
        ("branin",),
        (5,),
        "close",
        LATE,
    ),
    Claim(
        "Branin, B = 10: the DPP methods do better than LP-UCB",
        _FIRST,
        each(DPP, LP),
        ("branin",),
        (10,),
    ),
    Claim(
        "Branin: from B = 5 to 10 the DPP methods improve, LP-UCB hardly does",
        _FIRST,
        each(DPP, LP),
        ("branin",),
        sort="gains",
        moments=SIZES,
    ),
    Claim(
        "Hartmann-6: LP-UCB has considerably less regret than maximising",
        _FIRST,
        each(LP, MAX),
        ("hartmann6",),
    ),
    Claim(
        "Hartmann-6: sampling has less regret than LP-UCB", _FIRST, each(SAMPLE, LP), ("hartmann6",)
    ),
    Claim(
        "Hartmann-6: the lead of sampling over LP-UCB is larger at B = 10",
        _FIRST,
        each(SAMPLE, LP),
        ("hartmann6",),
        sort="leads",
        moments=SIZES,
    ),
    Claim(
        "Hartmann-6: from B = 5 to 10 LP-UCB changes less than the DPP methods improve",
        _FIRST,
        each(DPP, LP),
        ("hartmann6",),
        sort="gains",
        moments=SIZES,
    ),
)
