"""Superpixels cover the image, are connected and follow colours; exact values of a linear model."""

import pytest
import torch
from scipy import ndimage
from torch import Tensor, nn

from parnassus.shapley.attributions import batching
from parnassus.shapley.attributions.attribution import explain, explain_exactly
from parnassus.shapley.attributions.masked_images import (
    expand_group_values,
    flat_image_model,
    gaussian_blur,
    masked_images,
    pixel_groups,
)
from parnassus.shapley.attributions.superpixels import connected_components, enforce_connectivity, superpixels, tiles


def random_images(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def test_tiles_cover_an_image_of_indivisible_size() -> None:
    labels = tiles(5, 7, 3)
    assert labels.tolist()[0] == [0, 0, 0, 1, 1, 1, 2]
    assert labels.tolist()[4] == [3, 3, 3, 4, 4, 4, 5]
    assert tiles(2, 2, 9).unique().tolist() == [0]


def test_connected_components_match_scipy() -> None:
    labels = torch.randint(0, 3, (17, 23), generator=torch.Generator().manual_seed(0))
    expected = sum(ndimage.label((labels == label).numpy())[1] for label in range(3))
    assert len(connected_components(labels).unique()) == expected
    snake = torch.zeros(9, 9, dtype=torch.long)
    snake[1::4, :-1] = snake[3::4, 1:] = 1  # a single path from corner to corner
    assert len(connected_components(snake).unique()) == 5


def test_largest_components_are_kept_and_the_rest_is_merged() -> None:
    labels = torch.tensor([[4, 4, 4, 7, 7], [4, 4, 4, 7, 4], [4, 4, 4, 7, 7]])
    assert enforce_connectivity(labels).tolist() == [[0, 0, 0, 1, 1]] * 3
    noise = torch.randint(0, 5, (20, 20), generator=torch.Generator().manual_seed(1))
    connected = enforce_connectivity(noise)
    assert connected.unique().tolist() == list(range(5))
    assert len(connected_components(connected).unique()) == 5


def test_superpixels_follow_colour_borders() -> None:
    image = torch.zeros(3, 24, 24)
    image[0, :, 11:] = 1.0  # the border is not aligned with the grid
    labels = superpixels(image, 16)
    assert labels.unique().tolist() == list(range(int(labels.max()) + 1))
    assert len(connected_components(labels).unique()) == len(labels.unique())
    assert not set(labels[:, :11].flatten().tolist()) & set(labels[:, 11:].flatten().tolist())
    assert superpixels(image, 1).unique().tolist() == [0]


def test_compact_superpixels_of_noise_are_tiles() -> None:
    assert torch.equal(superpixels(random_images(1, 12, 12), 16, compactness=1e3), tiles(12, 12, 3))


def test_pixel_groups_contain_all_channels() -> None:
    groups = pixel_groups(tiles(2, 4, 2), 3)
    assert groups.shape == (2, 24)
    assert groups.sum(0).tolist() == [1] * 24
    assert groups.view(2, 3, 2, 4)[1, 2].tolist() == [[False, False, True, True]] * 2


def test_explanation_of_a_linear_image_model_matches_closed_form() -> None:
    images, background = random_images(2, 3, 4, 6).double(), random_images(5, 3, 4, 6, seed=1).double()
    weight = random_images(3, 4, 6, seed=2).double()
    labels = tiles(4, 6, 2)
    value = masked_images(lambda x: (x * weight).sum((1, 2, 3)), background, labels)
    result = explain_exactly(value, images.flatten(1))
    expected = (weight * (images - background.mean(0))).sum(1)
    for player in range(value.players):
        assert torch.allclose(result.values[:, 0, player], expected[:, labels == player].sum(-1))
    assert torch.allclose(expand_group_values(result.values[:, 0], labels)[:, 3, 5], result.values[:, 0, -1])


def test_image_network_receives_images() -> None:
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(2 * 6 * 6, 3)).double()
    image = random_images(1, 1, 8, 8).double()
    assert torch.allclose(flat_image_model(network, (1, 8, 8))(image.flatten(1)), network(image).detach())
    value = masked_images(network, gaussian_blur(image, 2.0), tiles(8, 8, 2))
    result = explain(value, image.flatten(1), 60, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(result.prediction, network(image).detach(), atol=1e-9)


def test_large_images_are_evaluated_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    batch_sizes: list[int] = []

    def max_intensity(x: Tensor) -> Tensor:
        batch_sizes.append(len(x))
        return x.amax((1, 2, 3))

    images = random_images(2, 1, 6, 6).double()
    game = masked_images(max_intensity, random_images(2, 1, 6, 6, seed=1).double(), tiles(6, 6, 2))
    unbatched = explain_exactly(game, images.flatten(1))
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", 36 * 8 * 10 * batching.MIN_INPUT_FACTOR)
    batch_sizes.clear()
    assert torch.equal(explain_exactly(game, images.flatten(1)).values, unbatched.values)
    assert max(batch_sizes) <= 10


def test_blur_preserves_constants_and_total_mass() -> None:
    constant = torch.full((1, 2, 9, 9), 0.3)
    assert torch.allclose(gaussian_blur(constant, 1.5), constant)
    point = torch.zeros(1, 1, 31, 31)
    point[0, 0, 15, 15] = 1.0
    blurred = gaussian_blur(point, 2.0)[0, 0]
    assert float(blurred.sum()) == pytest.approx(1.0, abs=1e-5)
    assert torch.allclose(blurred, blurred.mT, atol=1e-7)
    assert float((blurred.sum(1) * (torch.arange(31) - 15).square()).sum()) == pytest.approx(4.0, rel=0.03)


def test_invalid_inputs_raise_value_error() -> None:
    with pytest.raises(ValueError, match="without gaps"):
        pixel_groups(torch.tensor([[0, 2]]), 1)
    with pytest.raises(ValueError, match="one size"):
        masked_images(lambda x: x, random_images(1, 1, 4, 4), tiles(4, 5, 2))
    with pytest.raises(ValueError, match="1 to 16 superpixels"):
        superpixels(random_images(1, 4, 4), 17)
    with pytest.raises(ValueError, match="height, width and side must be positive"):
        tiles(4, 4, 0)
    with pytest.raises(ValueError, match="sigma must be positive"):
        gaussian_blur(random_images(1, 1, 4, 4), 0.0)
