"""The probability flow of a known mixture: densities, round trips and divergences."""

from functools import partial

import pytest
import torch
from torch import Tensor

from parnassus.diffusion.fields import probed_divergence
from parnassus.diffusion.mixture import RoundMixture
from parnassus.diffusion.ode import adaptive, heun
from parnassus.diffusion.probability_flow import flow_log_prob, follow
from parnassus.diffusion.sde import NoisingSDE, TimedScore, towards_data, variance_exploding, variance_preserving

MIXTURE = RoundMixture.of(torch.tensor([[-1.0, 0.5], [1.0, 0.0]]).double(), torch.tensor([0.3, 0.5]).double())
X = torch.tensor([[-1.2, 0.3], [0.1, 0.2], [1.4, -0.6]], dtype=torch.float64)


def exact(sde: NoisingSDE) -> TimedScore:
    def score(x: Tensor, t: Tensor) -> Tensor:
        return MIXTURE.score(x, sde.scale(t)[:, None], sde.std(t)[:, None])

    return score


@pytest.mark.parametrize("sde", [variance_preserving(), variance_exploding()])
def test_the_density_is_that_of_the_noised_mixture(sde: NoisingSDE) -> None:
    times = towards_data(60).flip(0)
    one = torch.tensor(1.0, dtype=torch.float64)

    def end_law(x: Tensor) -> Tensor:
        return MIXTURE.log_prob(x, sde.scale(one), sde.std(one))

    log_prob = flow_log_prob(sde, exact(sde), X, times, end_law=end_law)
    truth = MIXTURE.log_prob(X, sde.scale(times[0]), sde.std(times[0]))
    torch.testing.assert_close(log_prob, truth, atol=2e-3, rtol=0)


def test_the_end_law_is_normal_unless_told() -> None:
    sde, times = variance_preserving(), towards_data(60).flip(0)
    truth = MIXTURE.log_prob(X, sde.scale(times[0]), sde.std(times[0]))
    torch.testing.assert_close(flow_log_prob(sde, exact(sde), X, times), truth, atol=0.02, rtol=0)


def test_adaptive_steps_give_the_same_density() -> None:
    sde, times = variance_preserving(), towards_data(100).flip(0)
    fixed = flow_log_prob(sde, exact(sde), X, times)
    torch.testing.assert_close(flow_log_prob(sde, exact(sde), X, times, solver=adaptive), fixed, atol=1e-3, rtol=0)


def test_what_is_encoded_is_found_again() -> None:
    sde = variance_preserving()
    noise = follow(sde, exact(sde), X, towards_data(100).flip(0))
    torch.testing.assert_close(follow(sde, exact(sde), noise, towards_data(100)), X, atol=1e-4, rtol=0)


def test_the_flow_of_one_gaussian_only_stretches() -> None:
    """x_t / √(a² s² + b²) stays: each point keeps its quantile."""
    sde = variance_preserving()
    single = RoundMixture.of(torch.zeros(1, 2).double(), torch.full((1,), 0.4).double())

    def score(x: Tensor, t: Tensor) -> Tensor:
        return single.score(x, sde.scale(t)[:, None], sde.std(t)[:, None])

    times = towards_data(200).flip(0)
    first, last = (((0.4 * sde.scale(t)).square() + sde.std(t).square()).sqrt() for t in (times[0], times[-1]))
    torch.testing.assert_close(follow(sde, score, X, times, solver=heun), X * last / first, atol=1e-3, rtol=0)


def test_the_mean_over_all_probes_is_the_exact_density() -> None:
    """The path does not depend on the probe, and the mean of vᵀJv over the four pairs of signs is the trace."""
    sde, times = variance_preserving(), towards_data(20).flip(0)
    probes = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64)
    guesses = [
        flow_log_prob(sde, exact(sde), X, times, divergence=partial(probed_divergence, probe=probe.expand_as(X)))
        for probe in probes
    ]
    torch.testing.assert_close(torch.stack(guesses).mean(0), flow_log_prob(sde, exact(sde), X, times))
    assert float((guesses[0] - guesses[1]).abs().max()) > 1e-3


def test_times_must_rise() -> None:
    sde = variance_preserving()
    with pytest.raises(ValueError, match="times must rise, from data to noise"):
        flow_log_prob(sde, exact(sde), X, towards_data(10))
