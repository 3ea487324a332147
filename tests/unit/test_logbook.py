import pytest

import covey
from covey.errors import JournalConflict, JournalError, StrategyError
from covey.gp import GP
from covey.history import Asked, History, Point, Told
from covey.journal import Journal
from covey.logbook import Logbook, gp_in, open_journal, recipe_in, strategy_in
from covey.propose import Recipe

SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})
RECIPE = Recipe(SPACE, "max", GP(), 3)
NAMED = {"name": "auto", "object": False}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.jsonl"


def asked(*xs):
    return Asked(tuple(Point(x=x) for x in xs), "random")


def test_a_book_without_a_journal_keeps_the_history():
    book = Logbook(SPACE)
    assert [t.id for t in book.commit(asked(0.1, 0.2))] == [0, 1]
    assert book.commit(Told((0,), (1.0,))) == []
    assert len(book.history.told) == 1


def test_a_book_resumes_what_it_wrote(path):
    book = Logbook.create(path, RECIPE, NAMED)
    book.commit(asked(0.1))
    book.commit(Told((0,), (1.0,)))
    journal = open_journal(path)
    assert Logbook.resume(journal, SPACE).history.trials == book.history.trials
    assert strategy_in(journal) == "auto"
    assert gp_in(journal) == GP()
    assert recipe_in(journal, RECIPE, None, None) == RECIPE


def test_an_interrupt_between_writing_and_believing_is_noticed(path, monkeypatch):
    """The log on disk is ahead of memory then; going on would number trials twice."""
    book = Logbook.create(path, RECIPE, NAMED)
    append = Journal.append

    def interrupted(journal, event):
        append(journal, event)
        raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        book.commit(asked(0.1))
    monkeypatch.undo()
    assert book.history.events == History().events
    with pytest.raises(JournalConflict, match="Load it again"):
        book.commit(asked(0.2))
    assert len(Logbook.resume(open_journal(path), SPACE).history) == 1


def test_a_journal_of_something_else_is_refused(path):
    Journal.create(path, {"goal": "max"}).close()
    with pytest.raises(JournalError, match="its header lacks space, fingerprint, strategy"):
        open_journal(path)


def test_a_strategy_object_is_asked_for(path):
    Logbook.create(path, RECIPE, {"name": "Mine", "object": True})
    with pytest.raises(StrategyError, match=r"Mine.*strategy="):
        strategy_in(open_journal(path))


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
        gp_in(open_journal(path))


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"goal": "min"}, "goal"),
        ({"seed": 4}, "seed"),
        ({"gp": GP(samples=1)}, "gp"),
        ({"space": covey.Space({"x": covey.Real(0.0, 2.0)})}, "space"),
    ],
)
def test_another_problem_is_refused(path, given, what):
    Logbook.create(path, RECIPE, NAMED)
    recipe = Recipe(given.get("space", SPACE), given.get("goal", "max"), GP(), 3)
    with pytest.raises(JournalError, match=f"another {what}"):
        recipe_in(open_journal(path), recipe, given.get("seed"), given.get("gp"))
