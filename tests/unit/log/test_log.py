import contextlib
import sys

import numpy as np
import pytest

import covey
from covey.arguments import StudyArguments
from covey.catalog import strategy_of
from covey.errors import HistoryError, JournalConflict, JournalError, JournalMismatch, StrategyError
from covey.gp import GP
from covey.history import (
    Added,
    Amended,
    Asked,
    Cancelled,
    Enqueued,
    Extended,
    History,
    Noted,
    Point,
    Told,
    event_to_json,
)
from covey.history.history import Ledger
from covey.learn import Recipe
from covey.log import extension
from covey.log.header import gp_in, header_of, recipe_in, require_study, strategy_in
from covey.log.journal import Journal, read
from covey.log.log import Logbook, MemoryLog, ReadOnlyLog
from covey.outcomes import Outcomes
from covey.propose import Request
from covey.space.covering import covering
from covey.testing import LogContract

SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})
RECIPE = Recipe(SPACE, Outcomes.of("max"), GP(), 3)
ONE = Request(1, strategy_of("random")[1], "random")
NAMED = {"name": "auto", "object": False}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.jsonl"


def begun(path, strategy=NAMED):
    return Logbook(SPACE, Journal.create(path, header_of(RECIPE, strategy)))


def resumed(path):
    return Logbook(SPACE, Journal.open(path))


def asked(*xs):
    return Asked(tuple(Point(x=x) for x in xs), "random")


def test_a_book_without_a_journal_keeps_the_history():
    book = Logbook(SPACE)
    assert [t.id for t in book.commit(asked(0.1, 0.2))] == [0, 1]
    assert book.commit(Told((0,), (1.0,))) == []
    assert len(book.history.told) == 1


def test_a_book_resumes_what_it_wrote(path):
    book = begun(path)
    book.commit(asked(0.1))
    book.commit(Told((0,), (1.0,)))
    journal = Journal.open(path)
    require_study(journal.header, path)
    assert Logbook(SPACE, journal).history.trials == book.history.trials
    assert strategy_in(journal.header) == "auto"
    assert gp_in(journal.header) == GP()
    assert recipe_in(journal.header, StudyArguments(SPACE)) == RECIPE


def test_a_space_that_was_extended_is_gone_on_with_by_every_reader(path):
    wider = covey.Space({"x": covey.Real(0.0, 2.0)})
    book, other = begun(path), resumed(path)
    book.commit(asked(0.1))
    book.extend(wider, "the optimum is at the edge")
    book.commit(asked(1.5))
    for reader in (Logbook(wider, Journal.open(path)), other):
        reader.refresh()
        assert reader.history.events == book.history.events
        assert reader.state.space == wider
        assert reader.state.space.encode([{"x": 1.5}]) == 0.75
        assert reader.state.passed == (SPACE,)


def test_points_of_an_extended_space_are_read_in_the_space_of_their_time(path):
    narrow = covey.Space({"x": covey.Real(0.4, 0.6), "p": covey.Integer(1, 3)})
    book = begun(path)
    book.commit(asked(0.1))
    book.commit(Told((0,), (1.0,)))
    book.extend(narrow, "only the middle is safe", {"p": 2})
    book.commit(Asked((Point(x=0.5, p=3),), "random"))
    again = Logbook(narrow, Journal.open(path))
    assert [dict(t.point) for t in again.history] == [{"x": 0.1, "p": 2}, {"x": 0.5, "p": 3}]
    points = [t.point for t in again.history]
    at = covering(again.state.space, points).encode(points)
    np.testing.assert_allclose(at, [[-1.5, 0.5], [0.5, 2.5 / 3]])


def test_a_space_extended_to_what_it_is_already_can_be_gone_on_with(path):
    book = begun(path)
    book.commit(Extended(SPACE.describe(), SPACE.fingerprint, "as it was"))
    assert resumed(path).history.events == book.history.events


@pytest.mark.parametrize("kind", [Journal, MemoryLog])
def test_what_was_written_before_an_interrupt_and_not_believed_is_read(path, monkeypatch, kind):
    """To go on without it would number trials twice."""
    book = begun(path) if kind is Journal else Logbook(SPACE)
    append = kind.append

    def interrupted(log, event, after):
        append(log, event, after)
        raise KeyboardInterrupt

    monkeypatch.setattr(kind, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        book.commit(asked(0.1))
    monkeypatch.undo()
    assert book.history.events == History().events
    assert [t.id for t in book.commit(Enqueued((Point(x=0.2),)))] == [1]
    assert [t.point["x"] for t in book.history] == [0.1, 0.2]


def test_a_journal_of_something_else_is_refused(path):
    with pytest.raises(JournalError, match="its header lacks space, fingerprint, strategy"):
        require_study({"goal": "max"}, path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("space", None), ("goal", 3), ("strategy", {"name": "auto"}), ("seed", "x"), ("gp", [])],
)
def test_a_header_without_sense_is_refused(path, name, value):
    begun(path)
    header = read(path).header
    require_study(header, path)
    with pytest.raises(JournalError, match=f"makes no sense of {name}"):
        require_study({**header, name: value}, path)


def test_a_strategy_object_is_asked_for(path):
    begun(path, {"name": "Mine", "object": True})
    with pytest.raises(StrategyError, match=r"Mine.*strategy="):
        strategy_in(Journal.open(path).header)


def test_a_process_of_a_newer_covey_is_refused(path):
    header = {
        "space": SPACE.describe(),
        "fingerprint": SPACE.fingerprint,
        "goal": "max",
        "strategy": NAMED,
        "seed": 3,
        "gp": {**GP().describe(), "novelty": "none"},
    }
    Journal.create(path, header).close()
    with pytest.raises(JournalError, match=r"novelty.*upgrade"):
        gp_in(Journal.open(path).header)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"goal": "min"}, "goal"),
        ({"seed": 4}, "seed"),
        ({"gp": GP(samples=1)}, "gp"),
        ({"resolution": 0.1}, "resolution"),
        ({"prior": ["last-year.jsonl"]}, "prior"),
        ({"space": covey.Space({"x": covey.Real(0.0, 2.0)})}, "space"),
    ],
)
def test_another_problem_is_refused(path, given, what):
    begun(path)
    with pytest.raises(JournalError, match=f"another {what}"):
        recipe_in(Journal.open(path).header, StudyArguments(**{"space": SPACE} | given))


def test_what_others_wrote_is_read_before_a_result_is_added(path):
    mine = begun(path)
    mine.commit(asked(0.1, 0.2))
    theirs = resumed(path)
    theirs.commit(Told((0,), (1.0,)))
    mine.commit(Told((1,), (2.0,)))
    assert [t.value for t in mine.history.trials] == [1.0, 2.0]
    with pytest.raises(HistoryError, match="already told"):
        theirs.commit(Told((1,), (3.0,)))
    assert [t.value for t in theirs.history.trials] == [1.0, 2.0]


def test_who_slips_in_between_reading_and_writing_is_read_too(path, monkeypatch):
    mine = begun(path)
    mine.commit(asked(0.1, 0.2))
    theirs = resumed(path)
    refresh, waiting = mine.refresh, [Told((0,), (1.0,))]

    def refresh_and_be_overtaken():
        refresh()
        while waiting:
            theirs.commit(waiting.pop())

    monkeypatch.setattr(mine, "refresh", refresh_and_be_overtaken)
    mine.commit(Told((1,), (2.0,)))
    assert [t.value for t in mine.history.trials] == [1.0, 2.0]


def test_what_others_wrote_is_read_before_an_event_is_refused(path):
    mine = begun(path)
    mine.commit(asked(0.1))
    resumed(path).commit(Told((0,), (1.0,)))
    mine.commit(Amended(0, 2.0, "a typo"))  # of a value that this book had not heard of
    assert mine.history.trial(0).value == 2.0


def test_a_batch_does_not_follow_on_another_that_it_does_not_know(path):
    mine = begun(path)
    theirs = resumed(path)
    theirs.commit(asked(0.1))
    with pytest.raises(JournalConflict):
        mine.commit(asked(0.2))
    assert len(mine.history) == 1  # that one was read
    assert [t.id for t in mine.commit(asked(0.2))] == [1]


def test_a_batch_follows_on_results_that_it_does_not_know_and_says_so(path):
    mine = begun(path)
    mine.commit(asked(0.1, 0.2))
    theirs = resumed(path)
    since = mine.state
    theirs.commit(Told((0,), (1.0,)))
    theirs.commit(Enqueued((Point(x=0.5),)))
    assert [t.id for t in mine.commit(asked(0.3), chosen_from=since)] == [3]
    assert [line.get("after") for line in read(path).events] == [None, None, None, 1]
    assert resumed(path).history.events[-1].after == 1
    since = mine.state
    theirs.commit(Enqueued((Point(x=0.7),)))
    with pytest.raises(JournalConflict, match="taken a point"):
        mine.commit(asked(0.6, 0.7), chosen_from=since)


class Busy(MemoryLog):
    """A log to which others write: one of their events comes before each append."""

    others = ()

    def append(self, event, after):
        if self.others:
            first, *self.others = self.others
            super().append(event_to_json(first, dict, 0), len(self._lines))
        return super().append(event, after)


MANY, ROUNDS = 500, 40


@pytest.fixture
def busy():
    """A book of many results, whose log others write to before each of the next appends."""
    log = Busy()
    book = Logbook(SPACE, log)
    book.commit(Added(tuple(Point(x=i / MANY) for i in range(MANY)), (1.0,) * MANY))
    book.commit(asked(0.1234, 0.5678))
    book.commit(Cancelled((MANY,)))
    log.others = [Noted((0,), "seen") for _ in range(ROUNDS)]
    return book


def test_a_batch_is_compared_with_what_is_new_and_not_with_all_trials_again(busy, monkeypatch):
    """Else in a long log others write quicker than it is compared, and no ask is answered."""
    read, trials = [], History.trials.fget
    monkeypatch.setattr(
        History, "trials", property(lambda self: read.append(len(self)) or trials(self))
    )
    assert [t.id for t in busy.commit(asked(0.0042))] == [MANY + 2]
    assert len(busy.history.events) == ROUNDS + 4
    assert sum(read) <= MANY


@pytest.mark.parametrize("place", [0, 3])
@pytest.mark.parametrize(
    ("taking", "points"),
    [
        (Told((MANY,), (1.0,)), (0.1234,)),  # given up when the batch was chosen
        (asked(0.9999), (0.0042,)),
    ],
)
def test_a_batch_that_is_overtaken_while_it_is_appended_is_void(busy, place, taking, points):
    busy.log.others[place] = taking
    if isinstance(taking, Asked):
        taking = event_to_json(taking, dict, MANY + 2)
        busy.log.others = busy.log.others[:place]
        real = busy.log.append

        def append(event, after):
            if not busy.log.others:
                MemoryLog.append(busy.log, taking, len(busy.log._lines))
                busy.log.append = real
            return real(event, after)

        busy.log.append = append
    with pytest.raises(JournalConflict, match="taken a point"):
        busy.commit(asked(*points))
    assert len(busy.history.events) == 3 + place + 1  # nothing was written


def test_an_extension_is_checked_against_what_is_new_and_not_against_all_trials_again(
    busy, monkeypatch
):
    checked, check = [], extension._require_places
    monkeypatch.setattr(
        extension,
        "_require_places",
        lambda seen, trials, full: checked.append(len(trials)) or check(seen, trials, full),
    )
    busy.extend(covey.Space({"x": covey.Real(0.0, 2.0)}), "warmer")
    assert checked == [MANY + 2, *[1] * ROUNDS]


def test_an_event_is_checked_once_before_it_is_logged(monkeypatch):
    book, checked, check = Logbook(SPACE), [], Ledger.check
    monkeypatch.setattr(
        Ledger, "check", lambda self, event: checked.append(event) or check(self, event)
    )
    book.commit(asked(0.1))
    assert len(checked) == 1


def test_a_key_is_taken_once(path):
    book = begun(path)
    made = book.commit(asked(0.1), "monday")
    assert book.commit(asked(0.9), "monday") == made  # a batch asked again is the same batch
    book.commit(Told((0,), (1.0,)), "result")
    again = resumed(path)
    assert again.commit(Told((0,), (1.0,)), "result") == []
    assert again.made_by("monday", ONE) == [again.history.trial(0)]
    assert again.made_by("tuesday", ONE) is None
    with pytest.raises(HistoryError, match="used before, for something else"):
        again.commit(Told((0,), (2.0,)), "result")
    with pytest.raises(HistoryError, match="used before, for something else"):
        again.made_by("result", ONE)
    with pytest.raises(HistoryError, match="used before, for something else"):
        again.commit(asked(0.5), "result")
    assert len(again.history.events) == 2
    assert Journal.open(path).seq == 2


def test_a_key_that_is_no_text_is_refused(path):
    book = begun(path)
    book.log.append({"type": "enqueued", "v": 1, "ids": [0], "points": [{"x": 0.1}], "key": []}, 0)
    with pytest.raises(JournalError, match=r"its key is \[\], which is no text"):
        resumed(path)


def test_a_sealed_book_is_only_read(path):
    begun(path).commit(asked(0.1))
    book = Logbook(SPACE, ReadOnlyLog("run", read(path)))
    assert len(book.history) == 1
    with pytest.raises(JournalError, match="opened read-only"):
        book.commit(asked(0.2))


class _Stop:
    """Interrupts at the n-th line of the logbook."""

    def __init__(self, line):
        self.left, self.file = line, Logbook.commit.__code__.co_filename

    def __call__(self, frame, what, _):
        if what == "line" and frame.f_code.co_filename == self.file:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        return self


def _interrupted(book, event, line) -> bool:
    before = sys.gettrace()
    sys.settrace(_Stop(line))
    try:
        book.commit(event)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)  # coverage goes on
    return False


@pytest.mark.parametrize("event", [Told((0,), (1.0,)), Enqueued((Point(x=0.5),)), asked(0.7)])
def test_an_interrupt_at_any_line_leaves_a_journal_that_loads(path, event):
    """And a book that goes on in step with it, or says that it cannot."""
    for line in range(100):
        path.unlink(missing_ok=True)
        book = begun(path)
        book.commit(asked(0.1, 0.2))
        resumed(path).commit(Told((1,), (2.0,)))
        if isinstance(event, Asked):
            book.refresh()
        stopped = _interrupted(book, event, line)
        for _ in range(2):
            with contextlib.suppress(JournalError):
                book.commit(Enqueued((Point(x=0.9),)))
        assert resumed(path).history.told
        if not stopped:
            return
    pytest.fail("a commit has more lines than were tried")


def test_an_event_that_cannot_be_read_is_not_passed_over(path):
    book = begun(path)
    book.commit(asked(0.1))
    with Journal.open(path) as theirs:
        theirs.append({"type": "starred", "v": 9})
    for _ in range(2):
        with pytest.raises(JournalError):
            book.commit(Told((0,), (1.0,)))
    assert len(read(path).events) == 2


def test_another_space_is_described_by_all_that_differs(path):
    begun(path)
    header = read(path).header
    for space, words in (
        (covey.Space({"x": covey.Real(0.0, 2.0)}), r"x: real, 0\.0 to 2\.0 \(was"),
        (
            covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)}),
            "y: new, real.*covey extend",
        ),
        (
            covey.Pool([{"x": 0.5}, {"x": 0.7}]),
            r"a Space and cannot go on in a Pool.*study\.add\.$",
        ),
    ):
        with pytest.raises(JournalMismatch, match=words):
            recipe_in(header, StudyArguments(space))


# Both logs of ours keep the contract that a third one is held to; a defective one does not


class TestJournal(LogContract):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path):
        self.path = tmp_path / "run.jsonl"

    def make_log(self, header):
        return Journal.create(self.path, header)

    def open_log(self):
        return Journal.open(self.path)


class TestMemoryLog(LogContract):
    def make_log(self, header):
        self.made = MemoryLog(header)
        return self.made

    def open_log(self):
        return self.made


class Careless(MemoryLog):
    """Follows on whatever there is."""

    def append(self, event, after):
        return super().append(event, len(self._lines))


def test_a_log_without_conflicts_would_be_caught():
    contract, log = TestMemoryLog(), Careless()
    contract.made = log
    with pytest.raises(pytest.fail.Exception):
        contract.test_an_event_does_not_follow_on_what_its_writer_has_not_read(log)


class Hasty(MemoryLog):
    """Lets everybody ask at once."""

    def asking(self):
        from contextlib import nullcontext

        return nullcontext()


def test_a_log_without_turns_would_be_caught():
    contract, log = TestMemoryLog(), Hasty()
    contract.made = log
    with pytest.raises(AssertionError):
        contract.test_those_who_ask_take_turns_and_nobody_else_waits(log)
