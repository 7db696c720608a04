from itertools import islice

import pytest
import torch
from torch import Tensor, nn

from parnassus.flows.residual.lipschitz_networks import (
    SpectralBound,
    constrain_lipschitz,
    contractive_mlp,
    fixed_point_iterates,
    invert_residual,
    lipschitz_swish,
    spectral_norm,
)


def test_derivative_of_the_swish_is_at_most_one() -> None:
    x = torch.linspace(-30, 30, 600_001, dtype=torch.float64, requires_grad=True)
    (derivative,) = torch.autograd.grad(lipschitz_swish(x).sum(), x)
    assert abs(float(derivative.max()) - 1) < 1e-9
    assert float(derivative.min()) > -0.1


def test_only_large_weights_are_rescaled() -> None:
    torch.manual_seed(0)
    bound, weight = SpectralBound(0.5), torch.randn(8, 5, dtype=torch.float64)
    torch.testing.assert_close(spectral_norm(bound(weight)), torch.tensor(0.5, dtype=torch.float64))
    small = 0.01 * weight
    assert torch.equal(bound(small), small)
    zero = torch.zeros(3, 3, requires_grad=True)
    bound(zero).sum().backward()
    assert zero.grad is not None
    assert bool(zero.grad.isfinite().all())


@torch.no_grad()
def test_spectral_norm_bounds_the_norm_of_a_convolution() -> None:
    """Against the largest singular value of the linear map on images of 6 × 6."""
    torch.manual_seed(0)
    layer = nn.Conv2d(2, 3, 3, padding=1, bias=False).double()
    units = torch.eye(2 * 36, dtype=torch.float64).view(-1, 2, 6, 6)
    exact = torch.linalg.matrix_norm(layer(units).flatten(1), ord=2)
    bound = spectral_norm(layer.weight)
    assert float(exact) <= float(bound) <= 3 * float(exact)
    constrain_lipschitz(nn.Sequential(layer), 0.7)
    assert float(torch.linalg.matrix_norm(layer(units).flatten(1), ord=2)) <= 0.7


@pytest.mark.parametrize("first_layer_gain", [1.0, 5.0])
@torch.no_grad()
def test_contractive_mlp_is_a_contraction_for_any_weights(first_layer_gain: float) -> None:
    torch.manual_seed(0)
    network = contractive_mlp((3, 32, 32, 3), lipschitz=0.8, first_layer_gain=first_layer_gain).double()
    for parameter in network.parameters():
        parameter.copy_(5 * torch.randn_like(parameter))
    near = torch.randn(2_000, 3, dtype=torch.float64)
    far = near + torch.randn_like(near) * torch.rand(len(near), 1)
    ratios = (network(near) - network(far)).norm(dim=1) / (near - far).norm(dim=1)
    assert float(ratios.max()) <= 0.8
    first = network[0].weight
    assert isinstance(first, Tensor)
    torch.testing.assert_close(spectral_norm(first), torch.tensor(first_layer_gain * 0.8 ** (1 / 3)).double())


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_fixed_point_iteration_inverts_a_residual_map(dtype: torch.dtype, atol: float) -> None:
    torch.manual_seed(0)
    network = contractive_mlp((3, 32, 3), lipschitz=0.9).to(dtype)
    z = 3 * torch.randn(50, 3, dtype=dtype)
    torch.testing.assert_close(invert_residual(network, z + network(z)), z, rtol=0, atol=atol)
    assert invert_residual(network, z[:0]).shape == (0, 3)


def test_error_of_a_linear_branch_decreases_geometrically() -> None:
    """For g(z) = c R z with a rotation R the error decreases by exactly c per iteration."""
    rotation = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)

    def branch(z: Tensor) -> Tensor:
        return 0.6 * z @ rotation.mT

    x = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    z = torch.linalg.solve(torch.eye(2, dtype=torch.float64) + 0.6 * rotation, x[0])
    errors = torch.stack([(state[0] - z).norm() for state in islice(fixed_point_iterates(branch, x), 12)])
    torch.testing.assert_close(errors[1:] / errors[:-1], torch.full((11,), 0.6, dtype=torch.float64))


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"must be a contraction .*, 1.5 times the one before"):
        invert_residual(lambda z: -1.5 * z + 1, torch.randn(4, 2))
    with pytest.raises(ValueError, match="must be positive; got bound=0"):
        SpectralBound(0.0)
    with pytest.raises(ValueError, match=r"a layer with a weight, .* got 0 layers, lipschitz=0\.5"):
        constrain_lipschitz(nn.Sequential(nn.Tanh()), 0.5)
