"""Learned lengths and noise against true values and scikit-learn."""

import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as reference
from torch import Tensor

from parnassus.kernels import GaussianProcess, GPRegression, RBFKernel, ScaledKernel, learn_hyperparameters


def regression_data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(60, 1, dtype=torch.float64, generator=generator) * 10
    y = GaussianProcess(ScaledKernel(RBFKernel(0.8), 2.0)).sample(x, 1, generator=generator).values[0]
    return x, y + 0.2 * torch.randn(60, dtype=torch.float64, generator=generator)


def test_learned_maximum_matches_scikit_learn() -> None:
    x, t = regression_data()
    start = ScaledKernel(RBFKernel(2.0), 1.0)
    learned = learn_hyperparameters(
        start, x, t, noise_variance=0.5, num_starts=2, steps=250, generator=torch.Generator().manual_seed(0)
    )
    sklearn_gp = GaussianProcessRegressor(
        reference.ConstantKernel(2.0) * reference.RBF(0.8) + reference.WhiteKernel(0.04), alpha=0.0
    ).fit(x.numpy(), t.numpy())
    assert learned.log_marginal_likelihood == pytest.approx(sklearn_gp.log_marginal_likelihood_value_, abs=0.02)
    inner = learned.kernel.kernel
    assert isinstance(inner, RBFKernel)
    assert inner.length == pytest.approx(0.8, rel=0.25)
    assert learned.noise_variance == pytest.approx(0.04, rel=0.5)
    refit = GPRegression.fit(learned.kernel, x, t, noise_variance=learned.noise_variance).log_marginal_likelihood()
    assert refit.item() == pytest.approx(learned.log_marginal_likelihood)
    assert start.variance == 1.0


def test_best_start_is_returned() -> None:
    """With a length of 1000 everything is noise; another start finds the signal."""
    x, t = regression_data()
    generator = torch.Generator().manual_seed(0)
    learned = learn_hyperparameters(RBFKernel(1e3), x, t, num_starts=4, spread=4.0, steps=40, generator=generator)
    assert learned.log_marginal_likelihood_per_start.shape == (4,)
    assert learned.log_marginal_likelihood == float(learned.log_marginal_likelihood_per_start.max())
    assert float(learned.log_marginal_likelihood_per_start.max() - learned.log_marginal_likelihood_per_start[0]) > 5


def test_invalid_input_raises() -> None:
    x, t = regression_data()
    with pytest.raises(ValueError, match=r"noise_variance=0\.0"):
        learn_hyperparameters(RBFKernel(), x, t, noise_variance=0.0)
    with pytest.raises(ValueError, match="starts=0"):
        learn_hyperparameters(RBFKernel(), x, t, num_starts=0)
