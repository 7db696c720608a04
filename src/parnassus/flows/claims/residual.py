"""Claims about residual flows: fixed-point inverse, series of traces, Russian roulette (book sec. 13.1)."""

from collections.abc import Callable
from itertools import islice

import torch
from torch import Tensor, nn
from torch.func import jacrev, vmap

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, raises
from parnassus.flows.residual.jacobian_traces import (
    jacobian_trace,
    rademacher_directions,
    unit_directions,
    value_and_vjp,
)
from parnassus.flows.residual.lipschitz_networks import (
    constrain_lipschitz,
    contractive_mlp,
    fixed_point_iterates,
    invert_residual,
    spectral_norm,
)
from parnassus.flows.residual.residual_flow import PowerSeriesLogDet, RussianRouletteLogDet, exact_log_det
from parnassus.probability import standard_normal

ONE = torch.tensor(1.0, dtype=torch.float64)


@claim("B13.1-13")
def fixed_point_iteration_converges_geometrically() -> Evidence:
    """‖z_k − z‖ ≤ Lᵏ ‖z_0 − z‖; 0.6 times a rotation by 90° attains the bound; L > 1 raises an error."""
    network, z = _strong_network(0.7), _sample_points()
    with torch.no_grad():
        errors = _errors(network, z + network(z), z)
    rotation = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    rotation_errors = _errors(
        lambda row: 0.6 * row @ rotation, ONE + 0.6 * ONE * rotation.sum(0).expand(1, 2), ONE.expand(1, 2)
    )
    bound = 0.7 ** torch.arange(len(errors), dtype=torch.float64)
    return all_of(
        within_the_bound=less_equal(errors / errors[0], bound[:, None]),
        rate_of_the_rotation=close(rotation_errors[1:] / rotation_errors[:-1], 0.6, rtol=1e-9),
        error_without_contraction=raises(ValueError, lambda: invert_residual(lambda row: 1.01 * row.flip(1), z)),
    )


@claim("B13.1-13")
def the_log_determinant_is_a_power_series_of_traces() -> Evidence:
    """Σ (−1)^{k+1} tr(J_gᵏ)/k is the log-determinant; n terms have error at most D Lⁿ⁺¹/((n + 1)(1 − L))."""
    network, z = _strong_network(0.7), _sample_points()
    with torch.no_grad():
        truth = torch.linalg.slogdet(vmap(jacrev(lambda row: row + network(row)))(z))
        counts = (1, 2, 4, 8, 16, 64)
        series = [PowerSeriesLogDet(n, directions=unit_directions)(network, z)[1] - truth.logabsdet for n in counts]
        _, exact = exact_log_det(network, z)
    errors = torch.stack([error.abs().max() for error in series])
    bounds = torch.tensor([z.shape[1] * 0.7 ** (n + 1) / ((n + 1) * 0.3) for n in counts])
    return all_of(
        exact=close(exact, truth.logabsdet, atol=1e-12),
        truncation_errors=less_equal(errors, bounds),
        sixty_four_terms=less_equal(errors[-1], 1e-9),
        error_of_one_term=greater_equal(errors[0], 1e-2),
        determinant_is_positive=greater_equal(truth.sign, 1.0),
    )


@claim("B13.1-13")
def russian_roulette_is_unbiased_with_known_variance() -> Evidence:
    """For log(1 − 0.6) and p = 0.3 the mean is exact and the variance Σ_N P(N) S_N² − log², with 4⅓ terms on average.

    The bias of eight fixed terms is 0.0025.
    """
    derivative, stop_probability, min_terms, count = -0.6, 0.3, 2, 400_000
    torch.manual_seed(0)
    z = torch.zeros(count, 1, dtype=torch.float64)
    with torch.no_grad():
        _, estimates = RussianRouletteLogDet(stop_probability, min_terms=min_terms, directions=unit_directions)(
            lambda row: derivative * row, z
        )
        _, truncated = PowerSeriesLogDet(8, directions=unit_directions)(lambda row: derivative * row, z[:1])
    truth = torch.log(1 + derivative * ONE)
    probabilities, sums = _roulette_table(derivative, stop_probability, min_terms, max_terms=200)
    variance = (probabilities * sums.square()).sum() - truth.square()
    return all_of(
        mean=close(estimates.mean(), truth, atol=4 * float(variance / count) ** 0.5),
        sum_over_lengths=close((probabilities * sums).sum(), truth, atol=1e-12),
        terms=close((probabilities * torch.arange(min_terms, 201)).sum(), 13 / 3, atol=1e-9),
        variance=close(estimates.var(), variance, rtol=0.05),
        bias_of_eight_terms=close(truncated - truth, 0.002464, atol=1e-6),
    )


@claim("B13.1-13")
def russian_roulette_needs_a_small_stop_probability() -> Evidence:
    """The variance is finite for p < 1 − L² and infinite above: with L = 0.8, p = 0.3 and p = 0.5."""
    torch.manual_seed(0)
    z, squares, distances = torch.zeros(500, 1, dtype=torch.float64), {}, []
    for stop_probability in (0.3, 0.5):
        probabilities, sums = _roulette_table(-0.8, stop_probability, 1, max_terms=400)
        squares[stop_probability] = (probabilities * sums.square()).cumsum(0)
        estimator = RussianRouletteLogDet(stop_probability, min_terms=1, directions=unit_directions)
        with torch.no_grad():
            _, estimates = estimator(lambda row: -0.8 * row, z)
        distances.append((estimates[:, None] - sums[:40]).abs().amin(1))  # to the value for some number of terms
    return all_of(
        estimates_are_values_of_the_table=close(torch.stack(distances), 0.0, atol=1e-9),
        converges=close(squares[0.3][199], squares[0.3][399], rtol=1e-6),
        diverges=greater_equal(squares[0.5][199] / squares[0.5][99], 1e6),
    )


@claim("B13.1-13")
def rademacher_directions_have_less_variance_than_gaussian_ones() -> Evidence:
    """Var dᵀA d = Σ_{i<j} (A_ij + A_ji)² for random signs, larger by 2 Σ A_ii² for Gaussian directions (Hutchinson)."""
    torch.manual_seed(0)
    matrix = torch.randn(5, 5, dtype=torch.float64)
    z = torch.zeros(200_000, 5, dtype=torch.float64)
    with torch.no_grad():
        _, vjp = value_and_vjp(lambda rows: rows @ matrix.mT, z)
        signs = jacobian_trace(vjp, rademacher_directions(z))
        gaussian = jacobian_trace(vjp, torch.randn(1, *z.shape, dtype=torch.float64))
    off_diagonal = (matrix + matrix.mT).triu(1).square().sum()
    diagonal = 2 * matrix.diagonal().square().sum()
    return all_of(
        mean=close(signs.mean(), matrix.trace(), atol=4 * float(off_diagonal / len(z)) ** 0.5),
        variance_of_signs=close(signs.var(), off_diagonal, rtol=0.03),
        variance_of_gaussians=close(gaussian.var(), off_diagonal + diagonal, rtol=0.03),
    )


@claim("B13.1-13")
def one_power_iteration_underestimates_the_spectral_norm() -> Evidence:
    """Weights divided by the norm after one power iteration have norm above 1; by the exact norm they have 1."""
    torch.manual_seed(0)
    estimated, exact = nn.Linear(64, 64, bias=False), nn.Linear(64, 64, bias=False)
    nn.utils.parametrizations.spectral_norm(estimated, n_power_iterations=1)
    constrain_lipschitz(nn.Sequential(exact), 1.0)
    with torch.no_grad():
        for layer in (estimated, exact):
            next(layer.parameters()).copy_(torch.randn(64, 64))  # as after a large training step
        return all_of(
            power_iteration=greater_equal(spectral_norm(estimated.weight), 1.05),
            exact=close(spectral_norm(exact.weight), 1.0, atol=1e-5),
        )


def _strong_network(lipschitz: float) -> nn.Sequential:
    """A contractive network on R⁴ whose Lipschitz constant is close to its bound."""
    torch.manual_seed(0)
    network = contractive_mlp((4, 16, 4), lipschitz=lipschitz).double()
    for parameter in network.parameters():
        if parameter.dim() == 2:
            nn.init.orthogonal_(parameter, gain=2.0)
    return network


def _sample_points() -> Tensor:
    return 2 * standard_normal(20, 4, seed=1)


def _errors(branch: Callable[[Tensor], Tensor], x: Tensor, z: Tensor) -> Tensor:
    """‖z_k − z‖ of the first 15 iterates for each example."""
    return torch.stack([(state - z).norm(dim=1) for state in islice(fixed_point_iterates(branch, x), 15)])


def _roulette_table(
    derivative: float, stop_probability: float, min_terms: int, *, max_terms: int
) -> tuple[Tensor, Tensor]:
    """P(N = n) for n = min_terms, …, max_terms, and the estimate for each n."""
    k = torch.arange(1, max_terms + 1, dtype=torch.float64)
    survival = (1 - stop_probability) ** (k - min_terms).clamp(min=0)
    sums = ((-1) ** (k + 1) * derivative**k / (k * survival)).cumsum(0)
    return (stop_probability * survival)[min_terms - 1 :], sums[min_terms - 1 :]
