"""Who races: the seven methods of the paper, and the same seven as one would use them.

In "paper" UCB has the width of the theorems and EST means ESTa, as section 4 says. In "practice"
UCB has √β = 2 (the weight of GPyOpt) and EST means ESTn. The paper ran GPyOpt's LP-UCB: claims are
judged with the one of β = 4 on either side, and that of the theory is shown beside it. UCB-PE and
EST-PE are UCB-DPP-MAX and EST-DPP-MAX (section 3.2), so each pair is one entrant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from covey.baselines import Hallucinated, LocalPenalization
from covey.gp import GP
from covey.policies import EST, UCB, Policy
from covey.selection import Strategy
from covey.strategies import DPP

PAPER_GP = GP("squared-exponential", mean="zero", samples=5, priors="paper", warp=False)
"""The paper's process: its kernel and mean; hyper-parameters drawn under the priors of PES."""

Side = Literal["paper", "practice"]
Kind = Literal["batched", "max", "sample", "lp"]
Rule = Literal["ucb", "est"]


@dataclass(frozen=True)
class Entrant:
    """A method by name, with what a figure and a comparison need to know about it."""

    name: str
    title: str
    rule: Rule
    kind: Kind
    side: Side
    strategy: Strategy


_RULES: dict[tuple[Rule, Side], Policy] = {
    ("ucb", "paper"): UCB("theory"),
    ("ucb", "practice"): UCB(4.0),
    ("est", "paper"): EST("a", "observed"),
    ("est", "practice"): EST("n", "mean"),
}

_KINDS: dict[Kind, Callable[[Policy], Strategy]] = {
    "batched": Hallucinated,
    "max": lambda rule: DPP(rule, then="max"),
    # The walk, run until its total variation is at most 0.01 (the paper's ε).
    "sample": lambda rule: DPP(rule, then="sample", method="walk", epsilon=0.01),
    "lp": LocalPenalization,
}

_TITLES: dict[tuple[Rule, Kind], str] = {
    ("ucb", "batched"): "BUCB",
    ("est", "batched"): "B-EST",
    ("ucb", "max"): "UCB-DPP-MAX",
    ("est", "max"): "EST-DPP-MAX",
    ("ucb", "sample"): "UCB-DPP-SAMPLE",
    ("est", "sample"): "EST-DPP-SAMPLE",
    ("ucb", "lp"): "LP-UCB",
}


def _named(rule: Rule, kind: Kind, side: Side) -> Entrant:
    title = _TITLES[rule, kind]
    if side == "practice":
        title = f"{title}, β = 4" if rule == "ucb" else title.replace("EST", "ESTn")
    name = title.lower().replace(", β = 4", "-4")
    if (kind, side) == ("lp", "paper"):  # not the paper's own, which had GPyOpt's weight
        title = f"{title}, theory's width"
    return Entrant(name, title, rule, kind, side, _KINDS[kind](_RULES[rule, side]))


ENTRANTS: dict[str, Entrant] = {
    entrant.name: entrant
    for entrant in (
        _named(rule, kind, side) for side in ("paper", "practice") for rule, kind in _TITLES
    )
}
"""All fourteen by name, those of the paper first."""
