"""Kernels in blocks: same values, less memory."""

import pytest
import torch

from parnassus.kernels import KernelMatrix, OrnsteinUhlenbeckKernel, RBFKernel, evaluate_in_blocks, free_bytes
from parnassus.kernels.infinite_width.network import fully_connected
from parnassus.kernels.infinite_width.nonlinearity import ReLU
from parnassus.kernels.solvers.kernel_matrix import KernelFunction
from parnassus.probability import standard_normal

CPU = torch.device("cpu")
X = standard_normal(37, 5)
Y = standard_normal(23, 5, seed=1)
KERNELS: list[KernelFunction] = [OrnsteinUhlenbeckKernel(1.3), fully_connected(2, ReLU(), bias_variance=0.1).nngp]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("block", [1, 10, 37, 100])
@pytest.mark.parametrize("devices", [(), (CPU, CPU, CPU)])
def test_blocks_equal_the_kernel(kernel: KernelFunction, block: int, devices: tuple[torch.device, ...]) -> None:
    torch.testing.assert_close(evaluate_in_blocks(kernel, X, block=block, devices=devices), kernel(X, X).detach())
    torch.testing.assert_close(evaluate_in_blocks(kernel, X, Y, block=block, devices=devices), kernel(X, Y).detach())


@pytest.mark.parametrize("block", [7, 64])
@pytest.mark.parametrize("devices", [(), (CPU, CPU)])
@pytest.mark.parametrize("shape", [(), (3,), (2, 4)])
def test_products_match_the_dense_matrix(block: int, devices: tuple[torch.device, ...], shape: tuple[int, ...]) -> None:
    kernel = KERNELS[1]
    v, w = torch.randn(37, *shape, dtype=torch.float64), torch.randn(23, *shape, dtype=torch.float64)
    own, other = (KernelMatrix(kernel, X, y, block, devices) for y in (None, Y))
    torch.testing.assert_close(own @ v, torch.tensordot(kernel(X, X), v, 1))
    torch.testing.assert_close(other @ w, torch.tensordot(kernel(X, Y), w, 1))


def test_rows_and_the_diagonal_match_the_dense_matrix() -> None:
    matrix = KernelMatrix(KERNELS[1], X.repeat(4, 1))
    dense = matrix.to_dense()
    assert matrix.shape == (148, 148)
    assert matrix.nbytes == dense.numel() * 8
    torch.testing.assert_close(matrix.diagonal(), dense.diagonal())
    torch.testing.assert_close(matrix[5], dense[5])


def test_symmetric_kernel_is_evaluated_for_one_half_only() -> None:
    num_entries = 0

    def counting_kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        nonlocal num_entries
        num_entries += len(x) * len(y)
        return x @ y.mT

    evaluate_in_blocks(counting_kernel, X[:30], block=10)
    assert num_entries == 600
    KernelMatrix(counting_kernel, X[:30], block=10) @ torch.ones(30, dtype=torch.float64)
    assert num_entries == 1_200


def test_results_do_not_require_grad() -> None:
    kernel = RBFKernel(0.7)
    for devices in ((), (CPU, CPU)):
        matrix = KernelMatrix(kernel, X, block=10, devices=devices)
        assert not matrix.to_dense().requires_grad
        assert not (matrix @ X).requires_grad
        assert not matrix[0].requires_grad


def test_double_keeps_the_points_in_full_precision() -> None:
    single = KernelMatrix(RBFKernel(), X.float(), Y.float())
    torch.testing.assert_close(single.double().to_dense(), RBFKernel()(X.float().double(), Y.float().double()).detach())


def test_kernel_larger_than_memory_raises_value_error() -> None:
    assert free_bytes(CPU) > 0
    x = torch.zeros(1, 1, dtype=torch.float64).expand(10_000_000, 1)
    with pytest.raises(ValueError, match=r"takes 800000000000000 bytes .* ConjugateGradients, use float32"):
        evaluate_in_blocks(RBFKernel(), x)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"same features; got shapes \(5,\) and \(4,\)"):
        KernelMatrix(RBFKernel(), X, Y[:, :4])
    with pytest.raises(ValueError, match="block=0"):
        evaluate_in_blocks(RBFKernel(), X, block=0)
    with pytest.raises(ValueError, match="needs a kernel of x with itself"):
        KernelMatrix(RBFKernel(), X, Y).diagonal()
