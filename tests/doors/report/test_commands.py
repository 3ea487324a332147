import pytest

import covey
from covey.report import card
from covey.report.batches import python_commands


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


@pytest.mark.parametrize("strategy", ["auto", "random"])
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
