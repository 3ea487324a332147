"""An engine that answers as it is told to, for tests of who uses one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from covey.run import Outcome, Task


class Scripted:
    """Answers each task with the outcomes that a function gives, at the next poll."""

    def __init__(
        self,
        answer: Callable[[Task], list[Outcome]],
        slots: int | None = None,
        known: Collection[str] = (),
        *,
        one_by_one: bool = False,
    ) -> None:
        self.slots = slots
        self.tasks: list[Task] = []
        self.cancelled: list[str] = []
        self.closed = False
        self.most = 0  # at once
        self._answer = answer
        self._known = known
        self._share = slice(1) if one_by_one else slice(None)
        self._out: list[Task] = []
        self.ready: list[Outcome] = []

    def submit(self, task: Task) -> None:
        self.tasks.append(task)
        self._out.append(task)
        self.most = max(self.most, len(self._out))

    def poll(self, seconds: float) -> list[Outcome]:
        found, self.ready = self.ready, []
        for task in self._out[self._share]:
            outcomes = self._answer(task)
            if outcomes:
                self._out.remove(task)
                found += outcomes
        return found

    def cancel(self, names: Collection[str]) -> None:
        self.cancelled += names
        for task in [task for task in self._out if task.name in names]:
            self._out.remove(task)
            self.ready.append(Outcome(task.name, "lost", reason="it was cancelled"))

    def adopt(self, tasks: Sequence[Task]) -> set[str]:
        for task in tasks:
            if task.name in self._known:
                self._out.append(task)
        return {task.name for task in tasks} & set(self._known)

    def close(self) -> None:
        self.closed = True


def value(task: Task) -> list[Outcome]:
    """The square of x."""
    return [Outcome(task.name, "succeeded", task.point["x"] ** 2)]


def nothing(task: Task) -> list[Outcome]:
    """Still running."""
    return []


def dies_of(reason: str) -> Callable[[Task], list[Outcome]]:
    """Every evaluation fails for this reason; `{}` in it stands for the trial's number."""
    return lambda task: [Outcome(task.name, "failed", reason=reason.format(task.id))]
