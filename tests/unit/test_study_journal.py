"""A study and its journal: begun, continued, loaded, refused."""

import pytest
from tests.play import SPACE, play, points_of

import covey
from covey.arguments import StudyArguments
from covey.catalog import strategy_of
from covey.errors import HistoryError, JournalDamaged, JournalError, SpaceError, StrategyError
from covey.gp import GP
from covey.log.header import open_study, reopen
from covey.log.journal import Journal
from covey.policies import UCB
from covey.strategies import DPP


class TestJournal:
    def test_a_reloaded_study_goes_on_with_the_same_batch(self, tmp_path):
        path = tmp_path / "run.jsonl"
        live = play(covey.Study(SPACE, goal="min", seed=4, journal=path))
        live.fail(live.ask(1), "crash")
        live.amend(0, 9.0, "typo")
        before = live.history.trials
        expected = points_of(live.ask(3))
        # A second reader of the same log, cut before the last ask.
        text = path.read_bytes().splitlines(keepends=True)
        copy = tmp_path / "copy.jsonl"
        copy.write_bytes(b"".join(text[:-1]))
        loaded = covey.Study.load(copy)
        assert loaded.history.trials == before
        assert loaded.goal == "min"
        assert points_of(loaded.ask(3)) == expected

    def test_an_existing_journal_is_continued(self, tmp_path):
        path = tmp_path / "run.jsonl"
        play(covey.Study(SPACE, strategy="random", seed=4, journal=path), rounds=1)
        again = covey.Study(SPACE, journal=path)
        assert again.seed == 4
        again.ask(1)
        assert again.diagnostics.strategy == "random"
        other = covey.Study(SPACE, strategy="sobol", journal=path)
        other.ask(1)
        assert other.diagnostics.strategy == "sobol"
        assert len(again.history.told) == 3

    @pytest.mark.parametrize(
        ("change", "what"),
        [
            ({"goal": "min"}, "goal"),
            ({"seed": 5}, "seed"),
            (
                {"space": covey.Space({"x": covey.Real(0.0, 2.0), "y": covey.Real(0.0, 1.0)})},
                "space",
            ),
            ({"gp": covey.GP(samples=2)}, "gp"),
        ],
    )
    def test_another_problem_is_refused(self, tmp_path, change, what):
        path = tmp_path / "run.jsonl"
        covey.Study(SPACE, seed=4, journal=path)
        content = path.read_bytes()
        with pytest.raises(JournalError, match=f"another {what}"):
            covey.Study(**{"space": SPACE, "journal": path, **change})
        assert path.read_bytes() == content

    def test_what_a_log_cannot_hold_is_passed_again(self, tmp_path):
        path = tmp_path / "run.jsonl"
        space = covey.Space({"x": covey.Real(0.0, 1.0)}, where=[half])
        mine = DPP(UCB(), then="max")
        covey.Study(space, strategy=mine, seed=0, journal=path).ask(2)
        with pytest.raises(SpaceError, match="`space=`"):
            covey.Study.load(path)
        with pytest.raises(StrategyError, match="strategy="):
            covey.Study.load(path, space=space)
        assert len(covey.Study.load(path, space=space, strategy=mine).history) == 2
        with pytest.raises(JournalError, match="another space"):
            covey.Study.load(path, space=SPACE, strategy="auto")

    def test_choices_of_any_kind_survive(self, tmp_path):
        path = tmp_path / "run.jsonl"
        space = covey.Space(
            {"net": covey.Choice([(50,), (100, 50), None]), "b": covey.Choice([True, 1])}
        )
        study = covey.Study(space, seed=0, journal=path)
        batch = study.ask(6)
        again = covey.Study.load(path, space=space)
        assert points_of(again.history.trials) == points_of(batch)
        assert {(p["net"], type(p["b"])) for p in points_of(batch)} == {
            (n, t) for n in ((50,), (100, 50), None) for t in (bool, int)
        }

    def test_a_missing_journal_is_not_made_by_loading(self, tmp_path):
        with pytest.raises(JournalError, match="there is no journal at"):
            covey.Study.load(tmp_path / "no.jsonl")
        assert not (tmp_path / "no.jsonl").exists()

    def test_a_failed_write_leaves_the_study_as_it_was(self, tmp_path, monkeypatch):
        study = covey.Study(SPACE, seed=0, journal=tmp_path / "run.jsonl")
        batch = study.ask(2)

        def full(journal, event, after):
            raise JournalError("disk full")

        monkeypatch.setattr(Journal, "append", full)
        with pytest.raises(JournalError):
            study.tell(batch, [1.0, 2.0])
        assert study.history.told == ()
        monkeypatch.undo()
        study.tell(batch, [1.0, 2.0])
        assert len(study.history.told) == 2


def half(point):
    return point["x"] < 0.5


# What is wanted of a study, and what its journal says


LINE = covey.Space({"x": covey.Real(0.0, 1.0)})


def wanted(**changes):
    return StudyArguments(
        **{"space": LINE, "goal": "max", "strategy": None, "seed": 3, "gp": None} | changes
    )


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "run.jsonl"
    study = covey.Study(LINE, strategy="random", seed=3, journal=path)
    study.tell(study.ask(2), [1.0, 2.0])
    return path


def test_what_is_given_is_checked():
    with pytest.raises(SpaceError, match=r"covey\.Space or a covey\.Pool"):
        wanted(space={"x": 1})
    with pytest.raises(StrategyError, match="goal must be"):
        wanted(goal="up")


def test_without_a_journal_all_is_new():
    opened = open_study(wanted(), None, strategy_of)
    assert (opened.name, opened.recipe.seed, opened.recipe.gp) == ("auto", 3, GP())
    assert opened.book.log.path is None


def test_a_journal_decides_what_is_not_given(path):
    opened = open_study(wanted(seed=None), path, strategy_of)
    assert (opened.name, opened.recipe.seed) == ("random", 3)
    assert len(opened.book.history.told) == 2
    with pytest.raises(JournalError, match="another seed"):
        open_study(wanted(seed=4), path, strategy_of)


def test_a_file_of_something_else_is_refused(tmp_path):
    Journal.create(tmp_path / "other.jsonl", {"goal": "max"}).close()
    for read_only in (False, True):
        with pytest.raises(JournalError, match="its header lacks space"):
            reopen(tmp_path / "other.jsonl", read_only=read_only)
    with pytest.raises(JournalError, match="there is no journal at"):
        reopen(tmp_path / "none.jsonl")


@pytest.mark.parametrize("start", [lambda path: open_study(wanted(), path, strategy_of), reopen])
def test_a_path_that_cannot_be_looked_at_says_so(tmp_path, start):
    with pytest.raises(JournalError, match=r"cannot look for .*: File name too long"):
        start(tmp_path / ("a" * 300))


def test_of_a_damaged_journal_what_precedes_the_damage_can_be_seen(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[2].replace(b"2.0", b"9.0")]))
    with pytest.raises(JournalDamaged, match="line 3"):
        reopen(path)
    opened = open_study(wanted(seed=None), reopen(path, read_only=True), strategy_of)
    assert opened.name == "random"
    assert len(opened.book.history.pending) == 2
    study = covey.Study.load(path, read_only=True)
    with pytest.raises(JournalError, match=r"run\.jsonl: line 3"):
        study.ask(1)
    assert path.read_bytes().endswith(b"\n")


def test_looking_needs_no_strategy_object(tmp_path):
    from covey.baselines import Random

    path = tmp_path / "run.jsonl"
    covey.Study(LINE, strategy=Random(), seed=3, journal=path).ask(1)
    assert len(covey.Study.load(path, read_only=True).history) == 1
    with pytest.raises(StrategyError, match="strategy object"):
        covey.Study.load(path)


def test_whoever_begins_a_moment_later_goes_on_with_it(tmp_path, monkeypatch):
    from covey.log.journal import Journal

    path, create = tmp_path / "run.jsonl", Journal.create

    def late(where, header):
        monkeypatch.undo()
        covey.Study(LINE, strategy="random", seed=3, journal=path).ask(2)
        return create(where, header)

    monkeypatch.setattr(Journal, "create", late)
    assert len(open_study(wanted(), path, strategy_of).book.history) == 2


def test_a_space_too_wide_to_search_is_refused_at_once(tmp_path):
    path = tmp_path / "run.jsonl"
    wide = covey.Space({"x": covey.Real(0, 1), "c": covey.Choice(range(20_000), ordered=False)})
    with pytest.raises(SpaceError, match=r"20001 columns, 'c' alone 20000.*at most 5000") as caught:
        covey.Study(wide, journal=path)
    assert "ordered=True" in str(caught.value)
    assert not path.exists()
    ordered = covey.Space({"c": covey.Choice(range(20_000), ordered=True)})
    assert len(covey.Study(ordered).ask(3)) == 3


def test_a_rehearsal_does_what_the_study_would_and_writes_nothing(path):
    study = covey.Study.load(path)
    before, events = path.read_bytes(), study.history.events
    tried = study.rehearsal()
    batch = tried.ask(2, key="one")
    tried.tell(batch, [1.0, 2.0], key="two")
    tried.note(tried.add([batch[0].point], [1.5]), "again")
    after = tried.rehearsal().ask(2)
    assert tried.ask(2, key="one") == [tried.history[trial.id] for trial in batch]
    assert (path.read_bytes(), study.history.events, tried.journal) == (before, events, None)
    assert [trial.point for trial in study.ask(2)] == [trial.point for trial in batch]
    study.tell(batch, [1.0, 2.0])
    study.add([batch[0].point], [1.5])
    assert [trial.point for trial in study.ask(2)] == [trial.point for trial in after]


def test_a_rehearsal_knows_the_keys_that_were_used(path):
    study = covey.Study.load(path)
    batch = study.ask(2, key="one")
    tried = study.rehearsal()
    assert tried.ask(2, key="one") == batch
    with pytest.raises(HistoryError, match="'one'"):
        tried.ask(3, key="one")


def test_what_is_only_looked_at_may_be_rehearsed_with_its_own_strategy(tmp_path):
    space = covey.Space({"x": covey.Real(0, 1), "y": covey.Real(0, 1)})
    study = covey.Study(space, strategy="random", seed=0, journal=tmp_path / "run.jsonl")
    tried = covey.Study.load(tmp_path / "run.jsonl", read_only=True).rehearsal()
    assert [t.point for t in tried.ask(3)] == [t.point for t in study.ask(3)]


def test_a_rehearsal_follows_an_extension(path):
    study = covey.Study.load(path)
    low, high = 0.0, 3.0
    wider = covey.Space({name: covey.Real(low, high) for name in study.space.names})
    tried = study.rehearsal()
    tried.extend(wider, "what if")
    assert tried.space == wider
    assert study.space != wider
    tried.ask(2)
