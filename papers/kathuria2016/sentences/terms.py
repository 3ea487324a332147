"""The terms of the sentences: groups of methods and problems, pairs of methods, moments."""

from __future__ import annotations

from itertools import product

from papers.kathuria2016.claims import Moment, Pair
from papers.kathuria2016.entrants import Kind, Rule
from papers.kathuria2016.judge import Who

Methods = tuple[Who, ...]

_RULES: tuple[Rule, ...] = ("ucb", "est")

LP: Methods = (("ucb", "lp"),)
MAX: Methods = (("ucb", "max"), ("est", "max"))
SAMPLE: Methods = (("ucb", "sample"), ("est", "sample"))
BATCHED: Methods = (("ucb", "batched"), ("est", "batched"))
DPP: Methods = MAX + SAMPLE

SYNTHETIC = ("branin", "cosines", "hartmann6")
BUT_ROBOT = (*SYNTHETIC, "abalone", "bibtex", "delicious")
ALL = (*SYNTHETIC, "robot", "abalone", "bibtex", "delicious")

LATE: tuple[Moment, ...] = ("end",)
EARLY: tuple[Moment, ...] = ("start",)
SIZES: tuple[Moment, ...] = ("looks", "batches")
SUM: tuple[Moment, ...] = ("cumulative",)


def each(ones: Methods, others: Methods) -> tuple[Pair, ...]:
    """Every one against every other."""
    return tuple(product(ones, others))


def same(one: Kind, other: Kind) -> tuple[Pair, ...]:
    """One kind against another with the same rule."""
    return tuple(((rule, one), (rule, other)) for rule in _RULES)
