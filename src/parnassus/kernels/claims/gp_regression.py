"""Claims about regression with Gaussian processes (book sec. 15.1)."""

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate
from parnassus.kernels.gaussian_processes.covariance import OrnsteinUhlenbeckKernel, RBFKernel, ScaledKernel
from parnassus.kernels.gaussian_processes.gp_regression import GPRegression
from parnassus.kernels.gaussian_processes.hyperparameters import learn_hyperparameters
from parnassus.kernels.gaussian_processes.process import GaussianProcess
from parnassus.probability import Gaussian, condition, seeded_generator, standard_normal, uniform_samples


def regression_data(count: int = 15, dim: int = 2) -> tuple[Tensor, Tensor]:
    """Points, and targets of a fixed function that is not a sample of the kernels used."""
    x = standard_normal(count, dim)
    return x, (2 * x).sin().sum(1) + x[:, 0].square()


def identity(size: int) -> Tensor:
    return torch.eye(size, dtype=torch.float64)


@claim("B15.1-6")
@torch.no_grad()
def noise_adds_to_the_diagonal() -> Evidence:
    """Targets t = y + ε are N(0, L_N) with L_N = K_N + σ²I, and the evidence is its log-density (book eq. 15.4)."""
    (x, t), noise, kernel = regression_data(), 0.3, RBFKernel(0.8)
    covariance = kernel(x) + noise * identity(15)
    y = GaussianProcess(kernel).sample(x, 40_000, generator=seeded_generator()).values
    targets = y + noise**0.5 * standard_normal(*y.shape, seed=1)
    evidence = GPRegression.fit(kernel, x, t, noise_variance=noise).log_marginal_likelihood()
    return all_of(
        covariance=close(targets.mT.cov(), covariance, atol=0.05),
        evidence=close(evidence, MultivariateNormal(torch.zeros_like(t), covariance).log_prob(t), rtol=1e-12),
    )


@claim("B15.1-6")
@torch.no_grad()
def one_more_point_adds_a_row_and_column() -> Evidence:
    """K_{N+1} has the block K_N, the column k_N and the corner k_{N+1} (book eq. 15.8); p(t_{N+1}) factors with it.

    log p(t_{N+1}) = log p(t_N) + log N(t | k_Nᵀ L_N⁻¹ t_N, k_{N+1} − k_Nᵀ L_N⁻¹ k_N + σ²)
    """
    (x, t), noise, kernel = regression_data(), 0.3, OrnsteinUhlenbeckKernel(0.8)
    extended = torch.cat([kernel(x[:-1]), kernel(x[:-1], x[-1:])], 1)
    extended = torch.cat([extended, torch.cat([kernel(x[-1:], x[:-1]), kernel(x[-1:])], 1)], 0)
    before = GPRegression.fit(kernel, x[:-1], t[:-1], noise_variance=noise)
    after = GPRegression.fit(kernel, x, t, noise_variance=noise)
    mean, _, target_variance = before.predict(x[-1:])
    step = torch.distributions.Normal(mean[0], target_variance[0].sqrt()).log_prob(t[-1])
    return all_of(
        blocks=close(extended, kernel(x), atol=1e-14),
        chain_rule=close(after.log_marginal_likelihood(), before.log_marginal_likelihood() + step, rtol=1e-12),
    )


@claim("B15.1-6")
def maximising_the_evidence_recovers_length_and_noise() -> Evidence:
    """Maximising log p(t_N) recovers the length scale and noise that generated the data (book eq. 15.4)."""
    x = 12 * uniform_samples(120, 1)
    y = GaussianProcess(RBFKernel(0.7)).sample(x, 1, generator=seeded_generator(1)).values[0]
    t = y + 0.3 * standard_normal(120, seed=2)
    fit = learn_hyperparameters(RBFKernel(3.0), x, t, noise_variance=1.0, num_starts=1, steps=100)
    true = GPRegression.fit(RBFKernel(0.7), x, t, noise_variance=0.09).log_marginal_likelihood()
    again = GPRegression.fit(fit.kernel, x, t, noise_variance=fit.noise_variance).log_marginal_likelihood()
    derivative = torch.autograd.grad(again, fit.kernel.log_length)[0]
    return all_of(
        length=close(fit.kernel.length, 0.7, rtol=0.15),
        noise=close(fit.noise_variance, 0.09, rtol=0.4),
        no_worse_than_the_truth=greater_equal(fit.log_marginal_likelihood, true),
        gradient_at_the_end=less_equal(derivative.abs(), 0.3),
    )


@claim("B15.1-7")
@torch.no_grad()
def prediction_is_conditioning() -> Evidence:
    """Mean and variance at new points are those of the joint Gaussian conditioned on t_N (book eq. 15.6)."""
    (x, t), noise, kernel = regression_data(), 0.3, ScaledKernel(RBFKernel(0.8), 1.4)
    new = standard_normal(8, 2, seed=1)
    joint = Gaussian(torch.zeros(23, dtype=torch.float64), kernel(torch.cat([x, new])) + noise * identity(23))
    conditional = condition(joint, t, observed=range(15))
    fit = GPRegression.fit(kernel, x, t, noise_variance=noise)
    prediction, posterior = fit.predict(new), fit.posterior(new)
    return all_of(
        mean=close(prediction.mean, conditional.mean, rtol=1e-9),
        target_variance=close(prediction.target_variance, conditional.covariance.diagonal(), rtol=1e-9),
        all_covariances=close(posterior.covariance, conditional.covariance - noise * identity(8), atol=1e-12),
    )


@claim("B15.1-7")
@torch.no_grad()
def regression_without_noise_interpolates() -> Evidence:
    """As σ² → 0 the mean interpolates the targets; error and variance at training points are O(σ²) (book eq. 15.9)."""
    (x, t), kernel = regression_data(), RBFKernel(0.4)
    noises = [1e-6, 1e-5, 1e-4, 1e-3]
    fits = [GPRegression.fit(kernel, x, t, noise_variance=noise).predict(x) for noise in noises]
    errors = torch.stack([(fit.mean - t).abs().max() for fit in fits])
    variances = torch.stack([fit.variance.mean() for fit in fits])
    exact = GPRegression.fit(kernel, x, t).predict(x)
    return all_of(
        interpolates_the_targets=close(exact.mean, t, atol=1e-9),
        zero_variance_at_the_targets=less_equal(exact.variance, 1e-9),
        error_decreases=rate(torch.tensor(noises), errors, 1.0, atol=0.01),
        variance_decreases=rate(torch.tensor(noises), variances, 1.0, atol=0.01),
        variance_is_that_of_the_noise=close(fits[0].variance, noises[0], rtol=0.02),
    )


@claim("B15.1-7")
@torch.no_grad()
def data_never_increase_the_posterior_variance() -> Evidence:
    """Var(y | t_N) ≤ K(x, x) decreases with every training point, independently of the targets (book eq. 15.10)."""
    (x, t), kernel = regression_data(40), ScaledKernel(OrnsteinUhlenbeckKernel(1.5), 2.0)
    new = 2 * standard_normal(100, 2, seed=1)
    fits = [GPRegression.fit(kernel, x[:count], t[:count], noise_variance=0.1) for count in (1, 5, 10, 20, 40)]
    variances = torch.stack([kernel.diagonal(new), *(fit.predict(new).variance for fit in fits)])
    others = GPRegression.fit(kernel, x, -7 * t + 3, noise_variance=0.1).predict(new)
    return all_of(
        at_most_the_prior=less_equal(variances[1:], variances[0]),
        never_increases=less_equal(variances.diff(dim=0), 1e-12),
        independent_of_the_targets=close(others.variance, variances[-1], atol=1e-14),
        far_away_equals_the_prior=close(fits[-1].predict(new[:1] + 100).variance, 2.0, rtol=1e-12),
    )


@erratum("B15.1-7", printed="σ²_test = k_{N+1} − k_Nᵀ L_N⁻¹ k_N for p(t_test | t_N)", right="… + σ²")
@torch.no_grad()
def the_variance_of_a_target_includes_the_noise() -> Correction:
    """The printed variance of a new target is that of the noise-free value: σ² = 0.3 is missing (book eq. 15.10).

    Training points 0, 0.7 and 1.5, test point 1, RBF kernel of length 1: printed 0.1543, correct 0.4543.
    """
    x, new, noise = torch.tensor([[0.0], [0.7], [1.5], [1.0]], dtype=torch.float64), 3, 0.3
    K = RBFKernel()(x)
    k, L = K[:new, new], K[:new, :new] + noise * identity(3)
    printed = K[new, new] - k @ torch.linalg.solve(L, k)
    joint = Gaussian(torch.zeros(4, dtype=torch.float64), K + noise * identity(4))
    exact = condition(joint, torch.tensor([0.5, -0.2, 0.9], dtype=torch.float64), observed=range(3)).covariance[0, 0]
    fit = GPRegression.fit(
        RBFKernel(), x[:new], torch.tensor([0.5, -0.2, 0.9], dtype=torch.float64), noise_variance=noise
    )
    prediction = fit.predict(x[new:])
    return Correction(
        printed=close(printed, exact, rtol=1e-9),
        corrected=all_of(
            corrected_variance=close(prediction.target_variance, exact, rtol=1e-12),
            corrected_value=close(exact, 0.4543, atol=5e-5),
            printed_value=close(printed, 0.1543, atol=5e-5),
            missing_noise=close(exact - printed, noise, rtol=1e-12),
            printed_is_the_variance_of_y=close(prediction.variance, printed, rtol=1e-12),
        ),
    )
