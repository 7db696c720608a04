"""NNGP and NTK as kernels of regression, sampling and gpytorch."""

import pytest
import torch
from torch import nn

from parnassus.kernels import (
    NNGP,
    NTK,
    Erf,
    GaussianProcess,
    GPRegression,
    Kernel,
    ReLU,
    ScaledKernel,
    as_gpytorch,
    fully_connected,
    learn_hyperparameters,
)
from parnassus.probability import standard_normal

KERNELS: dict[str, NNGP | NTK] = {
    "nngp": NNGP(fully_connected(2, ReLU(), bias_variance=0.3)),
    "ntk": NTK(fully_connected(2, Erf(), bias_variance=0.3)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_is_positive_definite_and_consistent_with_its_diagonal(name: str) -> None:
    kernel, x = KERNELS[name], standard_normal(70, 3)
    assert isinstance(kernel, Kernel)
    matrix = kernel(x)
    torch.testing.assert_close(kernel.diagonal(x), matrix.diagonal())
    torch.testing.assert_close(kernel(x[:4], x[4:]), matrix[:4, 4:])
    assert float(torch.linalg.eigvalsh(matrix)[0]) > 0


@pytest.mark.parametrize("name", KERNELS)
def test_regression_interpolates_and_reverts_to_the_prior(name: str) -> None:
    kernel, x, t = KERNELS[name], standard_normal(12, 3), standard_normal(12, 1, seed=1)[:, 0]
    fitted = GPRegression.fit(kernel, x, t)
    torch.testing.assert_close(fitted.predict(x).mean, t, atol=1e-8, rtol=0)
    new = standard_normal(20, 3, seed=2)
    variance = fitted.predict(new).variance
    assert bool((variance <= kernel.diagonal(new)).all())
    k = kernel(x, new)
    direct = kernel.diagonal(new) - (k * torch.linalg.solve(kernel(x), k)).sum(0)
    torch.testing.assert_close(variance, direct, atol=1e-9, rtol=0)


def test_samples_have_the_nngp_covariance() -> None:
    generator = torch.Generator().manual_seed(0)
    x = standard_normal(5, 3)
    kernel = KERNELS["nngp"]
    paths = GaussianProcess(kernel).sample(x, 20_000, generator=generator).values
    torch.testing.assert_close(paths.mT @ paths / 20_000, kernel(x), atol=0.15, rtol=0.05)


def test_scale_is_learned() -> None:
    x = standard_normal(30, 3)
    t = (
        GaussianProcess(ScaledKernel(KERNELS["nngp"], 9.0))
        .sample(x, 1, generator=torch.Generator().manual_seed(3))
        .values[0]
    )
    learned = learn_hyperparameters(
        ScaledKernel(KERNELS["nngp"], 1.0), x, t, noise_variance=0.01, num_starts=1, steps=60
    )
    assert 3 < learned.kernel.variance < 27


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_work_in_gpytorch(name: str) -> None:
    pytest.importorskip("gpytorch")
    x = standard_normal(6, 3)
    kernel: nn.Module = as_gpytorch(KERNELS[name])
    torch.testing.assert_close(kernel(x, x).to_dense(), KERNELS[name](x))
