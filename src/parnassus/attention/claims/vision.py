"""Claims about pictures as sequences: patches, and how far a layer can look (book sec. 10.1.2)."""

import torch
from torch import Tensor, nn
from torch.nn.functional import unfold

from parnassus.atlas import Evidence, all_of, at_least, claim, close
from parnassus.attention.maps import attention_distance
from parnassus.attention.vit import (
    Patches,
    dilated_receptive_field,
    mean_of_patches,
    patch_places,
    receptive_field,
    vit,
)


@claim("B10.1.2-9")
def patch_embedding_is_one_matrix_for_all_patches() -> Evidence:
    """Tokens = patches(x) W_E + positions: the strided convolution cuts and multiplies (book sec. 10.1.2)."""
    torch.manual_seed(0)
    patches, x = Patches((3, 8, 12), 5, patch=4), torch.randn(2, 3, 8, 12)
    cut = unfold(x, 4, stride=4).mT  # row = patch
    matrix = patches.filters.flatten(1).mT
    assert patches.embed.bias is not None
    by_hand = cut @ matrix + patches.embed.bias + patches.places[1:]
    return all_of(
        tokens=close(patches(x)[:, 1:].detach(), by_hand.detach(), atol=1e-5),
        count=close(float(patches(x).shape[1]), 1.0 + 2 * 3),
    )


@claim("B10.1.2-9")
def without_positions_a_picture_is_a_bag_of_patches() -> Evidence:
    """A ViT without positions names shuffled patches alike; with them it does not (Dosovitskiy et al. 2020)."""
    torch.manual_seed(0)
    model = vit((1, 8, 8), 10, patch=4, width=16, depth=2, pool=mean_of_patches).eval()
    x = torch.randn(3, 1, 8, 8)
    swapped = x.roll(4, -1)  # the left patches to the right
    with torch.no_grad():
        nn.init.normal_(model.patches.places)
        placed = (model(x) - model(swapped)).abs().max()
        nn.init.zeros_(model.patches.places)
        bag = (model(x) - model(swapped)).abs().max()
    return all_of(with_positions=at_least(placed, 0.01), without=close(bag, 0.0, atol=1e-5))


@claim("B10.1.2-10")
def convolutions_widen_their_view_layer_by_layer() -> Evidence:
    """L plain layers see 1 + L(k−1) pixels, dilated 1 + (k−1)(2^L − 1): counted by gradients (book sec. 10.1.2)."""
    plain = [seen(*(convolution(3, 1) for _ in range(layers))) for layers in range(1, 6)]
    dilated = [seen(*(convolution(3, 2**layer) for layer in range(layers))) for layers in range(1, 6)]
    wide = seen(*(convolution(5, 1) for _ in range(3)))
    return all_of(
        plain=close(torch.tensor(plain), torch.tensor([receptive_field(3, layers) for layers in range(1, 6)])),
        dilated=close(
            torch.tensor(dilated), torch.tensor([dilated_receptive_field(3, layers) for layers in range(1, 6)])
        ),
        wider_kernel=close(wide, receptive_field(5, 3)),
    )


@claim("B10.1.2-10")
def attention_sees_everything_in_its_first_layer() -> Evidence:
    """After one block every patch depends on every pixel, at any distance (book sec. 10.1.2)."""
    torch.manual_seed(0)
    model = vit((1, 16, 16), 10, patch=4, width=16, depth=1).double()
    x = torch.randn(1, 1, 16, 16, dtype=torch.float64, requires_grad=True)
    corner: Tensor = model.tokens(x)[0, 1].sin().sum()
    (slope,) = torch.autograd.grad(corner, x)
    places = patch_places(model.patches).double()
    even = torch.full((16, 16), 1 / 16, dtype=torch.float64)
    return all_of(
        every_pixel=at_least(slope.abs().min(), 1e-12),
        even_weights_look_as_far_as_pairs_are_apart=close(
            attention_distance(even, places).mean(), torch.cdist(places, places).mean(), rtol=1e-12
        ),
        itself_alone=close(attention_distance(torch.eye(16, dtype=torch.float64), places), 0.0),
    )


def convolution(kernel: int, dilation: int) -> nn.Module:
    """Positive weights, so that no path cancels another."""
    layer = nn.Conv1d(1, 1, kernel, dilation=dilation, padding=dilation * (kernel - 1) // 2, bias=False).double()
    nn.init.ones_(layer.weight)
    return layer


def seen(*layers: nn.Module) -> float:
    """How many inputs the middle output depends on."""
    x = torch.zeros(1, 1, 201, dtype=torch.float64, requires_grad=True)
    middle: Tensor = nn.Sequential(*layers)(x)[0, 0, 100]
    (slope,) = torch.autograd.grad(middle, x)
    return float((slope != 0).sum())
