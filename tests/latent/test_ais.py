"""Annealed importance sampling against integrals in closed form."""

from math import log

import pytest
import torch
from torch import Tensor
from torch.distributions import Distribution, Independent, MultivariateNormal, Normal

from parnassus.latent.ais import (
    Annealed,
    ReverseAnnealed,
    anneal,
    annealed_evidence,
    annealed_log_partition,
    geometric_path,
    rehearsed_step_sizes,
    reverse_anneal,
    reverse_annealed_evidence,
    sigmoid_times,
)
from parnassus.latent.hmc import LogDensity
from parnassus.latent.rbm import RBM

W = torch.tensor([[1.0, 0.5], [-0.3, 0.8], [0.2, -1.1]], dtype=torch.float64)
NOISE = 0.5


def prior(rows: int) -> Distribution:
    return Independent(Normal(torch.zeros(rows, 2, dtype=torch.float64), 1.0), 1)


def data(rows: int) -> tuple[Tensor, Tensor]:
    """Codes and what is seen of them; each code is a draw of its own posterior."""
    torch.manual_seed(1)
    z: Tensor = prior(rows).sample()
    return z, z @ W.mT + NOISE * torch.randn(rows, 3, dtype=torch.float64)


def log_joint(x: Tensor) -> LogDensity:
    def of(z: Tensor) -> Tensor:
        log_p: Tensor = Independent(Normal(z @ W.mT, NOISE), 1).log_prob(x) + prior(len(x)).log_prob(z)
        return log_p

    return of


def exact(x: Tensor) -> Tensor:
    covariance = W @ W.mT + NOISE**2 * torch.eye(3, dtype=torch.float64)
    found: Tensor = MultivariateNormal(torch.zeros(3, dtype=torch.float64), covariance).log_prob(x)
    return found


def test_the_evidence_of_a_linear_gaussian_model() -> None:
    _, x = data(4)
    found = annealed_evidence(log_joint(x), prior(4), chains=60, times=50, leaps=4)
    assert bool(((found.estimate - exact(x)).abs() < 4 * found.spread).all())
    assert bool((found.spread < 0.25).all())


def test_lower_and_upper_bounds_close_in_as_the_walk_slows() -> None:
    z, x = data(30)
    gaps = []
    for times in (6, 40):
        lower = annealed_evidence(log_joint(x), prior(30), chains=1, times=times, leaps=3).estimate.mean()
        upper = reverse_annealed_evidence(log_joint(x), prior(30), z[None], times=times, leaps=3).estimate.mean()
        assert float(lower) < float(exact(x).mean()) < float(upper)
        gaps.append(float(upper - lower))
    assert gaps[1] < gaps[0] / 3


def test_a_start_at_the_posterior_needs_no_walk() -> None:
    _, x = data(3)
    precision = torch.eye(2, dtype=torch.float64) + W.mT @ W / NOISE**2
    posterior = MultivariateNormal(x @ W @ precision.inverse() / NOISE**2, precision_matrix=precision)
    found = annealed_evidence(log_joint(x), posterior, chains=3, times=2)
    torch.testing.assert_close(found.log_weights, exact(x).expand(3, -1))


def test_the_log_partition_of_a_small_machine() -> None:
    torch.manual_seed(0)
    rbm = RBM(8, 5).double()
    for parameter in rbm.parameters():
        torch.nn.init.normal_(parameter)
    for base in (None, torch.zeros(8).double()):
        found = annealed_log_partition(rbm, chains=200, times=300, base=base)
        assert float((found.estimate - rbm.log_partition().detach()).abs()) < 4 * float(found.spread)
        assert float(found.spread) < 0.1


def test_a_machine_without_weights_is_known_exactly() -> None:
    rbm = RBM(6, 3).double()
    with torch.no_grad():
        rbm.weight.zero_()
        rbm.visible_bias.fill_(0.7)
    torch.testing.assert_close(annealed_log_partition(rbm, chains=5, times=3).estimate, rbm.log_partition().detach())


def test_weights_of_a_single_jump_are_those_of_importance_sampling() -> None:
    def still(x: Tensor, _t: float, _number: int) -> Tensor:
        return x

    path = geometric_path(lambda x: -x[:, 0], lambda x: -3 * x[:, 0])
    x = torch.tensor([[0.5], [2.0]])
    times = torch.tensor([0.0, 1.0])
    torch.testing.assert_close(anneal(path, still, x, times).log_weights, torch.tensor([-1.0, -4.0]))
    torch.testing.assert_close(reverse_anneal(path, still, x, times).log_weights, torch.tensor([1.0, 4.0]))


def test_what_weights_are_worth() -> None:
    equal, one = Annealed(torch.zeros(8)), Annealed(torch.tensor([0.0, -100.0, -100.0, -100.0]))
    assert float(equal.effective) == pytest.approx(8)
    assert float(equal.spread) == pytest.approx(0, abs=1e-3)
    assert float(one.effective) == pytest.approx(1)
    assert float(one.estimate) == pytest.approx(-log(4))
    assert float(ReverseAnnealed(torch.tensor([0.0, -100.0])).estimate) == pytest.approx(log(2))


def test_step_sizes_settle_where_most_paths_are_accepted() -> None:
    """A density a hundred times narrower for the second row wants leaps a hundred times shorter."""
    width = torch.tensor([1.0, 0.01], dtype=torch.float64)

    def path(z: Tensor, _t: float) -> Tensor:
        return -(z / width[:, None]).square().sum(-1) / 2

    torch.manual_seed(0)
    start = width[:, None] * torch.randn(20, 2, 3, dtype=torch.float64)
    sizes = rehearsed_step_sizes(path, start, sigmoid_times(200), leaps=5)[-1]
    assert 50 < float(sizes[0] / sizes[1]) < 200


def test_times_rise_from_zero_to_one() -> None:
    times = sigmoid_times(50)
    assert times[0] == 0
    assert times[-1] == 1
    assert float(times.diff().min()) > 0
    with pytest.raises(ValueError, match="at least one step; got count=0"):
        sigmoid_times(0)


@pytest.mark.parametrize("times", [[0.0], [0.0, 0.5], [0.1, 1.0], [0.0, 0.7, 0.4, 1.0]])
def test_times_that_lead_elsewhere_are_refused(times: list[float]) -> None:
    path = geometric_path(lambda x: x[:, 0], lambda x: x[:, 0])
    with pytest.raises(ValueError, match="rise from 0 to 1; got"):
        anneal(path, lambda x, _t, _n: x, torch.zeros(2, 1), torch.tensor(times))
