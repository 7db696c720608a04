"""The empirical tangent kernel against its definition, on networks of every kind."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from parnassus.kernels import (
    Activation,
    Dense,
    Network,
    ReLU,
    empirical_ntk,
    full_empirical_ntk,
    fully_connected,
    jacobian_ntk,
    ntk_vector_product,
)
from parnassus.kernels.infinite_width.convolution import ScaledConvolution

DOUBLE = torch.float64
close = partial(torch.testing.assert_close, rtol=1e-9, atol=1e-10)


class Tied(nn.Module):
    """One matrix used twice, once transposed outside of its module."""

    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.into(x).tanh() @ self.into.weight
        return output


class Recurrent(nn.Module):
    """The same layer called three times."""

    def __init__(self) -> None:
        super().__init__()
        self.step, self.out = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.step(x).tanh()
        output: Tensor = self.out(x)
        return output


class Sequences(nn.Module):
    """A layer at every token, then a mean."""

    def __init__(self) -> None:
        super().__init__()
        self.each, self.out = nn.Linear(5, 64), nn.Linear(64, 2)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.out(self.each(x).relu().mean(1))
        return output


class CommonMean(nn.Module):
    """Outputs that depend on the other rows of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.out(x - x.mean(0))
        return output


def images() -> nn.Module:
    layers = [nn.Conv2d(2, 6, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(6, 5, 3, stride=2, padding="valid")]
    return nn.Sequential(*layers, nn.GELU(), nn.Flatten(), nn.LayerNorm(20), nn.Linear(20, 3))


def scaled_images() -> nn.Module:
    layers = [ScaledConvolution(2, 6, 3, 0.3, 0.1, circular=True), nn.Tanh(), ScaledConvolution(6, 4, 3, 0.2, 0.0)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(100, 2))


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "dense": (lambda: fully_connected(2, ReLU()).module((4,), 9, outputs=3), (7, 4)),
    "with biases": (
        lambda: Network((Dense(bias_variance=0.3), Activation(ReLU()), Dense(2.0, 0.1))).module((4,), 9),
        (7, 4),
    ),
    "convolutions": (images, (5, 2, 5, 5)),
    "scaled convolutions": (scaled_images, (5, 2, 5, 5)),
    "tied weights": (Tied, (6, 4)),
    "a layer called again": (Recurrent, (6, 4)),
    "sequences": (Sequences, (4, 3, 5)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("block", [2, 100])
def test_kernel_is_the_product_of_jacobians(case: str, block: int) -> None:
    torch.manual_seed(0)
    make, shape = CASES[case]
    module, x = make().double(), torch.randn(*shape, dtype=DOUBLE)
    expected = jacobian_ntk(module, x)
    close(full_empirical_ntk(module, x, block=block), expected)
    close(empirical_ntk(module, x, block=block), expected.diagonal(dim1=2, dim2=3).mean(-1))
    close(full_empirical_ntk(module, x[:3], x, block=block), expected[:3])


def test_frozen_parameters_are_excluded() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)).double()
    module[0].requires_grad_(False)
    x = torch.randn(4, 3, dtype=DOUBLE)
    features = module[1](module[0](x))
    close(empirical_ntk(module, x), features @ features.mT + 1)


@pytest.mark.parametrize("case", ["dense", "tied weights", "convolutions"])
def test_ntk_vector_product_matches_the_kernel(case: str) -> None:
    torch.manual_seed(0)
    make, shape = CASES[case]
    module, x = make().double(), torch.randn(*shape, dtype=DOUBLE)
    kernel = jacobian_ntk(module, x)
    vector = torch.randn(len(x), kernel.shape[-1], dtype=DOUBLE)
    close(ntk_vector_product(module, x, vector), torch.einsum("nmkl,ml->nk", kernel, vector))
    close(ntk_vector_product(module, x[:2], vector, x), torch.einsum("nmkl,ml->nk", kernel[:2], vector))


def test_hooks_are_removed() -> None:
    module, x = fully_connected(1, ReLU()).module((3,), 4), torch.randn(2, 3)
    assert not empirical_ntk(module, x).requires_grad
    assert not module[0]._forward_hooks
    assert module[0].weight.grad is None


@pytest.mark.parametrize("part", [nn.BatchNorm1d(4), nn.Dropout(0.5)])
def test_batch_norm_and_dropout_need_eval_mode(part: nn.Module) -> None:
    module, x = nn.Sequential(nn.Linear(3, 4), part, nn.Linear(4, 1)), torch.randn(5, 3)
    with pytest.raises(ValueError, match=r"own row only.*in training mode: call module.eval\(\) first"):
        empirical_ntk(module, x)
    torch.testing.assert_close(empirical_ntk(module.eval(), x), jacobian_ntk(module, x)[:, :, 0, 0])


def test_invalid_arguments_raise() -> None:
    module = nn.Linear(3, 1)
    with pytest.raises(ValueError, match="block must be positive; got block=0"):
        empirical_ntk(module, torch.randn(2, 3), block=0)
    with pytest.raises(ValueError, match="need inputs and trainable parameters; got 0 inputs"):
        empirical_ntk(module, torch.randn(0, 3))
    with pytest.raises(ValueError, match="need inputs and trainable parameters"):
        empirical_ntk(nn.Tanh(), torch.randn(2, 3))
    with pytest.raises(ValueError, match="must depend on their own row only; one changed by"):
        empirical_ntk(CommonMean(), torch.randn(4, 3))
