"""Claims about vision transformers: patches and receptive fields (book sec. 10.1.2)."""

import torch
from torch import Tensor, nn
from torch.nn.functional import unfold

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal
from parnassus.attention.core.attention_maps import attention_distance
from parnassus.attention.models.vit import (
    PatchEmbedding,
    class_token_pool,
    dilated_receptive_field,
    mean_pool,
    patch_centres,
    receptive_field,
    vit,
)


@claim("B10.1.2-9", "B10.1.2-18")
def patch_embedding_is_one_matrix_for_all_patches() -> Evidence:
    """Tokens = patches(x) W_E + positions: a strided convolution is this product (book sec. 10.1.2)."""
    torch.manual_seed(0)
    patches, x = PatchEmbedding((3, 8, 12), 5, patch=4), torch.randn(2, 3, 8, 12)
    pixels = unfold(x, 4, stride=4).mT  # row = patch
    matrix = patches.filters.flatten(1).mT
    assert patches.embed.bias is not None
    expected = pixels @ matrix + patches.embed.bias + patches.positions[1:]
    return all_of(
        tokens=close(patches(x)[:, 1:].detach(), expected.detach(), atol=1e-5),
        count=close(float(patches(x).shape[1]), 1.0 + 2 * 3),
    )


@claim("B10.1.2-9", "B10.1.2-18")
@torch.no_grad()
def a_vit_is_an_encoder_of_patches_with_a_class_token() -> Evidence:
    """A convolution with stride p, a class token in front, positions, blocks, norm, and a head on the class token.

    Patches are cut by hand, and the pooled mean omits the class token (Dosovitskiy et al. 2020).
    """
    torch.manual_seed(0)
    model = vit((3, 8, 12), 7, patch=4, width=16, heads=2, depth=2).double().eval()
    patches = model.patches
    patches.class_token.normal_()
    assert patches.embed.bias is not None
    x = torch.randn(2, 3, 8, 12, dtype=torch.float64)
    cut = torch.stack([x[:, :, i : i + 4, j : j + 4].flatten(1) for i in (0, 4) for j in (0, 4, 8)], 1)
    h = cut @ patches.embed.weight.flatten(1).mT + patches.embed.bias
    h = torch.cat([patches.class_token.expand(2, 1, 16), h], 1) + patches.positions
    for block in model.blocks:
        h = block(h)
    tokens = model.norm(h)
    return all_of(
        tokens=close(model.tokens(x), tokens, atol=1e-12),
        logits=close(model(x), model.head(tokens[:, 0]), atol=1e-12),
        class_token=close(class_token_pool(tokens), tokens[:, 0]),
        mean_of_the_patches=close(mean_pool(tokens), tokens[:, 1:].sum(1) / 6, atol=1e-12),
        parameters_of_the_positions=close(float(patches.positions.numel()), (1 + 2 * 3) * 16),
    )


@claim("B10.1.2-9", "B10.1.2-18")
def without_positions_a_vit_is_invariant_to_the_order_of_patches() -> Evidence:
    """A ViT without positions gives shuffled patches equal logits; with them it does not (Dosovitskiy et al. 2020)."""
    torch.manual_seed(0)
    model = vit((1, 8, 8), 10, patch=4, width=16, depth=2, pool=mean_pool).eval()
    x = torch.randn(3, 1, 8, 8)
    swapped = x.roll(4, -1)  # the left patches to the right
    with torch.no_grad():
        nn.init.normal_(model.patches.positions)
        with_positions = (model(x) - model(swapped)).abs().max()
        nn.init.zeros_(model.patches.positions)
        without_positions = (model(x) - model(swapped)).abs().max()
    return all_of(
        with_positions=greater_equal(with_positions, 0.01), without_positions=close(without_positions, 0.0, atol=1e-5)
    )


@claim("B10.1.2-10")
def receptive_fields_of_convolutions_grow_with_depth() -> Evidence:
    """L layers have receptive field 1 + L(k−1), dilated 1 + (k−1)(2^L − 1): counted by gradients (book sec. 10.1.2)."""
    plain = [measured_receptive_field(*(convolution(3, 1) for _ in range(layers))) for layers in range(1, 6)]
    dilated = [
        measured_receptive_field(*(convolution(3, 2**layer) for layer in range(layers))) for layers in range(1, 6)
    ]
    wide = measured_receptive_field(*(convolution(5, 1) for _ in range(3)))
    return all_of(
        plain=close(torch.tensor(plain), torch.tensor([receptive_field(3, layers) for layers in range(1, 6)])),
        dilated=close(
            torch.tensor(dilated), torch.tensor([dilated_receptive_field(3, layers) for layers in range(1, 6)])
        ),
        wider_kernel=close(wide, receptive_field(5, 3)),
    )


@claim("B10.1.2-10")
def attention_has_a_global_receptive_field_in_its_first_layer() -> Evidence:
    """After one block every patch depends on every pixel (book sec. 10.1.2)."""
    torch.manual_seed(0)
    model = vit((1, 16, 16), 10, patch=4, width=16, depth=1).double()
    x = torch.randn(1, 1, 16, 16, dtype=torch.float64, requires_grad=True)
    corner: Tensor = model.tokens(x)[0, 1].sin().sum()
    (gradient,) = torch.autograd.grad(corner, x)
    centres = patch_centres(model.patches).double()
    uniform = torch.full((16, 16), 1 / 16, dtype=torch.float64)
    return all_of(
        every_pixel=greater_equal(gradient.abs().min(), 1e-12),
        mean_distance_of_uniform_weights=close(
            attention_distance(uniform, centres).mean(), torch.cdist(centres, centres).mean(), rtol=1e-12
        ),
        mean_distance_of_identity_weights=close(attention_distance(torch.eye(16, dtype=torch.float64), centres), 0.0),
    )


def convolution(kernel: int, dilation: int) -> nn.Module:
    """A convolution with positive weights, so that no path cancels another."""
    layer = nn.Conv1d(1, 1, kernel, dilation=dilation, padding=dilation * (kernel - 1) // 2, bias=False).double()
    nn.init.ones_(layer.weight)
    return layer


def measured_receptive_field(*layers: nn.Module) -> float:
    """Number of inputs with a non-zero gradient at the middle output."""
    x = torch.zeros(1, 1, 201, dtype=torch.float64, requires_grad=True)
    middle: Tensor = nn.Sequential(*layers)(x)[0, 0, 100]
    (gradient,) = torch.autograd.grad(middle, x)
    return float((gradient != 0).sum())
