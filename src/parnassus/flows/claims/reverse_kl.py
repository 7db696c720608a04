"""Claims about fitting a flow by the reverse KL divergence (book sec. 13.1)."""

from functools import partial
from math import log

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Distribution, Independent, MixtureSameFamily, Normal, kl_divergence

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.flows.coupling import real_nvp
from parnassus.flows.flow import Chain, Flow, GaussianBase
from parnassus.flows.reverse_kl import reverse_kl, reverse_kl_by_path, weigh_target

LOG_Z = 1.7


@claim("B13.1-7")
def the_loss_is_the_divergence_less_log_z() -> Evidence:
    """With a target q̃ = Z q the loss is KL(p_x ‖ q) − log Z; where p_x = q every single draw gives −log Z."""
    torch.manual_seed(0)
    flow, target = _learned_gaussian(), _gaussian()
    with torch.no_grad():
        draws = torch.stack([reverse_kl(flow, partial(_scaled, target), 20_000) for _ in range(20)])
        at_the_target = torch.stack([reverse_kl(flow, partial(_scaled, flow), 1) for _ in range(20)])
    error = float(draws.std()) / len(draws) ** 0.5
    return all_of(
        identity=close(draws.mean() + LOG_Z, kl_divergence(flow.base(), target), atol=4 * error),
        every_draw_at_the_target=close(at_the_target, -LOG_Z, atol=1e-12),
    )


@claim("B13.1-7")
def minus_the_loss_bounds_log_z_from_below() -> Evidence:
    """Whatever the flow, −loss ≤ log Z on average, and the gap is KL(p_x ‖ q), here by quadrature over the plane."""
    grid, cell = _plane()
    log_z = (_ring(grid).logsumexp(0) + log(cell)).item()
    losses, gaps = [], []
    for seed in range(4):
        flow = _random_flow(seed)
        with torch.no_grad():
            log_prob = flow.log_prob(grid)
            gaps.append((log_prob.exp() * (log_prob - _ring(grid) + log_z)).sum() * cell)
            losses.append(reverse_kl(flow, _ring, 200_000))
    bound, gap = -torch.stack(losses), torch.stack(gaps)
    return all_of(
        below=at_most(bound, log_z), gap_is_the_divergence=close(log_z - bound, gap, rtol=0.03), gap=at_least(gap, 0.5)
    )


@claim("B13.1-7")
def weights_lie_between_the_bound_and_log_z() -> Evidence:
    """Draws weighed by q̃/p_x estimate log Z: above −loss, and at log Z within the error they tell of themselves."""
    grid, cell = _plane()
    log_z = _ring(grid).logsumexp(0) + log(cell)
    torch.manual_seed(0)
    flow = _random_flow(0)
    estimate = weigh_target(flow, _ring, 200_000)
    with torch.no_grad():
        bound = -reverse_kl(flow, _ring, 200_000)
    return all_of(
        log_z=close(estimate.log_evidence, log_z, atol=4 * float(estimate.spread)),
        tighter_by=at_least(estimate.log_evidence - bound, 0.5),
        effective=at_most(estimate.effective, 200_000.0),
    )


@claim("B13.1-7")
def a_learned_base_needs_draws_that_move_with_it() -> Evidence:
    """By `rsample` the gradient in ψ is that of the divergence; with draws held still it is 0 on average."""
    torch.manual_seed(0)
    flow, target = _learned_gaussian(), _gaussian()
    parameters = list(flow.parameters())
    truth = _flat(torch.autograd.grad(kl_divergence(flow.base(), target), parameters))
    moving = _flat(torch.autograd.grad(reverse_kl(flow, partial(_scaled, target), 400_000), parameters))
    base: Distribution = flow.base()
    z = base.sample(torch.Size([400_000]))
    still = _flat(torch.autograd.grad((base.log_prob(z) - target.log_prob(z)).mean(), parameters))
    return all_of(
        moving=close(moving, truth, atol=0.02),
        still_gives_nothing=close(still, 0.0, atol=0.02),
        truth_is_not_zero=at_least(truth.abs().min(), 0.1),
    )


@claim("B13.1-7")
def the_gradient_by_the_path_is_still_at_the_target() -> Evidence:
    """Where p_x = q, leaving out ∇_θ log p_x at fixed x takes all noise from the gradient (Roeder et al. 2017)."""
    torch.manual_seed(0)
    flow = _random_flow(0)
    target = partial(_scaled, _random_flow(0).requires_grad_(requires_grad=False))
    parameters = list(flow.parameters())
    by_path = _flat(torch.autograd.grad(reverse_kl_by_path(flow, target, 100), parameters))
    plain = _flat(torch.autograd.grad(reverse_kl(flow, target, 100), parameters))
    return all_of(by_path=close(by_path, 0.0, atol=1e-10), plain=at_least(plain.abs().max(), 0.01))


@claim("B13.1-7")
def reverse_kl_seeks_a_mode_and_forward_kl_covers_all() -> Evidence:
    """Fitted to ½ N(−3, 1) + ½ N(3, 1), one normal by reverse KL is either half; by forward KL N(0, 10).

    The gap to log Z = 0 of the first is log 2: it knows one half of the mass perfectly and of the other nothing.
    """
    reverse = {start: _best_normal(start) for start in (-2.0, 2.0)}
    (left, left_std, left_gap), (right, right_std, _) = reverse[-2.0], reverse[2.0]
    x = torch.linspace(-15, 15, 20_001, dtype=torch.float64)
    mass = _two_normals().log_prob(x).exp() * (x[1] - x[0])
    forward_mean, forward_variance = (mass * x).sum(), (mass * x.square()).sum()  # the normal of least KL(q ‖ p)
    return all_of(
        from_the_left=close(left, -3.0, atol=0.05),
        from_the_right=close(right, 3.0, atol=0.05),
        as_narrow_as_a_half=close(torch.stack([left_std, right_std]), 1.0, atol=0.05),
        gap_is_log_two=close(left_gap, log(2), atol=0.01),
        forward_mean=close(forward_mean, 0.0, atol=1e-9),
        forward_variance=close(forward_variance, 10.0, atol=1e-6),
    )


def _scaled(law: Distribution | Flow, x: Tensor) -> Tensor:
    """The logarithm of q̃ = Z q."""
    return law.log_prob(x) + LOG_Z


def _learned_gaussian() -> Flow:
    """N(½, e^0.6) in two coordinates, all of it in the base."""
    base = GaussianBase((2,), learned=True)
    nn.init.constant_(base.mean, 0.5)
    nn.init.constant_(base.log_std, 0.3)
    return Flow(Chain(), base).double()


def _gaussian() -> Distribution:
    return Independent(Normal(torch.tensor([1.0, -1.0]).double(), torch.tensor([0.8, 2.0]).double()), 1)


def _random_flow(seed: int) -> Flow:
    """Couplings with weights as they fall: no fit, but a density."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        transform = real_nvp(2, layers=2, width=8, depth=1)
        for parameter in transform.parameters():
            nn.init.normal_(parameter, std=0.2)
    return Flow(transform, GaussianBase((2,))).double()


def _ring(x: Tensor) -> Tensor:
    """An unnormalised target: a soft ring of radius 2."""
    radius: Tensor = torch.linalg.vector_norm(x, dim=1)
    return -2 * (radius - 2).square()


def _plane() -> tuple[Tensor, float]:
    axis = torch.linspace(-8, 8, 321, dtype=torch.float64)
    return torch.cartesian_prod(axis, axis), float(axis[1] - axis[0]) ** 2


def _two_normals() -> Distribution:
    halves = Normal(torch.tensor([-3.0, 3.0]).double(), torch.ones(2).double())
    return MixtureSameFamily(Categorical(torch.ones(2).double()), halves)


def _best_normal(start: float) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and deviation of the normal of least KL(p ‖ q) reached from `start`, and the divergence, by quadrature."""
    nodes, masses = (torch.from_numpy(part) for part in np.polynomial.hermite_e.hermegauss(60))
    masses, target = masses / masses.sum(), _two_normals()
    mean, log_std = (torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (start, 0.0))
    for _ in range(150):
        x = mean + log_std.exp() * nodes
        gap = (masses * (Normal(mean, log_std.exp()).log_prob(x) - target.log_prob(x))).sum()
        with torch.no_grad():
            for parameter, slope in zip((mean, log_std), torch.autograd.grad(gap, (mean, log_std)), strict=True):
                parameter.sub_(0.3 * slope)
    return mean.detach(), log_std.detach().exp(), gap.detach()


def _flat(parts: tuple[Tensor, ...]) -> Tensor:
    return torch.cat([part.flatten() for part in parts])
