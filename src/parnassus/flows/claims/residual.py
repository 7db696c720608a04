"""Claims about residual flows: the fixed point, the series of traces, and the lottery that sums it (book sec. 13.1)."""

from collections.abc import Callable
from itertools import islice

import torch
from torch import Tensor, nn
from torch.func import jacrev, vmap

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close, raises
from parnassus.flows.contraction import contract, contractive_mlp, fixed_point_path, solve_residual, spectral_norm
from parnassus.flows.residual import RouletteLogDet, SeriesLogDet, exact_log_det
from parnassus.flows.traces import jacobian_trace, random_signs, unit_directions, with_pullback

ONE = torch.tensor(1.0, dtype=torch.float64)


@claim("B13.1-13")
def iteration_undoes_a_contraction_geometrically() -> Evidence:
    """‖z_k − z‖ ≤ Lᵏ ‖z_0 − z‖; a rotation by 90° times 0.6 reaches the bound, and above L = 1 none is left."""
    network, z = _strong_network(0.7), _places()
    with torch.no_grad():
        errors = _errors(network, z + network(z), z)
    quarter = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    line = _errors(lambda row: 0.6 * row @ quarter, ONE + 0.6 * ONE * quarter.sum(0).expand(1, 2), ONE.expand(1, 2))
    bound = 0.7 ** torch.arange(len(errors), dtype=torch.float64)
    return all_of(
        within_the_bound=at_most(errors / errors[0], bound[:, None]),
        rate_of_the_rotation=close(line[1:] / line[:-1], 0.6, rtol=1e-9),
        no_contraction_no_inverse=raises(ValueError, lambda: solve_residual(lambda row: 1.01 * row.flip(1), z)),
    )


@claim("B13.1-13")
def the_log_determinant_is_a_series_of_traces() -> Evidence:
    """Σ (−1)^{k+1} tr(J_gᵏ)/k is the log-determinant of autograd; n terms leave at most D Lⁿ⁺¹/((n + 1)(1 − L))."""
    network, z = _strong_network(0.7), _places()
    with torch.no_grad():
        truth = torch.linalg.slogdet(vmap(jacrev(lambda row: row + network(row)))(z))
        counts = (1, 2, 4, 8, 16, 64)
        series = [SeriesLogDet(n, directions=unit_directions)(network, z)[1] - truth.logabsdet for n in counts]
        _, in_full = exact_log_det(network, z)
    left = torch.stack([error.abs().max() for error in series])
    allowed = torch.tensor([z.shape[1] * 0.7 ** (n + 1) / ((n + 1) * 0.3) for n in counts])
    return all_of(
        in_full=close(in_full, truth.logabsdet, atol=1e-12),
        left_out=at_most(left, allowed),
        sixty_four_terms=at_most(left[-1], 1e-9),
        one_term_is_not_enough=at_least(left[0], 1e-2),
        never_turned_over=at_least(truth.sign, 1.0),
    )


@claim("B13.1-13")
def roulette_has_no_bias_and_a_known_variance() -> Evidence:
    """Of log(1 − 0.6) with stop = ½: the mean is right and the variance Σ_N P(N) S_N² − log², with 3 terms on average.

    Eight terms always are too high by 0.0025, however often one draws.
    """
    slope, stop, sure, count = -0.6, 0.5, 2, 400_000
    torch.manual_seed(0)
    z = torch.zeros(count, 1, dtype=torch.float64)
    with torch.no_grad():
        _, found = RouletteLogDet(stop, sure=sure, directions=unit_directions)(lambda row: slope * row, z)
        _, short = SeriesLogDet(8, directions=unit_directions)(lambda row: slope * row, z[:1])
    truth = torch.log(1 + slope * ONE)
    chances, sums = _roulette_table(slope, stop, sure, longest=200)
    variance = (chances * sums.square()).sum() - truth.square()
    return all_of(
        mean=close(found.mean(), truth, atol=4 * float(variance / count) ** 0.5),
        by_every_length=close((chances * sums).sum(), truth, atol=1e-12),
        terms=close((chances * torch.arange(sure, 201)).sum(), 3.0, atol=1e-9),
        variance=close(found.var(), variance, rtol=0.05),
        eight_terms_are_biased=close(short - truth, 0.002464, atol=1e-6),
    )


@claim("B13.1-13")
def roulette_must_not_stop_too_soon() -> Evidence:
    """The variance is finite below stop = 1 − L² and infinite above: with L = 0.8, at 0.3 and at 0.5."""
    squares = {}
    for stop in (0.3, 0.5):
        chances, sums = _roulette_table(-0.8, stop, 1, longest=400)
        squares[stop] = (chances * sums.square()).cumsum(0)
    return all_of(
        settles=close(squares[0.3][199], squares[0.3][399], rtol=1e-6),
        runs_away=at_least(squares[0.5][199] / squares[0.5][99], 1e6),
    )


@claim("B13.1-13")
def signs_vary_less_than_normal_directions() -> Evidence:
    """Var dᵀA d = Σ_{i<j} (A_ij + A_ji)² for random signs, and 2 Σ A_ii² more for normal directions (Hutchinson)."""
    torch.manual_seed(0)
    matrix = torch.randn(5, 5, dtype=torch.float64)
    z = torch.zeros(200_000, 5, dtype=torch.float64)
    with torch.no_grad():
        _, pull = with_pullback(lambda rows: rows @ matrix.mT, z)
        signs = jacobian_trace(pull, random_signs(z))
        normal = jacobian_trace(pull, torch.randn(1, *z.shape, dtype=torch.float64))
    across = (matrix + matrix.mT).triu(1).square().sum()
    along = 2 * matrix.diagonal().square().sum()
    return all_of(
        mean=close(signs.mean(), matrix.trace(), atol=4 * float(across / len(z)) ** 0.5),
        variance_of_signs=close(signs.var(), across, rtol=0.03),
        variance_of_normals=close(normal.var(), across + along, rtol=0.03),
    )


@claim("B13.1-13")
def a_step_of_power_iteration_promises_too_much() -> Evidence:
    """Divided by the norm that one step of power iteration finds, weights still expand; by the exact one, never."""
    torch.manual_seed(0)
    estimated, exact = nn.Linear(64, 64, bias=False), nn.Linear(64, 64, bias=False)
    nn.utils.parametrizations.spectral_norm(estimated, n_power_iterations=1)
    contract(nn.Sequential(exact), 1.0)
    with torch.no_grad():
        for layer in (estimated, exact):
            next(layer.parameters()).copy_(torch.randn(64, 64))  # as a step of training would, only larger
        return all_of(
            power_iteration=at_least(spectral_norm(estimated.weight), 1.05),
            exact=close(spectral_norm(exact.weight), 1.0, atol=1e-5),
        )


def _strong_network(lipschitz: float) -> nn.Sequential:
    """A network of four numbers that nearly reaches its Lipschitz bound."""
    torch.manual_seed(0)
    network = contractive_mlp((4, 16, 4), lipschitz=lipschitz).double()
    for parameter in network.parameters():
        if parameter.dim() == 2:
            nn.init.orthogonal_(parameter, gain=2.0)
    return network


def _places() -> Tensor:
    return 2 * torch.randn(20, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _errors(branch: Callable[[Tensor], Tensor], x: Tensor, z: Tensor) -> Tensor:
    """‖z_k − z‖ of the first 15 iterates for each example."""
    return torch.stack([(state - z).norm(dim=1) for state in islice(fixed_point_path(branch, x), 15)])


def _roulette_table(slope: float, stop: float, sure: int, *, longest: int) -> tuple[Tensor, Tensor]:
    """P(N = n) for n = sure, …, longest, and the sum that the lottery pays for each of them."""
    k = torch.arange(1, longest + 1, dtype=torch.float64)
    reached = (1 - stop) ** (k - sure).clamp(min=0)
    sums = ((-1) ** (k + 1) * slope**k / (k * reached)).cumsum(0)
    return (stop * reached)[sure - 1 :], sums[sure - 1 :]
