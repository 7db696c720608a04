"""The probability flow with exact scores of a mixture: densities, round trips and divergences."""

from functools import partial

import pytest
import torch
from torch import Tensor

from parnassus.diffusion.continuous.ode_solvers import dopri5, heun
from parnassus.diffusion.continuous.probability_flow import probability_flow_log_prob, solve_probability_flow
from parnassus.diffusion.continuous.sde import (
    NoisingSDE,
    mixture_score,
    variance_exploding,
    variance_preserving,
)
from parnassus.diffusion.continuous.time_grids import reverse_times
from parnassus.diffusion.scores.gaussian_mixture import IsotropicMixture
from parnassus.diffusion.scores.vector_fields import hutchinson_divergence

MIXTURE = IsotropicMixture.from_components(
    torch.tensor([[-1.0, 0.5], [1.0, 0.0]]).double(), torch.tensor([0.3, 0.5]).double()
)
X = torch.tensor([[-1.2, 0.3], [0.1, 0.2], [1.4, -0.6]], dtype=torch.float64)


@pytest.mark.parametrize("sde", [variance_preserving(), variance_exploding()])
def test_log_prob_matches_the_noised_mixture(sde: NoisingSDE) -> None:
    times = reverse_times(60).flip(0)
    one = torch.tensor(1.0, dtype=torch.float64)

    def prior_log_prob(x: Tensor) -> Tensor:
        return MIXTURE.log_prob(x, sde.scale(one), sde.std(one))

    log_prob = probability_flow_log_prob(sde, mixture_score(MIXTURE, sde), X, times, prior_log_prob=prior_log_prob)
    expected = MIXTURE.log_prob(X, sde.scale(times[0]), sde.std(times[0]))
    torch.testing.assert_close(log_prob, expected, atol=2e-3, rtol=0)


def test_prior_is_normal_by_default() -> None:
    sde, times = variance_preserving(), reverse_times(60).flip(0)
    expected = MIXTURE.log_prob(X, sde.scale(times[0]), sde.std(times[0]))
    torch.testing.assert_close(
        probability_flow_log_prob(sde, mixture_score(MIXTURE, sde), X, times), expected, atol=0.02, rtol=0
    )


def test_adaptive_steps_give_the_same_density() -> None:
    sde, times = variance_preserving(), reverse_times(100).flip(0)
    fixed = probability_flow_log_prob(sde, mixture_score(MIXTURE, sde), X, times)
    torch.testing.assert_close(
        probability_flow_log_prob(sde, mixture_score(MIXTURE, sde), X, times, solver=dopri5), fixed, atol=1e-3, rtol=0
    )


def test_round_trip_recovers_the_data() -> None:
    sde = variance_preserving()
    noise = solve_probability_flow(sde, mixture_score(MIXTURE, sde), X, reverse_times(100).flip(0))
    torch.testing.assert_close(
        solve_probability_flow(sde, mixture_score(MIXTURE, sde), noise, reverse_times(100)), X, atol=1e-4, rtol=0
    )


def test_flow_of_a_gaussian_is_a_scaling() -> None:
    """x_t / √(a² s² + b²) is constant in time."""
    sde = variance_preserving()
    single = IsotropicMixture.from_components(torch.zeros(1, 2).double(), torch.full((1,), 0.4).double())

    score = mixture_score(single, sde)
    times = reverse_times(200).flip(0)
    first, last = (((0.4 * sde.scale(t)).square() + sde.std(t).square()).sqrt() for t in (times[0], times[-1]))
    torch.testing.assert_close(
        solve_probability_flow(sde, score, X, times, solver=heun), X * last / first, atol=1e-3, rtol=0
    )


def test_mean_over_all_probes_is_the_exact_log_prob() -> None:
    """The path does not depend on the probe, and the mean of vᵀJv over the four pairs of signs is the trace."""
    sde, times = variance_preserving(), reverse_times(20).flip(0)
    probes = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64)
    estimates = [
        probability_flow_log_prob(
            sde,
            mixture_score(MIXTURE, sde),
            X,
            times,
            divergence=partial(hutchinson_divergence, probe=probe.expand_as(X)),
        )
        for probe in probes
    ]
    torch.testing.assert_close(
        torch.stack(estimates).mean(0), probability_flow_log_prob(sde, mixture_score(MIXTURE, sde), X, times)
    )
    assert float((estimates[0] - estimates[1]).abs().max()) > 1e-3


def test_decreasing_times_raise_value_error() -> None:
    sde = variance_preserving()
    with pytest.raises(ValueError, match="increase strictly"):
        probability_flow_log_prob(sde, mixture_score(MIXTURE, sde), X, reverse_times(10))
