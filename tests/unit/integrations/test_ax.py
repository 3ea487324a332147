"""CoveyNode in Ax's own loops: four trials at once, none of them twice."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ax", reason="pip install 'covey[ax]'")

from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.api.protocols.metric import IMetric
from ax.api.protocols.runner import IRunner, TrialStatus
from ax.exceptions.core import SearchSpaceExhausted
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials
from ax.storage.json_store.load import load_experiment
from ax.storage.json_store.save import save_experiment

from covey.baselines import Random
from covey.errors import ExhaustedError, SpaceError, StrategyError
from covey.integrations.ax import CoveyNode, NothingLeftError

# Ax calls methods, its own and of pandas, that are deprecated.
pytestmark = [
    pytest.mark.filterwarnings("ignore:add_tracking_metric is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option is deprecated"),
]

ROOT = Path(__file__).parents[3]
X = RangeParameterConfig(name="x", bounds=(0.0, 1.0), parameter_type="float")
RATE = RangeParameterConfig(name="rate", bounds=(1e-4, 1.0), parameter_type="float", scaling="log")
LAYERS = RangeParameterConfig(name="layers", bounds=(1, 9), parameter_type="int")
KIND = ChoiceParameterConfig(
    name="kind", values=["a", "b", "c"], parameter_type="str", is_ordered=False
)
SIZE = ChoiceParameterConfig(name="size", values=[8, 16, 32], parameter_type="int", is_ordered=True)
FEW = [
    RangeParameterConfig(name="n", bounds=(1, 3), parameter_type="int"),
    ChoiceParameterConfig(name="b", values=[False, True], parameter_type="bool", is_ordered=True),
]


def make(parameters=(X, LAYERS, KIND), node=None, objective="-loss", nodes=(), **more):
    client = Client()
    client.configure_experiment(parameters=list(parameters), **more)
    client.configure_optimization(objective=objective)
    node = node or CoveyNode(seed=0)
    client.set_generation_strategy(GenerationStrategy(nodes=[*nodes, node]))
    return client


def keys(trials):
    return [tuple(sorted(parameters.items())) for parameters in trials.values()]


def loss(parameters):
    kind = {"a": 0.0, "b": 0.5, "c": 1.0}[parameters["kind"]]
    return (parameters["x"] - 0.3) ** 2 + 0.02 * (parameters["layers"] - 4) ** 2 + kind


def finish(client, trials, value=loss):
    for index, parameters in trials.items():
        client.complete_trial(index, raw_data={"loss": value(parameters)})


def test_four_trials_at_a_time_find_the_minimum_without_repeats():
    client, seen = make(), []
    for _ in range(6):
        trials = client.get_next_trials(max_trials=4)
        assert len(trials) == 4
        seen += keys(trials)
        finish(client, trials)
    assert len(set(seen)) == 24
    best, values, _, _ = client.get_best_parameterization(use_model_predictions=False)
    assert best["kind"] == "a"
    assert values["loss"][0] < 0.05


def test_every_kind_of_parameter_stays_in_its_place():
    client = make([X, RATE, LAYERS, KIND, SIZE], parameter_constraints=["x + 0.1*layers <= 0.8"])
    for _ in range(3):
        trials = client.get_next_trials(max_trials=4)
        for parameters in trials.values():
            assert client._experiment.search_space.check_membership(parameters)
            assert parameters["x"] + 0.1 * parameters["layers"] <= 0.8 + 1e-8
            assert type(parameters["layers"]) is int
            assert parameters["size"] in (8, 16, 32)
        finish(client, trials)


def test_four_asks_for_one_are_one_ask_for_four():
    alone, together = make(), make()
    for _ in range(2):  # without a model and with one
        one_by_one = [trial for _ in range(4) for trial in alone.get_next_trials(1).items()]
        trials = together.get_next_trials(4)
        assert dict(one_by_one) == trials
        finish(alone, trials)
        finish(together, trials)


def test_every_candidate_knows_all_results():
    first, second = make(), make()
    for client in (first, second):
        for _ in range(3):  # enough for a model
            finish(client, client.get_next_trials(4))
        client.get_next_trials(2)
    assert first.get_next_trials(1) == second.get_next_trials(1)
    second.complete_trial(13, raw_data={"loss": 0.0})  # one of those pending
    assert keys(first.get_next_trials(1)) != keys(second.get_next_trials(1))


def test_pending_trials_are_stepped_around():
    client = make()
    finish(client, client.get_next_trials(4))
    waves = [client.get_next_trials(4) for _ in range(3)]  # none of them comes back
    seen = [key for wave in waves for key in keys(wave)]
    assert len(set(seen)) == 12
    spread = sorted(p["x"] for wave in waves for p in wave.values())
    assert spread[-1] - spread[0] > 0.3


@pytest.mark.parametrize(("objective", "best"), [("wave", 0.25), ("-wave", 0.75)])
def test_the_objective_says_which_way_is_up(objective, best):
    client, tried = make([X], objective=objective), []
    for _ in range(4):
        for index, parameters in client.get_next_trials(4).items():
            tried.append(parameters["x"])
            wave = math.sin(2.0 * math.pi * parameters["x"])
            client.complete_trial(index, raw_data={"wave": wave})
    assert sum(abs(x - best) < 0.2 for x in tried[4:]) >= 7


def test_failed_and_abandoned_trials_are_not_proposed_again():
    client = make(FEW)
    trials = client.get_next_trials(4)
    failed, abandoned, *rest = trials
    client.mark_trial_failed(failed)
    client.mark_trial_abandoned(abandoned)
    finish(client, {i: trials[i] for i in rest}, lambda p: p["n"])
    more = client.get_next_trials(2)  # the last two of six
    assert len(set(keys(trials) + keys(more))) == 6


def test_a_space_that_is_used_up_is_said_in_both_vocabularies():
    client = make(FEW)
    trials = client.get_next_trials(6)
    assert len(set(keys(trials))) == 6
    with pytest.raises(NothingLeftError, match="asked for") as error:
        client.get_next_trials(1)
    assert isinstance(error.value, SearchSpaceExhausted)
    assert isinstance(error.value, ExhaustedError)
    assert error.value.left == 0


class Square(IMetric):
    def fetch(self, trial_index, trial_metadata):
        return 0, float(trial_metadata["n"] ** 2)


class Machine(IRunner):
    def run_trial(self, trial_index, parameterization):
        return dict(parameterization)

    def poll_trial(self, trial_index, trial_metadata):
        return TrialStatus.COMPLETED

    def stop_trial(self, trial_index, trial_metadata):
        return {}


def test_the_orchestrator_runs_until_nothing_is_left():
    client = make(FEW)
    client.configure_runner(Machine())
    client.configure_metrics([Square(name="loss")])
    client.run_trials(max_trials=10, parallelism=3, initial_seconds_between_polls=0)
    assert len(client._experiment.trials) == 6


def test_parameters_may_be_fixed_for_a_call():
    client = make()
    finish(client, client.get_next_trials(4))
    held = client.get_next_trials(3, fixed_parameters={"kind": "c"})
    assert {p["kind"] for p in held.values()} == {"c"}
    free = client.get_next_trials(4)
    assert len(set(keys(held) + keys(free))) == 7
    with pytest.raises(SpaceError, match="kind"):
        client.get_next_trials(1, fixed_parameters={"kind": "z"})


def test_it_takes_over_from_another_node():
    sobol = GenerationNode(
        name="first",
        generator_specs=[GeneratorSpec(Generators.SOBOL, generator_kwargs={"seed": 1})],
        transition_criteria=[MinTrials(threshold=5, transition_to="Covey")],
    )
    client = make(nodes=[sobol])
    seen = []
    for _ in range(3):
        trials = client.get_next_trials(4)
        seen += keys(trials)
        finish(client, trials)
    runs = [t.generator_runs[0]._generation_node_name for t in client._experiment.trials.values()]
    assert runs == ["first"] * 8 + ["Covey"] * 4  # it moves between calls
    assert len(set(seen)) == 12


def test_a_seed_decides_and_a_loaded_experiment_goes_on(tmp_path):
    def begun(seed):
        client = make(node=CoveyNode(seed=seed))
        for _ in range(2):
            finish(client, client.get_next_trials(4))
        return client

    client = begun(0)
    save_experiment(client._experiment, str(tmp_path / "experiment.json"))
    again = Client()
    again.set_experiment(load_experiment(str(tmp_path / "experiment.json")))
    again.set_generation_strategy(GenerationStrategy(nodes=[CoveyNode(seed=0)]))
    assert begun(0).get_next_trials(4) == again.get_next_trials(4) == client.get_next_trials(4)
    assert keys(begun(1).get_next_trials(4)) != keys(begun(0).get_next_trials(4))


def test_rounding_to_digits_makes_no_repeats():
    coarse = RangeParameterConfig(
        name="x", bounds=(0.0, 1.0), parameter_type="float", step_size=0.1
    )
    client = make([coarse])
    seen = []
    for _ in range(2):
        trials = client.get_next_trials(4)
        seen += keys(trials)
        finish(client, trials, lambda p: p["x"])
    assert len(set(seen)) == 8


def test_points_that_rounding_makes_equal_are_passed_over():
    few = RangeParameterConfig(name="x", bounds=(0.1, 0.6), parameter_type="float", scaling="log")
    client = make([few])
    client._experiment.search_space.parameters["x"].set_digits(1)  # six values, in logs
    seen = []

    def use_up():
        while len(seen) < 7:
            seen.extend(keys(client.get_next_trials(1)))

    with pytest.raises(NothingLeftError, match="new after rounding"):
        use_up()
    assert 4 <= len(seen) == len(set(seen))


def test_a_strategy_of_ones_own():
    client = make(node=CoveyNode(strategy=Random(), seed=0))
    finish(client, client.get_next_trials(4))
    assert len(client.get_next_trials(5)) == 5


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"strategy": "est-dpp"}, "Did you mean"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_arguments_are_explained(arguments, reason):
    with pytest.raises(StrategyError, match=reason):
        CoveyNode(**arguments)


def test_batch_has_no_effect_and_says_so():
    with pytest.warns(FutureWarning, match="batch="):
        assert CoveyNode(4, "sobol").name == "Covey"


def test_it_must_be_told_of_an_experiment_first():
    with pytest.raises(StrategyError, match="told of its experiment first"):
        CoveyNode().get_next_candidate([])


def test_several_objectives_are_traded_off():
    client = make(objective="gain, -cost")
    for _ in range(3):
        for index, parameters in client.get_next_trials(4).items():
            x = float(next(v for v in parameters.values() if isinstance(v, float)))
            client.complete_trial(index, raw_data={"gain": x, "cost": x * x})
    assert len(client.get_next_trials(2)) == 2


def test_without_ax_the_import_says_what_to_install():
    code = (
        "import sys; sys.modules['ax'] = None\n"
        "try: import covey.integrations.ax\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("this needs ax-platform: pip install 'covey[ax]'")


def test_the_example_runs():
    script = ROOT / "examples" / "with_ax.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"round {i}" for i in range(6)]
    assert float(lines[-1].split()[3]) < 0.05
    assert "'optimizer': 'adam'" in lines[-1]
