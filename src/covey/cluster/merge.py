"""Merge: from core-sets of the parts to the greedy batch of the whole."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from covey import dpp
from covey.arrays import TIE, Array, Indices, Mask, cholesky
from covey.belief import Belief
from covey.cluster.apart import light
from covey.cluster.coreset import Check, Chosen

_log = logging.getLogger("covey")


class Crew(Protocol):
    """Those who have the candidates, each a part of them."""

    def core_sets(self, size: int) -> Indices:
        """The core-sets of all parts together, ascending."""
        ...

    def check(self, picks: Indices, chosen: Chosen) -> Sequence[Check]:
        """A batch compared with everybody else, part by part."""
        ...


class Merged(NamedTuple):
    """A batch, and how far it is known to be greedy's on all candidates."""

    picks: Indices  # (k,), in order of choice
    proven: int  # the first so many are
    checks: int  # passes that took


def merge(belief: Belief, k: int, crew: Crew, checks: int) -> Merged:
    """Greedy's k picks from the union of core-sets, checked against all, at most ``checks`` times.

    What a check finds better than a pick joins the union, and greedy chooses again. The pick that
    the first difference concerns is then right, so that a check proves one pick more at the least;
    with none left, the batch is the one greedy would choose on one machine.
    """
    union, done, proven = crew.core_sets(k), 0, 0
    while True:
        picks = union[dpp.maximize(belief.on(union).information(), k)]
        if done == checks:
            return Merged(picks, proven, done)
        some = belief.on(picks)
        every = np.arange(k)
        factor = cholesky(some.information().block(every, every))
        found = crew.check(union, Chosen(light(some), factor))
        done += 1
        ahead = [_ahead(one, picks, np.square(np.diagonal(factor))) for one in found]
        missed = [one.where[mask] for one, mask in zip(found, ahead, strict=True)]
        fresh = np.setdiff1d(np.concatenate(missed), union)
        wrong = np.flatnonzero(np.any(ahead, axis=0))
        # What is in the union already was passed over by greedy itself, by a hair.
        proven = int(wrong[0]) if len(fresh) else k
        _log.debug("core-sets: %d rows, %d picks proven, %d new", len(union), proven, len(fresh))
        if not len(fresh):
            return Merged(picks, k, done)
        union = np.union1d(union, fresh)


def _ahead(found: Check, picks: Indices, gains: Array) -> Mask:
    """Where greedy would have taken another: of a larger gain, or as large and listed before."""
    width = TIE * gains
    equal = (found.gains >= gains - width) & (found.where < picks)
    return (found.where >= 0) & ((found.gains > gains + width) | equal)
