"""Kernels wrapped for gpytorch: values, posterior, gradients."""

import sys

import pytest
import torch
from torch import Tensor, nn

from parnassus.kernels import (
    GPRegression,
    LinearKernel,
    OrnsteinUhlenbeckKernel,
    RBFKernel,
    ScaledKernel,
    SumKernel,
    as_gpytorch,
)
from parnassus.kernels.gaussian_processes.gpytorch_kernel import gpytorch_module

gpytorch = gpytorch_module()


def regression_data() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(15, 2, dtype=torch.float64, generator=generator)
    return x, x.sin().sum(1), torch.randn(6, 2, dtype=torch.float64, generator=generator)


def exact_gp(kernel: nn.Module, x: Tensor, t: Tensor, noise: float) -> tuple[nn.Module, nn.Module]:
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = noise

    class Model(gpytorch.models.ExactGP):  # type: ignore[misc, name-defined]  # gpytorch has no types
        def __init__(self) -> None:
            super().__init__(x, t, likelihood)
            self.mean = gpytorch.means.ZeroMean()
            self.kernel = kernel

        def forward(self, x: Tensor) -> object:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    return Model(), likelihood


def test_wrapped_kernel_matches_the_original() -> None:
    x, _, new = regression_data()
    kernel = SumKernel(RBFKernel(0.7), ScaledKernel(LinearKernel(), 0.2))
    wrapped = as_gpytorch(kernel)
    assert isinstance(wrapped, gpytorch.kernels.Kernel)
    torch.testing.assert_close(wrapped(x, new).to_dense(), kernel(x, new))
    torch.testing.assert_close(wrapped(x, diag=True), kernel.diagonal(x))
    torch.testing.assert_close(wrapped(x[:6], new, diag=True), kernel(x[:6], new).diagonal())


def test_leading_axes_are_batches() -> None:
    x, _, new = regression_data()
    batch = torch.stack([x, 2 * x])
    matrices = as_gpytorch(OrnsteinUhlenbeckKernel())(batch, new).to_dense()
    assert matrices.shape == (2, 15, 6)
    torch.testing.assert_close(matrices[1], OrnsteinUhlenbeckKernel()(2 * x, new))


def test_posterior_of_gpytorch_matches_gp_regression() -> None:
    x, t, new = regression_data()
    model, likelihood = exact_gp(as_gpytorch(ScaledKernel(RBFKernel(0.9), 1.5)), x, t, 0.1)
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        values, targets = model(new), likelihood(model(new))
    expected = GPRegression.fit(ScaledKernel(RBFKernel(0.9), 1.5), x, t, noise_variance=0.1).predict(new)
    torch.testing.assert_close(values.mean, expected.mean.detach(), atol=1e-6, rtol=0)
    torch.testing.assert_close(values.variance, expected.variance.detach(), atol=1e-6, rtol=0)
    torch.testing.assert_close(targets.variance, expected.target_variance.detach(), atol=1e-6, rtol=0)


def test_likelihood_gradients_of_gpytorch_match_gp_regression() -> None:
    x, t, _ = regression_data()
    wrapped, reference = ScaledKernel(RBFKernel(0.9), 1.5), ScaledKernel(RBFKernel(0.9), 1.5)
    model, likelihood = exact_gp(as_gpytorch(wrapped), x, t, 0.1)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    (len(x) * objective(model(x), t)).backward()  # gpytorch divides by the number of points
    GPRegression.fit(reference, x, t, noise_variance=0.1).log_marginal_likelihood().backward()
    for actual, expected in zip(wrapped.parameters(), reference.parameters(), strict=True):
        assert actual.grad is not None
        assert expected.grad is not None
        torch.testing.assert_close(actual.grad, expected.grad, rtol=1e-5, atol=1e-6)
    assert len(list(model.parameters())) == 3  # length, variance, noise


def test_last_dim_is_batch_raises_value_error() -> None:
    x, _, new = regression_data()
    with pytest.raises(ValueError, match="all coordinates of a point"):
        as_gpytorch(RBFKernel()).forward(x, new, last_dim_is_batch=True)


def test_missing_gpytorch_raises_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gpytorch", None)
    with pytest.raises(ImportError, match=r"pip install 'parnassus\[gp\]'"):
        gpytorch_module()
