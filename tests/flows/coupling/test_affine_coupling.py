from itertools import pairwise
from typing import TypeVar

import pytest
import torch
from torch import Tensor, nn
from torch.func import jacrev, vmap

from parnassus.flows import AffineCoupling, AlternatingCouplings, Chain, Flow, GaussianBase, real_nvp, zero_last_layer
from parnassus.layers import mlp

Module = TypeVar("Module", bound=nn.Module)


def perturb_weights(module: Module) -> Module:
    """The same module in float64 with random weights, so that it is not the identity."""
    torch.manual_seed(0)
    for parameter in module.double().parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


def autograd_log_det(transform: nn.Module, z: Tensor) -> Tensor:
    """The logarithm of |det ∂x/∂z| of each example, by autograd."""

    def transform_flat(example: Tensor) -> Tensor:
        x: Tensor = transform(example.view(1, *z.shape[1:]))[0]
        return x.flatten()

    log_det: Tensor = torch.linalg.slogdet(vmap(jacrev(transform_flat))(z.flatten(1))).logabsdet
    return log_det


@pytest.mark.parametrize("kept", [[0, 1], [2, 3, 4], [0, 2, 4], [3, 0], [4]])
def test_inverse_and_log_determinant_of_a_coupling(kept: list[int]) -> None:
    rest = [i for i in range(5) if i not in kept]
    coupling = perturb_weights(AffineCoupling(nn.Linear(len(kept), 2 * len(rest)), kept, 5))
    z = torch.randn(8, 5, dtype=torch.float64)
    x, log_det = coupling(z)
    z_back, log_det_back = coupling.inverse(x)
    torch.testing.assert_close(z_back, z, atol=1e-12, rtol=0)
    torch.testing.assert_close(log_det_back, -log_det)
    torch.testing.assert_close(log_det, autograd_log_det(coupling, z))
    torch.testing.assert_close(x[:, kept], z[:, kept], atol=0, rtol=0)
    assert bool((x[:, rest] != z[:, rest]).any(0).all())


def test_inverse_and_log_determinant_of_an_image_coupling() -> None:
    coupling = perturb_weights(AffineCoupling(nn.Conv2d(2, 4, 3, padding=1), [0, 3], 4))
    z = torch.randn(3, 4, 2, 2, dtype=torch.float64)
    x, log_det = coupling(z)
    torch.testing.assert_close(coupling.inverse(x)[0], z, atol=1e-12, rtol=0)
    torch.testing.assert_close(log_det, autograd_log_det(coupling, z))


def test_coupling_matches_the_formula_of_the_book() -> None:
    """z'_2 = z_2 exp(3 tanh(a z_1)) + b z_1 with known values."""
    network = nn.Linear(1, 2, bias=False)
    coupling = AffineCoupling(network, [0], 2)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[0.5], [2.0]]))
        coupling.scale.fill_(3.0)
    x, log_det = coupling(torch.tensor([[1.0, -1.0]]))
    alpha = 3 * torch.tensor(0.5).tanh()
    torch.testing.assert_close(x, torch.stack([torch.tensor(1.0), 2 - alpha.exp()])[None])
    torch.testing.assert_close(log_det, alpha[None])


@pytest.mark.parametrize("features", [2, 3, 7])
def test_real_nvp_is_initially_the_identity_and_can_transform_all_coordinates(features: int) -> None:
    chain = real_nvp(features, num_layers=4, width=8, num_hidden_layers=1)
    z = torch.randn(6, features)
    x, log_det = chain(z)
    torch.testing.assert_close(x, z)
    torch.testing.assert_close(log_det, torch.zeros(6))
    perturb_weights(chain)
    states = list(chain.path(z.double()))
    for before, after in pairwise(states):
        assert 0 < int((before != after).any(0).sum()) < features
    assert bool((states[0] != states[2]).any(0).all())  # two couplings transform all coordinates
    torch.testing.assert_close(chain.inverse(chain(z.double())[0])[0], z.double(), atol=1e-10, rtol=0)


def test_all_parameters_receive_gradients_and_examples_are_independent() -> None:
    chain = perturb_weights(real_nvp(3, num_layers=3, width=8, num_hidden_layers=2)).float()
    flow, x = Flow(chain, GaussianBase((3,))), torch.randn(6, 3)
    flow.loss(x).backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in flow.parameters())
    torch.testing.assert_close(flow.log_prob(x)[2:3], flow.log_prob(x[2:3]))


def test_density_integrates_to_one() -> None:
    flow = Flow(perturb_weights(real_nvp(2, num_layers=2, width=8, num_hidden_layers=1)), GaussianBase((2,)).double())
    line = torch.linspace(-25, 25, 1_001, dtype=torch.float64)
    grid = torch.cartesian_prod(line, line)
    with torch.no_grad():
        mass = flow.log_prob(grid).exp().sum() * (line[1] - line[0]) ** 2
    assert float(mass) == pytest.approx(1.0, abs=1e-3)


def test_scale_is_bounded_for_any_network() -> None:
    coupling = AffineCoupling(nn.Linear(1, 2), [0], 2)
    with torch.no_grad():
        _, log_det = coupling(1e6 * torch.randn(100, 2))
    assert float(log_det.abs().max()) <= 1.0  # s is initially one


def test_network_with_zero_last_layer_outputs_zeros() -> None:
    network = zero_last_layer(nn.Sequential(nn.Linear(3, 5), nn.SiLU(), nn.Linear(5, 4)))
    torch.testing.assert_close(network(torch.randn(2, 3)), torch.zeros(2, 4))


def test_invalid_coupling_raises_value_error() -> None:
    for kept in ([], [0, 0], [0, 1, 2], [3], [-1]):
        with pytest.raises(ValueError, match=r"some, not all, of 3 coordinates, each once; got kept="):
            AffineCoupling(nn.Linear(1, 1), kept, 3)
    with pytest.raises(ValueError, match="two values for each of 2 coordinates; got 2 values"):
        AffineCoupling(nn.Linear(1, 2), [0], 3)(torch.randn(4, 3))
    with pytest.raises(ValueError, match="takes 3 coordinates; got 2"):
        AffineCoupling(nn.Linear(1, 4), [0], 3).inverse(torch.randn(4, 2))
    with pytest.raises(ValueError, match="features must be at least 2"):
        real_nvp(1)


@pytest.mark.parametrize("features", [2, 5])
def test_alternating_couplings_match_a_chain(features: int) -> None:
    alternating = perturb_weights(real_nvp(features, num_layers=3, width=8))
    chain, x = Chain(alternating), torch.randn(7, features, dtype=torch.float64)
    for actual, expected in ((alternating(x), chain(x)), (alternating.inverse(x), chain.inverse(x))):
        torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


def test_incompatible_alternating_couplings_raise_value_error() -> None:
    def make_coupling(kept: tuple[int, ...]) -> AffineCoupling:
        return AffineCoupling(mlp((len(kept), 2 * (4 - len(kept)))), kept, 4)

    for blocks in ((), ((0, 1), (0,)), ((0, 2), (1, 3))):
        with pytest.raises(ValueError, match="either of the same two blocks"):
            AlternatingCouplings(make_coupling(kept) for kept in blocks)
