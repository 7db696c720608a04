"""Full-matrix AdaGrad and its inverse matrix root."""

from functools import partial

import pytest
import torch
from scipy.linalg import sqrtm
from torch import Tensor, nn

from parnassus.optim import AdaGrad, FullAdaGrad, optimizer_trajectory
from parnassus.optim.optimisers.adagrad import inverse_root


def test_inverse_root_matches_scipy() -> None:
    generator = torch.Generator().manual_seed(0)
    factor = torch.randn(4, 6, generator=generator, dtype=torch.float64)
    matrix = factor @ factor.mT
    expected = torch.linalg.inv(torch.from_numpy(sqrtm(matrix.numpy())))
    torch.testing.assert_close(inverse_root(matrix, 1e-12), expected, atol=1e-10, rtol=1e-10)


def test_inverse_root_of_a_singular_matrix_is_a_pseudo_inverse() -> None:
    g = torch.tensor([3.0, 4.0], dtype=torch.float64)
    torch.testing.assert_close(inverse_root(torch.outer(g, g), 1e-12) @ g, g / 5)
    torch.testing.assert_close(inverse_root(torch.zeros(2, 2), 1e-12), torch.zeros(2, 2))


def test_full_and_diagonal_adagrad_agree_in_one_dimension() -> None:
    def loss(theta: Tensor) -> Tensor:
        return theta.cosh().sum()

    start = torch.tensor([2.0], dtype=torch.float64)
    full, diagonal = (
        optimizer_trajectory(loss, start, partial(optimizer, lr=0.5), steps=30) for optimizer in (FullAdaGrad, AdaGrad)
    )
    torch.testing.assert_close(full, diagonal, atol=1e-9, rtol=0)


def test_full_adagrad_is_faster_in_a_rotated_valley() -> None:
    axis = torch.tensor([[1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64) / 2**0.5

    def valley(theta: Tensor) -> Tensor:
        return (torch.tensor([1.0, 1_000.0], dtype=torch.float64) * (axis @ theta).square()).sum()

    start = torch.tensor([1.0, 1.1], dtype=torch.float64)
    full, diagonal = (
        valley(optimizer_trajectory(valley, start, partial(optimizer, lr=0.5), steps=60)[-1])
        for optimizer in (FullAdaGrad, AdaGrad)
    )
    assert full < 1e-6
    assert diagonal > 100 * full


def test_each_tensor_has_a_separate_matrix() -> None:
    theta = [nn.Parameter(torch.zeros(2, 3)), nn.Parameter(torch.zeros(4))]
    optimizer = FullAdaGrad(theta, lr=1.0)
    for tensor in theta:
        tensor.grad = torch.full_like(tensor, 2.0)
    optimizer.step()
    assert [optimizer.state[tensor]["outer"].shape for tensor in theta] == [(6, 6), (4, 4)]
    for tensor in theta:
        assert torch.linalg.vector_norm(tensor.detach()) == pytest.approx(1.0, rel=1e-5)
