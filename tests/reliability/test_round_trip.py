"""R20: a journal written again from what was read of it is the same, byte for byte."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.reliability.mutants import planted
from tests.reliability.verdict import PLAIN, Broken, demand, times

import covey
from covey import disk
from covey.errors import HistoryError
from covey.history import (
    Added,
    Amended,
    Asked,
    Began,
    Cancelled,
    Dispatched,
    Ended,
    Enqueued,
    Event,
    Excluded,
    Failed,
    Included,
    Late,
    Lost,
    Noted,
    Point,
    Reported,
    Retried,
    Told,
)
from covey.log.journal import Journal, read
from covey.log.log import Logbook

SPACE = covey.Space({"x": covey.Real(-1e9, 1e9), "c": covey.Choice(["a", "ä", 1, None])})
HEADER = {"study": "demo"}

values = st.floats(-1e100, 1e100)
sems = st.none() | st.floats(0.0, 1e100)
points = st.builds(
    lambda x, c: Point(SPACE.check({"x": x, "c": c})),
    st.floats(-1e9, 1e9),
    st.sampled_from(["a", "ä", 1, None]),
)
batches = st.lists(points, min_size=1, max_size=3).map(tuple)
ids = st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True).map(tuple)
texts = st.text(max_size=6)
reasons = texts.map("because {}".format)
named = st.dictionaries(st.sampled_from(["yield", "Ertrag/%"]), values, min_size=1, max_size=1)
models = st.none() | st.lists(st.dictionaries(texts, values, max_size=2), max_size=2)


@st.composite
def with_results(draw, kind, of, results=values):
    chosen = draw(of)
    size = {"min_size": len(chosen), "max_size": len(chosen)}
    return kind(chosen, draw(st.lists(results, **size)), draw(st.lists(sems, **size)))


events = st.one_of(
    st.builds(Asked, batches, texts, models),
    st.builds(Enqueued, batches),
    with_results(Added, batches),
    with_results(Told, ids),
    st.builds(Failed, ids, texts),
    st.builds(Cancelled, ids),
    st.builds(Lost, ids, texts),
    st.builds(Amended, st.integers(0, 9), values, texts.map("because {}".format), sems),
    st.builds(Dispatched, st.integers(0, 9), st.integers(1, 3), texts, st.integers(0, 2**63)),
    st.builds(Late, st.integers(0, 9), st.integers(1, 3), values),
    with_results(Told, ids, named),
    st.builds(Excluded, ids, reasons),
    st.builds(Included, ids, reasons),
    st.builds(Retried, ids),
    st.builds(Noted, ids, reasons),
    st.builds(Reported, st.integers(0, 9), st.integers(1, 3), st.integers(0, 99), values),
    st.builds(Began, reasons, st.integers(0, 2**22), texts, st.dictionaries(texts, values)),
    st.builds(Ended, reasons, texts),
)
messages = st.lists(st.tuples(events, st.booleans()), min_size=1, max_size=12)


class Stopped(datetime):
    """A clock that stands still, so that equal events are equal lines."""

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 1, 1, tzinfo=tz)


def write(path: Path, sent: list[tuple[Event, str | None]]) -> Logbook:
    """Commit what fits; what does not is refused and leaves no trace."""
    path.unlink(missing_ok=True)
    book = Logbook(SPACE, Journal.create(path, HEADER))
    for event, key in sent:
        try:
            book.commit(event, key)
        except HistoryError:
            continue
    return book


def everything(book: Logbook) -> tuple[object, ...]:
    history = book.history
    return (
        repr(history.events),  # to the last bit: -0.0 is not 0.0
        repr(history.trials),
        history.times,
        [(t.asked_at, t.started_at, t.ended_at) for t in history.trials],
        [history.attempts(trial.id) for trial in history.trials],
        [(history.notes(t.id), history.reports(t.id), t.excluded) for t in history.trials],
        (history.asked_count, history.rounds, history.models),
        sorted((key, repr(said.event), said.made) for key, said in book._messages.items()),
    )


def judge(folder: Path, sent: list[tuple[Event, str | None]]) -> None:
    live = write(folder / "one", sent)
    once = (folder / "one").read_bytes()
    again = Logbook(SPACE, Journal.open(folder / "one"))
    demand(everything(again) == everything(live), "a replay differs from what was lived through")
    keys = {id(said.event): key for key, said in again._messages.items()}
    write(folder / "two", [(e, keys.get(id(e))) for e in again.history.events])
    demand((folder / "two").read_bytes() == once, "written again, it is another file")
    contents = read(folder / "one")
    whole = once.splitlines(keepends=True)
    for cut in range(len(contents.events) + 1):
        (folder / "part").write_bytes(b"".join(whole[: cut + 1]))
        part = Logbook(SPACE, Journal.open(folder / "part"))
        with (folder / "part").open("ab") as file:  # somebody else goes on
            file.write(b"".join(whole[cut + 1 :]))
        part.refresh()
        demand(everything(part) == everything(live), "prefix and tail are not the whole", cut)


def check_round_trip(folder: Path, examples: int, shrink: bool = True) -> None:
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]

    @settings(max_examples=examples, phases=phases, **PLAIN)
    @given(messages)
    def go(drawn: list[tuple[Event, bool]]) -> None:
        keys = [f"key {n}" if keyed else None for n, (_, keyed) in enumerate(drawn)]
        judge(folder, list(zip([event for event, _ in drawn], keys, strict=True)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "datetime", Stopped)
        go()


def test_what_is_read_and_written_again_is_the_same_file(ram):
    """R20: replay and write is byte-equal; replay of a part and then the rest is the whole."""
    check_round_trip(ram, times(200))


@pytest.mark.parametrize(
    ("defect", "verdict"),
    [
        ("rounded numbers", "differs from what was lived through"),
        ("no standard errors", "differs from what was lived through"),
        ("keys not replayed", "differs from what was lived through"),
        ("events of others passed over", "prefix and tail"),
    ],
)
def test_round_trips_would_catch(ram, defect, verdict):
    with pytest.raises(Broken, match=verdict), planted(defect):
        check_round_trip(ram, 200, shrink=False)
