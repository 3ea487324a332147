"""`covey status` and `covey watch`: how far a study is, once or as it goes on, from its journal."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covey.cli.options import FILE, Config, Json
from covey.cli.outcomes import (
    best_line,
    extended_fields,
    goal_words,
    named_fields,
    standing_lines,
)
from covey.cli.output import printable, put, put_json, say, table_cell
from covey.cli.settings import Settings, read_settings
from covey.cli.show import end, next_command, say_differences, trial_json, trial_name
from covey.errors import brief, duration, several
from covey.log.running import Run, runs_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from covey.history import Status, Trial
    from covey.run.standing import LastRun, Standing
    from covey.study import Study

_LATEST = 3  # failures, and exclusions, that are named
_WORDS = 160  # characters of a reason
_WHY = 240  # characters of why a run ended
_POINT = 48  # characters of a point in a row
_SILENCE = 60.0  # seconds after which a line is printed though nothing has changed
_SLOWER = 10.0  # times that reading a long journal takes, between two looks


@dataclass(frozen=True)
class StudyView:
    """What the journal says of a study at one time."""

    settings: Settings
    study: Study
    standing: Standing

    @property
    def counts(self) -> dict[Status, int]:
        """How many trials there are of each status."""
        return dict(Counter(trial.status for trial in self.study.history.trials))

    @property
    def failures(self) -> list[Trial]:
        """The trials that failed or were lost, oldest first."""
        return [t for t in self.study.history.trials if t.status in ("failed", "lost")]

    @property
    def excluded(self) -> list[Trial]:
        """The results that are left out."""
        return [trial for trial in self.study.history.trials if trial.excluded]

    @property
    def best(self) -> Trial | None:
        """The best trial; None where there are several goals."""
        return self.study.best if self.study.outcomes.only else None

    def to_json(self) -> dict[str, Any]:
        """As `covey status --json` prints it."""
        study, now = self.study, self.standing
        history = study.history
        run = None
        if now.runner is not None:
            apart = ("runner", "trouble", "last")
            said = {name: v for name, v in now.to_json().items() if name not in apart}
            run = {**_who(now.runner), **said, "under_way": said["running"]}
            run["running"] = len(now.running)
            run["joined"] = [{n: one[n] for n in ("pid", "host", "since")} for one in run["joined"]]
        return {
            "journal": str(self.settings.journal),
            "goal": study.goal,
            "seed": study.seed,
            "batches": history.rounds,
            "trials": self.counts,
            "open": [trial.id for trial in history.pending],
            "best": trial_json(study, self.best),
            **named_fields(study),
            "extended": extended_fields(study),
            "failures": _reasons(study, self.failures),
            "excluded": _reasons(study, self.excluded),
            "trouble": now.trouble,
            "run": run,
            "last_run": None if now.last is None else {**_who(now.last), **_end(now.last)},
        }


def _who(runner: Run | LastRun) -> dict[str, Any]:
    return {"pid": runner.pid, "host": runner.host, "since": runner.since}


def _end(runner: LastRun) -> dict[str, Any]:
    return {"ended": runner.ended or None, "why": runner.why or None}


def status(config: Config = FILE, as_json: Json = False) -> None:
    """Say how far the study is, who runs it, and what to do next.

    \b
    covey status
    covey status --json
    """
    settings = read_settings(config)
    if not settings.journal.exists():
        if as_json:
            put_json("covey.status/1", {"journal": str(settings.journal), "trials": {}})
        else:
            put(f"{settings.path}: nothing was asked yet. next: {next_command(settings)}")
        return None
    view = Reader(settings)()
    _say_damage(view.study)
    say_differences(settings, view.study)
    if as_json:
        put_json("covey.status/1", view.to_json())
        return end(view.study)
    for line in status_lines(view):
        put(line)
    return end(view.study)


def _say_damage(study: Study) -> None:
    if study.damage is not None:
        say(f"covey: {study.damage}")
        say("covey: what follows is only what precedes the damage.")


def status_lines(view: StudyView) -> Iterator[str]:
    """What `covey status` prints."""
    study, now = view.study, view.standing
    batches = several(study.history.rounds, "batch")
    yield f"{view.settings.journal}: {batches}, goal {goal_words(study)}, seed {study.seed}"
    early = f", {now.stopped} of them stopped early" if now.stopped else ""
    yield f"trials: {_counted(view.counts, len(view.excluded))}{early}"
    yield from _best_lines(study, view.best)
    yield from _reason_lines(study, view.excluded)
    yield from _reason_lines(study, view.failures)
    if now.trouble:
        yield f"trouble: {brief(now.trouble, _WORDS)}"
    if now.runner is None:
        if now.last is not None:
            yield f"last run: {last_words(now.last)}"
        by_hand = now.last is not None and not view.settings.run.command
        again = ", or covey run -- COMMAND as before" if by_hand else ""
        yield f"next: {next_command(view.settings, study)}{again}"
        return
    yield f"run: {now.runner}, {len(now.running)} running"
    for who in now.joined:
        yield f"joined by: {who}"
    yield f"so far: {so_far(now)}"
    for cells in _rows(view):
        slot, gpu, trial, spell, step, value, _, by = cells
        place = "" if not slot else f"slot {slot}" + (f" (GPU {gpu})" if gpu else "") + ": "
        last = f", {value} at step {step}" if value else ""
        yield f"  {place}trial {trial}, for {spell}{last}{f', by {by}' if by else ''}"
    yield "next: covey run is at work; wait for it, or look on: covey watch"


def last_words(last: LastRun) -> str:
    """When the last run ended, and why.

    >>> from covey.run.standing import LastRun
    >>> last_words(LastRun(7, "tern", "2026-01-01T09:00", "2026-01-01T10:30", "Ctrl-C"))
    'ended 2026-01-01T10:30 (process 7 on tern, since 2026-01-01T09:00): Ctrl-C'
    """
    if last.ended:
        return f"ended {last.ended} ({last}): {brief(last.why, _WHY)}"
    return f"{last}, ended without a word: it was killed, or its machine went down"


def so_far(now: Standing) -> str:
    """How far a run is, in words."""
    parts = [f"{now.done}{'' if now.total is None else f' of {now.total}'} done"]
    parts += [f"{now.failed} failed"] if now.failed else []
    parts += [f"{now.stopped} stopped early"] if now.stopped else []
    if now.spent is not None:
        purse = "" if now.purse is None else f" of {now.purse:g}"
        parts.append(f"{now.spent:g}{purse} {now.costly} spent")
    parts += [] if now.left is None else [f"about {duration(now.left)} left"]
    return ", ".join(parts)


def _counted(counts: Mapping[Status, int], excluded: int) -> str:
    """How many trials there are of each status, told ones last."""
    listed = ", ".join(f"{n} {status}" for status, n in sorted(counts.items())) or "none"
    return f"{listed} ({excluded} excluded)" if excluded else listed


def _reasons(study: Study, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Each of these trials, its batch, and why it failed, was lost or is excluded."""
    history = study.history
    return [{"id": t.id, "batch": history.batch(t), "reason": history.reason(t)} for t in trials]


def _reason_lines(study: Study, trials: Sequence[Trial]) -> Iterator[str]:
    """Why the latest failed, were lost or are excluded, newest first, a line each."""
    for trial in reversed(trials[-_LATEST:]):
        why = brief(study.history.reason(trial), _WORDS)
        how = "excluded" if trial.excluded else trial.status
        yield f"{how}: {trial_name(study, trial)}: {why or 'nobody said why'}"
    if trials and not trials[-1].excluded:
        yield f"why: covey logs {trials[-1].id}"


def _best_lines(study: Study, best: Trial | None) -> Iterator[str]:
    """The best so far or the front, the limits, and what is told in part."""
    if best is not None:
        yield f"best: {best.value:.6g} (trial {best.id})"
    elif not study.outcomes.only and (line := best_line(study)):
        yield line
    yield from standing_lines(study)


def _rows(view: StudyView) -> Iterator[tuple[str, str, str, str, str, str, str, str]]:
    """Of each evaluation under way: slot, GPU, trial, how long, step, last value, point, run."""
    for one in view.standing.running:
        point = view.study.history.trial(one.id).point
        told = ", ".join(f"{name}={table_cell(value)}" for name, value in point.items())
        again = f" (attempt {one.attempt})" if one.attempt > 1 else ""
        yield (
            "" if one.slot is None else str(one.slot),
            one.gpu or "",
            f"{one.id}{again}",
            duration(one.seconds),
            "" if one.step is None else str(one.step),
            "" if one.value is None else f"{one.value:.6g}",
            told if len(told) <= _POINT else f"{told[: _POINT - 1]}…",
            one.by,
        )


# `covey watch`: the same facts again and again.


def watch(
    config: Config = FILE,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 1.0,
    as_json: Json = False,
) -> None:
    """Watch a run: slots, what runs, the best, the time left, failures; q or Ctrl-C ends the view.

    It only reads the journal, and the run goes on without it. Without a terminal, and with --json,
    it prints a line whenever something changes, and ends when nobody runs the study.

    \b
    covey watch
    covey watch --every 5
    covey watch --json
    """
    settings = read_settings(config)
    if not settings.journal.exists():
        put(f"{settings.path}: nothing was asked yet. next: {next_command(settings)}")
        return None
    look = Reader(settings)
    try:
        if sys.stdout is not None and sys.stdout.isatty() and not as_json:
            _live(look, every)
        else:
            _in_lines(look, every, as_json=as_json)
    except KeyboardInterrupt:
        pass
    if not as_json:
        for line in status_lines(look()):
            put(line)
    return end(look().study)


class Reader:
    """Reads a journal whenever it has changed; a long one less often than it could."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._seen: tuple[int, int] | None = None
        self._study: Study | None = None
        self.took = 0.0  # seconds of the last reading

    def __call__(self) -> StudyView:
        """The study as it is now."""
        from covey.log.header import reopen
        from covey.run.standing import standing

        # First: a run that has ended has written everything.
        runs = runs_of(self._settings.journal)
        found = self._settings.journal.stat()
        if self._study is None or self._seen != (found.st_size, found.st_mtime_ns):
            began = time.monotonic()
            log = reopen(self._settings.journal, read_only=True)
            self._study = self._settings.in_its_own_space(log)
            self._seen = (found.st_size, found.st_mtime_ns)
            self.took = time.monotonic() - began
        now = standing(self._study, runs, datetime.now(UTC))
        if now.last is not None and not now.last.ended:  # it may have begun just now
            now = standing(self._study, runs_of(self._settings.journal), datetime.now(UTC))
        return StudyView(self._settings, self._study, now)


def _in_lines(look: Reader, every: float, *, as_json: bool) -> None:
    last, said = "", 0.0
    while True:
        view = look()
        now = view.standing
        key = repr((now.done, now.failed, now.running and [r.id for r in now.running], now.trouble))
        key += repr([now.runner is None, *((r.step, r.value) for r in now.running)])
        if key != last or time.monotonic() - said > _SILENCE:
            last, said = key, time.monotonic()
            if as_json:
                put_json("covey.status/1", view.to_json())
            else:
                put(_line(view))
        if now.runner is None:
            return
        time.sleep(max(every, _SLOWER * look.took))


def _line(view: StudyView) -> str:
    now = view.standing
    best = "" if view.best is None else f", best {view.best.value:.6g} (trial {view.best.id})"
    shown = f"{so_far(now)}, {len(now.running)} running{best}"
    return f"{shown}; {brief(now.trouble, _WORDS)}" if now.trouble else shown


def _live(look: Reader, every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    with keys() as pressed, Live(console=Console(), screen=True, auto_refresh=False) as live:
        while True:
            live.update(picture(look()), refresh=True)
            if pressed(max(every, _SLOWER * look.took)) in ("q", "Q"):
                return


@contextmanager
def keys() -> Iterator[Callable[[float], str]]:
    """A function that waits so many seconds for a key, which needs no enter; "" if none came."""
    if sys.stdin is None or not sys.stdin.isatty() or os.name != "posix":

        def wait(seconds: float) -> str:
            time.sleep(seconds)
            return ""

        yield wait
        return
    import select
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    def read(seconds: float) -> str:
        ready, _, _ = select.select([terminal], [], [], seconds)
        return os.read(terminal, 1).decode(errors="replace") if ready else ""

    try:
        tty.setcbreak(terminal)
        yield read
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def picture(view: StudyView) -> RenderableType:
    """The view for a terminal."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    study, now = view.study, view.standing
    title = f"{view.settings.journal}  goal {goal_words(study)}"
    who = "nobody runs it" if now.runner is None else f"run by {now.runner}"
    who += "" if now.last is None else f"; the last run {last_words(now.last)}"
    who += "".join(f"\n   and by {other}" for other in now.joined)
    parts: list[RenderableType] = [
        Text(printable(title), style="bold"),
        Text(printable(who), style="dim" if now.runner is None else ""),
        Text(""),
    ]
    far = Table.grid(padding=(0, 2, 0, 0))
    bar = [ProgressBar(now.total, min(now.done, now.total), width=32)] if now.total else []
    far.add_row(*bar, Text(printable(so_far(now))))
    parts.append(far)
    parts += [Text(printable(line), style="green") for line in _best_lines(study, view.best)]
    if view.best is not None:
        point = ", ".join(f"{n}={table_cell(value)}" for n, value in view.best.point.items())
        parts.append(Text(printable(f"  at {point}")))
    if now.running:
        parts += [Text(""), _slots(view)]
    parts += [Text("")]
    parts += [Text(printable(line), style="yellow") for line in _reason_lines(study, view.failures)]
    if now.trouble:
        parts.append(Text(printable(brief(now.trouble, _WORDS)), style="bold red"))
    parts.append(Text("q ends this view; the run goes on without it", style="dim"))
    return Group(*parts)


def _slots(view: StudyView) -> Table:
    """A row for each slot; those of a run without others that have no evaluation are free."""
    from rich.table import Table
    from rich.text import Text

    found = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    names = ["slot", "GPU", "trial", "for", "step", "value", "point"]
    names += ["run"] if view.standing.joined else []
    for name in names:
        found.add_column(name, justify="right" if name in ("step", "value") else "left")
    rows, slots = list(_rows(view)), 0 if view.standing.joined else view.standing.slots or 0
    taken = {row[0] for row in rows}
    free = [str(i) for i in range(slots) if str(i) not in taken]
    rows += [(number, "", "free", "", "", "", "", "") for number in free]
    for row in sorted(rows, key=lambda row: (row[-1], not row[0], int(row[0] or 0))):
        style = "dim" if row[2] == "free" else ""
        found.add_row(*(Text(printable(cell), style=style) for cell in row[: len(names)]))
    return found
