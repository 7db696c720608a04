"""Annealed importance sampling compared with exact evidence."""

from math import log

import pytest
import torch
from torch import Tensor
from torch.distributions import Distribution, Independent, MultivariateNormal, Normal

from parnassus.latent.energy_based.restricted_boltzmann_machine import RBM
from parnassus.latent.likelihood_estimation.annealed_importance_sampling import (
    AISEstimate,
    ReverseAISEstimate,
    ais_log_evidence,
    ais_log_partition,
    anneal,
    geometric_path,
    reverse_ais_log_evidence,
    reverse_anneal,
    sigmoid_inverse_temperatures,
    tune_step_sizes,
)
from parnassus.probability.inference.importance_sampling import LogDensity

W = torch.tensor([[1.0, 0.5], [-0.3, 0.8], [0.2, -1.1]], dtype=torch.float64)
NOISE = 0.5


def prior(rows: int) -> Distribution:
    return Independent(Normal(torch.zeros(rows, 2, dtype=torch.float64), 1.0), 1)


def data(rows: int) -> tuple[Tensor, Tensor]:
    """Codes and observations from the joint distribution."""
    torch.manual_seed(1)
    z: Tensor = prior(rows).sample()
    return z, z @ W.mT + NOISE * torch.randn(rows, 3, dtype=torch.float64)


def log_joint(x: Tensor) -> LogDensity:
    def log_density(z: Tensor) -> Tensor:
        log_p: Tensor = Independent(Normal(z @ W.mT, NOISE), 1).log_prob(x) + prior(len(x)).log_prob(z)
        return log_p

    return log_density


def exact_log_evidence(x: Tensor) -> Tensor:
    covariance = W @ W.mT + NOISE**2 * torch.eye(3, dtype=torch.float64)
    log_prob: Tensor = MultivariateNormal(torch.zeros(3, dtype=torch.float64), covariance).log_prob(x)
    return log_prob


def test_log_evidence_of_a_linear_gaussian_model() -> None:
    _, x = data(4)
    result = ais_log_evidence(log_joint(x), prior(4), num_chains=60, num_temperatures=50, num_leapfrog_steps=4)
    assert bool(((result.estimate - exact_log_evidence(x)).abs() < 4 * result.standard_error).all())
    assert bool((result.standard_error < 0.25).all())


def test_lower_and_upper_bounds_tighten_with_more_temperatures() -> None:
    z, x = data(30)
    gaps = []
    for num_temperatures in (6, 40):
        lower = ais_log_evidence(
            log_joint(x), prior(30), num_chains=1, num_temperatures=num_temperatures, num_leapfrog_steps=3
        ).estimate.mean()
        upper = reverse_ais_log_evidence(
            log_joint(x), prior(30), z[None], num_temperatures=num_temperatures, num_leapfrog_steps=3
        ).estimate.mean()
        assert float(lower) < float(exact_log_evidence(x).mean()) < float(upper)
        gaps.append(float(upper - lower))
    assert gaps[1] < gaps[0] / 3


def test_starting_from_the_posterior_is_exact() -> None:
    _, x = data(3)
    precision = torch.eye(2, dtype=torch.float64) + W.mT @ W / NOISE**2
    posterior = MultivariateNormal(x @ W @ precision.inverse() / NOISE**2, precision_matrix=precision)
    result = ais_log_evidence(log_joint(x), posterior, num_chains=3, num_temperatures=2)
    torch.testing.assert_close(result.log_weights, exact_log_evidence(x).expand(3, -1))


def test_log_partition_of_a_small_rbm() -> None:
    torch.manual_seed(0)
    rbm = RBM(8, 5).double()
    for parameter in rbm.parameters():
        torch.nn.init.normal_(parameter)
    for base in (None, torch.zeros(8).double()):
        result = ais_log_partition(rbm, num_chains=200, num_temperatures=300, base=base)
        assert float((result.estimate - rbm.log_partition().detach()).abs()) < 4 * float(result.standard_error)
        assert float(result.standard_error) < 0.1


def test_log_partition_of_an_rbm_without_weights_is_exact() -> None:
    rbm = RBM(6, 3).double()
    with torch.no_grad():
        rbm.weight.zero_()
        rbm.visible_bias.fill_(0.7)
    torch.testing.assert_close(
        ais_log_partition(rbm, num_chains=5, num_temperatures=3).estimate, rbm.log_partition().detach()
    )


def test_one_step_is_importance_sampling() -> None:
    def identity_kernel(x: Tensor, _beta: float, _number: int) -> Tensor:
        return x

    path = geometric_path(lambda x: -x[:, 0], lambda x: -3 * x[:, 0])
    x = torch.tensor([[0.5], [2.0]])
    betas = torch.tensor([0.0, 1.0])
    torch.testing.assert_close(anneal(path, identity_kernel, x, betas).log_weights, torch.tensor([-1.0, -4.0]))
    torch.testing.assert_close(reverse_anneal(path, identity_kernel, x, betas).log_weights, torch.tensor([1.0, 4.0]))


def test_effective_sample_size_and_standard_error() -> None:
    equal, dominated = AISEstimate(torch.zeros(8)), AISEstimate(torch.tensor([0.0, -100.0, -100.0, -100.0]))
    assert float(equal.effective_sample_size) == pytest.approx(8)
    assert float(equal.standard_error) == pytest.approx(0, abs=1e-3)
    assert float(dominated.effective_sample_size) == pytest.approx(1)
    assert float(dominated.estimate) == pytest.approx(-log(4))
    assert float(ReverseAISEstimate(torch.tensor([0.0, -100.0])).estimate) == pytest.approx(log(2))


def test_tuned_step_sizes_scale_with_the_width_of_the_density() -> None:
    """The density of the second row is a hundred betas narrower."""
    width = torch.tensor([1.0, 0.01], dtype=torch.float64)

    def path(z: Tensor, _beta: float) -> Tensor:
        return -(z / width[:, None]).square().sum(-1) / 2

    torch.manual_seed(0)
    start = width[:, None] * torch.randn(20, 2, 3, dtype=torch.float64)
    sizes = tune_step_sizes(path, start, sigmoid_inverse_temperatures(200), num_leapfrog_steps=5)[-1]
    assert 50 < float(sizes[0] / sizes[1]) < 200


def test_inverse_temperatures_increase_from_zero_to_one() -> None:
    betas = sigmoid_inverse_temperatures(50)
    assert betas[0] == 0
    assert betas[-1] == 1
    assert float(betas.diff().min()) > 0
    with pytest.raises(ValueError, match="count must be positive; got count=0"):
        sigmoid_inverse_temperatures(0)


@pytest.mark.parametrize("betas", [[0.0], [0.0, 0.5], [0.1, 1.0], [0.0, 0.7, 0.4, 1.0]])
def test_invalid_inverse_temperatures_raise(betas: list[float]) -> None:
    path = geometric_path(lambda x: x[:, 0], lambda x: x[:, 0])
    with pytest.raises(ValueError, match="increase from 0 to 1; got"):
        anneal(path, lambda x, _t, _n: x, torch.zeros(2, 1), torch.tensor(betas))
