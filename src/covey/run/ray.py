"""`RayEngine`: evaluations as tasks of a Ray cluster; they are lost when the runner dies."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any

from covey.errors import MissingExtraError
from covey.run.process import GRACE
from covey.run.remote import CallPacker, News, evaluate_on_worker, task_bytes
from covey.run.reports import Shown
from covey.run.slots import Slot
from covey.run.task import Call, Outcome, Task

_log = logging.getLogger("covey")


def evaluate_on_ray(label: bytes, payload: bytes, grace: float) -> Iterator[News]:
    """What a Ray worker runs: one evaluation; its slot is the GPU that it has to itself.

    A generator, whose items Ray brings to the runner as they come.
    """
    import ray

    gpus = ray.get_gpu_ids()
    assigned = ray.get_runtime_context().get_assigned_resources().get("GPU", 0.0)
    alone = assigned == 1.0 and len(gpus) == 1 and str(gpus[0]).isdigit()
    slot = Slot(int(gpus[0]) if alone else None)
    yield from evaluate_on_worker(label, payload, grace, slot=slot)


class RayEngine:
    """Hands tasks to Ray, which this process is connected to, or starts here.

    On its worker an evaluation has a process of its own. Ray retries nothing by itself.

    Args:
        grace: seconds between asking an evaluation to end and killing it.
        **resources: for `ray.remote`, such as ``num_cpus=2`` or ``num_gpus=1``; Ray then says
            which GPU an evaluation has, by CUDA_VISIBLE_DEVICES.
    """

    slots = None

    def __init__(self, *, grace: float = GRACE, **resources: Any) -> None:
        try:
            import ray
        except ImportError as error:
            raise MissingExtraError("ray", "ray") from error
        self._ray = ray
        self._evaluate = ray.remote(max_retries=0, num_returns="streaming", **resources)(
            evaluate_on_ray
        )
        self._grace = grace
        self._open: dict[str, Any] = {}
        self._packer = CallPacker()
        self._stored: tuple[Call, Any] | None = None
        self._stopping: set[str] = set()
        self._ready: list[Outcome] = []
        self._said: list[tuple[str, int, Shown]] = []

    def submit(self, task: Task) -> None:
        """Send it to Ray."""
        payload = self._packer.of(task.call)
        try:
            if self._stored is None or self._stored[0] is not task.call:
                self._stored = task.call, self._ray.put(payload)
            self._open[task.name] = self._evaluate.options(name=task.name).remote(
                task_bytes(task), self._stored[1], self._grace
            )
        except Exception as error:  # Ray is gone, or has no resources for it
            reason = f"it could not be sent ({type(error).__name__}: {error})"
            self._ready.append(Outcome(task.name, "lost", reason=reason))

    def poll(self, seconds: float) -> list[Outcome]:
        """Outcomes of tasks that have ended, waiting at most ``seconds`` for the first."""
        found, self._ready = self._ready, []
        if found or not self._open:
            time.sleep(0.0 if found else seconds)
            return found
        until = time.monotonic() + seconds
        while not found:
            names = {items: name for name, items in self._open.items()}
            left = max(until - time.monotonic(), 0.0)
            ready, _ = self._ray.wait(list(names), num_returns=1, timeout=left)
            more, _ = self._ray.wait(list(names), num_returns=len(names), timeout=0)
            for items in dict.fromkeys([*ready, *more]):
                outcomes = self._next(names[items], items)
                if outcomes:
                    del self._open[names[items]]
                    found += outcomes
            if time.monotonic() >= until:
                break
        return found

    def reports(self) -> list[tuple[str, int, Shown]]:
        """Intermediate values since the last call: name, step and value."""
        said, self._said = self._said, []
        return said

    def cancel(self, names: Collection[str]) -> None:
        """Interrupt these; asked again, do not wait for them: their worker ends them."""
        for name in names:
            if name not in self._open:
                continue
            if name in self._stopping:
                del self._open[name]
                self._ready.append(Outcome(name, "lost", reason="it was cancelled"))
                continue
            self._stopping.add(name)
            with suppress(ValueError, self._ray.exceptions.RayError):
                self._ray.cancel(self._open[name], force=False)

    def adopt(self, tasks: Sequence[Task]) -> set[str]:
        """Nothing: Ray drops results with the process that asked for them."""
        if tasks:
            _log.info(
                "Ray does not keep evaluations of a run that has ended; %d begin again", len(tasks)
            )
        return set()

    def close(self) -> None:
        """Stop what still runs, which no later run could find; Ray itself stays up."""
        self.cancel(list(self._open))
        self._open.clear()

    def _next(self, name: str, items: Any) -> list[Outcome]:
        """The outcomes of a task that has said something new; none if that was a report."""
        try:
            news = self._ray.get(next(items), timeout=60)
        except self._ray.exceptions.TaskCancelledError:
            return [Outcome(name, "lost", reason="it was cancelled")]
        except StopIteration:
            return [Outcome(name, "lost", reason="its worker ended without an outcome")]
        except Exception as error:  # the worker or its node died, or has no covey
            reason = f"{type(error).__name__}: {str(error)[:500]}"
            return [Outcome(name, "lost", reason=reason)]
        self._said += [(name, step, value) for step, value in news.reports]
        return [Outcome(**outcome) for outcome in news.outcomes]
