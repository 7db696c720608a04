"""Trainable variances of weights and biases: gradients, and recovery of true values."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from parnassus.kernels import (
    NNGP,
    NTK,
    Activation,
    Dense,
    Erf,
    GaussianProcess,
    GPRegression,
    Kernel,
    Network,
    Nonlinearity,
    ReLU,
    Residual,
    TrainableDense,
    learn_hyperparameters,
)
from parnassus.probability import standard_normal

DOUBLE = torch.float64


def points(count: int, dim: int = 2, seed: int = 0) -> Tensor:
    return standard_normal(count, dim, seed=seed)


def trainable_and_fixed(sigma: Nonlinearity, *, divide: bool = True) -> tuple[Network, Network]:
    """The same network with trainable and with fixed variances."""
    trainable = Network((TrainableDense(1.5, 0.3, divide=divide), Activation(sigma), TrainableDense(0.7, 0.2)))
    return trainable, Network((Dense(1.5, 0.3, divide), Activation(sigma), Dense(0.7, 0.2)))


@pytest.mark.parametrize("divide", [True, False])
def test_untrained_layer_matches_dense(divide: bool) -> None:
    trainable, fixed = trainable_and_fixed(Erf(), divide=divide)
    x = points(4)
    for actual, expected in zip(trainable.kernels(x, points(3)), fixed.kernels(x, points(3)), strict=True):
        torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(NNGP(trainable).diagonal(x), NNGP(fixed).diagonal(x))
    torch.manual_seed(0)
    module = trainable.module((2,), 5).double()
    torch.manual_seed(0)
    torch.testing.assert_close(module(x), fixed.module((2,), 5).double()(x))
    assert trainable.kernels(x.float()).ntk.dtype == torch.float32


@pytest.mark.parametrize("kind", [NNGP, NTK])
@pytest.mark.parametrize("sigma", [Erf(), ReLU()])
def test_gradients_match_finite_differences(kind: Callable[[Network], Kernel], sigma: Nonlinearity) -> None:
    kernel, x = kind(trainable_and_fixed(sigma)[0]), points(4)
    assert isinstance(kernel, nn.Module)
    parameters = dict(kernel.named_parameters())
    assert len(parameters) == 4

    def matrix(*values: Tensor) -> Tensor:
        parameter_values = dict(zip(parameters, values, strict=True))
        kernel_matrix: Tensor = torch.func.functional_call(kernel, parameter_values, (x,))
        return kernel_matrix

    assert torch.autograd.gradcheck(matrix, tuple(value.detach().requires_grad_() for value in parameters.values()))


def test_blocks_do_not_change_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    x = points(7)
    gradients = []
    for block in (256, 3):
        monkeypatch.setattr("parnassus.kernels.infinite_width.network.BLOCK", block)
        kernel = NNGP(trainable_and_fixed(Erf())[0])
        kernel(x).square().sum().backward()
        gradients.append(
            torch.stack([parameter.grad for parameter in kernel.parameters() if parameter.grad is not None])
        )
    torch.testing.assert_close(gradients[0], gradients[1])
    assert gradients[0].shape == (4,)


def test_parameters_within_branches_are_found() -> None:
    body = Network((Activation(Erf()), TrainableDense()))
    assert len(list(NTK(Network((Dense(), Residual(body), Dense()))).parameters())) == 2


def test_variances_are_recovered_by_maximising_the_evidence() -> None:
    """From 400 noisy samples of an infinitely wide network."""
    truth = NNGP(Network((Dense(3.0, 0.5), Activation(Erf()), Dense(2.0, 0.4))))
    x, generator = points(40), torch.Generator().manual_seed(1)
    clean = GaussianProcess(truth).sample(x, 400, generator=generator).values.mT
    t = clean + 0.2 * torch.randn(clean.shape, dtype=DOUBLE, generator=generator)
    start = NNGP(Network((TrainableDense(1.0, 0.1), Activation(Erf()), TrainableDense(1.0, 0.1))))
    learned = learn_hyperparameters(start, x, t, noise_variance=0.3, num_starts=1, steps=120)
    before, best = (
        float(GPRegression.fit(kernel, x, t, noise_variance=noise).log_marginal_likelihood().detach())
        for kernel, noise in ((start, 0.3), (truth, 0.04))
    )
    assert learned.log_marginal_likelihood > before + 100
    assert best < learned.log_marginal_likelihood < best + 10  # five numbers fitted
    variances = [float(parameter.detach().exp()) for parameter in learned.kernel.parameters()]
    assert variances == pytest.approx([3.0, 0.5, 2.0, 0.4], rel=0.2)
    assert learned.noise_variance == pytest.approx(0.04, rel=0.05)
    assert [layer.weight_variance for layer in start.trainable_layers if isinstance(layer, TrainableDense)] == [
        1.0,
        1.0,
    ]


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match=r"weight_variance must be positive and finite; got weight_variance=0.0"):
        TrainableDense(0.0)
    with pytest.raises(ValueError, match=r"bias_variance must be positive and finite; got bias_variance=0.0"):
        TrainableDense(1.0, 0.0)
    with pytest.raises(ValueError, match="divide=False is allowed in the first layer only"):
        Network((Dense(), Activation(Erf()), TrainableDense(divide=False))).kernels(points(2))
