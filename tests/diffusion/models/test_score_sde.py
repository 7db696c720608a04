"""The continuous-time score model with an exact network, under every SDE."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.diffusion.continuous.sde import (
    NoisingSDE,
    mixture_score,
    sub_variance_preserving,
    variance_exploding,
    variance_preserving,
)
from parnassus.diffusion.models.score_sde import (
    ScoreSDE,
    continuous_score_matching,
    likelihood_weight,
    noise_variance_weight,
    stratified_times,
)
from parnassus.diffusion.scores.gaussian_mixture import IsotropicMixture

MIXTURE = IsotropicMixture.from_components(
    torch.tensor([[-1.0, 0.5], [1.0, 0.0]]).double(), torch.tensor([0.3, 0.5]).double()
)
SDES = [variance_preserving(), sub_variance_preserving(), variance_exploding(0.01, 50.0)]


class Oracle(nn.Module):
    """The exact ε for the mixture as a function of the log signal-to-noise ratio, with a² + b² = 1."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1, dtype=torch.float64))

    def forward(self, x: Tensor, level: Tensor) -> Tensor:
        a, b = level.sigmoid().sqrt()[:, None], (-level).sigmoid().sqrt()[:, None]
        return -b * MIXTURE.score(x, a, b)


@pytest.mark.parametrize("sde", SDES)
def test_exact_network_gives_the_exact_score(sde: NoisingSDE) -> None:
    torch.manual_seed(0)
    model = ScoreSDE(Oracle(), (2,), variance_preserving()).with_sde(sde)
    x, t = 2 * torch.randn(20, 2, dtype=torch.float64), torch.linspace(0.1, 1, 20, dtype=torch.float64)
    torch.testing.assert_close(model.score(x, t), mixture_score(MIXTURE, sde)(x, t))


@pytest.mark.parametrize("sde", SDES)
def test_samples_and_log_prob_match_the_data(sde: NoisingSDE) -> None:
    torch.manual_seed(0)
    model = ScoreSDE(Oracle(), (2,), sde)
    x, _ = MIXTURE.sample(50)
    torch.testing.assert_close(model.log_prob(x, steps=40), MIXTURE.log_prob(x), atol=0.03, rtol=0)
    entropy = float(-MIXTURE.log_prob(MIXTURE.sample(20_000)[0]).mean())
    for samples in (model.sample(2_000, steps=150), model.sample_flow(2_000, steps=25)):
        assert float(-MIXTURE.log_prob(samples).mean()) == pytest.approx(entropy, abs=0.08)
        torch.testing.assert_close(samples.mean(0), torch.tensor([0.0, 0.25]).double(), atol=0.1, rtol=0)


def test_score_error_increases_the_loss() -> None:
    """An error d of the score increases the mean loss by λ ‖d‖²."""
    torch.manual_seed(0)
    sde = variance_preserving()
    x0, _ = MIXTURE.sample(50_000)
    t = torch.full((50_000,), 0.3, dtype=torch.float64)
    noise = torch.randn_like(x0)
    exact_score = mixture_score(MIXTURE, sde)
    for weight in (noise_variance_weight, likelihood_weight):
        loss = continuous_score_matching(exact_score, sde, x0, t, noise, weight=weight)
        perturbed_loss = continuous_score_matching(
            lambda x, t: exact_score(x, t) + 0.5, sde, x0, t, noise, weight=weight
        )
        torch.testing.assert_close((perturbed_loss - loss).mean(), 0.5 * weight(sde, t)[0], rtol=0.03, atol=0)


def test_noise_variance_weight_gives_the_noise_error() -> None:
    torch.manual_seed(0)
    sde, x0, noise = sub_variance_preserving(), torch.randn(6, 3).double(), torch.randn(6, 3).double()
    t = torch.linspace(0.1, 1, 6, dtype=torch.float64)
    predicted = torch.randn(6, 3).double()
    loss = continuous_score_matching(lambda x, t: -predicted / sde.std(t)[:, None], sde, x0, t, noise)
    torch.testing.assert_close(loss, (predicted - noise).square().sum(1))


def test_stratified_times_have_one_value_per_stratum() -> None:
    times = stratified_times(100, 0.2)
    strata = ((times - 0.2) / 0.8 * 100).floor().sort().values
    torch.testing.assert_close(strata, torch.arange(100.0))


def test_all_parameters_receive_gradients() -> None:
    model = ScoreSDE(LinearNetwork(), (2,), variance_preserving())
    model.loss(torch.randn(8, 2)).backward()
    assert all(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in model.parameters())


class LinearNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor, level: Tensor) -> Tensor:
        out: Tensor = self.layer(torch.cat([x, level[:, None]], 1))
        return out
