import pytest

import covey
from covey.errors import JournalDamaged, JournalError, SpaceError, StrategyError
from covey.gp import GP
from covey.log.journal import Journal
from covey.study import StudyArguments, open_study, reopen

SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})


def wanted(**changes):
    return StudyArguments(
        **{"space": SPACE, "goal": "max", "strategy": None, "seed": 3, "gp": None} | changes
    )


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "run.jsonl"
    study = covey.Study(SPACE, strategy="random", seed=3, journal=path)
    study.tell(study.ask(2), [1.0, 2.0])
    return path


def test_what_is_given_is_checked():
    with pytest.raises(SpaceError, match=r"covey\.Space or a covey\.Pool"):
        wanted(space={"x": 1})
    with pytest.raises(StrategyError, match="goal must be"):
        wanted(goal="up")


def test_without_a_journal_all_is_new():
    opened = open_study(wanted(), None)
    assert (opened.name, opened.recipe.seed, opened.recipe.gp) == ("auto", 3, GP())
    assert opened.book.log.path is None


def test_a_journal_decides_what_is_not_given(path):
    opened = open_study(wanted(seed=None), path)
    assert (opened.name, opened.recipe.seed) == ("random", 3)
    assert len(opened.book.history.told) == 2
    with pytest.raises(JournalError, match="another seed"):
        open_study(wanted(seed=4), path)


def test_a_file_of_something_else_is_refused(tmp_path):
    Journal.create(tmp_path / "other.jsonl", {"goal": "max"}).close()
    for read_only in (False, True):
        with pytest.raises(JournalError, match="its header lacks space"):
            reopen(tmp_path / "other.jsonl", read_only=read_only)
    with pytest.raises(JournalError, match="there is no journal at"):
        reopen(tmp_path / "none.jsonl")


@pytest.mark.parametrize("start", [lambda path: open_study(wanted(), path), reopen])
def test_a_path_that_cannot_be_looked_at_says_so(tmp_path, start):
    with pytest.raises(JournalError, match=r"cannot look for .*: File name too long"):
        start(tmp_path / ("a" * 300))


def test_of_a_damaged_journal_what_precedes_the_damage_can_be_seen(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[2].replace(b"2.0", b"9.0")]))
    with pytest.raises(JournalDamaged, match="line 3"):
        reopen(path)
    opened = open_study(wanted(seed=None), reopen(path, read_only=True))
    assert opened.name == "random"
    assert len(opened.book.history.pending) == 2
    study = covey.Study.load(path, read_only=True)
    with pytest.raises(JournalError, match=r"read-only, as its journal is damaged.*line 3"):
        study.ask(1)
    assert path.read_bytes().endswith(b"\n")


def test_looking_needs_no_strategy_object(tmp_path):
    from covey.baselines import Random

    path = tmp_path / "run.jsonl"
    covey.Study(SPACE, strategy=Random(), seed=3, journal=path).ask(1)
    assert len(covey.Study.load(path, read_only=True).history) == 1
    with pytest.raises(StrategyError, match="strategy object"):
        covey.Study.load(path)


def test_whoever_begins_a_moment_later_goes_on_with_it(tmp_path, monkeypatch):
    from covey.log.journal import Journal

    path, create = tmp_path / "run.jsonl", Journal.create

    def late(where, header):
        monkeypatch.undo()
        covey.Study(SPACE, strategy="random", seed=3, journal=path).ask(2)
        return create(where, header)

    monkeypatch.setattr(Journal, "create", late)
    assert len(open_study(wanted(), path).book.history) == 2


def test_a_space_too_wide_to_search_is_refused_at_once(tmp_path):
    path = tmp_path / "run.jsonl"
    wide = covey.Space({"x": covey.Real(0, 1), "c": covey.Choice(range(20_000))})
    with pytest.raises(SpaceError, match=r"20001 columns, 'c' alone 20000.*at most 5000") as caught:
        covey.Study(wide, journal=path)
    assert "ordered=True" in str(caught.value)
    assert not path.exists()
    ordered = covey.Space({"c": covey.Choice(range(20_000), ordered=True)})
    assert len(covey.Study(ordered).ask(3)) == 3
