"""Attributions over images: colours, one scale, visible images."""

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes

from parnassus.shapley.figures.image_maps import plot_class_attributions, plot_image_attributions


def displayed_image(ax: Axes) -> np.ndarray:
    (picture,) = ax.images
    return np.asarray(picture.get_array())


def test_attributions_share_one_red_blue_scale() -> None:
    parts = torch.zeros(2, 2, 2)
    parts[0, 0, 0], parts[1, 1, 1] = 2.0, -1.0
    axes = plot_image_attributions(torch.ones(2, 3, 2, 2), parts, ["a", "b"]).axes
    assert len(axes) == 5  # the last one is the colour bar
    assert axes[4].get_ylim() == (-2.0, 2.0)
    first, second = displayed_image(axes[2]), displayed_image(axes[3])
    assert first[0, 0, 0] > 2 * first[0, 0, 2]  # fully red
    assert second[1, 1, 2] > 1.2 * second[1, 1, 0] > 0.2  # blue at half intensity
    assert np.ptp(first[1, 1]) < 0.02  # zero: grey


def test_image_is_visible_and_dark_images_are_inverted() -> None:
    image = torch.zeros(1, 4, 4)
    image[0, 1, 1] = 1.0
    for picture in (image, 1 - image):
        overlay = displayed_image(plot_image_attributions(picture, torch.zeros(1, 4, 4), [""]).axes[1]).mean(-1)
        assert overlay[1, 1] < 0.7 * overlay[0, 0]


def test_class_maps_are_beside_their_image() -> None:
    axes = plot_class_attributions(torch.rand(2, 4, 6), torch.randn(2, 3, 4, 6), [["x", "a", "b", "a − b"]] * 2).axes
    assert [ax.get_title() for ax in axes[:4]] == ["x", "a", "b", "a − b"]
    assert len(axes) == 9
    with pytest.raises(ValueError, match="each row needs 4 titles"):
        plot_class_attributions(torch.rand(2, 4, 6), torch.randn(2, 3, 4, 6), [["x", "a"]] * 2)


def test_mismatched_sizes_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must match"):
        plot_image_attributions(torch.ones(2, 4, 4), torch.ones(2, 4, 4), ["a"])
    with pytest.raises(ValueError, match="or with channels"):
        plot_image_attributions(torch.ones(4, 4), torch.ones(4, 4), ["a"])
