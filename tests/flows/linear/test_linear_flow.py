"""Linear flows are Gaussians, and permutations move places only."""

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


def flows() -> list[LinearFlow]:
    source = torch.Generator().manual_seed(0)
    start = torch.randn(4, 4, generator=source, dtype=torch.float64)
    lower = start.tril(-1) + torch.eye(4, dtype=torch.float64)
    matrices = [DenseMatrix(start), TriangularMatrix(lower), PLUMatrix(start), HouseholderMatrix(start)]
    made = [LinearFlow(matrix).double() for matrix in matrices]
    for flow in made:
        nn.init.normal_(flow.shift, generator=source)
    return made


@pytest.mark.parametrize("index", range(4))
def test_the_jacobian_is_the_matrix_everywhere(index: int) -> None:
    torch.manual_seed(0)
    flow, z = flows()[index], torch.randn(20, 4, dtype=torch.float64)
    x, log_det = flow(z)
    jacobians = torch.stack([jacrev(lambda point: flow(point[None])[0][0])(point) for point in z[:3]])
    torch.testing.assert_close(jacobians, jacobians[:1].expand(3, -1, -1))
    truth = torch.linalg.slogdet(jacobians[0]).logabsdet
    torch.testing.assert_close(log_det, truth.expand(20), atol=1e-12, rtol=1e-12)
    back, log_det_back = flow.inverse(x)
    torch.testing.assert_close(back, z, atol=1e-10, rtol=0)
    torch.testing.assert_close(log_det_back, -log_det)


@pytest.mark.parametrize("index", range(4))
def test_over_a_normal_base_it_is_the_normal_of_covariance_w_wt(index: int) -> None:
    linear = flows()[index]
    flow = Flow(linear, GaussianBase((4,)).double())
    w = jacrev(lambda point: linear(point[None])[0][0])(torch.zeros(4, dtype=torch.float64)).detach()
    truth = MultivariateNormal(linear.shift.detach(), w @ w.mT)
    torch.manual_seed(1)
    x = truth.sample((50,))
    torch.testing.assert_close(flow.log_prob(x).detach(), truth.log_prob(x))


def test_a_permutation_is_undone_by_its_inverse_order_and_not_by_itself() -> None:
    moved = Permutation([2, 0, 1, 3])
    z = torch.randn(5, 4, 2, 2)
    x, log_det = moved(z)
    torch.testing.assert_close(x[:, 0], z[:, 2])
    torch.testing.assert_close(moved.inverse(x)[0], z, rtol=0, atol=0)
    assert not torch.equal(moved(x)[0], z)
    assert not log_det.any()


def test_reversing_and_random_orders() -> None:
    assert Permutation.reversal(3).order.tolist() == [2, 1, 0]
    drawn = [Permutation.random(8, generator=torch.Generator().manual_seed(seed)).order.tolist() for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_random_order_comes_back_with_the_weights() -> None:
    saved, other = (Permutation.random(9, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    other.load_state_dict(saved.state_dict())
    z = torch.randn(3, 9)
    torch.testing.assert_close(other(z)[0], saved(z)[0], rtol=0, atol=0)
    torch.testing.assert_close(other.inverse(saved(z)[0])[0], z, rtol=0, atol=0)


def test_invalid_arguments_raise_an_error() -> None:
    with pytest.raises(ValueError, match="multiply, solve and log_abs_det; got Linear"):
        LinearFlow(nn.Linear(2, 2))
    with pytest.raises(ValueError, match=r"a permutation of 0 … D − 1; got order=\(0, 2\)"):
        Permutation([0, 2])
    with pytest.raises(ValueError, match=r"got order=\(\)"):
        Permutation([])


def test_single_precision_comes_back_to_five_digits() -> None:
    torch.manual_seed(0)
    flow, z = LinearFlow(PLUMatrix(random_rotation(32))), torch.randn(100, 32)
    torch.testing.assert_close(flow.inverse(flow(z)[0])[0], z, atol=1e-5, rtol=0)
