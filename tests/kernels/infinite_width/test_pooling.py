"""Pooling and flattening against means, neural-tangents, and wide modules."""

import pytest
import torch

from parnassus.kernels import (
    Activation,
    AveragePooling,
    Convolution,
    Dense,
    Erf,
    Flatten,
    GlobalAveragePooling,
    KernelState,
    Network,
    ReLU,
)

from .images import assert_kernels_match, errors_of_wide_modules, images

RELU = Activation(ReLU())
GLOBAL = Network(
    (Convolution(3, 2.0, 0.1), RELU, Convolution(5, 2.0), Activation(Erf()), GlobalAveragePooling(), Dense(2.0, 0.05))
)
LOCAL = Network(
    (
        Convolution(3, 2.0, 0.1),
        RELU,
        AveragePooling(2),
        Convolution(3, 2.0),
        RELU,
        Flatten(),
        Dense(2.0, 0.05),
        RELU,
        Dense(),
    )
)


def test_kernels_match_neural_tangents() -> None:
    assert_kernels_match(
        GLOBAL,
        (0.18252215259119, 0.16884811944944, 0.19584356145733),
        (0.36977440554916, 0.30968777987252, 0.41008499241263),
    )
    assert_kernels_match(
        LOCAL,
        (0.10505765885502, 0.09595626627248, 0.12723448815962),
        (0.33167940631496, 0.21359147593625, 0.41980435746797),
    )


def test_wide_modules_approach_the_limit() -> None:
    for network in (GLOBAL, LOCAL):
        nngp, ntk = errors_of_wide_modules(network, width=128, draws=24)
        assert nngp < 0.08
        assert ntk < 0.1


@pytest.mark.parametrize("layer", [AveragePooling(2), AveragePooling(4), GlobalAveragePooling(), Flatten()])
def test_kernel_matches_the_module_outputs(
    layer: AveragePooling | GlobalAveragePooling | Flatten,
) -> None:
    """Without weights Σ is the mean product of the module's outputs."""
    x, y = images(), images().flip(0, 2) + 0.3
    module, shape = layer.module((3, 4, 4), 1)
    actual = layer.kernel(KernelState.from_inputs(x, y, all_positions=True))
    expected = KernelState.from_inputs(module(x), module(y), all_positions=True)
    assert shape == module(x).shape[1:]
    torch.testing.assert_close(actual.nngp, expected.nngp)
    torch.testing.assert_close(actual.left, expected.left)
    torch.testing.assert_close(actual.right, expected.right)
    assert actual.features == expected.features


def test_unneeded_covariances_within_images_are_skipped() -> None:
    x = images()
    pair = KernelState.from_inputs(x, x, all_positions=True, within_images=False)
    assert pair.left.shape == (2, 4, 4)
    pooled = GlobalAveragePooling().kernel(pair)
    assert bool(pooled.left.isnan().all())
    torch.testing.assert_close(
        pooled.nngp, GlobalAveragePooling().kernel(KernelState.from_inputs(x, x, all_positions=True)).nngp
    )


def test_layers_after_pooling_receive_variances() -> None:
    """The diagonal after pooling and a nonlinearity is E σ² of the pooled variance."""
    network = Network((Convolution(), RELU, GlobalAveragePooling(), Dense(), RELU, Dense()))
    pooled = Network(network.layers[:4]).nngp(images())
    torch.testing.assert_close(network.nngp(images()).diagonal(), pooled.diagonal() / 2)


def test_invalid_positions_raise() -> None:
    x = images()
    with pytest.raises(ValueError, match=r"must divide the sides of the image; got size=3, sides \(4, 4\)"):
        Network((AveragePooling(3), Flatten())).kernels(x)
    with pytest.raises(ValueError, match=r"must divide the sides of the image; got size=3, sides \(4, 4\)"):
        AveragePooling(3).module((3, 4, 4), 1)
    with pytest.raises(ValueError, match="size must be positive; got size=0"):
        AveragePooling(0)
    with pytest.raises(ValueError, match="all pairs of positions of images; got equal positions only"):
        GlobalAveragePooling().kernel(KernelState.from_inputs(x, x))
    with pytest.raises(ValueError, match="all pairs of positions of images; got vectors"):
        Network((GlobalAveragePooling(),)).kernels(torch.ones(2, 3))
    with pytest.raises(ValueError, match=r"global pooling takes images .* got shape=\(3,\)"):
        GlobalAveragePooling().module((3,), 1)
