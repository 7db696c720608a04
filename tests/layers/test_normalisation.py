"""Normalisation layers against torch, forward and backward, in training and evaluation mode."""

import pytest
import torch
from torch import nn

from parnassus.layers import BatchNorm, LayerNorm, Moments, Standardiser, moments, normalise, standardise
from parnassus.layers.activations import relu
from parnassus.layers.normalisation import norm_after_activation, norm_before_activation
from parnassus.probability import standard_normal


def share_parameters(layer: BatchNorm, reference: nn.Module) -> tuple[BatchNorm, nn.Module]:
    """Both layers in float64 with the same random scale and shift."""
    for name, size in (("weight", layer.scale.shape), ("bias", layer.shift.shape)):
        value = standard_normal(*size, seed=len(name))
        getattr(reference, name).data = value.flatten()
        getattr(layer, {"weight": "scale", "bias": "shift"}[name]).data = value.clone()
    return layer.double(), reference.double()


@pytest.mark.parametrize(
    ("layer", "reference", "shape"),
    [
        (BatchNorm(5), nn.BatchNorm1d(5), (8, 5)),
        (BatchNorm(3, 1), nn.BatchNorm1d(3), (4, 3, 7)),
        (BatchNorm(3, 1, 1), nn.BatchNorm2d(3), (4, 3, 6, 5)),
        (BatchNorm(5, epsilon=1e-3, momentum=0.01), nn.BatchNorm1d(5, eps=1e-3, momentum=0.01), (8, 5)),
    ],
)
def test_batch_norm_matches_torch(layer: BatchNorm, reference: nn.Module, shape: tuple[int, ...]) -> None:
    layer, reference = share_parameters(layer, reference)
    for step in range(3):  # several batches for the running averages
        x, y = (
            (3 * standard_normal(*shape, seed=step) + 2).requires_grad_(),
            (3 * standard_normal(*shape, seed=step) + 2).requires_grad_(),
        )
        torch.testing.assert_close(layer(x), reference(y))
        weights = standard_normal(*shape, seed=9)
        (layer(x) * weights).sum().backward()
        (reference(y) * weights).sum().backward()
        torch.testing.assert_close(x.grad, y.grad)
    assert layer.scale.grad is not None
    torch.testing.assert_close(layer.scale.grad.flatten(), reference.get_parameter("weight").grad)
    torch.testing.assert_close(layer.running_mean.flatten(), reference.get_buffer("running_mean"))
    torch.testing.assert_close(layer.running_variance.flatten(), reference.get_buffer("running_var"))
    x = standard_normal(*shape, seed=7)
    torch.testing.assert_close(layer.eval()(x), reference.eval()(x))


def test_batch_norm_with_two_feature_axes_matches_flattened_features() -> None:
    x = standard_normal(6, 4, 3)
    expected = nn.BatchNorm1d(12, affine=False).double()(x.flatten(1)).unflatten(1, (4, 3))
    torch.testing.assert_close(BatchNorm(4, 3).double()(x), expected)


@pytest.mark.parametrize("shape", [(3,), (4, 3)])
def test_layer_norm_matches_torch(shape: tuple[int, ...]) -> None:
    layer, reference = LayerNorm(*shape).double(), nn.LayerNorm(shape).double()
    layer.scale.data = reference.weight.data = standard_normal(*shape, seed=1)
    layer.shift.data = reference.bias.data = standard_normal(*shape, seed=2)
    x, y = standard_normal(6, 4, 3).requires_grad_(), standard_normal(6, 4, 3).requires_grad_()
    torch.testing.assert_close(layer(x), reference(y))
    layer(x).pow(3).sum().backward()
    reference(y).pow(3).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    torch.testing.assert_close(layer.eval()(x), reference(y))


def test_moments_match_hand_computed_values() -> None:
    x = torch.tensor([[1.0, 10.0], [3.0, 10.0], [5.0, 40.0]])
    mean, variance = moments(x, (0,))
    torch.testing.assert_close(mean, torch.tensor([[3.0, 20.0]]))
    torch.testing.assert_close(variance, torch.tensor([[8 / 3, 200.0]]))


def test_running_averages_after_one_batch() -> None:
    x = torch.tensor([[0.0], [4.0]])  # mean 2, variance 4 biased and 8 unbiased
    layer = BatchNorm(1)
    layer(x)
    torch.testing.assert_close(layer.running_mean, torch.tensor([0.2]))
    torch.testing.assert_close(layer.running_variance, torch.tensor([0.9 + 0.8]))


def test_constant_feature_has_a_finite_gradient() -> None:
    x = torch.ones(4, 2, requires_grad=True)
    standardise(x, (0,)).square().sum().backward()
    assert x.grad is not None
    assert bool(x.grad.isfinite().all())


def test_norm_before_and_after_activation() -> None:
    torch.manual_seed(0)
    x = torch.randn(32, 4)
    after, before = norm_after_activation(4, 3), norm_before_activation(4, 3)
    torch.testing.assert_close(after(x).mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    assert float(before(x).detach().min()) == 0.0
    expected = relu(standardise(x @ before.weight, (0,)))  # the bias has no effect
    torch.testing.assert_close(before(x), expected, atol=1e-5, rtol=0)


def test_standardiser_uses_the_fitted_statistics() -> None:
    train = torch.tensor([[0.0, 7.0], [2.0, 7.0]])
    scaler = Standardiser.fit(train)
    torch.testing.assert_close(scaler.transform(train), torch.tensor([[-1.0, 0.0], [1.0, 0.0]]))
    torch.testing.assert_close(scaler.transform(torch.tensor([[5.0, 8.0]])), torch.tensor([[4.0, 1.0]]))


def test_repr() -> None:
    assert repr(BatchNorm(64, 1, 1)) == "BatchNorm((64, 1, 1), over axes (0, 2, 3))"
    assert repr(LayerNorm(8)) == "LayerNorm((8,))"


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"at least two values per feature in training; got x of shape \(1, 5\)"):
        BatchNorm(5)(torch.ones(1, 5))
    BatchNorm(5).eval()(torch.ones(1, 5))  # evaluation uses the running averages
    BatchNorm(3, 1, 1)(torch.ones(1, 3, 2, 2))  # four values per channel
    with pytest.raises(ValueError, match=r"sizes of at least 1; got shape=\(\)"):
        BatchNorm()
    with pytest.raises(ValueError, match=r"got shape=\(3, 0\)"):
        LayerNorm(3, 0)
    with pytest.raises(ValueError, match="0 < momentum ≤ 1; got momentum=0"):
        BatchNorm(5, momentum=0.0)
    with pytest.raises(ValueError, match="must not be negative; got epsilon=-1"):
        normalise(torch.ones(2), Moments(torch.zeros(1), torch.ones(1)), epsilon=-1.0)
    with pytest.raises(ValueError, match="at least one example; got none"):
        Standardiser.fit(torch.ones(0, 3))


@pytest.mark.parametrize("layer", [BatchNorm(4), BatchNorm(4, 1, 1), LayerNorm(4), LayerNorm(3, 4)])
def test_mismatched_example_shape_raises_value_error(layer: BatchNorm | LayerNorm) -> None:
    with pytest.raises(ValueError, match=r"x must have examples of shape \(.*\); got x of shape \(5, 3\)"):
        layer(torch.zeros(5, 3))
