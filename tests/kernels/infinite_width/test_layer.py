"""Layers against wide random modules, and the parametrisation that both share."""

import pytest
import torch

from parnassus.kernels import Activation, Dense, KernelState, Layer, ReLU, ScaledLinear
from parnassus.probability import standard_normal


@pytest.mark.parametrize("layer", [Dense(), Dense(1.7, 0.3), Dense(0.6, divide=False)])
def test_dense_units_have_the_covariance_of_the_kernel(layer: Dense) -> None:
    torch.manual_seed(0)
    x = standard_normal(4, 5)
    module, shape = layer.module((5,), 400_000)
    with torch.no_grad():
        units = module.double()(x)
    assert shape == (400_000,)
    torch.testing.assert_close(
        layer.kernel(KernelState.from_inputs(x, x)).nngp, units @ units.mT / 400_000, atol=0.06, rtol=0.01
    )


def test_dense_kernel_matches_the_recursion() -> None:
    """Θ = ⟨∂f/∂W, ∂f'/∂W⟩ + ⟨∂f/∂β, ∂f'/∂β⟩ + weight · Θ of the previous layer."""
    x = standard_normal(4, 5)
    first = Dense(1.7, 0.3).kernel(KernelState.from_inputs(x, x))
    torch.testing.assert_close(first.ntk, first.nngp)
    second = Dense(0.5, 0.2).kernel(first)
    torch.testing.assert_close(second.nngp, 0.5 * first.nngp + 0.2)
    torch.testing.assert_close(second.ntk, second.nngp + 0.5 * first.nngp)
    torch.testing.assert_close(second.left, second.nngp.diagonal())


def test_activation_multiplies_the_ntk_by_the_derivative_covariance() -> None:
    x = standard_normal(4, 5)
    before = Dense().kernel(KernelState.from_inputs(x, x))
    value, derivative = ReLU().expect(before.nngp, before.left[:, None], before.right[None])
    after = Activation(ReLU()).kernel(before)
    torch.testing.assert_close(after.nngp, value)
    torch.testing.assert_close(after.ntk, derivative * before.nngp)
    torch.testing.assert_close(after.left, value.diagonal())


def test_scale_is_applied_in_the_forward_pass() -> None:
    layer = ScaledLinear(3, 2, scale=0.5, shift=2.0)
    x = torch.randn(4, 3)
    assert layer.bias is not None
    torch.testing.assert_close(layer(x), 0.5 * x @ layer.weight.T + 2 * layer.bias)
    assert ScaledLinear(3, 2, scale=0.5, shift=0.0).bias is None
    wide, _ = Dense().module((10_000,), 50)
    assert float(next(wide.parameters()).detach().std()) == pytest.approx(1.0, abs=0.01)


def test_layers_satisfy_the_protocol() -> None:
    assert isinstance(Dense(), Layer)
    assert isinstance(Activation(ReLU()), Layer)


@pytest.mark.parametrize(("weight", "bias"), [(0.0, 0.0), (-1.0, 0.0), (1.0, -0.1), (float("nan"), 0.0)])
def test_invalid_variances_raise_value_error(weight: float, bias: float) -> None:
    with pytest.raises(ValueError, match="need weight_variance > 0 and bias_variance ≥ 0; got weight_variance="):
        Dense(weight, bias)


def test_incompatible_layers_raise() -> None:
    x = standard_normal(2, 5)
    with pytest.raises(ValueError, match="divide=False is allowed in the first layer only"):
        Dense(divide=False).kernel(Dense().kernel(KernelState.from_inputs(x, x)))
    with pytest.raises(ValueError, match=r"a dense layer takes vectors; got shape=\(3, 8, 8\)"):
        Dense().module((3, 8, 8), 4)
