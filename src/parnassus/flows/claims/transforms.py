"""Claims about splines, permutations, ActNorm, flows as distributions and their samples (book sec. 13.1)."""

import torch
from torch import Tensor, nn
from torch.distributions import MultivariateNormal
from torch.func import jacrev, vmap

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.flows.autoregressive.rational_quadratic_spline import (
    Knots,
    inverse_rational_quadratic_spline,
    rational_quadratic_spline,
)
from parnassus.flows.autoregressive.synthesizers import SplineSynthesizer
from parnassus.flows.flow import Flow, GaussianBase
from parnassus.flows.flow_distribution import FlowDistribution
from parnassus.flows.linear.actnorm import ActNorm
from parnassus.flows.linear.invertible_matrices import DenseMatrix
from parnassus.flows.linear.linear_flow import LinearFlow, Permutation
from parnassus.flows.residual.lipschitz_networks import contractive_mlp
from parnassus.flows.residual.residual_flow import residual_flow
from parnassus.metrics.feature_network import Features
from parnassus.metrics.frechet import frechet_distance
from parnassus.metrics.kernel_distance import kernel_distance
from parnassus.metrics.precision_recall import precision_recall
from parnassus.metrics.sample_quality import sample_quality
from parnassus.probability import standard_normal


@claim("B13.1-8")
def splines_pass_through_their_knots_with_the_given_slopes() -> Evidence:
    """τ(x_k) = y_k and τ′(x_k) = δ_k; increasing, smooth, of slope 1 outside; the inverse is exact (Durkan 2019)."""
    knots = Knots(
        torch.tensor([-2.0, -1.2, 0.3, 1.0, 2.5], dtype=torch.float64),
        torch.tensor([-1.0, -0.8, 0.9, 1.1, 3.0], dtype=torch.float64),
        torch.tensor([0.7, 0.2, 3.0, 0.6, 1.4], dtype=torch.float64),
    )

    def curve(z: Tensor) -> tuple[Tensor, Tensor]:
        many = Knots(*(part.expand(len(z), 5) for part in (knots.x, knots.y, knots.derivative)))
        return rational_quadratic_spline(z, many)

    z = torch.linspace(-4.0007, 4, 1_601, dtype=torch.float64).requires_grad_()  # no knot among them
    x, log_derivative = curve(z)
    (slope,) = torch.autograd.grad(x.sum(), z)
    many = Knots(*(part.expand(len(z), 5) for part in (knots.x, knots.y, knots.derivative)))
    back, inverse_log_derivative = inverse_rational_quadratic_spline(x.detach(), many)
    outside = (z.detach() < -2) | (z.detach() > 2.5)
    at_knots, log_slopes = curve(knots.x)
    identity = SplineSynthesizer(bins=6, bound=3.0)
    points = torch.linspace(-4, 4, 41, dtype=torch.float64)
    same, log_one = identity(points, torch.zeros(41, identity.size, dtype=torch.float64))
    return all_of(
        values_at_the_knots=close(at_knots, knots.y, atol=1e-12),
        slopes_at_the_knots=close(log_slopes.exp(), knots.derivative, rtol=1e-9),
        log_derivative=close(log_derivative[~outside], slope[~outside].log(), atol=1e-9),
        increasing=greater_equal(x.detach().diff(), 1e-4),
        slope_outside=close(slope[outside], 1.0, atol=1e-12),
        inverse=close(back, z.detach(), atol=1e-9),
        derivative_of_the_inverse=close(inverse_log_derivative, -log_derivative.detach(), atol=1e-9),
        zero_parameters_are_the_identity=close(same, points, atol=1e-12),
        derivative_of_the_identity=close(log_one, 0.0, atol=1e-12),
    )


@claim("B13.1-12")
def permutations_and_actnorm_have_constant_jacobians() -> Evidence:
    """x_i = z_{order_i} with log-determinant 0; exp(s) z + b with Σ_c s_c for each pixel, standardised at the start."""
    torch.manual_seed(0)
    z, order = standard_normal(50, 3, 2, 2), [2, 0, 1]
    permutation, layer = Permutation(order), ActNorm(3).double()
    data = z * torch.tensor([0.2, 3.0, 10.0]).view(3, 1, 1) + torch.tensor([5.0, -1.0, 0.0]).view(3, 1, 1)
    with torch.no_grad():
        first, log_det = layer.inverse(data)
        later, _ = layer.inverse(2 * data)  # the statistics of the first batch are kept
        jacobian = vmap(jacrev(lambda one: layer(one[None])[0][0].flatten()))(z[:4]).flatten(2)
        permuted, nothing = permutation(z)
        return all_of(
            permuted=close(permuted, torch.stack([z[:, i] for i in order], 1)),
            back=close(permutation.inverse(permuted)[0], z),
            volume=close(nothing, 0.0),
            mean=close(first.mean((0, 2, 3)), 0.0, atol=1e-10),
            deviation=close(first.std((0, 2, 3), correction=0), 1.0, atol=1e-10),
            second_batch=close(later, 2 * first + (layer.shift / layer.log_scale.exp()).view(3, 1, 1), atol=1e-9),
            log_determinant=close(layer(z[:4])[1], torch.linalg.slogdet(jacobian).logabsdet, atol=1e-9),
            inverse_log_determinant=close(log_det, -4 * layer.log_scale.sum(), atol=1e-9),
        )


@claim("B13.1-13")
def a_residual_flow_adds_the_log_determinants_of_its_branches() -> Evidence:
    """Of x = z + g_1(z) and then g_2, by autograd of the whole map; its inverse undoes both (book sec. 13.1)."""
    torch.manual_seed(0)
    flow = residual_flow(contractive_mlp((3, 8, 3), lipschitz=0.8) for _ in range(2)).double()
    for parameter in flow.parameters():
        nn.init.normal_(parameter, std=0.7)
    z = standard_normal(10, 3)
    with torch.no_grad():
        x, log_det = flow(z)
        jacobian = vmap(jacrev(lambda one: flow(one[None])[0][0]))(z)
        return all_of(
            log_determinant=close(log_det, torch.linalg.slogdet(jacobian).logabsdet, atol=1e-10),
            not_zero=greater_equal(log_det.abs().max(), 0.1),
            inverse=close(flow.inverse(x)[0], z, atol=1e-8),
        )


@claim("B13.1-5")
def a_linear_flow_is_a_gaussian_distribution() -> Evidence:
    """With torch's interface: log_prob of N(b, W Wᵀ) for any batch shape, and samples with its moments."""
    torch.manual_seed(0)
    matrix = torch.tensor([[1.0, 0.5], [-0.3, 2.0]], dtype=torch.float64)
    transform = LinearFlow(DenseMatrix(matrix)).double()
    transform.shift.data = torch.tensor([0.7, -1.0], dtype=torch.float64)
    distribution = FlowDistribution(Flow(transform, GaussianBase((2,)).double()), (2,))
    exact = MultivariateNormal(transform.shift.detach(), matrix @ matrix.mT)
    x = standard_normal(4, 5, 2)
    samples = distribution.rsample((300, 400))
    (slope,) = torch.autograd.grad(samples.sum((0, 1))[1], transform.shift)
    rows = samples.detach().flatten(0, 1)
    return all_of(
        log_prob=close(distribution.log_prob(x).detach(), exact.log_prob(x), atol=1e-12),
        mean=close(rows.mean(0), exact.mean, atol=0.025),
        covariance=close(rows.mT.cov(), exact.covariance_matrix, atol=0.06),
        derivative_of_samples=close(slope, torch.tensor([0.0, 120_000.0]), atol=1e-6),
    )


@claim("B13.1-15")
def metrics_tell_shifted_wide_and_narrow_samples_apart() -> Evidence:
    """Fréchet distance ‖μ‖² + d(s − 1)² for samples s x + μ; wide ones lose precision, narrow ones recall.

    The kernel distance of two halves of one set is 0 within its error (book sec. 13.1).
    """
    torch.manual_seed(0)
    rows = standard_normal(1_000, 4)
    rows = rows - rows.mean(0)
    rows = torch.linalg.solve_triangular(torch.linalg.cholesky(rows.mT.cov()), rows.mT, upper=False).mT  # cov = I
    shift = torch.tensor([1.0, 0.0, -2.0, 0.5], dtype=torch.float64)
    other = standard_normal(1_000, 4, seed=1)
    wide, narrow = precision_recall(rows, 2 * other), precision_recall(rows, other / 4)
    same, apart = kernel_distance(rows, other), kernel_distance(rows, other + 0.5)
    log_probs = torch.zeros(1_000, 3, dtype=torch.float64).log_softmax(1)
    quality = sample_quality(Features("test", rows, log_probs), Features("test", 3 * rows + shift, log_probs))
    return all_of(
        frechet=close(frechet_distance(rows, 3 * rows + shift), 5.25 + 4 * 2**2, rtol=1e-9),
        same_rows=close(frechet_distance(rows, rows.flip(0)), 0.0, atol=1e-9),
        all_metrics=close(quality.frechet_distance, 21.25, rtol=1e-9),
        score_of_equal_classes=close(quality.inception_score, 1.0, rtol=1e-9),
        precision_of_wide_samples=less_equal(wide.precision, 0.6),
        recall_of_wide_samples=greater_equal(wide.recall, 0.8),
        precision_of_narrow_samples=greater_equal(narrow.precision, 0.97),
        recall_of_narrow_samples=less_equal(narrow.recall, 0.6),
        kernel_of_equal_distributions=less_equal(abs(same.value), 0.02),
        kernel_of_shifted_samples=greater_equal(apart.value, 0.1),
    )
