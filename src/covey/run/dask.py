"""`DaskEngine`: evaluations on the workers of a `distributed.Client`, found again after a crash."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from covey.errors import MissingExtraError, StrategyError
from covey.run.process import GRACE
from covey.run.remote import CallPacker, evaluate_on_worker, task_bytes
from covey.run.reports import Shown
from covey.run.slots import Places, Slot, allowed_gpus, shared_gpus
from covey.run.task import Outcome, Task

if TYPE_CHECKING:
    from distributed import Client, Future, Worker


def is_client(thing: object) -> bool:
    """Whether this is a Dask client, told without importing Dask."""
    module = sys.modules.get("distributed")
    return module is not None and isinstance(thing, module.Client)


class DaskEngine:
    """Hands tasks to Dask, each under a key of its own.

    The futures are published under their names, so the scheduler keeps them while no runner is
    there, and the next one finds them. On its worker an evaluation has a process of its own.
    A task whose worker dies Dask moves to another by itself, as often as its setting
    ``distributed.scheduler.allowed-failures`` says (3 times); then it is lost.

    Args:
        client: stays open.
        grace: seconds between asking an evaluation to end and killing it.
        **options: for `Client.submit`, such as ``resources={"GPU": 1}``: each evaluation then has
            a GPU of its worker to itself, as far as that has so many (``--resources GPU=8``).
    """

    slots = None

    def __init__(self, client: Client, *, grace: float = GRACE, **options: Any) -> None:
        try:
            import distributed
        except ImportError as error:
            raise MissingExtraError("dask", "dask") from error
        if not isinstance(client, distributed.Client) or client.asynchronous:
            raise StrategyError(f"workers: a Dask client that is not asynchronous; got {client!r}.")
        self._client = client
        self._grace = grace
        self._options = options
        self._open: dict[str, Future] = {}
        self._packer = CallPacker()
        self._ready: list[Outcome] = []
        self._reported: list[str] = []  # by the last poll, as names; perhaps not in the log yet
        self._topics: set[str] = set()  # that reports of its tasks come under
        self._said: deque[tuple[str, int, Shown]] = deque()  # filled by the client's own thread

    def submit(self, task: Task) -> None:
        """Send it to the scheduler, and publish it there."""
        payload = self._packer.of(task.call)
        try:
            self._listen(task.name)
            future = self._client.submit(
                evaluate_here,
                task.name,
                task_bytes(task),
                payload,
                self._grace,
                float((self._options.get("resources") or {}).get("GPU", 0.0)),
                key=task.name,
                pure=False,
                retries=0,
                **self._options,
            )
            self._client.publish_dataset(future, name=task.name, override=True)
        except Exception as error:  # the scheduler is gone, or refuses it
            reason = f"it could not be sent ({type(error).__name__}: {error})"
            self._ready.append(Outcome(task.name, "lost", reason=reason))
            return
        self._open[task.name] = future

    def poll(self, seconds: float) -> list[Outcome]:
        """Outcomes of tasks that have ended, waiting at most ``seconds`` for the first."""
        import distributed

        self._forget()
        found, self._ready = self._ready, []
        if found or not self._open:
            time.sleep(0.0 if found else seconds)
            return found
        try:
            distributed.wait(
                list(self._open.values()),
                timeout=max(seconds, 0.001),
                return_when="FIRST_COMPLETED",
            )
        except (TimeoutError, distributed.TimeoutError):
            pass
        except Exception:  # the connection is gone; the futures show that below
            time.sleep(min(seconds, 0.1))
        for name, future in list(self._open.items()):
            if future.done():
                found += _outcomes(name, future)
                del self._open[name]
                self._reported.append(name)
        return found

    def reports(self) -> list[tuple[str, int, Shown]]:
        """Intermediate values since the last call: name, step and value."""
        return [self._said.popleft() for _ in range(len(self._said))]

    def cancel(self, names: Collection[str]) -> None:
        """Have the scheduler drop these; their workers notice, and stop their processes."""
        wanted = [self._open[name] for name in names if name in self._open]
        if wanted:
            self._client.cancel(wanted, force=True)

    def adopt(self, tasks: Sequence[Task]) -> set[str]:
        """Take over the tasks that the scheduler still keeps."""
        published = set(self._client.list_datasets())
        for task in tasks:
            if task.well_named and task.name in published:
                self._open[task.name] = self._client.get_dataset(task.name)
                if self._listen(task.name):  # what it said while nobody listened, as far as kept
                    for event in self._client.get_events(topic_of(task.name)):
                        self._hear(event)
        # What is adopted has no outcome in the log yet: it must not be forgotten.
        self._reported = [name for name in self._reported if name not in self._open]
        return {task.name for task in tasks if task.name in self._open}

    def close(self) -> None:
        """Stop watching; published futures stay, and the client stays open."""
        self._open.clear()
        for topic in self._topics:
            with suppress(Exception):  # the connection may be gone
                self._client.unsubscribe_topic(topic)
        self._topics.clear()

    def _listen(self, name: str) -> bool:
        """Have the scheduler pass on what tasks of the same run say; whether that is new."""
        topic = topic_of(name)
        new = topic not in self._topics
        if new:
            self._client.subscribe_topic(topic, self._hear)
            self._topics.add(topic)
        return new

    def _hear(self, event: tuple[float, Any]) -> None:
        name, reports = event[1]
        self._said.extend((name, step, value) for step, value in reports)

    def _forget(self) -> None:
        """Unpublish what the last poll reported: the caller has logged it before polling again.

        Not done in `close`, which is also called when the log has failed.
        """
        for name in self._reported:
            with suppress(Exception):  # the scheduler may be gone, and then forgets by itself
                self._client.unpublish_dataset(name)
        self._reported.clear()


def topic_of(name: str) -> str:
    """Where the scheduler passes on reports: one topic for a run, of which it keeps the last ones.

    >>> topic_of("covey-0a1b2c3d-7-a1")
    'covey-0a1b2c3d-reports'
    """
    return "-".join([*name.split("-")[:2], "reports"])


_places: dict[tuple[str, ...], Places] = {}  # of this worker, by the GPUs of its slots
_turn = threading.Lock()


@contextmanager
def _slot_on(worker: Worker, name: str, share: float) -> Iterator[Slot]:
    """A slot of this worker, by its own count of threads or GPUs."""
    gpus: tuple[str, ...] = ()
    if share:
        owned = int(worker.state.total_resources.get("GPU", 0))
        gpus = shared_gpus(allowed_gpus(os.environ) or tuple(map(str, range(owned))), share)
    with _turn:
        count = len(gpus) or worker.state.nthreads
        places = _places.setdefault(gpus, Places(count, gpus))
        slot = places.take(name) if places.has_room else Slot(None)
    try:
        yield slot
    finally:
        with _turn:
            places.free(name)


def evaluate_here(
    name: str, label: bytes, payload: bytes, grace: float, share: float = 0.0
) -> list[dict[str, Any]]:
    """What a Dask worker runs: one evaluation, with this share of a GPU."""
    from distributed import get_worker

    worker = get_worker()

    def wanted() -> bool:
        task = worker.state.tasks.get(name)
        return task is not None and task.state != "cancelled"

    found: list[dict[str, Any]] = []
    with _slot_on(worker, name, share) as slot:
        for news in evaluate_on_worker(label, payload, grace, wanted, slot):
            if news.reports:
                worker.log_event(topic_of(name), [name, [list(one) for one in news.reports]])
            found += news.outcomes
    return found


def _outcomes(name: str, future: Future) -> list[Outcome]:
    if future.status == "finished":
        try:
            return [Outcome(**outcome) for outcome in future.result(timeout=60)]
        except Exception as error:  # the worker that held it is gone
            return [Outcome(name, "lost", reason=f"its result could not be fetched: {error}")]
    if future.status == "cancelled":
        return [Outcome(name, "lost", reason="it was cancelled, or the scheduler forgot it")]
    raised = future.exception(timeout=60)  # KilledWorker, or a worker without covey
    return [Outcome(name, "lost", reason=f"{type(raised).__name__}: {raised}")]
