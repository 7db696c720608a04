"""Convolutional kernels against explicit sums over offsets, neural-tangents, and wide modules."""

import pytest
import torch

from parnassus.kernels import (
    Activation,
    Convolution,
    Dense,
    Flatten,
    GlobalAveragePooling,
    KernelState,
    Network,
    ReLU,
    moving_mean,
)
from parnassus.probability import standard_normal

from .images import assert_kernels_match, errors_of_wide_modules, images

RELU = Activation(ReLU())
FLAT = Network((Convolution(3, 2.0, 0.1), RELU, Convolution(3, 2.0), RELU, Flatten(), Dense(2.0, 0.05)))
CIRCULAR = Network(
    (
        Convolution(3, 2.0, 0.1, circular=True),
        RELU,
        Convolution(3, 2.0, circular=True),
        RELU,
        GlobalAveragePooling(),
        Dense(2.0, 0.05),
    )
)


@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize("size", [1, 3, 5])
def test_moving_mean_matches_explicit_sum(size: int, circular: bool) -> None:
    x = standard_normal(2, 5, 6, 5, 6)
    expected, sides = torch.zeros_like(x), torch.tensor((5, 6, 5, 6))
    offsets = torch.arange(size) - size // 2
    for position in torch.cartesian_prod(*(torch.arange(side) for side in sides.tolist())):
        for row in offsets:
            for column in offsets:
                shifted = position + torch.stack([row, column, row, column])
                shifted = shifted % sides if circular else shifted
                if bool(((shifted >= 0) & (shifted < sides)).all()):
                    expected[(slice(None), *position)] += 1.7 / size**2 * x[(slice(None), *shifted)]
    actual = moving_mean(x, size, all_positions=True, scale=1.7, circular=circular)
    torch.testing.assert_close(actual, expected)
    diagonal = torch.einsum("nhwhw->nhw", x)
    diagonal_mean = moving_mean(diagonal, size, scale=1.7, circular=circular)
    torch.testing.assert_close(diagonal_mean, torch.einsum("nhwhw->nhw", expected))


@pytest.mark.parametrize("circular", [False, True])
def test_kernel_of_one_convolution_is_exact(circular: bool) -> None:
    """The expectation over W is a sum of patch products, computed from one unit weight at a time."""
    layer, x = Convolution(3, 1.3, circular=circular), images()
    module = layer.module((3, 4, 4), 1)[0].double()
    weight = dict(module.named_parameters())["weight"]
    responses = []
    for unit in torch.eye(weight.numel(), dtype=x.dtype):
        with torch.no_grad():
            weight.copy_(unit.view(weight.shape))
        responses.append(module(x)[:, 0].detach())
    stacked = torch.stack(responses)
    for all_positions in (False, True):
        kernel = layer.kernel(KernelState.from_inputs(x, x, all_positions=all_positions))
        products = torch.einsum("unhw,umkl->nmhwkl", stacked, stacked)
        torch.testing.assert_close(kernel.nngp, products if all_positions else torch.einsum("nmhwhw->nmhw", products))
        torch.testing.assert_close(kernel.ntk, kernel.nngp)


def test_kernels_match_neural_tangents() -> None:
    assert_kernels_match(
        FLAT,
        (0.62421256878849, 0.35322758549334, 0.63816166097061),
        (1.77263770612343, 0.50183365164917, 1.81448498277208),
    )
    assert_kernels_match(
        CIRCULAR,
        (0.64452670074916, 0.62471011120987, 0.64803907655148),
        (1.03647728761346, 0.91427424951188, 1.04151329905555),
    )


def test_wide_modules_approach_the_limit() -> None:
    for network in (FLAT, CIRCULAR):
        nngp, ntk = errors_of_wide_modules(network, width=128, draws=16)
        assert nngp < 0.06
        assert ntk < 0.1


def test_equal_positions_are_sufficient_without_pooling() -> None:
    """All pairs of positions give the same result after Flatten."""
    x = images()
    all_pairs = FLAT.kernel(KernelState.from_inputs(x, x, all_positions=True))
    equal_positions = FLAT.kernels(x)
    torch.testing.assert_close(all_pairs.nngp, equal_positions.nngp, rtol=1e-12, atol=0)
    torch.testing.assert_close(all_pairs.ntk, equal_positions.ntk, rtol=1e-9, atol=0)
    torch.testing.assert_close(all_pairs.left, equal_positions.nngp.diagonal())


def test_blocks_do_not_change_values(monkeypatch: pytest.MonkeyPatch) -> None:
    x = standard_normal(5, 3, 4, 4, seed=2)
    expected = {network: (network.kernels(x), network.kernels(x[:2], x)) for network in (FLAT, CIRCULAR)}
    # two images if all positions are compared
    monkeypatch.setattr("parnassus.kernels.infinite_width.network.BLOCK", 32)
    for network, (square, rectangular) in expected.items():
        for kernel, blocked in zip(
            (*square, *rectangular), (*network.kernels(x), *network.kernels(x[:2], x)), strict=True
        ):
            torch.testing.assert_close(blocked, kernel, rtol=1e-9, atol=0)


def test_float32_is_preserved_and_accurate() -> None:
    single, double = CIRCULAR.kernels(images(torch.float32)), CIRCULAR.kernels(images())
    for kernel, exact in zip(single, double, strict=True):
        assert kernel.dtype == torch.float32
        torch.testing.assert_close(kernel.double(), exact, rtol=1e-5, atol=0)


def test_gradients_with_respect_to_inputs() -> None:
    x = images()[:1].requires_grad_()
    y = images()[1:]

    def entry(point: torch.Tensor) -> torch.Tensor:
        pair = FLAT.kernel(KernelState.from_inputs(point, y))
        assert pair.ntk is not None
        return pair.ntk.sum() + pair.nngp.sum()

    assert torch.autograd.gradcheck(entry, (x,))


def test_invalid_sizes_raise() -> None:
    with pytest.raises(ValueError, match=r"size must be odd.*got size=4"):
        Convolution(4)
    with pytest.raises(ValueError, match=r"need weight_variance > 0 and bias_variance ≥ 0; got weight_variance=0\.0"):
        Convolution(3, 0.0)
    with pytest.raises(ValueError, match="a convolution takes images"):
        Convolution().module((7,), 4)
    with pytest.raises(ValueError, match=r"a convolution takes images .* got vectors"):
        Network((Convolution(),)).kernels(torch.ones(2, 7))
    with pytest.raises(ValueError, match="a dense layer takes vectors; got images"):
        Network((Dense(),)).kernels(images())
    with pytest.raises(ValueError, match="outputs must be vectors; got images"):
        Network((Convolution(),)).kernels(images())
    with pytest.raises(ValueError, match=r"the same features; got \(3, 4, 4\) and \(3, 4, 2\)"):
        FLAT.kernels(images(), images()[..., :2])
