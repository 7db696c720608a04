"""Normalisation against torch, forward and backward, in both modes; and its laws."""

import pytest
import torch
from torch import nn

from parnassus.layers import BatchNorm, LayerNorm, Moments, Standardiser, moments, normalise, standardise
from parnassus.layers.activations import relu
from parnassus.layers.normalisation import norm_after_activation, norm_before_activation
from parnassus.probability import standard_normal


def twins(ours: BatchNorm, theirs: nn.Module) -> tuple[BatchNorm, nn.Module]:
    """Both layers with the same random scale and shift."""
    for name, size in (("weight", ours.scale.shape), ("bias", ours.shift.shape)):
        value = standard_normal(*size, seed=len(name))
        getattr(theirs, name).data = value.flatten()
        getattr(ours, {"weight": "scale", "bias": "shift"}[name]).data = value.clone()
    return ours.double(), theirs.double()


@pytest.mark.parametrize(
    ("ours", "theirs", "shape"),
    [
        (BatchNorm(5), nn.BatchNorm1d(5), (8, 5)),
        (BatchNorm(3, 1), nn.BatchNorm1d(3), (4, 3, 7)),
        (BatchNorm(3, 1, 1), nn.BatchNorm2d(3), (4, 3, 6, 5)),
        (BatchNorm(5, epsilon=1e-3, momentum=0.01), nn.BatchNorm1d(5, eps=1e-3, momentum=0.01), (8, 5)),
    ],
)
def test_batch_norm_is_that_of_torch(ours: BatchNorm, theirs: nn.Module, shape: tuple[int, ...]) -> None:
    ours, theirs = twins(ours, theirs)
    for step in range(3):  # so that the running averages have something to average
        x, y = (
            (3 * standard_normal(*shape, seed=step) + 2).requires_grad_(),
            (3 * standard_normal(*shape, seed=step) + 2).requires_grad_(),
        )
        torch.testing.assert_close(ours(x), theirs(y))
        weights = standard_normal(*shape, seed=9)
        (ours(x) * weights).sum().backward()
        (theirs(y) * weights).sum().backward()
        torch.testing.assert_close(x.grad, y.grad)
    assert ours.scale.grad is not None
    torch.testing.assert_close(ours.scale.grad.flatten(), theirs.get_parameter("weight").grad)
    torch.testing.assert_close(ours.running_mean.flatten(), theirs.get_buffer("running_mean"))
    torch.testing.assert_close(ours.running_variance.flatten(), theirs.get_buffer("running_var"))
    x = standard_normal(*shape, seed=7)
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x))


def test_one_mean_a_position_and_channel() -> None:
    x = standard_normal(6, 4, 3)
    flat = nn.BatchNorm1d(12, affine=False).double()(x.flatten(1)).unflatten(1, (4, 3))
    torch.testing.assert_close(BatchNorm(4, 3).double()(x), flat)


@pytest.mark.parametrize("shape", [(3,), (4, 3)])
def test_layer_norm_is_that_of_torch(shape: tuple[int, ...]) -> None:
    ours, theirs = LayerNorm(*shape).double(), nn.LayerNorm(shape).double()
    ours.scale.data = theirs.weight.data = standard_normal(*shape, seed=1)
    ours.shift.data = theirs.bias.data = standard_normal(*shape, seed=2)
    x, y = standard_normal(6, 4, 3).requires_grad_(), standard_normal(6, 4, 3).requires_grad_()
    torch.testing.assert_close(ours(x), theirs(y))
    ours(x).pow(3).sum().backward()
    theirs(y).pow(3).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    torch.testing.assert_close(ours.eval()(x), theirs(y))


def test_moments_by_hand() -> None:
    x = torch.tensor([[1.0, 10.0], [3.0, 10.0], [5.0, 40.0]])
    mean, variance = moments(x, (0,))
    torch.testing.assert_close(mean, torch.tensor([[3.0, 20.0]]))
    torch.testing.assert_close(variance, torch.tensor([[8 / 3, 200.0]]))


def test_the_first_batch_moves_the_averages_by_a_tenth() -> None:
    x = torch.tensor([[0.0], [4.0]])  # mean 2, variance 4 biased and 8 unbiased
    layer = BatchNorm(1)
    layer(x)
    torch.testing.assert_close(layer.running_mean, torch.tensor([0.2]))
    torch.testing.assert_close(layer.running_variance, torch.tensor([0.9 + 0.8]))


def test_a_constant_feature_has_a_finite_slope() -> None:
    x = torch.ones(4, 2, requires_grad=True)
    standardise(x, (0,)).square().sum().backward()
    assert x.grad is not None
    assert bool(x.grad.isfinite().all())


def test_the_two_orders_of_activation_and_norm() -> None:
    torch.manual_seed(0)
    x = torch.randn(32, 4)
    after, before = norm_after_activation(4, 3), norm_before_activation(4, 3)
    torch.testing.assert_close(after(x).mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    assert float(before(x).detach().min()) == 0.0
    by_hand = relu(standardise(x @ before.weight, (0,)))  # the bias has no effect
    torch.testing.assert_close(before(x), by_hand, atol=1e-5, rtol=0)


def test_a_standardiser_uses_what_it_was_fitted_to() -> None:
    train = torch.tensor([[0.0, 7.0], [2.0, 7.0]])
    scaler = Standardiser.fit(train)
    torch.testing.assert_close(scaler.transform(train), torch.tensor([[-1.0, 0.0], [1.0, 0.0]]))
    torch.testing.assert_close(scaler.transform(torch.tensor([[5.0, 8.0]])), torch.tensor([[4.0, 1.0]]))


def test_the_layers_say_what_they_are() -> None:
    assert repr(BatchNorm(64, 1, 1)) == "BatchNorm((64, 1, 1), over axes (0, 2, 3))"
    assert repr(LayerNorm(8)) == "LayerNorm((8,))"


def test_wrong_input_raises() -> None:
    with pytest.raises(ValueError, match=r"at least two values per feature in training; got x of shape \(1, 5\)"):
        BatchNorm(5)(torch.ones(1, 5))
    BatchNorm(5).eval()(torch.ones(1, 5))  # the averages of one example are known
    BatchNorm(3, 1, 1)(torch.ones(1, 3, 2, 2))  # four numbers a channel
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
def test_examples_of_another_shape_raise(layer: BatchNorm | LayerNorm) -> None:
    with pytest.raises(ValueError, match=r"x must have examples of shape \(.*\); got x of shape \(5, 3\)"):
        layer(torch.zeros(5, 3))
