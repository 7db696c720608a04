"""Couplings with any synthesizer: inverses, log-determinants, densities that integrate to one."""

import pytest
import torch
from torch import nn
from torch.func import jacrev

from parnassus.flows import (
    AffineSynthesizer,
    Flow,
    GaussianBase,
    SplineSynthesizer,
    Synthesizer,
    SynthesizerCoupling,
    neural_spline_flow,
)
from parnassus.layers import mlp, tanh

SYNTHESIZERS = [AffineSynthesizer(), SplineSynthesizer(bins=4, bound=3.0)]


def make_coupling(tau: Synthesizer, kept: tuple[int, ...]) -> SynthesizerCoupling:
    torch.manual_seed(0)
    network = mlp((len(kept), 16, (5 - len(kept)) * tau.size), activation=tanh)
    return SynthesizerCoupling(network, kept, 5, tau).double()


@pytest.mark.parametrize("tau", SYNTHESIZERS)
@pytest.mark.parametrize("kept", [(0,), (1, 3), (4, 0, 2, 1)])
def test_coupling_keeps_coordinates_and_inverse_and_log_determinant_are_exact(
    tau: Synthesizer, kept: tuple[int, ...]
) -> None:
    layer = make_coupling(tau, kept)
    z = torch.randn(20, 5, dtype=torch.float64)
    x, log_det = layer(z)
    torch.testing.assert_close(x[:, list(kept)], z[:, list(kept)], rtol=0, atol=0)
    jacobian = jacrev(lambda point: layer(point[None])[0][0])(z[0])
    torch.testing.assert_close(torch.linalg.slogdet(jacobian).logabsdet, log_det[0])
    z_back, log_det_back = layer.inverse(x)
    torch.testing.assert_close(z_back, z, atol=1e-10, rtol=0)
    torch.testing.assert_close(log_det_back, -log_det, atol=1e-9, rtol=0)


def test_affine_synthesizer_gives_the_affine_coupling() -> None:
    """z′_rest = z_rest ⊙ exp(α) + β (book eq. 13.19)."""
    layer = make_coupling(AffineSynthesizer(), (0, 1, 2))
    z = torch.randn(6, 5, dtype=torch.float64)
    alpha, beta = layer.network(z[:, :3]).reshape(6, 2, 2).unbind(-1)
    torch.testing.assert_close(layer(z)[0][:, 3:], z[:, 3:] * alpha.exp() + beta)


def test_inverse_and_log_determinant_for_images() -> None:
    torch.manual_seed(1)
    tau = SplineSynthesizer(bins=3, bound=2.0)
    layer = SynthesizerCoupling(nn.Conv2d(2, 2 * tau.size, 3, padding=1), (1, 2), 4, tau).double()
    z = torch.randn(2, 4, 3, 3, dtype=torch.float64)
    x, log_det = layer(z)
    jacobian = jacrev(lambda image: layer(image[None])[0][0].flatten())(z[0]).reshape(36, 36)
    torch.testing.assert_close(torch.linalg.slogdet(jacobian).logabsdet, log_det[0])
    torch.testing.assert_close(layer.inverse(x)[0], z, atol=1e-10, rtol=0)


@pytest.mark.parametrize("tau", SYNTHESIZERS)
def test_density_integrates_to_one(tau: Synthesizer) -> None:
    torch.manual_seed(2)
    flow = Flow(
        neural_spline_flow(2, tau, num_layers=3, hidden_sizes=(16,), activation=tanh), GaussianBase((2,))
    ).double()
    line = torch.linspace(-12, 12, 301, dtype=torch.float64)
    with torch.no_grad():
        total = flow.log_prob(torch.cartesian_prod(line, line)).exp().sum() * (line[1] - line[0]) ** 2
    torch.testing.assert_close(float(total), 1.0, atol=2e-3, rtol=0)


def test_all_coordinates_are_transformed() -> None:
    z = torch.randn(4, 5)
    x, _ = neural_spline_flow(5)(z)
    assert (x != z).all()


def test_invalid_arguments_raise_value_error() -> None:
    for kept in ((), (0, 1), (2,)):
        with pytest.raises(ValueError, match="some, not all, of 2 coordinates"):
            SynthesizerCoupling(nn.Identity(), kept, 2, AffineSynthesizer())
    with pytest.raises(ValueError, match="must return 2 values for each of 1 coordinates; got 1 values"):
        SynthesizerCoupling(nn.Identity(), (0,), 2, AffineSynthesizer())(torch.randn(3, 2))
    with pytest.raises(ValueError, match="at least 2 and num_layers at least 1; got features=1"):
        neural_spline_flow(1)
