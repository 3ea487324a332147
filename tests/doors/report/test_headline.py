import covey
from covey.report.card import headline
from covey.report.predictions import past_forecasts


def of(study):
    batches = study.history.batches
    return headline(
        study.history, study.goal, batches, past_forecasts(study.history, study.recipe, batches)
    )


def test_nothing_yet(line):
    assert of(line) == (
        "No batch has been asked for yet. Nothing has been told, so there is no best yet."
    )
    line.enqueue([{"x": 0.5}])
    assert of(line).startswith("No batch has been asked for yet; 1 trial enqueued.")


def test_a_batch_as_it_comes_in(line):
    batch = line.ask(3)
    assert of(line).startswith("Batch 1: 0 of 3 in; 3 pending. Nothing has been told")
    line.tell(batch[0], 1.0)
    line.fail(batch[1])
    assert of(line) == (
        "Batch 1: 1 of 3 in; 1 pending, 1 failed. Best 1 (trial 0); it was chosen without a model."
    )


def test_everything_failed(line):
    line.fail(line.ask(2))
    assert of(line) == (
        "Batch 1: 0 of 2 in; 2 failed. Nothing has been told, so there is no best yet."
    )


def second(goal, values):
    study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), goal=goal, seed=0)
    study.tell(study.ask(3), [1.0, 2.0, 3.0])
    study.tell(study.ask(2), values)
    return of(study)


def test_up_and_down():
    up = second("max", [5.25, 0.0])
    assert up.startswith("Batch 2: 2 of 2 in. Best 5.25 (trial 3), up 2.25 from batch 1; the model")
    assert " ± " in up
    down = second("min", [-0.5, 9.0])
    assert "Best -0.5 (trial 3), down 1.5 from batch 1; the model expected" in down


def test_unchanged():
    assert "Best 3 (trial 2), unchanged since batch 1; it was chosen" in second("max", [0.0, 3.0])
    assert "Best 1 (trial 0), unchanged since batch 1" in second("min", [1.0, 3.0])


def test_results_from_elsewhere(line):
    line.add([{"x": 0.1}, {"x": 0.2}], [4.0, 5.0])
    assert of(line) == ("No batch has been asked for yet; 2 trials added. Best 5 (trial 1, added).")
    batch = line.ask(2)
    assert "2 pending. Best 5 (trial 1, added), from added." in of(line)
    line.tell(batch, [6.0, 7.0])
    assert "Best 7 (trial 3), up 2 from what was known before; the model" in of(line)
    line.tell(line.enqueue([{"x": 0.9}]), [8.0])
    assert of(line).endswith("Best 8 (trial 4, enqueued).")
