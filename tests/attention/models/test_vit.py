"""The vision transformer: patch embedding, pooling and receptive fields."""

import pytest
import torch

from parnassus.attention import (
    PatchEmbedding,
    class_token_pool,
    dilated_receptive_field,
    mean_pool,
    patch_centres,
    receptive_field,
    vit,
)
from parnassus.attention.models.vit import Pool


def test_token_depends_on_its_own_patch_only() -> None:
    torch.manual_seed(0)
    patches = PatchEmbedding((1, 8, 8), 6, patch=4)
    x = torch.randn(1, 1, 8, 8)
    changed = x.clone()
    changed[0, 0, 5, 1] += 1.0  # the third patch, at the bottom left
    change = (patches(x) - patches(changed)).abs().amax(-1)[0]
    assert change.gt(1e-6).tolist() == [False, False, False, True, False]
    assert patches.filters.shape == (6, 1, 4, 4)


def test_pooling_selects_the_class_token_or_averages_patches() -> None:
    tokens = torch.tensor([[[9.0], [1.0], [3.0]]])
    torch.testing.assert_close(class_token_pool(tokens), torch.tensor([[9.0]]))
    torch.testing.assert_close(mean_pool(tokens), torch.tensor([[2.0]]))


@pytest.mark.parametrize("pool", [class_token_pool, mean_pool])
def test_vit_learns_to_classify_the_bright_half(pool: Pool) -> None:
    torch.manual_seed(0)
    model = vit((1, 8, 8), 2, patch=4, width=16, depth=1, heads=2, pool=pool)
    y = torch.arange(64) % 2
    x = 0.1 * torch.randn(64, 1, 8, 8)
    x[y == 1, :, :4] += 1.0
    x[y == 0, :, 4:] += 1.0
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(60):
        optimizer.zero_grad()
        model.loss(x, y).backward()
        optimizer.step()
    assert torch.equal(model.predict(x), y)


def test_patch_centres_match_known_values() -> None:
    centres = patch_centres(PatchEmbedding((1, 4, 6), 3, patch=2))
    torch.testing.assert_close(centres[:4], torch.tensor([[1.0, 1.0], [1.0, 3.0], [1.0, 5.0], [3.0, 1.0]]))


def test_receptive_fields_of_known_networks() -> None:
    assert [receptive_field(3, layers) for layers in (0, 1, 2)] == [1, 3, 5]
    assert dilated_receptive_field(2, 10) == 1_024  # the ten layers of a WaveNet block


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="patch must divide height and width; got patch=3, image 8 × 8"):
        vit((1, 8, 8), 10, patch=3)
    with pytest.raises(ValueError, match=r"images must have the shape \(1, 8, 8\); got \(1, 8, 4\)"):
        vit((1, 8, 8), 10)(torch.zeros(2, 1, 8, 4))
    with pytest.raises(ValueError, match="got kernel=0, layers=1"):
        receptive_field(0, 1)
