"""Claims about fitting a flow by the reverse KL divergence (book sec. 13.1)."""

from functools import partial
from math import log

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Distribution, Independent, MixtureSameFamily, Normal, kl_divergence

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.flows.coupling.real_nvp import real_nvp
from parnassus.flows.flow import Chain, Flow, GaussianBase
from parnassus.flows.linear.actnorm import ActNorm
from parnassus.flows.reverse_kl import estimate_evidence, path_gradient_reverse_kl, reverse_kl

LOG_Z = 1.7


@claim("B13.1-7")
def the_loss_is_the_kl_divergence_minus_log_z() -> Evidence:
    """For a target q̃ = Z q the loss is KL(p_x ‖ q) − log Z; if p_x = q, every sample gives −log Z."""
    torch.manual_seed(0)
    flow, target = _trainable_gaussian(), _gaussian()
    with torch.no_grad():
        estimates = torch.stack([reverse_kl(flow, partial(_log_unnormalised, target), 20_000) for _ in range(20)])
        at_the_target = torch.stack([reverse_kl(flow, partial(_log_unnormalised, flow), 1) for _ in range(20)])
    error = float(estimates.std()) / len(estimates) ** 0.5
    return all_of(
        identity=close(estimates.mean() + LOG_Z, kl_divergence(flow.base(), target), atol=4 * error),
        every_sample_at_the_target=close(at_the_target, -LOG_Z, atol=1e-12),
    )


@claim("B13.1-7")
def the_negative_loss_is_a_lower_bound_of_log_z() -> Evidence:
    """−loss ≤ log Z in expectation for any flow, and the gap is KL(p_x ‖ q), here by quadrature."""
    grid, cell = _build_grid()
    log_z = (_log_ring(grid).logsumexp(0) + log(cell)).item()
    losses, gaps = [], []
    for seed in range(4):
        flow = _random_flow(seed)
        with torch.no_grad():
            log_prob = flow.log_prob(grid)
            gaps.append((log_prob.exp() * (log_prob - _log_ring(grid) + log_z)).sum() * cell)
            losses.append(reverse_kl(flow, _log_ring, 200_000))
    bound, gap = -torch.stack(losses), torch.stack(gaps)
    return all_of(
        below=less_equal(bound, log_z),
        gap_is_the_divergence=close(log_z - bound, gap, rtol=0.03),
        gap=greater_equal(gap, 0.5),
    )


@claim("B13.1-7")
def importance_weights_tighten_the_bound_of_log_z() -> Evidence:
    """Importance sampling with weights q̃/p_x estimates log Z within its standard error, and exceeds −loss."""
    grid, cell = _build_grid()
    log_z = _log_ring(grid).logsumexp(0) + log(cell)
    torch.manual_seed(0)
    flow = _random_flow(0)
    estimate = estimate_evidence(flow, _log_ring, 200_000)
    with torch.no_grad():
        bound = -reverse_kl(flow, _log_ring, 200_000)
    return all_of(
        log_z=close(estimate.log_evidence, log_z, atol=4 * float(estimate.relative_standard_error)),
        tighter_by=greater_equal(estimate.log_evidence - bound, 0.5),
        effective_sample_size=less_equal(estimate.effective_sample_size, 200_000.0),
    )


@claim("B13.1-7")
def a_trainable_base_needs_reparametrised_samples() -> Evidence:
    """With `rsample` the gradient with respect to ψ is that of the divergence; with fixed samples its mean is 0."""
    torch.manual_seed(0)
    flow, target = _trainable_gaussian(), _gaussian()
    parameters = list(flow.parameters())
    truth = _concatenate(torch.autograd.grad(kl_divergence(flow.base(), target), parameters))
    reparametrised = _concatenate(
        torch.autograd.grad(reverse_kl(flow, partial(_log_unnormalised, target), 400_000), parameters)
    )
    base: Distribution = flow.base()
    z = base.sample(torch.Size([400_000]))
    fixed = _concatenate(torch.autograd.grad((base.log_prob(z) - target.log_prob(z)).mean(), parameters))
    return all_of(
        reparametrised=close(reparametrised, truth, atol=0.02),
        fixed_samples=close(fixed, 0.0, atol=0.02),
        true_gradient_is_not_zero=greater_equal(truth.abs().min(), 0.1),
    )


@claim("B13.1-7")
def the_path_gradient_vanishes_at_the_target() -> Evidence:
    """If p_x = q, the gradient without ∇_θ log p_x at fixed x is zero for every sample (Roeder et al. 2017)."""
    torch.manual_seed(0)
    flow = _random_flow(0)
    target = partial(_log_unnormalised, _random_flow(0).requires_grad_(requires_grad=False))
    parameters = list(flow.parameters())
    path_gradient = _concatenate(torch.autograd.grad(path_gradient_reverse_kl(flow, target, 100), parameters))
    plain = _concatenate(torch.autograd.grad(reverse_kl(flow, target, 100), parameters))
    return all_of(path_gradient=close(path_gradient, 0.0, atol=1e-10), plain=greater_equal(plain.abs().max(), 0.01))


@claim("B13.1-7")
def reverse_kl_is_mode_seeking_and_forward_kl_mass_covering() -> Evidence:
    """A Gaussian fitted to ½ N(−3, 1) + ½ N(3, 1) is one component by reverse KL, N(0, 10) by forward KL.

    The gap of the first to log Z = 0 is log 2, since it covers half of the mass.
    """
    reverse = {start: _fit_gaussian(start) for start in (-2.0, 2.0)}
    (left, left_std, left_gap), (right, right_std, _) = reverse[-2.0], reverse[2.0]
    one_mode = ActNorm(1).double()
    one_mode.shift.data, one_mode.log_scale.data = left[None], left_std.log()[None]
    torch.manual_seed(0)
    with torch.no_grad():
        flow = Flow(one_mode, GaussianBase((1,)).double())
        sampled = reverse_kl(flow, lambda x: _mixture_of_two().log_prob(x[:, 0]), 20_000)
    x = torch.linspace(-15, 15, 20_001, dtype=torch.float64)
    mass = _mixture_of_two().log_prob(x).exp() * (x[1] - x[0])
    forward_mean, forward_variance = (
        (mass * x).sum(),
        (mass * x.square()).sum(),
    )  # the Gaussian that minimises KL(q ‖ p)
    return all_of(
        from_the_left=close(left, -3.0, atol=0.05),
        from_the_right=close(right, 3.0, atol=0.05),
        std_of_one_component=close(torch.stack([left_std, right_std]), 1.0, atol=0.05),
        gap_is_log_two=close(left_gap, log(2), atol=0.01),
        loss_of_a_flow=close(sampled, log(2), atol=0.01),
        forward_mean=close(forward_mean, 0.0, atol=1e-9),
        forward_variance=close(forward_variance, 10.0, atol=1e-6),
    )


def _log_unnormalised(distribution: Distribution | Flow, x: Tensor) -> Tensor:
    """The logarithm of q̃ = Z q."""
    return distribution.log_prob(x) + LOG_Z


def _trainable_gaussian() -> Flow:
    """A flow without transform whose base is N(½, e^0.6) in two coordinates."""
    base = GaussianBase((2,), trainable=True)
    nn.init.constant_(base.mean, 0.5)
    nn.init.constant_(base.log_std, 0.3)
    return Flow(Chain(), base).double()


def _gaussian() -> Distribution:
    return Independent(Normal(torch.tensor([1.0, -1.0]).double(), torch.tensor([0.8, 2.0]).double()), 1)


def _random_flow(seed: int) -> Flow:
    """A Real NVP with random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        transform = real_nvp(2, num_layers=2, width=8, num_hidden_layers=1)
        for parameter in transform.parameters():
            nn.init.normal_(parameter, std=0.2)
    return Flow(transform, GaussianBase((2,))).double()


def _log_ring(x: Tensor) -> Tensor:
    """The log-density of an unnormalised target, a ring of radius 2."""
    radius: Tensor = torch.linalg.vector_norm(x, dim=1)
    return -2 * (radius - 2).square()


def _build_grid() -> tuple[Tensor, float]:
    axis = torch.linspace(-8, 8, 321, dtype=torch.float64)
    return torch.cartesian_prod(axis, axis), float(axis[1] - axis[0]) ** 2


def _mixture_of_two() -> Distribution:
    halves = Normal(torch.tensor([-3.0, 3.0]).double(), torch.ones(2).double())
    return MixtureSameFamily(Categorical(torch.ones(2).double()), halves)


def _fit_gaussian(start: float) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and standard deviation of a Gaussian fitted by KL(p ‖ q) from the mean `start`, and the divergence."""
    nodes, masses = (torch.from_numpy(part) for part in np.polynomial.hermite_e.hermegauss(60))
    masses, target = masses / masses.sum(), _mixture_of_two()
    mean, log_std = (torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (start, 0.0))
    for _ in range(150):
        x = mean + log_std.exp() * nodes
        gap = (masses * (Normal(mean, log_std.exp()).log_prob(x) - target.log_prob(x))).sum()
        with torch.no_grad():
            for parameter, gradient in zip((mean, log_std), torch.autograd.grad(gap, (mean, log_std)), strict=True):
                parameter.sub_(0.3 * gradient)
    return mean.detach(), log_std.detach().exp(), gap.detach()


def _concatenate(parts: tuple[Tensor, ...]) -> Tensor:
    return torch.cat([part.flatten() for part in parts])
