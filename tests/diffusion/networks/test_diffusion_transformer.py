"""The diffusion transformer: initial output, patches, positions, conditioning and gradients."""

import pytest
import torch
from torch import Tensor

from parnassus.diffusion.networks.diffusion_transformer import DiffusionTransformer, DiTBlock, grid_position_embedding


def randomised_network(shape: tuple[int, int, int] = (1, 8, 6), *, classes: int = 0) -> DiffusionTransformer:
    """A small network with random values in place of zero-initialised parameters."""
    torch.manual_seed(0)
    network = DiffusionTransformer(shape, 16, blocks=2, heads=2, classes=classes)
    with torch.no_grad():
        for parameter in network.parameters():
            if not bool(parameter.any()):
                parameter.normal_(0, 0.2)
    return network


def noised_images(shape: tuple[int, int, int], count: int = 3) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    return torch.randn(count, *shape), torch.arange(count) * 7


@pytest.mark.parametrize(("shape", "patch"), [((1, 8, 8), 2), ((3, 28, 28), 4), ((2, 6, 9), 3), ((1, 5, 4), 1)])
def test_untrained_network_outputs_zeros(shape: tuple[int, int, int], patch: int) -> None:
    x, t = noised_images(shape)
    noise = DiffusionTransformer(shape, 16, patch=patch, blocks=1)(x, t)
    assert noise.shape == x.shape
    assert not bool(noise.any())


def test_block_is_initially_the_identity() -> None:
    h, embedding = torch.randn(2, 5, 16), torch.randn(2, 16)
    torch.testing.assert_close(DiTBlock(16, 4)(h, embedding), h)


def test_outputs_without_blocks_depend_only_on_their_own_patch() -> None:
    """The gradient of a patch of the output is zero outside the same patch of the input."""
    torch.manual_seed(0)
    network = DiffusionTransformer((2, 8, 6), 16, blocks=0)
    torch.nn.init.normal_(network.proj_out.weight)
    x, t = noised_images((2, 8, 6))
    x.requires_grad_()
    network(x, t)[0, :, 2:4, 4:6].square().sum().backward()
    assert x.grad is not None
    is_used = x.grad[0].abs().sum(0) > 0
    expected = torch.zeros(8, 6, dtype=torch.bool)
    expected[2:4, 4:6] = True
    assert torch.equal(is_used, expected)


def test_outputs_depend_on_all_patches_of_the_same_example_only() -> None:
    x, t = noised_images((1, 8, 6))
    x.requires_grad_()
    randomised_network()(x, t)[0, :, :2, :2].square().sum().backward()
    assert x.grad is not None
    assert bool((x.grad[0].abs() > 0).all())
    assert not bool(x.grad[1:].any())


def test_network_without_position_embedding_is_permutation_equivariant() -> None:
    """Rolling the patches rolls the output only if the position embedding is zero."""
    network = randomised_network()
    x, t = noised_images((1, 8, 6))
    rolled = x.roll(2, dims=2)
    assert not torch.allclose(network(rolled, t), network(x, t).roll(2, dims=2), atol=1e-3)
    network.position_embedding.zero_()
    torch.testing.assert_close(network(rolled, t), network(x, t).roll(2, dims=2))


def test_position_embeddings_are_distinct() -> None:
    embedding = grid_position_embedding(5, 7, 16)
    assert embedding.shape == (35, 16)
    assert float(torch.pdist(embedding).min()) > 0.1
    torch.testing.assert_close(embedding[0, :8], embedding[6, :8])  # same row
    torch.testing.assert_close(embedding[0, 8:], embedding[7, 8:])  # same column


def test_output_depends_on_step_and_class_and_null_label_equals_no_label() -> None:
    network = randomised_network(classes=3)
    x, t = noised_images((1, 8, 6))
    torch.testing.assert_close(network(x, t), network(x, t, torch.full_like(t, 3)))
    assert not torch.allclose(network(x, t), network(x, t, torch.zeros_like(t)), atol=1e-3)
    assert not torch.allclose(network(x, t), network(x, t + 50), atol=1e-3)


def test_all_parameters_receive_gradients() -> None:
    network = randomised_network(classes=3)
    x, t = noised_images((1, 8, 6))
    network(x, t, torch.tensor([0, 1, 3])).square().sum().backward()
    assert [name for name, parameter in network.named_parameters() if parameter.grad is None] == []


@torch.no_grad()
def test_bfloat16_autocast_is_close_to_float32() -> None:
    network = randomised_network()
    x, t = noised_images((1, 8, 6))
    exact = network(x, t)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        approximate = network(x, t)
    assert float((approximate.float() - exact).norm() / exact.norm()) < 0.03


def test_invalid_sizes_raise_value_error() -> None:
    with pytest.raises(ValueError, match="patch must divide height and width; got patch=3, image 8 × 6"):
        DiffusionTransformer((1, 8, 6), 16, patch=3)
    with pytest.raises(ValueError, match="divisible by heads; got width=16, heads=3"):
        DiffusionTransformer((1, 8, 6), 16, heads=3)
    with pytest.raises(ValueError, match=r"divisible by 4.*got width=18"):
        grid_position_embedding(2, 2, 18)
