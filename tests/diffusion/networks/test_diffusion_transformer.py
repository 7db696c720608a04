"""The diffusion transformer: silent at first, told where, when and which, patches in their places."""

import pytest
import torch
from torch import Tensor

from parnassus.diffusion.networks.diffusion_transformer import DiffusionTransformer, DiTBlock, grid_position_embedding


def awake(shape: tuple[int, int, int] = (1, 8, 6), *, classes: int = 0) -> DiffusionTransformer:
    """A small network with every zero start replaced, as if it had learned something."""
    torch.manual_seed(0)
    network = DiffusionTransformer(shape, 16, blocks=2, heads=2, classes=classes)
    with torch.no_grad():
        for parameter in network.parameters():
            if not bool(parameter.any()):
                parameter.normal_(0, 0.2)
    return network


def scene(shape: tuple[int, int, int], count: int = 3) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    return torch.randn(count, *shape), torch.arange(count) * 7


@pytest.mark.parametrize(("shape", "patch"), [((1, 8, 8), 2), ((3, 28, 28), 4), ((2, 6, 9), 3), ((1, 5, 4), 1)])
def test_untrained_it_finds_no_noise_in_any_picture(shape: tuple[int, int, int], patch: int) -> None:
    x, t = scene(shape)
    noise = DiffusionTransformer(shape, 16, patch=patch, blocks=1)(x, t)
    assert noise.shape == x.shape
    assert not bool(noise.any())


def test_a_block_begins_as_the_identity() -> None:
    h, code = torch.randn(2, 5, 16), torch.randn(2, 16)
    torch.testing.assert_close(DiTBlock(16, 4)(h, code), h)


def test_pixels_come_out_where_their_patch_went_in() -> None:
    """Without blocks a patch decides about its own pixels and no others."""
    torch.manual_seed(0)
    network = DiffusionTransformer((2, 8, 6), 16, blocks=0)
    torch.nn.init.normal_(network.proj_out.weight)
    x, t = scene((2, 8, 6))
    x.requires_grad_()
    network(x, t)[0, :, 2:4, 4:6].square().sum().backward()
    assert x.grad is not None
    seen = x.grad[0].abs().sum(0) > 0
    expected = torch.zeros(8, 6, dtype=torch.bool)
    expected[2:4, 4:6] = True
    assert torch.equal(seen, expected)


def test_attention_lets_every_patch_see_every_other_but_no_other_example() -> None:
    x, t = scene((1, 8, 6))
    x.requires_grad_()
    awake()(x, t)[0, :, :2, :2].square().sum().backward()
    assert x.grad is not None
    assert bool((x.grad[0].abs() > 0).all())
    assert not bool(x.grad[1:].any())


def test_without_position_codes_it_cannot_tell_places_apart() -> None:
    """Two patches exchanged: with the codes off the noise is exchanged too, with them on it is not."""
    network = awake()
    x, t = scene((1, 8, 6))
    moved = x.roll(2, dims=2)
    assert not torch.allclose(network(moved, t), network(x, t).roll(2, dims=2), atol=1e-3)
    network.position_embedding.zero_()
    torch.testing.assert_close(network(moved, t), network(x, t).roll(2, dims=2))


def test_position_codes_differ_from_place_to_place() -> None:
    code = grid_position_embedding(5, 7, 16)
    assert code.shape == (35, 16)
    assert float(torch.pdist(code).min()) > 0.1
    torch.testing.assert_close(code[0, :8], code[6, :8])  # one row
    torch.testing.assert_close(code[0, 8:], code[7, 8:])  # one column


def test_step_and_class_are_heard_and_the_null_label_is_no_label() -> None:
    network = awake(classes=3)
    x, t = scene((1, 8, 6))
    torch.testing.assert_close(network(x, t), network(x, t, torch.full_like(t, 3)))
    assert not torch.allclose(network(x, t), network(x, t, torch.zeros_like(t)), atol=1e-3)
    assert not torch.allclose(network(x, t), network(x, t + 50), atol=1e-3)


def test_every_parameter_learns() -> None:
    network = awake(classes=3)
    x, t = scene((1, 8, 6))
    network(x, t, torch.tensor([0, 1, 3])).square().sum().backward()
    assert [name for name, parameter in network.named_parameters() if parameter.grad is None] == []


@torch.no_grad()
def test_bfloat16_autocast_stays_near() -> None:
    network = awake()
    x, t = scene((1, 8, 6))
    exact = network(x, t)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = network(x, t)
    assert float((rough.float() - exact).norm() / exact.norm()) < 0.03


def test_wrong_sizes_get_a_sentence() -> None:
    with pytest.raises(ValueError, match="patch must divide height and width; got patch=3, image 8 × 6"):
        DiffusionTransformer((1, 8, 6), 16, patch=3)
    with pytest.raises(ValueError, match="divisible by heads; got width=16, heads=3"):
        DiffusionTransformer((1, 8, 6), 16, heads=3)
    with pytest.raises(ValueError, match=r"divisible by 4.*got width=18"):
        grid_position_embedding(2, 2, 18)
