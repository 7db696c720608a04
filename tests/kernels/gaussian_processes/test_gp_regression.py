"""Regression against direct conditioning, other libraries, refits and closed forms."""

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as reference
from torch import Tensor
from torch.distributions import MultivariateNormal

from parnassus.kernels import (
    GaussianProcess,
    GPRegression,
    LinearKernel,
    OrnsteinUhlenbeckKernel,
    RBFKernel,
    ScaledKernel,
)
from parnassus.probability import Gaussian, condition

NOISE = 0.2


def regression_data(count: int = 12, dim: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(count, dim, dtype=torch.float64, generator=generator)
    new = torch.randn(5, dim, dtype=torch.float64, generator=generator)
    return x, x.sin().sum(1), new


def test_prediction_matches_scikit_learn() -> None:
    x, t, new = regression_data()
    sklearn_gp = GaussianProcessRegressor(reference.RBF(0.9), alpha=NOISE, optimizer=None).fit(x.numpy(), t.numpy())
    mean, deviation = sklearn_gp.predict(new.numpy(), return_std=True)
    fit = GPRegression.fit(RBFKernel(0.9), x, t, noise=NOISE)
    prediction = fit.predict(new)
    torch.testing.assert_close(prediction.mean.detach(), torch.from_numpy(mean))
    torch.testing.assert_close(prediction.variance.detach().sqrt(), torch.from_numpy(deviation))
    assert fit.log_marginal_likelihood().item() == pytest.approx(sklearn_gp.log_marginal_likelihood_value_, rel=1e-9)


def test_joint_posterior_is_the_conditioned_prior() -> None:
    x, t, new = regression_data()
    kernel = ScaledKernel(OrnsteinUhlenbeckKernel(0.8), 3.0)
    points = torch.cat([x, new])
    noise = torch.cat([torch.full((12,), NOISE), torch.zeros(5)]).double().diag()
    joint = Gaussian(torch.zeros(17, dtype=torch.float64), kernel(points).detach() + noise)
    expected = condition(joint, t, observed=range(12))
    posterior = GPRegression.fit(kernel, x, t, noise=NOISE).posterior(new)
    torch.testing.assert_close(posterior.mean, expected.mean)
    torch.testing.assert_close(posterior.covariance, expected.covariance)


def test_prediction_from_one_point_matches_closed_form() -> None:
    """μ = k t / (1 + σ²), Var y = 1 − k² / (1 + σ²) with k = e^−½."""
    fit = GPRegression.fit(
        RBFKernel(), torch.zeros(1, 1, dtype=torch.float64), torch.tensor([2.0], dtype=torch.float64), noise=0.25
    )
    mean, variance, target_variance = fit.predict(torch.ones(1, 1, dtype=torch.float64))
    k = torch.tensor([-0.5], dtype=torch.float64).exp()
    torch.testing.assert_close(mean, 2 * k / 1.25)
    torch.testing.assert_close(variance, 1 - k**2 / 1.25)
    torch.testing.assert_close(target_variance, variance + 0.25)


def test_several_outputs_match_separate_regressions() -> None:
    x, t, new = regression_data()
    targets = torch.stack([t, t.square(), -2 * t], 1)
    joint = GPRegression.fit(RBFKernel(), x, targets, noise=NOISE)
    separate = [GPRegression.fit(RBFKernel(), x, column, noise=NOISE) for column in targets.mT]
    prediction = joint.predict(new)
    assert prediction.mean.shape == (5, 3)
    torch.testing.assert_close(prediction.mean, torch.stack([column.predict(new).mean for column in separate], 1))
    torch.testing.assert_close(prediction.variance, separate[0].predict(new).variance)
    torch.testing.assert_close(
        joint.log_marginal_likelihood(),
        sum((column.log_marginal_likelihood() for column in separate), torch.tensor(0.0)),
    )
    torch.testing.assert_close(joint.posterior(new).mean, prediction.mean.mT.detach())
    torch.testing.assert_close(joint.leave_one_out().mean[:, 1], separate[1].leave_one_out().mean)


@pytest.mark.parametrize("noise", [0.05, 1.0])
def test_leave_one_out_matches_refits(noise: float) -> None:
    x, t, _ = regression_data()
    mean, variance, target_variance = GPRegression.fit(RBFKernel(), x, t, noise=noise).leave_one_out()
    for left_out in range(len(x)):
        is_kept = torch.arange(len(x)) != left_out
        refit = GPRegression.fit(RBFKernel(), x[is_kept], t[is_kept], noise=noise).predict(x[left_out : left_out + 1])
        torch.testing.assert_close(mean[left_out : left_out + 1], refit.mean)
        torch.testing.assert_close(variance[left_out : left_out + 1], refit.variance)
        torch.testing.assert_close(target_variance[left_out : left_out + 1], refit.target_variance)


def test_marginal_likelihood_and_its_gradient_match_closed_form() -> None:
    x, t, _ = regression_data()
    kernel, noise = RBFKernel(0.7), torch.tensor(NOISE, dtype=torch.float64, requires_grad=True)
    likelihood = GPRegression.fit(kernel, x, t, noise=noise).log_marginal_likelihood()
    covariance = kernel(x).detach() + NOISE * torch.eye(12, dtype=torch.float64)
    density = MultivariateNormal(torch.zeros(12, dtype=torch.float64), covariance).log_prob(t)
    torch.testing.assert_close(likelihood.detach(), density)
    likelihood.backward()
    inverse = covariance.inverse()
    weights = inverse @ t
    assert noise.grad is not None
    torch.testing.assert_close(noise.grad, (weights.outer(weights) - inverse).trace() / 2)


def test_duplicate_points_without_noise_report_jitter() -> None:
    x, t, new = regression_data()
    duplicated, targets = torch.cat([x, x[:2]]), torch.cat([t, t[:2]])
    fit, reference = GPRegression.fit(RBFKernel(), duplicated, targets), GPRegression.fit(RBFKernel(), x, t)
    assert reference.jitter == 0
    assert 0 < fit.jitter < 1e-10
    torch.testing.assert_close(fit.predict(new).mean, reference.predict(new).mean, atol=1e-5, rtol=0)
    assert GPRegression.fit(RBFKernel(), duplicated, targets, noise=0.01).jitter == 0


def test_variance_at_training_points_is_nonnegative() -> None:
    x, t, _ = regression_data()
    assert GPRegression.fit(RBFKernel(), x, t).predict(x).variance.min().item() >= 0


def test_linear_kernel_is_ridge_regression() -> None:
    x, t, new = regression_data()
    ridge = torch.linalg.solve(x.mT @ x + NOISE * torch.eye(2, dtype=torch.float64), x.mT @ t)
    torch.testing.assert_close(GPRegression.fit(LinearKernel(), x, t, noise=NOISE).predict(new).mean, new @ ridge)


def test_invalid_input_raises() -> None:
    x, t, new = regression_data()
    with pytest.raises(ValueError, match="12 points, 11 targets"):
        GPRegression.fit(RBFKernel(), x, t[:-1])
    with pytest.raises(ValueError, match="got 0 points"):
        GPRegression.fit(RBFKernel(), x[:0], t[:0])
    with pytest.raises(ValueError, match=r"noise=-0\.1"):
        GPRegression.fit(RBFKernel(), x, t, noise=-0.1)
    with pytest.raises(ValueError, match="noise=nan"):
        GPRegression.fit(RBFKernel(), x, t, noise=float("nan"))
    with pytest.raises(ValueError, match="must be finite"):
        GPRegression.fit(RBFKernel(), x, t / 0)
    with pytest.raises(ValueError, match="number of features; got 2 and 1"):
        GPRegression.fit(RBFKernel(), x, t).predict(new[:, :1])


def test_predictions_do_not_require_gradients() -> None:
    """Also for kernels with parameters; the marginal likelihood stays differentiable."""
    fit = GPRegression.fit(RBFKernel(), np.array([[0.0], [1.0], [3.0]]), [0, 1, 2], noise=0.1)  # type: ignore[arg-type]
    for prediction in (fit.predict(np.array([[0.5]])), fit.leave_one_out()):  # type: ignore[arg-type]
        assert all(not each.requires_grad for each in prediction)
    assert not GaussianProcess(RBFKernel()).variances(fit.x).requires_grad
    assert fit.log_marginal_likelihood().requires_grad
