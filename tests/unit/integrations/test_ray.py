"""CoveySearch keeps the contract of Ray's Searcher, alone and under a real Ray."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import covey
from covey import Pool, Real, Space, Study
from covey.baselines import Sobol
from covey.errors import ExhaustedError, JournalError, SpaceError, StrategyError

pytest.importorskip("ray.tune", reason="pip install 'covey[ray]'")

import ray
from ray import tune
from ray.tune.search import ConcurrencyLimiter, Searcher
from ray.tune.search.repeater import Repeater
from tests.unit.integrations.ray_searches import PARAMS, SPACE, loss_of, plain_run

from covey.integrations.ray import CoveySearch
from covey.integrations.snapshots import snapshot
from covey.integrations.spaces.ray import nested

EXAMPLE = Path(__file__).parents[3] / "examples" / "with_ray.py"


def ready(**options: object) -> CoveySearch:
    """A search that knows what a Tuner would have told it."""
    search = CoveySearch(seed=0, **options)
    assert search.set_search_properties("loss", "min", PARAMS, num_samples=10)
    return search


def run(search: Searcher, trials: int, names: Iterator[int] | None = None) -> list[dict]:
    """What a Tuner does with one trial at a time."""
    configs = []
    for _, number in zip(range(trials), names or count(), strict=False):
        configs.append(search.suggest(f"run {number}"))
        search.on_trial_complete(f"run {number}", {"loss": loss_of(configs[-1])})
    return configs


def statuses(search: CoveySearch) -> list[str]:
    return [trial.status for trial in search.study.history.trials]


def test_it_suggests_what_a_study_asks_for():
    assert run(ready(), trials=9) == plain_run(trials=9)


@pytest.mark.parametrize("results", [0, 8])
def test_trials_that_run_together_are_one_ask(results):
    search = ready()
    run(search, trials=results)
    study = pickle.loads(pickle.dumps(search)).study
    batch = [search.suggest(name) for name in "abcd"]
    assert len({str(config) for config in batch}) == 4
    assert set(batch[0]) == {"x", "model"}  # constants are Ray's business
    assert statuses(search)[results:] == ["pending"] * 4
    assert batch == [nested(study.ask(1)[0].point) for _ in range(4)]


def test_a_trial_that_is_suggested_again_gets_the_same():
    search = ready()
    assert search.suggest("a") == search.suggest("a")


def test_how_a_trial_ends(caplog):
    search = ready()
    for name in "abcdefg":
        search.suggest(name)
    search.on_trial_complete("a", {"loss": 1.0, "other": 2.0})
    search.on_trial_complete("b", error=True)
    search.on_trial_complete("c", {"other": 2.0})
    search.on_trial_complete("d", {"loss": math.nan})
    search.on_trial_complete("e")  # stopped before it ran
    search.on_trial_result("f", {"loss": 4.0})
    search.on_trial_result("f", {"loss": 3.0})
    search.on_trial_complete("f")  # stopped while paused
    search.on_trial_result("g", {"other": 3.0})
    search.on_trial_complete("g")
    assert statuses(search) == [
        *("told", "failed", "failed", "failed", "cancelled", "told", "cancelled"),
    ]
    assert [t.value for t in search.study.history.told] == [1.0, 3.0]
    assert "no 'loss'" in caplog.text


def test_a_trial_of_somebody_else_is_left_alone(caplog):
    search = ready()
    search.on_trial_result("z", {"loss": 1.0})
    search.on_trial_complete("z", {"loss": 1.0})
    assert len(search.study.history) == 0
    assert "trial z was not suggested" in caplog.text


def test_it_finishes_when_a_finite_space_is_used_up():
    search = CoveySearch({"n": tune.randint(0, 5)}, "loss", "max", seed=0)
    seen = []
    while (config := search.suggest(f"{len(seen)}")) != Searcher.FINISHED:
        seen.append(config["n"])
        search.on_trial_complete(f"{len(seen) - 1}", {"loss": 0.0})
    assert sorted(seen) == [0, 1, 2, 3, 4]


def test_constraints_too_tight_are_an_error_and_no_end():
    search = CoveySearch(Space({"x": Real(0, 1)}, where=[lambda p: p["x"] > 2]), "loss", "max")
    with pytest.raises(ExhaustedError, match="Check the constraints"):
        search.suggest("a")


def test_points_from_elsewhere_are_learned():
    search = ready()
    search.add_evaluated_point({"x": 0.5, "model": {"kind": "a"}, "epochs": 10}, 0.25)
    search.add_evaluated_point({"x": 0.6, "model/kind": "b"}, 0.5, pruned=True)
    search.add_evaluated_point({"x": 0.7, "model": {"kind": "b"}}, 0.0, error=True)
    search.add_evaluated_point({"x": 0.8, "model": {"kind": "b"}}, math.nan)
    assert statuses(search) == ["told", "told", "failed", "failed"]
    assert search.study.best.point == {"x": 0.5, "model/kind": "a"}
    assert search.suggest("a")["x"] not in (0.7, 0.8)
    with pytest.raises(SpaceError, match="no 'model/kind'"):
        search.add_evaluated_point({"x": 0.5}, 0.25)
    with pytest.raises(SpaceError, match=r"7\.0 is outside"):
        search.add_evaluated_point({"x": 7, "model": {"kind": "a"}}, 0.25)


def test_points_of_ones_own_go_first():
    search = CoveySearch(SPACE, "loss", "min")
    search.study.enqueue([{"x": 0.5, "model/kind": "b"}])
    assert search.suggest("a") == {"x": 0.5, "model": {"kind": "b"}}


def test_a_pool_is_a_space_too():
    rows = [{"name": f"dye {i}", "ph": i} for i in range(6)]
    search = CoveySearch(Pool(rows, labels=["name"]), "loss", "max", seed=0)
    configs = [search.suggest(f"{i}") for i in range(6)]
    assert sorted(configs, key=lambda row: row["ph"]) == rows


def test_the_tuner_and_the_search_must_not_contradict_each_other():
    own = CoveySearch(SPACE)
    assert own.set_search_properties("loss", "min", {"epochs": 10})
    assert own.study.space == SPACE
    assert (own.metric, own.mode, own.study.goal) == ("loss", "min", "min")
    assert own.set_search_properties("loss", "min", PARAMS)  # the same space in other words
    assert not own.set_search_properties("loss", "min", {"x": tune.uniform(0, 2)})
    assert not own.set_search_properties("loss", "max", {"epochs": 10})
    assert own.mode == "min"


def test_another_run_frees_what_the_last_one_left_running():
    search = ready()
    search.suggest("a"), search.suggest("b")
    search.on_trial_complete("a", {"loss": 1.0})
    assert search.set_search_properties("loss", "min", PARAMS)
    assert statuses(search) == ["told", "cancelled"]
    assert isinstance(search.suggest("c"), dict)
    search.on_trial_complete("b")  # as Ray may say once more
    assert statuses(search) == ["told", "cancelled", "pending"]


def test_a_result_is_taken_once_and_late_is_better_than_never():
    search = ready()
    for name in "abc":
        search.suggest(name)
    search.on_trial_complete("a", {"loss": 1.0})
    search.on_trial_complete("a", {"loss": 2.0})
    search.on_trial_complete("a", error=True)
    search.on_trial_complete("b", error=True)
    search.on_trial_complete("b", {"loss": 3.0})  # Ray went on with a trial that had failed
    search.on_trial_complete("c")
    search.on_trial_complete("c", {"loss": math.nan})
    assert [trial.value for trial in search.study.history.trials] == [1.0, 3.0, None]
    assert statuses(search) == ["told", "told", "cancelled"]


@pytest.mark.parametrize("copied", [lambda search: search, copy.deepcopy])
def test_a_retried_trial_goes_to_another_run(copied):
    search = ready()
    first = search.suggest("a")
    search.on_trial_complete("a", error=True)
    search = copied(search)
    search.study.retry(0)
    search = copied(search)
    assert search.suggest("b") == first
    search.on_trial_complete("a")  # Ray ends the first run once more
    assert statuses(search) == ["pending"]
    search.on_trial_complete("b", {"loss": 2.0})
    assert statuses(search) == ["told"]


def test_a_trainable_that_returns_a_number_needs_no_metric():
    search = CoveySearch(SPACE, mode="max")
    search.suggest("a")
    search.on_trial_complete("a", {"_metric": 3.0})
    assert search.study.best.value == 3.0
    other = CoveySearch()
    other.set_search_properties(None, "max", PARAMS)
    assert other.metric == "_metric"


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"mode": "maximize"}, StrategyError, "got None, 'maximize'"),
        ({"metric": ["a", "b"], "mode": ["min", "max"]}, StrategyError, "takes one metric"),
        ({"space": {"x": 3}}, SpaceError, "nothing to search"),
        ({"space": {"x": tune.grid_search([1, 2])}}, SpaceError, "grid_search"),
        ({"space": 3}, SpaceError, "param_space is a dict"),
    ],
)
def test_wrong_arguments_are_refused_at_once(arguments, error, said):
    with pytest.raises(error, match=said):
        CoveySearch(**arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({}, SpaceError, "has no space; give param_space= to the Tuner"),
        ({"space": SPACE}, StrategyError, "has no mode"),
        ({"space": SPACE, "mode": "min", "strategy": "best"}, StrategyError, "unknown strategy"),
        ({"space": SPACE, "mode": "min", "seed": -1}, StrategyError, "seed must be"),
    ],
)
def test_what_is_missing_is_said_when_it_is_needed(arguments, error, said):
    with pytest.raises(error, match=said):
        CoveySearch(**arguments).suggest("a")


def test_two_objectives_of_the_tuner_are_refused():
    with pytest.raises(StrategyError, match="takes one metric"):
        CoveySearch().set_search_properties(["a", "b"], ["min", "min"], PARAMS)


@pytest.mark.parametrize(
    ("arguments", "named"), [({"batch": 4}, "batch="), ({"wait": False}, "wait=")]
)
def test_what_has_no_effect_any_more_says_so(arguments, named):
    with pytest.warns(FutureWarning, match=named):
        search = CoveySearch(SPACE, "loss", "min", **arguments)
    assert isinstance(search.suggest("a"), dict)


def test_no_trial_waits_but_for_the_limit():
    limited = ConcurrencyLimiter(ready(), max_concurrent=3)
    assert [type(limited.suggest(name)) for name in "abcd"] == [dict, dict, dict, type(None)]
    limited.on_trial_complete("b", {"loss": 1.0})
    assert isinstance(limited.suggest("d"), dict)


def test_repeats_are_told_as_their_mean():
    repeated = Repeater(ready(), repeat=2)
    configs = [repeated.suggest(name) for name in "abcd"]
    assert configs[0]["x"] == configs[1]["x"] != configs[2]["x"]
    for name, value in zip("abcd", (1.0, 2.0, 3.0, 4.0), strict=True):
        repeated.on_trial_complete(name, {"loss": value})
    assert [t.value for t in repeated.searcher.study.history.told] == [1.5, 3.5]


@pytest.mark.parametrize(
    "copied",
    [
        copy.deepcopy,
        lambda search: pickle.loads(pickle.dumps(search)),
        lambda search: pickle.loads(ray.cloudpickle.dumps(search)),
    ],
)
def test_a_copy_goes_on_alike(copied):
    search = ready()
    run(search, trials=4)
    search.suggest("a")
    again = copied(search)
    assert again.suggest("a") == search.suggest("a")
    assert again.suggest("b") == search.suggest("b")
    assert copied(CoveySearch()).set_search_properties("loss", "min", PARAMS)


def test_a_restored_search_goes_on_alike(tmp_path):
    path = str(tmp_path / "search.jsonl")
    search = ready(strategy="ucb-dpp-sample")
    run(search, trials=6)
    search.suggest("a"), search.suggest("b")
    search.on_trial_complete("a", {"loss": 0.125})
    search.on_trial_result("b", {"loss": 0.5})
    search.save(path)
    again = CoveySearch()
    again.restore(path)
    assert (again.metric, again.mode) == ("loss", "min")
    for one in (search, again):
        assert one.suggest("c") is not None
        one.on_trial_complete("b")
        one.on_trial_complete("c", error=True)
    assert again.study.history.events == search.study.history.events
    assert again.suggest("d") == search.suggest("d")
    assert again.study.history.events[-1].strategy == "ucb-dpp-sample"
    assert covey.Study.load(path).history.told[-1].value == 0.125


def test_a_restored_search_saves_the_strategy_it_has(tmp_path):
    path = str(tmp_path / "search.jsonl")
    ready(strategy="sobol").save(path)
    again = CoveySearch()
    again.restore(path)
    again.save(path)
    assert "sobol" in repr(covey.Study.load(path))


def test_a_directory_of_ray_is_restored_from(tmp_path):
    search = ready()
    run(search, trials=4)
    search.save_to_dir(str(tmp_path), session_str="one")
    assert [path.name for path in tmp_path.iterdir()] == ["searcher-state-one.jsonl"]
    again = ready()
    again.restore_from_dir(str(tmp_path))
    assert again.suggest("z") == search.suggest("z")


def test_another_tuner_begins_with_what_was_learned(tmp_path):
    path = str(tmp_path / "search.jsonl")
    search = ready()
    run(search, trials=4)
    search.suggest("a")  # and then the machine was switched off
    search.save(path)
    again = CoveySearch()
    again.restore(path)
    assert again.set_search_properties("loss", "min", PARAMS)
    assert statuses(again) == ["told"] * 4 + ["cancelled"]
    assert isinstance(again.suggest("b"), dict)


def test_the_rest_of_a_batch_that_was_saved_goes_out_first(tmp_path):
    """As searches of Covey 0.2 saved them, in the middle of a batch."""
    study = Study(SPACE, "min", seed=0)
    batch = study.ask(3)
    notes = {"runs": {"a": 0}, "heard": {}, "over": [], "metric": "loss"}
    (tmp_path / "search.jsonl").write_bytes(snapshot(study, "auto", notes))
    search = CoveySearch()
    search.restore(str(tmp_path / "search.jsonl"))
    assert [search.suggest(name) for name in "abc"] == [nested(t.point) for t in batch]
    assert isinstance(search.suggest("d"), dict)


def test_the_journal_of_a_study_is_a_beginning_too(tmp_path):
    study = Study(SPACE, "min", seed=0, journal=tmp_path / "run.jsonl")
    study.tell(study.ask(3), [1.0, 2.0, 3.0])
    search = CoveySearch()
    search.restore(str(tmp_path / "run.jsonl"))
    assert search.suggest("a") == nested(study.ask(2)[0].point)


def test_what_does_not_belong_together_is_not_restored(tmp_path):
    path = tmp_path / "search.jsonl"
    ready().save(str(path))
    with pytest.raises(JournalError, match="belongs to a search of another space"):
        CoveySearch({"x": tune.uniform(0, 2)}).restore(str(path))
    with pytest.raises(JournalError, match="belongs to a search with mode 'min'"):
        CoveySearch(mode="max").restore(str(path))
    with pytest.raises(JournalError, match="no saved search at"):
        CoveySearch().restore(str(tmp_path / "nothing"))
    path.write_bytes(path.read_bytes().replace(b'"min"', b'"max"'))
    with pytest.raises(JournalError, match="damaged"):
        CoveySearch().restore(str(path))


def test_what_a_file_cannot_hold_must_be_given_again(tmp_path):
    path, space = str(tmp_path / "search.jsonl"), Space({"x": Real(0, 1)}, where=[lambda p: True])
    CoveySearch(space, "loss", "min", strategy=Sobol(), seed=0).save(path)
    with pytest.raises(SpaceError, match=r"Tuner\.restore\(\.\.\., param_space=\.\.\.\)"):
        CoveySearch(strategy=Sobol()).restore(path)
    with pytest.raises(StrategyError, match="strategy object"):
        CoveySearch(space).restore(path)
    CoveySearch(space, strategy=Sobol()).restore(path)


def test_without_ray_the_error_says_what_to_install():
    code = "import sys; sys.modules['ray'] = None\nfrom covey.integrations.ray import CoveySearch"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "this needs ray: pip install 'covey[ray]'" in done.stderr


def test_the_example_runs():
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], check=True, capture_output=True, text=True, timeout=120
    )
    assert "best of 16" in done.stdout
