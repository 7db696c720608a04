"""The limit of attention against neural-tangents, wide modules, and torch's own attention."""

from math import sqrt

import pytest
import torch
from torch import Tensor

from parnassus.kernels import (
    Activation,
    Attention,
    Convolution,
    Dense,
    GlobalAveragePooling,
    KernelState,
    Network,
    ReLU,
    TiedAttention,
)

from .images import KernelEntries, assert_kernels_match, errors_of_wide_modules, images

RELU = Activation(ReLU())


def softmax(scores: Tensor) -> Tensor:
    return scores.softmax(-1)


def network(attention: Attention) -> Network:
    """neural-tangents projects the values at the end: a convolution of size 1."""
    head = (Convolution(1), RELU, GlobalAveragePooling(), Dense(2.0, 0.05))
    return Network((Convolution(3, 2.0, 0.1), RELU, attention, *head))


PLAIN, SOFT = network(Attention(1.5, 0.7)), network(Attention(1.5, 0.7, softmax))
PLAIN_EXPECTED: tuple[KernelEntries, KernelEntries] = (
    (0.79048484015266, 0.78872134694447, 0.89549637243142),
    (2.33576730680332, 2.13710588307505, 2.69085415262255),
)
SOFT_EXPECTED: tuple[KernelEntries, KernelEntries] = (
    (0.28534312306686, 0.27549647782380, 0.29449211792726),
    (0.82082820511457, 0.71019146006296, 0.85374400471268),
)


def test_kernels_match_neural_tangents() -> None:
    """Its GlobalSelfAttention with linear_scaling, one head, mechanisms IDENTITY and SOFTMAX, no biases."""
    assert_kernels_match(PLAIN, *PLAIN_EXPECTED)
    assert_kernels_match(SOFT, *SOFT_EXPECTED)


def test_wide_modules_approach_the_limit() -> None:
    nngp, ntk = errors_of_wide_modules(SOFT, width=128, draws=24)
    assert nngp < 0.06
    assert ntk < 0.1
    nngp, ntk = errors_of_wide_modules(PLAIN, width=256, draws=24)
    assert nngp < 0.15  # two queries times a value: a product of three Gaussians has heavy tails
    assert ntk < 0.15


def test_module_matches_torch_attention_with_tied_queries() -> None:
    torch.manual_seed(0)
    module, x = TiedAttention(3, 6, 0.8, 0.5, softmax).double(), images()
    g = x.flatten(2).mT
    query, value = 0.8 * g @ module.to_query, 0.5 * g @ module.to_value
    expected = torch.nn.functional.scaled_dot_product_attention(query, query, value, scale=1 / 6)
    torch.testing.assert_close(module(x), expected.mT.reshape(2, 6, 4, 4))


def test_identity_attention_is_a_convolution_of_size_one() -> None:
    """If A is the identity matrix, the layer is W_V at every position."""
    identity_attention = Attention(
        1.3, score=lambda scores: torch.eye(scores.shape[-1], dtype=scores.dtype).expand_as(scores)
    )
    pair = KernelState.from_inputs(images(), images().flip(0), all_positions=True)
    actual, expected = identity_attention.kernel(pair), Convolution(1, 1.3).kernel(pair)
    torch.testing.assert_close(actual.nngp, expected.nngp)
    torch.testing.assert_close(actual.ntk, expected.ntk)
    torch.testing.assert_close(actual.left, expected.left)


def test_query_weights_vanish_in_the_limit() -> None:
    """Their fraction of the empirical tangent kernel is O(1 / channels)."""
    torch.manual_seed(0)
    fractions = []
    for width in (32, 512):
        fraction = 0.0
        for _ in range(8):
            module = TiedAttention(3, width, sqrt(0.7 / 3), sqrt(1.5 / 3), softmax).double()
            module(images())[0, 0].sum().backward()
            query, value = module.to_query.grad, module.to_value.grad
            assert query is not None
            assert value is not None
            fraction += float(query.square().sum() / value.square().sum()) / 8
        fractions.append(fraction)
    assert fractions[1] < fractions[0] / 8


def test_invalid_input_raises() -> None:
    x = images()
    with pytest.raises(ValueError, match=r"variances must be positive; got weight_variance=1.0, query_variance=0.0"):
        Attention(query_variance=0.0)
    with pytest.raises(ValueError, match=r"attention takes images .* got shape=\(9,\)"):
        Attention().module((9,), 4)
    with pytest.raises(ValueError, match="got equal positions only"):
        Attention().kernel(KernelState.from_inputs(x, x))
    with pytest.raises(ValueError, match="got variances only within an image"):
        Attention().kernel(KernelState.from_inputs(x, x, all_positions=True, within_images=False))
