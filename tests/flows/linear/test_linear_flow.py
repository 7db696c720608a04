"""Linear flows are Gaussians; permutations change the order of coordinates only."""

import pytest
import torch
from torch import nn
from torch.distributions import MultivariateNormal
from torch.func import jacrev

from parnassus.flows import (
    DenseMatrix,
    Flow,
    GaussianBase,
    HouseholderMatrix,
    LinearFlow,
    Permutation,
    PLUMatrix,
    TriangularMatrix,
    random_rotation,
)


def make_flows() -> list[LinearFlow]:
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    lower = matrix.tril(-1) + torch.eye(4, dtype=torch.float64)
    matrices = [DenseMatrix(matrix), TriangularMatrix(lower), PLUMatrix(matrix), HouseholderMatrix(matrix)]
    flows = [LinearFlow(matrix).double() for matrix in matrices]
    for flow in flows:
        nn.init.normal_(flow.shift, generator=generator)
    return flows


@pytest.mark.parametrize("index", range(4))
def test_jacobian_is_constant_and_log_determinant_matches_autograd(index: int) -> None:
    torch.manual_seed(0)
    flow, z = make_flows()[index], torch.randn(20, 4, dtype=torch.float64)
    x, log_det = flow(z)
    jacobians = torch.stack([jacrev(lambda point: flow(point[None])[0][0])(point) for point in z[:3]])
    torch.testing.assert_close(jacobians, jacobians[:1].expand(3, -1, -1))
    expected = torch.linalg.slogdet(jacobians[0]).logabsdet
    torch.testing.assert_close(log_det, expected.expand(20), atol=1e-12, rtol=1e-12)
    z_back, log_det_back = flow.inverse(x)
    torch.testing.assert_close(z_back, z, atol=1e-10, rtol=0)
    torch.testing.assert_close(log_det_back, -log_det)


@pytest.mark.parametrize("index", range(4))
def test_linear_flow_with_normal_base_is_a_gaussian(index: int) -> None:
    linear = make_flows()[index]
    flow = Flow(linear, GaussianBase((4,)).double())
    w = jacrev(lambda point: linear(point[None])[0][0])(torch.zeros(4, dtype=torch.float64)).detach()
    reference = MultivariateNormal(linear.shift.detach(), w @ w.mT)
    torch.manual_seed(1)
    x = reference.sample((50,))
    torch.testing.assert_close(flow.log_prob(x).detach(), reference.log_prob(x))


def test_permutation_and_inverse() -> None:
    permutation = Permutation([2, 0, 1, 3])
    z = torch.randn(5, 4, 2, 2)
    x, log_det = permutation(z)
    torch.testing.assert_close(x[:, 0], z[:, 2])
    torch.testing.assert_close(permutation.inverse(x)[0], z, rtol=0, atol=0)
    assert not torch.equal(permutation(x)[0], z)
    assert not log_det.any()


def test_reversal_and_random_permutations() -> None:
    assert Permutation.reversal(3).order.tolist() == [2, 1, 0]
    orders = [Permutation.random(8, generator=torch.Generator().manual_seed(seed)).order.tolist() for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]


def test_state_dict_contains_the_order() -> None:
    saved, other = (Permutation.random(9, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    other.load_state_dict(saved.state_dict())
    z = torch.randn(3, 9)
    torch.testing.assert_close(other(z)[0], saved(z)[0], rtol=0, atol=0)
    torch.testing.assert_close(other.inverse(saved(z)[0])[0], z, rtol=0, atol=0)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="multiply, solve and log_abs_det; got Linear"):
        LinearFlow(nn.Linear(2, 2))
    with pytest.raises(ValueError, match=r"a permutation of 0 … D − 1; got order=\(0, 2\)"):
        Permutation([0, 2])
    with pytest.raises(ValueError, match=r"got order=\(\)"):
        Permutation([])


def test_inverse_is_accurate_in_float32() -> None:
    torch.manual_seed(0)
    flow, z = LinearFlow(PLUMatrix(random_rotation(32))), torch.randn(100, 32)
    torch.testing.assert_close(flow.inverse(flow(z)[0])[0], z, atol=1e-5, rtol=0)
