"""Superpixels: they cover the image, are connected and follow colours; exact values of a linear model."""

import pytest
import torch
from scipy import ndimage
from torch import Tensor, nn

from parnassus.shapley.attributions import batching
from parnassus.shapley.attributions.attribution import explain, explain_exactly
from parnassus.shapley.attributions.masked_images import (
    flat_image_model,
    gaussian_blur,
    masked_images,
    paint_groups,
    pixel_groups,
)
from parnassus.shapley.attributions.superpixels import connected_components, enforce_connectivity, superpixels, tiles


def randoms(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def test_tiles_cover_an_image_that_they_do_not_divide() -> None:
    labels = tiles(5, 7, 3)
    assert labels.tolist()[0] == [0, 0, 0, 1, 1, 1, 2]
    assert labels.tolist()[4] == [3, 3, 3, 4, 4, 4, 5]
    assert tiles(2, 2, 9).unique().tolist() == [0]


def test_pieces_are_those_that_scipy_finds() -> None:
    labels = torch.randint(0, 3, (17, 23), generator=torch.Generator().manual_seed(0))
    there = sum(ndimage.label((labels == label).numpy())[1] for label in range(3))
    assert len(connected_components(labels).unique()) == there
    snake = torch.zeros(9, 9, dtype=torch.long)
    snake[1::4, :-1] = snake[3::4, 1:] = 1  # one long way from corner to corner
    assert len(connected_components(snake).unique()) == 5


def test_what_hangs_together_is_kept_and_the_rest_goes_to_neighbours() -> None:
    labels = torch.tensor([[4, 4, 4, 7, 7], [4, 4, 4, 7, 4], [4, 4, 4, 7, 7]])
    assert enforce_connectivity(labels).tolist() == [[0, 0, 0, 1, 1]] * 3
    noise = torch.randint(0, 5, (20, 20), generator=torch.Generator().manual_seed(1))
    whole = enforce_connectivity(noise)
    assert whole.unique().tolist() == list(range(5))
    assert len(connected_components(whole).unique()) == 5


def test_superpixels_keep_to_colours() -> None:
    image = torch.zeros(3, 24, 24)
    image[0, :, 11:] = 1.0  # the border lies on no grid
    labels = superpixels(image, 16)
    assert labels.unique().tolist() == list(range(int(labels.max()) + 1))
    assert len(connected_components(labels).unique()) == len(labels.unique())
    assert not set(labels[:, :11].flatten().tolist()) & set(labels[:, 11:].flatten().tolist())
    assert superpixels(image, 1).unique().tolist() == [0]


def test_compact_superpixels_of_noise_are_tiles() -> None:
    assert torch.equal(superpixels(randoms(1, 12, 12), 16, compactness=1e3), tiles(12, 12, 3))


def test_all_channels_of_a_pixel_come_and_go_together() -> None:
    groups = pixel_groups(tiles(2, 4, 2), 3)
    assert groups.shape == (2, 24)
    assert groups.sum(0).tolist() == [1] * 24
    assert groups.view(2, 3, 2, 4)[1, 2].tolist() == [[False, False, True, True]] * 2


def test_a_linear_model_of_images_is_explained_by_hand() -> None:
    images, others = randoms(2, 3, 4, 6).double(), randoms(5, 3, 4, 6, seed=1).double()
    weight = randoms(3, 4, 6, seed=2).double()
    labels = tiles(4, 6, 2)
    value = masked_images(lambda x: (x * weight).sum((1, 2, 3)), others, labels)
    found = explain_exactly(value, images.flatten(1))
    by_hand = (weight * (images - others.mean(0))).sum(1)
    for player in range(value.players):
        assert torch.allclose(found.values[:, 0, player], by_hand[:, labels == player].sum(-1))
    assert torch.allclose(paint_groups(found.values[:, 0], labels)[:, 3, 5], found.values[:, 0, -1])


def test_a_network_of_images_is_given_images() -> None:
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(2 * 6 * 6, 3)).double()
    image = randoms(1, 1, 8, 8).double()
    assert torch.allclose(flat_image_model(network, (1, 8, 8))(image.flatten(1)), network(image).detach())
    value = masked_images(network, gaussian_blur(image, 2.0), tiles(8, 8, 2))
    found = explain(value, image.flatten(1), 60, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(found.prediction, network(image).detach(), atol=1e-9)


def test_large_images_are_evaluated_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def brightest(x: Tensor) -> Tensor:
        asked.append(len(x))
        return x.amax((1, 2, 3))

    images = randoms(2, 1, 6, 6).double()
    game = masked_images(brightest, randoms(2, 1, 6, 6, seed=1).double(), tiles(6, 6, 2))
    whole = explain_exactly(game, images.flatten(1))
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", 36 * 8 * 10 * batching.MIN_INPUT_FACTOR)
    asked.clear()
    assert torch.equal(explain_exactly(game, images.flatten(1)).values, whole.values)
    assert max(asked) <= 10


def test_a_blur_keeps_what_is_even_and_the_mean_of_what_is_far_from_edges() -> None:
    even = torch.full((1, 2, 9, 9), 0.3)
    assert torch.allclose(gaussian_blur(even, 1.5), even)
    point = torch.zeros(1, 1, 31, 31)
    point[0, 0, 15, 15] = 1.0
    seen = gaussian_blur(point, 2.0)[0, 0]
    assert float(seen.sum()) == pytest.approx(1.0, abs=1e-5)
    assert torch.allclose(seen, seen.mT, atol=1e-7)
    assert float((seen.sum(1) * (torch.arange(31) - 15).square()).sum()) == pytest.approx(4.0, rel=0.03)


def test_wrong_input_is_rejected() -> None:
    with pytest.raises(ValueError, match="without gaps"):
        pixel_groups(torch.tensor([[0, 2]]), 1)
    with pytest.raises(ValueError, match="one size"):
        masked_images(lambda x: x, randoms(1, 1, 4, 4), tiles(4, 5, 2))
    with pytest.raises(ValueError, match="1 to 16 superpixels"):
        superpixels(randoms(1, 4, 4), 17)
    with pytest.raises(ValueError, match="height, width and side must be positive"):
        tiles(4, 4, 0)
    with pytest.raises(ValueError, match="sigma must be positive"):
        gaussian_blur(randoms(1, 1, 4, 4), 0.0)
