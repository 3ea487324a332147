"""What the paper says of the robot, Abalone, Bibtex and Delicious."""

from __future__ import annotations

from papers.kathuria2016.claims import Claim
from papers.kathuria2016.sentences.terms import (
    EARLY,
    LATE,
    LP,
    MAX,
    SAMPLE,
    SIZES,
    each,
    same,
)

_ROBOT = "section 4, robot, figure 2"
_ABALONE = "section 4, robot and Abalone; appendix 5"
_BIBTEX = "section 4, FastXML, figure 2"
_DELICIOUS = "section 4, FastXML; appendix 5"

ON_DATA: tuple[Claim, ...] = (
    Claim(
        "robot: maximising has less regret than batching",
        _ROBOT,
        same("max", "batched"),
        ("robot",),
    ),
    Claim(
        "robot, B = 5: the difference between sampling and maximising is small",
        _ROBOT,
        same("sample", "max"),
        ("robot",),
        (5,),
        "close",
        LATE,
    ),
    Claim(
        "robot, B = 10: sampling has considerably less regret than maximising",
        _ROBOT,
        same("sample", "max"),
        ("robot",),
        (10,),
    ),
    Claim(
        "robot: the lead of sampling over maximising grows with the batch",
        _ROBOT,
        same("sample", "max"),
        ("robot",),
        sort="leads",
        moments=SIZES,
    ),
    Claim(
        "robot: LP-UCB has less regret than UCB-DPP-SAMPLE",
        _ROBOT,
        each(LP, SAMPLE[:1]),
        ("robot",),
    ),
    Claim(
        "robot: LP-UCB has less regret than sampling",
        "section 4, end of its last paragraph",
        each(LP, SAMPLE),
        ("robot",),
    ),
    Claim(
        "robot: LP-UCB is quite close to UCB-DPP-SAMPLE",
        _ROBOT,
        each(LP, SAMPLE[:1]),
        ("robot",),
        sort="close",
        moments=LATE,
    ),
    Claim(
        "robot: the lead of LP-UCB over UCB-DPP-SAMPLE grows with the batch",
        _ROBOT,
        each(LP, SAMPLE[:1]),
        ("robot",),
        sort="leads",
        moments=SIZES,
    ),
    Claim("Abalone: LP-UCB has less regret than maximising", _ABALONE, each(LP, MAX), ("abalone",)),
    Claim(
        "Abalone: sampling has less regret than LP-UCB", _ABALONE, each(SAMPLE, LP), ("abalone",)
    ),
    Claim(
        "Abalone: the lead of sampling over LP-UCB is larger at B = 10",
        _ABALONE,
        each(SAMPLE, LP),
        ("abalone",),
        sort="leads",
        moments=SIZES,
    ),
    Claim(
        "Bibtex: the DPP methods have much less regret than their batched counterparts",
        _BIBTEX,
        same("max", "batched") + same("sample", "batched"),
        ("bibtex",),
    ),
    Claim(
        "Bibtex, B = 5: sampling has less regret than maximising",
        _BIBTEX,
        same("sample", "max"),
        ("bibtex",),
        (5,),
    ),
    Claim(
        "Bibtex, B = 5: sampling and maximising are close",
        _BIBTEX,
        same("sample", "max"),
        ("bibtex",),
        (5,),
        "close",
        LATE,
    ),
    Claim(
        "Bibtex, B = 5: LP-UCB begins worse than maximising",
        _BIBTEX,
        each(MAX, LP),
        ("bibtex",),
        (5,),
        moments=EARLY,
    ),
    Claim(
        "Bibtex, B = 5: LP-UCB is soon comparable to maximising",
        _BIBTEX,
        each(LP, MAX),
        ("bibtex",),
        (5,),
        "close",
        LATE,
    ),
    Claim(
        "Bibtex: from B = 5 to 10 the lead of sampling over maximising does not grow much",
        _BIBTEX,
        same("sample", "max"),
        ("bibtex",),
        sort="steady",
        moments=SIZES,
    ),
    Claim(
        "Bibtex, B = 10: LP-UCB quickly does better than UCB-DPP-MAX",
        _BIBTEX,
        each(LP, MAX[:1]),
        ("bibtex",),
        (10,),
    ),
    Claim(
        "Bibtex, B = 10: LP-UCB comes close to sampling",
        _BIBTEX,
        each(LP, SAMPLE),
        ("bibtex",),
        (10,),
        "close",
        LATE,
    ),
    Claim(
        "Delicious: the lead of sampling over maximising grows with the batch",
        _DELICIOUS,
        same("sample", "max"),
        ("delicious",),
        sort="leads",
        moments=SIZES,
    ),
    Claim(
        "Delicious, B = 5: LP-UCB has much less regret than UCB-DPP-MAX",
        _DELICIOUS,
        each(LP, MAX[:1]),
        ("delicious",),
        (5,),
    ),
    Claim(
        "Delicious, B = 5: LP-UCB is quite close to sampling",
        _DELICIOUS,
        each(LP, SAMPLE),
        ("delicious",),
        (5,),
        "close",
        LATE,
    ),
    Claim(
        "Delicious, B = 10: LP-UCB is close to UCB-DPP-MAX",
        _DELICIOUS,
        each(LP, MAX[:1]),
        ("delicious",),
        (10,),
        "close",
        LATE,
    ),
    Claim(
        "Delicious: the lead of LP-UCB over UCB-DPP-MAX is smaller at B = 10",
        _DELICIOUS,
        each(MAX[:1], LP),
        ("delicious",),
        sort="gains",
        moments=SIZES,
    ),
)
