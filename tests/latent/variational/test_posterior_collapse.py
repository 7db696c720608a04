"""Free bits and KL annealing schedules."""

import pytest
import torch

from parnassus.latent.variational.aggregated_posterior import rate_per_unit
from parnassus.latent.variational.decoders import BernoulliDecoder
from parnassus.latent.variational.elbo import NegativeELBO
from parnassus.latent.variational.posterior_collapse import FreeBits, cyclical_kl_annealing, linear_kl_annealing
from parnassus.latent.variational.vae import VAE
from parnassus.layers import mlp


def small_vae() -> VAE:
    torch.manual_seed(0)
    return VAE(mlp((6, 8, 6)), BernoulliDecoder(mlp((3, 8, 6))), 3)


X = (torch.arange(54).view(9, 6) % 5 > 2).float()


def test_free_bits_with_floor_zero_is_the_negative_elbo() -> None:
    model = small_vae()
    torch.manual_seed(1)
    loss = FreeBits(0.0)(model, X).mean()
    torch.manual_seed(1)
    torch.testing.assert_close(loss, NegativeELBO()(model, X).mean())


def test_free_bits_clamps_the_rate_of_each_unit() -> None:
    model = small_vae()
    rates = rate_per_unit(*model.posterior_parameters(X)).detach()
    floor = float(rates.sort().values[:2].mean())  # between the smallest and the next
    torch.manual_seed(1)
    loss = FreeBits(floor)(model, X).mean().detach()
    torch.manual_seed(1)
    distortion = model.terms(X).distortion.mean().detach()
    assert float(loss - distortion) == pytest.approx(floor + float(rates.sum() - rates.min()), rel=1e-4)


def test_rate_below_the_floor_has_no_gradient() -> None:
    for floor, is_equal in ((100.0, True), (0.0, False)):
        gradients = []
        for objective in (FreeBits(floor), NegativeELBO(0.0)):
            model = small_vae()
            torch.manual_seed(1)
            gradients.append(
                torch.autograd.grad(objective(model, X).mean(), model.get_parameter("encoder.0.weight"))[0]
            )
        assert torch.allclose(gradients[0], gradients[1], atol=1e-7) is is_equal


def test_linear_kl_annealing() -> None:
    assert [linear_kl_annealing(step, 10) for step in (0, 5, 10, 400)] == [0.0, 0.5, 1.0, 1.0]
    assert linear_kl_annealing(5, 10, end=4.0) == 2.0


def test_cyclical_kl_annealing() -> None:
    assert [cyclical_kl_annealing(step, 10) for step in (0, 1, 5, 9, 10, 11)] == [0.0, 0.2, 1.0, 1.0, 0.0, 0.2]
    assert cyclical_kl_annealing(19, 10, ramp_fraction=1.0) == pytest.approx(0.9)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="floor must not be negative; got floor=-1"):
        FreeBits(-1.0)
    with pytest.raises(ValueError, match="got step=-1, num_steps=10"):
        linear_kl_annealing(-1, 10)
    with pytest.raises(ValueError, match="got step=0, num_steps=0"):
        cyclical_kl_annealing(0, 0)
    with pytest.raises(ValueError, match=r"must lie in \(0, 1\]; got ramp_fraction=0"):
        cyclical_kl_annealing(0, 10, ramp_fraction=0.0)
