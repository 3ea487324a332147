"""Turns: of all trials of an Optuna study, in any process, one at a time.

Optuna's storages offer no lock. They do promise that a running trial's attributes are written by
the one worker that runs it, that numbers of trials are unique, and that whoever reads after a
write sees it. That is enough (Burns & Lynch 1980; the one-bit algorithm of Lamport 1986):

1. raise a flag on your own trial, then look at everybody's;
2. if no other flag is up, it is your turn; lower the flag when you are done;
3. if a trial of lower number has its flag up, put yours at half-mast until no trial of lower
   number has one up or at half-mast, and go to 1;
4. if only trials of higher number have theirs up, look again.

Two trials never have the turn together: each looked after it had raised its flag and saw the
other's not up; but the one that raised later must have seen the earlier one's. And somebody
always gets on: of those who want a turn, the lowest number does not give way, and all others give
way to it. Half-mast only spares writes: those who wait come back one by one, not all at once.

A worker that is killed in its turn leaves its flag up. When nothing has moved for ``patience``
seconds, those who wait go on without it, and say so in the log. Trials that Optuna has marked as
failed count no more; its heartbeat does that.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

FLAG = "covey:turn"
UP, HALF, DOWN = "up", "half", "down"
_SHORTEST, _LONGEST = 0.005, 0.1  # seconds between looks

_log = logging.getLogger("covey")


def everyone(study: Study) -> list[FrozenTrial]:
    """All trials as the storage has them now, those of all Hyperband brackets; not to be changed.

    Cost: one read of the storage, which itself remembers finished trials.
    """
    return study._storage.get_all_trials(study._study_id, deepcopy=False)


def set_flag(study: Study, trial: FrozenTrial, flag: str) -> None:
    """Move the flag of a running trial."""
    study._storage.set_trial_system_attr(trial._trial_id, FLAG, flag)


class Turns:
    """Gives one trial of a study at a time its turn."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._gone: set[tuple[str, int, str]] = set()  # flags not waited for any more

    @contextmanager
    def take(self, study: Study, trial: FrozenTrial) -> Iterator[list[FrozenTrial]]:
        """Wait for the turn of a running trial; gives all trials, as they are while it lasts."""
        try:
            yield self._wait(study, trial)
        finally:
            set_flag(study, trial, DOWN)

    def _wait(self, study: Study, trial: FrozenTrial) -> list[FrozenTrial]:
        mine = UP
        set_flag(study, trial, mine)
        seen, since, pause = dict[int, str](), time.monotonic(), _SHORTEST
        while True:
            trials = everyone(study)
            others = self._others(study, trial, trials)
            if mine == UP and UP not in others.values():
                return trials
            first = not any(n < trial.number and mine in (HALF, f) for n, f in others.items())
            if first != (mine == UP):
                mine = UP if first else HALF
                set_flag(study, trial, mine)
                if first:
                    continue
            if others != seen:
                seen, since, pause = others, time.monotonic(), _SHORTEST
            if time.monotonic() - since > self._patience:
                self._leave_behind(study, others)
            time.sleep(pause)
            pause = min(1.5 * pause, _LONGEST)

    def _others(
        self, study: Study, trial: FrozenTrial, trials: list[FrozenTrial]
    ) -> dict[int, str]:
        """Numbers and flags of the other trials that want a turn, or have it."""
        flags = {
            t.number: t.system_attrs[FLAG]
            for t in trials
            if t.state.name == "RUNNING"
            and t.number != trial.number
            and t.system_attrs.get(FLAG, DOWN) != DOWN
        }
        return {n: f for n, f in flags.items() if (study.study_name, n, f) not in self._gone}

    def _leave_behind(self, study: Study, others: dict[int, str]) -> None:
        """Go on without those whose flag is up; or else without those who should have come back.

        Others who wait are alive as we are, and will leave the same ones behind.
        """
        held = UP if UP in others.values() else HALF
        numbers = sorted(number for number, flag in others.items() if flag == held)
        self._gone.update((study.study_name, number, held) for number in numbers)
        _log.warning(
            "trials %s of study %r have not moved on for %.0f seconds while they asked for a "
            "point, and are not waited for any more. If their workers are dead, tell the trials "
            "failed: until then they count as running.",
            numbers,
            study.study_name,
            self._patience,
        )
