"""BoTorch's choice from a list, on the same rows and results."""

from __future__ import annotations

import time
from importlib.metadata import version

from benchmarks.scale.problem import looks, rows


def seconds(n: int, k: int, objective: str) -> float:
    """Seconds of `optimize_acqf_discrete` with qLogEI over n rows; its fit is not counted."""
    import torch
    from botorch.acquisition import qLogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf_discrete
    from gpytorch.mlls import ExactMarginalLogLikelihood

    x, values = (torch.as_tensor(each) for each in looks(objective))
    model = SingleTaskGP(x, values[:, None])
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    acquisition = qLogExpectedImprovement(model, best_f=float(values.max()))
    choices = torch.as_tensor(rows(n))
    began = time.perf_counter()
    chosen, _ = optimize_acqf_discrete(acquisition, q=k, choices=choices, max_batch_size=2048)
    if len(chosen) != k:
        raise RuntimeError(f"asked for {k} rows and got {len(chosen)}")
    return time.perf_counter() - began


def name() -> str:
    """What is compared with."""
    return f"BoTorch {version('botorch')}, optimize_acqf_discrete(qLogEI)"
