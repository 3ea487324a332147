"""Slots: numbered places for evaluations, each perhaps with a GPU; `Places` says who holds which.

A slot is taken when an attempt is logged and freed when its process is known to be dead, so that no
two evaluations ever share one. `gpu_slots` makes slots of the GPUs that a user names, and
`visible_gpus` asks the machine which there are.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeAlias

from covey.errors import StrategyError, is_whole, several

_log = logging.getLogger("covey")

VISIBLE = "CUDA_VISIBLE_DEVICES"
_NAME = re.compile(r"[0-9]+|(?:GPU|MIG)-[0-9A-Za-z:/-]+")  # what CUDA takes for a GPU
_PATIENCE = 20.0  # seconds for nvidia-smi, which may have to wake the driver

Gpus: TypeAlias = int | str | Sequence[int | str]
"""How many GPUs, or which: 8; "0,1,4"; "3,", which is the fourth alone; [0, 1, 4]."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one evaluation; without a number it only counts."""

    number: int | None
    gpu: str | None = None


class Places:
    """Which attempt holds which slot.

    Args:
        count: how many there are; None: no limit, and no numbers, since the engine has a queue.
        gpus: the GPU of each slot; () for slots without.
    """

    def __init__(self, count: int | None, gpus: Sequence[str] = ()) -> None:
        self.count = count
        self._gpus = tuple(gpus)
        self._held: dict[str, Slot] = {}  # by the name of the attempt

    @property
    def has_room(self) -> bool:
        """Whether another evaluation may begin."""
        return self.count is None or (len(self._held) < self.count and bool(self._free()))

    def take(self, name: str) -> Slot:
        """A free slot for an attempt: on the GPU with the fewest evaluations, the lowest number.

        >>> places = Places(4, gpus=["0", "1", "0", "1"])
        >>> [places.take(name).number for name in "abc"]
        [0, 1, 2]
        >>> places.free("b"), places.take("d").number
        (None, 1)
        """
        if self.count is None:
            return Slot(None)
        busy = Counter(slot.gpu for slot in self._held.values())
        free = min(self._free(), key=lambda number: (busy[self._gpu(number)], number), default=None)
        if free is None:
            raise StrategyError(f"all {several(self.count, 'slot')} are taken; {name} has to wait.")
        self._held[name] = Slot(free, self._gpu(free))
        return self._held[name]

    def occupy(self, name: str, slot: Slot) -> None:
        """Note that an attempt of an earlier run still runs, in the slot that its log says.

        The slots of that run may have been others. What counts is the GPU, where it has one.
        """
        if self.count is None:
            return
        free = self._free()
        if slot.gpu is not None and self._gpus:
            free = [number for number in free if self._gpu(number) == slot.gpu]
            here = slot.number if slot.number in free else next(iter(free), None)
        else:
            here = slot.number if slot.number in free else None
        self._held[name] = Slot(here, slot.gpu)

    def free(self, name: str) -> None:
        """Free the slot of an attempt whose process is dead."""
        self._held.pop(name, None)

    def _free(self) -> list[int]:
        taken = {slot.number for slot in self._held.values()}
        return [number for number in range(self.count or 0) if number not in taken]

    def _gpu(self, number: int) -> str | None:
        return self._gpus[number] if self._gpus else None


def gpu_slots(gpus: Gpus, per_gpu: int = 1) -> tuple[str, ...]:
    """The GPU of each slot; with two per GPU, slot 8 of eight GPUs is on the first again.

    A number takes the first ones that this process may use. They are checked where the machine can
    tell, and otherwise a warning says that they were not.

    Raises:
        StrategyError: There are fewer, or one that is named does not exist or is named twice.
    """
    if not is_whole(per_gpu, 1):
        raise StrategyError(f"per_gpu must be a whole number >= 1; got {per_gpu!r}.")
    allowed = allowed_gpus(os.environ)
    if isinstance(gpus, str) and gpus.strip().isdigit():  # of a command line
        gpus = int(gpus)
    if isinstance(gpus, int):
        names = _first(gpus, allowed)
    else:
        names = _named(gpus)
        if allowed is not None:
            _require_among(names, allowed, f"{VISIBLE}={','.join(allowed)} allows")
    there = visible_gpus()
    if there is None:
        _log.warning(
            "whether there are GPUs %s could not be checked: there is no nvidia-smi that answers",
            ", ".join(names),
        )
    else:
        _require_among(names, there, "nvidia-smi lists")
    return names * per_gpu


def shared_gpus(gpus: Sequence[str], share: float) -> tuple[str, ...]:
    """The GPUs of each slot, where an evaluation has a share of one, or several to itself.

    >>> shared_gpus(["0", "1"], 0.5), shared_gpus(["0", "1", "2", "3"], 2)
    (('0', '1', '0', '1'), ('0,1', '2,3'))
    """
    if share < 1.0:
        return tuple(gpus) * int(1.0 / share)
    size = int(share)
    last = len(gpus) - size
    return tuple(",".join(gpus[first : first + size]) for first in range(0, last + 1, size))


def allowed_gpus(variables: Mapping[str, str]) -> tuple[str, ...] | None:
    """The GPUs that this process may use, as a scheduler such as SLURM says; None: all.

    CUDA sees none from the first name on that is none of a GPU, such as -1.

    >>> allowed_gpus({"CUDA_VISIBLE_DEVICES": "3,-1,4"}), allowed_gpus({})
    (('3',), None)
    """
    said = variables.get(VISIBLE)
    if said is None:
        return None
    names = (name.strip() for name in said.split(","))
    return tuple(takewhile(_NAME.fullmatch, filter(None, names)))


def _first(count: object, allowed: Sequence[str] | None) -> tuple[str, ...]:
    if not is_whole(count, 1):
        raise StrategyError(
            f"gpus is how many there are, a whole number >= 1, or which: [0, 1, 4]; got {count!r}. "
            "GPU 0 alone is gpus=[0], or --gpus 0, (with a comma)."
        )
    if allowed is None:
        return tuple(map(str, range(count)))
    if count > len(allowed):
        raise StrategyError(
            f"{several(count, 'GPU')} wanted, but {VISIBLE}={','.join(allowed)} allows "
            f"{len(allowed)}; ask for fewer, or unset it."
        )
    return tuple(allowed[:count])


def _named(gpus: str | Sequence[int | str]) -> tuple[str, ...]:
    listed = list(gpus) if isinstance(gpus, Sequence) else []
    words = gpus.split(",") if isinstance(gpus, str) else listed
    names = tuple(str(word).strip() for word in words)
    names = tuple(name for name in names if name)
    odd = [name for name in names if not _NAME.fullmatch(name)]
    if odd or not names or any(isinstance(word, bool | float) for word in words):
        raise StrategyError(
            "gpus is how many there are, a whole number >= 1, or which: [0, 1, 4], or names such "
            f"as 'GPU-8a3f...'; got {gpus!r}."
        )
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise StrategyError(
            f"GPU {twice[0]} is named twice; per_gpu=2 (--per-gpu 2) puts two evaluations on each."
        )
    return names


def _require_among(names: Sequence[str], there: Sequence[str], whose: str) -> None:
    """Refuse a GPU that is not there; the start of a long name is enough, as for CUDA."""
    for name in names:
        known = name in there or (
            not name.isdigit() and any(other.startswith(name) for other in there)
        )
        if not known:
            listed = ", ".join(other for other in there if other.isdigit()) or ", ".join(there)
            raise StrategyError(
                f"there is no GPU {name} here; {whose} {listed or 'none'}. Name fewer, or others."
            )


def visible_gpus() -> tuple[str, ...] | None:
    """The indices and names of the GPUs of this machine; None if it cannot tell."""
    words = ["nvidia-smi", "-L"]
    try:
        said = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=_PATIENCE, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if said.returncode else _listed(said.stdout)


def _listed(said: str) -> tuple[str, ...]:
    r"""What nvidia-smi -L lists.

    >>> _listed("GPU 0: NVIDIA H200 (UUID: GPU-8a)\n  MIG 1g.10gb Device 0: (UUID: MIG-7f)\n")
    ('0', 'GPU-8a', 'MIG-7f')
    """
    found: list[str] = []
    for line in said.splitlines():
        if line.startswith("GPU "):
            found.append(line.removeprefix("GPU ").partition(":")[0].strip())
        _, _, after = line.partition("(UUID: ")
        if after:
            found.append(after.rstrip(") \t"))
    return tuple(found)
