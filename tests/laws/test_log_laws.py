"""The log is the only state: replay is the live history, and nothing acknowledged is ever lost.

Each check of the journal has a twin with one deliberate defect, which the check must catch.
"""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from covey.errors import HistoryError
from covey.history import (
    Added,
    Amended,
    Asked,
    Cancelled,
    Enqueued,
    Failed,
    History,
    Point,
    Told,
    event_from_json,
    event_to_json,
)
from covey.log.journal import Journal, read

# ---------------------------------------------------------------- history

finite = st.floats(-1e100, 1e100)
errors = st.none() | st.floats(0.0, 1e100)
points = st.dictionaries(
    st.text(max_size=4), finite | st.integers() | st.text(max_size=4) | st.booleans(), max_size=3
).map(Point)
batches = st.lists(points, min_size=1, max_size=4).map(tuple)
models = st.none() | st.lists(
    st.dictionaries(st.text(max_size=4), finite | st.lists(finite, max_size=2), max_size=2),
    max_size=2,
)
ids = st.lists(st.integers(0, 12), min_size=1, max_size=4, unique=True).map(tuple)


@st.composite
def tellings(draw):
    chosen = draw(ids)
    fixed = {"min_size": len(chosen), "max_size": len(chosen)}
    return Told(chosen, draw(st.lists(finite, **fixed)), draw(st.lists(errors, **fixed)))


@st.composite
def additions(draw):
    chosen = draw(batches)
    fixed = {"min_size": len(chosen), "max_size": len(chosen)}
    return Added(chosen, draw(st.lists(finite, **fixed)), draw(st.lists(errors, **fixed)))


events = st.one_of(
    st.builds(Asked, batches, st.text(max_size=5), models),
    st.builds(Enqueued, batches),
    additions(),
    tellings(),
    st.builds(Failed, ids, st.text(max_size=5)),
    st.builds(Cancelled, ids),
    st.builds(Amended, st.integers(0, 12), finite, st.just("typo"), errors),
)


class Model:
    """The slow obvious way: a list of plain dicts, changed in place."""

    def __init__(self):
        self.rows, self.asked, self.rounds, self.models = [], 0, 0, None

    def allows(self, event) -> bool:
        chosen = [event.id] if isinstance(event, Amended) else getattr(event, "ids", ())
        if any(i >= len(self.rows) for i in chosen):
            return False
        statuses = {self.rows[i]["status"] for i in chosen}
        if isinstance(event, Told):
            return "told" not in statuses
        if isinstance(event, Failed | Cancelled):
            return statuses == {"pending"}
        return not isinstance(event, Amended) or statuses == {"told"}

    def apply(self, event) -> None:
        if isinstance(event, Asked):
            self.asked += len(event.points)
            self.rounds += 1
            self.models = event.models if event.models is not None else self.models
        if isinstance(event, Asked | Enqueued | Added):
            self.create(event)
        elif isinstance(event, Told):
            for i, told, sem in zip(event.ids, event.values, event.sems, strict=True):
                self.rows[i] |= {"status": "told", "value": told["value"], "sem": sem}
        elif isinstance(event, Amended):
            self.rows[event.id]["value"] = event.value["value"]
            if event.sem is not None:
                self.rows[event.id]["sem"] = event.sem
        else:
            for i in event.ids:
                self.rows[i]["status"] = type(event).__name__.lower()

    def create(self, event) -> None:
        kind = type(event).__name__.lower()
        for k, point in enumerate(event.points):
            row = {"id": len(self.rows), "point": dict(point), "origin": kind}
            row |= {"status": "pending", "value": None, "sem": None}
            if kind == "added":
                value = event.values[k]["value"]
                row |= {"status": "told", "value": value, "sem": event.sems[k]}
            self.rows.append(row)

    def describes(self, history: History) -> bool:
        names = ("id", "point", "origin", "status", "value", "sem")
        rows = [{name: getattr(trial, name) for name in names} for trial in history.trials]
        counts = (len(history), history.asked_count, history.rounds, history.models)
        return rows == self.rows and counts == (
            len(self.rows),
            self.asked,
            self.rounds,
            self.models,
        )


class LiveLog(RuleBasedStateMachine):
    """Any events, legal or not, from any moment of the past, against the model."""

    def __init__(self):
        super().__init__()
        self.now = (History(), Model(), [])
        self.past = [(self.now[0], deepcopy(self.now[1]))]

    @rule(event=events)
    def happens(self, event):
        history, model, log = self.now
        if not model.allows(event):
            for refuse in (history.check, history.then):
                with pytest.raises(HistoryError):
                    refuse(event)
            return
        history.check(event)
        model, log = deepcopy(model), [*log, event]
        model.apply(event)
        self.now = (history.then(event), model, log)
        self.past.append((self.now[0], model))

    @precondition(lambda self: len(self.past) > 2)
    @rule(data=st.data())
    def somebody_goes_on_from_an_older_view(self, data):
        history, model = data.draw(st.sampled_from(self.past))
        self.now = (history, model, list(history.events))

    @invariant()
    def the_live_history_is_what_the_model_says(self):
        history, model, log = self.now
        assert model.describes(history)
        assert history.events == tuple(log)

    def teardown(self):
        for history, model in self.past:
            assert model.describes(history), "an older view changed"
            assert model.describes(History(history.events)), "a replay differs"


LiveLog.TestCase.settings = settings(stateful_step_count=25, max_examples=50, deadline=None)
TestLiveLog = LiveLog.TestCase


@given(events, st.integers(0, 10**6))
def test_every_event_survives_json(event, first):
    written = json.loads(json.dumps(event_to_json(event, dict, first), allow_nan=False))
    again = event_from_json(written, Point, first)
    assert again == event
    assert repr(again) == repr(event)  # to the last bit: -0.0 is not 0.0


def legal(candidates) -> History:
    history = History()
    for event in candidates:
        try:
            history = history.then(event)
        except HistoryError:
            continue
    return history


@given(st.lists(events, max_size=15))
def test_a_history_read_from_its_journal_is_the_live_history(candidates):
    live, again = History(), History()
    with TemporaryDirectory() as folder:
        with Journal.create(Path(folder) / "run", {}) as journal:
            for event in legal(candidates).events:
                journal.append(event_to_json(event, dict, len(live)))
                live = live.then(event)
        stored = read(Path(folder) / "run").events
    for event in stored:
        again = again.then(event_from_json(event, Point, len(again)))
    assert again.trials == live.trials
    assert again.events == live.events
    assert (again.asked_count, again.rounds, again.models) == (
        live.asked_count,
        live.rounds,
        live.models,
    )
