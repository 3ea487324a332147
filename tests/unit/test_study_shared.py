"""A study shared by threads, processes and journals: asks and tells at once, and keys."""

import contextlib
import copy
import os
import pickle
import subprocess
import sys
import threading

import pytest
from tests.play import SPACE, f

import covey
from covey.errors import HistoryError, JournalError, SpaceError
from covey.history import Asked, Noted, Point
from covey.log.journal import Journal
from covey.log.log import Message


@pytest.fixture
def study():
    return covey.Study(SPACE, seed=0)


class Thoughtful:
    """Says that it thinks, and goes on when it is told to."""

    needs_model = False

    def __init__(self):
        self.thinks, self.may_answer, self.times = threading.Event(), threading.Event(), 0

    def choose(self, belief, k, rng):
        self.times += 1
        self.thinks.set()
        self.may_answer.wait(300)
        return rng.choice(len(belief), size=k, replace=False).tolist()


@contextlib.contextmanager
def thinking(study, strategy, made, k=2):
    """Another thread asks; inside it thinks, afterwards it has answered."""
    thread = threading.Thread(target=lambda: made.extend(study.ask(k, strategy=strategy)))
    thread.start()
    assert strategy.thinks.wait(300)
    try:
        yield
    finally:
        strategy.may_answer.set()
        thread.join(300)
    assert not thread.is_alive()


@pytest.mark.parametrize("journal", [None, "run.jsonl"])
def test_an_ask_that_thinks_keeps_nobody_from_telling(tmp_path, journal):
    """And what is told meanwhile does not void it: it says up to where it knew the log."""
    path = None if journal is None else tmp_path / journal
    study, strategy = covey.Study(SPACE, seed=0, journal=path), Thoughtful()
    batch, made = study.ask(5), []
    with thinking(study, strategy, made):
        study.tell(batch[0], 1.0)
        study.fail(batch[1], "burnt")
        study.cancel(batch[2])
        study.amend(batch[0], 2.0, "a typo")
        study.enqueue([{"x": 0.123, "y": 0.5}])
        assert study.history.told
        assert not made
    assert strategy.times == 1
    assert [t.id for t in made] == [6, 7]
    *_, asked = study.history.events
    assert asked.after == 1
    study.ask(1)
    assert study.history.events[-1].after is None  # from all that precedes it


def test_a_batch_is_chosen_again_if_one_of_its_points_is_taken():
    """In a pool no point is asked for that somebody else has put down meanwhile."""
    pool = covey.Pool([{"x": float(i)} for i in range(3)])
    study, strategy, made = covey.Study(pool, seed=0), Thoughtful(), []
    with thinking(study, strategy, made, k=2):
        study.add([{"x": 0.0}], [1.0])
    assert strategy.times in (1, 2)  # as it had chosen that one or not
    assert sorted(t.point["x"] for t in made) == [1.0, 2.0]
    study, strategy, made = covey.Study(pool, seed=0), Thoughtful(), []
    (gone,) = study.ask(1)
    study.cancel(gone)
    with thinking(study, strategy, made, k=2):
        study.tell(gone, 1.0)  # it was measured after all
    assert gone.point not in [t.point for t in made]


def test_a_batch_comes_again_from_the_log_it_was_chosen_from(tmp_path):
    """Also where results came in while it was thought of."""
    path, made = tmp_path / "run.jsonl", []
    study = covey.Study(SPACE, seed=3, journal=path)
    first = study.ask(8)
    study.tell(first[:6], [float(i) for i in range(6)])
    real, started, told = study.proposer, threading.Event(), threading.Event()

    def slowly(*given):
        started.set()
        told.wait(300)
        return real(*given)

    study.proposer = slowly
    thread = threading.Thread(target=lambda: made.extend(study.ask(3)))
    thread.start()
    started.wait(300)
    study.tell(first[6:], [9.0, -9.0])
    told.set()
    thread.join(300)
    asked = study.history.events[-1]
    assert asked.after == 2
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[: 1 + asked.after]))
    assert [t.point for t in covey.Study.load(cut).ask(3)] == [t.point for t in made]
    cut.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert [t.point for t in covey.Study.load(cut).ask(3)] != [t.point for t in made]


@pytest.mark.parametrize("journal", [None, "run.jsonl"])
def test_failures_and_corrections_sent_twice_are_taken_once(tmp_path, journal):
    study = covey.Study(SPACE, seed=0, journal=None if journal is None else tmp_path / journal)
    a, b, c = study.ask(3)
    study.tell(a, 1.0)
    for _ in range(2):
        study.fail(b, "burnt", key="b")
        study.cancel(c, key="c")
        study.amend(a, 2.0, "a typo", key="a")
    assert [t.status for t in study.history] == ["told", "failed", "cancelled"]
    assert len(study.history.events) == 5
    with pytest.raises(HistoryError, match="used before, for something else"):
        study.cancel(b, key="c")


def test_threads_share_a_study(tmp_path):
    """Eight threads ask and tell at once: every id once, every point distinct, the log whole."""
    path = tmp_path / "run.jsonl"
    study = covey.Study(SPACE, strategy="random", seed=0, journal=path)
    errors = []

    def work():
        try:
            for _ in range(5):
                batch = study.ask(2)
                study.tell(batch, [f(t.point) for t in batch])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [t.id for t in study.history.trials] == list(range(80))
    assert len({tuple(t.point.values()) for t in study.history.trials}) == 80
    assert covey.Study.load(path).history.trials == study.history.trials


def test_two_studies_on_one_journal_take_turns(tmp_path):
    """Each reads what the other wrote before it adds to it; nobody reloads by hand."""
    path = tmp_path / "run.jsonl"
    space = covey.Space({"x": covey.Real(0.0, 1.0)})
    mine = covey.Study(space, seed=0, journal=path)
    theirs = covey.Study.load(path)
    for _ in range(3):
        for study in (mine, theirs):
            batch = study.ask(2)
            study.tell(batch, [t.point["x"] for t in batch])
    mine.refresh()
    assert [t.status for t in mine.history.trials] == ["told"] * 12
    assert mine.history.events == theirs.history.events == covey.Study.load(path).history.events
    assert len({t.point["x"] for t in mine.history.trials}) == 12
    assert mine.journal == path


def test_a_message_sent_twice_is_taken_once(tmp_path):
    path = tmp_path / "run.jsonl"
    study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), seed=0, journal=path)
    batch = study.ask(2, key="monday")
    again = covey.Study.load(path)
    assert again.ask(2, key="monday") == batch
    again.tell(batch, [1.0, 2.0], key="monday's results")
    study.tell(batch, [1.0, 2.0], key="monday's results")
    study.enqueue([{"x": 0.5}], key="mine")
    study.enqueue([{"x": 0.5}], key="mine")
    study.add([{"x": 0.25}], [3.0], key="hers")
    study.add([{"x": 0.25}], [3.0], key="hers")
    assert len(covey.Study.load(path).history) == 4
    with pytest.raises(HistoryError, match="a key is a text"):
        study.add([{"x": 0.25}], [3.0], key="")


class TestAKeyNamesOneBatch:
    """Asked again with the same key it is the same batch; for another batch the key is taken."""

    @pytest.fixture
    def study(self, tmp_path):
        made = covey.Study(SPACE, strategy="random", seed=0, journal=tmp_path / "run.jsonl")
        made.ask(3, key="plain")
        made.ask(3, key="held", fixed={"x": 0.5}, strategy="sobol")
        return made

    @pytest.mark.parametrize("reloaded", [False, True])
    @pytest.mark.parametrize(
        ("key", "call", "words"),
        [
            ("plain", {"k": 5}, "3 points.*not 5 points"),
            ("plain", {"k": 3, "fixed": {"x": 0.5}}, r"\{'x': 0\.5\}"),
            ("plain", {"k": 3, "strategy": "sobol"}, "by random.*by sobol"),
            ("held", {"k": 3, "strategy": "sobol"}, "held"),
            ("held", {"k": 3, "strategy": "sobol", "fixed": {"x": 0.6}}, "held"),
            ("held", {"k": 3, "fixed": {"x": 0.5}}, "by sobol.*by random"),
        ],
    )
    def test_for_other_arguments_it_is_an_error(self, study, reloaded, key, call, words):
        if reloaded:
            study = covey.Study.load(study.journal)
        before = study.history.events
        with pytest.raises(HistoryError, match=f"(?s)used before.*{words}"):
            study.ask(**call, key=key)
        assert study.history.events == before

    def test_for_the_same_ones_it_is_the_same_batch(self, study):
        for again in (study, covey.Study.load(study.journal)):
            held = again.ask(3, key="held", fixed={"x": 0.5}, strategy="sobol", time_budget=9.0)
            assert [t.id for t in held] == [3, 4, 5]
            assert [t.id for t in again.ask(3, key="plain")] == [0, 1, 2]

    def test_what_an_old_journal_does_not_say_is_not_held_against_it(self, tmp_path):
        """It says how many and by what; what was held shows in the points, and only there."""
        study = covey.Study(SPACE, strategy="random", seed=0, journal=tmp_path / "run.jsonl")
        study.note(Asked((Point(x=0.5, y=0.1), Point(x=0.5, y=0.2)), "random"))
        study._log._messages["old"] = Message(study.history.events[0], range(2), SPACE)
        assert len(study.ask(2, key="old")) == 2
        assert len(study.ask(2, key="old", fixed={"x": 0.5})) == 2
        with pytest.raises(HistoryError, match="used before"):
            study.ask(2, key="old", fixed={"x": 0.7})
        with pytest.raises(HistoryError, match="used before"):
            study.ask(3, key="old")


class TestAMessageSentAgainAfterAnExtension:
    """It is what it was: read in the space of its time, it is acknowledged; another is refused."""

    NARROW, WIDE = (
        covey.Space({"x": covey.Real(0.0, 0.5)}),
        covey.Space({"x": covey.Real(0.0, 1.0)}),
    )
    MORE = covey.Space({"x": covey.Real(0.0, 1.0), "p": covey.Real(0.0, 5.0)})

    @pytest.fixture(params=["this", "another"])
    def sent(self, request, tmp_path):
        """A study extended since the messages; this process sent them, or another one."""

        def begin(space, values):
            path = tmp_path / "run.jsonl"
            study = covey.Study(self.WIDE, strategy="random", seed=0, journal=path)
            study.add([{"x": 0.75}], [1.0], key="added")
            study.enqueue([{"x": 0.25}], key="enqueued")
            study.tell([1], [2.0], key="told")
            study.tell(study.ask(1, key="asked", fixed={"x": 0.875}), [3.0])
            study.extend(space, "it grew", values=values, key="extended")
            return study if request.param == "this" else covey.Study.load(path)

        return begin

    @pytest.mark.parametrize(("to", "values"), [("NARROW", None), ("MORE", {"p": 1.0})])
    def test_the_same_is_acknowledged(self, sent, to, values):
        study = sent(getattr(self, to), values)
        before = study.journal.read_bytes()
        assert [t.id for t in study.add([{"x": 0.75}], [1.0], key="added")] == [0]
        assert [t.id for t in study.enqueue([{"x": 0.25}], key="enqueued")] == [1]
        study.tell([1], [2.0], key="told")
        assert [t.id for t in study.ask(1, key="asked", fixed={"x": 0.875})] == [2]
        study.extend(getattr(self, to), "it grew", values=values, key="extended")
        assert study.journal.read_bytes() == before

    def test_another_is_refused(self, sent):
        study = sent(self.MORE, {"p": 1.0})
        before = study.journal.read_bytes()
        for send in (
            lambda: study.add([{"x": 0.75}], [1.5], key="added"),
            lambda: study.enqueue([{"x": 0.5}], key="enqueued"),
            lambda: study.enqueue([{"x": 0.25}], key="added"),
            lambda: study.ask(1, key="asked", fixed={"x": 0.5}),
            lambda: study.extend(self.MORE, "it grew", values={"p": 2.0}, key="extended"),
            lambda: study.extend(self.MORE, "why not", values={"p": 1.0}, key="extended"),
            lambda: study.extend(self.NARROW, "it grew", key="added"),
        ):
            with pytest.raises(HistoryError, match="used before"):
                send()
        assert study.journal.read_bytes() == before

    def test_a_new_key_is_read_in_the_space_of_now(self, sent):
        study = sent(self.MORE, {"p": 1.0})
        with pytest.raises(SpaceError, match="has no 'p'"):
            study.add([{"x": 0.75}], [1.0], key="new")
        study.add([{"x": 0.75, "p": 2.0}], [1.0], key="new")


def test_the_key_of_plates_is_none_of_a_batch():
    study = covey.Study(SPACE, strategy="random", seed=0)
    layout = covey.Layout(6)
    (plate,) = study.ask_plates(1, layout, key="monday")
    count = len(study.history)
    assert [p.name for p in study.ask_plates(1, layout, key="monday")] == [plate.name]
    with pytest.raises(HistoryError, match="1 plate by random in the layout"):
        study.ask(count, key="monday")
    study.ask(2, key="tuesday")
    with pytest.raises(HistoryError, match="2 points by random"):
        study.ask_plates(1, layout, key="tuesday")
    assert len(study.history) == count + 2


def test_a_study_is_opened_from_one_reading_of_its_journal(tmp_path, monkeypatch):
    """So that an extension by another process, at any moment, is one that comes later."""
    narrow, wide = (covey.Space({"x": covey.Real(0.0, high)}) for high in (1.0, 2.0))
    other = covey.Study(narrow, seed=0, journal=tmp_path / "run.jsonl")
    reads, read = [], Journal.read

    def extended_before_the_second(self, since):
        if self is not other._log.log:
            reads.append(since)
            if len(reads) == 2:
                other.extend(wide, "warmer")
        return read(self, since)

    monkeypatch.setattr(Journal, "read", extended_before_the_second)
    study = covey.Study.load(tmp_path / "run.jsonl")
    assert (study.space.fingerprint, len(reads)) == (narrow.fingerprint, 1)
    study.refresh()
    assert study.space.fingerprint == wide.fingerprint


def two_on(path):
    mine = covey.Study(SPACE, strategy="random", seed=0, journal=path)
    return mine, covey.Study.load(path)


@pytest.mark.parametrize(
    "send",
    [
        lambda study, batch: study.tell(batch, [1.0, 2.0]),
        lambda study, batch: study.tell(batch[1], 1.0),
        lambda study, batch: study.fail(batch, "out of memory"),
        lambda study, batch: study.cancel(batch),
    ],
)
def test_a_trial_that_another_process_asked_for_is_known(tmp_path, send):
    mine, theirs = two_on(tmp_path / "run.jsonl")
    send(theirs, mine.ask(2))
    assert {t.status for t in theirs.history.trials} - {"pending"}


def test_a_value_that_another_process_told_can_be_amended_by_its_trial(tmp_path):
    mine, theirs = two_on(tmp_path / "run.jsonl")
    (trial,) = mine.ask(1)
    mine.tell(trial, 1.0)
    theirs.amend(trial, 2.0, "a typo")
    assert theirs.history.trial(0).value == 2.0


def test_a_trial_of_another_study_is_still_refused(tmp_path):
    mine, theirs = two_on(tmp_path / "run.jsonl")
    mine.ask(2)
    stranger = covey.Study(SPACE, strategy="random", seed=1).ask(3)
    with pytest.raises(HistoryError, match="is not of this study"):
        theirs.tell(stranger[0], 1.0)
    with pytest.raises(HistoryError, match="trial 2"):
        theirs.tell(stranger[2], 1.0)


FORK = """
import os, sys, threading
import covey
from covey.errors import JournalError

entered, leave = threading.Event(), threading.Event()

class Slow:
    needs_model = False
    def choose(self, belief, k, rng):
        entered.set()
        leave.wait(300)
        return list(range(k))

journal = sys.argv[1] or None
space = covey.Space({"x": covey.Real(0.0, 1.0)})
study = covey.Study(space, strategy=Slow(), seed=0, journal=journal)
trial, = study.enqueue([{"x": 0.5}])
thread = threading.Thread(target=study.ask)
thread.start()
entered.wait()
child = os.fork()
if child == 0:
    try:
        study.tell(trial, 1.0)
    except JournalError as error:
        os._exit(7 if "in its child" in str(error) else 1)
    os._exit(0 if study.best.value == 1.0 else 1)
leave.set()
thread.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize(("journal", "code"), [(True, 7), (False, 0)])
def test_a_child_forked_during_an_ask_does_not_wait_for_it(tmp_path, journal, code):
    """With a journal it is told to use its own; without one it has a copy of its own."""
    path = str(tmp_path / "run.jsonl") if journal else ""
    done = subprocess.run([sys.executable, "-c", FORK, path], timeout=300, check=False)
    assert done.returncode == code


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_study_is_shared_by_its_journal_and_not_copied(study, take):
    with pytest.raises(JournalError, match=r"journal='run\.jsonl'"):
        take(study)


def test_what_an_event_requires_is_checked_on_the_log_it_is_added_to(tmp_path):
    """Not on what its writer has read: another has written since."""
    one = covey.Study(SPACE, seed=0, strategy="random", journal=tmp_path / "run.jsonl")
    one.ask(1)
    two = covey.Study.load(tmp_path / "run.jsonl")
    two.note(Noted((0,), "mine"))

    def unnoted(history):
        if history.notes(0):
            raise HistoryError(f"noted: {history.notes(0)}")

    assert one.history.notes(0) == ()
    with pytest.raises(HistoryError, match="mine"):
        one.note(Noted((0,), "no, mine"), require=unnoted)
    assert covey.Study.load(tmp_path / "run.jsonl").history.notes(0) == ("mine",)
    one.note(Noted((0,), "ours"), require=lambda history: None)
    assert one.history.notes(0) == ("mine", "ours")
