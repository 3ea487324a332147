"""A BoTorch loop whose batches come from a determinantal point process.

The model, its fit and the test function are BoTorch's; one line is Covey's.
"""

import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from botorch.optim import optimize_acqf
from botorch.test_functions import Branin
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood

from covey.integrations.botorch import optimize_dpp, qDPPScore

problem = Branin(negate=True, dtype=torch.double)
X = draw_sobol_samples(problem.bounds, n=8, q=1, seed=0).squeeze(1)
Y = problem(X).unsqueeze(-1)


def fitted() -> SingleTaskGP:
    """The usual model of the data so far."""
    model = SingleTaskGP(X, Y, input_transform=Normalize(2))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


for batch in range(6):
    candidates, gains = optimize_dpp(fitted(), problem.bounds, q=4, strategy="auto", seed=batch)
    X = torch.cat([X, candidates])
    Y = torch.cat([Y, problem(candidates).unsqueeze(-1)])
    print(f"batch {batch}: best {Y.max().item():.3f}, information {gains.sum().item() / 2.0:.2f}")

# The score itself is an acquisition function, with gradients, for any optimiser of BoTorch's.
model = fitted()
score = qDPPScore(model, LogExpectedImprovement(model, best_f=Y.max()))
torch.manual_seed(0)
candidates, value = optimize_acqf(score, problem.bounds, q=3, num_restarts=4, raw_samples=64)
Y = torch.cat([Y, problem(candidates).unsqueeze(-1)])
print(f"by optimize_acqf: score {value.item():.2f} at {candidates.round(decimals=2).tolist()}")
print(f"best value {Y.max().item():.3f} of a possible {problem.optimal_value:.3f}")
