"""CoveySampler in Optuna's own loop, with one worker."""

from __future__ import annotations

import math
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

optuna = pytest.importorskip("optuna", reason="pip install 'covey[optuna]'")

from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import TrialState
from tests.unit.integrations.optuna_studies import SQUARE, bowl, points

from covey.baselines import Random
from covey.catalog import strategy_of
from covey.errors import SpaceError, StrategyError
from covey.gp import GP
from covey.integrations.optuna import CoveySampler, all_trials, history_of
from covey.integrations.spaces.optuna import space_from_optuna
from covey.learn import Recipe
from covey.outcomes import Outcomes
from covey.propose import Request, propose
from covey.space.conditions import Condition

ROOT = Path(__file__).parents[3]
NAMED = hasattr(optuna.trial.FrozenTrial, "constraints")  # since Optuna 5

# One worker.


@pytest.mark.parametrize(("direction", "sign"), [("minimize", 1.0), ("maximize", -1.0)])
def test_it_goes_where_the_direction_says(direction, sign):
    study = optuna.create_study(direction=direction, sampler=CoveySampler(seed=0))
    study.optimize(lambda trial: sign * bowl(trial), n_trials=25)
    assert abs(study.best_value) < 1e-3
    best, (first, *_) = study.best_value, study.trials
    assert abs(first.value) > 10 * abs(best)  # a lucky start would prove nothing


def test_with_a_search_space_the_first_trials_fill_it():
    study = optuna.create_study(sampler=CoveySampler(seed=0, search_space=SQUARE))
    asked = [study.ask(SQUARE) for _ in range(8)]
    quarters = {(trial.params["x"] > 0.5, trial.params["y"] > 0.5) for trial in asked}
    assert len(quarters) == 4  # eight points of a Sobol sequence


@pytest.mark.parametrize("strategy", ["auto", "ucb-dpp-sample", "random", Random()])
def test_the_same_seed_gives_the_same_run(strategy):
    def run(seed):
        study = optuna.create_study(sampler=CoveySampler(strategy=strategy, seed=seed))
        study.optimize(bowl, n_trials=8)
        return points(study.trials)

    assert run(5) == run(5)
    assert run(5) != run(6)


def test_a_trial_opened_again_keeps_its_point():
    study = optuna.create_study(sampler=CoveySampler(seed=0, search_space=SQUARE))
    study.optimize(bowl, n_trials=6)
    trial = study.ask()
    x = trial.suggest_float("x", 0, 1)
    again = optuna.Trial(study, trial._trial_id)
    assert again.suggest_float("x", 0, 1) == x
    assert again.suggest_float("y", 0, 1) == trial.suggest_float("y", 0, 1)


@pytest.mark.parametrize("results", [0, 8])
def test_trials_that_begin_together_share_one_ask(results):
    """Nobody knows the others' points: each takes the one that its number gives it."""
    study = optuna.create_study(sampler=CoveySampler(seed=0, search_space=SQUARE))
    study.optimize(bowl, n_trials=results)
    space = space_from_optuna(SQUARE)
    outcomes = Outcomes.of("min")
    history = history_of(space, all_trials(study), outcomes)
    name, strategy = strategy_of("auto")
    batch = propose(history, Recipe(space, outcomes, GP(), 0), Request(4, strategy, name)).points
    trials = [study.ask() for _ in range(4)]  # none has suggested anything
    chosen = {trial.number: trial.relative_params for trial in reversed(trials)}
    assert [chosen[trial.number] for trial in trials] == batch


def test_a_trial_that_has_suggested_half_of_its_point_is_no_rival():
    study = optuna.create_study(sampler=CoveySampler(seed=0, search_space=SQUARE))
    study.optimize(bowl, n_trials=6)
    first = study.ask()
    alone = first.relative_params
    first.suggest_float("x", 0, 1)
    assert study.ask().relative_params != alone


def test_a_dead_trial_is_forgotten_once_it_is_told_failed():
    study = optuna.create_study(sampler=CoveySampler(seed=0, search_space=SQUARE))
    study.optimize(bowl, n_trials=6)
    dead = study.ask()
    lost = dead.relative_params
    assert study.ask().relative_params != lost
    study.tell(7, state=TrialState.FAIL)
    study.tell(dead, state=TrialState.FAIL)
    assert study.ask().relative_params == lost  # which was never evaluated


def test_a_finite_space_is_tried_once_through_before_anything_is_repeated():
    study = optuna.create_study(sampler=CoveySampler(seed=0))
    choices = [None, True, "a", 2.5, 7]

    def objective(trial):
        n, c = trial.suggest_int("n", 1, 3), trial.suggest_categorical("c", choices)
        return n * choices.index(c)

    study.optimize(objective, n_trials=17)
    assert len(set(map(str, points(study.trials[:15])))) == 15
    assert len(set(map(str, points(study.trials)))) == 15


def test_running_trials_are_pending_points():
    space = {"n": IntDistribution(0, 5)}
    study = optuna.create_study(sampler=CoveySampler(seed=0, search_space=space))
    study.add_trial(optuna.create_trial(params={"n": 0}, distributions=space, value=0.0))
    asked = [study.ask(space).params["n"] for _ in range(5)]  # none is told
    assert sorted(asked) == [1, 2, 3, 4, 5]


def test_what_failed_is_not_tried_again():
    space = {"n": IntDistribution(0, 4)}
    study = optuna.create_study(sampler=CoveySampler(seed=0, search_space=space))
    states = [TrialState.FAIL, TrialState.PRUNED]
    for state in states:
        study.tell(study.ask(space), state=state)
    violated = study.ask(space)
    if NAMED:
        violated.set_constraint("weight", 0.5)
    study.tell(violated, -100.0)
    study.tell(study.ask(space), math.inf)
    study.tell(study.ask(space), 1.0)
    assert len(set(points(study.trials))) == 5


@pytest.mark.skipif(not NAMED, reason="constraints are set since Optuna 5")
def test_a_violated_constraint_does_not_lure():
    """The best values are on the right, and forbidden there; the model never sees them."""
    study = optuna.create_study(sampler=CoveySampler(seed=0))

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.set_constraint("left", x - 0.5)
        return -100.0 * x if x > 0.5 else (x - 0.2) ** 2

    study.optimize(objective, n_trials=25)
    assert abs(study.best_params["x"] - 0.2) < 0.05
    assert sum(trial.params["x"] < 0.5 for trial in study.trials[9:]) > 8


@pytest.mark.skipif(not NAMED, reason="constraints are set since Optuna 5")
def test_a_constraint_is_modelled_so_that_its_edge_is_found():
    """The best lies where the constraint is just kept; trials beyond it show where that is."""
    study = optuna.create_study(sampler=CoveySampler(seed=0))

    def objective(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        trial.set_constraint("enough", 0.42 - x)
        return x + (y - 0.5) ** 2

    study.optimize(objective, n_trials=21)
    kept = [trial.value for trial in study.trials if trial.constraints["enough"] <= 0.0]
    assert min(kept) < 0.425


def branching(trial):
    """Its best is 0, at deep, two layers and x = 0.3."""
    x = (trial.suggest_float("x", 0, 1) - 0.3) ** 2
    if trial.suggest_categorical("deep", [True, False]):
        return x + trial.suggest_int("layers", 2, 8, log=True) - 2
    return x + trial.suggest_float("width", 0, 1) + 0.5


def test_conditional_parameters_come_from_one_space():
    study = optuna.create_study(sampler=CoveySampler(seed=0))
    study.optimize(branching, n_trials=24)
    names = study.sampler.infer_relative_search_space(study, study.trials[-1])
    assert list(names) == ["deep", "layers", "width", "x"]
    space = study.sampler._space(study.trials, names)
    assert space.parameters["layers"].when == Condition.of({"deep": True})
    assert space.parameters["width"].when == Condition.of({"deep": False})
    trial = study.ask()  # the whole point is chosen, nothing is drawn beside it
    assert trial.relative_params.keys() == space.check(trial.relative_params).keys()
    assert ("layers" in trial.relative_params) == trial.relative_params["deep"]
    assert study.best_value < 0.01


def test_an_enqueued_trial_of_one_branch_is_run_as_it_is():
    study = optuna.create_study(sampler=CoveySampler(seed=0))
    study.optimize(branching, n_trials=13)
    study.enqueue_trial({"x": 0.5, "deep": True, "layers": 3})
    study.optimize(branching, n_trials=1)
    assert study.trials[-1].params == {"x": 0.5, "deep": True, "layers": 3}


def test_what_nothing_explains_is_drawn_by_itself():
    study = optuna.create_study(sampler=CoveySampler(seed=0))

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        return x + (trial.suggest_float("odd", 0, 1) if trial.number % 3 == 0 else 0)

    study.optimize(objective, n_trials=12)
    assert list(study.sampler.infer_relative_search_space(study, study.trials[-1])) == ["x"]


def test_a_search_space_that_shrinks_is_searched_on():
    study = optuna.create_study(sampler=CoveySampler(seed=0))
    study.optimize(bowl, n_trials=4)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=9)  # y is gone
    assert [trial.params.keys() for trial in study.trials[5:]] == [{"x"}] * 8
    assert study.best_params["x"] < 0.01


def test_single_values_and_steps_too_fine_are_not_searched():
    study = optuna.create_study(sampler=CoveySampler(seed=0))

    def objective(trial):
        trial.suggest_float("one", 2.0, 2.0)
        trial.suggest_categorical("only", ["a"])
        trial.suggest_categorical("same", [True, 1])
        return trial.suggest_float("fine", 0, 1, step=1e-16) + trial.suggest_float("x", 0, 1)

    study.optimize(objective, n_trials=10)
    assert list(study.sampler.infer_relative_search_space(study, study.trials[0])) == ["x"]


def test_what_is_enqueued_is_run_and_the_rest_of_it_chosen():
    study = optuna.create_study(sampler=CoveySampler(seed=0, search_space=SQUARE))
    study.enqueue_trial({"x": 0.125})
    study.enqueue_trial({"x": 0.5, "y": 0.5})
    study.optimize(bowl, n_trials=6)
    assert study.trials[0].params["x"] == 0.125
    assert study.trials[1].params == {"x": 0.5, "y": 0.5}
    assert len(set(points(study.trials))) == 6


def test_awkward_choices_survive_a_database(tmp_path):
    choices = [None, True, "a", 2.5, 7, math.nan, -0.0, "né"]
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    study = optuna.create_study(storage=storage, sampler=CoveySampler(seed=0))
    study.optimize(lambda trial: choices.index(trial.suggest_categorical("c", choices)), n_trials=1)

    def objective(trial):
        return float(str(trial.suggest_categorical("c", choices)) == "a")

    study.optimize(objective, n_trials=8)
    assert {str(trial.params["c"]) for trial in study.trials} == set(map(str, choices))
    storage.engine.dispose()


def test_it_can_be_pickled_and_takes_several_studies():
    sampler = pickle.loads(pickle.dumps(CoveySampler(strategy="est-dpp-max", seed=1)))
    for _ in range(2):
        study = optuna.create_study(sampler=sampler)
        study.optimize(bowl, n_trials=7)
        assert len(set(points(study.trials))) == 7


# Wrong inputs.


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"strategy": "randon"}, "Did you mean 'random'"),
        ({"strategy": Random}, "a strategy is a name, or an object"),
        ({"seed": -1}, "seed must be a whole number"),
    ],
)
def test_wrong_arguments_say_what_is_right(arguments, reason):
    with pytest.raises(StrategyError, match=reason):
        CoveySampler(**arguments)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"batch": 8}, "batch="), ({"batch": 4, "patience": 9.0}, "batch= and patience=")],
)
def test_what_has_no_effect_any_more_says_so(arguments, named):
    with pytest.warns(FutureWarning, match=named):
        sampler = CoveySampler(**arguments, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(bowl, n_trials=3)


@pytest.mark.parametrize(
    "space", [{}, {"x": FloatDistribution(0, 1, step=1e-16)}, {"x": (0, 1)}, 7]
)
def test_a_wrong_search_space_is_refused_at_once(space):
    with pytest.raises(SpaceError):
        CoveySampler(search_space=space)


def test_several_directions_are_traded_off():
    sampler = CoveySampler(seed=0)
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)

    def objective(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        return x + (y - 0.3) ** 2, x - (y - 0.3) ** 2

    study.optimize(objective, n_trials=26)
    late = [trial.params["y"] for trial in study.trials[-8:]]
    assert np.abs(np.array(late) - 0.3).mean() < 0.1  # the front is at y = 0.3, for every x
    spread = [trial.params["x"] for trial in study.best_trials]
    assert max(spread) - min(spread) > 0.5


def test_a_value_of_several_that_is_nan_is_a_failure():
    study = optuna.create_study(directions=["minimize"] * 2, sampler=CoveySampler(seed=0))
    trial = study.ask({"x": FloatDistribution(0, 1)})
    study.tell(trial, state=optuna.trial.TrialState.FAIL)
    study.tell(study.ask({"x": FloatDistribution(0, 1)}), [1.0, 2.0])
    study.optimize(lambda t: (t.suggest_float("x", 0, 1), 1.0), n_trials=2)
    assert len(study.trials) == 4


@pytest.mark.filterwarnings("ignore:The value nan is not acceptable:UserWarning")
def test_nan_is_a_failure_and_the_study_goes_on():
    study = optuna.create_study(sampler=CoveySampler(seed=0))
    study.optimize(lambda t: bowl(t) if t.number % 2 else math.nan, n_trials=12)
    assert [t.state.name for t in study.trials] == ["FAIL", "COMPLETE"] * 6


def test_without_optuna_the_error_says_what_to_install():
    code = "import sys; sys.modules['optuna'] = None; import covey.integrations.optuna"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingExtraError: this needs optuna: pip install 'covey[optuna]'" in done.stderr


# What comes along.


def test_the_example_runs():
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "with_optuna.py")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("28 trials at 28 points\nerror 0.1")


HUB = ROOT / "contrib" / "optunahub" / "package"


@pytest.fixture
def optunahub():
    return pytest.importorskip("optunahub", reason="pip install optunahub")


def test_the_package_for_optunahub_loads(optunahub):
    package = optunahub.load_local_module("samplers/covey", registry_root=str(HUB))
    assert package.CoveySampler is CoveySampler


def test_the_example_for_optunahub_runs(optunahub, monkeypatch, capsys):
    """As it is in the registry, but for where the package comes from."""

    def load(package):
        return optunahub.load_local_module(package, registry_root=str(HUB))

    monkeypatch.setattr(optunahub, "load_module", load)
    code = (HUB / "samplers" / "covey" / "example.py").read_text()
    exec(compile(code, "example.py", "exec"), {"__name__": "__main__"})
    assert float(capsys.readouterr().out.split()[-1]) < 0.45


def test_the_package_for_optunahub_has_what_the_registry_wants():
    folder = HUB / "samplers" / "covey"
    assert {path.name for path in folder.iterdir() if path.is_file()} == {
        "LICENSE",
        "README.md",
        "__init__.py",
        "example.py",
        "requirements.txt",
    }
    text = (folder / "README.md").read_text()
    front = dict(re.findall(r"^(\w+): (.+)$", text.split("---")[1], re.MULTILINE))
    assert list(front) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert front["tags"].startswith("[sampler,")
    assert front["license"] == "MIT License"
    assert re.findall(r"^## (.*)$", text, re.MULTILINE)[:4] == [
        "Abstract",
        "APIs",
        "Installation",
        "Example",
    ]
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
