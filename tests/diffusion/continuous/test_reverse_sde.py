"""The reverse SDE with exact scores samples the data distribution for any η."""

import pytest
import torch

from parnassus.diffusion.continuous.reverse_sde import denoise, reverse_sde, reverse_sde_path, sample_prior
from parnassus.diffusion.continuous.sde import (
    mixture_score,
    sub_variance_preserving,
    variance_preserving,
)
from parnassus.diffusion.continuous.time_grids import reverse_times
from parnassus.diffusion.scores.gaussian_mixture import IsotropicMixture

MIXTURE = IsotropicMixture.from_components(
    torch.tensor([[-1.0], [1.5]]).double(), torch.tensor([0.3, 0.5]).double(), torch.tensor([0.7, 0.3]).double()
)


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0, 1.5])
def test_samples_follow_the_data_for_any_eta(eta: float) -> None:
    torch.manual_seed(0)
    sde = sub_variance_preserving()
    x = reverse_sde(
        sde, mixture_score(MIXTURE, sde), sample_prior(sde, (4_000, 1), like=MIXTURE.means), reverse_times(150), eta=eta
    )
    assert float(x.mean()) == pytest.approx(-0.25, abs=0.08)
    assert float(x.std()) == pytest.approx((0.7 * 0.09 + 0.3 * 0.25 + 0.21 * 2.5**2) ** 0.5, abs=0.04)
    assert float((x < 0.1).double().mean()) == pytest.approx(0.7, abs=0.03)


def test_point_mass_is_recovered_exactly() -> None:
    """The last step removes the remaining noise."""
    torch.manual_seed(0)
    sde = variance_preserving()
    point = IsotropicMixture.from_components(torch.tensor([[2.0, -1.0]]).double(), torch.zeros(1).double())
    x = reverse_sde(sde, mixture_score(point, sde), sample_prior(sde, (50, 2), like=point.means), reverse_times(50))
    torch.testing.assert_close(x, point.means.expand(50, 2))


def test_denoise_gives_the_posterior_mean() -> None:
    sde, t = variance_preserving(), torch.tensor(0.3, dtype=torch.float64)
    x = torch.tensor([[-1.0], [0.2], [2.0]], dtype=torch.float64)
    x0 = torch.linspace(-6, 6, 6_001, dtype=torch.float64)[:, None]
    likelihood = torch.exp(-((x - sde.scale(t) * x0.mT) / sde.std(t)).square() / 2)
    weight = likelihood * MIXTURE.log_prob(x0).exp()
    torch.testing.assert_close(
        denoise(sde, mixture_score(MIXTURE, sde), x, t), weight @ x0 / weight.sum(1, keepdim=True)
    )


def test_path_has_one_state_per_time() -> None:
    sde = variance_preserving()
    start = torch.randn(5, 1, dtype=torch.float64)
    path = list(reverse_sde_path(sde, mixture_score(MIXTURE, sde), start, reverse_times(7), eta=0.0))
    assert len(path) == 8
    torch.testing.assert_close(path[0], start)
    end = denoise(sde, mixture_score(MIXTURE, sde), path[-1], reverse_times(7)[-1])
    torch.testing.assert_close(end, reverse_sde(sde, mixture_score(MIXTURE, sde), start, reverse_times(7), eta=0.0))


def test_invalid_arguments_raise_value_error() -> None:
    sde, start = variance_preserving(), torch.zeros(2, 1, dtype=torch.float64)
    with pytest.raises(ValueError, match="decrease strictly"):
        reverse_sde(sde, mixture_score(MIXTURE, sde), start, reverse_times(3).flip(0))
    with pytest.raises(ValueError, match="eta must be ≥ 0; got eta="):
        reverse_sde(sde, mixture_score(MIXTURE, sde), start, reverse_times(3), eta=-1.0)
