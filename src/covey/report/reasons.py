"""Reasons: why each trial was chosen, in one word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from covey.report.hindsight import Hindsight

if TYPE_CHECKING:
    from covey.history import Trial
    from covey.space import Pool, Space

Reason = Literal["exploit", "explore", "repeat", "design", "yours", "added"]

LEAST_CHANCE = 1.0 / 3.0

MEANING: dict[Reason, str] = {
    "exploit": "its mean is among the best: the model gave it at least one chance in three of "
    "being better than every point told by then",
    "explore": "chosen for its uncertainty: the chance was less than one in three",
    "repeat": "the same point was looked at before",
    "design": "spread over the space, without a model",
    "yours": "enqueued by you",
    "added": "measured elsewhere",
}


def reason(trial: Trial, repeated: bool, hindsight: Hindsight | None) -> Reason:
    """Why a trial was chosen; the first that holds of: repeat, yours or added, design, the rest.

    With m the best posterior mean among the points told when it was asked for, and μ, σ the
    belief there, a trial exploits if P(f > m) = Φ((μ - m)/σ) >= 1/3, that is if its mean falls
    short of m by no more than 0.43 σ; otherwise it explores (our choice).
    """
    if repeated:
        return "repeat"
    if trial.origin != "asked":
        return "yours" if trial.origin == "enqueued" else "added"
    if hindsight is None:
        return "design"
    return "exploit" if hindsight.chance >= LEAST_CHANCE else "explore"


def repeats(space: Space | Pool, trials: Sequence[Trial], ids: Iterable[int]) -> set[int]:
    """Which of these ids look at a point that an earlier trial looked at, or is about to.

    Cost O(trials · d): each is encoded once and found by its bytes.
    """
    wanted = set(ids)
    seen: set[bytes] = set()
    found: set[int] = set()
    for trial, row in zip(trials, space.encode([t.point for t in trials]), strict=True):
        key = row.tobytes()
        if trial.id in wanted and key in seen:
            found.add(trial.id)
        if trial.status not in ("cancelled", "lost"):
            seen.add(key)
    return found
