"""Other people's code as referee: scikit-learn and GPyTorch on the same hyper-parameters."""

import numpy as np
import pytest

from covey.gp import GP, Likelihood, Model, condition, observe
from covey.kernels import Matern52, SquaredExponential

LENGTHS, VARIANCE, NOISE = (0.3, 0.7, 0.45), 1.7, 0.03
KERNELS = [SquaredExponential(LENGTHS, VARIANCE), Matern52(LENGTHS, VARIANCE)]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x, at = rng.random((30, 3)), rng.random((20, 3))
    y = np.sin(4 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * rng.standard_normal(30)
    return x, observe(x, y, np.full(30, np.nan)), at


def sklearn_kernel(kernel):
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

    shape = RBF(LENGTHS) if isinstance(kernel, SquaredExponential) else Matern(LENGTHS, nu=2.5)
    return ConstantKernel(VARIANCE) * shape


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
def test_posterior_agrees_with_scikit_learn(data, kernel):
    from sklearn.gaussian_process import GaussianProcessRegressor

    _, seen, at = data
    referee = GaussianProcessRegressor(sklearn_kernel(kernel), alpha=NOISE, optimizer=None)
    referee.fit(seen.at, seen.values)
    mean, cov = referee.predict(at, return_cov=True)
    belief = condition([Model(kernel, NOISE)], seen).belief(at)
    np.testing.assert_allclose(belief.mean, mean, atol=1e-6)
    np.testing.assert_allclose(belief.columns(np.arange(20)), cov, atol=1e-6)
    np.testing.assert_allclose(belief.var, np.diagonal(cov), atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
def test_likelihood_agrees_with_scikit_learn(data, kernel):
    from sklearn.gaussian_process import GaussianProcessRegressor

    _, seen, _ = data
    name = "matern52" if isinstance(kernel, Matern52) else "squared-exponential"
    likelihood = Likelihood(seen, GP(kernel=name, mean="zero"))
    theta = np.log([*LENGTHS, VARIANCE, NOISE])
    referee = GaussianProcessRegressor(sklearn_kernel(kernel), alpha=NOISE, optimizer=None)
    expected = referee.fit(seen.at, seen.values).log_marginal_likelihood_value_
    ours = likelihood.value(theta) - likelihood.log_prior(theta)[0]
    assert ours == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_posterior_with_a_constant_mean_agrees_with_gpytorch(data, kernel):
    gpytorch = pytest.importorskip("gpytorch", reason="pip install gpytorch")
    import torch

    _, seen, at = data
    torch.set_default_dtype(torch.float64)

    class Referee(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            base = (
                gpytorch.kernels.RBFKernel(ard_num_dims=3)
                if isinstance(kernel, SquaredExponential)
                else gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=3)
            )
            self.covar_module = gpytorch.kernels.ScaleKernel(base)

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    likelihood.noise = NOISE
    referee = Referee(torch.tensor(seen.at), torch.tensor(seen.values), likelihood)
    referee.mean_module.constant = 0.4
    referee.covar_module.outputscale = VARIANCE
    referee.covar_module.base_kernel.lengthscale = torch.tensor([LENGTHS])
    referee.eval()
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        expected = referee(torch.tensor(at))
    belief = condition([Model(kernel, NOISE, mean=0.4)], seen).belief(at)
    np.testing.assert_allclose(belief.mean, expected.mean.numpy(), atol=1e-6)
    cov = expected.covariance_matrix.numpy()
    np.testing.assert_allclose(belief.columns(np.arange(20)), cov, atol=1e-6)


def test_pooling_replicates_is_exact():
    """Pooled means with noise σ²/m carry the likelihood and posterior of the single looks."""
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(1)
    distinct = rng.random((5, 3))
    x = distinct[[0, 1, 1, 2, 3, 3, 3, 4]]
    y = rng.standard_normal(8)
    seen = observe(x, y, np.full(8, np.nan))
    kernel = Matern52(LENGTHS, VARIANCE)
    z = (y - seen.shift) / seen.scale
    gram = kernel(x, x) + NOISE * np.eye(8)
    likelihood = Likelihood(seen, GP(mean="zero"))
    theta = np.log([*LENGTHS, VARIANCE, NOISE])
    ours = likelihood.value(theta) - likelihood.log_prior(theta)[0]
    assert ours == pytest.approx(multivariate_normal(np.zeros(8), gram).logpdf(z), abs=1e-8)
    at = rng.random((6, 3))
    cross = kernel(x, at)
    belief = condition([Model(kernel, NOISE)], seen).belief(at)
    np.testing.assert_allclose(belief.mean, cross.T @ np.linalg.solve(gram, z), atol=1e-9)
    expected = VARIANCE - np.sum(cross * np.linalg.solve(gram, cross), axis=0)
    np.testing.assert_allclose(belief.var, expected, atol=1e-9)
