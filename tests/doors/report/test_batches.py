from datetime import UTC, datetime, timedelta

import pytest

import covey
from covey.history import Asked, Dispatched, History, Point
from covey.report import card
from covey.report.batches import fates, python_commands, recent, shown_batches
from covey.report.page import page


def test_lots_follow_the_log(rising):
    batches = rising.history.batches
    assert [batch.name for batch in batches] == [
        "batch 1",
        "batch 2",
        "added",
        "enqueued",
        "batch 3",
        "batch 4",
    ]
    assert [i for batch in batches for i in batch.ids] == list(range(len(rising.history)))
    assert [batch.modelled for batch in batches] == [False, False, False, False, True, True]
    for batch in batches:
        assert (
            rising.history.events[batch.place].points[0] == rising.history.trial(batch.first).point
        )


def test_the_open_lots_are_looked_at(rising, line):
    batches = rising.history.batches
    assert shown_batches(batches, rising.history.trials) == batches[-1:]
    assert shown_batches((), ()) == ()
    first, second = line.ask(2), line.ask(2)
    line.tell(second, [1.0, 2.0])
    line.tell(first[0], 1.0)
    batches = line.history.batches
    assert shown_batches(batches, line.history.trials) == batches[:1]
    line.tell(first[1], 1.0)
    line.add([{"x": 0.5}], [1.0])
    batches = line.history.batches
    assert shown_batches(batches, line.history.trials) == batches[1:2]


def test_only_results_from_elsewhere_are_looked_at_if_nothing_was_asked(line):
    line.add([{"x": 0.5}], [1.0])
    batches = line.history.batches
    assert shown_batches(batches, line.history.trials) == batches


def asked(size):
    return Asked(tuple(Point(x=i / size) for i in range(size)), "auto", ({"any": 1.0},))


def test_twelve_batches_or_forty_eight_points_are_recent():
    big = History([asked(16)] * 20).batches
    assert recent(big) == big[-12:]
    small = History([asked(1)] * 100).batches
    assert recent(small) == small[-48:]
    assert recent(covey.History().batches) == ()


# Commands that go on from the report


def typed(study, journal="run.jsonl"):
    return python_commands(study.history, study.history.batches, journal)


def test_what_to_type_next(line):
    assert typed(line).next[-1] == "batch = study.ask(8)"
    assert typed(line).again == ()
    batch = line.ask(2)
    assert "study.tell([0, 1], values)" in typed(line).next[-2]
    line.tell(batch, [1.0, 2.0])
    assert typed(line).next[-1] == "batch = study.ask(2)"
    line.ask(30, strategy="random")
    assert "study.history.pending" in typed(line).next[-2]


@pytest.mark.parametrize("strategy", ["auto", "random", "bucb"])
def test_the_last_batch_comes_again(tmp_path, strategy):
    """The lines on the page are run, and give the very points of the log."""
    path = tmp_path / "it's a run.jsonl"
    study = covey.Study(
        covey.Space({"x": covey.Real(0.0, 1.0), "n": covey.Integer(1, 9)}), seed=5, journal=path
    )
    for _ in range(3):
        batch = study.ask(3, strategy=strategy)
        study.tell(batch, [t.point["x"] for t in batch])
    lines = list(typed(study, path).again)
    del study
    lines[-1] = f"points = {lines[-1]}"
    names = {}
    exec("\n".join(lines), names)
    assert names["points"] == [dict(t.point) for t in batch]


def test_a_strategy_of_your_own_is_named(line):
    from covey.policies import UCB
    from covey.strategies import DPP

    line.tell(line.ask(3), [1.0, 2.0, 3.0])
    line.ask(2, strategy=DPP(UCB()))
    assert any("'DPP', strategy  # your own object" in text for text in typed(line).again)


def test_without_a_journal_no_file_is_named(line):
    """Whoever keeps a study in memory has it in hand; a file that does not exist helps nobody."""
    batch = line.ask(2)
    line.tell(batch, [1.0, 2.0])
    said = card(line).commands
    assert not any("load" in text or "jsonl" in text for text in (*said.next, *said.again))
    names = {"study": line}
    exec("\n".join([*said.again[:-1], f"points = {said.again[-1]}"]), names)
    assert names["points"] == [dict(trial.point) for trial in batch]


def test_with_a_journal_its_file_is_named(tmp_path):
    path = tmp_path / "mine.jsonl"
    study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), seed=0, journal=path)
    study.ask(2)
    said = card(study).commands
    assert f"study = covey.Study.load({str(path)!r})" in said.next
    assert f"study = covey.Study.load({str(path)!r})" in said.again


# What became of trials


@pytest.mark.parametrize("named", [False, True])
def test_the_page_says_what_failed_when_what_was_amended_and_what_was_noted(named):
    start = datetime(2026, 1, 1, 9, tzinfo=UTC)
    space = covey.Space({"x": covey.Real(0.0, 1.0)})
    study = covey.Study(space, {"a": "max", "b": "max"} if named else "max", seed=0)
    batch = study.ask(3)
    study.note(Dispatched(0, 1, "covey-0a1b2c3d-0-a1", 0))
    value = {"a": 1.0, "b": 2.0} if named else 1.0
    study.tell([0, 1], [value, value])
    study.fail(2, "out of <memory>")
    study.amend(0, {"a": 2.0} if named else 2.0, "typo")
    study.amend(1, {"a": 2.0} if named else 2.0, "swapped")
    study.amend(0, {"a": 3.0} if named else 3.0, "typo again")
    study.note([0, 2], "cloudy")
    study.note(batch[1], "clear")
    events = study.history.events
    times = [start + timedelta(seconds=90 * place) for place in range(len(events))]
    made = fates(History(events, times))
    why = ["typo again", "swapped", "typo"]
    assert [one.reason for one in made["corrections"]] == why
    assert [(one.id, one.text) for one in made["remarks"]] == [
        *((1, "clear"), (2, "cloudy"), (0, "cloudy"))
    ]
    (failed,) = made["failures"]
    assert (failed.id, failed.ended, failed.seconds) == (2, "2026-01-01T09:04:30+00:00", None)
    shown = card(study)
    assert [one.reason for one in shown.corrections] == why
    assert shown.rows[0].seconds >= 0.0
    assert shown.rows[1].seconds is None  # no run started it
    text = page(shown)
    for words in (
        "What was corrected or left out, and why",
        "Notes about trials",
        "typo again",
        "cloudy",
    ):
        assert words in text
    assert "out of &lt;memory&gt;" in text
    assert '<th scope="col">took</th>' in text


def test_a_page_without_notes_has_no_room_for_them(rising):
    text = page(card(rising))
    assert "Notes about trials" not in text


def test_a_result_beyond_belief_is_struck_out_with_the_reason(line):
    line.tell(line.ask(12), [*(0.1 * i for i in range(1, 12)), 1e6])
    said = page(card(line))
    assert "<s>11</s>" in said
    assert "is beyond belief" in said
