"""An Ax experiment, four trials at a time, each chosen with regard to the others."""

import math

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.generation_strategy.generation_strategy import GenerationStrategy

from covey.integrations.ax import CoveyNode


def loss(rate: float, layers: int, optimizer: str) -> float:
    """A made-up training run: best at a rate of 0.01, five layers and adam."""
    off = (math.log10(rate) + 2.0) ** 2 + 0.05 * (layers - 5) ** 2
    return off + (0.3 if optimizer == "sgd" else 0.0)


client = Client()
client.configure_experiment(
    parameters=[
        RangeParameterConfig(
            name="rate", bounds=(1e-5, 1.0), parameter_type="float", scaling="log"
        ),
        RangeParameterConfig(name="layers", bounds=(1, 12), parameter_type="int"),
        ChoiceParameterConfig(
            name="optimizer", values=["adam", "sgd"], parameter_type="str", is_ordered=False
        ),
    ],
)
client.configure_optimization(objective="-loss")
client.set_generation_strategy(GenerationStrategy(nodes=[CoveyNode(seed=0)]))

for wave in range(6):
    trials = client.get_next_trials(max_trials=4)  # four machines could run these at once
    for index, parameters in trials.items():
        client.complete_trial(index, raw_data={"loss": loss(**parameters)})
    best, values, _, _ = client.get_best_parameterization(use_model_predictions=False)
    print(f"round {wave}: loss {values['loss'][0]:.4f} at {best}")
