"""Residual and parallel branches against neural-tangents, wide modules and their parts."""

import pytest
import torch

from parnassus.kernels import (
    Activation,
    AveragePooling,
    Convolution,
    Dense,
    GlobalAveragePooling,
    Network,
    Parallel,
    ReLU,
    Residual,
)

from .images import assert_kernels_match, errors_of_wide_modules, images

RELU = Activation(ReLU())
BODY = Network((RELU, Convolution(3, 2.0)))
RESIDUAL = Network((Convolution(3, 2.0, 0.1), Residual(BODY), RELU, GlobalAveragePooling(), Dense(2.0, 0.05)))
PARALLEL = Network(
    (
        Parallel((Network((Convolution(1),)), Network((Convolution(3), RELU, Convolution(3, 2.0))))),
        RELU,
        GlobalAveragePooling(),
        Dense(),
    )
)


def test_kernels_match_neural_tangents() -> None:
    assert_kernels_match(
        RESIDUAL,
        (0.63471856976018, 0.61225336914647, 0.65959090227493),
        (0.88537590253147, 0.77556547889600, 0.93758441656359),
    )


def test_wide_modules_approach_the_limit() -> None:
    for network in (RESIDUAL, PARALLEL):
        nngp, ntk = errors_of_wide_modules(network, width=128, draws=24)
        assert nngp < 0.06
        assert ntk < 0.1


def test_residual_blocks_accept_vectors() -> None:
    """For g = W x and g + W σ(g), both kernels are sums of those of the two branches."""
    x = images().flatten(1)
    skip, body = Network((Dense(),)), Network((Dense(), RELU, Dense(1.5)))
    kernels = Network((Dense(), Residual(Network((RELU, Dense(1.5)))))).kernels(x)
    for kernel, skip_kernel, body_kernel in zip(kernels, skip.kernels(x), body.kernels(x), strict=True):
        torch.testing.assert_close(kernel, skip_kernel + body_kernel)


def test_nngp_without_ntk_is_unchanged() -> None:
    torch.testing.assert_close(RESIDUAL.nngp(images()), RESIDUAL.kernels(images()).nngp)


def test_invalid_branches_raise() -> None:
    with pytest.raises(ValueError, match="must end in a layer with weights"):
        Residual(Network((Convolution(), RELU)))
    with pytest.raises(ValueError, match="must end in a layer with weights"):
        Parallel((BODY, Network((RELU,))))
    with pytest.raises(ValueError, match="branches must not be empty"):
        Parallel(())
    shrinking = Residual(Network((AveragePooling(2), Convolution())))
    with pytest.raises(ValueError, match=r"keep the shape of its input; got \(3, 4, 4\) to \(3, 2, 2\)"):
        shrinking.module((3, 4, 4), 8)
    with pytest.raises(ValueError, match=r"keep the same positions; got \(4, 4, 4, 4\), \(2, 2, 2, 2\)"):
        Network((shrinking, GlobalAveragePooling())).kernels(images())
    uneven = Parallel((Network((AveragePooling(2), Convolution())), Network((Convolution(),))))
    with pytest.raises(ValueError, match="must have the same output shape"):
        uneven.module((3, 4, 4), 8)
